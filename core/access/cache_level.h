// SPDX-License-Identifier: Apache-2.0
// One set-associative cache level with true LRU replacement.
//
// Set of a line = line number mod sets; sets need not be a power of two. A line keeps its way for
// as long as it stays, which is what a picture shows. The sets are held in one of two layouts that
// do the same: packed_sets.h up to 16 ways, ordered_sets.h beyond.
//
// Left out: hashed set indices (large last-level caches have them), pseudo-LRU and adaptive
// policies.
#pragma once

#include "core/access/ordered_sets.h"
#include "core/access/packed_sets.h"
#include "core/base/result.h"

#include <string>
#include <variant>

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
        std::uint64_t evictedLine = 0; ///< line number, when evicted
    };

    /// Looks `line` up (a line number: address / line size), brings it in on a miss, makes it the
    /// most recent, and marks it dirty on a write.
    Touch touch(std::uint64_t line, bool isWrite);

    /// Marks `line` dirty without making it recent; false when it is not here.
    bool writeBack(std::uint64_t line);

    /// Calls `work(sets)` with the sets in a type of their own: for loops over many lines.
    template <typename Work> void withSets(Work&& work)
    {
        std::visit([&](auto& content) { work(content.view()); }, m_content);
    }

    /// One line of a set, for pictures.
    struct Slot
    {
        bool valid = false;
        bool dirty = false;
        std::uint64_t line = 0;    ///< line number
        std::uint32_t recency = 0; ///< 0 is the most recent
        bool operator==(const Slot&) const = default;
    };
    /// One set by way.
    std::vector<Slot> contents(std::uint64_t set) const;

    std::uint64_t setOf(std::uint64_t line) const { return m_powerOfTwo ? line & (m_sets - 1) : line % m_sets; }
    const CacheGeometry& geometry() const { return m_geometry; }
    /// Its simulated lines don't fit into a core's own caches of the real machine.
    bool isLarge() const { return m_sets * m_ways > std::uint64_t(1) << 16; }
    void clear();

private:
    CacheGeometry m_geometry;
    std::uint64_t m_sets = 1;
    std::uint64_t m_ways = 1;
    bool m_powerOfTwo = true;
    std::variant<PackedSets<true>, PackedSets<false>, OrderedSets> m_content;
};

} // namespace memscape
