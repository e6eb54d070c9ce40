// SPDX-License-Identifier: Apache-2.0
// C = A B on tensor cores, many products of one shape at a time: what standard attention is made of
// (Q Kᵀ, P V, Pᵀ dO, dO Vᵀ, dS K, dSᵀ Q), and the product that stands in where cuBLASLt is missing.
//
// A block of four warps computes 128 × 128 of C from strips of A and B, 64 deep, swizzled in shared
// memory; a warp 64 × 64, so that every fragment it loads feeds four or eight products. Two stages:
// while one strip is multiplied, the next is copied (asynchronously from sm_80 on; on Turing there is
// one stage and the copy passes registers). Either matrix may lie transposed: ldmatrix.trans turns
// what does not lie along the depth. Sums are FP32 in order of the depth, so the same sizes give the
// same bits; C is rounded to the format.
//
// Rows of memory that are not whole, aligned 16-byte chunks (a row of scores of an odd sequence) are
// gathered element by element: right, and several times slower.
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
    bool isAligned = false; ///< every row of A and B is whole chunks, see alignedForChunks()
};

MEMSCAPE_BOTH bool wholeChunks(std::int64_t stride, std::int64_t batchStride, int width)
{
    return stride % chunkElements == 0 && batchStride % chunkElements == 0
        && width % chunkElements == 0;
}
MEMSCAPE_BOTH bool alignedForChunks(const TensorProductArguments& w, bool aTransposed,
                                    bool bTransposed)
{
    return wholeChunks(w.aStride, w.aBatch, aTransposed ? w.sizes.rows : w.sizes.inner)
        && wholeChunks(w.bStride, w.bBatch, bTransposed ? w.sizes.inner : w.sizes.columns);
}

/// Tile (row, column) of C that block `index` computes: eight rows of tiles are walked together, so
/// that blocks that run at the same time share strips of both A and B.
MEMSCAPE_BOTH Place productTile(int index, int rowTiles, int columnTiles)
{
    constexpr int together = 8;
    const int group = index / (together * columnTiles), inGroup = index % (together * columnTiles);
    const int left = rowTiles - group * together;
    const int height = left < together ? left : together;
    return Place{group * together + inGroup % height, inGroup / height};
}

template <typename TheElement, bool isATransposed, bool isBTransposed> struct ProductTile
{
    using Element = TheElement;
    static constexpr bool aTransposed = isATransposed, bTransposed = isBTransposed;
    static constexpr int side = 128, depth = 64, threads = 128, strips = 4, blocks = 8;
    static constexpr int warpSide = 64, steps = depth / mmaDepth;
    /// As the matrix lies: rows of the tile along the side, or along the depth.
    template <bool alongDepth> static constexpr int tileRows = alongDepth ? depth : side;
    template <bool alongDepth>
    using Layout = TileLayout<(alongDepth ? side : depth) / chunkElements>;
    using A = Layout<aTransposed>;
    using B = Layout<!bTransposed>;
    static constexpr int tileBytes = side * depth * 2;
    static constexpr int stageBytes = 2 * tileBytes;
    using Result = Sums<strips, blocks>;
};

/// `rows` × `chunks` of a matrix from (firstRow, firstColumn); zeros beyond (rowCount, columnCount).
template <typename Layout, int rows, int threads, bool isAsync, typename Machine, typename Element>
MEMSCAPE_KERNEL void copyStrip(Machine& m, std::uint32_t at, const Element* data, std::int64_t stride,
                               Place first, Place count, bool isAligned)
{
    constexpr int chunks = Layout::chunksPerRow, step = rowsPerTurn<chunks, threads>();
    const Place place = firstChunk<chunks>(m.thread());
    const int column = first.column + place.column * chunkElements;
    MEMSCAPE_UNROLL
    for (int down = 0; down < rows; down += step) {
        const int row = first.row + place.row + down;
        const bool wanted = row < count.row && column < count.column;
        const std::uint32_t to =
            at + Layout::at(place.row, place.column) + std::uint32_t(down * Layout::rowBytes);
        const Element* from = data + (std::int64_t(row) * stride + column);
        if (isAligned && isAsync) {
            m.copyAsync(to, from, wanted);
            continue;
        }
        Chunk chunk{0, 0, 0, 0};
        if (isAligned && wanted)
            chunk = m.load(reinterpret_cast<const Chunk*>(from));
        if (!isAligned && wanted) {
            std::uint32_t words[4] = {0, 0, 0, 0};
            MEMSCAPE_UNROLL
            for (int i = 0; i < chunkElements; ++i) {
                if (column + i < count.column)
                    words[i / 2] |= std::uint32_t(m.load(from + i).bits) << (16 * (i % 2));
            }
            chunk = Chunk{words[0], words[1], words[2], words[3]};
        }
        m.storeShared(to, chunk);
    }
}

