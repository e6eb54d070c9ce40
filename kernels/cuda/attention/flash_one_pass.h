// SPDX-License-Identifier: Apache-2.0
// The gradients of flash attention in one pass, FlashAttention-2's own: the backward of version 9,
// to be held against the two passes of flash_backward.h, which has the formulas.
//
// A block keeps dK and dV of its keys in registers and walks over the rows of Q. S and dP are made
// once, so there are five products of N² d instead of seven. P and dS go through shared memory, for
// a warp's 32 × 32 of them is not what it multiplies next: rows × keys for S, keys × d for dV and
// dK, rows × d for dQ. What a tile of keys contributes to dQ is added to an array of floats by
// atomic additions, four neighbours at a time (one instruction on sm_90, four before); flashDelta()
// clears that array, and a kernel of its own scales and rounds it.
//
// The additions of a row's tiles of keys arrive in any order and floats are rounded at each: dQ may
// differ in its last bits from run to run. dK and dV do not.
//
// Asked of shared memory for 64 rows × 64 keys, in clocks, as flash_backward.h counts:
//
//                          matrices    P and dS written    copies    in all    (wide two passes)
//     d 128, 64 × 128      2304        128                 128       2560      3968
//     d 128, 64 × 64       2176        128                 256       2560      3968
//     d 64, 128 × 128      1152        128                 64        1344      1451
//     d 64, 64 × 128       1408        128                 64        1600      1451
//
// Asked of L2 beside: N / keys times 4 N d bytes of additions for every head, and 8 N d to clear the
// sums and to read them again; of DRAM 16 N d where they do not stay in L2. Two passes ask neither.
//
// Sums and scores take 192 of a thread's 255 registers. What a product's addresses are made of is
// therefore asked for anew in every turn (threadAnew), where it would be kept and sums pushed out.
//
// Tiles: 128 keys by eight warps, and 64 rows, or 128 with a head dimension of 64, as in
// FlashAttention-2. That is 145 KiB of shared memory, which sm_86, 89 and 120 lack: there 64 × 64
// by four warps, or 64 × 128. dO has one place in shared memory and Q two, so the next dO is on its
// way from dV's product on. Source: Dao, "FlashAttention-2", arXiv:2307.08691, algorithm 2. Needs
// sm_80.
#pragma once

#include "kernels/cuda/attention/flash_backward.h"

namespace memscape::cuda {

/// How a product's rows × columns are shared out: every warp has 32 rows, `down` of them lie above
/// each other.
template <int rows, int theColumns, int warps> struct Share
{
    static constexpr int strips = 2, rowsOfWarp = strips * mmaRows, down = rows / rowsOfWarp;
    static constexpr int columns = theColumns / (warps / down), blocks = columns / mmaColumns;
    static constexpr int chunks = columns / chunkElements;
    static_assert(down * (warps / down) == warps && blocks % 2 == 0 && blocks > 0,
                  "every warp has a part of equal size, of whole pairs of matrices");
    int row, chunk; ///< the warp's first row, and its first column's chunk

    MEMSCAPE_BOTH explicit Share(int thread)
        : row(thread / 32 % down * rowsOfWarp)
        , chunk(thread / 32 / down * chunks)
    { }
    using Part = Sums<strips, blocks>;
};

template <typename TheElement, int theHeadDim, int theQueries, int theKeys, int theWarps> struct OnePassTile
{
    using Element = TheElement;
    using Layout = TileLayout<theHeadDim / chunkElements>;
    using WeightLayout = TileLayout<theKeys / chunkElements>;
    static constexpr int headDim = theHeadDim, keys = theKeys, queries = theQueries;
    static constexpr int threads = theWarps * 32, depthSteps = headDim / mmaDepth;
    using OfScores = Share<queries, keys, theWarps>;
    using OfKeys = Share<keys, headDim, theWarps>;
    using OfQueries = Share<queries, headDim, theWarps>;
    using Scores = typename OfScores::Part;
    static constexpr int keyTileBytes = keys * Layout::rowBytes;
    static constexpr int queryTileBytes = queries * Layout::rowBytes;
    static constexpr int weightBytes = queries * WeightLayout::rowBytes;
    /// Log-sum-exp and delta of the rows of a tile.
    static constexpr int numberBytes = 2 * queries * int(sizeof(float));
    // Where they lie; of Q and the numbers there are two, in turns.
    static constexpr std::uint32_t keyTile = 0, valueTile = keyTileBytes, weightTile = 2 * keyTileBytes,
                                   scoreGradientTile = weightTile + weightBytes,
                                   gradientTile = scoreGradientTile + weightBytes,
                                   queryTile = gradientTile + queryTileBytes, numbers = queryTile + 2 * queryTileBytes;
    static constexpr int sharedBytes = int(numbers) + 2 * numberBytes;
};

template <typename Element, int headDim>
using LargeOnePassTile = OnePassTile<Element, headDim, headDim == 64 ? 128 : 64, 128, 8>;
/// Where the large one does not fit.
template <typename Element, int headDim>
using SmallOnePassTile = OnePassTile<Element, headDim, 64, headDim == 64 ? 128 : 64, headDim == 64 ? 8 : 4>;

// ---- products ---------------------------------------------------------------------------------

/// Rows of `left` times rows of `right`: of S = Q Kᵀ and dP = dO Vᵀ the warp's part.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void scoresOfPart(Machine& m, typename Tile::Scores& sums, std::uint32_t left, std::uint32_t right)
{
    using Layout = typename Tile::Layout;
    const typename Tile::OfScores share(m.thread());
    const std::uint32_t lane = leftOfLane<Layout>(m, left, share.row);
    const std::uint32_t rows = right + std::uint32_t(share.chunk * chunkElements * Layout::rowBytes);
    sums.clear(m);
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::depthSteps; ++step) {
        std::uint32_t a[2][4];
        loadLeft<Layout>(m, a, lane, 2 * step);
        addScores<typename Tile::Element, Layout>(m, sums, a, rows, 2 * step);
    }
}

