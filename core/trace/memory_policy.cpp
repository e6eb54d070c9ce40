// SPDX-License-Identifier: Apache-2.0
// Which allocators there are, and PyTorch's as one of them.
#include "core/trace/memory_policy.h"

#include "core/base/text.h"
#include "core/trace/packing.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

namespace memscape {

namespace {

/// CachingAllocator, and who is in which of its blocks.
class CachingPolicy final : public MemoryPolicy
{
public:
    CachingPolicy(const AllocatorOptions& options, CachingAllocator allocator, std::size_t blocks)
        : m_options(options)
        , m_allocator(std::move(allocator))
        , m_served(blocks, 0)
        , m_isRecorded(blocks)
    {
        m_allocator.reserve(blocks);
    }
    /// Goes on from a recording; errors: allocator.segments.
    static Result<std::unique_ptr<MemoryPolicy>> recorded(const AllocatorOptions& options, const RequestTrace& trace);
    std::unique_ptr<MemoryPolicy> clone() const override { return std::make_unique<CachingPolicy>(*this); }

    PolicyAct play(const Request& request, const RequestedBlock& block) override
    {
        const AllocatorStatistics before = m_allocator.statistics();
        PolicyAct act = requested(request, block);
        const AllocatorStatistics& after = m_allocator.statistics();
        act.taken = after.takenBytes - before.takenBytes;
        act.returned = after.returnedBytes - before.returnedBytes;
        act.returns = after.deviceFrees - before.deviceFrees;
        act.isRetry = after.retries > before.retries;
        if (act.kind == ActKind::Reused && act.taken > 0)
            act.kind = ActKind::Taken;
        if (act.isRetry || act.kind == ActKind::Emptied)
            m_pending.clear();
        return act;
    }
    PolicyCounts counts() const override
    {
        const AllocatorCounts& now = m_allocator.statistics().current;
        return {now.requested, now.allocated, now.reserved, now.segments};
    }
    PolicyTotals totals() const override
    {
        const AllocatorStatistics& all = m_allocator.statistics();
        return {all.deviceAllocations, all.deviceFrees, all.takenBytes, all.returnedBytes, all.retries};
    }
    std::vector<PolicySegment> segments() const override;

private:
    PolicyAct requested(const Request& request, const RequestedBlock& block);
    PolicyAct allocate(const Request& request, const RequestedBlock& block);
    PolicyAct freed(BlockIndex index) const;
    PolicyAct found(BlockIndex index) const;
    std::uint64_t recordedPlace(BlockId block) const;
    static const char* poolOf(bool isSmall) { return isSmall ? "small pool" : "large pool"; }

