// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/segment_ranges.h"

#include <algorithm>

namespace memscape {

/// The known range over an address becomes two; an open one keeps its history in both.
void SegmentRanges::divideAt(std::uint64_t address)
{
    auto it = m_known.upper_bound(address);
    if (it == m_known.begin())
        return;
    --it;
    if (it->first >= address || it->second.end <= address)
        return;
    Known upper = it->second;
    it->second.end = address;
    if (upper.isOpen) {
        SegmentLifetime& below = m_segments[upper.segment];
        SegmentLifetime above = below;
        below.size = std::int64_t(address - below.address);
        above.size -= below.size;
        above.address = address;
        upper.segment = std::uint32_t(m_segments.size());
        m_segments.push_back(above);
    }
    m_known.emplace(address, upper);
}

SegmentRanges::Places::iterator SegmentRanges::openFrom(std::uint64_t address, SegmentLifetime range)
{
    range.address = address;
    m_segments.push_back(range);
    return m_known
        .insert_or_assign(address,
                          Known{address + std::uint64_t(range.size), std::uint32_t(m_segments.size() - 1), true, false})
        .first;
}

void SegmentRanges::add(SegmentLifetime range)
{
    if (range.size == 0)
        return;
    const std::uint64_t end = range.address + std::uint64_t(range.size);
    divideAt(range.address);
    divideAt(end);
    for (auto it = m_known.lower_bound(range.address); it != m_known.end() && it->first < end;) {
        if (it->second.isOpen) {
            m_segments[it->second.segment].end = range.begin;
            ++contradictions;
        }
        it = m_known.erase(it);
    }
    openFrom(range.address, range);
}

void SegmentRanges::remove(const SegmentLifetime& range, Moment32 moment)
{
    const std::uint64_t end = range.address + std::uint64_t(range.size);
    divideAt(range.address);
    divideAt(end);
    std::uint64_t at = range.address;
    const auto wasThere = [&](std::uint64_t until) { // never given: there from the beginning
        SegmentLifetime before = range;
        before.size = std::int64_t(until - at);
        const auto made = openFrom(at, before);
        m_segments[made->second.segment].end = moment;
        made->second.isOpen = false;
    };
    for (auto it = m_known.lower_bound(at); at < end;) {
        if (it == m_known.end() || it->first >= end) {
            wasThere(end);
            return;
        }
        if (it->first > at)
            wasThere(it->first);
        if (it->second.isOpen) {
            m_segments[it->second.segment].end = moment;
            it->second.isOpen = false;
        } else {
            ++contradictions;
        }
        at = it->second.end;
        ++it;
    }
}

void SegmentRanges::settle(const SegmentLifetime& segment)
{
    const std::uint64_t end = segment.address + std::uint64_t(segment.size);
    divideAt(segment.address);
    divideAt(end);
    std::uint64_t at = segment.address;
    for (auto it = m_known.lower_bound(at); at < end;) {
        const std::uint64_t next = it == m_known.end() ? end : std::min(it->first, end);
        if (next > at) { // no event speaks of it: there all the time
            SegmentLifetime always = segment;
            always.size = std::int64_t(next - at);
            openFrom(at, always)->second.isSettled = true;
            at = next;
            continue;
        }
        Known& known = it->second;
        if (!known.isOpen) { // taken by the trace, but there
            ++contradictions;
            SegmentLifetime& again = m_segments[known.segment];
            again.size = std::int64_t(known.end - it->first);
            again.address = it->first;
            known.isOpen = true;
        }
        SegmentLifetime& lifetime = m_segments[known.segment];
        lifetime.isSmall = segment.isSmall;
        lifetime.isExpandable = segment.isExpandable;
        known.isSettled = true;
        at = known.end;
        ++it;
    }
}

void SegmentRanges::finish(Moment32 last, Moment32 end)
{
    for (auto& [address, known] : m_known) {
        if (!known.isOpen)
            continue;
        contradictions += !known.isSettled;
        m_segments[known.segment].end = known.isSettled ? end : last;
    }
    std::ranges::sort(m_segments, {},
                      [](const SegmentLifetime& segment) { return std::pair(segment.begin, segment.address); });
}

} // namespace memscape
