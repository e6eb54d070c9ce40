// SPDX-License-Identifier: Apache-2.0
// The gradients of flash attention, without a matrix of scores. With P = e^(scale Q Kᵀ − LSE):
//
//   delta = Σ_d O ∘ dO            one number a row, a pass of its own
//   dV = Pᵀ dO      dP = dO Vᵀ      dS = P ∘ (dP − delta)      dQ = scale dS K      dK = scale dSᵀ Q
//
// Two passes over the tiles, and every gradient has one writer, so the same inputs give the same
// bits: gradientsOfKeys walks over the rows of Q for its 64 keys and keeps dK and dV in registers;
// gradientsOfQueries walks over the keys for its 64 rows and keeps dQ. S and dP are made in both:
// seven products of N² d where one pass with atomic additions to dQ needs five, 1.4 times the
// multiplications, and the floats that the atomic additions would need beside dQ are saved.
//
// The first pass works on the transposed scores, keys as rows: then Pᵀ and dSᵀ come out of the
// tensor cores as the left side of dV and dK, and neither passes through shared memory.
// Source: Dao, "FlashAttention-2", arXiv:2307.08691, algorithm 2. Needs sm_80.
#pragma once

#include "kernels/cuda/attention/flash_tile.h"

namespace memscape::cuda {

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
    {
    }
};

constexpr int deltaThreads = 128;

/// delta of row (block × 4 + warp), counted over all heads; a lane takes two neighbours at a time.
template <typename Element, int headDim, typename Machine>
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
}

// ---- dK and dV --------------------------------------------------------------------------------

/// 64 keys of a block, 16 of a warp; tiles of 64 rows of Q, or 32 where a row is long: dK and dV
/// alone take a head dimension of registers.
template <typename TheElement, int theHeadDim> struct KeysTile
{
    using Element = TheElement;
    using Layout = TileLayout<theHeadDim / chunkElements>;
    static constexpr int headDim = theHeadDim, threads = 128, keys = 64;
    static constexpr int queries = headDim == 64 ? 64 : 32;
    static constexpr int queryBlocks = queries / mmaColumns, outputBlocks = headDim / mmaColumns;
    static constexpr int depthSteps = headDim / mmaDepth, querySteps = queries / mmaDepth;
    static constexpr int keyTileBytes = keys * Layout::rowBytes;
    static constexpr int queryTileBytes = queries * Layout::rowBytes;
    /// Behind the tiles of a stage: log-sum-exp and delta of its rows.
    static constexpr int stageBytes = 2 * queryTileBytes + 2 * queries * int(sizeof(float));
    static constexpr int sharedBytes = 2 * keyTileBytes + 2 * stageBytes;
    using Scores = Sums<1, queryBlocks>;
    using Gradient = Sums<1, outputBlocks>;
};

/// The tiles of Q that a block of keys walks over: of every head that reads these keys, from the
/// first tile that sees any of them.
struct QueryWalk
{
    int firstTile, tilesPerHead, firstHead, total;

    MEMSCAPE_BOTH QueryWalk(const AttentionSizes& s, int kvHead, int firstKey, int queries)
        : firstTile(firstRowTile(s, firstKey, queries))
        , tilesPerHead(over(s.queries, queries) - firstTile)
        , firstHead(firstQueryPlane(s, kvHead))
        , total(tilesPerHead * (s.heads / s.kvHeads))
    {
    }
    MEMSCAPE_BOTH int head(int turn) const { return firstHead + turn / tilesPerHead; }
    MEMSCAPE_BOTH int tile(int turn) const { return firstTile + turn % tilesPerHead; }
};

/// Q and dO of one turn, without waiting.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void copyQueries(Machine& m, const AttentionSizes& s,
                                 const FlashBackwardArrays<typename Tile::Element>& a,
                                 const QueryWalk& walk, int turn, std::uint32_t stage)
{
    using Layout = typename Tile::Layout;
    using Element = typename Tile::Element;
    const std::uint64_t start = queryStart(s, walk.head(turn));
    const int firstRow = walk.tile(turn) * Tile::queries;
    copyTileAsync<Layout, Tile::queries, Tile::threads>(
        m, stage, Rows<Element>{a.query + start, s.queries}, firstRow);
    copyTileAsync<Layout, Tile::queries, Tile::threads>(
        m, stage + Tile::queryTileBytes, Rows<Element>{a.outputGradient + start, s.queries},
        firstRow);
}

