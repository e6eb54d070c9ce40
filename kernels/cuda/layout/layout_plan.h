// SPDX-License-Identifier: Apache-2.0
// Which element of a view a thread reads, which tile of a transposition a block turns, where an element of the tile
// lies in shared memory, and which kernel copies which walk: arithmetic that the GPU and the tests on the host compile
// from the same lines. C++17, no library of ours: nvcc reads this file.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define MEMSCAPE_VIEW __host__ __device__ inline
#else
#define MEMSCAPE_VIEW inline
#endif

namespace memscape::cuda {

constexpr int viewLoops = 8;

// ---- division --------------------------------------------------------------------------------

constexpr std::uint64_t dividendLimit = std::uint64_t(1) << 31;

/// n / divisor as one multiplication and one shift: a GPU has no instruction that divides. With 2^l the power of two
/// from the divisor on, m = ⌈2^(31 + l) / divisor⌉ fits 32 bits, and ⌊n m / 2^(31 + l)⌋ is the quotient of every
/// n < 2^31. Source: Granlund and Montgomery, Division by Invariant Integers using Multiplication, 1994, §4.
struct Division
{
    std::uint32_t divisor = 1, multiplier = std::uint32_t(1) << 31;
    int shift = 31;
};

/// Of 1 … 2^31.
inline Division divisionBy(std::uint64_t divisor)
{
    Division division;
    division.divisor = static_cast<std::uint32_t>(divisor);
    while ((std::uint64_t(1) << (division.shift - 31)) < divisor)
        ++division.shift;
    division.multiplier = static_cast<std::uint32_t>(((std::uint64_t(1) << division.shift) - 1) / divisor + 1);
    return division;
}

MEMSCAPE_VIEW std::uint32_t quotient(const Division& division, std::uint32_t n)
{
    return static_cast<std::uint32_t>(std::uint64_t(n) * division.multiplier >> division.shift);
}

// ---- element by element ----------------------------------------------------------------------

/// A walk over a view: loops fastest first, as TensorWalk has them; counts and strides in elements.
struct ViewNest
{
    using Index = std::uint64_t;
    int rank = 0;
    std::uint64_t count[viewLoops] = {}, stride[viewLoops] = {};
    std::uint64_t offset = 0, elements = 1;
};

/// The same in 32 bits and without divisions, where isNarrow().
struct NarrowNest
{
    using Index = std::uint32_t;
    int rank = 0;
    Division count[viewLoops];
    std::uint32_t stride[viewLoops] = {}, offset = 0;
    std::uint64_t elements = 1;
};

/// The last element that is read, of a storage that begins at 0.
inline std::uint64_t lastElement(const ViewNest& nest)
{
    std::uint64_t last = nest.offset;
    for (int i = 0; i < nest.rank; ++i)
        last += (nest.count[i] - 1) * nest.stride[i];
    return last;
}

inline bool isNarrow(const ViewNest& nest)
{
    return nest.elements <= dividendLimit && lastElement(nest) <= 0xffffffffULL;
}

inline NarrowNest narrowNest(const ViewNest& nest)
{
    NarrowNest narrow;
    narrow.rank = nest.rank;
    narrow.offset = static_cast<std::uint32_t>(nest.offset);
    narrow.elements = nest.elements;
    for (int i = 0; i < nest.rank; ++i) {
        narrow.count[i] = divisionBy(nest.count[i]);
        narrow.stride[i] = static_cast<std::uint32_t>(nest.stride[i]);
    }
    return narrow;
}

MEMSCAPE_VIEW std::uint64_t divided(std::uint64_t count, std::uint64_t n)
{
    return n / count;
}
MEMSCAPE_VIEW std::uint32_t divided(const Division& count, std::uint32_t n)
{
    return quotient(count, n);
}
MEMSCAPE_VIEW std::uint64_t valueOf(std::uint64_t count)
{
    return count;
}
MEMSCAPE_VIEW std::uint32_t valueOf(const Division& count)
{
    return count.divisor;
}

/// Elements of the storage at several visits: loop by loop, so that the chains of one loop run side by side. What the
/// slowest loop is given is less than its count: it does not divide.
template <int visits, typename Nest>
MEMSCAPE_VIEW void elementsAt(const Nest& nest, typename Nest::Index (&visit)[visits],
                              typename Nest::Index (&at)[visits])
{
    for (int k = 0; k < visits; ++k)
        at[k] = nest.offset;
    for (int i = 0; i + 1 < nest.rank; ++i) {
        for (int k = 0; k < visits; ++k) {
            const typename Nest::Index rest = divided(nest.count[i], visit[k]);
            at[k] += (visit[k] - rest * valueOf(nest.count[i])) * nest.stride[i];
            visit[k] = rest;
        }
    }
    for (int k = 0; k < visits; ++k)
        at[k] += nest.rank > 0 ? visit[k] * nest.stride[nest.rank - 1] : 0;
}

/// Element of the storage at a visit.
template <typename Nest> MEMSCAPE_VIEW std::uint64_t elementAt(const Nest& nest, typename Nest::Index visit)
{
    typename Nest::Index visits[1] = {visit}, at[1];
    elementsAt(nest, visits, at);
    return at[0];
}

/// How many neighbours of a row, at most `most`, a power of two, can be copied as one word: 1 where the fastest loop
/// does not visit neighbours. `addresses`: of storage and target, or'ed.
inline int neighboursOf(const ViewNest& nest, int elementBytes, int most, std::uint64_t addresses)
{
    if (nest.rank == 0 || nest.stride[0] != 1)
        return 1;
    std::uint64_t all = nest.count[0] | nest.offset;
    for (int i = 1; i < nest.rank; ++i)
        all |= nest.stride[i];
    while (most > 1 && (all % most != 0 || addresses % (std::uint64_t(most) * elementBytes) != 0))
        most /= 2;
    return most;
}

/// The walk over words of so many neighbours.
inline ViewNest inWords(ViewNest nest, int neighbours)
{
    if (neighbours == 1)
        return nest;
    nest.count[0] /= neighbours;
    nest.elements /= neighbours;
    nest.offset /= neighbours;
    for (int i = 1; i < nest.rank; ++i)
        nest.stride[i] /= neighbours;
    return nest;
}

// ---- transposition ---------------------------------------------------------------------------

/// A copy as the transposition of two loops: `a` is fastest in the target, `b` in the storage. The other loops are
/// planes. `turns` is false when both are the same: then rows are copied as they are, b is 1.
struct TurnPlan
{
    std::uint64_t aCount = 1, aFrom = 0;
    std::uint64_t bCount = 1, bFrom = 0, bTo = 0;
    int others = 0;
    std::uint64_t count[viewLoops] = {}, from[viewLoops] = {}, to[viewLoops] = {};
    std::uint64_t offset = 0, planes = 1;
    bool turns = false;
};

inline TurnPlan turnPlanOf(const ViewNest& nest)
{
    TurnPlan plan;
    plan.offset = nest.offset;
    if (nest.rank == 0)
        return plan;
    plan.aCount = nest.count[0];
    plan.aFrom = nest.stride[0];
    int fastest = 0;
    for (int i = 1; i < nest.rank; ++i) {
        if (nest.stride[i] > 0 && nest.stride[i] < nest.stride[fastest])
            fastest = i;
    }
    std::uint64_t step = nest.count[0];
    for (int i = 1; i < nest.rank; ++i) {
        if (i == fastest) {
            plan.bCount = nest.count[i];
            plan.bFrom = nest.stride[i];
            plan.bTo = step;
            plan.turns = true;
        } else {
            plan.count[plan.others] = nest.count[i];
            plan.from[plan.others] = nest.stride[i];
            plan.to[plan.others++] = step;
            plan.planes *= nest.count[i];
        }
        step *= nest.count[i];
    }
    return plan;
}

/// A plan cut into tiles, for the GPU.
struct TurnTiles
{
    TurnPlan plan;
    Division aTiles, bTiles, count[viewLoops];
    std::uint32_t aSide = 1, bSide = 1; ///< elements
};

struct TurnTile
{
    std::uint64_t from = 0, to = 0; ///< of the tile's first element
    int aLeft = 0, bLeft = 0;       ///< elements of the tile that there are
};

MEMSCAPE_VIEW std::uint64_t tilesOver(std::uint64_t count, std::uint64_t side)
{
    return (count + side - 1) / side;
}

inline std::uint64_t turnBlocks(const TurnPlan& plan, int aSide, int bSide)
{
    return tilesOver(plan.aCount, aSide) * tilesOver(plan.bCount, bSide) * plan.planes;
}

/// Of fewer than 2^31 blocks: then every count of tiles and planes is less, too.
inline TurnTiles turnTiles(const TurnPlan& plan, int aSide, int bSide)
{
    TurnTiles tiles;
    tiles.plan = plan;
    tiles.aSide = static_cast<std::uint32_t>(aSide);
    tiles.bSide = static_cast<std::uint32_t>(bSide);
    tiles.aTiles = divisionBy(tilesOver(plan.aCount, tiles.aSide));
    tiles.bTiles = divisionBy(tilesOver(plan.bCount, tiles.bSide));
    for (int i = 0; i < plan.others; ++i)
        tiles.count[i] = divisionBy(plan.count[i]);
    return tiles;
}

MEMSCAPE_VIEW int leftOf(std::uint64_t count, std::uint64_t first, std::uint32_t side)
{
    return static_cast<int>(count - first < side ? count - first : side);
}

/// Tiles follow each other along b, so that blocks which run together read whole rows of the storage.
MEMSCAPE_VIEW TurnTile turnTile(const TurnTiles& tiles, std::uint32_t block)
{
    const TurnPlan& plan = tiles.plan;
    std::uint32_t rest = quotient(tiles.bTiles, block);
    const std::uint64_t b = std::uint64_t(block - rest * tiles.bTiles.divisor) * tiles.bSide;
    block = rest;
    rest = quotient(tiles.aTiles, block);
    const std::uint64_t a = std::uint64_t(block - rest * tiles.aTiles.divisor) * tiles.aSide;
    TurnTile tile;
    tile.from = plan.offset + a * plan.aFrom + b * plan.bFrom;
    tile.to = b * plan.bTo + a;
    for (int i = 0; i < plan.others; ++i) {
        block = rest;
        rest = quotient(tiles.count[i], block);
        const std::uint32_t place = block - rest * tiles.count[i].divisor;
        tile.from += place * plan.from[i];
        tile.to += place * plan.to[i];
    }
    tile.aLeft = leftOf(plan.aCount, a, tiles.aSide);
    tile.bLeft = leftOf(plan.bCount, b, tiles.bSide);
    return tile;
}

constexpr int turnSide = 32; ///< elements of a tile's side in versions 2 and 3

/// Elements from row to row of the tile in shared memory: version 3 makes a row an odd number of words longer than
/// the banks go round, so that a column lies in 32 of them.
MEMSCAPE_VIEW constexpr int tileRow(int version, int elementBytes)
{
    return turnSide + (version == 2 ? 0 : elementBytes < 4 ? 4 / elementBytes : 1);
}

/// The words of 4 bytes that version 4 moves at a time, in rows of the storage and of the target: 4, 2 or 1, as all
/// sizes, strides and `addresses` (or'ed) are their multiples; 0 where there is none.
inline int chunkWordsOf(const TurnPlan& plan, int elementBytes, std::uint64_t addresses)
{
    if (!plan.turns || plan.bFrom != 1 || elementBytes > 4)
        return 0;
    std::uint64_t all = plan.aCount | plan.bCount | plan.aFrom | plan.bTo | plan.offset;
    for (int i = 0; i < plan.others; ++i)
        all |= plan.from[i] | plan.to[i];
    for (int words = 4; words > 0; words /= 2) {
        if (all * elementBytes % (4 * words) == 0 && addresses % (4 * words) == 0)
            return words;
    }
    return 0;
}

/// A tile of version 4: lines of 128 bytes of the target (along a) times 128 elements of b, which lie in shared memory
/// as 128 rows of 32 words: a row of the storage after the other, in one to four strips of 32 words along b.
/// Chunks of a row change places with each other, by the chunk of a that the row belongs to: lanes that read a column
/// of words for neighbouring chunks of a find them in different banks.
template <int bytes, int words> struct WordTile
{
    static constexpr int elementBytes = bytes, chunkWords = words;
    static constexpr int perWord = 4 / bytes, perChunk = words * perWord; ///< elements
    static constexpr int chunks = 32 / words;                             ///< of a row
    static constexpr int aSide = 32 * perWord, bSide = 128, rows = 128;
    static constexpr int threads = 256;
    static constexpr int sharedBytes = rows * 128, threadBytes = sharedBytes / threads;
    static constexpr int turns = threadBytes / (4 * words); ///< chunks that a thread loads
    static constexpr int rowsPerTurn = threads / chunks;
    static constexpr int columnsPerTurn = rowsPerTurn; ///< columns of words that a turn reads
    static constexpr int columnTurns = bSide / perWord / columnsPerTurn;

    /// Byte of a chunk of a row of a strip.
    MEMSCAPE_VIEW static std::uint32_t chunkAt(int row, int chunk)
    {
        return static_cast<std::uint32_t>(row * 128 + (chunk ^ exchange(row)) * 4 * words);
    }
    /// Byte of word `column` (counted through the strips) of row `a`.
    MEMSCAPE_VIEW static std::uint32_t wordAt(int a, int column)
    {
        return chunkAt(column / 32 * aSide + a, column % 32 / words) + static_cast<std::uint32_t>(column % words * 4);
    }
    /// The same chunk `turn` turns of rows further down, and the same row as many turns of columns further: what
    /// turns add to a place shares no bits with what threads do, so one exclusive or replaces the exchange.
    MEMSCAPE_VIEW static std::uint32_t chunkAfter(std::uint32_t at, int turn)
    {
        const int down = turn * rowsPerTurn;
        return (at ^ static_cast<std::uint32_t>(exchange(down) * 4 * words)) + static_cast<std::uint32_t>(down * 128);
    }
    MEMSCAPE_VIEW static std::uint32_t wordAfter(std::uint32_t at, int turn)
    {
        const int across = turn * columnsPerTurn;
        return (at ^ static_cast<std::uint32_t>(across % 32 * 4))
            + static_cast<std::uint32_t>(across / 32 * aSide * 128);
    }

private:
    MEMSCAPE_VIEW static int exchange(int row) { return row % aSide / perChunk % chunks; }
};

// ---- which kernel ----------------------------------------------------------------------------

enum class CopyKernel {
    Visits, ///< element i of the target by thread i
    Rows,   ///< the same with 64 bytes a thread, in words of `neighbours` elements
    Padded, ///< tiles of rows that are padded, in version 2 not; `tilesAtOnce` along b
    Words   ///< WordTile, chunks of `chunkWords`
};

struct CopyPath
{
    CopyKernel kernel = CopyKernel::Visits;
    int neighbours = 1, tilesAtOnce = 1, chunkWords = 0;
};

/// Sides that fill no tile, and are visited in order of the target: a row of so few elements, whose neighbours lanes
/// find in L1; a column of so few, whose sectors are fetched as often, all but once from L2.
constexpr std::uint64_t thinRow = 8, thinColumn = 4;

/// Padded tiles that bring a thread 64 bytes, or 16 elements: four of each tile.
constexpr int paddedTilesAtOnce(int elementBytes)
{
    return elementBytes > 4 ? 16 / elementBytes : 4;
}

inline bool fitsGrid(const TurnPlan& plan, int aSide, int bSide)
{
    return turnBlocks(plan, aSide, bSide) < dividendLimit;
}

inline CopyPath copyPathOf(const ViewNest& nest, int version, int elementBytes, std::uint64_t addresses)
{
    const TurnPlan plan = turnPlanOf(nest);
    CopyPath path;
    if (version < 4) {
        if (version > 1 && plan.turns && fitsGrid(plan, turnSide, turnSide))
            path.kernel = CopyKernel::Padded;
        return path;
    }
    path.tilesAtOnce = paddedTilesAtOnce(elementBytes);
    path.chunkWords = chunkWordsOf(plan, elementBytes, addresses);
    const bool isThin = !plan.turns || plan.aCount <= thinRow || plan.bCount <= thinColumn;
    if (!isThin && path.chunkWords > 0 && fitsGrid(plan, 128 / elementBytes, 128))
        path.kernel = CopyKernel::Words;
    else if (!isThin && fitsGrid(plan, turnSide, path.tilesAtOnce * turnSide))
        path.kernel = CopyKernel::Padded;
    else {
        path.kernel = CopyKernel::Rows;
        path.neighbours = neighboursOf(nest, elementBytes, 16 / elementBytes, addresses);
    }
    return path;
}

} // namespace memscape::cuda
