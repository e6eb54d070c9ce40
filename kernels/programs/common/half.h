// SPDX-License-Identifier: Apache-2.0
// float16 and bfloat16 one number at a time, by their definition (IEEE 754 binary16; the upper half
// of a binary32), rounding to nearest, ties to even. Slow and sure: what vector conversions and a
// GPU's are held against.
#pragma once

#include "core/network/dtype.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace memscape {

constexpr float bfloat16ToFloat(std::uint16_t bits)
{
    return std::bit_cast<float>(std::uint32_t(bits) << 16);
}

constexpr std::uint16_t floatToBfloat16(float value)
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const bool isNumber = (bits & 0x7fffffffu) <= 0x7f800000u; // else a quiet not-a-number
    return std::uint16_t(isNumber ? (bits + 0x7fffu + (bits >> 16 & 1)) >> 16 : bits >> 16 | 0x40);
}

constexpr float float16ToFloat(std::uint16_t bits)
{
    const std::uint32_t sign = std::uint32_t(bits & 0x8000u) << 16;
    const std::uint32_t exponent = bits >> 10 & 31u, fraction = bits & 1023u;
    if (exponent == 31)
        return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) { // fraction · 2^−24
        const float small = float(fraction) * 0x1p-24F;
        return sign != 0 ? -small : small;
    }
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

constexpr std::uint16_t floatToFloat16(float value)
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = std::uint16_t(bits >> 16 & 0x8000u);
    const std::uint32_t size = bits & 0x7fffffffu;
    if (size > 0x7f800000u)
        return std::uint16_t(sign | 0x7e00u);
    if (size >= 0x477ff000u) // 65520 and above round to infinity
        return std::uint16_t(sign | 0x7c00u);
    if (size < 0x38800000u) { // below 2^−14: whole multiples of 2^−24, as adding 2^−1 rounds them
        const float rounded = std::bit_cast<float>(size) + 0.5F;
        return std::uint16_t(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000u));
    }
    const std::uint32_t rebased = size - (112u << 23);
    return std::uint16_t(sign | (rebased + 0xfffu + (rebased >> 13 & 1)) >> 13);
}

/// A float rounded to a format and back; Float32 as it is.
constexpr float roundedTo(float value, DType dtype)
{
    if (dtype == DType::Float16)
        return float16ToFloat(floatToFloat16(value));
    return dtype == DType::BFloat16 ? bfloat16ToFloat(floatToBfloat16(value)) : value;
}

/// Unit roundoff: the largest relative error of rounding to nearest in the normal range.
constexpr double roundoff(DType dtype)
{
    return dtype == DType::Float16 ? 0x1p-11 : dtype == DType::BFloat16 ? 0x1p-8 : 0x1p-24;
}

/// Half the distance of the smallest numbers of a format: what rounding adds beside the above.
constexpr double leastRoundoff(DType dtype)
{
    return dtype == DType::Float16 ? 0x1p-25 : dtype == DType::BFloat16 ? 0x1p-134 : 0x1p-150;
}

} // namespace memscape
