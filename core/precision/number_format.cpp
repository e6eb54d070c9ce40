// SPDX-License-Identifier: Apache-2.0
#include "core/precision/number_format.h"

#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::array<NumberFormat, 8> table{{
    {Format::Fp64, "fp64", "FP64", "fp64", 11, 52, 8, true},
    {Format::Fp32, "fp32", "FP32", "fp32", 8, 23, 4, true},
    {Format::Tf32, "tf32", "TF32", "tf32", 8, 10, 4, true},
    {Format::Fp16, "fp16", "FP16", "fp16", 5, 10, 2, true},
    {Format::Bf16, "bf16", "BF16", "bf16", 8, 7, 2, true},
    {Format::Fp8E4M3, "fp8-e4m3", "FP8 E4M3", "fp8", 4, 3, 1, false},
    {Format::Fp8E5M2, "fp8-e5m2", "FP8 E5M2", "fp8", 5, 2, 1, true},
    {Format::Int8, "int8", "INT8", "int8", 0, 7, 1, false},
}};

constexpr std::uint64_t ones(int count)
{
    return (std::uint64_t(1) << count) - 1;
}

/// A whole number from one that is not negative and below 2^53.
double roundedUnits(double units, const Conversion& how)
{
    const double below = std::floor(units);
    const double rest = units - below;
    switch (how.rounding) {
    case Rounding::NearestEven: return below + (rest > 0.5 || (rest == 0.5 && std::fmod(below, 2) == 1));
    case Rounding::NearestAway: return below + (rest >= 0.5);
    case Rounding::Stochastic: return below + (how.draw < rest);
    case Rounding::TowardZero: break;
    }
    return below;
}

/// The exponent field that is all ones where it has infinity.
std::uint64_t specialBits(const NumberFormat& format, bool isNan)
{
    const std::uint64_t all = ones(format.exponentBits) << format.mantissaBits;
    if (!format.hasInfinity)
        return all | ones(format.mantissaBits);
    return isNan ? all | std::uint64_t(1) << (format.mantissaBits - 1) : all;
}

std::uint64_t encodeInteger(double value, const Conversion& how)
{
    if (std::isnan(value))
        return 0;
    const double most = value < 0 ? 128 : 127;
    const double magnitude = std::min(std::fabs(value), most + 1);
    const double whole = std::min(roundedUnits(magnitude, how), most);
    return std::uint64_t(std::int64_t(value < 0 ? -whole : whole)) & 0xff;
}

/// Of a finite magnitude: exponent and mantissa fields, as one number. Rounding up the largest
/// mantissa carries into the exponent, as it should.
std::uint64_t encodeMagnitude(const NumberFormat& format, double magnitude, const Conversion& how)
{
    if (magnitude == 0)
        return 0;
    const int exponent = std::max(std::ilogb(magnitude), format.leastExponent());
    const double units = std::ldexp(magnitude, format.mantissaBits - exponent);
    const auto whole = std::uint64_t(roundedUnits(units, how));
    return (std::uint64_t(exponent - format.leastExponent()) << format.mantissaBits) + whole;
}

std::uint64_t largestBits(const NumberFormat& format)
{
    return specialBits(format, false) - 1; // the number before infinity, or before E4M3's NaN
}

} // namespace

int NumberFormat::largestExponent() const
{
    // The highest field is infinity's; E4M3 has numbers there.
    return int(ones(exponentBits)) - bias() - (hasInfinity ? 1 : 0);
}

double NumberFormat::largest() const
{
    return isInteger() ? 127 : decode(*this, largestBits(*this));
}

double NumberFormat::smallestNormal() const
{
    return isInteger() ? 1 : std::ldexp(1.0, leastExponent());
}

double NumberFormat::smallestSubnormal() const
{
    return isInteger() ? 1 : std::ldexp(1.0, leastExponent() - mantissaBits);
}

double NumberFormat::epsilon() const
{
    return isInteger() ? 1 : std::ldexp(1.0, -mantissaBits);
}

double NumberFormat::overflowThreshold() const
{
    if (isInteger())
        return 127.5;
    if (format == Format::Fp64)
        return std::numeric_limits<double>::infinity(); // half a step more is no double
    // Of E4M3 the step beyond the largest number would be the not-a-number's place.
    return largest() + std::ldexp(0.5, largestExponent() - mantissaBits);
}

double NumberFormat::underflowThreshold() const
{
    return smallestSubnormal() / 2; // 0 for FP64, whose half is no double either
}

double NumberFormat::spacing(double value) const
{
    const double magnitude = std::fabs(value);
    if (!(magnitude <= largest()))
        return std::numeric_limits<double>::infinity();
    if (isInteger())
        return 1;
    const int exponent = magnitude == 0 ? leastExponent() : std::ilogb(magnitude);
    return std::ldexp(1.0, std::max(exponent, leastExponent()) - mantissaBits);
}

const std::array<NumberFormat, 8>& numberFormats()
{
    return table;
}

const NumberFormat& numberFormat(Format format)
{
    return table[std::size_t(format)];
}

std::vector<std::string> formatKeys()
{
    std::vector<std::string> keys;
    for (const NumberFormat& format : table)
        keys.emplace_back(format.key);
    return keys;
}

Result<Format> formatFromText(std::string_view key)
{
    for (const NumberFormat& format : table) {
        if (format.key == key)
            return format.format;
    }
    return fail("format.unknown", fmt::format("no number format \"{}\"", quotedForMessage(key)),
                didYouMean(key, formatKeys()), "format");
}

std::uint64_t encode(const NumberFormat& format, double value, const Conversion& how)
{
    if (format.isInteger())
        return encodeInteger(value, how);
    const std::uint64_t sign = std::uint64_t(std::signbit(value)) << (format.exponentBits + format.mantissaBits);
    if (std::isnan(value))
        return sign | specialBits(format, true);
    const std::uint64_t special = specialBits(format, false);
    const std::uint64_t bits =
        std::isinf(value) ? special : std::min(encodeMagnitude(format, std::fabs(value), how), special);
    const bool isCut = how.rounding == Rounding::TowardZero && !std::isinf(value);
    if (bits == special && (how.overflow == Overflow::Saturate || isCut))
        return sign | largestBits(format);
    return sign | bits;
}

double decode(const NumberFormat& format, std::uint64_t bits)
{
    if (format.isInteger())
        return double(std::int8_t(bits & 0xff));
    const std::uint64_t magnitude = bits & ones(format.exponentBits + format.mantissaBits);
    const bool isNegative = (bits >> (format.exponentBits + format.mantissaBits) & 1) != 0;
    const std::uint64_t special = specialBits(format, false);
    double value = 0;
    if (magnitude >= special) {
        value = magnitude == special && format.hasInfinity ? std::numeric_limits<double>::infinity()
                                                           : std::numeric_limits<double>::quiet_NaN();
    } else {
        const auto field = int(magnitude >> format.mantissaBits);
        const std::uint64_t mantissa = magnitude & ones(format.mantissaBits);
        const std::uint64_t whole = field == 0 ? mantissa : mantissa | std::uint64_t(1) << format.mantissaBits;
        value = std::ldexp(double(whole), std::max(field, 1) - format.bias() - format.mantissaBits);
    }
    return isNegative ? -value : value;
}

double rounded(const NumberFormat& format, double value, const Conversion& how)
{
    return decode(format, encode(format, value, how));
}

} // namespace memscape
