// SPDX-License-Identifier: Apache-2.0
// The gradients of flash attention, without a matrix of scores. With P = e^(scale Q Kᵀ − LSE):
//
//   delta = Σ_d O ∘ dO            one number a row, a pass of its own
//   dV = Pᵀ dO      dP = dO Vᵀ      dS = P ∘ (dP − delta)      dQ = scale dS K      dK = scale dSᵀ Q
//
// Two passes over the tiles, and every gradient has one writer, so the same inputs give the same
// bits: gradientsOfKeys walks over the rows of Q for its keys and keeps dK and dV in registers;
// gradientsOfQueries walks over the keys for its rows and keeps dQ. S and dP are made in both: seven
// products of N² d where one pass with atomic additions to dQ needs five, 1.4 times the
// multiplications, and the floats that the atomic additions need beside dQ are saved.
//
// The first pass works on the transposed scores, keys as rows: then Pᵀ and dSᵀ come out of the
// tensor cores as the left side of dV and dK, and neither passes through shared memory.
//
// Shared memory is what these passes ask most of. Up to version 6 of the forward their tiles are
// narrow; version 7's are wide, as far as 255 registers allow, so that fragments feed more products.
// Counted for sm_90 and a head dimension of 128: loads of matrices (a shared memory of 128 bytes a
// clock needs 4 clocks for one) and all instructions, each per product of mma.sync, and what 64 rows
// × 64 keys ask of shared memory, copies included:
//
//                 dK and dV                          dQ                              both
//     narrow      0.63 loads, 3.5 instructions       0.58 loads, 3.0 instructions    4864 clocks
//     wide        0.56 loads, 3.0 instructions       0.42 loads, 2.7 instructions    3968 clocks
//
// Wide tiles of the first pass take 97 KiB, so that an A100 holds one block where it holds two narrow
// ones: there the narrow ones may win.
//
// Version 9 takes one pass instead, with atomic additions: flash_one_pass.h.
// Source: Dao, "FlashAttention-2", arXiv:2307.08691, algorithm 2. Needs sm_80.
#pragma once

#include "kernels/cuda/attention/flash_tile.h"

