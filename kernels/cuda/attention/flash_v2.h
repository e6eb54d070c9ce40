// SPDX-License-Identifier: Apache-2.0
// Flash attention, version 2: tensor cores.
//
// It teaches how mma.sync wants its operands: 16 × 16 of A and 16 × 8 of B spread over the lanes of
// a warp, which each lane gathers itself from shared memory, two elements at a time. The sums of
// S = Q Kᵀ come out so that, rounded, they are the A of P V: probabilities never leave their lane.
// Tiles lie row after row, so the eight rows that a warp reads together are 128 or 256 bytes apart:
// all in the same banks, eight turns where one would do. That is what version 3 repairs.
#pragma once

#include "kernels/cuda/attention/flash_tile.h"

namespace memscape::cuda {

template <typename Element, int headDim> using FlashTwo = FlashTile<Element, headDim, 4, 1, 64, false>;

template <typename Tile> constexpr int flashSharedBytesV2 = Tile::rowTileBytes + 2 * Tile::keyTileBytes;

/// Two neighbours of a row in one register.
template <typename Layout, typename Machine>
MEMSCAPE_KERNEL std::uint32_t gatherRow(Machine& m, std::uint32_t at, int row, int column)
{
    return m.template loadShared<std::uint32_t>(at + Layout::element(row, column));
}
/// Two neighbours of a column in one register.
template <typename Layout, typename Machine>
MEMSCAPE_KERNEL std::uint32_t gatherColumn(Machine& m, std::uint32_t at, int row, int column)
{
    const std::uint32_t low = m.template loadShared<std::uint16_t>(at + Layout::element(row, column));
    const std::uint32_t high = m.template loadShared<std::uint16_t>(at + Layout::element(row + 1, column));
    return low | high << 16;
}

template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void gatheredScores(Machine& m, typename Tile::Scores& scores, std::uint32_t queryTile,
                                    std::uint32_t keyTile)
{
    using Layout = typename Tile::Layout;
    const int lane = m.thread() % 32, warpRow = m.thread() / 32 * Tile::rowsPerWarp;
    scores.clear(m);
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::depthSteps; ++step) {
        std::uint32_t a[4];
        MEMSCAPE_UNROLL
        for (int r = 0; r < 4; ++r) {
            const TilePlace place = placeInA(lane, r);
            a[r] = gatherRow<Layout>(m, queryTile, warpRow + place.row, step * mmaDepth + place.column);
        }
        MEMSCAPE_UNROLL
        for (int block = 0; block < Tile::keyBlocks; ++block) {
            std::uint32_t b[2]; // B is K transposed: its rows are K's columns
            MEMSCAPE_UNROLL
            for (int r = 0; r < 2; ++r) {
                const TilePlace place = placeInB(lane, r);
                b[r] = gatherRow<Layout>(m, keyTile, block * mmaColumns + place.column, step * mmaDepth + place.row);
            }
            m.template multiply<typename Tile::Element>(scores.at[0][block], a, b[0], b[1]);
        }
    }
}

template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void gatheredValues(Machine& m, typename Tile::Output& output, const typename Tile::Scores& weights,
                                    std::uint32_t valueTile)
{
    using Layout = typename Tile::Layout;
    const int lane = m.thread() % 32;
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::keySteps; ++step) {
        std::uint32_t p[4];
        asLeft<typename Tile::Element>(m, p, weights.at[0][2 * step], weights.at[0][2 * step + 1]);
        MEMSCAPE_UNROLL
        for (int block = 0; block < Tile::outputBlocks; ++block) {
            std::uint32_t b[2];
            MEMSCAPE_UNROLL
            for (int r = 0; r < 2; ++r) {
                const TilePlace place = placeInB(lane, r);
                b[r] =
                    gatherColumn<Layout>(m, valueTile, step * mmaDepth + place.row, block * mmaColumns + place.column);
            }
            m.template multiply<typename Tile::Element>(output.at[0][block], p, b[0], b[1]);
        }
    }
}

/// Block (x, y): 64 rows of head y.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void flash_v2(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays)
{
    using Layout = typename Tile::Layout;
    constexpr std::uint32_t queryTile = 0, keyTile = Tile::rowTileBytes, valueTile = keyTile + Tile::keyTileBytes;
    const FlashBlock<Tile> block(m, s, arrays);
    copyTile<Layout, Tile::rows, Tile::threads>(m, queryTile, block.query, block.firstRow);

    typename Tile::Output output;
    output.clear(m);
    RunningSoftmax rows[1][2];
    const auto exponential = [&m](float x) { return m.exponential(x); };
    MEMSCAPE_NO_UNROLL
    for (int tile = 0; tile < block.tiles; ++tile) {
        const int firstKey = tile * Tile::keys;
        m.syncThreads(); // the tile before has been read
        copyTile<Layout, Tile::keys, Tile::threads>(m, keyTile, block.key, firstKey);
        copyTile<Layout, Tile::keys, Tile::threads>(m, valueTile, block.value, firstKey);
        m.syncThreads();
        typename Tile::Scores scores;
        gatheredScores<Tile>(m, scores, queryTile, keyTile);
        if (!seesAll(s, block.warpRow, firstKey, Tile::keys))
            maskScores(m, scores, s, block.warpRow, firstKey);
        softmaxStep(m, scores, output, rows, s.scale, exponential);
        gatheredValues<Tile>(m, output, scores, valueTile);
    }
    block.finish(m, s, arrays, output, rows, s.scale, 1);
}

} // namespace memscape::cuda