/// Both strips from depth `deep` on.
template <typename Tile, bool isAsync, typename Machine>
MEMSCAPE_KERNEL void copyStrips(Machine& m, const TensorProductArguments& w, Place tile,
                                std::uint32_t stage, int deep)
{
    using Element = typename Tile::Element;
    const auto* a = static_cast<const Element*>(w.a) + m.blockY() * w.aBatch;
    const auto* b = static_cast<const Element*>(w.b) + m.blockY() * w.bBatch;
    const int row = tile.row * Tile::side, column = tile.column * Tile::side;
    copyStrip<typename Tile::A, Tile::template tileRows<Tile::aTransposed>, Tile::threads, isAsync>(
        m, stage, a, w.aStride, Tile::aTransposed ? Place{deep, row} : Place{row, deep},
        Tile::aTransposed ? Place{w.sizes.inner, w.sizes.rows} : Place{w.sizes.rows, w.sizes.inner},
        w.isAligned);
    copyStrip<typename Tile::B, Tile::template tileRows<!Tile::bTransposed>, Tile::threads, isAsync>(
        m, stage + Tile::tileBytes, b, w.bStride,
        Tile::bTransposed ? Place{column, deep} : Place{deep, column},
        Tile::bTransposed ? Place{w.sizes.columns, w.sizes.inner}
                          : Place{w.sizes.inner, w.sizes.columns},
        w.isAligned);
}

/// Four strips of A for one step: rows from `row`, depth from 16 × step.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void loadStrips(Machine& m, std::uint32_t (&a)[Tile::strips][4], std::uint32_t at,
                                int row, int step)
{
    MEMSCAPE_UNROLL
    for (int s = 0; s < Tile::strips; ++s) {
        if (Tile::aTransposed) {
            const Place place = matrixRowAcrossFirst(m.thread() % 32);
            const std::uint32_t lane = at + Tile::A::at(place.row, row / chunkElements + place.column);
            m.loadMatricesTransposed(a[s], Tile::A::further(lane, s * mmaRows / chunkElements)
                                         + std::uint32_t(step * mmaDepth * Tile::A::rowBytes));
        } else {
            loadLeft<typename Tile::A>(m, a[s], at, row + s * mmaRows, 2 * step);
        }
    }
}

/// Sums += one stage.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void multiplyStage(Machine& m, typename Tile::Result& sums, std::uint32_t stage)
{
    const int warp = m.thread() / 32, row = warp / 2 * Tile::warpSide,
              column = warp % 2 * Tile::warpSide;
    const std::uint32_t b = stage + Tile::tileBytes;
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::steps; ++step) {
        std::uint32_t a[Tile::strips][4];
        loadStrips<Tile>(m, a, stage, row, step);
        MEMSCAPE_UNROLL
        for (int block = 0; block < Tile::blocks; block += 2) {
            std::uint32_t right[4];
            if (Tile::bTransposed) {
                const Place place = matrixRowAcrossFirst(m.thread() % 32);
                const std::uint32_t lane = b + Tile::B::at(column + place.row, place.column);
                m.loadMatrices(right, Tile::B::further(lane, 2 * step)
                                   + std::uint32_t(block * mmaColumns * Tile::B::rowBytes));
            } else {
                const Place place = matrixRowDownFirst(m.thread() % 32);
                const std::uint32_t lane =
                    b + Tile::B::at(place.row, column / chunkElements + place.column);
                m.loadMatricesTransposed(right,
                                         Tile::B::further(lane, block)
                                             + std::uint32_t(step * mmaDepth * Tile::B::rowBytes));
            }
            MEMSCAPE_UNROLL
            for (int s = 0; s < Tile::strips; ++s) {
                m.template multiply<typename Tile::Element>(sums.at[s][block], a[s], right[0],
                                                            right[1]);
                m.template multiply<typename Tile::Element>(sums.at[s][block + 1], a[s], right[2],
                                                            right[3]);
            }
        }
    }
}

/// Rounds the block's sums into C, two neighbours at a time where they are aligned.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void writeResult(Machine& m, const TensorProductArguments& w,
                                 const typename Tile::Result& sums, Place tile)
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
                const Place place = placeInD(m.thread() % 32, r);
                const int row = tile.row * Tile::side + warp / 2 * Tile::warpSide + s * mmaRows
                    + place.row;
                const int column = tile.column * Tile::side + warp % 2 * Tile::warpSide
                    + block * mmaColumns + place.column;
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
template <typename Tile, bool isAsync, typename Machine>
MEMSCAPE_KERNEL void tensorProduct(Machine& m, const TensorProductArguments& w)
{
    const Place tile = productTile(m.blockX(), over(w.sizes.rows, Tile::side),
                                   over(w.sizes.columns, Tile::side));
    typename Tile::Result sums;
    sums.clear(m);
    const int strips = over(w.sizes.inner, Tile::depth);
    if (isAsync) {
        copyStrips<Tile, isAsync>(m, w, tile, 0, 0);
        m.commitCopies();
    }
    MEMSCAPE_NO_UNROLL
    for (int strip = 0; strip < strips; ++strip) {
        const std::uint32_t stage = isAsync ? std::uint32_t(strip % 2 * Tile::stageBytes) : 0;
        if (isAsync) {
            m.template waitForCopies<0>();
            m.syncThreads();
            if (strip + 1 < strips)
                copyStrips<Tile, isAsync>(m, w, tile, Tile::stageBytes - stage,
                                          (strip + 1) * Tile::depth);
            m.commitCopies();
        } else {
            m.syncThreads(); // the strips before have been read
            copyStrips<Tile, isAsync>(m, w, tile, 0, strip * Tile::depth);
            m.syncThreads();
        }
        multiplyStage<Tile>(m, sums, stage);
    }
    writeResult<Tile>(m, w, sums, tile);
}

template <typename Tile, bool isAsync>
constexpr int productSharedBytes = (isAsync ? 2 : 1) * Tile::stageBytes;

} // namespace memscape::cuda
