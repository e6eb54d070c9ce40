// SPDX-License-Identifier: Apache-2.0
// Flash attention, version 7: version 6 that leaves O alone while no maximum rises.
//
// It teaches that the running softmax need not run: l and O are multiplied by 1 for every row whose
// maximum stays, and after a few tiles most stay. One vote of the warp says whether any of its 32
// rows rises; if none does, the products of O with the factors are skipped, 156 of 764
// instructions of a tile at a head dimension of 128. Skipping those that are exactly 1 changes no bit.
//
// With 32 rows some row rises in 42 % of the tiles of 8192 keys whose scores are normally distributed.
// But the maximum has to be near enough only that e^(s − m) neither overflows nor vanishes: a row
// may lag behind its maximum by 8 powers of two, as in FlashAttention-4. Weights are then at most
// 2⁸, their rounding is relative and stays what it was, L = m + log l holds for every m, and 0.6 % of
// the tiles rescale. (Both shares by drawing such scores; a trend in the scores changes them.)
//
// With a head dimension of 128 its tiles have 48 keys: 64 leave 16 bytes of registers in memory; 48
// leave none, cost as many instructions a key, and 80 KiB of shared memory let an A100 hold two
// blocks where version 6's 96 KiB let it hold one. Needs sm_80.
//
// Source of the lag: FlashAttention-4's published code (flash_attn/cute/softmax.py,
// rescale_threshold: 8 for 16-bit formats).
#pragma once

#include "kernels/cuda/attention/flash_v5.h"

namespace memscape::cuda {

/// By how many powers of two a row's maximum may be higher than the one in use.
constexpr float flashLag = 8;

template <typename Element, int headDim> using FlashSeven = FlashTile<Element, headDim, 4, 2, headDim == 64 ? 64 : 48>;

/// The rows' maxima over what was seen and this tile; whether any of the warp's is too far above the
/// one in use.
template <int strips, int blocks, typename Machine>
MEMSCAPE_KERNEL bool anyRises(Machine& m, float (&maxima)[strips][2], const Sums<strips, blocks>& scores,
                              const RunningSoftmax (&rows)[strips][2], float scale, float lag)
{
    bool rises = false;
    MEMSCAPE_UNROLL
    for (int s = 0; s < strips; ++s) {
        MEMSCAPE_UNROLL
        for (int half = 0; half < 2; ++half) {
            const float before = rows[s][half].maximum;
            maxima[s][half] = rowMaximum(m, laneMaximum(m, scores.at[s], half, before));
            rises |= (maxima[s][half] - before) * scale > lag;
        }
    }
    return m.anyInWarp(rises);
}

/// softmaxStep() in powers of two, with O and l as they are unless a maximum rises.
template <int strips, int blocks, int outputBlocks, typename Machine>
MEMSCAPE_KERNEL void sparingSoftmaxStep(Machine& m, Sums<strips, blocks>& scores, Sums<strips, outputBlocks>& output,
                                        RunningSoftmax (&rows)[strips][2], float scale, float lag)
{
    float maxima[strips][2];
    const bool rises = anyRises(m, maxima, scores, rows, scale, lag);
    const auto scaled = [&](float difference) { return m.powerOfTwo(difference * scale); };
    const auto exponential = [&](float x) { return m.powerOfTwo(x); };
    if (rises) {
        MEMSCAPE_UNROLL
        for (int s = 0; s < strips; ++s) {
            MEMSCAPE_UNROLL
            for (int half = 0; half < 2; ++half)
                shrinkRow(output.at[s], half, raisedTo(rows[s][half], maxima[s][half], scaled));
        }
    }
    MEMSCAPE_UNROLL
    for (int s = 0; s < strips; ++s) {
        MEMSCAPE_UNROLL
        for (int half = 0; half < 2; ++half) // every row has seen a key in its first tile
            weighRow(scores.at[s], half, rows[s][half], scale, rows[s][half].maximum * scale, exponential);
    }
}

/// Block (x, y): 128 rows of head y. `lag`: 0 computes version 6's bits.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void flash_v7(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays, float lag = flashLag)
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
        maskTile<Tile>(m, scores, s, block, tile * Tile::keys);
        sparingSoftmaxStep(m, scores, output, rows, scale, lag);
        addWeighted<Tile>(m, output, scores, stage + Tile::keyTileBytes);
    }
    block.finish(m, s, arrays, output, rows, scale, logOfTwo);
}

} // namespace memscape::cuda