namespace memscape::cuda {

/// Of the forward's versions the first with wide tiles.
constexpr int firstWideBackward = 7;
/// The one whose gradients take one pass, of flash_one_pass.h.
constexpr int onePassBackward = 9;

template <typename Element> struct FlashBackwardArrays
{
    const Element *query, *key, *value, *output, *outputGradient;
    const float *logSumExp, *delta;

    MEMSCAPE_KERNEL explicit FlashBackwardArrays(const AttentionArrays& a)
        : query(static_cast<const Element*>(a.query))
        , key(static_cast<const Element*>(a.key))
        , value(static_cast<const Element*>(a.value))
        , output(static_cast<const Element*>(a.output))
        , outputGradient(static_cast<const Element*>(a.outputGradient))
        , logSumExp(a.logSumExp)
        , delta(a.delta)
    { }
};

constexpr int deltaThreads = 128;

/// delta of row (block × 4 + warp), counted over all heads; a lane takes two neighbours at a time.
/// With `clears` dQ's sums of the row become 0.
template <typename Element, int headDim, bool clears = false, typename Machine>
MEMSCAPE_KERNEL void flashDelta(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays)
{
    struct alignas(4) Two
    {
        Element at[2];
    };
    const FlashBackwardArrays<Element> a(arrays);
    const std::int64_t row = std::int64_t(m.blockX()) * (deltaThreads / 32) + m.thread() / 32;
    const std::int64_t rows = std::int64_t(s.batch) * s.heads * s.queries;
    float sum = 0;
    if (row < rows) {
        MEMSCAPE_UNROLL
        for (int turn = 0; turn < headDim / 64; ++turn) {
            const std::int64_t at = row * headDim + turn * 64 + m.thread() % 32 * 2;
            const Two o = m.load(reinterpret_cast<const Two*>(a.output + at));
            const Two g = m.load(reinterpret_cast<const Two*>(a.outputGradient + at));
            MEMSCAPE_UNROLL
            for (int i = 0; i < 2; ++i)
                sum += m.template widen<Element>(o.at[i]) * m.template widen<Element>(g.at[i]);
        }
    }
    MEMSCAPE_UNROLL
    for (int distance = 16; distance > 0; distance /= 2)
        sum += m.shuffleXor(sum, distance);
    if (row < rows && m.thread() % 32 == 0)
        m.store(arrays.delta + row, sum);
    if (clears && row < rows && m.thread() % 32 < headDim / 4)
        m.store(reinterpret_cast<Chunk*>(arrays.queryGradientSums + row * headDim) + m.thread() % 32,
                Chunk{0, 0, 0, 0});
}

/// A warp's sums as rows of elements, all times one factor.
template <typename Element, int strips, int blocks, typename Machine>
MEMSCAPE_KERNEL void writeScaled(Machine& m, const Sums<strips, blocks>& sums, float factor, Element* to, int firstRow,
                                 int rowCount)
{
    float factors[strips][2];
    MEMSCAPE_UNROLL
    for (int strip = 0; strip < strips; ++strip)
        factors[strip][0] = factors[strip][1] = factor;
    writeRows(m, sums, factors, to, firstRow, rowCount);
}

// ---- dK and dV --------------------------------------------------------------------------------

/// A block of four warps with 16 × theStrips keys each, over tiles of theQueries rows of Q: dK and dV
/// alone take strips × headDim registers.
template <typename TheElement, int theHeadDim, int theStrips, int theQueries> struct KeysTile
{
    using Element = TheElement;
    using Layout = TileLayout<theHeadDim / chunkElements>;
    static constexpr int headDim = theHeadDim, threads = 128, strips = theStrips;
    static constexpr int keysPerWarp = strips * mmaRows, keys = threads / 32 * keysPerWarp;
    static constexpr int queries = theQueries;
    static constexpr int queryBlocks = queries / mmaColumns, outputBlocks = headDim / mmaColumns;
    static constexpr int depthSteps = headDim / mmaDepth;
    static constexpr int keyTileBytes = keys * Layout::rowBytes;
    static constexpr int queryTileBytes = queries * Layout::rowBytes;
    /// Behind the tiles of a stage: log-sum-exp and delta of its rows.
    static constexpr int stageBytes = 2 * queryTileBytes + 2 * queries * int(sizeof(float));
    static constexpr int sharedBytes = 2 * keyTileBytes + 2 * stageBytes;
    using Scores = Sums<strips, queryBlocks>;
    using Gradient = Sums<strips, outputBlocks>;
};

template <typename Element, int headDim> using NarrowKeysTile = KeysTile<Element, headDim, 1, headDim == 64 ? 64 : 32>;
template <typename Element, int headDim>
using WideKeysTile = KeysTile<Element, headDim, headDim == 64 ? 2 : 1, headDim == 64 ? 32 : 64>;

/// The tiles of Q that a block of keys walks over: of every head that reads these keys, from the
/// first tile that sees any of them. It stands before one of them, and steps on without dividing.
struct QueryWalk
{
    int rows, firstRow, turns; ///< rows of a tile; of every head the first; in all
    int head, row;

    MEMSCAPE_BOTH QueryWalk(const AttentionSizes& s, int kvHead, int firstKey, int queries)
        : rows(queries)
        , firstRow(firstRowTile(s, firstKey, queries) * queries)
        , turns(over(s.queries - firstRow, queries) * (s.heads / s.kvHeads))
        , head(firstQueryPlane(s, kvHead))
        , row(firstRow)
    { }
    MEMSCAPE_BOTH void step(const AttentionSizes& s)
    {
        row += rows;
        if (row >= s.queries) {
            row = firstRow;
            ++head;
        }
    }
};

/// Q and dO of the tile that the walk stands before, without waiting.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void copyQueries(Machine& m, const AttentionSizes& s,
                                 const FlashBackwardArrays<typename Tile::Element>& a, const QueryWalk& walk,
                                 std::uint32_t stage)
{
    using Layout = typename Tile::Layout;
    using Element = typename Tile::Element;
    const std::uint64_t start = queryStart(s, walk.head);
    copyTileAsync<Layout, Tile::queries, Tile::threads>(m, stage, Rows<Element>{a.query + start, s.queries}, walk.row);
    copyTileAsync<Layout, Tile::queries, Tile::threads>(m, stage + Tile::queryTileBytes,
                                                        Rows<Element>{a.outputGradient + start, s.queries}, walk.row);
}

