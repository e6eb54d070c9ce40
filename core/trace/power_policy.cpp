// SPDX-License-Identifier: Apache-2.0
// A pool for each power of two: a request takes a block of the next power, which is never cut and never merged, so
// that taking and freeing are a push and a pop. What that costs is inside the blocks: up to half of each.
//
// Blocks of 2 MiB and more are taken from the driver one by one, smaller ones in slabs of 2 MiB of one size.
// Left out: giving empty slabs back before they are asked for (empty_cache).
#include "core/base/number.h"
#include "core/trace/block_policy.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::int64_t slabBytes = 2 << 20;

class PowersOfTwo final : public BlockPolicy
{
public:
    explicit PowersOfTwo(std::optional<std::int64_t> limit)
        : m_limit(limit)
    { }
    std::unique_ptr<MemoryPolicy> clone() const override { return std::make_unique<PowersOfTwo>(*this); }
    std::vector<PolicySegment> segments() const override;

private:
    struct Slab
    {
        std::int64_t bytes = 0, blockBytes = 0;
        std::size_t used = 0;
    };

    PolicyAct allocate(BlockId id, std::int64_t bytes) override;
    PolicyAct free(BlockId id) override;
    PolicyAct emptyCache() override;
    auto slabAt(std::uint64_t address) { return std::prev(m_slabs.upper_bound(address)); }

    std::optional<std::int64_t> m_limit;
    std::map<std::uint64_t, Slab> m_slabs;
    std::map<std::int64_t, std::set<std::uint64_t>> m_free; ///< block size -> addresses, the lowest first
    std::uint64_t m_next = 0x7f0000000000;
};

PolicyAct PowersOfTwo::allocate(BlockId, std::int64_t bytes)
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
        take(taken, act);
        m_slabs[m_next] = {taken, act.given, 0};
        for (std::int64_t at = 0; at < taken; at += act.given)
            free.insert(m_next + std::uint64_t(at));
        m_next += std::uint64_t(taken);
        ++m_counts.segments;
    }
    act.address = *free.begin();
    free.erase(free.begin());
    ++slabAt(act.address)->second.used;
    return act;
}

PolicyAct PowersOfTwo::free(BlockId id)
{
    const Held& block = held().at(id);
    PolicyAct act;
    act.freeAfter = block.given;
    act.pool = fmt::format("pool of {}", bytesText(double(block.given)));
    m_free[block.given].insert(block.address);
    --slabAt(block.address)->second.used;
    return act;
}

PolicyAct PowersOfTwo::emptyCache()
{
    PolicyAct act;
    for (auto slab = m_slabs.begin(); slab != m_slabs.end();) {
        if (slab->second.used > 0) {
            ++slab;
            continue;
        }
        std::set<std::uint64_t>& free = m_free[slab->second.blockBytes];
        free.erase(free.lower_bound(slab->first), free.lower_bound(slab->first + std::uint64_t(slab->second.bytes)));
        giveBack(slab->second.bytes, act);
        --m_counts.segments;
        slab = m_slabs.erase(slab);
    }
    return act;
}

std::vector<PolicySegment> PowersOfTwo::segments() const
{
    std::map<std::uint64_t, std::pair<BlockId, bool>> owners;
    for (const auto& [id, block] : held())
        owners[block.address] = {id, block.isPending};
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
