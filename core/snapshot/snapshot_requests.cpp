// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/snapshot_requests.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Which pool an expandable range is of: its blocks tell, as its size does not once several pages are one range.
bool isOfSmallPool(const LaidSegment& segment, const Lifetimes& lifetimes)
{
    const auto within = std::ranges::find_if(lifetimes.all(), [&](const Lifetime& one) {
        return one.address >= segment.address && one.address < segment.address + std::uint64_t(segment.size);
    });
    return within == lifetimes.all().end() ? segment.isSmall : within->requested <= smallLimit;
}

using Origins = std::map<std::pair<std::uint16_t, bool>, std::uint64_t>;

/// The lowest address that the range of a stream and pool is known to have: its pages are counted from there.
Origins originsOf(const SnapshotLayout& begin, const Lifetimes& lifetimes)
{
    Origins origins;
    const auto consider = [&](std::uint16_t stream, bool isSmall, std::uint64_t address) {
        const auto [known, isNew] = origins.try_emplace({stream, isSmall}, address);
        known->second = std::min(known->second, address);
    };
    for (const LaidSegment& segment : begin.segments)
        if (segment.isExpandable)
            consider(segment.stream, segment.isSmall, segment.address);
    for (const SegmentLifetime& range : lifetimes.segments()) {
        const auto known = origins.find({range.stream, range.isSmall});
        if (range.isExpandable && range.begin > 0 && known != origins.end())
            consider(range.stream, range.isSmall, range.address);
    }
    return origins;
}

/// Moves a range to where its origin is a multiple of the page, as a replay places it; the first range of its stream
/// and pool gets what is not mapped below it.
void placeExpandable(AllocatorSegment& segment, std::uint64_t origin, bool isFirst, std::vector<BlockId>& owners)
{
    const auto page = std::uint64_t(segment.isSmall ? expandablePageSmall : expandablePageLarge);
    const std::uint64_t moved = origin % page;
    const std::uint64_t below = isFirst ? segment.address - origin : 0;
    segment.address -= moved + below;
    if (below == 0)
        return;
    segment.size += std::int64_t(below);
    AllocatorBlock unmapped;
    unmapped.address = segment.address;
    unmapped.size = std::int64_t(below);
    unmapped.state = BlockState::Unmapped;
    segment.blocks.push_back(unmapped);
    owners.push_back(noBlock);
}

class RequestWriter
{
public:
    explicit RequestWriter(const SnapshotDevice& device)
        : m_device(device)
        , m_lifetimes(device.lifetimes())
        , m_blockOf(m_lifetimes.all().size(), noBlock)
    {
        m_made.names = {""};
        m_made.modules = {""};
    }
    RequestTrace written();

private:
    void begin();
    void event(std::size_t event);
    void refusal(std::size_t event);
    void allocate(LifetimeId id);
    void free(LifetimeId id, Moment32 moment);
    void endReleases();
    void findRetries();
    std::optional<std::int64_t> driverLimit() const;
    Recording recording() const;
    SnapshotAction actionOf(std::size_t event) const { return m_lifetimes.event(event).action; }
    void add(RequestKind kind, BlockId block) { m_made.requests.push_back({block, kind, m_phase}); }
    RequestedBlock described(LifetimeId id);
    std::uint32_t nameId(std::vector<std::string>& table, std::string text);

    const SnapshotDevice& m_device;
    const Lifetimes& m_lifetimes;
    std::vector<BlockId> m_blockOf; ///< by lifetime
    std::vector<AllocationRetry> m_retries;
    std::vector<bool> m_isOfRetry; ///< by event: a release or completion for the allocation that follows
    std::unordered_map<std::string, std::uint32_t> m_names, m_modules;
    std::vector<std::pair<BlockId, std::uint64_t>> m_places;
    std::vector<Request> m_afterwards; ///< completed while an allocation emptied the cache
    std::uint64_t m_place = 0;         ///< of the segment that was taken for the next allocation
    bool m_isReleasing = false;        ///< segments go back to the driver, for no allocation
    std::optional<std::size_t> m_lastRefusal;
    Phase m_phase = Phase::Setup;
    RequestTrace m_made;
};

std::uint32_t RequestWriter::nameId(std::vector<std::string>& table, std::string text)
{
    if (text.empty())
        return 0;
    auto& ids = &table == &m_made.names ? m_names : m_modules;
    const auto [found, isNew] = ids.try_emplace(std::move(text), std::uint32_t(table.size()));
    if (isNew)
        table.push_back(found->first);
    return found->second;
}

