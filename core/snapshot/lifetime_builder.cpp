// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/lifetime_builder.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace memscape {

namespace {

SegmentLifetime rangeOf(const SnapshotEvent& event, Moment32 begin, Moment32 never)
{
    const bool isExpandable =
        event.action == SnapshotAction::SegmentMap || event.action == SnapshotAction::SegmentUnmap;
    return {event.address, event.size, begin, never, event.stack, event.stream, event.size <= smallSegment,
            isExpandable};
}

} // namespace

LifetimeBuilder::LifetimeBuilder(const Snapshot& snapshot, std::uint32_t device, Pace& pace)
    : m_snapshot(snapshot)
    , m_pace(pace)
    , m_lifetimes(m_made.m_lifetimes)
    , m_ranges(m_made.m_segments)
{
    m_made.m_snapshot = &snapshot;
    m_made.m_device = device;
    if (device < snapshot.traces.size())
        m_made.m_trace = snapshot.traces[device];
    m_made.m_hasCache = !(snapshot.run && snapshot.run->device.starts_with("cpu"));
    m_events = m_made.m_trace.size();
    m_never = Moment32(m_events + 1);
}

Result<Lifetimes> LifetimeBuilder::build()
{
    m_made.m_lifetimeOf.assign(m_events, noLifetime);
    m_pace.begin(0.35 * Lifetimes::rebuiltShare);
    follow();
    MEMSCAPE_CHECK(checkWanted());
    if (m_hasRequests && m_made.m_hasCache) { // then a free that is completed alone was requested before the trace
        for (const LifetimeId id : m_completedOnly)
            m_lifetimes[id].freed = 0;
    }
    settleBlocks();
    endUnfreed();
    settleSegments();
    sortEarlier();
    m_pace.begin(0.7 * Lifetimes::rebuiltShare);
    giveSizes();
    MEMSCAPE_CHECK(checkWanted());
    listReserved();
    m_pace.begin(0.9 * Lifetimes::rebuiltShare);
    MEMSCAPE_CHECK(sumUp());
    m_pace.begin(Lifetimes::rebuiltShare);
    listAlive();
    MEMSCAPE_CHECK(checkWanted());
    return std::move(m_made);
}

void LifetimeBuilder::follow()
{
    std::size_t allocations = 0;
    for (std::size_t event = 0; event < m_events; ++event)
        allocations += m_snapshot.events.action(m_made.eventIndex(event)) == SnapshotAction::Allocate;
    m_lifetimes.reserve(allocations + m_snapshot.blocks.size());
    for (std::size_t event = 0; event < m_events; ++event) {
        if (!m_pace.goesOn(event, m_events))
            return;
        const SnapshotEvent entry = m_made.event(event);
        const auto moment = Moment32(event + 1);
        switch (entry.action) {
        case SnapshotAction::Allocate: allocate(event, entry); break;
        case SnapshotAction::FreeRequested:
        case SnapshotAction::FreeCompleted: release(event, entry); break;
        case SnapshotAction::SegmentAlloc:
        case SnapshotAction::SegmentMap: m_ranges.add(rangeOf(entry, moment, m_never)); break;
        case SnapshotAction::SegmentFree:
        case SnapshotAction::SegmentUnmap: m_ranges.remove(rangeOf(entry, 0, m_never), moment); break;
        default: break;
        }
    }
}

void LifetimeBuilder::allocate(std::size_t event, const SnapshotEvent& entry)
{
    const auto moment = Moment32(event + 1);
    std::uint32_t& number = m_placeOf[entry.address];
    if (number == AddressMap::none) {
        number = std::uint32_t(m_places.size());
        m_places.emplace_back();
    }
    Place& place = m_places[number];
    if (place.isOpen) { // its free is missing
        Lifetime& earlier = m_lifetimes[place.lifetime];
        earlier.freed = std::min(earlier.freed, moment);
        earlier.end = moment;
        m_made.m_extras.emplace_back(Moment32(event), place.lifetime);
        ++m_made.m_reconciliation.unfreed;
    }
    place = {LifetimeId(m_lifetimes.size()), true};
    m_made.m_lifetimeOf[event] = place.lifetime;
    m_lifetimes.push_back(
        {entry.address, entry.size, entry.size, moment, m_never, m_never, entry.stack, entry.label, entry.stream});
}

/// The block that an event frees; noLifetime when it was freed before.
LifetimeId LifetimeBuilder::openFor(std::uint64_t address, const SnapshotEvent& entry)
{
    std::uint32_t& number = m_placeOf[address];
    if (number != AddressMap::none)
        return m_places[number].isOpen ? m_places[number].lifetime : noLifetime;
    number = std::uint32_t(m_places.size());
    m_places.push_back({LifetimeId(m_lifetimes.size()), true});
    m_lifetimes.push_back(
        {address, entry.size, entry.size, 0, m_never, m_never, noStack, noLabel, entry.stream}); // from before
    return m_places.back().lifetime;
}

