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
    , m_content(PackedSets<0>(1, 1))
{
    if (m_ways == 8)
        m_content = PackedSets<8>(m_sets, m_ways);
    else if (m_ways == 16)
        m_content = PackedSets<16>(m_sets, m_ways);
    else if (m_ways < 16)
        m_content = PackedSets<0>(m_sets, m_ways);
    else
        m_content = OrderedSets(m_sets, m_ways);
}

void CacheLevel::clear()
{
    std::visit([](auto& sets) { sets.clear(); }, m_content);
}

CacheLevel::Touch CacheLevel::touch(std::uint64_t line, bool isWrite)
{
    Touch touch;
    withSets([&](auto& content, auto) {
        auto&& sets = content.view();
        const std::uint64_t set = setOf(line);
        const int way = sets.hit(set, line, isWrite);
        if (way >= 0) {
            touch = {true, false, false, std::uint32_t(way), 0};
            return;
        }
        const CacheVictim victim = sets.replace(set, line, isWrite);
        const bool evicted = !victim.word.isEmpty();
        touch = {false, evicted, victim.word.isDirty(), victim.way,
                 evicted ? victim.word.line() : 0};
    });
    return touch;
}

bool CacheLevel::writeBack(std::uint64_t line)
{
    bool here = false;
    withSets([&](auto& content, auto) { here = content.view().writeBack(setOf(line), line); });
    return here;
}

std::vector<CacheLevel::Slot> CacheLevel::contents(std::uint64_t set) const
{
    std::vector<Slot> contents(m_ways);
    std::visit(
        [&](const auto& content) {
            const auto& sets = content.view();
            for (std::uint64_t recency = 0; recency < m_ways; ++recency) {
                const CacheWord word = sets.wordAt(set, recency);
                contents[sets.wayAt(set, recency)] = {!word.isEmpty(), word.isDirty(), word.line(),
                                                      std::uint32_t(recency)};
            }
        },
        m_content);
    return contents;
}

} // namespace memscape
