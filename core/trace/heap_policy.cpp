// SPDX-License-Identifier: Apache-2.0
// Heaps: one arena with holes that are found by first fit or best fit (Knuth, The Art of Computer Programming, vol. 1,
// 2.5), and blocks that are mapped on their own from some size on. With the right numbers that is glibc's malloc
// (malloc(3), mallopt(3): M_MMAP_THRESHOLD and M_TRIM_THRESHOLD are dynamic) and cudaMalloc (pages of 2 MiB).
//
// Left out: glibc's bins of sizes below 1 KiB (tcache, fast bins) and its arenas of other threads, which change which
// hole of equals is taken; fragmentation inside the driver.
#include "core/trace/block_policy.h"

#include "core/base/rounding.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::uint64_t firstAddress = 0x7f0000000000;
constexpr std::uint64_t firstMapping = 0x100000000000; ///< mappings lie below the arena, rising

class Heap final : public BlockPolicy
{
public:
    explicit Heap(const HeapRules& rules)
        : m_rules(rules)
    { }
    std::unique_ptr<MemoryPolicy> clone() const override { return std::make_unique<Heap>(*this); }
    std::vector<PolicySegment> segments() const override;

private:
    struct Used
    {
        std::int64_t size = 0;
        BlockId block = noBlock;
        bool isOwn = false; ///< mapped on its own
    };

    std::int64_t sizeFor(std::int64_t bytes) const
    {
        return std::max(m_rules.least, roundedUp(bytes + m_rules.header, m_rules.alignment));
    }
    bool hasRoom(std::int64_t bytes) const { return !m_rules.limit || bytes <= *m_rules.limit - m_counts.reserved; }
    PolicyAct allocate(BlockId id, std::int64_t bytes) override;
    PolicyAct allocateOwn(BlockId id, std::int64_t bytes);
    std::map<std::uint64_t, std::int64_t>::iterator findHole(std::int64_t size);
    void addHole(std::uint64_t address, std::int64_t size);
    void removeHole(std::map<std::uint64_t, std::int64_t>::iterator hole);
    PolicyAct free(BlockId id) override;
    void shrinkTop(std::int64_t kept, PolicyAct& act);
    PolicyAct emptyCache() override;

    HeapRules m_rules;
    std::map<std::uint64_t, Used> m_used;          ///< by address
    std::map<std::uint64_t, std::int64_t> m_holes; ///< of the arena, address -> size
    SortedBlocks m_bySize;                         ///< the same holes
    std::uint64_t m_end = firstAddress;            ///< of the arena
    std::uint64_t m_nextOwn = firstMapping;
};

void Heap::addHole(std::uint64_t address, std::int64_t size)
{
    m_holes[address] = size;
    m_bySize.insert({size, address, 0, 0});
}

void Heap::removeHole(std::map<std::uint64_t, std::int64_t>::iterator hole)
{
    m_bySize.erase({hole->second, hole->first, 0, 0});
    m_holes.erase(hole);
}

std::map<std::uint64_t, std::int64_t>::iterator Heap::findHole(std::int64_t size)
{
    const auto best = m_bySize.lowerBound(0, size);
    if (m_bySize.isEnd(best))
        return m_holes.end();
    if (m_rules.isFirstFit)
        return std::find_if(m_holes.begin(), m_holes.end(), [&](const auto& hole) { return hole.second >= size; });
    return m_holes.find(m_bySize[best].address);
}

PolicyAct Heap::allocateOwn(BlockId id, std::int64_t bytes)
{
    PolicyAct act;
    act.given = roundedUp(bytes + m_rules.ownHeader, m_rules.ownRounding);
    act.pool = m_rules.own;
    if (!hasRoom(act.given)) {
        act.kind = ActKind::Refused;
        return act;
    }
    act.kind = ActKind::Taken;
    act.address = m_nextOwn;
    act.found = act.given;
    take(act.given, act);
    ++m_counts.segments;
    m_nextOwn += std::uint64_t(act.given);
    m_used[act.address] = {act.given, id, true};
    return act;
}

PolicyAct Heap::allocate(BlockId id, std::int64_t bytes)
{
    const bool isOwn = m_rules.ownFrom > 0 && bytes >= m_rules.ownFrom;
    PolicyAct act;
    act.kind = ActKind::Reused;
    act.pool = m_rules.arena;
    act.given = sizeFor(bytes);
    auto hole = isOwn && m_rules.mostOwnFrom == 0 ? m_holes.end() : findHole(act.given);
    if (hole == m_holes.end() && isOwn) // glibc maps only what it finds no hole for
        return allocateOwn(id, bytes);
    if (hole == m_holes.end()) { // the arena grows, a hole at its end with it
        const auto last = m_holes.empty() ? m_holes.end() : std::prev(m_holes.end());
        const bool hasEnd = last != m_holes.end() && last->first + std::uint64_t(last->second) == m_end;
        const std::int64_t open = hasEnd ? last->second : 0;
        const std::int64_t growth = roundedUp(act.given - open + m_rules.padding, m_rules.growth);
        if (!hasRoom(growth)) {
            act.kind = ActKind::Refused;
            return act;
        }
        m_counts.segments += m_end == firstAddress;
        take(growth, act);
        act.kind = ActKind::Taken;
        const std::uint64_t address = hasEnd ? last->first : m_end;
        if (hasEnd)
            removeHole(last);
        m_end += std::uint64_t(growth);
        addHole(address, open + growth);
        hole = m_holes.find(address);
    }
    act.found = hole->second;
    act.address = hole->first;
    act.rest = act.found - act.given;
    removeHole(hole);
    if (act.rest > 0)
        addHole(act.address + std::uint64_t(act.given), act.rest);
    m_used[act.address] = {act.given, id, false};
    return act;
}

