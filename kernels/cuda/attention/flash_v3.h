// SPDX-License-Identifier: Apache-2.0
// Flash attention, version 3: swizzled shared memory and ldmatrix.
//
// It teaches where shared memory loses time: version 2 needs eight turns of the banks for every
// load. Chunk c of row r now lies at place c ^ (r mod 8), so the 16-byte chunks of one column in
// eight rows fall into eight different groups of banks; ldmatrix then brings four 8 × 8 matrices in
// one instruction, each in one turn, and its .trans form turns V on the way, which version 2 gathered
// two bytes at a time.
#pragma once

#include "kernels/cuda/attention/flash_tile.h"

namespace memscape::cuda {

template <typename Element, int headDim> using FlashThree = FlashTile<Element, headDim, 4, 1, 64>;

template <typename Tile> constexpr int flashSharedBytesV3 = Tile::rowTileBytes + 2 * Tile::keyTileBytes;

/// Block (x, y): 64 rows of head y.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void flash_v3(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays)
{
    using Layout = typename Tile::Layout;
    constexpr std::uint32_t queryTile = 0, keyTile = Tile::rowTileBytes, valueTile = keyTile + Tile::keyTileBytes;
    const FlashBlock<Tile> block(m, s, arrays);
    copyTile<Layout, Tile::rows, Tile::threads>(m, queryTile, block.query, block.firstRow);

    typename Tile::Output output;
    output.clear(m);
    RunningSoftmax rows[Tile::strips][2];
    const auto exponential = [&m](float x) { return m.exponential(x); };
    MEMSCAPE_NO_UNROLL
    for (int tile = 0; tile < block.tiles; ++tile) {
        const int firstKey = tile * Tile::keys;
        m.syncThreads(); // the tile before has been read
        copyTile<Layout, Tile::keys, Tile::threads>(m, keyTile, block.key, firstKey);
        copyTile<Layout, Tile::keys, Tile::threads>(m, valueTile, block.value, firstKey);
        m.syncThreads();
        typename Tile::Scores scores;
        scoresFromShared<Tile>(m, scores, queryTile, keyTile);
        flashTileStep<Tile>(m, s, scores, output, rows, block, firstKey, valueTile, s.scale, exponential);
    }
    block.finish(m, s, arrays, output, rows, s.scale, 1);
}

} // namespace memscape::cuda
