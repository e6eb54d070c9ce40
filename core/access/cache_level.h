// SPDX-License-Identifier: Apache-2.0
// One set-associative cache level with true LRU replacement: the part of the simulator that every
// access goes through, so it is one array and no branches that are not needed.
//
// Set of a line = line number mod sets; sets need not be a power of two. Each set keeps its lines
// from most to least recently used, so a hit near the front costs one comparison and the victim is
// always the last. A line keeps its way for as long as it stays, which is what a picture shows.
//
// Left out: hashed set indices (large last-level caches have them), pseudo-LRU and adaptive
// policies.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace memscape {

/// Sizes in bytes: 48 KiB, 12 ways, 64-byte lines is {"L1", 48 << 10, 12, 64}.
struct CacheGeometry
{
    std::string name = "L1";
    std::uint64_t bytes = 32 << 10;
    std::uint64_t ways = 8;
    std::uint64_t line = 64;

    std::uint64_t sets() const { return bytes / ways / line; }
};

inline constexpr std::uint64_t cacheWaysLimit = 512;
inline constexpr std::uint64_t cacheLinesLimit = std::uint64_t(1) << 26; ///< 4 GiB of 64-byte lines
/// Addresses are below this: the largest virtual address of x86-64 and Arm (57 bits).
inline constexpr std::uint64_t cacheAddressLimit = std::uint64_t(1) << 57;

/// Errors, all with place = the level's name: cache.line (not a power of two from 16 to 4096),
/// cache.ways (not 1 … 512), cache.size (not a whole number of sets, or over 2^26 lines).
Result<void> validate(const CacheGeometry& geometry);

class CacheLevel
{
public:
    /// Empty. The geometry must be valid.
    explicit CacheLevel(CacheGeometry geometry);

    /// What happened to one line.
    struct Touch
    {
        bool hit = false;
        bool evicted = false;
        bool evictedDirty = false;
        std::uint32_t way = 0;
        std::uint64_t evictedLine = 0; ///< line number
    };

    /// Looks `line` up (a line number: address / line size), brings it in on a miss, makes it the
    /// most recent, and marks it dirty on a write.
    Touch touch(std::uint64_t line, bool isWrite)
    {
        std::uint64_t* const set = &m_entries[setOf(line) * m_ways];
        const std::uint64_t key = line << keyShift;
        std::uint64_t carried = set[0];
        if (holds(carried, key)) {
            set[0] = carried | std::uint64_t(isWrite);
            return {true, false, false, wayOf(carried), 0};
        }
        for (std::uint64_t i = 1; i < m_ways; ++i) {
            std::swap(carried, set[i]);
            if (holds(carried, key)) {
                set[0] = carried | std::uint64_t(isWrite);
                return {true, false, false, wayOf(carried), 0};
            }
        }
        set[0] = key | (carried & wayMask) | std::uint64_t(isWrite);
        const bool evicted = (carried & emptyBit) == 0;
        return {false, evicted, evicted && (carried & 1), wayOf(carried), carried >> keyShift};
    }

    /// Marks `line` dirty without making it recent; false when it is not here.
    bool writeBack(std::uint64_t line);

    /// One line of a set, for pictures.
    struct Slot
    {
        bool valid = false;
        bool dirty = false;
        std::uint64_t line = 0; ///< line number
        std::uint32_t recency = 0; ///< 0 is the most recent
    };
    /// One set by way.
    std::vector<Slot> contents(std::uint64_t set) const;

    std::uint64_t setOf(std::uint64_t line) const
    {
        return m_powerOfTwo ? line & (m_sets - 1) : line % m_sets;
    }
    const CacheGeometry& geometry() const { return m_geometry; }
    void clear();

private:
    // An entry is line << 10 | way << 1 | dirty; bit 63 marks an empty one. Addresses below 2^57
    // and lines of at least 16 B leave 53 bits for the line.
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

    CacheGeometry m_geometry;
    std::uint64_t m_sets = 1;
    std::uint64_t m_ways = 1;
    bool m_powerOfTwo = true;
    std::vector<std::uint64_t> m_entries; // by set, most recent first
};

} // namespace memscape
