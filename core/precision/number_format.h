// SPDX-License-Identifier: Apache-2.0
// The number formats of machine learning, bit by bit. A number of a floating format is
//
//     (−1)^sign × 2^(exponent − bias) × 1.mantissa      exponent field > 0
//     (−1)^sign × 2^(1 − bias)        × 0.mantissa      exponent field = 0: subnormal
//
// and the highest exponent field holds infinity and not-a-numbers (IEEE 754-2019), except in
// FP8 E4M3, which has no infinity and one not-a-number, all ones (OCP 8-bit Floating Point
// Specification, revision 1.0, 2023: what PyTorch calls float8_e4m3fn and CUDA __NV_E4M3).
//
// Converting a number rounds it once, to nearest with ties to even unless asked otherwise. What is
// rounded beyond the largest number becomes infinity, or a not-a-number where there is none, or with
// Overflow::Saturate the largest number (CUDA's __NV_SATFINITE, and PyTorch for E4M3). Not-a-numbers stay what they
// are; their sign is kept, their payload is not. INT8 saturates always and turns a not-a-number into 0.
//
// TF32 is what tensor cores take of an FP32 number: 19 of its bits, kept in a word of 32. Left out:
// scales of a tensor or block (FP8 and INT8 training multiply by one first), signalling NaNs, and
// E4M3FNUZ (AMD's MI300).
#pragma once

#include "core/base/result.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memscape {

enum class Format { Fp64, Fp32, Tf32, Fp16, Bf16, Fp8E4M3, Fp8E5M2, Int8 };

struct NumberFormat
{
    Format format = Format::Fp32;
    std::string_view key;   ///< "fp8-e4m3": what the parameter `format` takes
    std::string_view label; ///< "FP8 E4M3"
    std::string_view rate;  ///< the device's rate of products in it: "fp8"
    int exponentBits = 0;   ///< 0: an integer
    int mantissaBits = 0;   ///< that are stored; of an integer all but the sign
    int bytes = 0;          ///< of one number in memory
    bool hasInfinity = true;

    bool isInteger() const { return exponentBits == 0; }
    int bits() const { return 1 + exponentBits + mantissaBits; } ///< that mean something
    int bias() const { return (1 << (exponentBits - 1)) - 1; }
    int leastExponent() const { return 1 - bias(); } ///< of normal numbers
    int largestExponent() const;                     ///< of finite numbers

    double largest() const;           ///< finite
    double smallestNormal() const;    ///< 1 of an integer
    double smallestSubnormal() const; ///< the least number above 0
    double epsilon() const;           ///< from 1 to the next number
    /// What is larger overflows when it is rounded to nearest; the number itself too, but in E4M3,
    /// whose largest number is even.
    double overflowThreshold() const;
    /// What is this small or smaller becomes 0 when it is rounded to nearest (ties to even).
    double underflowThreshold() const;
    /// From |value| to the next larger number of the format: one unit in the last place. Infinity
    /// beyond the largest number.
    double spacing(double value) const;
};

/// In the order of the enumeration: from the most bits to the fewest.
const std::array<NumberFormat, 8>& numberFormats();
const NumberFormat& numberFormat(Format format);
std::vector<std::string> formatKeys();
/// Errors: format.unknown with near names.
Result<Format> formatFromText(std::string_view key);

enum class Rounding {
    NearestEven,
    NearestAway, ///< ties away from zero: cvt.rna of TF32
    TowardZero,  ///< bits cut off: what tensor cores do with the rest of an FP32 word
    Stochastic   ///< up with the probability of the part that is cut off
};
enum class Overflow { Special, Saturate };

struct Conversion
{
    Rounding rounding = Rounding::NearestEven;
    Overflow overflow = Overflow::Special;
    double draw = 0; ///< of a stochastic rounding: uniform in [0, 1)
};

/// The bits of `value` in the format, in the low bits(): sign, exponent, mantissa.
std::uint64_t encode(const NumberFormat& format, double value, const Conversion& how = {});
/// Exactly. Bits above bits() are not looked at.
double decode(const NumberFormat& format, std::uint64_t bits);
/// decode(encode(value)).
double rounded(const NumberFormat& format, double value, const Conversion& how = {});

} // namespace memscape
