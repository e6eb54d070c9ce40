// SPDX-License-Identifier: Apache-2.0
#include "core/base/number.h"

#include "core/base/text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include <fmt/format.h>

namespace memscape {

namespace {

struct Suffix
{
    std::string_view text;
    double factor;
};

constexpr std::array<std::string_view, 6> unitTexts{"1", "B", "s", "B/s", "FLOP/s", "Hz"};

constexpr std::array byteSuffixes{
    Suffix{"B", 1},        Suffix{"KiB", 0x1p10}, Suffix{"MiB", 0x1p20}, Suffix{"GiB", 0x1p30},
    Suffix{"TiB", 0x1p40}, Suffix{"PiB", 0x1p50}, Suffix{"kB", 1e3},     Suffix{"KB", 1e3},
    Suffix{"MB", 1e6},     Suffix{"GB", 1e9},     Suffix{"TB", 1e12},    Suffix{"PB", 1e15},
};
constexpr std::array secondSuffixes{
    Suffix{"s", 1},     Suffix{"ms", 1e-3}, Suffix{"us", 1e-6},  Suffix{"µs", 1e-6},
    Suffix{"μs", 1e-6}, Suffix{"ns", 1e-9}, Suffix{"ps", 1e-12}, Suffix{"min", 60},
};
constexpr std::array rateSuffixes{
    Suffix{"B/s", 1},        Suffix{"kB/s", 1e3},     Suffix{"KB/s", 1e3},     Suffix{"MB/s", 1e6},
    Suffix{"GB/s", 1e9},     Suffix{"TB/s", 1e12},    Suffix{"KiB/s", 0x1p10}, Suffix{"MiB/s", 0x1p20},
    Suffix{"GiB/s", 0x1p30}, Suffix{"TiB/s", 0x1p40},
};
constexpr std::array flopSuffixes{
    Suffix{"FLOP/s", 1},     Suffix{"MFLOP/s", 1e6},  Suffix{"GFLOP/s", 1e9},
    Suffix{"TFLOP/s", 1e12}, Suffix{"PFLOP/s", 1e15},
};
constexpr std::array hertzSuffixes{
    Suffix{"Hz", 1},
    Suffix{"kHz", 1e3},
    Suffix{"MHz", 1e6},
    Suffix{"GHz", 1e9},
};
constexpr std::array oneSuffixes{Suffix{"%", 0.01}};

std::span<const Suffix> suffixesOf(Unit unit)
{
    switch (unit) {
    case Unit::One: return oneSuffixes;
    case Unit::Byte: return byteSuffixes;
    case Unit::Second: return secondSuffixes;
    case Unit::BytePerSecond: return rateSuffixes;
    case Unit::FlopPerSecond: return flopSuffixes;
    case Unit::Hertz: return hertzSuffixes;
    }
    return {};
}

tl::unexpected<Error> notANumber(std::string_view text)
{
    return fail("number.syntax", fmt::format("expected a number, found \"{}\"", quotedForMessage(text)));
}

/// The number at the start of `text`; the rest is left in `rest`.
Result<double> leadingNumber(std::string_view text, std::string_view& rest)
{
    std::string_view digits = text;
    if (digits.starts_with('+'))
        digits.remove_prefix(1);
    double value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code == std::errc::invalid_argument)
        return notANumber(text);
    rest = digits.substr(static_cast<std::size_t>(end - digits.data()));
    if (code == std::errc::result_out_of_range || !std::isfinite(value)) {
        return fail("number.range", fmt::format("\"{}\" is not a finite number", quotedForMessage(text)));
    }
    return value;
}

struct Scaled
{
    double factor;
    std::string_view unit;
};

constexpr std::array binaryBytes{Scaled{1, "B"},        Scaled{0x1p10, "KiB"}, Scaled{0x1p20, "MiB"},
                                 Scaled{0x1p30, "GiB"}, Scaled{0x1p40, "TiB"}, Scaled{0x1p50, "PiB"}};
constexpr std::array decimalBytes{Scaled{1, "B"},    Scaled{1e3, "kB"},  Scaled{1e6, "MB"},
                                  Scaled{1e9, "GB"}, Scaled{1e12, "TB"}, Scaled{1e15, "PB"}};
constexpr std::array byteRates{Scaled{1, "B/s"},    Scaled{1e3, "kB/s"},  Scaled{1e6, "MB/s"},
                               Scaled{1e9, "GB/s"}, Scaled{1e12, "TB/s"}, Scaled{1e15, "PB/s"}};
constexpr std::array flopRates{Scaled{1, "FLOP/s"},    Scaled{1e3, "kFLOP/s"},  Scaled{1e6, "MFLOP/s"},
                               Scaled{1e9, "GFLOP/s"}, Scaled{1e12, "TFLOP/s"}, Scaled{1e15, "PFLOP/s"}};
constexpr std::array hertz{Scaled{1, "Hz"}, Scaled{1e3, "kHz"}, Scaled{1e6, "MHz"}, Scaled{1e9, "GHz"}};
constexpr std::array seconds{Scaled{1e-12, "ps"}, Scaled{1e-9, "ns"}, Scaled{1e-6, "µs"}, Scaled{1e-3, "ms"},
                             Scaled{1, "s"}};

std::span<const Scaled> scalesOf(Unit unit, ByteStyle style)
{
    switch (unit) {
    case Unit::Byte:
        return style == ByteStyle::Binary ? std::span<const Scaled>(binaryBytes)
                                          : std::span<const Scaled>(decimalBytes);
    case Unit::BytePerSecond: return byteRates;
    case Unit::FlopPerSecond: return flopRates;
    case Unit::Hertz: return hertz;
    case Unit::Second: return seconds;
    case Unit::One: break;
    }
    return {};
}

/// Digits in groups of three where there are more than five.
std::string grouped(std::string text)
{
    const bool isLong = text.size() > 5 && text.find_first_not_of("0123456789") == std::string::npos;
    for (std::size_t at = text.size() - 3; isLong && at < text.size() && at > 0; at -= 3)
        text.insert(at, "\u202f");
    return text;
}

/// Without the spaces between digits and groups of three behind them: as numbers are shown, and pasted.
std::string withoutGroups(std::string_view text)
{
    constexpr std::string_view spaces[] = {" ", "\u202f", "\u00a0", "\u2009"};
    const auto isDigit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
    std::string joined;
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view rest = text.substr(at);
        std::size_t skipped = 0;
        for (const std::string_view space : spaces) {
            const std::size_t next = at + space.size();
            if (at > 0 && isDigit(at - 1) && rest.starts_with(space) && isDigit(next) && isDigit(next + 1)
                && isDigit(next + 2) && !isDigit(next + 3))
                skipped = space.size();
        }
        if (skipped == 0)
            joined += text[at++];
        at += skipped;
    }
    return joined;
}

