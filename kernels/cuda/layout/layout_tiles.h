// SPDX-License-Identifier: Apache-2.0
// The copies of layout.cu but the first. Version 4 brings every thread 64 bytes at once: 132 multiprocessors of an H200
// read 4.8 TB/s when about 25 KB are on their way to each (bandwidth × latency); eight blocks of 256 threads bring 128.
//
//   rows    words of up to 16 bytes where the walk follows the storage; element by element where it does not
//   tiles   elements one by one; or 16 bytes a load and a store: a warp reads and writes whole lines of 128 bytes. In
//   shared memory lie words
//           of four bytes, and what they hold of one, two or four neighbours of b becomes neighbours of a by
//           permutations of bytes in registers: none for 4-byte elements, one for two words of 2-byte elements,
//           eight for four words of bytes.
//
// Machine is the GPU (attention/gpu_machine.cuh) or the tests' emulator.
#pragma once

#include "kernels/cuda/attention/shape.h"
#include "kernels/cuda/layout/layout_plan.h"

namespace memscape::cuda {

/// 4, 8 or 16 bytes as they travel.
template <int count> struct alignas(4 * count) WordChunk
{
    std::uint32_t at[count];
};

// ---- rows -------------------------------------------------------------------------------------

constexpr int rowsThreads = 256;
/// Words that a thread has on their way: 64 bytes of them, or 16; 8 of a walk in 64 bits, whose divisions fill the
/// registers.
template <typename Word, typename Nest>
constexpr int rowsInFlight = sizeof(Word) > 4 ? 64 / int(sizeof(Word))
    : sizeof(typename Nest::Index) > 4        ? 8
                                              : 16;

/// target[i] = source[visit i]: a block takes neighbours of the walk, `inFlight` times as many as it has threads.
template <typename Machine, typename Word, typename Nest>
MEMSCAPE_KERNEL void copyRows(Machine& m, const Word* source, Word* target, const Nest& nest)
{
    using Index = typename Nest::Index;
    constexpr int inFlight = rowsInFlight<Word, Nest>;
    constexpr std::uint64_t perBlock = std::uint64_t(inFlight) * rowsThreads;
    for (std::uint64_t first = std::uint64_t(m.blockX()) * perBlock; first < nest.elements;
         first += std::uint64_t(m.blocksX()) * perBlock) {
        const std::uint64_t mine = first + std::uint64_t(m.thread());
        Index visit[inFlight], at[inFlight];
        MEMSCAPE_UNROLL
        for (int k = 0; k < inFlight; ++k)
            visit[k] = static_cast<Index>(mine + std::uint64_t(k * rowsThreads));
        elementsAt(nest, visit, at);
        Word word[inFlight];
        MEMSCAPE_UNROLL
        for (int k = 0; k < inFlight; ++k) {
            if (mine + std::uint64_t(k * rowsThreads) < nest.elements)
                word[k] = m.load(source + at[k]);
        }
        MEMSCAPE_UNROLL
        for (int k = 0; k < inFlight; ++k) {
            if (mine + std::uint64_t(k * rowsThreads) < nest.elements)
                m.store(target + (mine + std::uint64_t(k * rowsThreads)), word[k]);
        }
    }
}

// ---- tiles of elements ------------------------------------------------------------------------

template <typename Word, int atOnce>
constexpr int paddedSharedBytes = atOnce* turnSide* tileRow(3, sizeof(Word)) * int(sizeof(Word));

/// Versions 2 and 3: block x, of 32 × 8 threads, turns a tile of 32 × 32. Version 4 where words do not hold whole
/// elements, or elements lie apart: `atOnce` tiles along b, all loads before the first store.
template <int version, int atOnce, typename Machine, typename Word>
MEMSCAPE_KERNEL void turnPaddedTile(Machine& m, const Word* source, Word* target, const TurnTiles& tiles)
{
    constexpr int turns = turnSide / 8, tileBytes = paddedSharedBytes<Word, 1>;
    const TurnPlan& plan = tiles.plan;
    const TurnTile tile = turnTile(tiles, std::uint32_t(m.blockX()));
    const int lane = m.thread() % turnSide, row = m.thread() / turnSide;
    const Word* from = source + tile.from + (row * plan.aFrom + lane * plan.bFrom);
    Word* to = target + tile.to + (row * plan.bTo + lane);
    const auto place = [](int strip, int a, int b) {
        return std::uint32_t(strip * tileBytes + (a * tileRow(version, sizeof(Word)) + b) * int(sizeof(Word)));
    };
    Word word[atOnce * turns];
    MEMSCAPE_UNROLL
    for (int k = 0; k < atOnce * turns; ++k) {
        const int down = k % turns * 8, across = k / turns * turnSide;
        if (row < tile.aLeft - down && lane < tile.bLeft - across)
            word[k] = m.load(from + (down * plan.aFrom + across * plan.bFrom));
    }
    MEMSCAPE_UNROLL
    for (int k = 0; k < atOnce * turns; ++k) // what lies beyond the matrix is stored, and goes no further
        m.storeShared(place(k / turns, row + k % turns * 8, lane), word[k]);
    m.syncThreads();
    MEMSCAPE_UNROLL
    for (int k = 0; k < atOnce * turns; ++k) {
        if (lane < tile.aLeft && row < tile.bLeft - k * 8)
            m.store(to + k * 8 * plan.bTo, m.template loadShared<Word>(place(k / turns, lane, row + k % turns * 8)));
    }
}

// ---- tiles of words ---------------------------------------------------------------------------

/// Four of the eight bytes of two words, the low word's first; a digit of `selector` chooses each, the lowest first.
MEMSCAPE_VIEW std::uint32_t bytesOf(std::uint32_t low, std::uint32_t high, std::uint32_t selector)
{
#ifdef __CUDA_ARCH__
    return __byte_perm(low, high, selector);
#else
    const std::uint64_t both = std::uint64_t(high) << 32 | low;
    std::uint32_t chosen = 0;
    for (int i = 0; i < 4; ++i)
        chosen |= std::uint32_t(both >> (8 * (selector >> (4 * i) & 7)) & 255) << (8 * i);
    return chosen;
#endif
}

/// Words of `perWord` rows, each with as many neighbours of b: becomes words of as many neighbours of a, in place.
template <int perWord> MEMSCAPE_VIEW void turnWords(std::uint32_t* word)
{
    if (perWord == 2) {
        const std::uint32_t first = bytesOf(word[0], word[1], 0x5410U);
        word[1] = bytesOf(word[0], word[1], 0x7632U);
        word[0] = first;
    }
    if (perWord == 4) {
        const std::uint32_t low01 = bytesOf(word[0], word[1], 0x5140U), low23 = bytesOf(word[2], word[3], 0x5140U);
        const std::uint32_t high01 = bytesOf(word[0], word[1], 0x7362U), high23 = bytesOf(word[2], word[3], 0x7362U);
        word[0] = bytesOf(low01, low23, 0x5410U);
        word[1] = bytesOf(low01, low23, 0x7632U);
        word[2] = bytesOf(high01, high23, 0x5410U);
        word[3] = bytesOf(high01, high23, 0x7632U);
    }
}

/// Rows of the storage into shared memory: all loads, then all stores.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void loadTile(Machine& m, const char* source, const TurnPlan& plan, const TurnTile& tile)
{
    using Chunk = WordChunk<Tile::chunkWords>;
    const int row = m.thread() / Tile::chunks, chunk = m.thread() % Tile::chunks;
    const std::uint64_t rowBytes = plan.aFrom * Tile::elementBytes;
    const char* from = source + tile.from * Tile::elementBytes + (row * rowBytes + chunk * sizeof(Chunk));
    Chunk loaded[Tile::turns];
    MEMSCAPE_UNROLL
    for (int turn = 0; turn < Tile::turns; ++turn) {
        const int strip = turn * Tile::rowsPerTurn / Tile::aSide, down = turn * Tile::rowsPerTurn % Tile::aSide;
        if (row < tile.aLeft - down && chunk * Tile::perChunk < tile.bLeft - strip * Tile::aSide)
            loaded[turn] = m.load(reinterpret_cast<const Chunk*>(from + down * rowBytes + strip * 128));
    }
    const std::uint32_t at = Tile::chunkAt(row, chunk);
    MEMSCAPE_UNROLL
    for (int turn = 0; turn < Tile::turns; ++turn) // what lies beyond the matrix is stored, and goes no further
        m.storeShared(Tile::chunkAfter(at, turn), loaded[turn]);
}

/// Columns of words into rows of the target: a thread takes a chunk of a, for each of the word's neighbours of b.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void storeTile(Machine& m, char* target, const TurnPlan& plan, const TurnTile& tile)
{
    using Chunk = WordChunk<Tile::chunkWords>;
    const int row = m.thread() % Tile::chunks * Tile::perChunk, column = m.thread() / Tile::chunks;
    const std::uint64_t rowBytes = plan.bTo * Tile::elementBytes;
    char* to = target + tile.to * Tile::elementBytes + (column * Tile::perWord * rowBytes + row * Tile::elementBytes);
    const std::uint32_t at = Tile::wordAt(row, column);
    MEMSCAPE_UNROLL
    for (int turn = 0; turn < Tile::columnTurns; ++turn) {
        const int across = turn * Tile::columnsPerTurn * Tile::perWord;
        if (row >= tile.aLeft || column * Tile::perWord >= tile.bLeft - across)
            continue;
        std::uint32_t word[Tile::perChunk];
        MEMSCAPE_UNROLL
        for (int k = 0; k < Tile::perChunk; ++k)
            word[k] = m.template loadShared<std::uint32_t>(Tile::wordAfter(at, turn) + std::uint32_t(k * 128));
        MEMSCAPE_UNROLL
        for (int k = 0; k < Tile::perChunk; k += Tile::perWord)
            turnWords<Tile::perWord>(word + k);
        MEMSCAPE_UNROLL
        for (int j = 0; j < Tile::perWord; ++j) {
            Chunk chunk;
            MEMSCAPE_UNROLL
            for (int i = 0; i < Tile::chunkWords; ++i)
                chunk.at[i] = word[i * Tile::perWord + j];
            m.store(reinterpret_cast<Chunk*>(to + (across + j) * rowBytes), chunk);
        }
    }
}

/// Block x turns tile x.
template <typename Tile, typename Machine>
MEMSCAPE_KERNEL void turnWordTile(Machine& m, const void* source, void* target, const TurnTiles& tiles)
{
    const TurnTile tile = turnTile(tiles, std::uint32_t(m.blockX()));
    loadTile<Tile>(m, static_cast<const char*>(source), tiles.plan, tile);
    m.syncThreads();
    storeTile<Tile>(m, static_cast<char*>(target), tiles.plan, tile);
}

} // namespace memscape::cuda
