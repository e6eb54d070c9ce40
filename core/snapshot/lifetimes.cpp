// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/lifetimes.h"

#include <algorithm>

namespace memscape {

SnapshotBytes& SnapshotBytes::operator+=(const SnapshotBytes& other)
{
    allocated += other.allocated;
    active += other.active;
    requested += other.requested;
    reserved += other.reserved;
    return *this;
}

std::span<const Lifetimes::Extra> Lifetimes::extrasOf(std::size_t event) const
{
    if (m_extras.empty())
        return {};
    const auto first = std::ranges::lower_bound(m_extras, Moment32(event), {}, &Extra::first);
    return {first, std::ranges::upper_bound(first, m_extras.end(), Moment32(event), {}, &Extra::first)};
}

std::int64_t Lifetimes::reservedChange(std::size_t event) const
{
    const auto it =
        std::ranges::lower_bound(m_reserved, Moment32(event), {}, &std::pair<Moment32, std::int64_t>::first);
    return it != m_reserved.end() && it->first == event ? it->second : 0;
}

SnapshotBytes Lifetimes::change(std::size_t event) const
{
    SnapshotBytes change;
    const std::size_t moment = event + 1;
    const auto ends = [&](const Lifetime& lifetime) {
        if (lifetime.freed == moment) {
            change.allocated -= lifetime.size;
            change.requested -= lifetime.requested;
        }
        if (lifetime.end == moment)
            change.active -= lifetime.size;
    };
    if (const LifetimeId id = m_lifetimeOf[event]; id != noLifetime) {
        const Lifetime& lifetime = m_lifetimes[id];
        if (lifetime.begin == moment) {
            change.active += lifetime.size;
            if (lifetime.freed > lifetime.begin || lifetime.end == moment) {
                change.allocated += lifetime.size;
                change.requested += lifetime.requested;
            }
        } else {
            ends(lifetime);
        }
    }
    for (const auto& [at, id] : extrasOf(event))
        ends(m_lifetimes[id]);
    const SnapshotAction action = m_snapshot->events.action(eventIndex(event));
    if (!m_hasCache)
        change.reserved = change.active;
    else if (action >= SnapshotAction::SegmentAlloc || moment == events())
        change.reserved = reservedChange(event);
    return change;
}

SnapshotBytes Lifetimes::bytesAt(std::size_t moment) const
{
    moment = std::min(moment, events());
    SnapshotBytes bytes = m_states[moment / stride];
    for (std::size_t event = moment / stride * stride; event < moment; ++event)
        bytes += change(event);
    return bytes;
}

std::size_t Lifetimes::momentAt(std::int64_t time) const
{
    std::size_t low = 0, high = events();
    while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (m_snapshot->events.time(eventIndex(middle)) <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

std::int64_t Lifetimes::timeAt(std::size_t moment) const
{
    if (events() == 0)
        return 0;
    return m_snapshot->events.time(eventIndex(moment == 0 ? 0 : std::min(moment, events()) - 1));
}

std::vector<LifetimeId> Lifetimes::aliveIn(std::size_t first, std::size_t last) const
{
    std::vector<LifetimeId> found;
    if (m_checkpoints.empty() || first >= last)
        return found;
    const auto after = std::ranges::upper_bound(m_checkpoints, Moment32(std::min(first, events())));
    const std::size_t list = std::size_t(after - m_checkpoints.begin()) - 1;
    const std::size_t begin = list == 0 ? 0 : m_aliveEnds[list - 1];
    const auto consider = [&](LifetimeId id) {
        if (m_lifetimes[id].overlaps(first, last) && m_lifetimes[id].end > m_lifetimes[id].begin)
            found.push_back(id);
    };
    for (std::size_t i = begin; i < m_aliveEnds[list]; ++i)
        consider(m_alive[i]);
    for (std::size_t event = m_checkpoints[list]; event + 1 < last && event < events(); ++event) {
        const LifetimeId id = m_lifetimeOf[event];
        if (id != noLifetime && m_lifetimes[id].begin == event + 1)
            consider(id);
    }
    return found;
}

std::vector<LifetimeId> Lifetimes::aliveAt(std::size_t moment) const
{
    return aliveIn(moment, moment + 1);
}

namespace {

/// The segments that are there, by address; pages of expandable ones that touch are one.
std::vector<LaidSegment> segmentsAt(const std::vector<SegmentLifetime>& all, std::size_t moment)
{
    std::vector<LaidSegment> segments;
    for (const SegmentLifetime& segment : all) {
        if (segment.begin <= moment && moment < segment.end)
            segments.push_back({segment.address, segment.size, 0, 0, segment.stack, segment.stream, segment.isSmall,
                                segment.isExpandable});
    }
    std::ranges::sort(segments, {}, &LaidSegment::address);
    std::vector<LaidSegment> joined;
    for (const LaidSegment& segment : segments) {
        if (!joined.empty() && segment.isExpandable && joined.back().isExpandable
            && joined.back().stream == segment.stream
            && joined.back().address + std::uint64_t(joined.back().size) == segment.address)
            joined.back().size += segment.size;
        else
            joined.push_back(segment);
    }
    return joined;
}

/// A segment for each block: a CPU has no cache.
std::vector<LaidSegment> segmentsOf(const std::vector<Lifetime>& lifetimes, const std::vector<LifetimeId>& alive)
{
    std::vector<LaidSegment> segments;
    for (const LifetimeId id : alive)
        segments.push_back({lifetimes[id].address, lifetimes[id].size, 0, 0, lifetimes[id].stack, 0, false, false});
    return segments;
}

} // namespace

SnapshotLayout Lifetimes::layoutAt(std::size_t moment) const
{
    SnapshotLayout layout;
    auto alive = aliveAt(moment);
    std::ranges::sort(alive, {}, [&](LifetimeId id) { return m_lifetimes[id].address; });
    layout.segments = m_hasCache ? segmentsAt(m_segments, moment) : segmentsOf(m_lifetimes, alive);
    std::size_t next = 0;
    for (LaidSegment& segment : layout.segments) {
        segment.firstBlock = layout.blocks.size();
        const std::uint64_t end = segment.address + std::uint64_t(segment.size);
        std::uint64_t at = segment.address;
        const auto hole = [&](std::uint64_t until) {
            const auto size = std::int64_t(until - at);
            if (size <= 0)
                return;
            layout.blocks.push_back({at, size, noLifetime, false});
            layout.free += size;
            layout.freeWhole += size == segment.size ? size : 0;
            layout.largestFree = std::max(layout.largestFree, size);
        };
        while (next < alive.size() && m_lifetimes[alive[next]].address < segment.address)
            ++next;
        for (; next < alive.size() && m_lifetimes[alive[next]].address < end; ++next) {
            const Lifetime& lifetime = m_lifetimes[alive[next]];
            if (lifetime.address < at)
                continue; // over the one before it: a contradiction in the file
            hole(lifetime.address);
            const auto size = std::min(lifetime.size, std::int64_t(end - lifetime.address));
            layout.blocks.push_back({lifetime.address, size, alive[next], lifetime.freed <= moment});
            at = lifetime.address + std::uint64_t(size);
        }
        hole(end);
        segment.blockCount = layout.blocks.size() - segment.firstBlock;
    }
    return layout;
}

} // namespace memscape
