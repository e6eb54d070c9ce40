// SPDX-License-Identifier: Apache-2.0
// C = A B on tensor cores in TF32, FP8, INT8 and FP64: what multiplies where cuBLASLt is missing, and what
// shows that a tensor core cares for bytes. In every format but FP64 an mma.sync takes 16 rows × 32 bytes of A
// and 32 bytes × 8 columns of B: 8 floats, 16 halves or 32 bytes deep. So one ldmatrix, made for halves, fetches
// a fragment of any of them, and a tile of 128 × 128 from strips that are 64 bytes deep serves all (128 bytes on
// Turing, as in tensor_product.h).
// Source: PTX ISA, "Matrix Fragments for mma.m16n8k8" (TF32), ".m16n8k32" (8 bits), ".m8n8k4" (FP64).
//
//   bytes   A lies in rows along the depth, B in columns along the depth (as cuBLASLt wants it, too)
//   TF32    B lies in rows along the columns: ldmatrix turns halves, not words, so each lane fetches its own,
//           from rows 32 bytes longer than the tile, whose neighbours lie 8 banks apart
//   FP64    a tile of 64 × 64 from strips 16 deep; a lane holds one element of A and of B
//
// Stages as in tensor_product.h: while one is multiplied, the next two are copied. FP32 sums of FP8 are as
// precise as the GPU adds them (Hopper: about 14 bits). Rows that are not whole, aligned 16-byte chunks are
// gathered element by element, by a kernel of their own: right, and several times slower. Left out: sparsity,
// block scales, wgmma; on GPUs with 100 KB of shared memory a second block for TF32 and FP64.
#pragma once

#include "kernels/cuda/attention/tensor_product.h"
#include "kernels/cuda/precision/format_tags.h"

#include <type_traits>

