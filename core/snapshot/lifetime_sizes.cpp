// SPDX-License-Identifier: Apache-2.0
// The size of each block that the file does not have any more: the request rounded as the allocator rounds it, and what
// it does not split off. For that the neighbours at its allocation are followed, in large segments alone: blocks of
// small and of expandable ones are split to the last 512 bytes.
#include "core/snapshot/lifetime_builder.h"

#include <algorithm>
#include <bit>

namespace memscape {

namespace {

/// The large segments and the blocks in them at a moment.
class LargeBlocks
{
public:
    explicit LargeBlocks(const std::vector<Lifetime>& lifetimes)
        : m_lifetimes(lifetimes)
    { }
    void addSegment(std::uint64_t address, std::int64_t size) { m_segments[address] = address + std::uint64_t(size); }
    void removeSegment(std::uint64_t address) { m_segments.erase(address); }
    void add(LifetimeId id) { m_blocks[m_lifetimes[id].address] = id; }
    void remove(LifetimeId id)
    {
        const auto it = m_blocks.find(m_lifetimes[id].address);
        if (it != m_blocks.end() && it->second == id)
            m_blocks.erase(it);
    }
    /// Where the hole behind an address ends: at the next block or the segment's end; 0 outside of large segments.
    std::uint64_t limit(std::uint64_t address) const
    {
        auto segment = m_segments.upper_bound(address);
        if (segment == m_segments.begin() || (--segment)->second <= address)
            return 0;
        const auto next = m_blocks.upper_bound(address);
        return next == m_blocks.end() ? segment->second : std::min(segment->second, next->first);
    }

private:
    const std::vector<Lifetime>& m_lifetimes;
    std::map<std::uint64_t, std::uint64_t> m_segments;
    std::map<std::uint64_t, LifetimeId> m_blocks;
};

bool isLarge(const SegmentLifetime& segment)
{
    return !segment.isSmall && !segment.isExpandable;
}

} // namespace

AllocatorOptions allocatorOptionsOf(const Json& settings)
{
    AllocatorOptions options;
    if (!settings.is_object())
        return options;
    const auto number = [&](const Json& object, const std::string& key) -> std::optional<double> {
        const auto it = object.find(key);
        return it != object.end() && it->is_number() ? std::optional(it->get<double>()) : std::nullopt;
    };
    if (const auto split = number(settings, "max_split_size"); split && *split > 0 && *split < 9e15)
        options.maxSplit = std::int64_t(*split);
    if (const auto share = number(settings, "garbage_collection_threshold"); share && *share > 0 && *share < 1)
        options.garbageCollectionThreshold = *share;
    const auto expandable = settings.find("expandable_segments");
    options.expandableSegments = expandable != settings.end() && expandable->is_boolean() && expandable->get<bool>();
    const auto divisions = settings.find("roundup_power2_divisions");
    for (std::size_t i = 0; divisions != settings.end() && divisions->is_object() && i < 16; ++i) {
        const auto count = number(*divisions, std::to_string(1u << i));
        if (count && *count >= 0 && *count <= 1 << 20 && std::has_single_bit(std::uint64_t(*count)))
            options.powerOf2Divisions[i] = std::int64_t(*count);
    }
    return options;
}

void LifetimeBuilder::giveSizes()
{
    if (!m_made.m_hasCache)
        return;
    const AllocatorOptions options = allocatorOptionsOf(m_snapshot.settings);
    LargeBlocks large(m_lifetimes);
    std::multimap<Moment32, std::size_t> comings; // segments by the moment they come
    std::multimap<Moment32, std::size_t> goings;
    for (std::size_t i = 0; i < m_made.m_segments.size(); ++i) {
        const SegmentLifetime& segment = m_made.m_segments[i];
        if (!isLarge(segment))
            continue;
        comings.emplace(segment.begin, i);
        goings.emplace(segment.end, i);
    }
    auto coming = comings.begin();
    auto going = goings.begin();
    const auto moveTo = [&](Moment32 moment) {
        for (; going != goings.end() && going->first <= moment; ++going)
            large.removeSegment(m_made.m_segments[going->second].address);
        for (; coming != comings.end() && coming->first <= moment; ++coming) {
            const SegmentLifetime& segment = m_made.m_segments[coming->second];
            if (segment.end > moment)
                large.addSegment(segment.address, segment.size);
        }
    };
    const auto place = [&](LifetimeId id) {
        Lifetime& lifetime = m_lifetimes[id];
        const std::int64_t rounded = lifetime.requested > 0 ? roundedRequest(lifetime.requested, options) : 0;
        if (rounded <= smallLimit && !m_isSettled[id]) {
            lifetime.size = rounded;
            return;
        }
        const std::uint64_t limit = large.limit(lifetime.address);
        if (limit == 0 && !m_isSettled[id])
            lifetime.size = rounded;
        if (limit == 0)
            return;
        large.add(id);
        if (!m_isSettled[id] && options.maxSplit && rounded >= *options.maxSplit)
            lifetime.size = std::max<std::int64_t>(rounded, std::int64_t(limit - lifetime.address));
        else if (!m_isSettled[id])
            giveSize(id, rounded, limit);
    };
    moveTo(0);
    LifetimeId first = 0;
    for (; first < m_lifetimes.size() && m_lifetimes[first].begin == 0; ++first)
        large.add(first); // all of them before the first is given its size
    for (LifetimeId id = 0; id < first; ++id)
        place(id);
    for (std::size_t event = 0; event < m_events && m_pace.goesOn(event, m_events); ++event) {
        moveTo(Moment32(event + 1));
        const LifetimeId id = m_made.m_lifetimeOf[event];
        for (const auto& [at, ended] : m_made.extrasOf(event))
            large.remove(ended);
        if (id == noLifetime)
            continue;
        if (m_lifetimes[id].begin == event + 1)
            place(id);
        else if (m_lifetimes[id].end == event + 1)
            large.remove(id);
    }
}

} // namespace memscape
