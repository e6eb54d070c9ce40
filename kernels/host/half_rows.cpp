// SPDX-License-Identifier: Apache-2.0
// float16 with the processor's own conversions where it has them (F16C, as every CPU with AVX2);
// bfloat16 with shifts and an addition, which a compiler turns into vectors. Elsewhere one number
// at a time.
#include "kernels/host/half_rows.h"

#include "kernels/host/wide.h"
#include "kernels/measure/half.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#if MEMSCAPE_X86
#include <immintrin.h>
#endif

namespace memscape::host {

namespace {

void widenFloat16(const std::uint16_t* from, float* to, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i)
        to[i] = float16ToFloat(from[i]);
}

void narrowFloat16(const float* from, std::uint16_t* to, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i)
        to[i] = floatToFloat16(from[i]);
}

MEMSCAPE_INLINE void widenBfloat16(const std::uint16_t* from, float* to, std::size_t count)
{
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i)
        to[i] = std::bit_cast<float>(std::uint32_t(from[i]) << 16);
}

MEMSCAPE_INLINE void narrowBfloat16(const float* from, std::uint16_t* to, std::size_t count)
{
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
        const auto bits = std::bit_cast<std::uint32_t>(from[i]);
        const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
        const bool isNumber = (bits & 0x7fffffffu) <= 0x7f800000u;
        to[i] = std::uint16_t(isNumber ? rounded : (bits >> 16 | 0x40));
    }
}

#if MEMSCAPE_X86
__attribute__((target("avx2,f16c"))) void widenFloat16By8(const std::uint16_t* from, float* to,
                                                          std::size_t count)
{
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(
            to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
    widenFloat16(from + i, to + i, count - i);
}

__attribute__((target("avx2,f16c"))) void narrowFloat16By8(const float* from, std::uint16_t* to,
                                                           std::size_t count)
{
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    narrowFloat16(from + i, to + i, count - i);
}

MEMSCAPE_AVX2 void widenBfloat16By8(const std::uint16_t* from, float* to, std::size_t count)
{
    widenBfloat16(from, to, count);
}
MEMSCAPE_AVX2 void narrowBfloat16By8(const float* from, std::uint16_t* to, std::size_t count)
{
    narrowBfloat16(from, to, count);
}

bool convertsHalves()
{
    return hasIsa(Isa::Bytes32) && __builtin_cpu_supports("f16c");
}
#endif

} // namespace

void widenRow(const void* from, DType dtype, float* to, std::size_t count)
{
    if (dtype == DType::Float32) {
        std::memcpy(to, from, count * sizeof(float));
        return;
    }
    const auto* halves = static_cast<const std::uint16_t*>(from);
#if MEMSCAPE_X86
    if (convertsHalves())
        return dtype == DType::Float16 ? widenFloat16By8(halves, to, count)
                                       : widenBfloat16By8(halves, to, count);
#endif
    dtype == DType::Float16 ? widenFloat16(halves, to, count) : widenBfloat16(halves, to, count);
}

void narrowRow(const float* from, DType dtype, void* to, std::size_t count)
{
    if (dtype == DType::Float32) {
        std::memcpy(to, from, count * sizeof(float));
        return;
    }
    auto* halves = static_cast<std::uint16_t*>(to);
#if MEMSCAPE_X86
    if (convertsHalves())
        return dtype == DType::Float16 ? narrowFloat16By8(from, halves, count)
                                       : narrowBfloat16By8(from, halves, count);
#endif
    dtype == DType::Float16 ? narrowFloat16(from, halves, count)
                            : narrowBfloat16(from, halves, count);
}

// --- Checks --------------------------------------------------------------------------------------

Check checkHalfRows(DType dtype)
{
    const bool isFloat16 = dtype == DType::Float16;
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = std::uint16_t(i);
    std::vector<float> wide(all.size());
    widenRow(all.data(), dtype, wide.data(), all.size());
    Check check;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const float expected = isFloat16 ? float16ToFloat(all[i]) : bfloat16ToFloat(all[i]);
        check.require(i,
                      std::isnan(expected) ? std::isnan(wide[i])
                                           : std::memcmp(&wide[i], &expected, sizeof expected) == 0,
                      "widened to other bits");
    }
    std::mt19937 random(3);
    std::vector<float> values(100'003);
    for (std::size_t i = 0; i < values.size(); ++i) {
        auto bits = std::uint32_t(random());
        if (i % 3 == 0) // a half, or just between two
            bits &= isFloat16 ? 0xfffff000u : 0xffff8000u;
        values[i] = std::bit_cast<float>(bits);
    }
    std::vector<std::uint16_t> narrow(values.size());
    narrowRow(values.data(), dtype, narrow.data(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint16_t expected =
            isFloat16 ? floatToFloat16(values[i]) : floatToBfloat16(values[i]);
        const float back = isFloat16 ? float16ToFloat(narrow[i]) : bfloat16ToFloat(narrow[i]);
        check.require(65536 + i, std::isnan(values[i]) ? std::isnan(back) : narrow[i] == expected,
                      "rounded to other bits");
    }
    return check;
}

} // namespace memscape::host
