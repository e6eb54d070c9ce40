// SPDX-License-Identifier: Apache-2.0
// One row three times: the maximum; powers and their sum; the division. A row of 16 thousand floats
// stays in L1 and L2 between the three, so memory sees one read and one write.
#include "kernels/host/attention/softmax.h"

#include "kernels/host/attention/attention_vectors.h"

#include <cmath>

namespace memscape::host {

namespace {

constexpr float log2e = 1.44269504F;

template <typename Simd> MEMSCAPE_INLINE float sumOf(const typename Simd::Floats& vector)
{
    float sum = 0;
    for (std::size_t i = 0; i < tileLanes<Simd>; ++i)
        sum += vector[i];
    return sum;
}

template <typename Simd> MEMSCAPE_INLINE void softmax(float* s, std::size_t count, float scale)
{
    using Floats = typename Simd::Floats;
    constexpr std::size_t lanes = tileLanes<Simd>;
    const std::size_t whole = count / lanes * lanes;
    float most = s[0];
    if (whole > 0) {
        Floats best = vectorAt<Simd>(s);
        for (std::size_t i = lanes; i < whole; i += lanes)
            best = vectorAt<Simd>(s + i) > best ? vectorAt<Simd>(s + i) : best;
        for (std::size_t i = 0; i < lanes; ++i)
            most = std::max(most, best[i]);
    }
    for (std::size_t i = whole; i < count; ++i)
        most = std::max(most, s[i]);
    const float factor = scale * log2e;
    Floats sums{};
    for (std::size_t i = 0; i < whole; i += lanes) {
        vectorAt<Simd>(s + i) = powerOfTwo<Simd>((vectorAt<Simd>(s + i) - most) * factor);
        sums += vectorAt<Simd>(s + i);
    }
    float sum = sumOf<Simd>(sums);
    for (std::size_t i = whole; i < count; ++i) {
        s[i] = std::exp2((s[i] - most) * factor);
        sum += s[i];
    }
    const float share = 1 / sum;
    for (std::size_t i = 0; i < count; ++i)
        s[i] *= share;
}

template <typename Simd> MEMSCAPE_INLINE void slope(const float* p, float* dp, std::size_t count, float scale)
{
    using Floats = typename Simd::Floats;
    constexpr std::size_t lanes = tileLanes<Simd>;
    const std::size_t whole = count / lanes * lanes;
    Floats sums{};
    for (std::size_t i = 0; i < whole; i += lanes)
        sums += vectorAt<Simd>(p + i) * vectorAt<Simd>(dp + i);
    float sum = sumOf<Simd>(sums);
    for (std::size_t i = whole; i < count; ++i)
        sum += p[i] * dp[i];
    for (std::size_t i = 0; i < count; ++i)
        dp[i] = p[i] * (dp[i] - sum) * scale;
}

#if MEMSCAPE_X86
__attribute__((target("avx2,fma"))) void softmax32(float* s, std::size_t count, float scale)
{
    softmax<Simd32>(s, count, scale);
}
__attribute__((target("avx512f,avx512vl,avx512bw"))) void softmax64(float* s, std::size_t count, float scale)
{
    softmax<Simd64>(s, count, scale);
}
__attribute__((target("avx2,fma"))) void slope32(const float* p, float* dp, std::size_t count, float scale)
{
    slope<Simd32>(p, dp, count, scale);
}
__attribute__((target("avx512f,avx512vl,avx512bw"))) void slope64(const float* p, float* dp, std::size_t count,
                                                                  float scale)
{
    slope<Simd64>(p, dp, count, scale);
}
#endif

} // namespace

void softmaxRow(float* s, std::size_t count, float scale)
{
#if MEMSCAPE_X86
    if (hasIsa(Isa::Bytes64))
        return softmax64(s, count, scale);
    if (hasIsa(Isa::Bytes32) && __builtin_cpu_supports("fma"))
        return softmax32(s, count, scale);
#endif
    softmax<Simd16>(s, count, scale);
}

void softmaxSlopeRow(const float* p, float* dp, std::size_t count, float scale)
{
#if MEMSCAPE_X86
    if (hasIsa(Isa::Bytes64))
        return slope64(p, dp, count, scale);
    if (hasIsa(Isa::Bytes32) && __builtin_cpu_supports("fma"))
        return slope32(p, dp, count, scale);
#endif
    slope<Simd16>(p, dp, count, scale);
}

} // namespace memscape::host
