// SPDX-License-Identifier: Apache-2.0
// The backward of tiled attention. Keys lie along the vectors: Kᵀ and Vᵀ of a tile of keys are
// packed once and meet all queries; of a query only two numbers are needed, L and D, and P is made
// again.
//     S = Q Kᵀ, dP = dO Vᵀ   →   P = 2^(S − L), dS = P ∘ (dP − D) / √d
//     dV += Pᵀ dO,  dK += dSᵀ Q   in floats that stay with the tile;   dQ += dS K   in memory
#pragma once

#include "kernels/host/attention/attention_tiled.h"

namespace memscape::host {

struct BackwardTiles
{
    float *kt, *vt, *k, *dk, *dv, *p, *ds, *q, *g;

    explicit BackwardTiles(const BackwardPiece& piece)
    {
        const auto d = std::size_t(piece.work.shape.headDim);
        const std::size_t keys = piece.tileKeys * d, queries = piece.tileQueries * d;
        kt = piece.scratch;
        vt = kt + keys;
        k = vt + keys;
        dk = k + keys;
        dv = dk + keys;
        q = dv + keys;
        g = q + queries;
        p = g + queries;
        ds = p + piece.tileQueries * piece.tileKeys;
    }
};

/// A tile of queries of one plane, as floats.
struct QueryTile
{
    std::int64_t row = 0;   ///< of Q, L, D
    std::int64_t query = 0; ///< in its sequence
    std::size_t count = 0;
    const float* q = nullptr;
    const float* g = nullptr;
};

/// Rows of d floats turned into panels of keys, times `scale`; zeros behind the last key.
template <typename Simd>
MEMSCAPE_INLINE void packKeys(const float* rows, std::size_t count, std::size_t tileKeys, std::size_t d, float scale,
                              float* to)
{
    constexpr std::size_t width = panelWidth<Simd>;
    for (std::size_t i = 0; i < tileKeys; ++i) {
        float* const place = to + i / width * width * d + i % width;
        for (std::size_t j = 0; j < d; ++j)
            place[j * width] = i < count ? rows[i * d + j] * scale : 0.0F;
    }
}

/// P and dS of tileRows queries against one panel of keys.
template <typename Simd>
MEMSCAPE_INLINE void scoreTile(const BackwardPiece& piece, const BackwardTiles& tiles, const QueryTile& queries,
                               std::size_t first, std::size_t panel, std::int64_t firstKey, std::size_t count)
{
    using Floats = typename Simd::Floats;
    constexpr std::size_t width = panelWidth<Simd>, lanes = tileLanes<Simd>;
    constexpr std::size_t rows = tileRows<Simd>;
    const AttentionWork& work = piece.work;
    const auto d = std::size_t(work.shape.headDim);
    Floats s[rows][2], dp[rows][2];
    multiplyTile<Simd, false>(queries.q + first * d, d, tiles.kt + panel * width * d, width, d, s);
    multiplyTile<Simd, false>(queries.g + first * d, d, tiles.vt + panel * width * d, width, d, dp);
    const float scale = 1 / std::sqrt(float(d));
    const auto numbers = laneNumbers<Simd>();
    for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t at = first + i;
        const bool isQuery = at < queries.count;
        const std::int64_t row = queries.row + std::int64_t(at);
        const float log = isQuery ? work.logSumExp[row] * log2e : -hiddenScore;
        const float sum = isQuery ? work.rowSums[row] : 0.0F;
        const std::int64_t seen = isQuery ? work.visible(queries.query + std::int64_t(at)) : 0;
        const auto limit = std::int32_t(std::clamp<std::int64_t>(
            std::min<std::int64_t>(seen - firstKey, std::int64_t(count)) - std::int64_t(panel * width), 0, width));
        for (std::size_t half = 0; half < 2; ++half) {
            Floats p = powerOfTwo<Simd>(s[i][half] - log);
            p = numbers + std::int32_t(half * lanes) < limit ? p : Floats{};
            const std::size_t place = at * piece.tileKeys + panel * width + half * lanes;
            vectorAt<Simd>(tiles.p + place) = p;
            vectorAt<Simd>(tiles.ds + place) = p * (dp[i][half] - sum) * scale;
        }
    }
}

/// to (tileKeys × d) += Aᵀ B with A = P or dS (queries × tileKeys), B = dO or Q (queries × d).
template <typename Simd>
MEMSCAPE_INLINE void addToKeys(const BackwardPiece& piece, const float* a, const float* b, std::size_t queries,
                               std::size_t keys, float* to)
{
    using Floats = typename Simd::Floats;
    constexpr std::size_t width = panelWidth<Simd>, lanes = tileLanes<Simd>;
    constexpr std::size_t rows = tileRows<Simd>;
    const auto d = std::size_t(piece.work.shape.headDim);
    for (std::size_t j = 0; j < d; j += width) {
        for (std::size_t key = 0; key < keys; key += rows) {
            Floats sums[rows][2];
            multiplyTile<Simd, true>(a + key, piece.tileKeys, b + j, d, queries, sums);
            for (std::size_t i = 0; i < rows; ++i) {
                vectorAt<Simd>(to + (key + i) * d + j) += sums[i][0];
                vectorAt<Simd>(to + (key + i) * d + j + lanes) += sums[i][1];
            }
        }
    }
}

