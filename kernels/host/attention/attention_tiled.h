// SPDX-License-Identifier: Apache-2.0
// Flash attention, version 2: tiles in vectors. See attention_tiled.cpp; the two passes are
// templates over the vector width in attention_tiled_forward.h and attention_tiled_backward.h.
#pragma once

#include "kernels/host/attention/attention_vectors.h"
#include "kernels/host/attention/attention_work.h"
#include "kernels/host/precision/convert.h"

#include <cmath>
#include <cstring>

namespace memscape::host {

/// Scores are taken in powers of two: log₂e is multiplied in with 1/√d.
inline constexpr float log2e = 1.44269504F, ln2 = 0.69314718F;
/// Less than any score, so that 2^(it − m) is 0.
inline constexpr float hiddenScore = -1e30F;

/// A tile of queries of one plane, over all keys that they see.
struct ForwardPiece
{
    const AttentionWork& work;
    std::int64_t plane = 0, firstQuery = 0;
    std::size_t queries = 0;
    std::size_t tileQueries = 0, tileKeys = 0;
    float* scratch = nullptr; ///< forwardScratch() floats
};
std::size_t forwardScratch(const AttentionTile& tile, std::size_t headDim);

/// A range of keys of one kv head, tile by tile, over all queries that see them.
struct BackwardPiece
{
    const AttentionWork& work;
    std::int64_t keyPlane = 0, split = 0;
    std::int64_t firstKey = 0, endKey = 0;
    std::size_t tileQueries = 0, tileKeys = 0;
    float* scratch = nullptr;         ///< backwardScratch() floats
    const ThreadTeam* team = nullptr; ///< looked at between tiles: stopping()
};
std::size_t backwardScratch(const AttentionTile& tile, std::size_t headDim);

/// `count` rows of a tensor as floats with zeros up to a multiple of `grain` rows: the memory
/// itself where that will do, else copied or converted into `scratch`.
inline const float* rowsOf(const std::byte* tensor, const AttentionWork& work, std::int64_t row, std::size_t count,
                           std::size_t grain, float* scratch)
{
    const std::byte* from = tensor + work.rowOffset(row);
    if (work.dtype == DType::Float32 && count % grain == 0)
        return reinterpret_cast<const float*>(from);
    const auto d = std::size_t(work.shape.headDim);
    widenRow(from, work.dtype, scratch, count * d);
    std::fill(scratch + count * d, scratch + roundedUp(count, grain) * d, 0.0F);
    return scratch;
}

} // namespace memscape::host