void LifetimeBuilder::release(std::size_t event, const SnapshotEvent& entry)
{
    const LifetimeId id = openFor(entry.address, entry);
    if (id == noLifetime) {
        ++m_made.m_reconciliation.freedTwice;
        return;
    }
    Lifetime& lifetime = m_lifetimes[id];
    const auto moment = Moment32(event + 1);
    if (entry.action == SnapshotAction::FreeRequested) {
        if (lifetime.freed != m_never) {
            ++m_made.m_reconciliation.freedTwice;
            return;
        }
        lifetime.freed = moment;
    } else {
        if (lifetime.freed == m_never && lifetime.begin == 0)
            m_completedOnly.push_back(id);
        else if (lifetime.freed == m_never)
            m_hasRequests = false;
        lifetime.freed = std::min(lifetime.freed, moment);
        lifetime.end = moment;
        m_places[m_placeOf[entry.address]].isOpen = false;
    }
    m_made.m_lifetimeOf[event] = id;
}

void LifetimeBuilder::settleBlocks()
{
    m_isSettled.assign(m_lifetimes.size(), false);
    for (const SnapshotSegment& segment : m_snapshot.segments) {
        if (segment.device != m_made.m_device)
            continue;
        for (std::size_t i = 0; i < segment.blockCount; ++i) {
            const SnapshotBlock& block = m_snapshot.blocks[segment.firstBlock + i];
            if (block.state == SnapshotBlockState::Free)
                continue;
            settleBlock(block);
            if (m_lifetimes.back().address == block.address && m_lifetimes.size() > m_isSettled.size()) {
                m_lifetimes.back().stream = segment.stream;
                m_isSettled.push_back(true);
            }
        }
    }
}

void LifetimeBuilder::settleBlock(const SnapshotBlock& block)
{
    const bool isPending = block.state == SnapshotBlockState::Pending;
    const std::uint32_t number = m_placeOf[block.address];
    if (number == AddressMap::none) { // no event speaks of it: there all the time
        m_lifetimes.push_back(
            {block.address, block.size, block.requested, 0, isPending ? 0 : m_never, m_never, block.stack, noLabel, 0});
        return;
    }
    const Place place = m_places[number];
    Lifetime& lifetime = m_lifetimes[place.lifetime];
    if (!place.isOpen) {
        ++m_made.m_reconciliation.resurrected;
        reopen(place.lifetime);
    }
    lifetime.size = block.size;
    if (lifetime.begin == 0)
        lifetime.requested = block.requested;
    if (lifetime.stack == noStack)
        lifetime.stack = block.stack;
    if (isPending && lifetime.freed == m_never)
        lifetime.freed = lifetime.begin; // requested before the trace, or not recorded
    m_isSettled[place.lifetime] = true;
}

/// Its free did not happen.
void LifetimeBuilder::reopen(LifetimeId id)
{
    Lifetime& lifetime = m_lifetimes[id];
    for (const Moment32 moment : {lifetime.freed, lifetime.end}) {
        if (moment > 0 && moment < m_never && m_made.m_lifetimeOf[moment - 1] == id && lifetime.begin != moment)
            m_made.m_lifetimeOf[moment - 1] = noLifetime;
    }
    lifetime.freed = lifetime.end = m_never;
}

void LifetimeBuilder::endUnfreed()
{
    for (const Place& place : m_places) {
        if (!place.isOpen || m_isSettled[place.lifetime])
            continue;
        Lifetime& lifetime = m_lifetimes[place.lifetime];
        ++m_made.m_reconciliation.unfreed;
        lifetime.freed = std::min<Moment32>(lifetime.freed, Moment32(m_events));
        lifetime.end = Moment32(m_events);
        m_made.m_extras.emplace_back(Moment32(m_events - 1), place.lifetime);
    }
    std::ranges::sort(m_made.m_extras);
}

void LifetimeBuilder::settleSegments()
{
    for (const SnapshotSegment& segment : m_snapshot.segments) {
        if (segment.device == m_made.m_device && segment.size > 0)
            m_ranges.settle({segment.address, segment.size, 0, m_never, segment.stack, segment.stream, segment.isSmall,
                             segment.isExpandable});
    }
    m_ranges.finish(Moment32(m_events), m_never);
    m_made.m_reconciliation.segments = m_made.m_hasCache ? m_ranges.contradictions : 0;
}

