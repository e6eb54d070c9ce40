// SPDX-License-Identifier: Apache-2.0
// C = A B on tensor cores, many products of one shape at a time: what standard attention is made of
// (Q Kᵀ, P V, Pᵀ dO, dO Vᵀ, dS K, dSᵀ Q), and the product that stands in where cuBLASLt is missing.
//
// A block of four warps computes 128 × 128 of C from strips of A and B, 32 deep, swizzled in shared
// memory; a warp 64 × 64, so that every fragment it loads feeds four or eight products. Three stages
// of 16 KiB: while one strip is multiplied, the next two are copied (asynchronously from sm_80 on; on
// Turing there is one stage, 64 deep, and the copy passes registers). Two blocks share every
// multiprocessor, as far as registers and shared memory go. Either matrix may lie transposed:
// ldmatrix.trans turns what does not lie along the depth. Sums are FP32 in order of the depth, so the
// same sizes give the same bits; C is rounded to the format.
//
// Rows of memory that are not whole, aligned 16-byte chunks (a row of scores of an odd sequence) are
// gathered element by element, by a kernel of their own: right, and several times slower.
#pragma once

#include "kernels/cuda/attention/tiles.h"

namespace memscape::cuda {

/// One matrix of a batch: row-major, `stride` elements from row to row as it lies in memory.
template <typename Element> struct MatrixView
{
    const Element* data;
    std::int64_t stride, batchStride;
};

struct ProductSizes
{
    int rows = 1, columns = 1, inner = 1, batch = 1;
};

struct TensorProductArguments
{
    ProductSizes sizes;
    const void *a = nullptr, *b = nullptr;
    void* c = nullptr;
    std::int64_t aStride = 0, bStride = 0, cStride = 0;
    std::int64_t aBatch = 0, bBatch = 0, cBatch = 0;
    float factor = 1; ///< of C, before it is rounded
};

MEMSCAPE_BOTH bool wholeChunks(std::int64_t stride, std::int64_t batchStride, int width)
{
    return stride % chunkElements == 0 && batchStride % chunkElements == 0 && width % chunkElements == 0;
}
/// Every row of A and B is whole chunks, if the first is.
MEMSCAPE_BOTH bool alignedForChunks(const TensorProductArguments& w, bool aTransposed, bool bTransposed)
{
    return wholeChunks(w.aStride, w.aBatch, aTransposed ? w.sizes.rows : w.sizes.inner)
        && wholeChunks(w.bStride, w.bBatch, bTransposed ? w.sizes.inner : w.sizes.columns);
}

/// Tile (row, column) of C that block `index` computes: eight rows of tiles are walked together, so
/// that blocks that run at the same time share strips of both A and B.
MEMSCAPE_BOTH TilePlace productTile(int index, int rowTiles, int columnTiles)
{
    constexpr int together = 8;
    const int group = index / (together * columnTiles), inGroup = index % (together * columnTiles);
    const int left = rowTiles - group * together;
    const int height = left < together ? left : together;
    return TilePlace{group * together + inGroup % height, inGroup / height};
}

// ---- strips through shared memory -------------------------------------------------------------

/// Of a product: one where copies pass registers, else three, of which two are on their way.
template <bool isAsync> constexpr int productStages = isAsync ? 3 : 1;

/// Does a multiprocessor with `sharedKilobytes`, of which each block takes one for the system, hold
/// two blocks? Of compute capability 8.0 they are 164, of 8.6, 8.9 and 12.0 100, of 9.0 and 10.0 228.
/// Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
constexpr bool twoBlocksFit(int sharedBytes, int sharedKilobytes)
{
    return 2 * (sharedBytes + 1024) <= sharedKilobytes * 1024;
}

constexpr int mostShared = 99 << 10; ///< of a block on 8.6, 8.9 and 12.0, the least of those from 8.0 on

/// copy(stage, strip) and multiply(stage) for every strip, copies ahead where they are asynchronous.
template <int stageBytes, bool isAsync, typename Machine, typename Copy, typename Multiply>
MEMSCAPE_KERNEL void throughStrips(Machine& m, int strips, Copy copy, Multiply multiply)
{
    constexpr int stages = productStages<isAsync>, ahead = stages - 1;
    MEMSCAPE_UNROLL
    for (int strip = 0; strip < ahead; ++strip) {
        if (strip < strips)
            copy(std::uint32_t(strip * stageBytes), strip);
        m.commitCopies();
    }
    std::uint32_t stage = 0;
    MEMSCAPE_NO_UNROLL
    for (int strip = 0; strip < strips; ++strip) {
        if constexpr (isAsync) {
            m.template waitForCopies<(ahead > 0 ? ahead - 1 : 0)>();
            m.syncThreads(); // all copies are there, and no warp reads the stage before any more
            if (strip + ahead < strips)
                copy(stage == 0 ? std::uint32_t(ahead * stageBytes) : stage - stageBytes, strip + ahead);
            m.commitCopies();
        } else {
            m.syncThreads(); // the strips before have been read
            copy(0U, strip);
            m.syncThreads();
        }
        multiply(stage);
        stage = stage == ahead * stageBytes ? 0 : stage + stageBytes;
    }
}

/// What lies where in memory: `rows` rows that are `pitch` bytes apart and `rowBytes` long.
struct BytesOfMatrix
{
    const void* data;
    int rows;
    std::int64_t pitch, rowBytes;
};

/// A part of a matrix: `rows` × Layout::chunksPerRow chunks from (firstRow, chunk0) on, zeros beyond
/// the matrix. Word: what is fetched at once where rows are not aligned.
template <typename Layout, int rows, int threads, bool isAsync, bool isAligned, typename Word, typename Machine>
MEMSCAPE_KERNEL void copyPart(Machine& m, std::uint32_t at, const BytesOfMatrix& matrix, int firstRow, int chunk0)
{
    constexpr int chunks = Layout::chunksPerRow, step = threads / chunks, wordBytes = int(sizeof(Word));
    static_assert(threads % chunks == 0 && rows % step == 0, "every thread copies equally many chunks");
    const TilePlace place = firstChunk<chunks>(m.thread());
    const int row = firstRow + place.row, column = chunk0 + place.column;
    const int rowsLeft = column < int((matrix.rowBytes + chunkBytes - 1) / chunkBytes) ? matrix.rows - row : 0;
    const std::uint32_t to = at + Layout::at(place.row, place.column);
    const char* from = static_cast<const char*>(matrix.data) + (row * matrix.pitch + column * std::int64_t(chunkBytes));
    MEMSCAPE_UNROLL
    for (int down = 0; down < rows; down += step, from += step * matrix.pitch) {
        const bool wanted = down < rowsLeft;
        const std::uint32_t there = to + std::uint32_t(down * Layout::rowBytes);
        if constexpr (isAligned && isAsync) {
            m.copyAsync(there, from, wanted);
            continue;
        }
        Chunk chunk{0, 0, 0, 0};
        if (isAligned && wanted)
            chunk = m.load(reinterpret_cast<const Chunk*>(from));
        if (!isAligned && wanted) {
            const std::int64_t left = matrix.rowBytes - column * std::int64_t(chunkBytes);
            std::uint32_t words[4] = {0, 0, 0, 0};
            MEMSCAPE_UNROLL
            for (int i = 0; i < chunkBytes; i += wordBytes) {
                if (i < left)
                    words[i / 4] |= std::uint32_t(m.load(reinterpret_cast<const Word*>(from + i))) << (8 * (i % 4));
            }
            chunk = Chunk{words[0], words[1], words[2], words[3]};
        }
        m.storeShared(there, chunk);
    }
}

// ---- products of halves -----------------------------------------------------------------------

template <typename TheElement, bool isATransposed, bool isBTransposed, bool areCopiesAsync> struct ProductTile
{
    using Element = TheElement;
    static constexpr bool aTransposed = isATransposed, bTransposed = isBTransposed, isAsync = areCopiesAsync;
    static constexpr int side = 128, depth = isAsync ? 32 : 64, threads = 128, strips = 4, blocks = 8;
    static constexpr int warpSide = 64, steps = depth / mmaDepth;
    /// As the matrix lies: rows of the tile along the side, or along the depth.
    template <bool alongDepth> static constexpr int tileRows = alongDepth ? depth : side;
    template <bool alongDepth> using Layout = TileLayout<(alongDepth ? side : depth) / chunkElements>;
    using A = Layout<aTransposed>;
    using B = Layout<!bTransposed>;
    static constexpr int tileBytes = side * depth * 2;
    static constexpr int stageBytes = 2 * tileBytes, sharedBytes = productStages<isAsync> * stageBytes;
    using Result = Sums<strips, blocks>;
};

/// Both strips from depth `deep` on.
template <typename Tile, bool isAligned, typename Machine>
MEMSCAPE_KERNEL void copyStrips(Machine& m, const TensorProductArguments& w, TilePlace tile, std::uint32_t stage,
                                int deep)
{
    using Element = typename Tile::Element;
    constexpr int bytes = int(sizeof(Element));
    const auto* a = static_cast<const Element*>(w.a) + m.blockY() * w.aBatch;
    const auto* b = static_cast<const Element*>(w.b) + m.blockY() * w.bBatch;
    const int row = tile.row * Tile::side, column = tile.column * Tile::side;
    const int aHeight = Tile::aTransposed ? w.sizes.inner : w.sizes.rows,
              aWidth = Tile::aTransposed ? w.sizes.rows : w.sizes.inner,
              bHeight = Tile::bTransposed ? w.sizes.columns : w.sizes.inner,
              bWidth = Tile::bTransposed ? w.sizes.inner : w.sizes.columns;
    copyPart<typename Tile::A, Tile::template tileRows<Tile::aTransposed>, Tile::threads, Tile::isAsync, isAligned,
             std::uint16_t>(m, stage, {a, aHeight, w.aStride * bytes, std::int64_t(aWidth) * bytes},
                            Tile::aTransposed ? deep : row, (Tile::aTransposed ? row : deep) / chunkElements);
    copyPart<typename Tile::B, Tile::template tileRows<!Tile::bTransposed>, Tile::threads, Tile::isAsync, isAligned,
             std::uint16_t>(m, stage + Tile::tileBytes, {b, bHeight, w.bStride * bytes, std::int64_t(bWidth) * bytes},
                            Tile::bTransposed ? column : deep, (Tile::bTransposed ? deep : column) / chunkElements);
}

/// Four strips of A for one step: rows from `row`, depth from 16 × step.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void loadStrips(Machine& m, std::uint32_t (&a)[Tile::strips][4], std::uint32_t at, int row, int step)
{
    const TilePlace across = matrixRowAcrossFirst(m.thread() % 32), down = matrixRowDownFirst(m.thread() % 32);
    MEMSCAPE_UNROLL
    for (int s = 0; s < Tile::strips; ++s) {
        if (Tile::aTransposed) {
            const std::uint32_t lane = at + Tile::A::at(across.row, row / chunkElements + across.column);
            m.loadMatricesTransposed(a[s],
                                     Tile::A::further(lane, s * mmaRows / chunkElements)
                                         + std::uint32_t(step * mmaDepth * Tile::A::rowBytes));
        } else {
            const std::uint32_t lane = at + Tile::A::at(row + down.row, down.column);
            m.loadMatrices(a[s], Tile::A::further(lane, 2 * step) + std::uint32_t(s * mmaRows * Tile::A::rowBytes));
        }
    }
}

/// Sums += one stage.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void multiplyStage(Machine& m, typename Tile::Result& sums, std::uint32_t stage)
{
    const int warp = m.thread() / 32, row = warp / 2 * Tile::warpSide, column = warp % 2 * Tile::warpSide;
    const std::uint32_t b = stage + Tile::tileBytes;
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::steps; ++step) {
        std::uint32_t a[Tile::strips][4];
        loadStrips<Tile>(m, a, stage, row, step);
        MEMSCAPE_UNROLL
        for (int block = 0; block < Tile::blocks; block += 2) {
            std::uint32_t right[4];
            if (Tile::bTransposed) {
                const TilePlace place = matrixRowAcrossFirst(m.thread() % 32);
                const std::uint32_t lane = b + Tile::B::at(column + place.row, place.column);
                m.loadMatrices(
                    right, Tile::B::further(lane, 2 * step) + std::uint32_t(block * mmaColumns * Tile::B::rowBytes));
            } else {
                const TilePlace place = matrixRowDownFirst(m.thread() % 32);
                const std::uint32_t lane = b + Tile::B::at(place.row, column / chunkElements + place.column);
                m.loadMatricesTransposed(
                    right, Tile::B::further(lane, block) + std::uint32_t(step * mmaDepth * Tile::B::rowBytes));
            }
            MEMSCAPE_UNROLL
            for (int s = 0; s < Tile::strips; ++s) {
                m.template multiply<typename Tile::Element>(sums.at[s][block], a[s], right[0], right[1]);
                m.template multiply<typename Tile::Element>(sums.at[s][block + 1], a[s], right[2], right[3]);
            }
        }
    }
}