/// sums += Pᵀ dO or dSᵀ Q: rows are the depth of both, so both are turned as they are loaded.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void addOverQueries(Machine& m, typename Tile::OfKeys::Part& sums, std::uint32_t weights,
                                    std::uint32_t rows)
{
    using Layout = typename Tile::WeightLayout;
    const int thread = m.threadAnew();
    const typename Tile::OfKeys share(thread);
    const TilePlace place = matrixRowAcrossFirst(thread % 32);
    const std::uint32_t left =
        Layout::further(weights + Layout::at(place.row, place.column), share.row / chunkElements);
    const std::uint32_t right = valuesOfLane<typename Tile::Layout>(m, rows, share.chunk);
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::queries / mmaDepth; ++step) {
        std::uint32_t a[2][4];
        MEMSCAPE_UNROLL
        for (int strip = 0; strip < 2; ++strip)
            m.loadMatricesTransposed(
                a[strip], Layout::further(left, 2 * strip) + std::uint32_t(step * mmaDepth * Layout::rowBytes));
        addValuesFrom<typename Tile::Element, typename Tile::Layout>(m, sums, a, right, step * mmaDepth);
    }
}

/// sums = dS K.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void productOverKeys(Machine& m, typename Tile::OfQueries::Part& sums)
{
    const int thread = m.threadAnew();
    const typename Tile::OfQueries share(thread);
    const std::uint32_t left = leftOfLane<typename Tile::WeightLayout>(m, Tile::scoreGradientTile, share.row);
    const std::uint32_t right = valuesOfLane<typename Tile::Layout>(m, Tile::keyTile, share.chunk);
    sums.clear(m);
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::keys / mmaDepth; ++step) {
        std::uint32_t a[2][4];
        loadLeft<typename Tile::WeightLayout>(m, a, left, 2 * step);
        addValuesFrom<typename Tile::Element, typename Tile::Layout>(m, sums, a, right, step * mmaDepth);
    }
}

// ---- between the products ---------------------------------------------------------------------

/// P and dS from S and dP, in place. `numbers`: log-sum-exp of the tile's rows, delta behind.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void weightsOfPart(Machine& m, typename Tile::Scores& p, typename Tile::Scores& ds,
                                   std::uint32_t numbers, float scale)
{
    using Share = typename Tile::OfScores;
    const int thread = m.threadAnew(), firstRow = Share(thread).row;
    MEMSCAPE_UNROLL
    for (int half = 0; half < 2 * Share::strips; ++half) { // rows group, group + 8, of each strip
        const int row = firstRow + half * 8 + placeInD(thread % 32, 0).row;
        const std::uint32_t at = numbers + std::uint32_t(row * 4);
        const float logSumExp = m.template loadShared<float>(at);
        const float delta = m.template loadShared<float>(at + Tile::queries * 4);
        MEMSCAPE_UNROLL
        for (int b = 0; b < Share::blocks; ++b) {
            MEMSCAPE_UNROLL
            for (int r = half % 2 * 2; r < half % 2 * 2 + 2; ++r) {
                float& weight = p.at[half / 2][b][r];
                float& gradient = ds.at[half / 2][b][r];
                weight = m.powerOfTwo(weight * scale - logSumExp);
                gradient = weight * (gradient - delta);
            }
        }
    }
}

