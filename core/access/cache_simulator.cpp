// SPDX-License-Identifier: Apache-2.0
// Building a simulator and single steps, which record all that they do. See cache_simulator.h for
// the model and cache_replay.cpp for many accesses at once.
#include "core/access/cache_simulator.h"

#include <fmt/format.h>

#include <bit>

namespace memscape {

Result<void> validate(const MemoryAccess& access)
{
    if (access.size == 0 || access.size > accessSizeLimit)
        return fail("access.size", fmt::format("an access has 1 to {} bytes, not {}", accessSizeLimit, access.size),
                    "use the size of the type: 1, 2, 4, 8 or 16");
    if (access.address >= cacheAddressLimit || access.address + access.size > cacheAddressLimit)
        return fail("access.address", fmt::format("address {:#x} is not below 2^57", access.address),
                    "use offsets into the array instead of tagged pointers");
    return {};
}

Result<CacheSimulator> CacheSimulator::create(std::vector<CacheGeometry> levels, CacheCounting counting)
{
    if (levels.empty() || levels.size() > 8)
        return fail("cache.levels", fmt::format("a hierarchy has 1 to 8 levels, not {}", levels.size()),
                    "give at least one cache");
    for (const CacheGeometry& level : levels) {
        MEMSCAPE_CHECK(validate(level));
        if (level.line != levels.front().line)
            return fail("cache.line",
                        fmt::format("lines of {} bytes below lines of {} bytes", level.line, levels.front().line),
                        "give every level the same line", level.name);
    }
    return CacheSimulator(std::move(levels), counting);
}

CacheSimulator::CacheSimulator(std::vector<CacheGeometry> levels, CacheCounting counting)
    : m_counters(levels.size())
    , m_counting(counting)
    , m_lineShift(std::countr_zero(levels.front().line))
{
    m_asked.assign(levels.size() + 1, {std::vector<Request>(batchLimit + fetchedAhead), 0});
    for (CacheGeometry& level : levels)
        m_levels.emplace_back(std::move(level));
}

void CacheSimulator::count(std::size_t level, bool isWrite, bool hit)
{
    CacheCounters& counters = m_counters[level];
    if (isWrite) {
        ++counters.writes;
        counters.writeMisses += !hit;
    } else {
        ++counters.reads;
        counters.readMisses += !hit;
    }
}

void CacheSimulator::writeBack(std::size_t from, std::uint64_t line)
{
    for (std::size_t level = from; level < m_levels.size(); ++level)
        if (m_levels[level].writeBack(line))
            return;
    ++m_memory.linesWritten;
}

bool CacheSimulator::lookup(std::size_t level, std::uint64_t line, AccessEvent& event)
{
    const CacheLevel::Touch touch = m_levels[level].touch(line, event.access.isWrite && level == 0);
    if (touch.evicted) {
        ++m_counters[level].evictions;
        if (touch.evictedDirty) {
            ++m_counters[level].writeBacks;
            writeBack(level + 1, touch.evictedLine);
        }
    }
    event.lookups.push_back({level, line << m_lineShift, m_levels[level].setOf(line), touch.way, touch.hit,
                             touch.evicted, touch.evicted ? touch.evictedLine << m_lineShift : 0, touch.evictedDirty});
    event.servedBy = std::max(event.servedBy, touch.hit ? level : level + 1);
    return touch.hit;
}

void CacheSimulator::stepLines(std::uint64_t first, std::uint64_t last, AccessEvent& event)
{
    for (std::uint64_t line = first; line <= last; ++line) {
        bool hit = false;
        for (std::size_t level = 0; level < m_levels.size() && !hit; ++level) {
            hit = lookup(level, line, event);
            count(level, event.access.isWrite, hit);
        }
        m_memory.linesRead += !hit;
    }
}

void CacheSimulator::stepWhole(std::uint64_t first, std::uint64_t last, AccessEvent& event)
{
    bool hit = false;
    std::uint64_t missing = 0;
    for (std::size_t level = 0; level < m_levels.size() && !hit; ++level) {
        missing = 0;
        for (std::uint64_t line = first; line <= last; ++line)
            missing += !lookup(level, line, event);
        hit = missing == 0;
        count(level, event.access.isWrite, hit);
    }
    m_memory.linesRead += missing;
}

Result<AccessEvent> CacheSimulator::step(const MemoryAccess& access)
{
    MEMSCAPE_CHECK(validate(access));
    AccessEvent event{access, {}, 0};
    const std::uint64_t first = access.address >> m_lineShift;
    const std::uint64_t last = (access.address + access.size - 1) >> m_lineShift;
    if (m_counting == CacheCounting::Lines)
        stepLines(first, last, event);
    else
        stepWhole(first, last, event);
    return event;
}

void CacheSimulator::resetCounters()
{
    m_counters.assign(m_levels.size(), {});
    m_memory = {};
}

void CacheSimulator::clear()
{
    resetCounters();
    for (CacheLevel& level : m_levels)
        level.clear();
}

} // namespace memscape
