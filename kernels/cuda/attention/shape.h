// SPDX-License-Identifier: Apache-2.0
// What a call of attention works on, and the blocks and tiles that the kernels cut it into.
//
//   O = softmax(Q Kᵀ / √d) V      layouts, masks and groups as core/timing/attention_problem.h says
//
// Which keys a row sees is said once, in kernels/programs/attention/attention_numbers.h. Functions are compiled
// for the GPU and for the host, where the tests run them over every block. C++17, no library of ours:
// nvcc reads this file.
#pragma once

#include "kernels/programs/attention/attention_numbers.h"

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define MEMSCAPE_BOTH __host__ __device__ constexpr
#define MEMSCAPE_KERNEL __device__ __forceinline__
#else
#define MEMSCAPE_BOTH constexpr
#define MEMSCAPE_KERNEL inline
#endif
// Loops over registers must disappear: an index that is not known makes an array of memory.
#ifdef __CUDACC__
#define MEMSCAPE_UNROLL _Pragma("unroll")
#define MEMSCAPE_NO_UNROLL _Pragma("unroll 1")
#else
#define MEMSCAPE_UNROLL
#define MEMSCAPE_NO_UNROLL
#endif

namespace memscape::cuda {

/// Element formats of attention and of products, as the 16 or 32 bits that lie in memory.
struct Half
{
    std::uint16_t bits;
};
struct Bfloat
{
    std::uint16_t bits;
};

struct AttentionSizes
{
    int batch = 1;
    int heads = 1;
    int kvHeads = 1;
    int queries = 1;
    int keys = 1; ///< at least the queries when causal
    int headDim = 64;
    bool causal = false;
    float scale = 1; ///< of the scores, 1/√d
};

/// Null where a launch does not use it.
struct AttentionArrays
{
    const void* query = nullptr;
    const void* key = nullptr;
    const void* value = nullptr;
    void* output = nullptr;
    float* logSumExp = nullptr;
    const void* outputGradient = nullptr;
    float* delta = nullptr; ///< Σ over d of output × its gradient, like logSumExp
    void* queryGradient = nullptr;
    float* queryGradientSums = nullptr; ///< its elements in floats, in an order of their own
    void* keyGradient = nullptr;
    void* valueGradient = nullptr;
};

MEMSCAPE_BOTH int over(int count, int size)
{
    return (count + size - 1) / size;
}

/// First element of plane `plane` (batch and head counted through) of Q, and of K.
MEMSCAPE_BOTH std::uint64_t queryStart(const AttentionSizes& s, int plane)
{
    return std::uint64_t(plane) * std::uint64_t(s.queries) * std::uint64_t(s.headDim);
}
MEMSCAPE_BOTH std::uint64_t keyStart(const AttentionSizes& s, int plane)
{
    return std::uint64_t(plane) * std::uint64_t(s.keys) * std::uint64_t(s.headDim);
}

/// The plane of K and V that plane `plane` of Q reads.
MEMSCAPE_BOTH int keyPlane(const AttentionSizes& s, int plane)
{
    return int(attentionKeyPlane(plane, s.heads, s.kvHeads));
}
/// The first of the heads / kvHeads planes of Q that read a plane of K; the others follow.
MEMSCAPE_BOTH int firstQueryPlane(const AttentionSizes& s, int plane)
{
    return plane / s.kvHeads * s.heads + plane % s.kvHeads * (s.heads / s.kvHeads);
}

/// Tiles of `keys` keys that the rows firstRow … firstRow + rows - 1 have to visit: those up to the
/// last key that the last row sees.
MEMSCAPE_BOTH int keyTiles(const AttentionSizes& s, int firstRow, int rows, int keys)
{
    const int last = firstRow + rows < s.queries ? firstRow + rows - 1 : s.queries - 1;
    return over(int(attentionVisibleKeys(last, s.queries, s.keys, s.causal)), keys);
}

/// The first tile of `rows` rows of Q that sees any key from firstKey on.
MEMSCAPE_BOTH int firstRowTile(const AttentionSizes& s, int firstKey, int rows)
{
    return int(attentionFirstQuery(firstKey, s.queries, s.keys, s.causal)) / rows;
}

/// Whether row `row` sees key `key`. Rows beyond the last may be asked for: they are not written.
MEMSCAPE_BOTH bool sees(const AttentionSizes& s, int row, int key)
{
    return key < s.keys && (!s.causal || key <= row + (s.keys - s.queries));
}

/// Whether every row from firstRow on sees all of a tile of keys: then nothing has to be masked.
MEMSCAPE_BOTH bool seesAll(const AttentionSizes& s, int firstRow, int firstKey, int keys)
{
    return firstKey + keys <= s.keys && sees(s, firstRow, firstKey + keys - 1);
}

} // namespace memscape::cuda