/// `digits` significant, without a trailing ".0", without an exponent between 1e-4 and 1e7.
std::string significant(double value, int digits)
{
    std::string text = fmt::format("{:.{}g}", value, digits);
    const double size = std::fabs(value);
    if (text.find('e') != std::string::npos && size >= 1 && size < 1e7)
        text = fmt::format("{:.0f}", value);
    return text;
}

} // namespace

std::string_view unitText(Unit unit)
{
    return unitTexts[static_cast<std::size_t>(unit)];
}

std::optional<Unit> unitFromText(std::string_view text)
{
    for (std::size_t i = 0; i < unitTexts.size(); ++i) {
        if (unitTexts[i] == text)
            return static_cast<Unit>(i);
    }
    return {};
}

Result<double> parseNumber(std::string_view text)
{
    text = trimmed(text);
    std::string_view rest;
    MEMSCAPE_TRY(value, leadingNumber(text, rest));
    if (!rest.empty())
        return notANumber(text);
    return value;
}

Result<double> parseQuantity(std::string_view text, Unit unit)
{
    text = trimmed(text);
    const std::string digits = withoutGroups(text);
    std::string_view rest;
    MEMSCAPE_TRY(value, leadingNumber(digits, rest));
    rest = trimmed(rest);
    if (rest.empty())
        return value;
    std::vector<std::string> known;
    for (const Suffix& suffix : suffixesOf(unit)) {
        known.emplace_back(suffix.text);
        if (lowered(suffix.text) == lowered(rest) && (suffix.text == rest || unit != Unit::Second)) {
            const double scaled = value * suffix.factor;
            if (!std::isfinite(scaled))
                return fail("number.range", fmt::format("\"{}\" is too large", quotedForMessage(text)));
            return scaled;
        }
    }
    if (unit == Unit::One)
        return fail("number.syntax", fmt::format("\"{}\" is not a number", quotedForMessage(text)));
    std::string hint = "units here: " + join(known, ", ");
    const std::string low = lowered(rest);
    if (unit == Unit::Byte && (low == "k" || low == "m" || low == "g" || low == "t"))
        hint = fmt::format("write {0}iB for powers of 1024 or {0}B for powers of 1000",
                           static_cast<char>(low[0] - 'a' + 'A'));
    return fail("number.unit", fmt::format("\"{}\" is not a unit here", quotedForMessage(rest)), hint);
}