namespace memscape::cuda {

struct FormatArguments
{
    int rows = 1, columns = 1, inner = 1;
    const void *a = nullptr, *b = nullptr;
    void* c = nullptr;
    bool isAligned = false; ///< A, B and each of their rows begin at multiples of 16 bytes
};

inline FormatArguments formatArguments(const FormatProductLaunch& w)
{
    const bool isByte = w.format != TensorFormat::Fp64 && w.format != TensorFormat::Tf32;
    const std::int64_t width = isByte ? 1 : w.format == TensorFormat::Fp64 ? 8 : 4;
    const auto whole = [](std::uint64_t bytes) { return bytes % chunkBytes == 0; };
    const bool isAligned = whole(std::uint64_t(w.inner * width)) && whole(reinterpret_cast<std::uintptr_t>(w.a))
        && whole(std::uint64_t((isByte ? w.inner : w.columns) * width)) && whole(reinterpret_cast<std::uintptr_t>(w.b));
    return FormatArguments{w.rows, w.columns, w.inner, w.a, w.b, w.c, isAligned};
}

/// Rows of `chunks` 16-byte chunks one after the other, 32 bytes apart: eight banks.
template <int chunks> struct PaddedLayout
{
    static constexpr int chunksPerRow = chunks;
    static constexpr int rowBytes = chunks * chunkBytes + 32;
    MEMSCAPE_BOTH static std::uint32_t at(int row, int chunk)
    {
        return std::uint32_t(row * rowBytes + chunk * chunkBytes);
    }
};

template <typename TheNumbers, bool areCopiesAsync> struct FormatTile
{
    using Numbers = TheNumbers;
    static constexpr bool bTransposed = Numbers::bytes == 1, isAsync = areCopiesAsync;
    static constexpr int side = 128, threads = 128, strips = 4, blocks = 8, warpSide = 64;
    static constexpr int deepBytes = isAsync ? 64 : 128, depth = deepBytes / Numbers::bytes;
    static constexpr int steps = deepBytes / 32, stepRows = depth / steps;
    using A = TileLayout<deepBytes / chunkBytes>;
    using B = PaddedLayout<side * Numbers::bytes / chunkBytes>; ///< of TF32; else as A
    using Word = typename std::conditional<bTransposed, std::uint8_t, std::uint32_t>::type;
    static constexpr int aBytes = side * A::rowBytes;
    static constexpr int stageBytes = aBytes + (bTransposed ? aBytes : depth * B::rowBytes);
    static constexpr int sharedBytes = productStages<isAsync> * stageBytes;
};

struct DoubleTile
{
    static constexpr int side = 64, threads = 128, strips = 4, blocks = 4, warpSide = 32;
    static constexpr int depth = 16, steps = 4;
    using A = PaddedLayout<depth * 8 / chunkBytes>;
    using B = PaddedLayout<side * 8 / chunkBytes>;
    static constexpr int aBytes = side * A::rowBytes, stageBytes = aBytes + depth * B::rowBytes;
    static constexpr int sharedBytes = productStages<true> * stageBytes;
};

/// Where a lane finds B's fragments of the warp's first two blocks of eight columns.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL std::uint32_t rightAt(Machine& m, std::uint32_t b, int column, int step)
{
    const int lane = m.thread() % 32;
    if (Tile::bTransposed) {
        const TilePlace place = matrixRowAcrossFirst(lane);
        return Tile::A::further(b + Tile::A::at(column + place.row, place.column), 2 * step);
    }
    return b + std::uint32_t((step * Tile::stepRows + lane % 4) * Tile::B::rowBytes + (column + lane / 4) * 4);
}

/// B's fragments for two neighbouring blocks, `block` further.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void loadRight(Machine& m, std::uint32_t (&right)[4], std::uint32_t at, int block)
{
    if constexpr (Tile::bTransposed) {
        m.loadMatrices(right, at + std::uint32_t(block * mmaColumns * Tile::A::rowBytes));
    } else {
        MEMSCAPE_UNROLL
        for (int r = 0; r < 4; ++r)
            right[r] = m.template loadShared<std::uint32_t>(
                at + std::uint32_t(r % 2 * 4 * Tile::B::rowBytes + (block + r / 2) * mmaColumns * 4));
    }
}

template <typename Tile, typename Machine, typename Sums>
MEMSCAPE_KERNEL void multiplyBytes(Machine& m, Sums& sums, std::uint32_t stage)
{
    const int warp = m.thread() / 32, row = warp / 2 * Tile::warpSide, column = warp % 2 * Tile::warpSide;
    const TilePlace place = matrixRowDownFirst(m.thread() % 32);
    MEMSCAPE_NO_UNROLL // Hopper widens FP8 to halves: more than one step at once does not fit the registers
        for (int step = 0; step < Tile::steps; ++step)
    {
        const std::uint32_t left = Tile::A::further(stage + Tile::A::at(row + place.row, place.column), 2 * step);
        const std::uint32_t atRight = rightAt<Tile>(m, stage + Tile::aBytes, column, step);
        std::uint32_t a[Tile::strips][4];
        MEMSCAPE_UNROLL
        for (int s = 0; s < Tile::strips; ++s)
            m.loadMatrices(a[s], left + std::uint32_t(s * mmaRows * Tile::A::rowBytes));
        MEMSCAPE_UNROLL
        for (int block = 0; block < Tile::blocks; block += 2) {
            std::uint32_t right[4];
            loadRight<Tile>(m, right, atRight, block);
            MEMSCAPE_UNROLL
            for (int s = 0; s < Tile::strips; ++s) {
                m.template multiplyNumbers<typename Tile::Numbers>(sums[s][block], a[s], right[0], right[1]);
                m.template multiplyNumbers<typename Tile::Numbers>(sums[s][block + 1], a[s], right[2], right[3]);
            }
        }
    }
}

template <typename Result, typename Machine, typename Sum> MEMSCAPE_KERNEL Result asResult(Machine& m, Sum sum)
{
    if constexpr (sizeof(Result) < sizeof(Sum))
        return m.template narrow<Result>(sum);
    else
        return sum;
}

/// One block: a tile of C in one of the formats of format_tags.h.
template <typename Tile, bool isAligned, typename Machine>
MEMSCAPE_KERNEL void formatProduct(Machine& m, const FormatArguments& w)
{
    using Numbers = typename Tile::Numbers;
    using Result = typename Numbers::Result;
    const TilePlace tile = productTile(m.blockX(), over(w.rows, Tile::side), over(w.columns, Tile::side));
    const int firstRow = tile.row * Tile::side, firstColumn = tile.column * Tile::side;
    const std::int64_t aRow = std::int64_t(w.inner) * Numbers::bytes,
                       bRow = std::int64_t(Tile::bTransposed ? w.inner : w.columns) * Numbers::bytes;
    typename Numbers::Sum sums[Tile::strips][Tile::blocks][4] = {};
    const BytesOfMatrix left{w.a, w.rows, aRow, aRow}, right{w.b, Tile::bTransposed ? w.columns : w.inner, bRow, bRow};
    const auto copy = [&](std::uint32_t stage, int strip) {
        using Word = typename Tile::Word;
        const int deepChunk = strip * (Tile::deepBytes / chunkBytes);
        copyPart<typename Tile::A, Tile::side, Tile::threads, Tile::isAsync, isAligned, Word>(m, stage, left, firstRow,
                                                                                              deepChunk);
        if constexpr (Tile::bTransposed)
            copyPart<typename Tile::A, Tile::side, Tile::threads, Tile::isAsync, isAligned, Word>(
                m, stage + Tile::aBytes, right, firstColumn, deepChunk);
        else
            copyPart<typename Tile::B, Tile::depth, Tile::threads, Tile::isAsync, isAligned, Word>(
                m, stage + Tile::aBytes, right, strip * Tile::depth, firstColumn / (chunkBytes / Numbers::bytes));
    };
    throughStrips<Tile::stageBytes, Tile::isAsync>(m, over(w.inner, Tile::depth), copy,
                                                   [&](std::uint32_t stage) { multiplyBytes<Tile>(m, sums, stage); });
    const int warp = m.thread() / 32, row0 = firstRow + warp / 2 * Tile::warpSide,
              column0 = firstColumn + warp % 2 * Tile::warpSide;
    MEMSCAPE_UNROLL
    for (int s = 0; s < Tile::strips; ++s) {
        MEMSCAPE_UNROLL
        for (int block = 0; block < Tile::blocks; ++block) {
            MEMSCAPE_UNROLL
            for (int r = 0; r < 4; ++r) {
                const TilePlace place = placeInD(m.thread() % 32, r);
                const int row = row0 + s * mmaRows + place.row, column = column0 + block * mmaColumns + place.column;
                if (row < w.rows && column < w.columns)
                    m.store(static_cast<Result*>(w.c) + (std::int64_t(row) * w.columns + column),
                            asResult<Result>(m, sums[s][block][r]));
            }
        }
    }
}

template <typename Machine, typename Sums>
MEMSCAPE_KERNEL void multiplyDoubles(Machine& m, Sums& sums, std::uint32_t stage)
{
    using Tile = DoubleTile;
    const int warp = m.thread() / 32, lane = m.thread() % 32;
    const std::uint32_t left =
        stage + Tile::A::at(warp / 2 * Tile::warpSide + lane / 4, 0) + std::uint32_t(lane % 4 * 8);
    const std::uint32_t right =
        stage + Tile::aBytes + Tile::B::at(lane % 4, 0) + std::uint32_t((warp % 2 * Tile::warpSide + lane / 4) * 8);
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::steps; ++step) {
        double a[Tile::strips], b[Tile::blocks];
        MEMSCAPE_UNROLL
        for (int s = 0; s < Tile::strips; ++s)
            a[s] = m.template loadShared<double>(left + std::uint32_t(s * 8 * Tile::A::rowBytes + step * 4 * 8));
        MEMSCAPE_UNROLL
        for (int block = 0; block < Tile::blocks; ++block)
            b[block] =
                m.template loadShared<double>(right + std::uint32_t(step * 4 * Tile::B::rowBytes + block * 8 * 8));
        MEMSCAPE_UNROLL
        for (int s = 0; s < Tile::strips; ++s) {
            MEMSCAPE_UNROLL
            for (int block = 0; block < Tile::blocks; ++block)
                m.multiplyDoubles(sums[s][block], a[s], b[block]);
        }
    }
}

