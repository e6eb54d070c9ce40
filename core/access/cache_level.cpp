// SPDX-License-Identifier: Apache-2.0
#include "core/access/cache_level.h"

#include <fmt/format.h>

#include <bit>

namespace memscape {

Result<void> validate(const CacheGeometry& geometry)
{
    if (!std::has_single_bit(geometry.line) || geometry.line < 16 || geometry.line > 4096)
        return fail("cache.line",
                    fmt::format("a line of {} bytes is not a power of two from 16 to 4096", geometry.line),
                    "most CPUs have 64-byte lines, GPUs 128", geometry.name);
    if (geometry.ways == 0 || geometry.ways > cacheWaysLimit)
        return fail("cache.ways", fmt::format("a cache has 1 to {} ways, not {}", cacheWaysLimit, geometry.ways),
                    "1 is direct mapped; bytes / line is fully associative", geometry.name);
    const std::uint64_t setBytes = geometry.ways * geometry.line;
    if (geometry.bytes == 0 || geometry.bytes % setBytes != 0)
        return fail("cache.size",
                    fmt::format("{} bytes are not a whole number of sets of {} × {} bytes", geometry.bytes,
                                geometry.ways, geometry.line),
                    fmt::format("use a multiple of {} bytes", setBytes), geometry.name);
    if (geometry.bytes / geometry.line > cacheLinesLimit)
        return fail(
            "cache.size",
            fmt::format("{} lines are more than the simulator's {}", geometry.bytes / geometry.line, cacheLinesLimit),
            "use a smaller cache or longer lines", geometry.name);
    return {};
}

CacheLevel::CacheLevel(CacheGeometry geometry)
    : m_geometry(std::move(geometry))
    , m_sets(m_geometry.sets())
    , m_ways(m_geometry.ways)
    , m_powerOfTwo(std::has_single_bit(m_sets))
    , m_content(PackedSets<true>(0, 1))
{
    if (m_ways > 16)
        m_content = OrderedSets(m_sets, m_ways);
    else if (m_powerOfTwo)
        m_content = PackedSets<true>(m_sets, m_ways);
    else
        m_content = PackedSets<false>(m_sets, m_ways);
}

void CacheLevel::clear()
{
    std::visit([](auto& sets) { sets.clear(); }, m_content);
}

CacheLevel::Touch CacheLevel::touch(std::uint64_t line, bool isWrite)
{
    Touch touch;
    withSets([&](auto&& sets) {
        const CachePlace place = sets.placeOf(line);
        const int way = sets.hit(place, isWrite);
        if (way >= 0) {
            touch = {true, false, false, std::uint32_t(way), 0};
            return;
        }
        const CacheEntry victim = sets.victim(place);
        sets.replace(place, isWrite);
        touch = {false, !victim.isEmpty, victim.isDirty, victim.way, victim.isEmpty ? 0 : victim.line};
    });
    return touch;
}

bool CacheLevel::writeBack(std::uint64_t line)
{
    bool here = false;
    withSets([&](auto&& sets) { here = sets.writeBack(sets.placeOf(line)); });
    return here;
}

std::vector<CacheLevel::Slot> CacheLevel::contents(std::uint64_t set) const
{
    std::vector<Slot> contents(m_ways);
    std::visit(
        [&](const auto& content) {
            const auto& sets = content.view();
            for (std::uint32_t recency = 0; recency < m_ways; ++recency) {
                const CacheEntry held = sets.entryAt(set, recency);
                contents[held.way] = {!held.isEmpty, held.isDirty, held.isEmpty ? 0 : held.line, recency};
            }
        },
        m_content);
    return contents;
}

} // namespace memscape
