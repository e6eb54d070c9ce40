// SPDX-License-Identifier: Apache-2.0
// gelu in its tanh form without tanh: with u = √(2/π) (z + 0.044715 z³),
//     ½ (1 + tanh u) = s = 1 / (1 + e^(-2u)),   gelu(z) = z s,
//     gelu'(z) = s + z s (1 − s) 2 u',          u' = √(2/π) (1 + 3 · 0.044715 z²).
// e^v = 2^n e^r with n = round(v / ln 2), |r| ≤ ½ ln 2, and a polynomial of degree 6 for e^r
// (Taylor's, relative error below 2·10⁻⁷): no call of a library, so a loop of it becomes vectors.
//
// A number gives the same bits wherever in a row it stands, in a vector or behind the last one:
// this file is compiled without contraction of a·b + c, which a compiler may choose differently in
// the two.
#include "kernels/host/checkpoint/gelu.h"

#include "kernels/host/common/simd.h"
#include "kernels/programs/checkpoint/mlp_reference.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace memscape::host {

namespace {

constexpr float cubic = 0.044715F, rootTwoOverPi = 0.79788456F;

MEMSCAPE_INLINE float exponential(float v)
{
    constexpr float perLn2 = 1.44269504F, ln2High = 0.693359375F, ln2Low = -2.12194440e-4F;
    constexpr float rounder = 12582912.0F; // 1.5 · 2^23: adding it leaves a whole number in the low bits
    v = v < -87.0F ? -87.0F : v;
    v = v > 89.0F ? 89.0F : v; // 2^128: infinite
    const float shifted = v * perLn2 + rounder;
    const float n = shifted - rounder;
    const float r = (v - n * ln2High) - n * ln2Low;
    float p = 1.0F / 720;
    p = p * r + 1.0F / 120;
    p = p * r + 1.0F / 24;
    p = p * r + 1.0F / 6;
    p = p * r + 0.5F;
    p = p * r + 1.0F;
    p = p * r + 1.0F;
    const std::int32_t power = (std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(rounder) + 127)
        << 23;
    return p * std::bit_cast<float>(power);
}

/// s of the file's head.
MEMSCAPE_INLINE float shareOf(float z)
{
    const float u = rootTwoOverPi * (z + cubic * z * z * z);
    return 1.0F / (1.0F + exponential(-2.0F * u));
}

MEMSCAPE_INLINE void gelu(const float* z, float* x, std::size_t count)
{
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i)
        x[i] = z[i] * shareOf(z[i]);
}

MEMSCAPE_INLINE void geluSlope(const float* z, float* y, float* sums, std::size_t count)
{
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
        const float s = shareOf(z[i]);
        const float twiceSlope = 2.0F * rootTwoOverPi * (1.0F + 3.0F * cubic * z[i] * z[i]);
        y[i] = y[i] * (s + z[i] * s * (1.0F - s) * twiceSlope);
        sums[i] = sums[i] + y[i];
    }
}

#if MEMSCAPE_X86
MEMSCAPE_AVX2 void gelu32(const float* z, float* x, std::size_t count)
{
    gelu(z, x, count);
}
MEMSCAPE_AVX512 void gelu64(const float* z, float* x, std::size_t count)
{
    gelu(z, x, count);
}
MEMSCAPE_AVX2 void geluSlope32(const float* z, float* y, float* sums, std::size_t count)
{
    geluSlope(z, y, sums, count);
}
MEMSCAPE_AVX512 void geluSlope64(const float* z, float* y, float* sums, std::size_t count)
{
    geluSlope(z, y, sums, count);
}
#endif

} // namespace

void geluRow(const float* z, float* x, std::size_t count)
{
#if MEMSCAPE_X86
    if (hasIsa(Isa::Bytes64))
        return gelu64(z, x, count);
    if (hasIsa(Isa::Bytes32))
        return gelu32(z, x, count);
#endif
    gelu(z, x, count);
}

void geluSlopeRow(const float* z, float* y, float* sums, std::size_t count)
{
#if MEMSCAPE_X86
    if (hasIsa(Isa::Bytes64))
        return geluSlope64(z, y, sums, count);
    if (hasIsa(Isa::Bytes32))
        return geluSlope32(z, y, sums, count);
#endif
    geluSlope(z, y, sums, count);
}

double lossRow(const float* x, float* gradient, std::uint64_t first, std::size_t count, double total)
{
    const auto factor = static_cast<float>(2 / total);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const float difference = x[i] - mlpUniform(mlpTargetSeed, first + i);
        sum += double(difference) * double(difference);
        gradient[i] = factor * difference;
    }
    return sum;
}

void uniformRow(float* values, std::uint64_t seed, std::uint64_t first, std::size_t count, float scale)
{
    for (std::size_t i = 0; i < count; ++i)
        values[i] = mlpUniform(seed, first + i) * scale;
}

std::uint64_t digestRow(const float* values, std::uint64_t first, std::size_t count)
{
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count; ++i)
        sum += mlpDigestOf(first + i, std::bit_cast<std::uint32_t>(values[i]));
    return sum;
}

// --- Checks --------------------------------------------------------------------------------------

Check checkGelu()
{
    constexpr std::array<float, 6> extremes{1e-30F, 1e-6F, 20.0F, 100.0F, 1e6F, 3e12F};
    std::vector<float> z(2401 + 2 * extremes.size());
    for (std::size_t i = 0; i < z.size(); ++i)
        z[i] = float(int(i) - 1200) / 100;
    for (std::size_t i = 0; i < extremes.size(); ++i) {
        z[2401 + 2 * i] = extremes[i];
        z[2402 + 2 * i] = -extremes[i];
    }
    std::vector<float> x(z.size()), inPlace = z, slope(z.size(), 1), sums(z.size(), 0.25F);
    geluRow(z.data(), x.data(), z.size());
    geluRow(inPlace.data(), inPlace.data(), z.size());
    geluSlopeRow(z.data(), slope.data(), sums.data(), z.size());
    Check check({2e-7, 2e-6});
    for (std::size_t i = 0; i < z.size(); ++i) {
        check.compare(i, double(x[i]), geluReference(double(z[i])));
        check.compare(i, double(slope[i]), geluSlopeReference(double(z[i])));
        float alone = 0;
        geluRow(&z[i], &alone, 1);
        check.require(i, std::memcmp(&x[i], &inPlace[i], sizeof(float)) == 0, "in place gives other bits");
        check.require(i, std::memcmp(&x[i], &alone, sizeof(float)) == 0, "alone gives other bits");
        check.require(i, sums[i] == 0.25F + slope[i], "the column sum is wrong");
    }
    float nothing = std::numeric_limits<float>::quiet_NaN();
    geluRow(&nothing, &nothing, 1);
    check.require(z.size(), std::isnan(nothing), "a not-a-number became a number");
    return check;
}

} // namespace memscape::host
