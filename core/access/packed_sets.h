// SPDX-License-Identifier: Apache-2.0
// The lines of a cache of at most 16 ways, laid out so that a simulated miss costs few real ones.
//
// Each set begins with a head of 32 bytes: the order of its ways from most to least recent, four
// bits a way in one word, so that a touch moves bits instead of lines; and in the same order an
// 8-bit fingerprint of each way's line. A lookup compares all fingerprints at once and reads a line
// only where one agrees (one way in 256 agrees by chance). So a miss reads the head, pushes a way
// and a fingerprint to its front, and replaces one line. The lines follow their head: 96 bytes a
// set of 8 ways, 160 of 16, no powers of two, so that strides spread over the real machine's sets.
#pragma once

#include "core/access/fingerprints.h"

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace memscape {

/// A way of a set as it is stored: the line's number, and what it has beside it in bits that no
/// line reaches (an address is below 2^57).
struct CacheWord
{
    static constexpr std::uint64_t dirtyBit = std::uint64_t(1) << 63;
    static constexpr std::uint64_t emptyBit = std::uint64_t(1) << 62;

    std::uint64_t bits = emptyBit;

    static CacheWord of(std::uint64_t line, bool isDirty)
    {
        return {line | std::uint64_t(isDirty) << 63};
    }
    std::uint64_t line() const { return bits & ~(dirtyBit | emptyBit); }
    bool isDirty() const { return bits & dirtyBit; }
    bool isEmpty() const { return bits & emptyBit; }
    /// Neither empty nor dirty: when it goes, nobody hears of it.
    bool isClean() const { return bits < emptyBit; }
    bool holds(std::uint64_t line) const { return (bits ^ line) << 1 == 0; }
};

/// The line that another one replaced.
struct CacheVictim
{
    CacheWord word;
    std::uint32_t way = 0;
};

/// Of 8 bytes: a head of four, then the lines, in whole pieces of 32 bytes.
constexpr std::uint64_t packedSetWords(std::uint64_t ways)
{
    return 4 + (ways + 3) / 4 * 4;
}

/// Where the sets lie, as a value: a loop over many lines keeps it in registers. `Ways` is their
/// number where it is known when compiling, else 0. What every lookup does is inlined by force: the
/// many loops over it are more than the compiler would copy it into by itself.
template <int Ways> class PackedSetsView
{
public:
    PackedSetsView(std::uint64_t* words, std::uint64_t ways)
        : m_words(words)
        , m_ways(ways)
    {
    }

    /// The way of a line that is here, now the most recent, dirty after a write; else -1.
    [[gnu::always_inline]] int hit(std::uint64_t set, std::uint64_t line, bool isWrite) const
    {
        const Place place = find(set, line);
        if (place.way >= 0) {
            makeRecent(headOf(set), place, line);
            if (isWrite)
                lineOf(set, unsigned(place.way)) |= CacheWord::dirtyBit;
        }
        return place.way;
    }

    /// Puts a line that is not here in the place of the least recent.
    [[gnu::always_inline]] CacheVictim replace(std::uint64_t set, std::uint64_t line,
                                               bool isWrite) const
    {
        std::uint64_t* const head = headOf(set);
        const std::uint64_t way = wayAt(set, ways() - 1);
        head[0] = (head[0] << 4 | way) & orderMask();
        Fingerprints::load(head + 2).pushed(fingerprint(line)).store(head + 2);
        std::uint64_t& place = lineOf(set, way);
        const CacheWord old{place};
        place = CacheWord::of(line, isWrite).bits;
        return {old, std::uint32_t(way)};
    }

    /// Marks `line` dirty without making it recent; false when it is not here.
    bool writeBack(std::uint64_t set, std::uint64_t line) const
    {
        const Place place = find(set, line);
        if (place.way >= 0)
            lineOf(set, unsigned(place.way)) |= CacheWord::dirtyBit;
        return place.way >= 0;
    }

    /// Asks the real machine for a set that will be looked up.
    void prefetch(std::uint64_t set) const { __builtin_prefetch(headOf(set), 1); }
    /// And, when its head has come, for the line that will be replaced there.
    void prefetchVictim(std::uint64_t set) const
    {
        __builtin_prefetch(&lineOf(set, wayAt(set, ways() - 1)), 1);
    }

    /// The way that is `recency`-th; 0 is the most recent.
    std::uint64_t wayAt(std::uint64_t set, std::uint64_t recency) const
    {
        return headOf(set)[0] >> 4 * recency & 15;
    }
    CacheWord wordAt(std::uint64_t set, std::uint64_t recency) const
    {
        return {lineOf(set, wayAt(set, recency))};
    }
    /// All ways empty. The least recent place has way 0, so a set fills from way 0 up.
    void clear(std::uint64_t set) const
    {
        std::uint64_t order = 0;
        for (std::uint64_t way = 0; way < ways(); ++way) {
            order = order << 4 | way;
            lineOf(set, way) = CacheWord().bits;
        }
        headOf(set)[0] = order;
        Fingerprints().store(headOf(set) + 2);
    }

private:
    struct Place
    {
        int way = -1;
        unsigned recency = 0;
    };

    std::uint64_t ways() const { return Ways ? Ways : m_ways; }
    std::uint64_t orderMask() const { return ~std::uint64_t(0) >> (64 - 4 * ways()); }
    /// The order, a word that is not used, the fingerprints, then the lines.
    std::uint64_t* headOf(std::uint64_t set) const
    {
        return m_words + set * packedSetWords(ways());
    }
    std::uint64_t& lineOf(std::uint64_t set, std::uint64_t way) const
    {
        return headOf(set)[4 + way];
    }

    static std::uint64_t fingerprint(std::uint64_t line)
    {
        return line * 0x9e3779b97f4a7c15 >> 56; // Knuth's multiplicative hash
    }

    [[gnu::always_inline]] Place find(std::uint64_t set, std::uint64_t line) const
    {
        unsigned equal =
            Fingerprints::load(headOf(set) + 2).equalTo(fingerprint(line)) & ((1u << ways()) - 1);
        for (; equal; equal &= equal - 1) {
            const unsigned recency = unsigned(std::countr_zero(equal));
            const std::uint64_t way = wayAt(set, recency);
            if (CacheWord{lineOf(set, way)}.holds(line))
                return {int(way), recency};
        }
        return {};
    }

    static void makeRecent(std::uint64_t* head, Place place, std::uint64_t line)
    {
        const std::uint64_t upTo = (std::uint64_t(16) << 4 * place.recency) - 1; // 16 << 60 is 0
        head[0] = (head[0] & ~upTo) | ((head[0] << 4) & upTo) | unsigned(place.way);
        Fingerprints::load(head + 2).moved(fingerprint(line), place.recency).store(head + 2);
    }

    std::uint64_t* m_words;
    std::uint64_t m_ways;
};

template <int Ways> class PackedSets
{
public:
    /// All ways empty; `ways` is 1 … 16, or `Ways`.
    PackedSets(std::uint64_t sets, std::uint64_t ways)
        : m_ways(ways)
        , m_sets(sets)
        , m_pieces(sets * packedSetWords(ways) / 4)
    {
        clear();
    }

    void clear()
    {
        for (std::uint64_t set = 0; set < m_sets; ++set)
            view().clear(set);
    }

    PackedSetsView<Ways> view() { return {m_pieces.data()->words.data(), m_ways}; }
    /// To read with.
    const PackedSetsView<Ways> view() const { return const_cast<PackedSets*>(this)->view(); }

private:
    struct alignas(32) Piece ///< so that no head lies in two lines of the real machine
    {
        std::array<std::uint64_t, 4> words;
    };
    std::uint64_t m_ways;
    std::uint64_t m_sets;
    std::vector<Piece> m_pieces;
};

} // namespace memscape