/// Where threads 0 … 2 × queries - 1 keep one number each: log-sum-exp, in powers of two, then
/// delta. Rows that do not exist have zeros, and with them no share in any gradient.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL float rowNumber(Machine& m, const AttentionSizes& s,
                                const FlashBackwardArrays<typename Tile::Element>& a, const QueryWalk& walk)
{
    const int row = walk.row + m.thread() % Tile::queries;
    if (m.thread() >= 2 * Tile::queries || row >= s.queries)
        return 0;
    const std::int64_t at = std::int64_t(walk.head) * s.queries + row;
    return m.thread() < Tile::queries ? m.load(a.logSumExp + at) * logTwoOfE : m.load(a.delta + at);
}
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void keepRowNumber(Machine& m, std::uint32_t stage, float number)
{
    if (m.thread() < 2 * Tile::queries)
        m.storeShared(stage + std::uint32_t(2 * Tile::queryTileBytes + m.thread() * 4), number);
}

/// left · tileᵀ over the whole head dimension; left: the warp's strips of a tile in shared memory.
template <typename Tile, int strips, int blocks, typename Machine>
MEMSCAPE_KERNEL void productOfTiles(Machine& m, Sums<strips, blocks>& sums, std::uint32_t left, std::uint32_t right)
{
    const std::uint32_t lane = leftOfLane<typename Tile::Layout>(m, left, m.thread() / 32 * strips * mmaRows);
    sums.clear(m);
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::depthSteps; ++step) {
        std::uint32_t a[strips][4];
        loadLeft<typename Tile::Layout>(m, a, lane, 2 * step);
        addScores<typename Tile::Element, typename Tile::Layout>(m, sums, a, right, 2 * step);
    }
}

/// sums += left · tile, left's rounded sums as the depth.
template <typename Tile, int strips, int depthBlocks, int blocks, typename Machine>
MEMSCAPE_KERNEL void addProduct(Machine& m, Sums<strips, blocks>& sums, const Sums<strips, depthBlocks>& left,
                                std::uint32_t tile)
{
    MEMSCAPE_UNROLL
    for (int step = 0; step < depthBlocks / 2; ++step) {
        std::uint32_t a[strips][4];
        MEMSCAPE_UNROLL
        for (int strip = 0; strip < strips; ++strip)
            asLeft<typename Tile::Element>(m, a[strip], left.at[strip][2 * step], left.at[strip][2 * step + 1]);
        addValues<typename Tile::Element, typename Tile::Layout>(m, sums, a, tile, step * mmaDepth);
    }
}

/// Sets to −∞, a weight of 0, what the queries from `query` on may not see of the keys from `key` on.
template <int strips, int blocks, typename Machine>
MEMSCAPE_KERNEL void maskTransposed(Machine& m, Sums<strips, blocks>& scores, const AttentionSizes& s, int key,
                                    int query)
{
    MEMSCAPE_UNROLL
    for (int strip = 0; strip < strips; ++strip) {
        MEMSCAPE_UNROLL
        for (int b = 0; b < blocks; ++b) {
            MEMSCAPE_UNROLL
            for (int r = 0; r < 4; ++r) {
                const TilePlace place = placeInD(m.thread() % 32, r);
                if (!sees(s, query + b * mmaColumns + place.column, key + strip * mmaRows + place.row))
                    scores.at[strip][b][r] = -INFINITY;
            }
        }
    }
}

