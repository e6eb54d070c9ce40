// SPDX-License-Identifier: Apache-2.0
// What versions 2 to 7 of flash attention have in common: the size of their blocks and tiles, the
// head a block works on, and its end.
#pragma once

#include "kernels/cuda/attention/tiles.h"

namespace memscape::cuda {

/// A block of `theWarps` warps with 16 × theStrips rows of Q each, over tiles of theKeys keys.
template <typename TheElement, int theHeadDim, int theWarps, int theStrips, int theKeys, bool isSwizzled = true>
struct FlashTile
{
    using Element = TheElement;
    using Layout = TileLayout<theHeadDim / chunkElements, isSwizzled>;
    static constexpr int headDim = theHeadDim, warps = theWarps, strips = theStrips;
    static constexpr int keys = theKeys, threads = warps * 32;
    static constexpr int rowsPerWarp = strips * mmaRows, rows = warps * rowsPerWarp;
    static constexpr int keyBlocks = keys / mmaColumns, outputBlocks = headDim / mmaColumns;
    static constexpr int depthSteps = headDim / mmaDepth, keySteps = keys / mmaDepth;
    static constexpr int rowTileBytes = rows * Layout::rowBytes;
    static constexpr int keyTileBytes = keys * Layout::rowBytes;
    using Scores = Sums<strips, keyBlocks>;
    using Output = Sums<strips, outputBlocks>;
};

/// One head's arrays, and the rows of Q that block x has: the last rows first, since when causal
/// they have the most to do.
template <typename Tile> struct FlashBlock
{
    using Element = typename Tile::Element;
    Rows<Element> query, key, value;
    int firstRow; ///< of the block
    int warpRow;  ///< the first of this warp
    int tiles;    ///< of keys to walk over
    int head;

    template <typename Machine>
    MEMSCAPE_KERNEL FlashBlock(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays)
        : head(m.blockY())
    {
        const std::uint64_t own = queryStart(s, head), shared = keyStart(s, keyPlane(s, head));
        query = {static_cast<const Element*>(arrays.query) + own, s.queries};
        key = {static_cast<const Element*>(arrays.key) + shared, s.keys};
        value = {static_cast<const Element*>(arrays.value) + shared, s.keys};
        firstRow = (m.blocksX() - 1 - m.blockX()) * Tile::rows;
        warpRow = firstRow + m.thread() / 32 * Tile::rowsPerWarp;
        tiles = keyTiles(s, firstRow, Tile::rows, Tile::keys);
    }

    /// Divides by the rows' sums and writes output and log-sum-exp.
    template <typename Machine>
    MEMSCAPE_KERNEL void finish(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays,
                                const typename Tile::Output& output, const RunningSoftmax (&rows)[Tile::strips][2],
                                float scale, float toNatural) const
    {
        float factors[Tile::strips][2];
        float* logSumExp = arrays.logSumExp == nullptr ? nullptr : arrays.logSumExp + std::int64_t(head) * s.queries;
        finishRows(m, rows, factors, scale, toNatural, logSumExp, warpRow, s.queries);
        writeRows(m, output, factors, static_cast<Element*>(arrays.output) + queryStart(s, head), warpRow, s.queries);
    }
};

/// O += P V, P's rounded sums as the depth.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void addWeighted(Machine& m, typename Tile::Output& output, const typename Tile::Scores& weights,
                                 std::uint32_t valueTile)
{
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::keySteps; ++step) {
        std::uint32_t p[Tile::strips][4];
        MEMSCAPE_UNROLL
        for (int strip = 0; strip < Tile::strips; ++strip)
            asLeft<typename Tile::Element>(m, p[strip], weights.at[strip][2 * step], weights.at[strip][2 * step + 1]);
        addValues<typename Tile::Element, typename Tile::Layout>(m, output, p, valueTile, step * mmaDepth);
    }
}

/// Hides what the warp's rows may not see of a tile.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void maskTile(Machine& m, typename Tile::Scores& scores, const AttentionSizes& s,
                              const FlashBlock<Tile>& block, int firstKey)
{
    if (!seesAll(s, block.warpRow, firstKey, Tile::keys))
        maskScores(m, scores, s, block.warpRow, firstKey);
}

/// Softmax of one tile's scores and O += P V, both in place.
template <typename Tile, typename Machine, typename Exponential>
MEMSCAPE_KERNEL void flashTileStep(Machine& m, const AttentionSizes& s, typename Tile::Scores& scores,
                                   typename Tile::Output& output, RunningSoftmax (&rows)[Tile::strips][2],
                                   const FlashBlock<Tile>& block, int firstKey, std::uint32_t valueTile, float scale,
                                   const Exponential& exponential)
{
    maskTile<Tile>(m, scores, s, block, firstKey);
    softmaxStep(m, scores, output, rows, scale, exponential);
    addWeighted<Tile>(m, output, scores, valueTile);
}

/// S = Q Kᵀ with Q in shared memory.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void scoresFromShared(Machine& m, typename Tile::Scores& scores, std::uint32_t queryTile,
                                      std::uint32_t keyTile)
{
    const int warpRow = m.thread() / 32 * Tile::rowsPerWarp;
    const std::uint32_t left = leftOfLane<typename Tile::Layout>(m, queryTile, warpRow);
    scores.clear(m);
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::depthSteps; ++step) {
        std::uint32_t q[Tile::strips][4];
        loadLeft<typename Tile::Layout>(m, q, left, 2 * step);
        addScores<typename Tile::Element, typename Tile::Layout>(m, scores, q, keyTile, 2 * step);
    }
}

/// The tiles of keys and values one after the other, copied without waiting: what a thread copies
/// next, and how many rows are left from its first one on.
template <typename Tile> struct KeyWalk
{
    using Element = typename Tile::Element;
    using Layout = typename Tile::Layout;
    static constexpr int chunks = Layout::chunksPerRow;
    static constexpr int step = rowsPerTurn<chunks, Tile::threads>();
    static_assert(Tile::keys % step == 0, "every thread copies equally many chunks");
    const Element *key, *value;
    int rowsLeft;
    std::uint32_t to;

    template <typename Machine> MEMSCAPE_KERNEL KeyWalk(Machine& m, const FlashBlock<Tile>& block)
    {
        const TilePlace place = firstChunk<chunks>(m.thread());
        const int at = (place.row * chunks + place.column) * chunkElements;
        key = block.key.data + at;
        value = block.value.data + at;
        rowsLeft = block.key.count - place.row;
        to = Layout::at(place.row, place.column);
    }

    /// K's tile, and V's behind it.
    template <typename Machine> MEMSCAPE_KERNEL void copyNext(Machine& m, std::uint32_t stage)
    {
        copy(m, stage, key);
        copy(m, stage + Tile::keyTileBytes, value);
        rowsLeft -= Tile::keys;
    }

private:
    template <typename Machine> MEMSCAPE_KERNEL void copy(Machine& m, std::uint32_t stage, const Element*& from)
    {
        MEMSCAPE_UNROLL
        for (int down = 0; down < Tile::keys; down += step)
            m.copyAsync(stage + to + std::uint32_t(down * Layout::rowBytes), from + down * Tile::headDim,
                        down < rowsLeft);
        from += Tile::keys * Tile::headDim;
    }
};

} // namespace memscape::cuda
