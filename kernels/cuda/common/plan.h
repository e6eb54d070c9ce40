// SPDX-License-Identifier: Apache-2.0
// The arithmetic that a kernel and the host must agree on: which element a thread touches, which
// chunk a block reads in which lap, which value lies where. Every function is compiled twice, by
// nvcc for the GPU and by the host compiler, where the tests count that each element is touched
// exactly once. C++17, no library of ours: nvcc reads this file.
//
// Elements are words of 1, 2, 4, 8 or 16 bytes without an arithmetic type: memory does not know
// whether 4 bytes are a float, and integer sums are exact in any order, so a check is yes or no.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define MEMSCAPE_HD __host__ __device__ inline
#else
#define MEMSCAPE_HD inline
#endif

namespace memscape::cuda {

constexpr int lanesPerWarp = 32;
constexpr std::uint64_t nodeBytes = 128; ///< one node of a pointer chase per line
constexpr int inFlight = 4;              ///< independent loads that the best versions keep open

struct alignas(8) Word8
{
    std::uint32_t a, b;
};
struct alignas(16) Word16
{
    std::uint32_t a, b, c, d;
};

// ---- occupancy ---------------------------------------------------------------------------------

/// The fewest blocks per multiprocessor that bring so many warps: one up to 32, two beyond.
struct Occupancy
{
    int blocksPerSm;
    int threads; ///< of a block
};
MEMSCAPE_HD Occupancy occupancyOf(int warps)
{
    const int blocks = warps > 32 ? 2 : 1;
    return Occupancy{blocks, (warps + blocks - 1) / blocks * lanesPerWarp};
}

// ---- values ------------------------------------------------------------------------------------

/// Well-mixed 32 bits of an index: data that is not zero (zeros draw less power and hide mistakes).
MEMSCAPE_HD std::uint32_t mixed(std::uint64_t index)
{
    std::uint32_t x = static_cast<std::uint32_t>(index) ^ static_cast<std::uint32_t>(index >> 32);
    x = (x ^ (x >> 16)) * 0x85ebca6bU;
    x = (x ^ (x >> 13)) * 0xc2b2ae35U;
    return x ^ (x >> 16);
}

/// The value of a word made from 32 bits; `fold` is its share of a check sum.
template <typename Word> MEMSCAPE_HD Word wordOf(std::uint32_t bits)
{
    return static_cast<Word>(bits);
}
template <> MEMSCAPE_HD Word8 wordOf<Word8>(std::uint32_t bits)
{
    return Word8{bits, bits ^ 0x5bd1e995U};
}
template <> MEMSCAPE_HD Word16 wordOf<Word16>(std::uint32_t bits)
{
    return Word16{bits, bits ^ 0x5bd1e995U, bits + 0x9e3779b9U, ~bits};
}

MEMSCAPE_HD std::uint32_t fold(std::uint8_t word)
{
    return word;
}
MEMSCAPE_HD std::uint32_t fold(std::uint16_t word)
{
    return word;
}
MEMSCAPE_HD std::uint32_t fold(std::uint32_t word)
{
    return word;
}
MEMSCAPE_HD std::uint32_t fold(Word8 word)
{
    return word.a + word.b;
}
MEMSCAPE_HD std::uint32_t fold(Word16 word)
{
    return word.a + word.b + word.c + word.d;
}

/// What a write kernel stores as its i-th element: cheap, so that stores and not arithmetic are
/// timed, and different from its neighbours.
MEMSCAPE_HD std::uint32_t writtenBits(std::uint64_t i)
{
    return static_cast<std::uint32_t>(i) * 2654435761U + 1U;
}

/// b + 3 c, lane by lane, wrapping: the triad in integers.
template <typename Word> MEMSCAPE_HD Word triadOf(Word b, Word c)
{
    return static_cast<Word>(b + 3U * c);
}
template <> MEMSCAPE_HD Word8 triadOf<Word8>(Word8 b, Word8 c)
{
    return Word8{b.a + 3U * c.a, b.b + 3U * c.b};
}
template <> MEMSCAPE_HD Word16 triadOf<Word16>(Word16 b, Word16 c)
{
    return Word16{b.a + 3U * c.a, b.b + 3U * c.b, b.c + 3U * c.c, b.d + 3U * c.d};
}

// ---- which element -----------------------------------------------------------------------------

/// first + i × step: contiguous (0, 1), strided and AoS (0, s), SoA (0, 1), misaligned (k, 1).
struct Walk
{
    std::uint64_t first = 0;
    std::uint64_t step = 1;
    std::uint64_t touched = 0; ///< how many i there are
};

MEMSCAPE_HD std::uint64_t walkIndex(const Walk& walk, std::uint64_t i)
{
    return walk.first + i * walk.step;
}

/// The walk that starts `first` elements in and takes every `step`-th of `count` elements, as many
/// as there are. A step of 0 (every lane reads one element) is walked as often as there are
/// elements.
MEMSCAPE_HD Walk walkOf(std::uint64_t count, std::uint64_t first, std::uint64_t step)
{
    const std::uint64_t rest = count > first ? count - first : 0;
    if (rest == 0)
        return Walk{first, step, 0};
    return Walk{first, step, step == 0 ? rest : (rest - 1) / step + 1};
}

/// Bits needed to hold 0 … n-1.
MEMSCAPE_HD int bitsFor(std::uint64_t n)
{
    int bits = 0;
    while (bits < 64 && ((n - 1) >> bits) != 0)
        ++bits;
    return n <= 1 ? 0 : bits;
}

/// A permutation of 0 … n-1 without a table: odd multiplications and xor-shifts are bijections of k
/// bits; a value beyond n is sent round again until it falls inside, which keeps it a bijection.
MEMSCAPE_HD std::uint64_t permuted(std::uint64_t i, std::uint64_t n, std::uint32_t seed)
{
    const int bits = bitsFor(n);
    if (bits == 0)
        return 0;
    const std::uint64_t mask = bits == 64 ? ~0ULL : (1ULL << bits) - 1;
    const int shift = bits > 1 ? (bits + 1) / 2 : 1;
    std::uint64_t x = i;
    do {
        x = (x + seed) & mask;
        x = (x * 0x9e3779b97f4a7c15ULL) & mask;
        x ^= x >> shift;
        x = (x * 0xbf58476d1ce4e5b9ULL) & mask;
        x ^= x >> shift;
        x = (x * 0x94d049bb133111ebULL) & mask;
        x ^= x >> shift;
    } while (x >= n);
    return x;
}

// ---- which block -------------------------------------------------------------------------------

/// Blocks that give each of `items` a thread, at least one, at most what a grid holds.
MEMSCAPE_HD std::uint64_t blocksFor(std::uint64_t items, std::uint64_t threads)
{
    const std::uint64_t blocks = (items + threads - 1) / threads;
    return blocks == 0 ? 1 : blocks;
}

/// A block size that a kernel may have: whole warps, so that no lane is missing from a shuffle.
MEMSCAPE_HD bool wholeWarps(int threads)
{
    return threads >= lanesPerWarp && threads <= 1024 && threads % lanesPerWarp == 0;
}

/// The chunk that block `block` reads in lap `lap`: within a round of `chunks` reads each chunk
/// comes once, neighbours in time are not neighbours in memory, and the next round deals them anew,
/// so that a chunk is read by many SMs and no SM keeps its own part of L2.
MEMSCAPE_HD std::uint64_t chunkOf(std::uint64_t block, std::uint64_t lap, std::uint64_t blocks, std::uint64_t chunks)
{
    const std::uint64_t turn = lap * blocks + block;
    return permuted(turn % chunks, chunks, static_cast<std::uint32_t>(turn / chunks) * 7919U);
}

} // namespace memscape::cuda