/// Pᵀ and dSᵀ from Sᵀ and dPᵀ, in place. `numbers`: log-sum-exp of the columns, delta behind.
template <int strips, int blocks, typename Machine>
MEMSCAPE_KERNEL void transposedWeights(Machine& m, Sums<strips, blocks>& p, Sums<strips, blocks>& ds,
                                       std::uint32_t numbers, float scale)
{
    MEMSCAPE_UNROLL
    for (int b = 0; b < blocks; ++b) {
        MEMSCAPE_UNROLL
        for (int r = 0; r < 2; ++r) {
            const int column = b * mmaColumns + placeInD(m.thread() % 32, r).column;
            const std::uint32_t at = numbers + std::uint32_t(column * 4);
            const float logSumExp = m.template loadShared<float>(at);
            const float delta = m.template loadShared<float>(at + blocks * mmaColumns * 4);
            MEMSCAPE_UNROLL
            for (int half = 0; half < 2 * strips; ++half) {
                float& weight = p.at[half / 2][b][half % 2 * 2 + r];
                float& gradient = ds.at[half / 2][b][half % 2 * 2 + r];
                weight = m.powerOfTwo(weight * scale - logSumExp);
                gradient = weight * (gradient - delta);
            }
        }
    }
}

/// Block (x, y): dK and dV of Tile::keys keys of key/value head y.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void gradientsOfKeys(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays)
{
    using Element = typename Tile::Element;
    using Layout = typename Tile::Layout;
    constexpr std::uint32_t keyTile = 0, valueTile = Tile::keyTileBytes, stages = 2 * Tile::keyTileBytes;
    const FlashBackwardArrays<Element> a(arrays);
    const int firstKey = m.blockX() * Tile::keys;
    const std::uint64_t own = keyStart(s, m.blockY());
    QueryWalk walk(s, m.blockY(), firstKey, Tile::queries);
    copyTileAsync<Layout, Tile::keys, Tile::threads>(m, keyTile, Rows<Element>{a.key + own, s.keys}, firstKey);
    copyTileAsync<Layout, Tile::keys, Tile::threads>(m, valueTile, Rows<Element>{a.value + own, s.keys}, firstKey);
    copyQueries<Tile>(m, s, a, walk, stages);
    m.commitCopies();
    keepRowNumber<Tile>(m, stages, rowNumber<Tile>(m, s, a, walk));

    typename Tile::Gradient keyGradient, valueGradient;
    keyGradient.clear(m);
    valueGradient.clear(m);
    const int warpKey = firstKey + m.thread() / 32 * Tile::keysPerWarp;
    MEMSCAPE_NO_UNROLL
    for (int turn = 0; turn < walk.turns; ++turn) {
        const std::uint32_t stage = stages + std::uint32_t(turn % 2 * Tile::stageBytes),
                            next = stages + std::uint32_t((turn + 1) % 2 * Tile::stageBytes);
        const bool goesOn = turn + 1 < walk.turns;
        const int query = walk.row;
        walk.step(s);
        m.template waitForCopies<0>();
        m.syncThreads();
        float number = 0;
        if (goesOn) {
            copyQueries<Tile>(m, s, a, walk, next);
            number = rowNumber<Tile>(m, s, a, walk);
        }
        m.commitCopies();
        typename Tile::Scores p, ds;
        productOfTiles<Tile>(m, p, keyTile, stage);
        productOfTiles<Tile>(m, ds, valueTile, stage + Tile::queryTileBytes);
        if (s.causal && !seesAll(s, query, warpKey, Tile::keysPerWarp)) // keys beyond the last one
            maskTransposed(m, p, s, warpKey, query);                    // are never written
        transposedWeights(m, p, ds, stage + 2 * Tile::queryTileBytes, s.scale * logTwoOfE);
        addProduct<Tile>(m, valueGradient, p, stage + Tile::queryTileBytes);
        addProduct<Tile>(m, keyGradient, ds, stage);
        if (goesOn)
            keepRowNumber<Tile>(m, next, number);
    }
    writeScaled(m, valueGradient, 1, static_cast<Element*>(arrays.valueGradient) + own, warpKey, s.keys);
    writeScaled(m, keyGradient, s.scale, static_cast<Element*>(arrays.keyGradient) + own, warpKey, s.keys);
}

// ---- dQ ---------------------------------------------------------------------------------------

template <typename Element, int headDim> using NarrowQueriesTile = FlashTile<Element, headDim, 4, 1, 64>;
template <typename Element, int headDim>
using WideQueriesTile = FlashTile<Element, headDim, 4, 2, headDim == 64 ? 48 : 32>;
template <typename Tile> constexpr int flashSharedBytesOfQueries = 2 * Tile::rowTileBytes + 4 * Tile::keyTileBytes;