/// Where threads 0 … 2 × queries - 1 keep one number each: log-sum-exp, in powers of two, then
/// delta. Rows that do not exist have zeros, and with them no share in any gradient.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL float rowNumber(Machine& m, const AttentionSizes& s,
                                const FlashBackwardArrays<typename Tile::Element>& a,
                                const QueryWalk& walk, int turn)
{
    const int row = walk.tile(turn) * Tile::queries + m.thread() % Tile::queries;
    if (m.thread() >= 2 * Tile::queries || row >= s.queries)
        return 0;
    const std::int64_t at = std::int64_t(walk.head(turn)) * s.queries + row;
    return m.thread() < Tile::queries ? m.load(a.logSumExp + at) * logTwoOfE : m.load(a.delta + at);
}
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void keepRowNumber(Machine& m, std::uint32_t stage, float number)
{
    if (m.thread() < 2 * Tile::queries)
        m.storeShared(stage + std::uint32_t(2 * Tile::queryTileBytes + m.thread() * 4), number);
}

/// left · tileᵀ over the whole head dimension; left: the warp's 16 rows of a tile in shared memory.
template <typename Tile, int blocks, typename Machine>
MEMSCAPE_KERNEL void productOfTiles(Machine& m, Sums<1, blocks>& sums, std::uint32_t left,
                                    std::uint32_t right)
{
    const std::uint32_t lane =
        leftOfLane<typename Tile::Layout>(m, left, m.thread() / 32 * mmaRows);
    sums.clear(m);
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::depthSteps; ++step) {
        std::uint32_t a[1][4];
        loadLeft<typename Tile::Layout>(m, a, lane, 2 * step);
        addScores<typename Tile::Element, typename Tile::Layout>(m, sums, a, right, 2 * step);
    }
}

/// sums += left · tile, left's rounded sums as the depth.
template <typename Tile, int depthBlocks, int blocks, typename Machine>
MEMSCAPE_KERNEL void addProduct(Machine& m, Sums<1, blocks>& sums, const Sums<1, depthBlocks>& left,
                                std::uint32_t tile)
{
    MEMSCAPE_UNROLL
    for (int step = 0; step < depthBlocks / 2; ++step) {
        std::uint32_t a[1][4];
        asLeft<typename Tile::Element>(m, a[0], left.at[0][2 * step], left.at[0][2 * step + 1]);
        addValues<typename Tile::Element, typename Tile::Layout>(m, sums, a, tile, step * mmaDepth);
    }
}

/// Pᵀ and dSᵀ from Sᵀ and dPᵀ, in place: rows are keys from `key` on, columns queries from `query`.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void transposedWeights(Machine& m, const AttentionSizes& s,
                                       typename Tile::Scores& p, typename Tile::Scores& ds,
                                       std::uint32_t numbers, int key, int query)
{
    const bool all = seesAll(s, query, key, mmaRows); // keys beyond the last one are not written
    MEMSCAPE_UNROLL
    for (int b = 0; b < Tile::queryBlocks; ++b) {
        MEMSCAPE_UNROLL
        for (int r = 0; r < 4; ++r) {
            const Place place = placeInD(m.thread() % 32, r);
            const int column = b * mmaColumns + place.column;
            const std::uint32_t at = numbers + std::uint32_t(column * 4);
            const float logSumExp = m.template loadShared<float>(at);
            const float delta = m.template loadShared<float>(at + Tile::queries * 4);
            float weight = m.powerOfTwo(p.at[0][b][r] * (s.scale * logTwoOfE) - logSumExp);
            if (!all && !sees(s, query + column, key + place.row))
                weight = 0;
            p.at[0][b][r] = weight;
            ds.at[0][b][r] = weight * (ds.at[0][b][r] - delta);
        }
    }
}

/// Block (x, y): dK and dV of 64 keys of key/value head y.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void gradientsOfKeys(Machine& m, const AttentionSizes& s,
                                     const AttentionArrays& arrays)
{
    using Element = typename Tile::Element;
    using Layout = typename Tile::Layout;
    constexpr std::uint32_t keyTile = 0, valueTile = Tile::keyTileBytes,
                            stages = 2 * Tile::keyTileBytes;
    const FlashBackwardArrays<Element> a(arrays);
    const int firstKey = m.blockX() * Tile::keys;
    const std::uint64_t own = keyStart(s, m.blockY());
    const QueryWalk walk(s, m.blockY(), firstKey, Tile::queries);
    copyTileAsync<Layout, Tile::keys, Tile::threads>(m, keyTile, Rows<Element>{a.key + own, s.keys},
                                                     firstKey);
    copyTileAsync<Layout, Tile::keys, Tile::threads>(
        m, valueTile, Rows<Element>{a.value + own, s.keys}, firstKey);
    copyQueries<Tile>(m, s, a, walk, 0, stages);
    m.commitCopies();
    keepRowNumber<Tile>(m, stages, rowNumber<Tile>(m, s, a, walk, 0));

    typename Tile::Gradient keyGradient, valueGradient;
    keyGradient.clear(m);
    valueGradient.clear(m);
    const int warpKey = firstKey + m.thread() / 32 * mmaRows;
    MEMSCAPE_NO_UNROLL
    for (int turn = 0; turn < walk.total; ++turn) {
        const std::uint32_t stage = stages + std::uint32_t(turn % 2 * Tile::stageBytes),
                            next = stages + std::uint32_t((turn + 1) % 2 * Tile::stageBytes);
        const bool goesOn = turn + 1 < walk.total;
        m.template waitForCopies<0>();
        m.syncThreads();
        float number = 0;
        if (goesOn) {
            copyQueries<Tile>(m, s, a, walk, turn + 1, next);
            number = rowNumber<Tile>(m, s, a, walk, turn + 1);
        }
        m.commitCopies();
        typename Tile::Scores p, ds;
        productOfTiles<Tile>(m, p, keyTile, stage);
        productOfTiles<Tile>(m, ds, valueTile, stage + Tile::queryTileBytes);
        transposedWeights<Tile>(m, s, p, ds, stage + 2 * Tile::queryTileBytes, warpKey,
                                walk.tile(turn) * Tile::queries);
        addProduct<Tile>(m, valueGradient, p, stage + Tile::queryTileBytes);
        addProduct<Tile>(m, keyGradient, ds, stage);
        if (goesOn)
            keepRowNumber<Tile>(m, next, number);
    }
    const float ones[1][2] = {{1, 1}}, scales[1][2] = {{s.scale, s.scale}};
    writeRows(m, valueGradient, ones, static_cast<Element*>(arrays.valueGradient) + own, warpKey,
              s.keys);
    writeRows(m, keyGradient, scales, static_cast<Element*>(arrays.keyGradient) + own, warpKey,
              s.keys);
}

