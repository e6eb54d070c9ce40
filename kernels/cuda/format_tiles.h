// SPDX-License-Identifier: Apache-2.0
// C = A B on tensor cores in TF32, FP8, INT8 and FP64: what multiplies where cuBLASLt is missing, and what
// shows that a tensor core cares for bytes. In every format but FP64 an mma.sync takes 16 rows × 32 bytes of A
// and 32 bytes × 8 columns of B: 8 floats, 16 halves or 32 bytes deep. So one ldmatrix, made for halves, fetches
// a fragment of any of them, and a tile of 128 × 128 from strips that are 128 bytes deep serves all.
// Source: PTX ISA, "Matrix Fragments for mma.m16n8k8" (TF32), ".m16n8k32" (8 bits), ".m8n8k4" (FP64).
//
//   bytes   A lies in rows along the depth, B in columns along the depth (as cuBLASLt wants it, too)
//   TF32    B lies in rows along the columns: ldmatrix turns halves, not words, so each lane fetches its own,
//           from rows 32 bytes longer than the tile, whose neighbours lie 8 banks apart
//   FP64    a tile of 64 × 64 from strips 16 deep; a lane holds one element of A and of B
//
// Two stages as in tensor_product.h: while one is multiplied, the next is copied. FP32 sums of FP8 are as
// precise as the GPU adds them (Hopper: about 14 bits). Rows that are not whole, aligned 16-byte chunks are
// gathered element by element: right, and several times slower. Left out: sparsity, block scales, wgmma.
#pragma once

#include "kernels/cuda/attention/tensor_product.h"
#include "kernels/cuda/format_tags.h"

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

template <typename TheNumbers> struct FormatTile
{
    using Numbers = TheNumbers;
    static constexpr bool bTransposed = Numbers::bytes == 1;
    static constexpr int side = 128, threads = 128, strips = 4, blocks = 8, warpSide = 64;
    static constexpr int depth = 128 / Numbers::bytes, steps = 4, stepRows = depth / steps;
    using A = TileLayout<8>;
    using B = PaddedLayout<side * Numbers::bytes / chunkBytes>; ///< of TF32; else as A
    using Word = typename std::conditional<bTransposed, std::uint8_t, std::uint32_t>::type;
    static constexpr int aBytes = side * A::rowBytes;
    static constexpr int stageBytes = aBytes + (bTransposed ? aBytes : depth * B::rowBytes);
};

struct DoubleTile
{
    static constexpr int side = 64, threads = 128, strips = 4, blocks = 4, warpSide = 32;
    static constexpr int depth = 16, steps = 4;
    using A = PaddedLayout<depth * 8 / chunkBytes>;
    using B = PaddedLayout<side * 8 / chunkBytes>;
    static constexpr int aBytes = side * A::rowBytes, stageBytes = aBytes + depth * B::rowBytes;
};

/// A part of a matrix: `rows` × Layout::chunksPerRow chunks from (firstRow, firstByte) on, zeros beyond the
/// matrix of `rowCount` rows of `rowBytes`. Word: what is fetched at once where rows are not aligned.
template <typename Layout, int rows, int threads, bool isAsync, typename Word, typename Machine>
MEMSCAPE_KERNEL void copyBytes(Machine& m, std::uint32_t at, const void* matrix, int rowCount,
                               std::int64_t rowBytes, int firstRow, std::int64_t firstByte, bool isAligned)
{
    constexpr int chunks = Layout::chunksPerRow, wordBytes = int(sizeof(Word));
    static_assert(rows * chunks % threads == 0, "every thread copies the same number of chunks");
    MEMSCAPE_NO_UNROLL // an address of 64 bits for every turn would not fit the registers
    for (int turn = 0; turn < rows * chunks / threads; ++turn) {
        const int index = turn * threads + m.thread(), row = index / chunks;
        const std::int64_t byte = firstByte + index % chunks * chunkBytes;
        const bool wanted = firstRow + row < rowCount && byte < rowBytes;
        const std::uint32_t to = at + Layout::at(row, index % chunks);
        const char* from = static_cast<const char*>(matrix) + (std::int64_t(firstRow + row) * rowBytes + byte);
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
            for (int i = 0; i < chunkBytes; i += wordBytes) {
                if (byte + i < rowBytes)
                    words[i / 4] |= std::uint32_t(m.load(reinterpret_cast<const Word*>(from + i))) << (8 * (i % 4));
            }
            chunk = Chunk{words[0], words[1], words[2], words[3]};
        }
        m.storeShared(to, chunk);
    }
}

