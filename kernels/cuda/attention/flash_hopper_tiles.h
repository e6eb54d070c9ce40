// SPDX-License-Identifier: Apache-2.0
// How a tile must lie in shared memory so that Hopper's copy engine can write it and its tensor cores
// can read it without a thread in between, and the descriptors for it.
//
// A tile of rows × d halves is cut into pieces of 64 columns: rows of 128 bytes, one behind the other.
// Eight rows are an atom of 1024 bytes, in which chunk c of 16 bytes of row r lies at place c ^ (r mod
// 8): fragments.h's swizzle, made by the copy engine itself. A descriptor of 64 bits names a matrix:
//
//   bits  0-13  address / 16         bits 16-29  leading offset / 16       bits 32-45  stride offset / 16
//   bits 49-51  where the swizzle's pattern begins, 0 at a multiple of 1024       bits 62-63  1: 128 bytes
//
//   rows along the product's depth's other side (Q, K: "K-major")    stride: from 8 rows to the next 8;
//       16 columns further is 32 bytes further, inside the atom      leading: not used, 1
//   rows along the depth (V: "MN-major", transposed)                 stride: from 8 rows to the next 8;
//       16 rows further is 2048 bytes further                        leading: from a piece to the next
//
// Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions": "Shared Memory Matrix Layout",
// "Strides", "Matrix Descriptor Format"; "Tensors": "Swizzling Modes".
#pragma once

#include "kernels/cuda/attention/flash_tile.h"

namespace memscape::cuda {

constexpr int pieceColumns = 64; ///< of 16 bits: the 128 bytes within which chunks change places
constexpr std::uint32_t pieceRowBytes = 128, atomRows = 8, atomBytes = atomRows * pieceRowBytes;

/// The copy engine's descriptor of Q, K or V: planes of rows of halves, of which it fetches boxes of
/// `boxRows` rows and one piece's columns. What lies beyond the last row of a plane becomes zeros.
struct TileMap
{
    const void* data = nullptr;
    std::uint64_t columns = 0, rows = 0, planes = 0;
    std::uint32_t boxRows = 0;
    bool isBfloat = false;
};

/// Of a matrix whose first element lies at `address`.
MEMSCAPE_BOTH std::uint64_t matrixDescriptor(std::uint32_t address, std::uint32_t leading, std::uint32_t stride)
{
    constexpr std::uint64_t swizzledBy128 = 1;
    return std::uint64_t((address & 0x3ffff) >> 4) | std::uint64_t(leading >> 4) << 16
        | std::uint64_t(stride >> 4) << 32 | swizzledBy128 << 62;
}

/// A block of two warpgroups with 64 rows of Q each, over tiles of 128 keys in two stages, and the
/// warpgroup that fetches them. 64 × 128 scores, 64 × d sums and the weights of the tile before
/// are 160 of a thread's 240 registers at d = 128; shared memory holds Q and four tiles, 160 KiB.
template <typename TheElement, int theHeadDim> struct FlashHopper
{
    using Element = TheElement;
    static constexpr int headDim = theHeadDim, strips = 1;
    static constexpr int consumers = 2, groupThreads = 128, threads = (consumers + 1) * groupThreads;
    static constexpr int rowsPerWarp = mmaRows, rowsPerGroup = 64, rows = consumers * rowsPerGroup;
    static constexpr int keys = 128, stages = 2;
    static constexpr int keyBlocks = keys / mmaColumns, outputBlocks = headDim / mmaColumns;
    static constexpr int depthSteps = headDim / mmaDepth, keySteps = keys / mmaDepth;
    static constexpr int pieces = headDim / pieceColumns;
    using Scores = Sums<strips, keyBlocks>;
    using Output = Sums<strips, outputBlocks>;
    using Weights = std::uint32_t[keySteps][4]; ///< as left sides, see asLeft()

    static_assert(rows == keys, "tiles of Q, K and V are one size");
    static constexpr std::uint32_t pieceBytes = keys * pieceRowBytes;
    static constexpr std::uint32_t tileBytes = pieces * pieceBytes;

    // Shared memory: Q, then K and V of every stage, then the barriers.
    static constexpr std::uint32_t queryTile = 0;
    MEMSCAPE_BOTH static std::uint32_t keyTile(int stage) { return tileBytes * std::uint32_t(1 + 2 * stage); }
    MEMSCAPE_BOTH static std::uint32_t valueTile(int stage) { return keyTile(stage) + tileBytes; }

    enum Barrier {
        QueryThere,
        KeysThere,
        ValuesThere = KeysThere + stages,
        KeysRead = ValuesThere + stages,
        ValuesRead = KeysRead + stages,
        barriers = ValuesRead + stages
    };
    static constexpr int barrierBytes = 8;
    MEMSCAPE_BOTH static std::uint32_t barrier(int which, int stage = 0)
    {
        return tileBytes * std::uint32_t(1 + 2 * stages) + std::uint32_t((which + stage) * barrierBytes);
    }
    static constexpr int sharedBytes = int(tileBytes) * (1 + 2 * stages) + int(barriers) * barrierBytes;
};

/// Which stage tile `tile` lies in, and the parity of the barriers' phase for it: a barrier's phases
/// count 0, 1, 2, …, one for every tile that passes through its stage.
template <typename Tile> MEMSCAPE_BOTH int stageOf(int tile)
{
    return tile % Tile::stages;
}
template <typename Tile> MEMSCAPE_BOTH std::uint32_t parityOf(int tile)
{
    return std::uint32_t(tile / Tile::stages % 2);
}

/// The maps of Q, and of K and V.
template <typename Tile> TileMap queryMap(const AttentionSizes& s, const void* data, bool isBfloat)
{
    return {data,
            std::uint64_t(s.headDim),
            std::uint64_t(s.queries),
            std::uint64_t(s.batch) * std::uint64_t(s.heads),
            Tile::rows,
            isBfloat};
}
template <typename Tile> TileMap keyMap(const AttentionSizes& s, const void* data, bool isBfloat)
{
    return {data,
            std::uint64_t(s.headDim),
            std::uint64_t(s.keys),
            std::uint64_t(s.batch) * std::uint64_t(s.kvHeads),
            Tile::keys,
            isBfloat};
}

} // namespace memscape::cuda