/// Rounds the block's sums into C, two neighbours at a time where they are aligned.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void writeResult(Machine& m, const TensorProductArguments& w, const typename Tile::Result& sums,
                                 TilePlace tile)
{
    using Element = typename Tile::Element;
    auto* c = static_cast<Element*>(w.c) + m.blockY() * w.cBatch;
    const int warp = m.thread() / 32;
    const bool inPairs = w.cStride % 2 == 0 && w.cBatch % 2 == 0 && w.sizes.columns % 2 == 0;
    MEMSCAPE_UNROLL
    for (int s = 0; s < Tile::strips; ++s) {
        MEMSCAPE_UNROLL
        for (int block = 0; block < Tile::blocks; ++block) {
            MEMSCAPE_UNROLL
            for (int r = 0; r < 4; r += 2) {
                const TilePlace place = placeInD(m.thread() % 32, r);
                const int row = tile.row * Tile::side + warp / 2 * Tile::warpSide + s * mmaRows + place.row;
                const int column =
                    tile.column * Tile::side + warp % 2 * Tile::warpSide + block * mmaColumns + place.column;
                if (row >= w.sizes.rows || column >= w.sizes.columns)
                    continue;
                Element* at = c + row * w.cStride + column;
                const float* pair = sums.at[s][block] + r;
                if (inPairs) {
                    m.store(reinterpret_cast<std::uint32_t*>(at),
                            m.template pack<Element>(pair[0] * w.factor, pair[1] * w.factor));
                    continue;
                }
                m.store(at, m.template narrow<Element>(pair[0] * w.factor));
                if (column + 1 < w.sizes.columns)
                    m.store(at + 1, m.template narrow<Element>(pair[1] * w.factor));
            }
        }
    }
}

/// Block (x, y): tile x of product y of the batch.
template <typename Tile, bool isAligned, typename Machine>
MEMSCAPE_KERNEL void tensorProduct(Machine& m, const TensorProductArguments& w)
{
    const TilePlace tile = productTile(m.blockX(), over(w.sizes.rows, Tile::side), over(w.sizes.columns, Tile::side));
    typename Tile::Result sums;
    sums.clear(m);
    throughStrips<Tile::stageBytes, Tile::isAsync>(
        m, over(w.sizes.inner, Tile::depth),
        [&](std::uint32_t stage, int strip) { copyStrips<Tile, isAligned>(m, w, tile, stage, strip * Tile::depth); },
        [&](std::uint32_t stage) { multiplyStage<Tile>(m, sums, stage); });
    writeResult<Tile>(m, w, sums, tile);
}

} // namespace memscape::cuda