/// copy(stage, strip) and multiply(stage) for every strip, the copy one strip ahead where it is asynchronous.
template <int stageBytes, bool isAsync, typename Machine, typename Copy, typename Multiply>
MEMSCAPE_KERNEL void throughStrips(Machine& m, int strips, Copy copy, Multiply multiply)
{
    if (isAsync) {
        copy(0U, 0);
        m.commitCopies();
    }
    MEMSCAPE_NO_UNROLL
    for (int strip = 0; strip < strips; ++strip) {
        const std::uint32_t stage = isAsync ? std::uint32_t(strip % 2 * stageBytes) : 0;
        if (isAsync) {
            m.template waitForCopies<0>();
            m.syncThreads();
            if (strip + 1 < strips)
                copy(std::uint32_t(stageBytes) - stage, strip + 1);
            m.commitCopies();
        } else {
            m.syncThreads(); // the strips before have been read
            copy(0U, strip);
            m.syncThreads();
        }
        multiply(stage);
    }
}

/// B's fragments for two neighbouring blocks of eight columns.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void loadRight(Machine& m, std::uint32_t (&right)[4], std::uint32_t b, int column, int step)
{
    const int lane = m.thread() % 32;
    if (Tile::bTransposed) {
        const Place place = matrixRowAcrossFirst(lane);
        m.loadMatrices(right, Tile::A::further(b + Tile::A::at(column + place.row, place.column), 2 * step));
        return;
    }
    const std::uint32_t at = b + std::uint32_t((step * Tile::stepRows + lane % 4) * Tile::B::rowBytes)
        + std::uint32_t((column + lane / 4) * 4);
    MEMSCAPE_UNROLL
    for (int r = 0; r < 4; ++r)
        right[r] = m.template loadShared<std::uint32_t>(
            at + std::uint32_t(r % 2 * 4 * Tile::B::rowBytes + r / 2 * mmaColumns * 4));
}

template <typename Tile, typename Machine, typename Sums>
MEMSCAPE_KERNEL void multiplyBytes(Machine& m, Sums& sums, std::uint32_t stage)
{
    const int warp = m.thread() / 32, row = warp / 2 * Tile::warpSide, column = warp % 2 * Tile::warpSide;
    MEMSCAPE_NO_UNROLL // Hopper widens FP8 to halves: four steps at once do not fit the registers
    for (int step = 0; step < Tile::steps; ++step) {
        std::uint32_t a[Tile::strips][4];
        MEMSCAPE_UNROLL
        for (int s = 0; s < Tile::strips; ++s)
            loadLeft<typename Tile::A>(m, a[s], stage, row + s * mmaRows, 2 * step);
        MEMSCAPE_UNROLL
        for (int block = 0; block < Tile::blocks; block += 2) {
            std::uint32_t right[4];
            loadRight<Tile>(m, right, stage + Tile::aBytes, column + block * mmaColumns, step);
            MEMSCAPE_UNROLL
            for (int s = 0; s < Tile::strips; ++s) {
                m.template multiplyNumbers<typename Tile::Numbers>(sums[s][block], a[s], right[0], right[1]);
                m.template multiplyNumbers<typename Tile::Numbers>(sums[s][block + 1], a[s], right[2], right[3]);
            }
        }
    }
}

template <typename Result, typename Machine, typename Sum>
MEMSCAPE_KERNEL Result asResult(Machine& m, Sum sum)
{
    if constexpr (sizeof(Result) < sizeof(Sum))
        return m.template narrow<Result>(sum);
    else
        return sum;
}

