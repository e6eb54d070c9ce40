// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/precision/convert.h"

#include "kernels/host/common/simd.h"
#include "kernels/programs/common/half.h"
#include "kernels/programs/common/mlp_numbers.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <vector>

#if MEMSCAPE_X86
#include <immintrin.h>
#endif

namespace memscape::host {

namespace {

// Loops that are the compiler's to widen, each for several instruction sets.
MEMSCAPE_INLINE void brainRow(const float* from, std::uint16_t* to, std::size_t count)
{
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i)
        to[i] = floatToBfloat16(from[i]);
}

MEMSCAPE_INLINE void brainRowUp(const std::uint16_t* from, float* to, std::size_t count)
{
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i)
        to[i] = bfloat16ToFloat(from[i]);
}

void halfRow(const float* from, std::uint16_t* to, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i)
        to[i] = floatToFloat16(from[i]);
}

void halfRowUp(const std::uint16_t* from, float* to, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i)
        to[i] = float16ToFloat(from[i]);
}

#if MEMSCAPE_X86
MEMSCAPE_AVX512 void brainRow64(const float* from, std::uint16_t* to, std::size_t count)
{
    brainRow(from, to, count);
}
MEMSCAPE_AVX2 void brainRow32(const float* from, std::uint16_t* to, std::size_t count)
{
    brainRow(from, to, count);
}
MEMSCAPE_AVX2 void brainRowUp32(const std::uint16_t* from, float* to, std::size_t count)
{
    brainRowUp(from, to, count);
}

__attribute__((target("avx,f16c"))) void halfRow8(const float* from, std::uint16_t* to, std::size_t count)
{
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    halfRow(from + i, to + i, count - i);
}

__attribute__((target("avx,f16c"))) void halfRowUp8(const std::uint16_t* from, float* to, std::size_t count)
{
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
    halfRowUp(from + i, to + i, count - i);
}

const bool hasF16c = __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
#endif

Format formatOf(DType dtype)
{
    return dtype == DType::Float16 ? Format::Fp16 : Format::Bf16;
}

void compare(Check& check, const NumberFormat& format, std::size_t at, std::uint64_t found, std::uint64_t expected)
{
    const bool bothNan = std::isnan(decode(format, found)) && std::isnan(decode(format, expected));
    check.require(at, found == expected || bothNan, "other bits than core/precision");
}

void compareNarrow(Check& check, Format format, const std::vector<float>& floats)
{
    const NumberFormat& numbers = numberFormat(format);
    std::vector<std::uint16_t> found(floats.size() + 1, 0xabcd);
    narrowRow(format, floats.data(), found.data(), floats.size());
    for (std::size_t i = 0; i < floats.size(); ++i)
        compare(check, numbers, i, found[i], encode(numbers, double(floats[i])));
    check.require(floats.size(), found.back() == 0xabcd, "written behind the last number");
}

} // namespace

void narrowRow(Format format, const float* from, std::uint16_t* to, std::size_t count)
{
    assert(format == Format::Fp16 || format == Format::Bf16);
#if MEMSCAPE_X86
    if (format == Format::Fp16 && hasF16c)
        return halfRow8(from, to, count);
    if (format == Format::Bf16 && hasIsa(Isa::Bytes64))
        return brainRow64(from, to, count);
    if (format == Format::Bf16 && hasIsa(Isa::Bytes32))
        return brainRow32(from, to, count);
#endif
    format == Format::Fp16 ? halfRow(from, to, count) : brainRow(from, to, count);
}

void widenRow(Format format, const std::uint16_t* from, float* to, std::size_t count)
{
    assert(format == Format::Fp16 || format == Format::Bf16);
#if MEMSCAPE_X86
    if (format == Format::Fp16 && hasF16c)
        return halfRowUp8(from, to, count);
    if (format == Format::Bf16 && hasIsa(Isa::Bytes32))
        return brainRowUp32(from, to, count);
#endif
    format == Format::Fp16 ? halfRowUp(from, to, count) : brainRowUp(from, to, count);
}

void narrowRow(const float* from, DType dtype, void* to, std::size_t count)
{
    if (dtype == DType::Float32)
        std::memcpy(to, from, count * sizeof(float));
    else
        narrowRow(formatOf(dtype), from, static_cast<std::uint16_t*>(to), count);
}

void widenRow(const void* from, DType dtype, float* to, std::size_t count)
{
    if (dtype == DType::Float32)
        std::memcpy(to, from, count * sizeof(float));
    else
        widenRow(formatOf(dtype), static_cast<const std::uint16_t*>(from), to, count);
}

Check checkConversions(Format format)
{
    Check check;
    const NumberFormat& numbers = numberFormat(format);
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = std::uint16_t(i);
    std::vector<float> values(all.size());
    widenRow(format, all.data(), values.data(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const double expected = decode(numbers, i);
        const bool bothNan = std::isnan(values[i]) && std::isnan(expected);
        check.require(i, bothNan || double(values[i]) == expected, "another value than its bits");
    }
    compareNarrow(check, format, values);
    std::vector<float> floats;
    for (std::uint64_t i = 0; i < 1'000'003; ++i) {
        // Every second ends in zeros: ties.
        const std::uint64_t h = mlpMixed(i);
        const auto bits = std::uint32_t(h) & (h >> 63 ? 0xfffff000u : 0xffffffffu);
        floats.push_back(std::bit_cast<float>(bits));
    }
    compareNarrow(check, format, floats);
    for (const std::size_t count : {1u, 3u, 7u, 17u})
        compareNarrow(check, format, {floats.begin(), floats.begin() + std::ptrdiff_t(count)});
    return check;
}

} // namespace memscape::host