/// Module and name from its label, else the user's line or the operator.
RequestedBlock RequestWriter::described(LifetimeId id)
{
    const Snapshot& snapshot = m_device.snapshot();
    const Lifetime& lifetime = m_lifetimes[id];
    RequestedBlock block{lifetime.requested, 0, 0, lifetime.stream, m_device.categories().of(id)};
    if (snapshot.run && lifetime.label != noLabel) {
        const SnapshotLabel& label = snapshot.run->labels[lifetime.label];
        block.module = nameId(m_made.modules, std::string(snapshot.texts[label.module]));
        block.name = nameId(m_made.names, std::string(snapshot.texts[label.name ? label.name : label.operation]));
        return block;
    }
    const StackMeaning& meaning = m_device.categories().meaningOf(lifetime.stack);
    if (const FrameId frame = meaning.line != noFrame ? meaning.line : meaning.operation; frame != noFrame)
        block.name = nameId(m_made.names, snapshot.frameText(frame));
    return block;
}

void RequestWriter::allocate(LifetimeId id)
{
    m_blockOf[id] = BlockId(m_made.blocks.size());
    m_made.blocks.push_back(described(id));
    add(RequestKind::Allocate, m_blockOf[id]);
}

/// `moment`: of its free, of the completion of one that was requested before, or both.
void RequestWriter::free(LifetimeId id, Moment32 moment)
{
    const Lifetime& lifetime = m_lifetimes[id];
    const BlockId block = m_blockOf[id];
    if (block == noBlock)
        return;
    const bool waits = lifetime.end > lifetime.freed + 1; // other events lie between
    if (lifetime.freed == moment && waits)
        add(RequestKind::Record, block);
    if (lifetime.freed == moment)
        add(RequestKind::Free, block);
    else if (lifetime.end == moment && waits)
        (m_isOfRetry[moment - 1] ? m_afterwards : m_made.requests)
            .push_back({block, RequestKind::Synchronize, m_phase});
}

void RequestWriter::begin()
{
    auto alive = m_lifetimes.aliveAt(0);
    std::ranges::sort(alive, {}, [&](LifetimeId id) { return m_lifetimes[id].address; });
    for (const LifetimeId id : alive) {
        if (m_lifetimes[id].requested <= 0)
            continue;
        allocate(id);
        if (m_lifetimes[id].freed == 0)
            free(id, 0);
    }
}

/// An allocation that is refused completes what other streams have passed, empties the cache and asks again.
void RequestWriter::findRetries()
{
    const std::size_t events = m_lifetimes.events();
    m_retries = allocationRetries(m_device, {0, events});
    m_isOfRetry.assign(events, false);
    for (std::size_t event = events; event-- > 0;) {
        const SnapshotAction action = actionOf(event);
        if (action == SnapshotAction::OutOfMemory && !m_lastRefusal)
            m_lastRefusal = event;
        const bool mayLead = action == SnapshotAction::FreeCompleted || action == SnapshotAction::SegmentFree
            || action == SnapshotAction::SegmentUnmap;
        if (!mayLead || event + 1 == events)
            continue;
        const bool isBefore = std::ranges::binary_search(m_retries, event + 1, {}, &AllocationRetry::event)
            && actionOf(event + 1) != SnapshotAction::OutOfMemory;
        m_isOfRetry[event] = isBefore || m_isOfRetry[event + 1];
    }
}

/// Segments went back and no allocation asked for that.
void RequestWriter::endReleases()
{
    if (std::exchange(m_isReleasing, false))
        add(RequestKind::EmptyCache, noBlock);
}

/// The driver had not enough, also after the cache was emptied.
void RequestWriter::refusal(std::size_t event)
{
    const SnapshotEvent entry = m_lifetimes.event(event);
    m_isReleasing = false;
    if (event != m_lastRefusal) { // the program went on
        add(RequestKind::EmptyCache, noBlock);
        return;
    }
    if (entry.size <= 0)
        return;
    const BlockId block = BlockId(m_made.blocks.size());
    m_made.blocks.push_back(
        {entry.size, nameId(m_made.names, "the refused request"), 0, entry.stream, Category::Unknown});
    add(RequestKind::Allocate, block);
}

void RequestWriter::event(std::size_t event)
{
    const SnapshotEvent entry = m_lifetimes.event(event);
    if (const auto phase = m_device.categories().phaseOf(event))
        m_phase = *phase;
    for (const auto& [at, ended] : m_lifetimes.extrasOf(event))
        free(ended, Moment32(event + 1));
    const LifetimeId id = m_lifetimes.lifetimeOf(event);
    switch (entry.action) {
    case SnapshotAction::SegmentFree:
    case SnapshotAction::SegmentUnmap: m_isReleasing |= !m_isOfRetry[event]; return;
    case SnapshotAction::SegmentAlloc:
        m_place = entry.address;
        endReleases();
        return;
    case SnapshotAction::SegmentMap: endReleases(); return;
    case SnapshotAction::OutOfMemory: return refusal(event);
    case SnapshotAction::Allocate:
        endReleases();
        if (id == noLifetime || m_lifetimes[id].requested <= 0)
            return;
        allocate(id);
        if (m_place != 0)
            m_places.emplace_back(m_blockOf[id], std::exchange(m_place, 0));
        m_made.requests.insert(m_made.requests.end(), m_afterwards.begin(), m_afterwards.end());
        m_afterwards.clear();
        return;
    case SnapshotAction::FreeRequested: endReleases(); [[fallthrough]];
    case SnapshotAction::FreeCompleted:
        if (id != noLifetime)
            free(id, Moment32(event + 1));
        return;
    default: return;
    }
}