/// One block: a tile of C in one of the formats of format_tags.h.
template <typename Tile, bool isAsync, typename Machine>
MEMSCAPE_KERNEL void formatProduct(Machine& m, const FormatArguments& w)
{
    using Numbers = typename Tile::Numbers;
    using Result = typename Numbers::Result;
    const Place tile = productTile(m.blockX(), over(w.rows, Tile::side), over(w.columns, Tile::side));
    const int firstRow = tile.row * Tile::side, firstColumn = tile.column * Tile::side;
    const std::int64_t aRow = std::int64_t(w.inner) * Numbers::bytes,
                       bRow = std::int64_t(Tile::bTransposed ? w.inner : w.columns) * Numbers::bytes;
    typename Numbers::Sum sums[Tile::strips][Tile::blocks][4] = {};
    const auto copy = [&](std::uint32_t stage, int strip) {
        using Word = typename Tile::Word;
        const std::int64_t deepByte = std::int64_t(strip) * 128;
        copyBytes<typename Tile::A, Tile::side, Tile::threads, isAsync, Word>(m, stage, w.a, w.rows, aRow, firstRow,
                                                                              deepByte, w.isAligned);
        if constexpr (Tile::bTransposed)
            copyBytes<typename Tile::A, Tile::side, Tile::threads, isAsync, Word>(
                m, stage + Tile::aBytes, w.b, w.columns, bRow, firstColumn, deepByte, w.isAligned);
        else
            copyBytes<typename Tile::B, Tile::depth, Tile::threads, isAsync, Word>(
                m, stage + Tile::aBytes, w.b, w.inner, bRow, strip * Tile::depth,
                std::int64_t(firstColumn) * Numbers::bytes, w.isAligned);
    };
    throughStrips<Tile::stageBytes, isAsync>(m, over(w.inner, Tile::depth), copy,
                                             [&](std::uint32_t stage) { multiplyBytes<Tile>(m, sums, stage); });
    const int warp = m.thread() / 32, row0 = firstRow + warp / 2 * Tile::warpSide,
              column0 = firstColumn + warp % 2 * Tile::warpSide;
    MEMSCAPE_UNROLL
    for (int s = 0; s < Tile::strips; ++s) {
        MEMSCAPE_UNROLL
        for (int block = 0; block < Tile::blocks; ++block) {
            MEMSCAPE_UNROLL
            for (int r = 0; r < 4; ++r) {
                const Place place = placeInD(m.thread() % 32, r);
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
    const std::uint32_t left = stage + Tile::A::at(warp / 2 * Tile::warpSide + lane / 4, 0) + std::uint32_t(lane % 4 * 8);
    const std::uint32_t right = stage + Tile::aBytes + Tile::B::at(lane % 4, 0)
        + std::uint32_t((warp % 2 * Tile::warpSide + lane / 4) * 8);
    MEMSCAPE_UNROLL
    for (int step = 0; step < Tile::steps; ++step) {
        double a[Tile::strips], b[Tile::blocks];
        MEMSCAPE_UNROLL
        for (int s = 0; s < Tile::strips; ++s)
            a[s] = m.template loadShared<double>(left + std::uint32_t(s * 8 * Tile::A::rowBytes + step * 4 * 8));
        MEMSCAPE_UNROLL
        for (int block = 0; block < Tile::blocks; ++block)
            b[block] = m.template loadShared<double>(right + std::uint32_t(step * 4 * Tile::B::rowBytes + block * 8 * 8));
        MEMSCAPE_UNROLL
        for (int s = 0; s < Tile::strips; ++s) {
            MEMSCAPE_UNROLL
            for (int block = 0; block < Tile::blocks; ++block)
                m.multiplyDoubles(sums[s][block], a[s], b[block]);
        }
    }
}

/// One block: a tile of C in doubles.
template <typename Machine> MEMSCAPE_KERNEL void doubleProduct(Machine& m, const FormatArguments& w)
{
    using Tile = DoubleTile;
    const Place tile = productTile(m.blockX(), over(w.rows, Tile::side), over(w.columns, Tile::side));
    const int firstRow = tile.row * Tile::side, firstColumn = tile.column * Tile::side;
    double sums[Tile::strips][Tile::blocks][2] = {};
    const auto copy = [&](std::uint32_t stage, int strip) {
        const int deep = strip * Tile::depth;
        copyBytes<Tile::A, Tile::side, Tile::threads, true, std::uint32_t>(
            m, stage, w.a, w.rows, std::int64_t(w.inner) * 8, firstRow, std::int64_t(deep) * 8, w.isAligned);
        copyBytes<Tile::B, Tile::depth, Tile::threads, true, std::uint32_t>(
            m, stage + Tile::aBytes, w.b, w.inner, std::int64_t(w.columns) * 8, deep, std::int64_t(firstColumn) * 8,
            w.isAligned);
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
