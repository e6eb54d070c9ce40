// SPDX-License-Identifier: Apache-2.0
// Random choices without tables. Below, randomElement() draws with replacement; a permutation is
// a random order of [0, count) as a function, not as a shuffled array: p(i) is computed, so any thread
// can fill any part of an index array at once, and 256 Mi indices need no second array. Three rounds of
// a bijection on b bits (add a key, fold the upper half onto the lower, multiply by an odd number) and
// cycle walking: values outside the range are mapped again, fewer than two tries on average.
// Same seed, same order. Good enough to defeat every prefetcher; not for statistics or secrets.
#pragma once

#include <bit>
#include <cstdint>

namespace memscape::host {

/// splitmix64: the next of a sequence of well mixed 64-bit numbers.
inline std::uint64_t nextRandom(std::uint64_t& state)
{
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

__extension__ using Wide128 = unsigned __int128;

/// The i-th of a sequence of independent uniform draws from [0, elements): a hash of i, scaled. Costs a
/// few cycles and depends on nothing before it, so a core can start many of them at once.
inline std::uint64_t randomElement(std::uint64_t i, std::uint64_t elements)
{
    std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
    z ^= z >> 32;
    z *= 0xd6e8feb86659fd93u;
    return static_cast<std::uint64_t>((static_cast<Wide128>(z) * elements) >> 64);
}

class IndexPermutation
{
public:
    /// count ≥ 1.
    IndexPermutation(std::uint64_t count, std::uint64_t seed)
        : m_count(count)
        , m_bits(count > 1 ? static_cast<int>(std::bit_width(count - 1)) : 1)
        , m_mask(m_bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << m_bits) - 1)
    {
        for (Round& round : m_rounds) {
            round.key = nextRandom(seed) & m_mask;
            round.factor = nextRandom(seed) | 1;
        }
    }

    std::uint64_t operator()(std::uint64_t i) const
    {
        do {
            for (const Round& round : m_rounds) {
                i = (i + round.key) & m_mask;
                i ^= i >> (m_bits / 2 + 1);
                i = i * round.factor & m_mask;
                i ^= i >> (m_bits / 2 + 1);
            }
        } while (i >= m_count);
        return i;
    }

private:
    struct Round
    {
        std::uint64_t key = 0, factor = 1;
    };

    std::uint64_t m_count;
    int m_bits;
    std::uint64_t m_mask;
    Round m_rounds[3];
};

} // namespace memscape::host
