// SPDX-License-Identifier: Apache-2.0
// The inner loop of the persistent recursion: for four segments that begin side by side times some
// that end side by side, the least over j of two rows of costs added, in vectors as wide as the
// machine's.
//
// Everything is inlined into callers that are compiled for one instruction set
// (persistent_fill.cpp), so nothing here may be emitted for a wider one on its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace memscape::persistent {

/// Sums of two stay representable, and what is infeasible stays far above what is not.
template <typename Cost> inline constexpr Cost infeasible = std::numeric_limits<Cost>::infinity();
template <> inline constexpr std::int32_t infeasible<std::int32_t> = (1 << 30) - 1;
/// Everything feasible is below.
template <typename Cost> inline constexpr Cost costLimit = std::numeric_limits<Cost>::max();
template <> inline constexpr std::int32_t costLimit<std::int32_t> = 1 << 29;

/// Slots of memory that are solved together: one cache line of whole-number costs.
inline constexpr int laneCount = 16;
/// Segments in a tile, each way.
inline constexpr int tileSize = 4;

template <typename Cost, int Width> struct Vector
{
    typedef Cost Type __attribute__((vector_size(Width * sizeof(Cost)), may_alias));
};

template <typename Cost, int Width> struct Unaligned
{
    typedef Cost Type __attribute__((vector_size(Width * sizeof(Cost)), aligned(sizeof(Cost)), may_alias));
    Type vector;
};

/// least[r][c][·] = min(least[r][c][·], left[r][(j−1)·laneCount + ·] + below[c][j·laneCount + ·])
/// over begin ≤ j < end, for four r and `Columns` c.
template <typename Cost, int Width, int Columns>
[[gnu::always_inline]] inline void combine(Cost* least, Cost* const* left, Cost* const* below, int begin, int end)
{
    using V = typename Vector<Cost, Width>::Type;
    for (int part = 0; part < laneCount; part += Width) {
        V sums[tileSize][Columns];
#pragma GCC unroll 4
        for (int r = 0; r < tileSize; ++r) {
#pragma GCC unroll 4
            for (int c = 0; c < Columns; ++c)
                sums[r][c] = *reinterpret_cast<const V*>(least + (r * tileSize + c) * laneCount + part);
        }
        const Cost* const l0 = left[0] + part - laneCount;
        const Cost* const l1 = left[1] + part - laneCount;
        const Cost* const l2 = left[2] + part - laneCount;
        const Cost* const l3 = left[3] + part - laneCount;
        for (std::ptrdiff_t at = std::ptrdiff_t(begin) * laneCount; at < std::ptrdiff_t(end) * laneCount;
             at += laneCount) {
            const V rows[tileSize] = {*reinterpret_cast<const V*>(l0 + at), *reinterpret_cast<const V*>(l1 + at),
                                      *reinterpret_cast<const V*>(l2 + at), *reinterpret_cast<const V*>(l3 + at)};
#pragma GCC unroll 4
            for (int c = 0; c < Columns; ++c) {
                const V column = *reinterpret_cast<const V*>(below[c] + at + part);
#pragma GCC unroll 4
                for (int r = 0; r < tileSize; ++r) {
                    const V sum = rows[r] + column;
                    sums[r][c] = sum < sums[r][c] ? sum : sums[r][c];
                }
            }
        }
#pragma GCC unroll 4
        for (int r = 0; r < tileSize; ++r) {
#pragma GCC unroll 4
            for (int c = 0; c < Columns; ++c)
                *reinterpret_cast<V*>(least + (r * tileSize + c) * laneCount + part) = sums[r][c];
        }
    }
}

/// The same for one segment.
template <typename Cost, int Width>
[[gnu::always_inline]] inline void combineOne(Cost* least, const Cost* left, const Cost* below, int begin, int end)
{
    using V = typename Vector<Cost, Width>::Type;
    for (int part = 0; part < laneCount; part += Width) {
        V sums = *reinterpret_cast<const V*>(least + part);
        for (std::ptrdiff_t j = begin; j < end; ++j) {
            const V sum = *reinterpret_cast<const V*>(left + (j - 1) * laneCount + part)
                + *reinterpret_cast<const V*>(below + j * laneCount + part);
            sums = sum < sums ? sum : sums;
        }
        *reinterpret_cast<V*>(least + part) = sums;
    }
}

/// to[·] = from[·] + by, and infeasible where from[·] is.
template <typename Cost, int Width> [[gnu::always_inline]] inline void shift(Cost* to, const Cost* from, Cost by)
{
    using V = typename Vector<Cost, Width>::Type;
    for (int part = 0; part < laneCount; part += Width) {
        const V value = reinterpret_cast<const Unaligned<Cost, Width>*>(from + part)->vector;
        const V sum = value < costLimit<Cost> ? value + by : infeasible<Cost> + V{};
        reinterpret_cast<Unaligned<Cost, Width>*>(to + part)->vector = sum;
    }
}

template <typename Cost, int Width> [[gnu::always_inline]] inline void copy(Cost* to, const Cost* from)
{
    for (int part = 0; part < laneCount; part += Width)
        reinterpret_cast<Unaligned<Cost, Width>*>(to + part)->vector =
            reinterpret_cast<const Unaligned<Cost, Width>*>(from + part)->vector;
}

/// least[·] = min(least[·], from[·] + by)
template <typename Cost, int Width> [[gnu::always_inline]] inline void leastOf(Cost* least, const Cost* from, Cost by)
{
    using V = typename Vector<Cost, Width>::Type;
    for (int part = 0; part < laneCount; part += Width) {
        const V sum = reinterpret_cast<const Unaligned<Cost, Width>*>(from + part)->vector + by;
        V& to = *reinterpret_cast<V*>(least + part);
        to = sum < to ? sum : to;
    }
}

/// The lanes of a segment's block and of the block before, and whose they are. Reading a row that
/// was written a moment ago, shifted by some lanes, waits until the caches have it; whole vectors
/// of these don't.
template <typename Cost> struct Recent
{
    alignas(64) Cost lanes[3 * laneCount] = {}; ///< before, now, and room to read past the end
    int row = -1;
};

/// The lanes of m − back in `to`, 0 ≤ back ≤ laneCount.
template <typename Cost, int Width> [[gnu::always_inline]] inline void readBack(Cost* to, const Cost* recent, int back)
{
#if defined(__clang__) // its shuffles need constants
    __builtin_memcpy(to, recent + laneCount - back, laneCount * sizeof(Cost));
#else
    using V = typename Vector<Cost, Width>::Type;
    using Index = std::conditional_t<sizeof(Cost) == 4, std::int32_t, std::int64_t>;
    using Indices = typename Vector<Index, Width>::Type;
    Indices indices;
    for (int lane = 0; lane < Width; ++lane)
        indices[lane] = lane + (laneCount - back) % Width;
    for (int part = 0; part < laneCount; part += Width) {
        const V* from = reinterpret_cast<const V*>(recent + (laneCount - back) / Width * Width + part);
        *reinterpret_cast<V*>(to + part) = __builtin_shuffle(from[0], from[1], indices);
    }
#endif
}

} // namespace memscape::persistent
