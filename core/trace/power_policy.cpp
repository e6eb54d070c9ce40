// SPDX-License-Identifier: Apache-2.0
// A pool for each power of two: a request takes a block of the next power, which is never cut and never merged, so
// that taking and freeing are a push and a pop. What that costs is inside the blocks: up to half of each.
//
// Blocks of 2 MiB and more are taken from the driver one by one, smaller ones in slabs of 2 MiB of one size.
// Left out: giving empty slabs back before they are asked for (empty_cache).
#include "core/trace/memory_policy.h"

#include "core/base/number.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::int64_t slabBytes = 2 << 20;

class PowersOfTwo final : public MemoryPolicy
{
public:
    explicit PowersOfTwo(std::optional<std::int64_t> limit)
        : m_limit(limit)
    { }
    std::unique_ptr<MemoryPolicy> clone() const override { return std::make_unique<PowersOfTwo>(*this); }
    PolicyAct play(const Request& request, const RequestedBlock& block) override;
    PolicyCounts counts() const override { return m_counts; }
    PolicyTotals totals() const override { return m_totals; }
    std::vector<PolicySegment> segments() const override;

private:
    struct Slab
    {
        std::int64_t bytes = 0, blockBytes = 0;
        std::size_t used = 0;
    };
    struct Used
    {
        std::uint64_t address = 0;
        std::int64_t requested = 0;
        bool isPending = false;
    };

    PolicyAct allocate(BlockId id, std::int64_t bytes);
    PolicyAct free(BlockId id);
    PolicyAct emptyCache();
    auto slabAt(std::uint64_t address) { return std::prev(m_slabs.upper_bound(address)); }

    std::optional<std::int64_t> m_limit;
    PolicyCounts m_counts;
    PolicyTotals m_totals;
    std::map<std::uint64_t, Slab> m_slabs;
    std::map<std::int64_t, std::set<std::uint64_t>> m_free; ///< block size -> addresses, the lowest first
    std::map<BlockId, Used> m_used;
    std::set<BlockId> m_recorded;
    std::vector<BlockId> m_pending;
    std::uint64_t m_next = 0x7f0000000000;
};

PolicyAct PowersOfTwo::allocate(BlockId id, std::int64_t bytes)
{
    PolicyAct act;
    act.kind = ActKind::Reused;
    act.given = act.found = powerOfTwoFor(bytes);
    act.pool = fmt::format("pool of {}", bytesText(double(act.given)));
    std::set<std::uint64_t>& free = m_free[act.given];
    if (free.empty()) {
        const std::int64_t taken = std::max(act.given, slabBytes);
        if (m_limit && taken > *m_limit - m_counts.reserved) {
            act.kind = ActKind::Refused;
            return act;
        }
        act.kind = ActKind::Taken;
        act.taken = taken;
        m_slabs[m_next] = {taken, act.given, 0};
        for (std::int64_t at = 0; at < taken; at += act.given)
            free.insert(m_next + std::uint64_t(at));
        m_next += std::uint64_t(taken);
        ++m_totals.takes;
        m_totals.takenBytes += taken;
        m_counts.reserved += taken;
        ++m_counts.segments;
    }
    act.address = *free.begin();
    free.erase(free.begin());
    ++slabAt(act.address)->second.used;
    m_used[id] = {act.address, bytes, false};
    return act;
}

PolicyAct PowersOfTwo::free(BlockId id)
{
    const auto used = m_used.find(id);
    const auto slab = slabAt(used->second.address);
    PolicyAct act;
    act.kind = ActKind::Freed;
    act.address = used->second.address;
    act.given = act.freeAfter = slab->second.blockBytes;
    act.pool = fmt::format("pool of {}", bytesText(double(act.given)));
    m_free[act.given].insert(act.address);
    --slab->second.used;
    m_used.erase(used);
    return act;
}

PolicyAct PowersOfTwo::emptyCache()
{
    PolicyAct act;
    act.kind = ActKind::Emptied;
    for (auto slab = m_slabs.begin(); slab != m_slabs.end();) {
        if (slab->second.used > 0) {
            ++slab;
            continue;
        }
        std::set<std::uint64_t>& free = m_free[slab->second.blockBytes];
        free.erase(free.lower_bound(slab->first), free.lower_bound(slab->first + std::uint64_t(slab->second.bytes)));
        act.returned += slab->second.bytes;
        ++act.returns;
        slab = m_slabs.erase(slab);
    }
    m_totals.returns += act.returns;
    m_totals.returnedBytes += act.returned;
    m_counts.reserved -= act.returned;
    m_counts.segments -= act.returns;
    return act;
}

PolicyAct PowersOfTwo::play(const Request& request, const RequestedBlock& block)
{
    PolicyAct act;
    switch (request.kind) {
    case RequestKind::Allocate:
        act = allocate(request.block, block.bytes);
        if (act.kind != ActKind::Refused) {
            m_counts.requested += block.bytes;
            m_counts.allocated += act.given;
        }
        return act;
    case RequestKind::Free: {
        Used& used = m_used[request.block];
        m_counts.requested -= used.requested;
        m_counts.allocated -= slabAt(used.address)->second.blockBytes;
        if (m_recorded.count(request.block) == 0)
            return free(request.block);
        used.isPending = true;
        m_pending.push_back(request.block);
        act.kind = ActKind::Deferred;
        act.address = used.address;
        act.given = slabAt(used.address)->second.blockBytes;
        return act;
    }
    case RequestKind::Record:
        m_recorded.insert(request.block);
        act.kind = ActKind::Recorded;
        return act;
    case RequestKind::Synchronize:
    case RequestKind::EmptyCache:
        for (const BlockId pending : completedBy(request, m_pending))
            static_cast<void>(free(pending));
        act.kind = ActKind::Waited;
        return request.kind == RequestKind::EmptyCache ? emptyCache() : act;
    }
    return act;
}

std::vector<PolicySegment> PowersOfTwo::segments() const
{
    std::map<std::uint64_t, std::pair<BlockId, bool>> owners;
    for (const auto& [block, used] : m_used)
        owners[used.address] = {block, used.isPending};
    std::vector<PolicySegment> segments;
    for (const auto& [address, slab] : m_slabs) {
        PolicySegment segment{
            address, slab.bytes, 0, fmt::format("pool of {}", bytesText(double(slab.blockBytes))), {}};
        for (std::int64_t at = 0; at < slab.bytes; at += slab.blockBytes) {
            const auto owner = owners.find(address + std::uint64_t(at));
            const bool isUsed = owner != owners.end();
            segment.blocks.push_back({address + std::uint64_t(at), slab.blockBytes,
                                      isUsed ? owner->second.first : noBlock, isUsed && owner->second.second});
        }
        segments.push_back(std::move(segment));
    }
    return segments;
}

} // namespace

std::int64_t powerOfTwoFor(std::int64_t bytes)
{
    return std::max<std::int64_t>(512, std::int64_t(std::bit_ceil(std::uint64_t(bytes))));
}

std::unique_ptr<MemoryPolicy> makePowersOfTwo(std::optional<std::int64_t> limit)
{
    return std::make_unique<PowersOfTwo>(limit);
}

} // namespace memscape
