// SPDX-License-Identifier: Apache-2.0
// Flash attention, version 1: tiles and a running softmax, nothing else.
//
// It teaches the algorithm: a block keeps 32 rows of Q, walks over K and V 32 rows at a time through
// shared memory, and never writes a score. Four lanes share a row: each holds a quarter of its
// columns, so a score is four partial sums added by shuffles. FP32 arithmetic whatever the format
// (halves are widened on their way into shared memory), so the multiply-adds of the SM's ordinary
// lanes are its ceiling: on an H200 67 of 989 TFLOP/s.
//
// Source: Dao et al., "FlashAttention", arXiv:2205.14135, with the loops of FlashAttention-2,
// arXiv:2307.08691 (rows outside, keys inside).
#pragma once

#include "kernels/cuda/attention/tiles.h"

namespace memscape::cuda {

struct alignas(16) FourFloats
{
    float at[4];
};

template <int headDim> struct FlashOne
{
    static constexpr int threads = 128, lanesPerRow = 4, rows = threads / lanesPerRow, keys = 32;
    static constexpr int quads = headDim / 16; ///< groups of four columns of a lane, 16 apart
    static constexpr int tileBytes = keys * headDim * int(sizeof(float));
    static constexpr int sharedBytes = 2 * tileBytes;
    MEMSCAPE_BOTH static int column(int lane, int quad) { return quad * 16 + lane % lanesPerRow * 4; }
    MEMSCAPE_BOTH static std::uint32_t at(int row, int column)
    {
        return std::uint32_t(row * headDim + column) * std::uint32_t(sizeof(float));
    }
};

/// `rows` rows from firstRow on, widened; zeros where there are none.
template <int headDim, int rows, int threads, typename Machine, typename Element>
MEMSCAPE_KERNEL void widenTile(Machine& m, std::uint32_t at, const Rows<Element>& from, int firstRow)
{
    static_assert(rows * headDim / 4 % threads == 0, "every thread widens equally many");
    struct alignas(4 * sizeof(Element)) Four
    {
        Element at[4];
    };
    MEMSCAPE_UNROLL
    for (int turn = 0; turn < rows * headDim / 4 / threads; ++turn) {
        const int index = turn * threads + m.thread();
        const int row = index / (headDim / 4), column = index % (headDim / 4) * 4;
        FourFloats wide{{0, 0, 0, 0}};
        if (firstRow + row < from.count) {
            const Four four =
                m.load(reinterpret_cast<const Four*>(from.data + std::int64_t(firstRow + row) * headDim + column));
            MEMSCAPE_UNROLL
            for (int i = 0; i < 4; ++i)
                wide.at[i] = m.template widen<Element>(four.at[i]);
        }
        m.storeShared(at + FlashOne<headDim>::at(row, column), wide);
    }
}

/// Scores of one row with the tile's keys: all four lanes of the row get them.
template <int headDim, typename Machine>
MEMSCAPE_KERNEL void plainScores(Machine& m, float (&scores)[FlashOne<headDim>::keys],
                                 const float (&query)[FlashOne<headDim>::quads][4], std::uint32_t keyTile)
{
    using Tile = FlashOne<headDim>;
    MEMSCAPE_UNROLL
    for (int key = 0; key < Tile::keys; ++key) {
        float sum = 0;
        MEMSCAPE_UNROLL
        for (int quad = 0; quad < Tile::quads; ++quad) {
            const auto four =
                m.template loadShared<FourFloats>(keyTile + Tile::at(key, Tile::column(m.thread(), quad)));
            MEMSCAPE_UNROLL
            for (int i = 0; i < 4; ++i)
                sum += query[quad][i] * four.at[i];
        }
        scores[key] = rowSum(m, sum);
    }
}

/// Block (x, y): rows 32 x … of head y. `query` … are the arrays' starts.
template <typename Element, int headDim, typename Machine>
MEMSCAPE_KERNEL void flash_v1(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays)
{
    using Tile = FlashOne<headDim>;
    const int head = m.blockY(), firstRow = m.blockX() * Tile::rows;
    const int row = firstRow + m.thread() / Tile::lanesPerRow;
    const auto* query = static_cast<const Element*>(arrays.query) + queryStart(s, head);
    const Rows<Element> keys{static_cast<const Element*>(arrays.key) + keyStart(s, keyPlane(s, head)), s.keys};
    const Rows<Element> values{static_cast<const Element*>(arrays.value) + keyStart(s, keyPlane(s, head)), s.keys};

    float q[Tile::quads][4], output[Tile::quads][4];
    MEMSCAPE_UNROLL
    for (int quad = 0; quad < Tile::quads; ++quad) {
        MEMSCAPE_UNROLL
        for (int i = 0; i < 4; ++i) {
            const std::int64_t at = std::int64_t(row) * headDim + Tile::column(m.thread(), quad) + i;
            q[quad][i] = row < s.queries ? m.template widen<Element>(m.load(query + at)) : 0.0F;
            output[quad][i] = 0;
        }
    }
    RunningSoftmax softmax;
    const auto exponential = [&m](float x) { return m.exponential(x); };
    const int tiles = keyTiles(s, firstRow, Tile::rows, Tile::keys);
    MEMSCAPE_NO_UNROLL
    for (int tile = 0; tile < tiles; ++tile) {
        const int firstKey = tile * Tile::keys;
        m.syncThreads(); // the tile before has been read
        widenTile<headDim, Tile::keys, Tile::threads>(m, 0, keys, firstKey);
        widenTile<headDim, Tile::keys, Tile::threads>(m, Tile::tileBytes, values, firstKey);
        m.syncThreads();

        float scores[Tile::keys];
        plainScores<headDim>(m, scores, q, 0);
        float most = nothingSeen;
        MEMSCAPE_UNROLL
        for (int key = 0; key < Tile::keys; ++key) {
            if (!sees(s, row, firstKey + key))
                scores[key] = -INFINITY;
            most = m.maximum(most, scores[key]);
        }
        const float factor =
            raisedTo(softmax, most, [&](float difference) { return exponential(difference * s.scale); });
        const float offset = scaledMaximum(softmax, s.scale);
        MEMSCAPE_UNROLL
        for (int quad = 0; quad < Tile::quads; ++quad) {
            MEMSCAPE_UNROLL
            for (int i = 0; i < 4; ++i)
                output[quad][i] *= factor;
        }
        MEMSCAPE_UNROLL
        for (int key = 0; key < Tile::keys; ++key) {
            const float weight = exponential(scores[key] * s.scale - offset);
            softmax.sum += weight;
            MEMSCAPE_UNROLL
            for (int quad = 0; quad < Tile::quads; ++quad) {
                const auto four =
                    m.template loadShared<FourFloats>(Tile::tileBytes + Tile::at(key, Tile::column(m.thread(), quad)));
                MEMSCAPE_UNROLL
                for (int i = 0; i < 4; ++i)
                    output[quad][i] += weight * four.at[i];
            }
        }
    }
    if (row >= s.queries)
        return;
    auto* to = static_cast<Element*>(arrays.output) + queryStart(s, head);
    MEMSCAPE_UNROLL
    for (int quad = 0; quad < Tile::quads; ++quad) {
        MEMSCAPE_UNROLL
        for (int i = 0; i < 4; ++i)
            m.store(to + std::int64_t(row) * headDim + Tile::column(m.thread(), quad) + i,
                    m.template narrow<Element>(output[quad][i] / softmax.sum));
    }
    if (arrays.logSumExp != nullptr && m.thread() % Tile::lanesPerRow == 0)
        m.store(arrays.logSumExp + std::int64_t(head) * s.queries + row,
                softmax.maximum * s.scale + m.logarithm(softmax.sum));
}

} // namespace memscape::cuda
