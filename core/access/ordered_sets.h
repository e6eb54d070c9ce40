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

class OrderedSets
{
public:
    /// All ways empty; `ways` is 1 … 512.
    OrderedSets(std::uint64_t sets, std::uint64_t ways)
        : m_ways(ways)
        , m_entries(sets * ways)
    {
        clear();
    }

    void clear()
    {
        // The least recent place has way 0, so a set fills from way 0 up.
        for (std::size_t i = 0; i < m_entries.size(); ++i)
            m_entries[i] = emptyBit | ((m_ways - 1 - i % m_ways) << 1);
    }

    /// The way of a line that is here, now the most recent, dirty after a write; else -1, and the
    /// least recent stands in front to be replaced.
    int hit(std::uint64_t set, std::uint64_t line, bool isWrite)
    {
        std::uint64_t* const entries = &m_entries[set * m_ways];
        const std::uint64_t key = line << keyShift;
        std::uint64_t carried = entries[0];
        for (std::uint64_t i = 1; !holds(carried, key) && i < m_ways; ++i)
            std::swap(carried, entries[i]);
        const bool here = holds(carried, key);
        entries[0] = carried | std::uint64_t(here && isWrite);
        return here ? int(wayOf(carried)) : -1;
    }

    /// After a miss of hit(): puts `line` in the place of the least recent.
    CacheVictim replace(std::uint64_t set, std::uint64_t line, bool isWrite)
    {
        const std::uint64_t old = entry(set, 0);
        m_entries[set * m_ways] = line << keyShift | (old & wayMask) | std::uint64_t(isWrite);
        return {wordOf(old), wayOf(old)};
    }

    /// Marks `line` dirty without making it recent; false when it is not here.
    bool writeBack(std::uint64_t set, std::uint64_t line)
    {
        for (std::uint64_t i = 0; i < m_ways; ++i)
            if (holds(entry(set, i), line << keyShift)) {
                m_entries[set * m_ways + i] |= 1;
                return true;
            }
        return false;
    }

    OrderedSets& view() { return *this; }
    const OrderedSets& view() const { return *this; }
    void prefetch(std::uint64_t set) const { __builtin_prefetch(&m_entries[set * m_ways], 1); }
    void prefetchVictim(std::uint64_t) const { } // it is moved to the front with all others

    /// The way that is `recency`-th; 0 is the most recent.
    std::uint64_t wayAt(std::uint64_t set, std::uint64_t recency) const
    {
        return wayOf(entry(set, recency));
    }
    CacheWord wordAt(std::uint64_t set, std::uint64_t recency) const
    {
        return wordOf(entry(set, recency));
    }

private:
    static constexpr int keyShift = 10;
    static constexpr std::uint64_t wayMask = 0x3fe;
    static constexpr std::uint64_t emptyBit = std::uint64_t(1) << 63;

    static bool holds(std::uint64_t entry, std::uint64_t key)
    {
        return (entry ^ key) >> keyShift == 0;
    }
    static std::uint32_t wayOf(std::uint64_t entry)
    {
        return std::uint32_t((entry & wayMask) >> 1);
    }
    static CacheWord wordOf(std::uint64_t entry)
    {
        return entry & emptyBit ? CacheWord() : CacheWord::of(entry >> keyShift, entry & 1);
    }
    std::uint64_t entry(std::uint64_t set, std::uint64_t recency) const
    {
        return m_entries[set * m_ways + recency];
    }

    std::uint64_t m_ways;
    std::vector<std::uint64_t> m_entries; ///< by set, most recent first
};

} // namespace memscape
