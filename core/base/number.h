// SPDX-License-Identifier: Apache-2.0
// Numbers to and from text without the C locale (QCoreApplication changes it), and quantities to
// text for people: "24 MiB", "12.6 ns", "4.11 TB/s". Values are stored in SI base units everywhere;
// this is the only place that scales them.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace memscape {

/// The units of documents. Text forms: "1", "B", "s", "B/s", "FLOP/s", "Hz".
enum class Unit { One, Byte, Second, BytePerSecond, FlopPerSecond, Hertz };

std::string_view unitText(Unit unit);
std::optional<Unit> unitFromText(std::string_view text);

/// A finite number, the whole text: "1.5", "-3", "1e9". Errors: number.syntax, number.range (not
/// finite or beyond double).
Result<double> parseNumber(std::string_view text);

/// A finite number with an optional unit suffix that fits `unit`: "24MiB", "24 MB", "1.5 us",
/// "3 GB/s", "2.6GHz", "12 %" (for One). GB is 10^9, GiB is 2^30; a bare K/M/G is refused for bytes
/// with a hint. Errors: number.syntax, number.unit, number.range.
Result<double> parseQuantity(std::string_view text, Unit unit);

/// Shortest text that reads back as the same double: "0.1", "1e+30", "4096". NaN is "nan".
std::string numberText(double value);

/// A whole number for people, long ones in groups of three digits: "6 738 415 616". The spaces are narrow
/// and do not break (U+202F).
std::string countText(double count);

enum class ByteStyle { Binary, Decimal }; ///< GiB = 2^30, or GB = 10^9; never mixed in one view

/// For people, `digits` significant: quantityText(25165824, Byte) = "24 MiB",
/// (1.26e-8, Second) = "12.6 ns", (4.11e12, BytePerSecond) = "4.11 TB/s", (0.25, One) = "0.25".
/// NaN is "–". Rates are always decimal; bytes follow `style`.
std::string quantityText(double value, Unit unit, ByteStyle style = ByteStyle::Binary, int digits = 3);

/// A count of floating-point operations: "120 GFLOP", "12 FLOP".
std::string operationsText(double count);

/// "25 %", "−4.8 %", "±0"; a relative error or a share.
std::string percentText(double share, int digits = 2);
/// "+4.8 %": of a difference, whose sign is half of what it says.
std::string signedPercentText(double share);
/// With a binary prefix and four digits: "1.094 MiB".
std::string bytesText(double bytes, int digits = 4);
/// With a prefix and four digits: "1.094 ms".
std::string secondsText(double seconds);
/// Of what has no unit, with four digits.
std::string shortNumber(double count, int digits = 4);

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN(); ///< a figure without a value

} // namespace memscape
