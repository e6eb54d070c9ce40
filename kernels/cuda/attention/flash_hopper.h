// SPDX-License-Identifier: Apache-2.0
// Flash attention, version 8: for Hopper (compute capability 9.0) alone.
//
// It teaches to let machines wait for each other instead of threads. Version 7's warps issue every
// copy, every load of a fragment and every 16 × 8 product, and mma.sync reaches two thirds of what
// Hopper's tensor cores can do. Here
//
//   - one thread starts the copy engine's loads of boxes of Q, K and V (cp.async.bulk.tensor); a
//     barrier in shared memory counts the bytes, and no thread computes an address of an element;
//   - four warps together start products of 64 × 128 × 16 that read K and V from shared memory by
//     themselves (wgmma), and go on while they run;
//   - a warpgroup has the products of the next tile's scores and of this tile's values running while
//     it takes the softmax, and two warpgroups take turns (ping-pong): one's exponentials, half of the
//     time that the products take, hide behind the other's products;
//   - the fetching warpgroup gives most of its registers to the two that compute (setmaxnreg).
//
//     tile t     turn │ S_t = Q K_tᵀ, O += P V_{t−1} started │ other's turn │ S_t there, K_t read │
//                softmax of S_t │ wait for K_{t+1} │ O there, V_{t−1} read │ O shrunk, P = S_t
//
// Source: Shah et al., "FlashAttention-3", arXiv:2407.08608, sections 3.1 and 3.2. Left out: FP8, a
// grid that stays on the SMs over many heads (its start and end hide behind other blocks' work),
// clusters that share tiles, tiles of 176 keys.
#pragma once

#include "kernels/cuda/attention/flash_hopper_tiles.h"

namespace memscape::cuda {

constexpr int fetcherRegisters = 24, computerRegisters = 240; ///< 128 × 24 + 256 × 240 of 65,536

// ---- the warpgroup that fetches ---------------------------------------------------------------

/// One tile, piece by piece; `there` completes when all its bytes are.
template <typename Tile, typename Machine, typename Map>
MEMSCAPE_KERNEL void fetchTile(Machine& m, const Map& map, std::uint32_t to, int row, int plane, std::uint32_t there)
{
    m.arriveExpecting(there, Tile::tileBytes);
    MEMSCAPE_UNROLL
    for (int piece = 0; piece < Tile::pieces; ++piece)
        m.copyBox(to + std::uint32_t(piece) * Tile::pieceBytes, map, piece * pieceColumns, row, plane, there);
}

/// A tile of K or of V once its stage was `read`; of a stage that nothing was in the wait passes at once.
template <typename Tile, typename Machine, typename Map>
MEMSCAPE_KERNEL void fetchNext(Machine& m, const Map& map, std::uint32_t to, int tile, int plane, int read, int there)
{
    const int stage = stageOf<Tile>(tile);
    m.waitBarrier(Tile::barrier(read, stage), parityOf<Tile>(tile) ^ 1);
    fetchTile<Tile>(m, map, to, tile * Tile::keys, plane, Tile::barrier(there, stage));
}

/// In the order in which they are used, K one tile ahead of V.
template <typename Tile, typename Machine, typename Map>
MEMSCAPE_KERNEL void fetchTiles(Machine& m, const AttentionSizes& s, const FlashBlock<Tile>& block, const Map& query,
                                const Map& key, const Map& value)
{
    const int plane = keyPlane(s, block.head);
    fetchTile<Tile>(m, query, Tile::queryTile, block.firstRow, block.head, Tile::barrier(Tile::QueryThere));
    MEMSCAPE_NO_UNROLL
    for (int tile = 0; tile <= block.tiles; ++tile) {
        if (tile < block.tiles)
            fetchNext<Tile>(m, key, Tile::keyTile(stageOf<Tile>(tile)), tile, plane, Tile::KeysRead, Tile::KeysThere);
        if (tile > 0)
            fetchNext<Tile>(m, value, Tile::valueTile(stageOf<Tile>(tile - 1)), tile - 1, plane, Tile::ValuesRead,
                            Tile::ValuesThere);
    }
}

// ---- the warpgroups that compute --------------------------------------------------------------

/// Starts S = Q Kᵀ for the warpgroup's 64 rows.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void startScores(Machine& m, typename Tile::Scores& scores, int group, int stage)
{
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::depthSteps; ++step) {
        constexpr int stepsPerPiece = pieceColumns / mmaDepth;
        const std::uint32_t deep = std::uint32_t(step / stepsPerPiece) * Tile::pieceBytes
            + std::uint32_t(step % stepsPerPiece) * (mmaDepth * 2);
        const auto rows = std::uint32_t(group * Tile::rowsPerGroup) * pieceRowBytes;
        m.template multiplyShared<typename Tile::Element>(
            scores, m.matrix(Tile::queryTile + rows + deep, chunkBytes, atomBytes),
            m.matrix(Tile::keyTile(stage) + deep, chunkBytes, atomBytes), step > 0);
    }
    m.commitProducts();
}