/// dQ += dS K of a tile of queries.
template <typename Simd>
MEMSCAPE_INLINE void addToQueries(const BackwardPiece& piece, const BackwardTiles& tiles, const QueryTile& queries,
                                  const float* keys, std::size_t count, float* to)
{
    using Floats = typename Simd::Floats;
    constexpr std::size_t width = panelWidth<Simd>, lanes = tileLanes<Simd>;
    constexpr std::size_t rows = tileRows<Simd>;
    const auto d = std::size_t(piece.work.shape.headDim);
    for (std::size_t first = 0; first < queries.count; first += rows) {
        const std::size_t kept = std::min(rows, queries.count - first);
        for (std::size_t j = 0; j < d; j += width) {
            Floats sums[rows][2];
            multiplyTile<Simd, false>(tiles.ds + first * piece.tileKeys, piece.tileKeys, keys + j, d, count, sums);
            for (std::size_t i = 0; i < kept; ++i) {
                vectorAt<Simd>(to + (first + i) * d + j) += sums[i][0];
                vectorAt<Simd>(to + (first + i) * d + j + lanes) += sums[i][1];
            }
        }
    }
}

/// One tile of keys against every query of its group that sees it.
template <typename Simd>
MEMSCAPE_INLINE void backwardTile(const BackwardPiece& piece, const BackwardTiles& tiles, std::int64_t firstKey,
                                  std::size_t count, float* dq)
{
    constexpr std::size_t rows = tileRows<Simd>;
    const AttentionWork& work = piece.work;
    const AttentionShape& shape = work.shape;
    const auto d = std::size_t(shape.headDim);
    const std::int64_t keyRow = piece.keyPlane * shape.keys + firstKey;
    const float* v = rowsOf(work.v, work, keyRow, count, 1, tiles.k);
    packKeys<Simd>(v, count, piece.tileKeys, d, 1, tiles.vt);
    const float* k = rowsOf(work.k, work, keyRow, count, 1, tiles.k);
    packKeys<Simd>(k, count, piece.tileKeys, d, log2e / std::sqrt(float(d)), tiles.kt);
    std::fill(tiles.dk, tiles.dk + piece.tileKeys * d, 0.0F);
    std::fill(tiles.dv, tiles.dv + piece.tileKeys * d, 0.0F);
    const std::size_t paddedKeys = roundedUp(count, panelWidth<Simd>);
    const std::int64_t firstPlane = piece.keyPlane * work.group();
    for (std::int64_t plane = firstPlane; plane < firstPlane + work.group(); ++plane) {
        for (std::int64_t query = work.firstQuery(firstKey); query < shape.queries;
             query += std::int64_t(piece.tileQueries)) {
            QueryTile queries{plane * shape.queries + query, query, 0, nullptr, nullptr};
            queries.count = std::size_t(std::min(std::int64_t(piece.tileQueries), shape.queries - query));
            queries.q = rowsOf(work.q, work, queries.row, queries.count, rows, tiles.q);
            queries.g = rowsOf(work.outputGradient, work, queries.row, queries.count, rows, tiles.g);
            for (std::size_t panel = 0; panel * panelWidth<Simd> < paddedKeys; ++panel) {
                for (std::size_t first = 0; first < queries.count; first += rows)
                    scoreTile<Simd>(piece, tiles, queries, first, panel, firstKey, count);
            }
            addToKeys<Simd>(piece, tiles.p, queries.g, queries.count, paddedKeys, tiles.dv);
            addToKeys<Simd>(piece, tiles.ds, queries.q, queries.count, paddedKeys, tiles.dk);
            addToQueries<Simd>(piece, tiles, queries, k, count, dq + std::size_t(queries.row) * d);
        }
    }
    narrowRow(tiles.dk, work.dtype, work.dk + work.rowOffset(keyRow), count * d);
    narrowRow(tiles.dv, work.dtype, work.dv + work.rowOffset(keyRow), count * d);
}

template <typename Simd> MEMSCAPE_INLINE void backwardRange(const BackwardPiece& piece)
{
    const AttentionWork& work = piece.work;
    const AttentionShape& shape = work.shape;
    const BackwardTiles tiles(piece);
    const auto d = std::size_t(shape.headDim);
    float* dq = work.dqSums != nullptr ? work.dqSums + std::size_t(piece.split * shape.queryRows()) * d
                                       : reinterpret_cast<float*>(work.dq);
    const auto planeFloats = std::size_t(work.group() * shape.queries) * d;
    std::fill_n(dq + std::size_t(piece.keyPlane) * planeFloats, planeFloats, 0.0F);
    for (std::int64_t key = piece.firstKey; key < piece.endKey && !piece.team->stopping();
         key += std::int64_t(piece.tileKeys)) {
        const auto count = std::size_t(std::min(std::int64_t(piece.tileKeys), piece.endKey - key));
        backwardTile<Simd>(piece, tiles, key, count, dq);
    }
}

} // namespace memscape::host