    AllocatorOptions m_options;
    CachingAllocator m_allocator;
    std::vector<BlockIndex> m_served; ///< by BlockId
    std::vector<bool> m_isRecorded;
    std::vector<BlockId> m_pending; ///< freed, and not complete
    std::vector<bool> m_isFound;    ///< by BlockId: there when the recording began; empty without one
    std::shared_ptr<const Recording> m_recording;
};

Result<std::unique_ptr<MemoryPolicy>> CachingPolicy::recorded(const AllocatorOptions& options,
                                                              const RequestTrace& trace)
{
    const Recording& recording = *trace.recording;
    MEMSCAPE_TRY(allocator, CachingAllocator::continued(options, recording.segments));
    auto policy = std::make_unique<CachingPolicy>(options, std::move(allocator), trace.blocks.size());
    policy->m_recording = trace.recording;
    policy->m_isFound.resize(trace.blocks.size());
    for (std::size_t i = 0; i < recording.owners.size(); ++i) {
        const BlockId owner = recording.owners[i];
        if (owner == noBlock)
            continue;
        policy->m_served[owner] = BlockIndex(i + 1); // as continued() numbers them
        policy->m_isFound[owner] = true;
    }
    return std::unique_ptr<MemoryPolicy>(std::move(policy));
}

PolicyAct CachingPolicy::found(BlockIndex index) const
{
    const AllocatorBlock& block = m_allocator.block(index);
    PolicyAct act;
    act.kind = ActKind::Found;
    act.address = block.address;
    act.given = act.found = block.size;
    act.pool = poolOf(block.isSmall);
    return act;
}

/// Where the driver put the segment that it gave for this block; 0: it gave none, or that is not known.
std::uint64_t CachingPolicy::recordedPlace(BlockId block) const
{
    if (!m_recording)
        return 0;
    const auto& places = m_recording->places;
    const auto place = std::lower_bound(places.begin(), places.end(), std::pair(block, std::uint64_t(0)));
    return place != places.end() && place->first == block ? place->second : 0;
}

PolicyAct CachingPolicy::allocate(const Request& request, const RequestedBlock& block)
{
    PolicyAct act;
    if (!m_isFound.empty() && m_isFound[request.block])
        return found(m_served[request.block]);
    m_allocator.placeNextSegment(recordedPlace(request.block));
    const BlockIndex index = m_allocator.allocate(block.bytes, block.stream);
    m_served[request.block] = index;
    if (index == 0) {
        act.kind = ActKind::Refused;
        act.given = m_allocator.refusedBytes();
        act.pool = poolOf(roundedRequest(block.bytes, m_options) <= smallLimit);
        return act;
    }
    const AllocatorBlock& made = m_allocator.block(index);
    act.kind = ActKind::Reused;
    act.address = made.address;
    act.given = made.size;
    // Free blocks beside each other are one: what is free behind a block that was just made is what was split off.
    const AllocatorBlock& next = m_allocator.block(made.next);
    act.rest = made.next && next.state == BlockState::Free ? next.size : 0;
    act.found = act.given + act.rest;
    act.pool = poolOf(made.isSmall);
    return act;
}

/// Of a block that is about to become free.
PolicyAct CachingPolicy::freed(BlockIndex index) const
{
    PolicyAct act;
    const AllocatorBlock& block = m_allocator.block(index);
    act.kind = ActKind::Freed;
    act.address = block.address;
    act.given = block.size;
    act.freeAfter = block.size;
    act.pool = poolOf(block.isSmall);
    for (const BlockIndex other : {block.previous, block.next}) {
        if (other && m_allocator.block(other).state == BlockState::Free) {
            ++act.merged;
            act.freeAfter += m_allocator.block(other).size;
        }
    }
    return act;
}

PolicyAct CachingPolicy::requested(const Request& request, const RequestedBlock& block)
{
    PolicyAct act;
    switch (request.kind) {
    case RequestKind::Allocate: return allocate(request, block);
    case RequestKind::Free: {
        const BlockIndex index = m_served[request.block];
        act = freed(index);
        if (!m_isRecorded[request.block]) {
            m_allocator.free(index);
            return act;
        }
        m_allocator.requestFree(index);
        m_pending.push_back(request.block);
        act.kind = ActKind::Deferred;
        act.merged = 0;
        act.freeAfter = 0;
        return act;
    }
    case RequestKind::Record:
        m_isRecorded[request.block] = true;
        act.kind = ActKind::Recorded;
        return act;
    case RequestKind::Synchronize:
        for (const BlockId pending : completedBy(request, m_pending))
            m_allocator.completeFree(m_served[pending]);
        act.kind = ActKind::Waited;
        return act;
    case RequestKind::EmptyCache:
        m_allocator.emptyCache();
        act.kind = ActKind::Emptied;
        return act;
    }
    return act;
}

std::vector<PolicySegment> CachingPolicy::segments() const
{
    std::unordered_map<std::uint64_t, BlockId> owners; // by address; later blocks took the place of earlier ones
    for (BlockId block = 1; block < m_served.size(); ++block)
        if (const BlockIndex index = m_served[block])
            owners[m_allocator.block(index).address] = block;
    std::vector<PolicySegment> segments;
    for (const AllocatorSegment& segment : m_allocator.segments()) {
        PolicySegment made{segment.address,
                           segment.size,
                           segment.stream,
                           segment.isExpandable ? fmt::format("{}, expandable", poolOf(segment.isSmall))
                                                : poolOf(segment.isSmall),
                           {}};
        for (const AllocatorBlock& block : segment.blocks) {
            const bool isUsed = block.state != BlockState::Free;
            const auto owner = owners.find(block.address);
            made.blocks.push_back({block.address, block.size, isUsed && owner != owners.end() ? owner->second : noBlock,
                                   block.state == BlockState::Pending});
        }
        segments.push_back(std::move(made));
    }
    return segments;
}

std::string cachingLabel(std::string_view key)
{
    return key == "default" ? "PyTorch, default" : quotedForMessage(key, 60);
}

} // namespace

const std::vector<PolicyWord>& policyWords()
{
    static const std::vector<PolicyWord> words{
        {PolicyKind::FirstFit, "first-fit", "first fit, one arena",
         "one range of addresses that only grows; a request takes the lowest hole that fits"},
        {PolicyKind::BestFit, "best-fit", "best fit, one arena",
         "one range of addresses that only grows; a request takes the smallest hole that fits"},
        {PolicyKind::PowersOfTwo, "powers-of-two", "pool of powers of two",
         "a request takes a whole block of the next power of two; blocks are never cut or merged"},
        {PolicyKind::Malloc, "malloc", "malloc (glibc)",
         "128 KiB and more are mapped on their own; freed mappings raise that up to 32 MiB; the rest is best fit"},
        {PolicyKind::CudaMalloc, "cudaMalloc", "cudaMalloc for each block",
         "every block from the driver and back to it; blocks above 1 MiB in pages of 2 MiB"},
        {PolicyKind::CudaAsync, "cudaMallocAsync", "cudaMallocAsync pool",
         "the driver's own pool, as best fit that grows by 32 MiB: a guess, its rules are not published"},
        {PolicyKind::LargestFirst, "largest-first", "planned, largest first",
         "the whole trace is known: largest block first, each at the lowest address free during its life"},
        {PolicyKind::LifetimeColour, "lifetime-colouring", "planned, lifetime colouring",
         "the whole trace is known: blocks that never live at the same time share a buffer"}};
    return words;
}

Result<PolicySetting> readSetting(std::string_view text)
{
    const std::string key(trimmed(text));
    for (const PolicyWord& word : policyWords())
        if (key == word.key)
            return PolicySetting{word.kind, {}, key, word.label};
    if (key.empty() || key == "default")
        return PolicySetting{PolicyKind::Caching, {}, "default", cachingLabel("default")};
    if (key == "expandable_segments") {
        AllocatorOptions options;
        options.expandableSegments = true;
        return PolicySetting{PolicyKind::Caching, options, key, cachingLabel(key)};
    }
    if (key == recordedSetting) {
        PolicySetting setting{PolicyKind::Caching, {}, key, "PyTorch, as recorded"};
        setting.goesOn = true;
        return setting;
    }
    auto options = parseAllocatorOptions(key);
    if (options)
        return PolicySetting{PolicyKind::Caching, *options, key, cachingLabel(key)};
    if (options.error().code != "allocator.option" || key.find(':') != std::string::npos)
        return fail(std::move(options).error());
    std::vector<std::string> known{"default", "expandable_segments", "max_split_size_mb:128",
                                   "roundup_power2_divisions:8", "garbage_collection_threshold:0.8"};
    for (const PolicyWord& word : policyWords())
        known.emplace_back(word.key);
    return fail("allocator.setting", fmt::format("no allocator or option is called \"{}\"", quotedForMessage(key)),
                didYouMean(key, known));
}

Result<std::unique_ptr<MemoryPolicy>> makePolicy(const PolicySetting& setting, const RequestTrace& trace)
{
    switch (setting.kind) {
    case PolicyKind::Caching: {
        if (!setting.goesOn)
            return std::make_unique<CachingPolicy>(setting.options, CachingAllocator(setting.options),
                                                   trace.blocks.size());
        if (!trace.recording)
            return fail("allocator.recorded", "these requests were not recorded: no setting is known",
                        "choose default, or play a snapshot");
        AllocatorOptions options = trace.recording->options;
        options.deviceLimit = setting.options.deviceLimit;
        options.fractionLimit = setting.options.fractionLimit;
        return CachingPolicy::recorded(options, trace);
    }
    case PolicyKind::PowersOfTwo: return makePowersOfTwo(setting.options.deviceLimit);
    case PolicyKind::LargestFirst:
    case PolicyKind::LifetimeColour: {
        MEMSCAPE_TRY(plan, setting.kind == PolicyKind::LargestFirst ? packLargestFirst(trace) : colourLifetimes(trace));
        return makePlanned(std::move(plan), setting.options.deviceLimit);
    }
    default: return makeHeap(heapRules(setting.kind, setting.options.deviceLimit));
    }
}

} // namespace memscape
