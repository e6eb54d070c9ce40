// SPDX-License-Identifier: Apache-2.0
// The lines of a cache of any number of ways, each set kept from most to least recently used: a hit
// near the front costs one comparison, the victim is always the last, and a touch moves the lines
// before it. For more than 16 ways, where the order does not fit into a word (packed_sets.h).
//
// An entry is line << 10 | way << 1 | dirty; bit 63 marks an empty one. Addresses below 2^57 and
// lines of at least 16 B leave 53 bits for the line.
#pragma once

#include "core/access/packed_sets.h"

#include <utility>

namespace memscape {

/// All sets, as a value (see PackedSetsView).
class OrderedSetsView
{
public:
    static constexpr std::uint64_t emptyBit = std::uint64_t(1) << 63;

    OrderedSetsView(std::uint64_t* entries, std::uint64_t count, std::uint64_t ways)
        : m_entries(entries)
        , m_count(count)
        , m_ways(ways)
    { }

    /// The whole line number serves as the tag.
    CachePlace placeOf(std::uint64_t line) const
    {
        return {std::has_single_bit(m_count) ? line & (m_count - 1) : line % m_count, line};
    }

    /// The way of a line that is here, now the most recent, dirty after a write; else -1, and the
    /// least recent stands in front to be replaced.
    int hit(CachePlace place, bool isWrite) const
    {
        std::uint64_t* const entries = &m_entries[place.set * m_ways];
        const std::uint64_t key = place.tag << keyShift;
        std::uint64_t carried = entries[0];
        for (std::uint64_t i = 1; !holds(carried, key) && i < m_ways; ++i)
            std::swap(carried, entries[i]);
        const bool here = holds(carried, key);
        entries[0] = carried | std::uint64_t(here && isWrite);
        return here ? int(wayOf(carried)) : -1;
    }

    bool isPlain(CachePlace) const { return false; }
    /// After a miss of hit(): what replace() takes the place of.
    CacheEntry victim(CachePlace place) const { return entryAt(place.set, 0); }
    /// After a miss of hit(): puts a line in the place of the least recent.
    void replace(CachePlace place, bool isWrite) const
    {
        std::uint64_t& entry = m_entries[place.set * m_ways];
        entry = place.tag << keyShift | (entry & wayMask) | std::uint64_t(isWrite);
    }

    /// Marks a line dirty without making it recent; false when it is not here.
    bool writeBack(CachePlace place) const
    {
        for (std::uint64_t i = place.set * m_ways; i < (place.set + 1) * m_ways; ++i)
            if (holds(m_entries[i], place.tag << keyShift)) {
                m_entries[i] |= 1;
                return true;
            }
        return false;
    }

    void prefetch(std::uint64_t line) const { __builtin_prefetch(&m_entries[placeOf(line).set * m_ways], 1); }

    /// The way that is `recency`-th; 0 is the most recent.
    CacheEntry entryAt(std::uint64_t set, std::uint64_t recency) const
    {
        const std::uint64_t entry = m_entries[set * m_ways + recency];
        return {entry >> keyShift, wayOf(entry), bool(entry & emptyBit), bool(entry & 1)};
    }

private:
    static constexpr int keyShift = 10;
    static constexpr std::uint64_t wayMask = 0x3fe;
    static bool holds(std::uint64_t entry, std::uint64_t key) { return (entry ^ key) >> keyShift == 0; }
    static std::uint32_t wayOf(std::uint64_t entry) { return std::uint32_t((entry & wayMask) >> 1); }

    std::uint64_t* m_entries;
    std::uint64_t m_count;
    std::uint64_t m_ways;
};

class OrderedSets
{
public:
    /// All ways empty; `ways` is 1 … 512.
    OrderedSets(std::uint64_t sets, std::uint64_t ways)
        : m_count(sets)
        , m_ways(ways)
        , m_entries(sets * ways)
    {
        clear();
    }

    void clear()
    {
        // The least recent place has way 0, so a set fills from way 0 up.
        for (std::size_t i = 0; i < m_entries.size(); ++i)
            m_entries[i] = OrderedSetsView::emptyBit | ((m_ways - 1 - i % m_ways) << 1);
    }

    OrderedSetsView view() { return {m_entries.data(), m_count, m_ways}; }
    /// To read with.
    const OrderedSetsView view() const { return const_cast<OrderedSets*>(this)->view(); }

private:
    std::uint64_t m_count;
    std::uint64_t m_ways;
    std::vector<std::uint64_t> m_entries; ///< by set, most recent first
};

} // namespace memscape
