// SPDX-License-Identifier: Apache-2.0
// Which element of a matrix a lane of a warp holds for mma.sync, which row of shared memory it
// points at for ldmatrix, and where a tile's 16-byte chunks lie so that no two of eight rows meet in
// a bank. Source: PTX ISA, "Matrix Fragments for mma.m16n8k16" and ".m16n8k8 with 16-bit types",
// "ldmatrix"; shared memory has 32 banks of 4 bytes, and eight lanes at a time move 16 bytes each.
//
//   D (16 × 8) += A (16 × 16) · B (16 × 8)      lane = 4 × group + pair, two 16-bit elements a register
//   A  register r: row group + 8 (r mod 2),      columns 2 pair, 2 pair + 1, + 8 (r / 2)
//   B  register r: rows 2 pair, + 1, + 8 r,      column group
//   D  float r:    row group + 8 (r / 2),        column 2 pair + r mod 2
// Two D tiles side by side are an A tile: the sums of one product are the left side of the next
// without leaving their lanes.
//
// Swizzle: chunk c of row r lies at place c ^ (r mod 8) of the row.
#pragma once

#include "kernels/cuda/attention/shape.h"

namespace memscape::cuda {

constexpr int mmaRows = 16, mmaColumns = 8, mmaDepth = 16;
constexpr int chunkBytes = 16, chunkElements = 8; ///< of 16-bit elements

struct TilePlace
{
    int row;
    int column;
};

/// The first of the two elements of register `r` of A.
MEMSCAPE_BOTH TilePlace placeInA(int lane, int r)
{
    return TilePlace{lane / 4 + r % 2 * 8, lane % 4 * 2 + r / 2 * 8};
}
/// The first of the two elements of register `r` of B; the second is one row further down.
MEMSCAPE_BOTH TilePlace placeInB(int lane, int r)
{
    return TilePlace{lane % 4 * 2 + r * 8, lane / 4};
}
/// Float `r` of D.
MEMSCAPE_BOTH TilePlace placeInD(int lane, int r)
{
    return TilePlace{lane / 4 + r / 2 * 8, lane % 4 * 2 + r % 2};
}

/// Where chunk `chunk` of row `row` lies among the chunks of its row, which are 2, 4, or 8 and more:
/// the chunks of one column in eight neighbouring rows fall into eight different sixths of 128 bytes.
template <int chunksPerRow> MEMSCAPE_BOTH int swizzled(int row, int chunk)
{
    static_assert(chunksPerRow == 2 || chunksPerRow == 4 || chunksPerRow % 8 == 0,
                  "rows of 32, 64 or a multiple of 128 bytes");
    if (chunksPerRow >= 8)
        return chunk ^ (row & 7);
    return chunksPerRow == 4 ? chunk ^ (row >> 1 & 3) : chunk ^ (row >> 2 & 1);
}

/// A tile of rows in shared memory, its chunks swizzled or one after the other.
template <int chunks, bool isSwizzled = true> struct TileLayout
{
    static constexpr int chunksPerRow = chunks;
    static constexpr int rowBytes = chunks * chunkBytes;
    MEMSCAPE_BOTH static std::uint32_t at(int row, int chunk)
    {
        const int place = isSwizzled ? swizzled<chunks>(row, chunk) : chunk;
        return std::uint32_t(row * rowBytes + place * chunkBytes);
    }
    /// `chunk` (even) chunks further than an even or odd chunk next to the row's start: the bits do
    /// not overlap, so one exclusive or replaces the swizzle, and a lane needs one address per tile
    /// instead of one per chunk. The tile must begin at a multiple of its row.
    MEMSCAPE_BOTH static std::uint32_t further(std::uint32_t address, int chunk)
    {
        static_assert(!isSwizzled || chunks == 4 || chunks % 8 == 0, "the swizzle stays inside the row");
        const auto bytes = std::uint32_t(chunk * chunkBytes);
        return isSwizzled ? address ^ bytes : address + bytes;
    }
    /// Of the 16-bit element `column` of a row.
    MEMSCAPE_BOTH static std::uint32_t element(int row, int column)
    {
        return at(row, column / chunkElements) + std::uint32_t(column % chunkElements * 2);
    }
};

/// What lane `lane` points at for ldmatrix.x4 over 16 rows × 2 chunks: matrices 0, 1 above each
/// other, then 2, 3 beside them. As A; or transposed as B, where rows run along the depth.
MEMSCAPE_BOTH TilePlace matrixRowDownFirst(int lane)
{
    return TilePlace{lane / 8 % 2 * 8 + lane % 8, lane / 16};
}
/// The same with matrices 0, 1 beside each other, then 2, 3 below: as B, rows along the columns.
MEMSCAPE_BOTH TilePlace matrixRowAcrossFirst(int lane)
{
    return TilePlace{lane / 16 * 8 + lane % 8, lane / 8 % 2};
}

/// The first chunk that a thread copies of a tile: neighbours in a warp copy neighbours in memory.
template <int chunksPerRow> MEMSCAPE_BOTH TilePlace firstChunk(int thread)
{
    return TilePlace{thread / chunksPerRow, thread % chunksPerRow};
}
/// How many rows further down its next chunk lies, in the same column. A multiple of the eight rows
/// after which a swizzle repeats, so that one address in shared memory serves for all of them.
template <int chunksPerRow, int threads> MEMSCAPE_BOTH int rowsPerTurn()
{
    static_assert(threads % (8 * chunksPerRow) == 0, "a turn of copies is eight rows or more");
    return threads / chunksPerRow;
}

} // namespace memscape::cuda
