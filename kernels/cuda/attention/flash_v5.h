// SPDX-License-Identifier: Apache-2.0
// Flash attention, versions 5 and 6: what is left when the copies are hidden.
//
// Version 5 teaches to spare instructions. The GPU computes powers of two, and e^(a x − b) is
// 2^(a' x − b') with a' = a log₂ e: one multiply-add and one exponential per score, where version 4 needs a
// multiplication more. The fragments of Q are the same for every tile, so they are loaded once and stay in registers;
// their place in shared memory is the second stage's, which is needed only afterwards, so more blocks fit a
// multiprocessor.
//
// Version 6 teaches to spare shared memory's bandwidth: a warp owns 32 rows instead of 16, so every
// fragment of K and V that it loads feeds two products. 16 rows ask 128 bytes per 1024 multiply-adds,
// all that an SM's shared memory delivers in a clock, of an H200's SM that could do about 1300; 32
// rows ask half. The price is registers: with a head dimension of 128 the sums alone are 192 of 255,
// and Q has to stay in shared memory. Both need sm_80.
#pragma once

#include "kernels/cuda/attention/flash_tile.h"

namespace memscape::cuda {

template <typename Element, int headDim> using FlashFive = FlashTile<Element, headDim, 4, 1, 64>;
template <typename Element, int headDim> using FlashSix = FlashTile<Element, headDim, 4, 2, 64>;

template <typename Tile> constexpr int flashSharedBytesV5 = 4 * Tile::keyTileBytes;
template <typename Tile> constexpr int flashSharedBytesV6 = Tile::rowTileBytes + 4 * Tile::keyTileBytes;

/// S = Q Kᵀ with Q in registers.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void scoresFromRegisters(Machine& m, typename Tile::Scores& scores,
                                         const std::uint32_t (&query)[Tile::depthSteps][Tile::strips][4],
                                         std::uint32_t keyTile)
{
    scores.clear(m);
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::depthSteps; ++step)
        addScores<typename Tile::Element, typename Tile::Layout>(m, scores, query[step], keyTile, 2 * step);
}

/// Block (x, y): 64 rows of head y.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void flash_v5(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays)
{
    using Layout = typename Tile::Layout;
    constexpr std::uint32_t stageBytes = 2 * Tile::keyTileBytes;
    static_assert(Tile::rowTileBytes <= int(stageBytes), "Q passes through the second stage");
    const FlashBlock<Tile> block(m, s, arrays);
    KeyWalk<Tile> walk(m, block);
    copyTileAsync<Layout, Tile::rows, Tile::threads>(m, stageBytes, block.query, block.firstRow);
    m.commitCopies();
    walk.copyNext(m, 0);
    m.commitCopies();

    m.template waitForCopies<1>(); // Q, not yet the first stage
    m.syncThreads();
    const std::uint32_t left = leftOfLane<Layout>(m, stageBytes, m.thread() / 32 * Tile::rowsPerWarp);
    std::uint32_t query[Tile::depthSteps][Tile::strips][4];
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::depthSteps; ++step)
        loadLeft<Layout>(m, query[step], left, 2 * step);
    typename Tile::Output output;
    output.clear(m);
    RunningSoftmax rows[Tile::strips][2];
    const float scale = s.scale * logTwoOfE;
    const auto exponential = [&m](float x) { return m.powerOfTwo(x); };
    MEMSCAPE_NO_UNROLL
    for (int tile = 0; tile < block.tiles; ++tile) {
        const std::uint32_t stage = std::uint32_t(tile % 2) * stageBytes;
        m.template waitForCopies<0>();
        m.syncThreads();
        if (tile + 1 < block.tiles)
            walk.copyNext(m, stageBytes - stage);
        m.commitCopies();
        typename Tile::Scores scores;
        scoresFromRegisters<Tile>(m, scores, query, stage);
        flashTileStep<Tile>(m, s, scores, output, rows, block, tile * Tile::keys, stage + Tile::keyTileBytes, scale,
                            exponential);
    }
    block.finish(m, s, arrays, output, rows, scale, logOfTwo);
}

/// Block (x, y): 128 rows of head y.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void flash_v6(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays)
{
    constexpr std::uint32_t stages = Tile::rowTileBytes, stageBytes = 2 * Tile::keyTileBytes;
    const FlashBlock<Tile> block(m, s, arrays);
    KeyWalk<Tile> walk(m, block);
    copyTileAsync<typename Tile::Layout, Tile::rows, Tile::threads>(m, 0, block.query, block.firstRow);
    walk.copyNext(m, stages);
    m.commitCopies();

    typename Tile::Output output;
    output.clear(m);
    RunningSoftmax rows[Tile::strips][2];
    const float scale = s.scale * logTwoOfE;
    const auto exponential = [&m](float x) { return m.powerOfTwo(x); };
    MEMSCAPE_NO_UNROLL
    for (int tile = 0; tile < block.tiles; ++tile) {
        const std::uint32_t stage = stages + std::uint32_t(tile % 2) * stageBytes;
        m.template waitForCopies<0>();
        m.syncThreads();
        if (tile + 1 < block.tiles)
            walk.copyNext(m, stages + std::uint32_t((tile + 1) % 2) * stageBytes);
        m.commitCopies();
        typename Tile::Scores scores;
        scoresFromShared<Tile>(m, scores, 0, stage);
        flashTileStep<Tile>(m, s, scores, output, rows, block, tile * Tile::keys, stage + Tile::keyTileBytes, scale,
                            exponential);
    }
    block.finish(m, s, arrays, output, rows, scale, logOfTwo);
}

} // namespace memscape::cuda