/// The warp's part into a tile of rows × keys, rounded. A warp's first chunk is a multiple of its
/// chunks, so that an exclusive or leads to each.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void keepPart(Machine& m, const typename Tile::Scores& part, std::uint32_t tile)
{
    using Layout = typename Tile::WeightLayout;
    using Share = typename Tile::OfScores;
    const Share share(m.thread());
    const TilePlace place = placeInD(m.thread() % 32, 0);
    const std::uint32_t lane = tile + Layout::at(share.row + place.row, share.chunk) + std::uint32_t(place.column * 2);
    MEMSCAPE_UNROLL
    for (int half = 0; half < 2 * Share::strips; ++half) {
        MEMSCAPE_UNROLL
        for (int b = 0; b < Share::blocks; ++b) {
            const float* two = part.at[half / 2][b] + half % 2 * 2;
            m.storeShared(Layout::further(lane, b) + std::uint32_t(half * 8 * Layout::rowBytes),
                          m.template pack<typename Tile::Element>(two[0], two[1]));
        }
    }
}

// ---- dQ in floats -----------------------------------------------------------------------------

/// Sixteen neighbours of a row of dQ, in the order in which they are kept as floats: what a lane
/// has of two blocks of sums lies side by side.
constexpr int sumsTogether = 16, sumsOfLane = 4;

/// Adds the warp's part of dQ; a row lies `headDim` floats after the one before.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void addToSums(Machine& m, const typename Tile::OfQueries::Part& part, float* to, int firstRow,
                               int rowCount)
{
    using Share = typename Tile::OfQueries;
    const int thread = m.threadAnew();
    const Share share(thread);
    const TilePlace place = placeInD(thread % 32, 0);
    MEMSCAPE_UNROLL
    for (int half = 0; half < 2 * Share::strips; ++half) {
        const int row = firstRow + share.row + half * 8 + place.row;
        if (row >= rowCount)
            continue;
        float* at =
            to + std::int64_t(row) * Tile::headDim + share.chunk * chunkElements + place.column / 2 * sumsOfLane;
        MEMSCAPE_UNROLL
        for (int b = 0; b < Share::blocks; b += 2) {
            const float* left = part.at[half / 2][b] + half % 2 * 2;
            const float* right = part.at[half / 2][b + 1] + half % 2 * 2;
            m.addFourAtomically(at + b * mmaColumns, left[0], left[1], right[0], right[1]);
        }
    }
}

constexpr int roundThreads = 128;

/// dQ from its sums, sixteen neighbours a thread.
template <typename Element, int headDim, typename Machine>
MEMSCAPE_KERNEL void roundQueryGradient(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays)
{
    struct alignas(16) Four
    {
        float at[sumsOfLane];
    };
    const std::int64_t thread = std::int64_t(m.blockX()) * roundThreads + m.thread();
    if (thread >= std::int64_t(s.batch) * s.heads * s.queries * (headDim / sumsTogether))
        return;
    const auto* from = reinterpret_cast<const Four*>(arrays.queryGradientSums + thread * sumsTogether);
    auto* to = reinterpret_cast<Chunk*>(static_cast<Element*>(arrays.queryGradient) + thread * sumsTogether);
    std::uint32_t words[2][4];
    MEMSCAPE_UNROLL
    for (int lane = 0; lane < 4; ++lane) {
        const Four four = m.load(from + lane);
        MEMSCAPE_UNROLL
        for (int block = 0; block < 2; ++block)
            words[block][lane] =
                m.template pack<Element>(four.at[2 * block] * s.scale, four.at[2 * block + 1] * s.scale);
    }
    MEMSCAPE_UNROLL
    for (int block = 0; block < 2; ++block)
        m.store(to + block, Chunk{words[block][0], words[block][1], words[block][2], words[block][3]});
}

// ---- the block --------------------------------------------------------------------------------

/// The warp's part of dK or dV, times a factor.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void writeKeys(Machine& m, const typename Tile::OfKeys::Part& part, float factor,
                               typename Tile::Element* to, int firstKey, int keyCount)
{
    using Share = typename Tile::OfKeys;
    const Share share(m.thread());
    const TilePlace place = placeInD(m.thread() % 32, 0);
    MEMSCAPE_UNROLL
    for (int half = 0; half < 2 * Share::strips; ++half) {
        const int key = firstKey + share.row + half * 8 + place.row;
        if (key >= keyCount)
            continue;
        auto* at = to + std::int64_t(key) * Tile::headDim + share.chunk * chunkElements + place.column;
        MEMSCAPE_UNROLL
        for (int b = 0; b < Share::blocks; ++b) {
            const float* two = part.at[half / 2][b] + half % 2 * 2;
            m.store(reinterpret_cast<std::uint32_t*>(at + b * mmaColumns),
                    m.template pack<typename Tile::Element>(two[0] * factor, two[1] * factor));
        }
    }
}

/// Q or dO of the tile that the walk stands before, without waiting.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void copyRows(Machine& m, const AttentionSizes& s, const QueryWalk& walk,
                              const typename Tile::Element* from, std::uint32_t to)
{
    copyTileAsync<typename Tile::Layout, Tile::queries, Tile::threads>(
        m, to, Rows<typename Tile::Element>{from + queryStart(s, walk.head), s.queries}, walk.row);
}

