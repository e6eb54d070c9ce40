// SPDX-License-Identifier: Apache-2.0
// The lines of a cache of at most 16 ways, each set in one line (64 bytes) of the real machine: a
// simulated lookup, hit or miss, waits for one real line at most, and a cache of 32 MiB is simulated
// in 2 MiB.
//
// A set holds the order of its ways from most to least recent, four bits a way in one word, so that
// a touch moves bits instead of lines; in the same order an 8-bit fingerprint of each way's tag; and
// by way 16 bits more of it. A lookup compares all fingerprints at once and reads those 16 bits only
// where one agrees.
//
// The tag of a line is line number / sets. The fingerprint is the tag's lowest byte XOR the next one,
// so with the 16 bits beside it the lowest 24 bits of the tag are known: of 2048 sets of 64-byte
// lines, addresses that differ below 2^41. What is above is nearly always the same in all lines of a
// trace, and is kept once then; from the first line on that has another, it is kept for each way in
// an array beside the sets.
#pragma once

#include "core/access/fingerprints.h"
#include "core/access/large_pages.h"

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace memscape {

/// A way of a set and what is in it.
struct CacheEntry
{
    std::uint64_t line = 0; ///< line number, unless empty
    std::uint32_t way = 0;
    bool isEmpty = true;
    bool isDirty = false;
};

/// Where a line belongs: line number = tag · sets + set.
struct CachePlace
{
    std::uint64_t set = 0;
    std::uint64_t tag = 0;
};

/// One set; see above.
struct alignas(64) PackedSet
{
    std::uint64_t order = 0; ///< ways, the most recent in the lowest four bits
    std::uint32_t state = 0; ///< a bit by recency: filled; and from bit 16 on by way: dirty
    std::uint32_t unused = 0;
    std::array<std::uint64_t, 2> prints = {}; ///< a byte by recency
    std::array<std::uint16_t, 16> tags = {};  ///< bits 8 to 23 by way
};

/// Bits 24 and above of the tags in a cache: one value for all, or one for each way.
class HighTags
{
public:
    static constexpr std::uint64_t none = ~std::uint64_t(0);

    /// What all lines have; `none` before the first line, and when they differ.
    std::uint64_t common() const { return m_common; }
    /// Of a way that is filled.
    std::uint64_t at(std::size_t way) const { return m_own.empty() ? m_common : m_own[way]; }
    /// Gives one of `ways` a value that is not the common one.
    [[gnu::noinline]] void set(std::size_t way, std::uint64_t high, std::size_t ways)
    {
        if (m_own.empty() && m_common == none) {
            m_common = high;
            return;
        }
        if (m_own.empty())
            m_own.assign(ways, std::uint32_t(m_common));
        m_common = none;
        m_own[way] = std::uint32_t(high); // addresses are below 2^57, lines of 16 B and more
    }
    void clear() { *this = {}; }

private:
    std::uint64_t m_common = none;
    std::vector<std::uint32_t> m_own;
};

/// All sets, as a value: a loop over many lines keeps it in registers. What every lookup does is
/// inlined by force: the many loops over it are more than the compiler would copy it into by itself.
template <bool PowerOfTwo> class PackedSetsView
{
public:
    PackedSetsView(PackedSet* sets, std::uint64_t count, std::uint64_t ways, HighTags* high)
        : m_sets(sets)
        , m_count(count)
        , m_high(high)
        , m_common(high->common())
        , m_shift(std::countr_zero(count))
        , m_lastShift(int(4 * (ways - 1)))
        , m_all((1u << ways) - 1)
    { }

    CachePlace placeOf(std::uint64_t line) const
    {
        if constexpr (PowerOfTwo)
            return {line & (m_count - 1), line >> m_shift};
        return {line % m_count, line / m_count};
    }

    /// The way of a line that is here, now the most recent, dirty after a write; else -1.
    [[gnu::always_inline]] int hit(CachePlace place, bool isWrite) const
    {
        const Found found = find(place);
        if (found.way < 0)
            return -1;
        PackedSet& set = m_sets[place.set];
        const std::uint64_t upTo = (std::uint64_t(16) << 4 * found.recency) - 1; // 16 << 60 is 0
        set.order = (set.order & ~upTo) | ((set.order << 4) & upTo) | unsigned(found.way);
        Fingerprints::load(set.prints.data()).moved(printOf(place.tag), found.recency).store(set.prints.data());
        if (isWrite)
            set.state |= dirtyBit(unsigned(found.way));
        return found.way;
    }

    /// Whether all ways of a set are filled and none is dirty: no level is informed of the replaced line.
    bool isPlain(CachePlace place) const { return m_sets[place.set].state == m_all; }
    /// What replace() takes the place of.
    [[gnu::always_inline]] CacheEntry victim(CachePlace place) const
    {
        return entryAt(place.set, unsigned(m_lastShift) / 4);
    }
    /// Puts a line that is not here in the place of the least recent.
    [[gnu::always_inline]] void replace(CachePlace place, bool isWrite)
    {
        PackedSet& set = m_sets[place.set];
        const std::uint32_t way = set.order >> m_lastShift & 15;
        set.order = set.order << 4 | way;
        Fingerprints::load(set.prints.data()).pushed(printOf(place.tag)).store(set.prints.data());
        set.tags[way] = std::uint16_t(place.tag >> 8);
        if (set.state != m_all || isWrite) {
            const std::uint32_t dirty = set.state & ~m_all & ~dirtyBit(way);
            set.state = ((set.state << 1 | 1) & m_all) | dirty | (isWrite ? dirtyBit(way) : 0);
        }
        if (place.tag >> 24 != m_common) [[unlikely]] {
            m_high->set(index(place.set, way), place.tag >> 24, 16 * m_count);
            m_common = m_high->common();
        }
    }

    /// Marks a line dirty without making it recent; false when it is not here.
    bool writeBack(CachePlace place) const
    {
        const Found found = find(place);
        if (found.way >= 0)
            m_sets[place.set].state |= dirtyBit(unsigned(found.way));
        return found.way >= 0;
    }

    /// Asks the real machine for the set in which a line will be looked up.
    void prefetch(std::uint64_t line) const { __builtin_prefetch(&m_sets[placeOf(line).set], 1); }

    /// The way that is `recency`-th; 0 is the most recent.
    [[gnu::always_inline]] CacheEntry entryAt(std::uint64_t at, unsigned recency) const
    {
        const PackedSet& set = m_sets[at];
        const std::uint32_t way = set.order >> 4 * recency & 15;
        if (!(set.state >> recency & 1))
            return {0, way, true, false};
        const std::uint64_t middle = set.tags[way];
        const std::uint64_t print = set.prints[recency / 8] >> recency % 8 * 8;
        const std::uint64_t low = (print ^ middle) & 255;
        const std::uint64_t high = m_common == HighTags::none ? m_high->at(index(at, way)) : m_common;
        const std::uint64_t tag = high << 24 | middle << 8 | low;
        const std::uint64_t line = (PowerOfTwo ? tag << m_shift : tag * m_count) + at;
        return {line, way, false, bool(set.state & dirtyBit(way))};
    }

private:
    struct Found
    {
        int way = -1;
        unsigned recency = 0;
    };

    static std::uint32_t dirtyBit(std::uint32_t way) { return std::uint32_t(1) << (16 + way); }
    static std::size_t index(std::uint64_t set, std::uint64_t way) { return 16 * set + way; }
    static std::uint64_t printOf(std::uint64_t tag) { return (tag ^ tag >> 8) & 255; }

    [[gnu::always_inline]] Found find(CachePlace place) const
    {
        const PackedSet& set = m_sets[place.set];
        unsigned equal = Fingerprints::load(set.prints.data()).equalTo(printOf(place.tag)) & set.state;
        for (; equal; equal &= equal - 1) {
            const unsigned recency = unsigned(std::countr_zero(equal));
            const std::uint64_t way = set.order >> 4 * recency & 15;
            const std::uint64_t high = place.tag >> 24;
            if (set.tags[way] == std::uint16_t(place.tag >> 8)
                && (high == m_common || m_high->at(index(place.set, way)) == high))
                return {int(way), recency};
        }
        return {};
    }

    PackedSet* m_sets;
    std::uint64_t m_count;
    HighTags* m_high;
    std::uint64_t m_common; ///< of m_high
    int m_shift;
    int m_lastShift;     ///< of the least recent way in an order
    std::uint32_t m_all; ///< a bit a way
};

template <bool PowerOfTwo> class PackedSets
{
public:
    /// All ways empty; `ways` is 1 … 16.
    PackedSets(std::uint64_t sets, std::uint64_t ways)
        : m_ways(ways)
        , m_sets(sets)
    {
        clear();
    }

    /// The least recent place has way 0, so a set fills from way 0 up.
    void clear()
    {
        PackedSet empty;
        for (std::uint64_t way = 0; way < m_ways; ++way)
            empty.order = empty.order << 4 | way;
        m_sets.assign(m_sets.size(), empty);
        m_high.clear();
    }

    PackedSetsView<PowerOfTwo> view() { return {m_sets.data(), m_sets.size(), m_ways, &m_high}; }
    /// To read with.
    const PackedSetsView<PowerOfTwo> view() const { return const_cast<PackedSets*>(this)->view(); }

private:
    std::uint64_t m_ways;
    std::vector<PackedSet, LargePageAllocator<PackedSet>> m_sets;
    HighTags m_high;
};

} // namespace memscape
