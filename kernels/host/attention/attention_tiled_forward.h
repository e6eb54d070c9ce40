// SPDX-License-Identifier: Apache-2.0
// The forward of tiled attention. Queries lie along the vectors: with Qᵀ packed once per tile, a
// row of Sᵀ = K Qᵀ is one key against 2 vectors of queries, so the running maximum and sum of all
// of them are element by element, without a shuffle, and Oᵀ += Vᵀ Pᵀ reads V as it lies in memory.
// One panel = two vectors of queries; a panel's Qᵀ, Oᵀ and its piece of Sᵀ stay in L1 and L2.
#pragma once

#include "kernels/host/attention/attention_tiled.h"

namespace memscape::host {

template <typename Simd> struct ForwardTiles
{
    static constexpr std::size_t width = panelWidth<Simd>, lanes = tileLanes<Simd>;
    float *q, *o, *maximum, *sum, *s, *k, *v;

    explicit ForwardTiles(const ForwardPiece& piece)
    {
        const auto d = std::size_t(piece.work.shape.headDim);
        q = piece.scratch;
        o = q + piece.tileQueries * d;
        maximum = o + piece.tileQueries * d;
        sum = maximum + piece.tileQueries;
        s = sum + piece.tileQueries;
        k = s + piece.tileKeys * width;
        v = k + piece.tileKeys * d;
    }
};

/// Qᵀ, panel by panel, with 1/√d and log₂e; zeros behind the last query.
template <typename Simd> MEMSCAPE_INLINE void packQueries(const ForwardPiece& piece, const ForwardTiles<Simd>& tiles)
{
    constexpr std::size_t width = panelWidth<Simd>;
    const auto d = std::size_t(piece.work.shape.headDim);
    const float scale = log2e / std::sqrt(float(d));
    const std::size_t padded = roundedUp(piece.queries, width);
    const std::int64_t first = piece.plane * piece.work.shape.queries + piece.firstQuery;
    for (std::size_t i = 0; i < padded; ++i) {
        float* const to = tiles.q + i / width * width * d + i % width;
        float* const line = tiles.s; // not in use yet; at least d floats: tileKeys · width
        if (i < piece.queries)
            widenRow(piece.work.q + piece.work.rowOffset(first + std::int64_t(i)), piece.work.dtype, line, d);
        for (std::size_t j = 0; j < d; ++j)
            to[j * width] = i < piece.queries ? line[j] * scale : 0.0F;
    }
    std::fill(tiles.o, tiles.o + padded * d, 0.0F);
    std::fill(tiles.maximum, tiles.maximum + padded, hiddenScore);
    std::fill(tiles.sum, tiles.sum + padded, 0.0F);
}

/// Sᵀ of one panel and `count` keys, what a causal mask hides set to hiddenScore.
template <typename Simd>
MEMSCAPE_INLINE void scorePanel(const ForwardPiece& piece, const ForwardTiles<Simd>& tiles, const float* keys,
                                std::size_t panel, std::int64_t firstKey, std::size_t count)
{
    using Floats = typename Simd::Floats;
    constexpr std::size_t width = panelWidth<Simd>, lanes = tileLanes<Simd>;
    constexpr std::size_t rows = tileRows<Simd>;
    const auto d = std::size_t(piece.work.shape.headDim);
    for (std::size_t key = 0; key < count; key += rows) {
        Floats sums[rows][2];
        multiplyTile<Simd, false>(keys + key * d, d, tiles.q + panel * width * d, width, d, sums);
        for (std::size_t i = 0; i < rows; ++i) {
            vectorAt<Simd>(tiles.s + (key + i) * width) = sums[i][0];
            vectorAt<Simd>(tiles.s + (key + i) * width + lanes) = sums[i][1];
        }
    }
    const std::int64_t firstQuery = piece.firstQuery + std::int64_t(panel * width);
    if (firstKey + std::int64_t(count) <= piece.work.visible(firstQuery))
        return;
    const auto numbers = laneNumbers<Simd>();
    for (std::size_t key = 0; key < count; ++key) {
        // Lanes before this one do not see the key.
        const std::int64_t first = piece.work.firstQuery(firstKey + std::int64_t(key)) - firstQuery;
        const auto limit = std::int32_t(std::clamp<std::int64_t>(first, 0, width));
        for (std::size_t half = 0; half < 2; ++half) {
            Floats& s = vectorAt<Simd>(tiles.s + key * width + half * lanes);
            s = numbers + std::int32_t(half * lanes) < limit ? Floats{} + hiddenScore : s;
        }
    }
}

/// Raises the maximum of half a panel, turns its scores into P and adds up; what O is multiplied
/// by.
template <typename Simd>
MEMSCAPE_INLINE typename Simd::Floats softmaxHalf(const ForwardTiles<Simd>& tiles, std::size_t panel, std::size_t half,
                                                  std::size_t count)
{
    using Floats = typename Simd::Floats;
    constexpr std::size_t width = panelWidth<Simd>, lanes = tileLanes<Simd>;
    const std::size_t place = panel * width + half * lanes;
    const Floats before = vectorAt<Simd>(tiles.maximum + place);
    float* const s = tiles.s + half * lanes;
    Floats maximum = before;
    for (std::size_t key = 0; key < count; ++key) {
        const Floats score = vectorAt<Simd>(s + key * width);
        maximum = score > maximum ? score : maximum;
    }
    Floats sum{};
    for (std::size_t key = 0; key < count; ++key) {
        Floats& score = vectorAt<Simd>(s + key * width);
        score = powerOfTwo<Simd>(score - maximum);
        sum += score;
    }
    const Floats factor = powerOfTwo<Simd>(before - maximum);
    vectorAt<Simd>(tiles.maximum + place) = maximum;
    vectorAt<Simd>(tiles.sum + place) = vectorAt<Simd>(tiles.sum + place) * factor + sum;
    return factor;
}

/// Oᵀ = Oᵀ · factor + Vᵀ Pᵀ of one panel.
template <typename Simd>
MEMSCAPE_INLINE void addValues(const ForwardPiece& piece, const ForwardTiles<Simd>& tiles, const float* values,
                               std::size_t panel, std::size_t count, const typename Simd::Floats (&factor)[2])
{
    using Floats = typename Simd::Floats;
    constexpr std::size_t width = panelWidth<Simd>, lanes = tileLanes<Simd>;
    constexpr std::size_t rows = tileRows<Simd>;
    const auto d = std::size_t(piece.work.shape.headDim);
    for (std::size_t j = 0; j < d; j += rows) {
        Floats sums[rows][2];
        multiplyTile<Simd, true>(values + j, d, tiles.s, width, count, sums);
        float* to = tiles.o + panel * width * d + j * width;
        for (std::size_t i = 0; i < rows; ++i, to += width) {
            vectorAt<Simd>(to) = vectorAt<Simd>(to) * factor[0] + sums[i][0];
            vectorAt<Simd>(to + lanes) = vectorAt<Simd>(to + lanes) * factor[1] + sums[i][1];
        }
    }
}

/// O and L of the piece's queries.
template <typename Simd> MEMSCAPE_INLINE void writeOutput(const ForwardPiece& piece, const ForwardTiles<Simd>& tiles)
{
    constexpr std::size_t width = panelWidth<Simd>;
    const auto d = std::size_t(piece.work.shape.headDim);
    const std::int64_t first = piece.plane * piece.work.shape.queries + piece.firstQuery;
    for (std::size_t i = 0; i < piece.queries; ++i) {
        const float* from = tiles.o + i / width * width * d + i % width;
        const float share = 1 / tiles.sum[i];
        float* const line = tiles.s;
        for (std::size_t j = 0; j < d; ++j)
            line[j] = from[j * width] * share;
        const std::int64_t row = first + std::int64_t(i);
        narrowRow(line, piece.work.dtype, piece.work.output + piece.work.rowOffset(row), d);
        piece.work.logSumExp[row] = tiles.maximum[i] * ln2 + std::log(tiles.sum[i]);
    }
}

template <typename Simd> MEMSCAPE_INLINE void forwardTile(const ForwardPiece& piece)
{
    const AttentionWork& work = piece.work;
    const AttentionShape& shape = work.shape;
    const ForwardTiles<Simd> tiles(piece);
    packQueries<Simd>(piece, tiles);
    const std::size_t panels = roundedUp(piece.queries, panelWidth<Simd>) / panelWidth<Simd>;
    const std::int64_t firstKeyRow = attentionKeyPlane(piece.plane, shape.heads, shape.kvHeads) * shape.keys;
    const std::int64_t end = work.visible(piece.firstQuery + std::int64_t(piece.queries) - 1);
    for (std::int64_t key = 0; key < end; key += std::int64_t(piece.tileKeys)) {
        const auto count = std::size_t(std::min(std::int64_t(piece.tileKeys), shape.keys - key));
        const float* keys = rowsOf(work.k, work, firstKeyRow + key, count, tileRows<Simd>, tiles.k);
        const float* values = rowsOf(work.v, work, firstKeyRow + key, count, 1, tiles.v);
        for (std::size_t panel = 0; panel < panels; ++panel) {
            const std::int64_t last = std::min(piece.firstQuery + std::int64_t((panel + 1) * panelWidth<Simd>),
                                               piece.firstQuery + std::int64_t(piece.queries))
                - 1;
            if (key >= work.visible(last))
                continue; // hidden from the whole panel
            scorePanel<Simd>(piece, tiles, keys, panel, key, count);
            const typename Simd::Floats factor[2] = {softmaxHalf<Simd>(tiles, panel, 0, count),
                                                     softmaxHalf<Simd>(tiles, panel, 1, count)};
            addValues<Simd>(piece, tiles, values, panel, count, factor);
        }
    }
    writeOutput<Simd>(piece, tiles);
}

} // namespace memscape::host
