// SPDX-License-Identifier: Apache-2.0
#include "core/access/cache_level.h"

#include <fmt/format.h>

#include <bit>

namespace memscape {

Result<void> validate(const CacheGeometry& geometry)
{
    if (!std::has_single_bit(geometry.line) || geometry.line < 16 || geometry.line > 4096)
        return fail(
            "cache.line",
            fmt::format("a line of {} bytes is not a power of two from 16 to 4096", geometry.line),
            "most CPUs have 64-byte lines, GPUs 128", geometry.name);
    if (geometry.ways == 0 || geometry.ways > cacheWaysLimit)
        return fail("cache.ways",
                    fmt::format("a cache has 1 to {} ways, not {}", cacheWaysLimit, geometry.ways),
                    "1 is direct mapped; bytes / line is fully associative", geometry.name);
    const std::uint64_t setBytes = geometry.ways * geometry.line;
    if (geometry.bytes == 0 || geometry.bytes % setBytes != 0)
        return fail("cache.size",
                    fmt::format("{} bytes are not a whole number of sets of {} × {} bytes",
                                geometry.bytes, geometry.ways, geometry.line),
                    fmt::format("use a multiple of {} bytes", setBytes), geometry.name);
    if (geometry.bytes / geometry.line > cacheLinesLimit)
        return fail("cache.size",
                    fmt::format("{} lines are more than the simulator's {}",
                                geometry.bytes / geometry.line, cacheLinesLimit),
                    "use a smaller cache or longer lines", geometry.name);
    return {};
}

CacheLevel::CacheLevel(CacheGeometry geometry)
    : m_geometry(std::move(geometry))
    , m_sets(m_geometry.sets())
    , m_ways(m_geometry.ways)
    , m_powerOfTwo(std::has_single_bit(m_sets))
    , m_entries(m_sets * m_ways)
{
    clear();
}

void CacheLevel::clear()
{
    // The least recent place has way 0, so a set fills from way 0 up.
    for (std::size_t i = 0; i < m_entries.size(); ++i)
        m_entries[i] = emptyBit | ((m_ways - 1 - i % m_ways) << 1);
}

bool CacheLevel::writeBack(std::uint64_t line)
{
    std::uint64_t* const set = &m_entries[setOf(line) * m_ways];
    const std::uint64_t key = line << keyShift;
    for (std::uint64_t i = 0; i < m_ways; ++i)
        if (holds(set[i], key)) {
            set[i] |= 1;
            return true;
        }
    return false;
}

std::vector<CacheLevel::Slot> CacheLevel::contents(std::uint64_t set) const
{
    std::vector<Slot> contents(m_ways);
    for (std::uint64_t i = 0; i < m_ways; ++i) {
        const std::uint64_t entry = m_entries[set * m_ways + i];
        const bool valid = (entry & emptyBit) == 0;
        contents[wayOf(entry)] = {valid, valid && (entry & 1), valid ? entry >> keyShift : 0,
                               std::uint32_t(i)};
    }
    return contents;
}

} // namespace memscape