template <typename Machine> MEMSCAPE_KERNEL void keepNumber(Machine& m, std::uint32_t numbers, int count, float number)
{
    if (m.thread() < count)
        m.storeShared(numbers + std::uint32_t(m.thread() * 4), number);
}

/// P and dS of a tile of Q, from the products to shared memory.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void keepWeights(Machine& m, const AttentionSizes& s, std::uint32_t queryTile, std::uint32_t numbers,
                                 int firstQuery, int firstKey)
{
    const typename Tile::OfScores share(m.thread());
    const int query = firstQuery + share.row, key = firstKey + share.chunk * chunkElements;
    typename Tile::Scores p, ds;
    scoresOfPart<Tile>(m, p, queryTile, Tile::keyTile);
    scoresOfPart<Tile>(m, ds, Tile::gradientTile, Tile::valueTile);
    if (!seesAll(s, query, key, Tile::OfScores::columns))
        maskScores(m, p, s, query, key);
    weightsOfPart<Tile>(m, p, ds, numbers, s.scale * logTwoOfE);
    keepPart<Tile>(m, p, Tile::weightTile);
    keepPart<Tile>(m, ds, Tile::scoreGradientTile);
}

/// Block (x, y): dK and dV of Tile::keys keys of key/value head y, and what they add to dQ.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void gradientsInOnePass(Machine& m, const AttentionSizes& s, const AttentionArrays& arrays)
{
    using Element = typename Tile::Element;
    using Layout = typename Tile::Layout;
    constexpr int numberCount = 2 * Tile::queries;
    const FlashBackwardArrays<Element> a(arrays);
    const int firstKey = m.blockX() * Tile::keys;
    const std::uint64_t own = keyStart(s, m.blockY());
    QueryWalk walk(s, m.blockY(), firstKey, Tile::queries);
    copyTileAsync<Layout, Tile::keys, Tile::threads>(m, Tile::keyTile, Rows<Element>{a.key + own, s.keys}, firstKey);
    copyTileAsync<Layout, Tile::keys, Tile::threads>(m, Tile::valueTile, Rows<Element>{a.value + own, s.keys},
                                                     firstKey);
    copyRows<Tile>(m, s, walk, a.query, Tile::queryTile);
    copyRows<Tile>(m, s, walk, a.outputGradient, Tile::gradientTile);
    m.commitCopies();
    keepNumber(m, Tile::numbers, numberCount, rowNumber<Tile>(m, s, a, walk));

    typename Tile::OfKeys::Part keyGradient, valueGradient;
    keyGradient.clear(m);
    valueGradient.clear(m);
    MEMSCAPE_NO_UNROLL
    for (int turn = 0; turn < walk.turns; ++turn) {
        const auto odd = std::uint32_t(turn % 2), other = 1 - odd;
        const std::uint32_t queryTile = Tile::queryTile + odd * Tile::queryTileBytes;
        const bool goesOn = turn + 1 < walk.turns;
        const QueryWalk here = walk;
        walk.step(s);
        m.template waitForCopies<0>();
        m.syncThreads(); // this tile has arrived; every warp has read the last Q, P and dS
        if (goesOn)
            copyRows<Tile>(m, s, walk, a.query, Tile::queryTile + other * Tile::queryTileBytes);
        keepWeights<Tile>(m, s, queryTile, Tile::numbers + odd * Tile::numberBytes, here.row, firstKey);
        const float number = goesOn ? rowNumber<Tile>(m, s, a, walk) : 0;
        m.syncThreads(); // P and dS are whole
        addOverQueries<Tile>(m, valueGradient, Tile::weightTile, Tile::gradientTile);
        m.syncThreads(); // every warp has read dO
        if (goesOn) {
            copyRows<Tile>(m, s, walk, a.outputGradient, Tile::gradientTile);
        }
        m.commitCopies();
        typename Tile::OfQueries::Part queryGradient;
        productOverKeys<Tile>(m, queryGradient);
        addToSums<Tile>(m, queryGradient, arrays.queryGradientSums + queryStart(s, here.head), here.row, s.queries);
        addOverQueries<Tile>(m, keyGradient, Tile::scoreGradientTile, queryTile);
        if (goesOn)
            keepNumber(m, Tile::numbers + other * Tile::numberBytes, numberCount, number);
    }
    writeKeys<Tile>(m, valueGradient, 1, static_cast<Element*>(arrays.valueGradient) + own, firstKey, s.keys);
    writeKeys<Tile>(m, keyGradient, s.scale, static_cast<Element*>(arrays.keyGradient) + own, firstKey, s.keys);
}

} // namespace memscape::cuda
