// SPDX-License-Identifier: Apache-2.0
#include "core/trace/packing.h"

#include "core/base/cancellation.h"
#include "core/base/rounding.h"
#include "core/trace/block_policy.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::int64_t packedAlignment = 512;

Packing unplaced(const RequestTrace& trace)
{
    Packing packing;
    packing.offsets.resize(trace.blocks.size());
    for (const RequestedBlock& block : trace.blocks)
        packing.sizes.push_back(roundedUp(block.bytes, packedAlignment));
    return packing;
}

/// Of those that have been placed, by offset: the arrays of the search lie side by side.
struct PlacedBlock
{
    std::int64_t offset, end;
    LifeSpan life;
};

std::int64_t lowestPlace(const std::vector<PlacedBlock>& placed, LifeSpan life, std::int64_t size)
{
    std::int64_t at = 0;
    for (const PlacedBlock& other : placed) {
        if (other.life.end <= life.begin || life.end <= other.life.begin)
            continue;
        if (other.offset - at >= size)
            break;
        at = std::max(at, other.end);
    }
    return at;
}

class Planned final : public BlockPolicy
{
public:
    Planned(Packing plan, std::optional<std::int64_t> limit)
        : m_plan(std::make_shared<const Packing>(std::move(plan)))
        , m_limit(limit)
    { }
    std::unique_ptr<MemoryPolicy> clone() const override { return std::make_unique<Planned>(*this); }
    std::vector<PolicySegment> segments() const override;

private:
    PolicyAct allocate(BlockId id, std::int64_t bytes) override;
    PolicyAct free(BlockId id) override;
    PolicyAct emptyCache() override { return {}; } // the plan's memory stays

    static constexpr std::uint64_t base = 0x7f0000000000;
    std::shared_ptr<const Packing> m_plan;
    std::optional<std::int64_t> m_limit;
};

PolicyAct Planned::allocate(BlockId id, std::int64_t)
{
    PolicyAct act;
    act.kind = ActKind::Reused;
    act.address = base + std::uint64_t(m_plan->offsets[id]);
    act.given = act.found = m_plan->sizes[id];
    act.pool = "plan";
    if (m_counts.reserved == 0) {
        if (m_limit && m_plan->bytes > *m_limit) {
            act.kind = ActKind::Refused;
            act.given = m_plan->bytes;
            return act;
        }
        act.kind = ActKind::Taken;
        take(m_plan->bytes, act);
        m_counts.segments = std::int64_t(m_plan->starts.size());
    }
    return act;
}

PolicyAct Planned::free(BlockId id)
{
    PolicyAct act;
    act.freeAfter = held().at(id).given;
    act.pool = "plan";
    return act;
}

std::vector<PolicySegment> Planned::segments() const
{
    std::vector<PolicySegment> segments;
    if (m_counts.reserved == 0)
        return segments;
    std::map<std::uint64_t, PolicyBlock> blocks;
    for (const auto& [id, block] : held())
        blocks[block.address] = {block.address, block.given, id, block.isPending};
    auto used = blocks.begin();
    for (std::size_t i = 0; i < m_plan->starts.size(); ++i) {
        const std::int64_t begin = m_plan->starts[i];
        const std::int64_t end = i + 1 < m_plan->starts.size() ? m_plan->starts[i + 1] : m_plan->bytes;
        PolicySegment segment{
            base + std::uint64_t(begin), end - begin, 0, m_plan->starts.size() > 1 ? "buffer" : "arena", {}};
        std::uint64_t at = segment.address;
        const std::uint64_t last = segment.address + std::uint64_t(segment.size);
        const auto addFree = [&](std::uint64_t to) {
            if (to > at)
                segment.blocks.push_back({at, std::int64_t(to - at), noBlock, false});
            at = to;
        };
        for (; used != blocks.end() && used->first < last; ++used) {
            addFree(used->first);
            segment.blocks.push_back(used->second);
            at += std::uint64_t(used->second.size);
        }
        addFree(last);
        segments.push_back(std::move(segment));
    }
    return segments;
}

} // namespace