/// Starts O += P V.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void startValues(Machine& m, typename Tile::Output& output, const typename Tile::Weights& weights,
                                 int stage)
{
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::keySteps; ++step) {
        const auto rows = std::uint32_t(step * mmaDepth) * pieceRowBytes;
        m.template multiplyRegisters<typename Tile::Element>(
            output, weights[step], m.matrix(Tile::valueTile(stage) + rows, Tile::pieceBytes, atomBytes));
    }
    m.commitProducts();
}

/// Tells the fetching thread that this warp has read a tile.
template <typename Machine> MEMSCAPE_KERNEL void giveBack(Machine& m, std::uint32_t barrier)
{
    if (m.thread() % 32 == 0)
        m.arrive(barrier);
}

/// Turns scores into weights under the raised maximum; `factors` say by how much what was summed
/// before shrinks.
template <int blocks, typename Machine>
MEMSCAPE_KERNEL void weigh(Machine& m, Sums<1, blocks>& scores, RunningSoftmax (&rows)[1][2], float (&factors)[2],
                           float scale)
{
    const auto exponential = [&m](float x) { return m.powerOfTwo(x); };
    MEMSCAPE_UNROLL
    for (int half = 0; half < 2; ++half) { // rows group and group + 8
        RunningSoftmax& row = rows[0][half];
        const float most = rowMaximum(m, laneMaximum(m, scores.at[0], half, row.maximum));
        factors[half] = raisedTo(row, most, [&](float difference) { return exponential(difference * scale); });
        weighRow(scores.at[0], half, row, scale, scaledMaximum(row, scale), exponential);
    }
}

template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void packWeights(Machine& m, typename Tile::Weights& weights, const typename Tile::Scores& scores)
{
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::keySteps; ++step)
        asLeft<typename Tile::Element>(m, weights[step], scores.at[0][2 * step], scores.at[0][2 * step + 1]);
}

/// The two warpgroups' turns to start products: named barriers 1 and 2, on which the group whose turn
/// comes waits and the other one only arrives. The first turn is the first group's.
template <typename Tile, typename Machine> MEMSCAPE_KERNEL void awaitTurn(Machine& m, int group)
{
    m.waitNamed(1 + group, Tile::consumers * Tile::groupThreads);
}
template <typename Tile, typename Machine> MEMSCAPE_KERNEL void passTurn(Machine& m, int group)
{
    m.arriveNamed(2 - group, Tile::consumers * Tile::groupThreads);
}

/// The next tile's keys are waited for between a softmax and the wait for products: a loop there also keeps
/// the assembler from putting the whole softmax off until the products are done, as it did.
template <typename Tile, typename Machine> MEMSCAPE_KERNEL void awaitKeys(Machine& m, int tile)
{
    m.waitBarrier(Tile::barrier(Tile::KeysThere, stageOf<Tile>(tile)), parityOf<Tile>(tile));
}

