// SPDX-License-Identifier: Apache-2.0
// Where an element of a tile lies in shared memory: rows of `columns` elements, `padding` elements
// behind each row, and the pieces of a row exchanged by an XOR with the row's number (swizzle).
// Arithmetic that the model, the GPU's kernel and the picture share, bit for bit. C++17, no library
// of ours: the GPU's compiler reads this file too.
//
//   address(e) = row · (columns + padding) · width + swizzled place in the row,   row = ⌊e / columns⌋
//
// The swizzle takes pieces of `granule` bytes. Piece p of a row goes to p ^ ((row >> shift) & mask),
// where mask + 1 pieces are 128 bytes, or the whole row where it is shorter, and 2^shift rows share
// 128 bytes. XOR with a constant is its own inverse, so no two elements meet.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define MEMSCAPE_SHARED_TILE __host__ __device__ constexpr
#else
#define MEMSCAPE_SHARED_TILE constexpr
#endif

namespace memscape {

inline constexpr std::uint32_t sharedBanks = 32;
inline constexpr std::uint32_t bankBytes = 4;
inline constexpr std::uint32_t bankRowBytes = sharedBanks * bankBytes; ///< what one wavefront moves at most

/// Made by sharedTile() of banks.h, which checks the sizes.
struct SharedTile
{
    std::uint32_t width = 4;    ///< B of one element: 1, 2, 4, 8 or 16
    std::uint32_t columns = 32; ///< elements of a row
    std::uint32_t padding = 0;  ///< unused elements behind each row
    std::uint32_t granule = 0;  ///< B exchanged by the swizzle; 0: none
    std::uint32_t mask = 0;     ///< pieces that are exchanged with each other, less one
    std::uint32_t shift = 0;    ///< log₂ of the rows that share 128 bytes
};

/// Bytes from the start of the tile to element `element`, counted row by row as the program does.
MEMSCAPE_SHARED_TILE std::uint32_t addressIn(const SharedTile& tile, std::uint32_t element)
{
    const std::uint32_t row = element / tile.columns;
    std::uint32_t inRow = element % tile.columns * tile.width;
    if (tile.granule != 0) {
        const std::uint32_t piece = inRow / tile.granule ^ (row >> tile.shift & tile.mask);
        inRow = piece * tile.granule + inRow % tile.granule;
    }
    return row * (tile.columns + tile.padding) * tile.width + inRow;
}

/// Bytes of `rows` rows with their padding.
MEMSCAPE_SHARED_TILE std::uint32_t bytesOf(const SharedTile& tile, std::uint32_t rows)
{
    return rows * (tile.columns + tile.padding) * tile.width;
}

} // namespace memscape
