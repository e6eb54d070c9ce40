// SPDX-License-Identifier: Apache-2.0
// A hierarchy of caches as one would write it first: a list per set, most recent in front.
#pragma once

#include "core/access/cache_simulator.h"

#include <algorithm>
#include <list>
#include <vector>

namespace memscape::test {

class PlainHierarchy
{
public:
    explicit PlainHierarchy(const std::vector<CacheGeometry>& levels)
    {
        for (const CacheGeometry& level : levels)
            m_levels.push_back({level, std::vector<std::list<Entry>>(level.sets()), {}});
    }

    void access(const MemoryAccess& access)
    {
        const std::uint64_t size = m_levels[0].geometry.line;
        for (std::uint64_t line = access.address / size; line <= (access.address + access.size - 1) / size; ++line) {
            std::size_t level = 0;
            while (level < m_levels.size() && !lookup(level, line, access.isWrite))
                ++level;
            memory.linesRead += level == m_levels.size();
        }
    }

    std::vector<CacheCounters> counters() const
    {
        std::vector<CacheCounters> counters;
        for (const Level& level : m_levels)
            counters.push_back(level.counters);
        return counters;
    }

    MemoryTraffic memory;

private:
    struct Entry
    {
        std::uint64_t line;
        bool dirty;
    };
    struct Level
    {
        CacheGeometry geometry;
        std::vector<std::list<Entry>> sets;
        CacheCounters counters;

        std::list<Entry>& setOf(std::uint64_t line) { return sets[line % sets.size()]; }
    };

    static auto find(std::list<Entry>& set, std::uint64_t line) { return std::ranges::find(set, line, &Entry::line); }

    bool lookup(std::size_t index, std::uint64_t line, bool isWrite)
    {
        Level& level = m_levels[index];
        std::list<Entry>& set = level.setOf(line);
        const auto found = find(set, line);
        const bool hit = found != set.end();
        (isWrite ? level.counters.writes : level.counters.reads) += 1;
        (isWrite ? level.counters.writeMisses : level.counters.readMisses) += !hit;
        if (hit) {
            set.splice(set.begin(), set, found);
        } else {
            if (set.size() == level.geometry.ways)
                evict(index, set);
            set.push_front({line, false});
        }
        set.front().dirty |= isWrite && index == 0;
        return hit;
    }

    void evict(std::size_t index, std::list<Entry>& set)
    {
        const Entry victim = set.back();
        set.pop_back();
        ++m_levels[index].counters.evictions;
        if (!victim.dirty)
            return;
        ++m_levels[index].counters.writeBacks;
        for (std::size_t outer = index + 1; outer < m_levels.size(); ++outer) {
            std::list<Entry>& outerSet = m_levels[outer].setOf(victim.line);
            if (const auto found = find(outerSet, victim.line); found != outerSet.end()) {
                found->dirty = true;
                return;
            }
        }
        ++memory.linesWritten;
    }

    std::vector<Level> m_levels;
};

} // namespace memscape::test