std::string numberText(double value)
{
    if (std::isnan(value))
        return "nan";
    std::array<char, 64> buffer;
    const auto [end, code] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    std::string text(buffer.data(), end);
    // Whole numbers of bytes read better without an exponent: 268435456, not 2.68435456e+08.
    if (text.find('e') != std::string::npos && std::fabs(value) < 0x1p63 && value == std::floor(value))
        text = fmt::format("{}", static_cast<std::int64_t>(value));
    return text;
}

std::string quantityText(double value, Unit unit, ByteStyle style, int digits)
{
    if (std::isnan(value))
        return "–";
    if (std::isinf(value))
        return value > 0 ? "∞" : "−∞";
    std::string sign = value < 0 ? "−" : "";
    const double size = std::fabs(value);
    const auto scales = scalesOf(unit, style);
    if (scales.empty())
        return sign + grouped(significant(size, digits));
    if (size == 0)
        return fmt::format("0 {}", unitText(unit));
    // The largest scale that leaves at least 1 after rounding to `digits`.
    std::size_t chosen = 0;
    for (std::size_t i = 0; i < scales.size(); ++i) {
        if (size / scales[i].factor >= 1 - 0.5 * std::pow(10, -digits))
            chosen = i;
    }
    double scaled = size / scales[chosen].factor;
    std::string number = significant(scaled, scaled >= 1000 ? 4 : digits);
    return fmt::format("{}{} {}", sign, number, scales[chosen].unit);
}

std::string countText(double count)
{
    return grouped(numberText(count));
}

std::string operationsText(double count)
{
    std::string text = quantityText(count, Unit::FlopPerSecond);
    constexpr std::string_view perSecond = "/s";
    if (text.ends_with(perSecond))
        text.resize(text.size() - perSecond.size());
    return text;
}

std::string percentText(double share, int digits)
{
    if (!std::isfinite(share))
        return "–";
    if (std::fabs(share) < 5e-5)
        return "±0";
    return fmt::format("{}{} %", share < 0 ? "−" : "", significant(std::fabs(share) * 100, digits));
}

std::string signedPercentText(double share)
{
    const std::string text = percentText(share);
    return text.front() >= '0' && text.front() <= '9' ? "+" + text : text;
}

std::string bytesText(double bytes, int digits)
{
    return quantityText(bytes, Unit::Byte, ByteStyle::Binary, digits);
}

std::string secondsText(double seconds)
{
    return quantityText(seconds, Unit::Second);
}

std::string shortNumber(double count, int digits)
{
    return quantityText(count, Unit::One, ByteStyle::Binary, digits);
}

} // namespace memscape