template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void computeTiles(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays,
                                  const FlashBlock<Tile>& block)
{
    const int group = m.thread() / Tile::groupThreads, last = block.tiles - 1;
    const float scale = s.scale * logTwoOfE;
    typename Tile::Scores scores;
    typename Tile::Output output;
    typename Tile::Weights weights;
    RunningSoftmax rows[1][2];
    float factors[2];
    output.clear(m);
    scores.clear(m);
    if (group == 1 && last > 0)
        passTurn<Tile>(m, group);

    m.waitBarrier(Tile::barrier(Tile::QueryThere), 0);
    awaitKeys<Tile>(m, 0);
    m.fenceRegisters();
    startScores<Tile>(m, scores, group, 0);
    m.template waitForProducts<0>();
    m.landed(scores);
    giveBack(m, Tile::barrier(Tile::KeysRead));
    maskTile<Tile>(m, scores, s, block, 0);
    weigh(m, scores, rows, factors, scale); // nothing to shrink yet
    packWeights<Tile>(m, weights, scores);
    if (last > 0)
        awaitKeys<Tile>(m, 1);

    MEMSCAPE_NO_UNROLL
    for (int tile = 1; tile <= last; ++tile) {
        const int stage = stageOf<Tile>(tile), before = stageOf<Tile>(tile - 1);
        awaitTurn<Tile>(m, group);
        m.fenceRegisters();
        startScores<Tile>(m, scores, group, stage);
        m.waitBarrier(Tile::barrier(Tile::ValuesThere, before), parityOf<Tile>(tile - 1));
        m.fenceRegisters();
        startValues<Tile>(m, output, weights, before);
        if (group == 0 || tile < last)
            passTurn<Tile>(m, group);

        m.template waitForProducts<1>();
        m.landed(scores);
        giveBack(m, Tile::barrier(Tile::KeysRead, stage));
        maskTile<Tile>(m, scores, s, block, tile * Tile::keys);
        weigh(m, scores, rows, factors, scale);
        if (tile < last)
            awaitKeys<Tile>(m, tile + 1);
        m.template waitForProducts<0>();
        m.landed(output);
        m.landed(weights);
        giveBack(m, Tile::barrier(Tile::ValuesRead, before));
        shrinkRow(output.at[0], 0, factors[0]);
        shrinkRow(output.at[0], 1, factors[1]);
        packWeights<Tile>(m, weights, scores);
    }
    m.waitBarrier(Tile::barrier(Tile::ValuesThere, stageOf<Tile>(last)), parityOf<Tile>(last));
    m.fenceRegisters();
    startValues<Tile>(m, output, weights, stageOf<Tile>(last));
    m.template waitForProducts<0>();
    m.landed(output);
    block.finish(m, s, arrays, output, rows, scale, logOfTwo);
}

/// Block (x, y): 128 rows of head y. The last warpgroup fetches, so that the rows of the others are
/// counted from thread 0 on.
template <typename Tile, typename Machine, typename Map>
MEMSCAPE_KERNEL void flash_v8(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays, const Map& query,
                              const Map& key, const Map& value)
{
    constexpr int arrivals = Tile::consumers * Tile::groupThreads / 32; // a warp gives a tile back
    const FlashBlock<Tile> block(m, s, arrays);
    if (m.thread() == 0) {
        m.makeBarrier(Tile::barrier(Tile::QueryThere), 1);
        for (int stage = 0; stage < Tile::stages; ++stage) {
            m.makeBarrier(Tile::barrier(Tile::KeysThere, stage), 1);
            m.makeBarrier(Tile::barrier(Tile::ValuesThere, stage), 1);
            m.makeBarrier(Tile::barrier(Tile::KeysRead, stage), arrivals);
            m.makeBarrier(Tile::barrier(Tile::ValuesRead, stage), arrivals);
        }
        m.publishBarriers();
    }
    m.syncThreads();
    if (m.thread() >= Tile::consumers * Tile::groupThreads) {
        m.template giveRegisters<fetcherRegisters>();
        if (m.thread() == Tile::consumers * Tile::groupThreads)
            fetchTiles<Tile>(m, s, block, query, key, value);
    } else {
        m.template takeRegisters<computerRegisters>();
        computeTiles<Tile>(m, s, arrays, block);
    }
}

} // namespace memscape::cuda