/// One block: a tile of C in doubles.
template <bool isAligned, typename Machine> MEMSCAPE_KERNEL void doubleProduct(Machine& m, const FormatArguments& w)
{
    using Tile = DoubleTile;
    const TilePlace tile = productTile(m.blockX(), over(w.rows, Tile::side), over(w.columns, Tile::side));
    const int firstRow = tile.row * Tile::side, firstColumn = tile.column * Tile::side;
    double sums[Tile::strips][Tile::blocks][2] = {};
    const std::int64_t aRow = std::int64_t(w.inner) * 8, bRow = std::int64_t(w.columns) * 8;
    const auto copy = [&](std::uint32_t stage, int strip) {
        const int deep = strip * Tile::depth;
        copyPart<Tile::A, Tile::side, Tile::threads, true, isAligned, std::uint32_t>(
            m, stage, {w.a, w.rows, aRow, aRow}, firstRow, deep / 2);
        copyPart<Tile::B, Tile::depth, Tile::threads, true, isAligned, std::uint32_t>(
            m, stage + Tile::aBytes, {w.b, w.inner, bRow, bRow}, deep, firstColumn / 2);
    };
    throughStrips<Tile::stageBytes, true>(m, over(w.inner, Tile::depth), copy,
                                          [&](std::uint32_t stage) { multiplyDoubles(m, sums, stage); });
    const int warp = m.thread() / 32, lane = m.thread() % 32;
    MEMSCAPE_UNROLL
    for (int s = 0; s < Tile::strips; ++s) {
        MEMSCAPE_UNROLL
        for (int block = 0; block < Tile::blocks; ++block) {
            MEMSCAPE_UNROLL
            for (int r = 0; r < 2; ++r) {
                const int row = firstRow + warp / 2 * Tile::warpSide + s * 8 + lane / 4;
                const int column = firstColumn + warp % 2 * Tile::warpSide + block * 8 + lane % 4 * 2 + r;
                if (row < w.rows && column < w.columns)
                    m.store(static_cast<double*>(w.c) + (std::int64_t(row) * w.columns + column), sums[s][block][r]);
            }
        }
    }
}

} // namespace memscape::cuda
