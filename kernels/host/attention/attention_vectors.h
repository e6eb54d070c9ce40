// SPDX-License-Identifier: Apache-2.0
// The two inner loops of tiled attention, over a vector width: a small product that stays in
// registers, and 2^x. Everything is inlined into the function that carries the instruction set.
#pragma once

#include "kernels/host/common/simd.h"

#include <algorithm>

namespace memscape::host {

/// Rows of a register tile; it is two vectors wide. 16 sums of 32 registers with AVX-512, 8 of 16.
template <typename Simd> constexpr std::size_t tileRows = sizeof(typename Simd::Floats) == 64 ? 8 : 4;
template <typename Simd> constexpr std::size_t tileLanes = sizeof(typename Simd::Floats) / sizeof(float);
template <typename Simd> constexpr std::size_t panelWidth = 2 * tileLanes<Simd>;

/// sums = A · B for tileRows rows and two vectors of columns. Element (i, k) of A is a[i · aStride
/// + k], or a[k · aStride + i] when it lies term by term; row k of B is at b + k · bStride.
template <typename Simd, bool termMajor>
MEMSCAPE_INLINE void multiplyTile(const float* a, std::size_t aStride, const float* b, std::size_t bStride,
                                  std::size_t terms, typename Simd::Floats (&sums)[tileRows<Simd>][2])
{
    using Floats = typename Simd::Floats;
    constexpr std::size_t rows = tileRows<Simd>;
    Floats here[rows][2] = {};
    for (std::size_t k = 0; k < terms; ++k, b += bStride) {
        const Floats left = *reinterpret_cast<const Floats*>(b);
        const Floats right = *reinterpret_cast<const Floats*>(b + tileLanes<Simd>);
        const float* const column = termMajor ? a + k * aStride : a + k;
#pragma GCC unroll 8
        for (std::size_t i = 0; i < rows; ++i) {
            const float x = termMajor ? column[i] : column[i * aStride];
            here[i][0] += x * left;
            here[i][1] += x * right;
        }
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < rows; ++i) {
        sums[i][0] = here[i][0];
        sums[i][1] = here[i][1];
    }
}

/// 2^x for x up to 127; below −126.5 exactly 0, so that what is masked with a very negative score
/// vanishes. x = n + r with |r| ≤ ½ and the series of 2^r to r⁶, relative error below 2·10⁻⁷.
template <typename Simd> MEMSCAPE_INLINE typename Simd::Floats powerOfTwo(typename Simd::Floats x)
{
    using Floats = typename Simd::Floats;
    using Ints = typename Simd::Ints;
    constexpr float rounder = 12582912.0F; // 1.5 · 2^23
    x = x < -127.0F ? Floats{} - 127.0F : x;
    const Floats shifted = x + rounder;
    const Floats r = x - (shifted - rounder);
    Floats p = Floats{} + 1.5403530e-4F; // ln 2 to the k over k!
    p = p * r + 1.3333558e-3F;
    p = p * r + 9.6181291e-3F;
    p = p * r + 5.5504109e-2F;
    p = p * r + 2.4022651e-1F;
    p = p * r + 6.9314718e-1F;
    p = p * r + 1.0F;
    const Ints power = (reinterpret_cast<const Ints&>(shifted) - 0x4b400000 + 127) << 23;
    return p * reinterpret_cast<const Floats&>(power);
}

/// 0, 1, 2, … along a vector.
template <typename Simd> MEMSCAPE_INLINE typename Simd::Ints laneNumbers()
{
    typename Simd::Ints lanes{};
    for (std::size_t i = 0; i < tileLanes<Simd>; ++i)
        lanes[i] = static_cast<std::int32_t>(i);
    return lanes;
}

template <typename Simd> MEMSCAPE_INLINE typename Simd::Floats& vectorAt(float* place)
{
    return *reinterpret_cast<typename Simd::Floats*>(place);
}
template <typename Simd> MEMSCAPE_INLINE const typename Simd::Floats& vectorAt(const float* place)
{
    return *reinterpret_cast<const typename Simd::Floats*>(place);
}

constexpr std::size_t roundedUp(std::size_t count, std::size_t grain)
{
    return (count + grain - 1) / grain * grain;
}

} // namespace memscape::host
