// SPDX-License-Identifier: Apache-2.0
// Flash attention, version 4: the next tile comes while this one is multiplied.
//
// It teaches asynchronous copies: cp.async moves 16 bytes from memory to shared memory without
// passing registers and without making the thread wait. There are two stages of K and V; while the
// warps work on one, the other is being filled. One barrier per tile is enough: a warp that passes it
// has waited for its own copies into the next stage, and knows that all have left the stage that is
// filled next. Needs sm_80.
#pragma once

#include "kernels/cuda/attention/flash_tile.h"

namespace memscape::cuda {

template <typename Element, int headDim> using FlashFour = FlashTile<Element, headDim, 4, 1, 64>;

template <typename Tile> constexpr int flashSharedBytesV4 = Tile::rowTileBytes + 4 * Tile::keyTileBytes;

/// Block (x, y): 64 rows of head y.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void flash_v4(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays)
{
    constexpr std::uint32_t queryTile = 0, stages = Tile::rowTileBytes, stageBytes = 2 * Tile::keyTileBytes;
    const FlashBlock<Tile> block(m, s, arrays);
    KeyWalk<Tile> walk(m, block);
    copyTileAsync<typename Tile::Layout, Tile::rows, Tile::threads>(m, queryTile, block.query, block.firstRow);
    walk.copyNext(m, stages);
    m.commitCopies();

    typename Tile::Output output;
    output.clear(m);
    RunningSoftmax rows[Tile::strips][2];
    const auto exponential = [&m](float x) { return m.exponential(x); };
    MEMSCAPE_NO_UNROLL
    for (int tile = 0; tile < block.tiles; ++tile) {
        const std::uint32_t stage = stages + std::uint32_t(tile % 2) * stageBytes;
        m.template waitForCopies<0>();
        m.syncThreads();
        if (tile + 1 < block.tiles)
            walk.copyNext(m, stages + std::uint32_t((tile + 1) % 2) * stageBytes);
        m.commitCopies();
        typename Tile::Scores scores;
        scoresFromShared<Tile>(m, scores, queryTile, stage);
        flashTileStep<Tile>(m, s, scores, output, rows, block, tile * Tile::keys, stage + Tile::keyTileBytes, s.scale,
                            exponential);
    }
    block.finish(m, s, arrays, output, rows, s.scale, 1);
}

} // namespace memscape::cuda