Result<Packing> packLargestFirst(const RequestTrace& trace)
{
    if (trace.blocks.size() > mostPackedBlocks)
        return fail("packing.length",
                    fmt::format("{} blocks are too many to be planned largest first (at most {})",
                                trace.blocks.size() - 1, mostPackedBlocks),
                    "choose setting=lifetime-colouring, or a shorter trace", "setting");
    Packing packing = unplaced(trace);
    const std::vector<LifeSpan> lives = lifetimesOf(trace);
    std::vector<BlockId> order(trace.blocks.size() - 1);
    std::iota(order.begin(), order.end(), BlockId(1));
    std::stable_sort(order.begin(), order.end(),
                     [&](BlockId a, BlockId b) { return packing.sizes[a] > packing.sizes[b]; });
    std::vector<PlacedBlock> placed;
    placed.reserve(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (i % 256 == 0)
            MEMSCAPE_CHECK(checkWanted());
        const BlockId block = order[i];
        const std::int64_t at = lowestPlace(placed, lives[block], packing.sizes[block]);
        packing.offsets[block] = at;
        const PlacedBlock made{at, at + packing.sizes[block], lives[block]};
        placed.insert(std::upper_bound(placed.begin(), placed.end(), made,
                                       [](const PlacedBlock& a, const PlacedBlock& b) { return a.offset < b.offset; }),
                      made);
        packing.bytes = std::max(packing.bytes, made.end);
    }
    return packing;
}

Result<Packing> colourLifetimes(const RequestTrace& trace)
{
    MEMSCAPE_CHECK(checkWanted());
    Packing packing = unplaced(trace);
    const std::vector<LifeSpan> lives = lifetimesOf(trace);
    std::vector<BlockId> starting(trace.blocks.size() - 1), ending(starting.size());
    std::iota(starting.begin(), starting.end(), BlockId(1)); // blocks begin in the order of their ids
    ending = starting;
    std::stable_sort(starting.begin(), starting.end(),
                     [&](BlockId a, BlockId b) { return lives[a].begin < lives[b].begin; });
    std::stable_sort(ending.begin(), ending.end(), [&](BlockId a, BlockId b) { return lives[a].end < lives[b].end; });
    std::vector<std::int64_t> sizes; // of the buffers
    std::vector<std::size_t> bufferOf(trace.blocks.size());
    std::multimap<std::int64_t, std::size_t> free; // size -> buffer
    auto ended = ending.begin();
    for (const BlockId block : starting) {
        for (; ended != ending.end() && lives[*ended].end <= lives[block].begin; ++ended)
            free.emplace(sizes[bufferOf[*ended]], bufferOf[*ended]);
        auto taken = free.lower_bound(packing.sizes[block]); // the smallest that holds it, else the largest grows
        if (taken == free.end() && !free.empty())
            taken = std::prev(taken);
        if (taken == free.end()) {
            bufferOf[block] = sizes.size();
            sizes.push_back(packing.sizes[block]);
            continue;
        }
        bufferOf[block] = taken->second;
        sizes[taken->second] = std::max(sizes[taken->second], packing.sizes[block]);
        free.erase(taken);
    }
    packing.buffers = sizes.size();
    packing.starts.clear();
    for (const std::int64_t size : sizes) {
        packing.starts.push_back(packing.bytes);
        packing.bytes += size;
    }
    for (BlockId block = 1; block < trace.blocks.size(); ++block)
        packing.offsets[block] = packing.starts[bufferOf[block]];
    return packing;
}

std::unique_ptr<MemoryPolicy> makePlanned(Packing plan, std::optional<std::int64_t> limit)
{
    return std::make_unique<Planned>(std::move(plan), limit);
}

} // namespace memscape