// ---- dQ ---------------------------------------------------------------------------------------

template <typename Element, int headDim> using QueriesTile = FlashTile<Element, headDim, 4, 1, 64>;
template <typename Tile>
constexpr int flashSharedBytesOfQueries = 2 * Tile::rowTileBytes + 4 * Tile::keyTileBytes;

/// dS from S and dP, in place of dP; rows are queries, `numbers` log-sum-exp and delta of each half.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void plainWeights(Machine& m, const AttentionSizes& s,
                                  const typename Tile::Scores& scores, typename Tile::Scores& ds,
                                  const float (&logSumExp)[2], const float (&delta)[2], int row,
                                  int key)
{
    const bool all = seesAll(s, row, key, Tile::keys);
    MEMSCAPE_UNROLL
    for (int b = 0; b < Tile::keyBlocks; ++b) {
        MEMSCAPE_UNROLL
        for (int r = 0; r < 4; ++r) {
            const Place place = placeInD(m.thread() % 32, r);
            float weight =
                m.powerOfTwo(scores.at[0][b][r] * (s.scale * logTwoOfE) - logSumExp[r / 2]);
            if (!all && !sees(s, row + place.row, key + b * mmaColumns + place.column))
                weight = 0;
            ds.at[0][b][r] = weight * (ds.at[0][b][r] - delta[r / 2]);
        }
    }
}

/// Block (x, y): dQ of 64 rows of head y.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void gradientsOfQueries(Machine& m, const AttentionSizes& s,
                                        const AttentionArrays& arrays)
{
    using Element = typename Tile::Element;
    using Layout = typename Tile::Layout;
    constexpr std::uint32_t queryTile = 0, gradientTile = Tile::rowTileBytes,
                            stages = 2 * Tile::rowTileBytes, stageBytes = 2 * Tile::keyTileBytes;
    const FlashBlock<Tile> block(m, s, arrays);
    KeyWalk<Tile> walk(m, block);
    const Rows<Element> gradient{
        static_cast<const Element*>(arrays.outputGradient) + queryStart(s, block.head), s.queries};
    copyTileAsync<Layout, Tile::rows, Tile::threads>(m, queryTile, block.query, block.firstRow);
    copyTileAsync<Layout, Tile::rows, Tile::threads>(m, gradientTile, gradient, block.firstRow);
    walk.copyNext(m, stages);
    m.commitCopies();

    float logSumExp[2] = {0, 0}, delta[2] = {0, 0};
    MEMSCAPE_UNROLL
    for (int half = 0; half < 2; ++half) {
        const int row = block.warpRow + placeInD(m.thread() % 32, 2 * half).row;
        if (row < s.queries) {
            const std::int64_t at = std::int64_t(block.head) * s.queries + row;
            logSumExp[half] = m.load(arrays.logSumExp + at) * logTwoOfE;
            delta[half] = m.load(arrays.delta + at);
        }
    }
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
        plainWeights<Tile>(m, s, scores, ds, logSumExp, delta, block.warpRow, tile * Tile::keys);
        addProduct<Tile>(m, queryGradient, ds, stage);
    }
    const float scales[1][2] = {{s.scale, s.scale}};
    writeRows(m, queryGradient, scales,
              static_cast<Element*>(arrays.queryGradient) + queryStart(s, block.head), block.warpRow,
              s.queries);
}

} // namespace memscape::cuda