/// At least what was reserved at most, less than what was refused, and where a refusal says so what the driver had.
std::optional<std::int64_t> RequestWriter::driverLimit() const
{
    std::optional<std::int64_t> tooMuch;
    const auto refused = [&](std::int64_t bytes) { tooMuch = std::min(tooMuch.value_or(bytes), bytes); };
    for (const AllocationRetry& retry : m_retries) {
        if (actionOf(retry.event) != SnapshotAction::OutOfMemory)
            refused(m_lifetimes.bytesAt(retry.event).reserved + retry.released + m_lifetimes.event(retry.event).size);
    }
    std::int64_t limit = m_lifetimes.bytesAt(m_device.timeline().peakReserved(0, m_lifetimes.events())).reserved;
    if (m_lastRefusal) {
        const SnapshotEvent failed = m_lifetimes.event(*m_lastRefusal);
        const std::int64_t reserved = m_lifetimes.bytesAt(*m_lastRefusal).reserved;
        refused(reserved + segmentBytes(failed.size));
        limit = std::max(limit, std::min(reserved + std::int64_t(failed.address), *tooMuch - 1));
    }
    return tooMuch ? std::optional(limit) : std::nullopt;
}

Recording RequestWriter::recording() const
{
    Recording made;
    made.options = allocatorOptionsOf(m_device.snapshot().settings);
    made.options.caches = m_lifetimes.hasCache();
    const SnapshotLayout end = m_lifetimes.layoutAt(m_lifetimes.events());
    for (const LaidSegment& segment : end.segments) {
        made.endReserved += segment.size;
        made.segmentsAtTheEnd += !segment.isExpandable;
    }
    made.peakReserved = m_lifetimes.bytesAt(m_device.timeline().peakReserved(0, m_lifetimes.events())).reserved;
    if (!made.options.caches)
        return made;
    made.options.deviceLimit = driverLimit();
    made.places = m_places;
    SnapshotLayout begin = m_lifetimes.layoutAt(0);
    for (LaidSegment& segment : begin.segments)
        segment.isSmall = segment.isExpandable ? isOfSmallPool(segment, m_lifetimes) : segment.isSmall;
    Origins origins = originsOf(begin, m_lifetimes);
    std::set<std::pair<std::uint16_t, bool>> begun;
    for (const LaidSegment& segment : begin.segments) {
        AllocatorSegment one{segment.address, segment.size, segment.stream, segment.isSmall, segment.isExpandable, {}};
        const std::pair pool(segment.stream, segment.isSmall);
        if (segment.isExpandable)
            placeExpandable(one, origins[pool], begun.insert(pool).second, made.owners);
        const std::uint64_t moved = segment.address - (one.address + std::uint64_t(one.size - segment.size));
        for (std::size_t i = 0; i < segment.blockCount; ++i) {
            const LaidBlock& laid = begin.blocks[segment.firstBlock + i];
            const bool isFree = laid.isFree() || m_blockOf[laid.lifetime] == noBlock;
            AllocatorBlock block;
            block.address = laid.address - moved;
            block.size = laid.size;
            block.requested = isFree ? 0 : m_lifetimes[laid.lifetime].requested;
            block.state = isFree ? BlockState::Free : BlockState::Active; // one that is pending is freed as a request
            one.blocks.push_back(block);
            made.owners.push_back(isFree ? noBlock : m_blockOf[laid.lifetime]);
        }
        made.segments.push_back(std::move(one));
    }
    return made;
}

RequestTrace RequestWriter::written()
{
    findRetries();
    begin();
    for (std::size_t event = 0; event < m_lifetimes.events(); ++event)
        this->event(event);
    endReleases();
    m_made.recording = std::make_shared<const Recording>(recording());
    return std::move(m_made);
}

} // namespace

Result<RequestTrace> requestsOf(const SnapshotDevice& device, std::size_t most)
{
    const std::size_t blocks = device.lifetimes().all().size(); // one request each, and one more when it is freed
    if (blocks > most)
        return fail("trace.length",
                    fmt::format("{} allocations are too many to play one by one: at most {}", blocks, most),
                    "record fewer steps: torch.cuda.memory._record_memory_history(max_entries=100000)");
    RequestTrace trace = RequestWriter(device).written();
    if (trace.requests.size() > most)
        return fail("trace.length",
                    fmt::format("{} requests are too many to play one by one: at most {}", trace.requests.size(), most),
                    "record fewer steps: torch.cuda.memory._record_memory_history(max_entries=100000)");
    if (trace.requests.empty())
        return fail("trace.empty", "nothing was allocated on this device while it was recorded",
                    "record a step: torch.cuda.memory._record_memory_history() before it");
    return trace;
}

} // namespace memscape