/// Gives back the free end of the arena but `kept` bytes of it.
void Heap::shrinkTop(std::int64_t kept, PolicyAct& act)
{
    if (m_holes.empty())
        return;
    const auto last = std::prev(m_holes.end());
    const auto [address, size] = *last;
    if (address + std::uint64_t(size) != m_end || size <= kept)
        return;
    const std::int64_t returned = (size - kept) / m_rules.growth * m_rules.growth;
    if (returned == 0)
        return;
    removeHole(last);
    if (size > returned)
        addHole(address, size - returned);
    m_end -= std::uint64_t(returned);
    giveBack(returned, act);
    m_counts.segments -= m_end == firstAddress;
}

PolicyAct Heap::free(BlockId id)
{
    const auto used = m_used.find(held().at(id).address);
    const std::int64_t size = used->second.size;
    PolicyAct act;
    act.pool = used->second.isOwn ? m_rules.own : m_rules.arena;
    if (used->second.isOwn) {
        giveBack(size, act);
        --m_counts.segments;
        if (size <= m_rules.mostOwnFrom)
            m_rules.ownFrom = std::max(m_rules.ownFrom, size);
    } else {
        std::uint64_t begin = used->first, end = begin + std::uint64_t(size);
        const auto behind = m_holes.find(end);
        if (behind != m_holes.end()) {
            end += std::uint64_t(behind->second);
            removeHole(behind);
            ++act.merged;
        }
        auto before = m_holes.lower_bound(begin);
        if (before != m_holes.begin() && (--before)->first + std::uint64_t(before->second) == begin) {
            begin = before->first;
            removeHole(before);
            ++act.merged;
        }
        addHole(begin, std::int64_t(end - begin));
        act.freeAfter = std::int64_t(end - begin);
        if (m_rules.returnsTop && end == m_end && act.freeAfter >= 2 * m_rules.ownFrom)
            shrinkTop(m_rules.padding, act);
    }
    m_used.erase(used);
    return act;
}

PolicyAct Heap::emptyCache()
{
    PolicyAct act;
    shrinkTop(0, act);
    return act;
}

std::vector<PolicySegment> Heap::segments() const
{
    std::vector<PolicySegment> segments;
    PolicySegment arena{firstAddress, std::int64_t(m_end - firstAddress), 0, m_rules.arena, {}};
    auto hole = m_holes.begin();
    for (const auto& [address, used] : m_used) {
        const PolicyBlock block{address, used.size, used.block, held().at(used.block).isPending};
        if (used.isOwn) {
            segments.push_back({address, used.size, 0, m_rules.own, {block}});
            continue;
        }
        for (; hole != m_holes.end() && hole->first < address; ++hole)
            arena.blocks.push_back({hole->first, hole->second, noBlock, false});
        arena.blocks.push_back(block);
    }
    for (; hole != m_holes.end(); ++hole)
        arena.blocks.push_back({hole->first, hole->second, noBlock, false});
    if (arena.size > 0)
        segments.push_back(std::move(arena));
    return segments;
}

} // namespace

std::unique_ptr<MemoryPolicy> makeHeap(const HeapRules& rules)
{
    return std::make_unique<Heap>(rules);
}

HeapRules heapRules(PolicyKind kind, std::optional<std::int64_t> limit)
{
    HeapRules rules;
    rules.limit = limit;
    if (kind == PolicyKind::FirstFit) {
        rules.isFirstFit = true;
    } else if (kind == PolicyKind::Malloc) {
        rules.alignment = 16;
        rules.header = 8;
        rules.least = 32;
        rules.growth = 4096;
        rules.padding = rules.ownFrom = 128 << 10;
        rules.ownRounding = 4096;
        rules.ownHeader = 16;
        rules.mostOwnFrom = 32 << 20;
        rules.returnsTop = true;
        rules.arena = "heap";
    } else if (kind == PolicyKind::CudaMalloc) {
        rules.growth = 2 << 20;
        rules.ownFrom = (1 << 20) + 1;
        rules.ownRounding = 2 << 20;
        rules.arena = "small blocks";
        rules.own = "allocation";
    } else if (kind == PolicyKind::CudaAsync) {
        rules.growth = 32 << 20;
        rules.arena = "driver's pool";
    }
    return rules;
}

} // namespace memscape
