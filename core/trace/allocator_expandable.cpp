// SPDX-License-Identifier: Apache-2.0
// expandable_segments: one range of addresses per stream and pool, larger than the device; pages of
// 2 MiB (small pool) or 20 MiB (large pool) are mapped into it as it grows and unmapped when the
// cache is emptied. Blocks beside each other merge across what used to be segments, so little is
// lost between them.
#include "core/trace/allocator.h"

#include "core/base/rounding.h"

#include <algorithm>

namespace memscape {

namespace {

std::uint64_t pageOf(const AllocatorBlock& block)
{
    return std::uint64_t(block.isSmall ? expandablePageSmall : expandablePageLarge);
}

/// Address space of a segment: 1 1/8 of the device's memory. A device without a limit is taken as
/// 64 TiB, so that its addresses do not run out.
std::uint64_t addressSpace(const AllocatorOptions& options)
{
    const std::uint64_t memory = options.deviceLimit ? std::uint64_t(*options.deviceLimit) : 1ull << 46;
    return memory + memory / 8;
}

} // namespace

/// Address space behind a mapped block of a recorded segment.
void CachingAllocator::addUnmapped(BlockIndex behind, std::uint64_t end)
{
    AllocatorBlock unmapped;
    unmapped.stream = m_blocks[behind].stream;
    unmapped.isSmall = m_blocks[behind].isSmall;
    unmapped.isExpandable = true;
    unmapped.state = BlockState::Unmapped;
    unmapped.address = m_blocks[behind].address + std::uint64_t(m_blocks[behind].size);
    unmapped.size = std::int64_t(end - unmapped.address);
    if (unmapped.size <= 0)
        return;
    const BlockIndex index = newBlock(unmapped);
    linkAfter(index, behind);
    pool(unmapped.isSmall).unmapped.insert(key(index));
}

/// Of a recorded state: the mapped ranges of a stream and pool become one segment.
void CachingAllocator::joinExpandable()
{
    std::vector<BlockIndex> heads; // by address
    for (BlockIndex index = 1; index < m_blocks.size(); ++index)
        if (m_blocks[index].isExpandable && m_blocks[index].previous == 0)
            heads.push_back(index);
    std::sort(heads.begin(), heads.end(),
              [&](BlockIndex a, BlockIndex b) { return m_blocks[a].address < m_blocks[b].address; });
    const auto lastOf = [&](BlockIndex index) {
        while (m_blocks[index].next)
            index = m_blocks[index].next;
        return index;
    };
    for (std::size_t i = 0; i < heads.size(); ++i) {
        const AllocatorBlock head = m_blocks[heads[i]];
        const BlockIndex last = lastOf(heads[i]);
        const bool isFollowed = i + 1 < heads.size() && m_blocks[heads[i + 1]].stream == head.stream
            && m_blocks[heads[i + 1]].isSmall == head.isSmall;
        if (isFollowed) {
            addUnmapped(last, m_blocks[heads[i + 1]].address);
            const BlockIndex before = lastOf(last);
            m_blocks[before].next = heads[i + 1];
            m_blocks[heads[i + 1]].previous = before;
            continue;
        }
        std::uint64_t end = head.address + roundedUp(addressSpace(m_options), pageOf(head));
        for (const AllocatorBlock& other : m_blocks) // the real range may be shorter: others lie behind it
            if (other.state != BlockState::Unused && other.address > m_blocks[last].address)
                end = std::min(end, other.address);
        addUnmapped(last, end);
        m_nextAddress = std::max(m_nextAddress, roundedUp(end, pageOf(head)));
    }
}

/// The lowest place that can grow to the request: an unmapped block, or the free one before it.
BlockIndex CachingAllocator::findExpandable(const Request& request)
{
    const auto hasRoom = [&](BlockIndex at) {
        std::int64_t room = 0;
        for (; room < request.rounded && at && m_blocks[at].isIdle(); at = m_blocks[at].next)
            room += m_blocks[at].size;
        return room >= request.rounded;
    };
    auto& unmapped = pool(request.isSmall).unmapped;
    for (auto at = unmapped.lowerBound(request.stream, 0); !unmapped.isEnd(at) && unmapped[at].stream == request.stream;
         at = unmapped.next(at)) {
        BlockIndex candidate = unmapped[at].block;
        const BlockIndex before = m_blocks[candidate].previous;
        if (before && m_blocks[before].isIdle())
            candidate = before;
        if (hasRoom(candidate))
            return candidate;
    }
    AllocatorBlock segment;
    segment.stream = request.stream;
    segment.isSmall = request.isSmall;
    segment.isExpandable = true;
    segment.state = BlockState::Unmapped;
    segment.address = roundedUp(m_nextAddress, pageOf(segment));
    segment.size = std::int64_t(roundedUp(addressSpace(m_options), pageOf(segment)));
    if (segment.size < request.rounded)
        return 0;
    m_nextAddress = segment.address + std::uint64_t(segment.size);
    const BlockIndex index = newBlock(segment);
    unmapped.insert(key(index));
    return index;
}

BlockIndex CachingAllocator::expand(const Request& request)
{
    BlockIndex candidate = findExpandable(request);
    if (!candidate)
        return 0;
    if (!m_blocks[candidate].isMapped() && !map(candidate, std::min(m_blocks[candidate].size, request.rounded)))
        return 0;
    while (m_blocks[candidate].size < request.rounded) { // free -> unmapped -> …
        const std::int64_t missing = request.rounded - m_blocks[candidate].size;
        const BlockIndex next = m_blocks[candidate].next;
        if (!map(next, std::min(missing, m_blocks[next].size)))
            return 0;
        candidate = next;
    }
    pool(request.isSmall).free.erase(key(candidate));
    return candidate;
}

/// Maps the first `bytes` of an unmapped block, rounded up to pages: all of them or none.
bool CachingAllocator::map(BlockIndex index, std::int64_t bytes)
{
    const std::uint64_t page = pageOf(m_blocks[index]);
    const std::int64_t mapped = std::int64_t(roundedUp(std::uint64_t(bytes), page));
    if (!driverHas(mapped))
        return false;
    Pool& owner = pool(m_blocks[index].isSmall);
    owner.unmapped.erase(key(index));
    if (mapped < m_blocks[index].size) {
        AllocatorBlock rest = m_blocks[index];
        rest.address += std::uint64_t(mapped);
        rest.size -= mapped;
        m_blocks[index].size = mapped;
        const BlockIndex remaining = newBlock(rest);
        linkAfter(remaining, index);
        owner.unmapped.insert(key(remaining));
    }
    m_blocks[index].state = BlockState::Free;
    merge(index, m_blocks[index].previous);
    merge(index, m_blocks[index].next);
    insertFree(index);
    ++m_statistics.deviceAllocations;
    m_statistics.takenBytes += mapped;
    change(&AllocatorCounts::reserved, mapped);
    return true;
}

/// Gives back the whole pages inside a free block; what is left at its ends stays free.
void CachingAllocator::unmap(BlockIndex index)
{
    const AllocatorBlock whole = m_blocks[index];
    const std::uint64_t page = pageOf(whole);
    const std::uint64_t begin = roundedUp(whole.address, page);
    const std::uint64_t end = (whole.address + std::uint64_t(whole.size)) / page * page;
    if (begin >= end)
        return;
    Pool& owner = pool(whole.isSmall);
    owner.free.erase(key(index));
    // The pieces before and behind keep the block's state (free) and get slots of their own.
    if (const std::int64_t after = std::int64_t(whole.address + std::uint64_t(whole.size) - end)) {
        AllocatorBlock piece = whole;
        piece.address = end;
        piece.size = after;
        const BlockIndex behind = newBlock(piece);
        linkAfter(behind, index);
        insertFree(behind);
    }
    if (begin > whole.address) {
        AllocatorBlock piece = whole;
        piece.size = std::int64_t(begin - whole.address);
        const BlockIndex before = newBlock(piece);
        m_blocks[before].next = index;
        if (whole.previous)
            m_blocks[whole.previous].next = before;
        m_blocks[index].previous = before;
        insertFree(before);
    }
    AllocatorBlock& block = m_blocks[index];
    block.address = begin;
    block.size = std::int64_t(end - begin);
    block.state = BlockState::Unmapped;
    const std::int64_t unmapped = block.size;
    merge(index, block.previous);
    merge(index, block.next);
    owner.unmapped.insert(key(index));
    ++m_statistics.deviceFrees;
    m_statistics.returnedBytes += unmapped;
    change(&AllocatorCounts::reserved, -unmapped);
}

} // namespace memscape