/// dS from S and dP, in place of dP; log-sum-exp and delta of each strip's halves.
template <int strips, int blocks, typename Machine>
MEMSCAPE_KERNEL void plainWeights(Machine& m, const Sums<strips, blocks>& scores, Sums<strips, blocks>& ds,
                                  const float (&logSumExp)[strips][2], const float (&delta)[strips][2], float scale)
{
    MEMSCAPE_UNROLL
    for (int strip = 0; strip < strips; ++strip) {
        MEMSCAPE_UNROLL
        for (int b = 0; b < blocks; ++b) {
            MEMSCAPE_UNROLL
            for (int r = 0; r < 4; ++r) {
                const float weight = m.powerOfTwo(scores.at[strip][b][r] * scale - logSumExp[strip][r / 2]);
                ds.at[strip][b][r] = weight * (ds.at[strip][b][r] - delta[strip][r / 2]);
            }
        }
    }
}

/// Log-sum-exp, in powers of two, and delta of a lane's rows; zeros of rows that do not exist.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void loadRowNumbers(Machine& m, float (&logSumExp)[Tile::strips][2], float (&delta)[Tile::strips][2],
                                    const AttentionSizes& s, const AttentionArrays& arrays,
                                    const FlashBlock<Tile>& block)
{
    MEMSCAPE_UNROLL
    for (int strip = 0; strip < Tile::strips; ++strip) {
        MEMSCAPE_UNROLL
        for (int half = 0; half < 2; ++half) {
            const int row = block.warpRow + strip * mmaRows + placeInD(m.thread() % 32, 2 * half).row;
            const std::int64_t at = std::int64_t(block.head) * s.queries + row;
            const bool exists = row < s.queries;
            logSumExp[strip][half] = exists ? m.load(arrays.logSumExp + at) * logTwoOfE : 0;
            delta[strip][half] = exists ? m.load(arrays.delta + at) : 0;
        }
    }
}

/// Block (x, y): dQ of Tile::rows rows of head y.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void gradientsOfQueries(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays)
{
    using Element = typename Tile::Element;
    using Layout = typename Tile::Layout;
    constexpr std::uint32_t queryTile = 0, gradientTile = Tile::rowTileBytes, stages = 2 * Tile::rowTileBytes,
                            stageBytes = 2 * Tile::keyTileBytes;
    const FlashBlock<Tile> block(m, s, arrays);
    KeyWalk<Tile> walk(m, block);
    const Rows<Element> gradient{static_cast<const Element*>(arrays.outputGradient) + queryStart(s, block.head),
                                 s.queries};
    copyTileAsync<Layout, Tile::rows, Tile::threads>(m, queryTile, block.query, block.firstRow);
    copyTileAsync<Layout, Tile::rows, Tile::threads>(m, gradientTile, gradient, block.firstRow);
    walk.copyNext(m, stages);
    m.commitCopies();

    float logSumExp[Tile::strips][2], delta[Tile::strips][2];
    loadRowNumbers<Tile>(m, logSumExp, delta, s, arrays, block);
    typename Tile::Output queryGradient;
    queryGradient.clear(m);
    MEMSCAPE_NO_UNROLL
    for (int tile = 0; tile < block.tiles; ++tile) {
        const std::uint32_t stage = stages + std::uint32_t(tile % 2) * stageBytes;
        m.template waitForCopies<0>();
        m.syncThreads();
        if (tile + 1 < block.tiles)
            walk.copyNext(m, stages + std::uint32_t((tile + 1) % 2) * stageBytes);
        m.commitCopies();
        typename Tile::Scores scores, ds;
        productOfTiles<Tile>(m, scores, queryTile, stage);
        productOfTiles<Tile>(m, ds, gradientTile, stage + Tile::keyTileBytes);
        maskTile<Tile>(m, scores, s, block, tile * Tile::keys);
        plainWeights(m, scores, ds, logSumExp, delta, s.scale * logTwoOfE);
        addProduct<Tile>(m, queryGradient, ds, stage);
    }
    writeScaled(m, queryGradient, s.scale, static_cast<Element*>(arrays.queryGradient) + queryStart(s, block.head),
                block.warpRow, s.queries);
}

} // namespace memscape::cuda