/// Blocks from before the trace come first, by address; ids everywhere follow.
void LifetimeBuilder::sortEarlier()
{
    std::vector<LifetimeId> earlier;
    for (LifetimeId id = 0; id < m_lifetimes.size(); ++id) {
        if (m_lifetimes[id].begin == 0)
            earlier.push_back(id);
    }
    if (earlier.empty())
        return;
    std::ranges::stable_sort(earlier, {}, [&](LifetimeId id) { return m_lifetimes[id].address; });
    std::vector<Lifetime> first;
    std::vector<bool> firstSettled;
    for (const LifetimeId id : earlier) {
        first.push_back(m_lifetimes[id]);
        firstSettled.push_back(m_isSettled[id]);
    }
    std::vector<LifetimeId> newId(m_lifetimes.size());
    for (LifetimeId id = LifetimeId(m_lifetimes.size()), to = id; id-- > 0;) { // the others go up, in their order
        if (m_lifetimes[id].begin == 0)
            continue;
        newId[id] = --to;
        m_lifetimes[to] = m_lifetimes[id];
        m_isSettled[to] = m_isSettled[id];
    }
    for (LifetimeId to = 0; to < earlier.size(); ++to) {
        newId[earlier[to]] = to;
        m_lifetimes[to] = first[to];
        m_isSettled[to] = firstSettled[to];
    }
    for (LifetimeId& id : m_made.m_lifetimeOf)
        id = id == noLifetime ? id : newId[id];
    for (auto& [event, id] : m_made.m_extras)
        id = newId[id];
}

/// A free block of a large segment is larger than 1 MiB: what is left behind a block and smaller is its own. From the
/// largest splittable size on, nothing is split.
void LifetimeBuilder::giveSize(LifetimeId id, std::int64_t rounded, std::uint64_t limit)
{
    Lifetime& lifetime = m_lifetimes[id];
    lifetime.size = rounded;
    if (limit <= lifetime.address + std::uint64_t(rounded))
        return;
    const auto hole = std::int64_t(limit - lifetime.address) - rounded;
    if (hole <= smallLimit)
        lifetime.size += hole;
}

Result<void> LifetimeBuilder::sumUp()
{
    SnapshotBytes state;
    auto& made = m_made;
    bool isTooMuch = false;
    const auto add = [&](std::int64_t& sum, std::int64_t change) {
        isTooMuch |= __builtin_add_overflow(sum, change, &sum);
    };
    for (const Lifetime& lifetime : m_lifetimes) {
        if (lifetime.begin > 0)
            break;
        add(state.active, lifetime.end > 0 ? lifetime.size : 0);
        add(state.allocated, lifetime.freed > 0 ? lifetime.size : 0);
        add(state.requested, lifetime.freed > 0 ? lifetime.requested : 0);
    }
    for (const SegmentLifetime& segment : made.m_segments)
        add(state.reserved, made.m_hasCache && segment.begin == 0 ? segment.size : 0);
    if (!made.m_hasCache)
        state.reserved = state.active;
    for (std::size_t moment = 0;; ++moment) {
        if (moment % Lifetimes::stride == 0)
            made.m_states.push_back(state);
        if (moment == m_events || isTooMuch)
            break;
        if (!m_pace.goesOn(moment, m_events))
            return checkWanted();
        const SnapshotBytes change = made.change(moment);
        add(state.allocated, change.allocated);
        add(state.active, change.active);
        add(state.requested, change.requested);
        add(state.reserved, change.reserved);
    }
    if (isTooMuch)
        return fail("snapshot.overflow", "more than 2^63 bytes are alive at once", "the file is damaged");
    return {};
}

void LifetimeBuilder::listReserved()
{
    std::map<Moment32, std::int64_t> changes;
    for (const SegmentLifetime& segment : m_made.m_segments) {
        if (segment.begin > 0)
            changes[segment.begin - 1] += segment.size;
        if (segment.end < m_never && segment.end > 0)
            changes[segment.end - 1] -= segment.size;
    }
    m_made.m_reserved.assign(changes.begin(), changes.end());
}

void LifetimeBuilder::listAlive()
{
    auto& made = m_made;
    std::vector<LifetimeId> alive;
    for (LifetimeId id = 0; id < m_lifetimes.size() && m_lifetimes[id].begin == 0; ++id)
        alive.push_back(id);
    std::size_t next = 0; // the moment of the next list
    for (std::size_t moment = 0; moment <= m_events && m_pace.goesOn(moment, m_events); ++moment) {
        if (moment > 0) {
            const LifetimeId id = made.m_lifetimeOf[moment - 1];
            if (id != noLifetime && m_lifetimes[id].begin == moment)
                alive.push_back(id);
        }
        if (moment < next)
            continue;
        std::erase_if(alive, [&](LifetimeId id) { return !m_lifetimes[id].isAliveAt(moment); });
        made.m_checkpoints.push_back(Moment32(moment));
        made.m_alive.insert(made.m_alive.end(), alive.begin(), alive.end());
        made.m_aliveEnds.push_back(made.m_alive.size());
        next = moment + std::max<std::size_t>(1024, alive.size());
    }
}

Result<Lifetimes> Lifetimes::rebuild(const Snapshot& snapshot, std::uint32_t device)
{
    Pace pace;
    return rebuild(snapshot, device, pace);
}

Result<Lifetimes> Lifetimes::rebuild(const Snapshot& snapshot, std::uint32_t device, Pace& pace)
{
    return LifetimeBuilder(snapshot, device, pace).build();
}

} // namespace memscape
