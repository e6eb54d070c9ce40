// SPDX-License-Identifier: Apache-2.0
// What passes between the cache and the driver: new segments, and what is given back when memory
// is short.
#include "core/base/rounding.h"
#include "core/trace/allocator.h"

namespace memscape {

bool CachingAllocator::driverHas(std::int64_t bytes) const
{
    return !m_options.deviceLimit || bytes <= *m_options.deviceLimit - m_statistics.current.reserved;
}

BlockIndex CachingAllocator::newSegment(const Request& request, bool isRetry)
{
    m_statistics.retries += isRetry;
    const std::int64_t size = request.segment;
    if (m_options.fractionLimit && size > *m_options.fractionLimit - m_statistics.current.reserved)
        return 0;
    if (m_options.expandableSegments)
        return expand(request);
    if (!driverHas(size))
        return 0;
    AllocatorBlock block;
    const bool isPlaced = m_placed != 0 && !isTaken(m_placed, size);
    block.address = isPlaced ? m_placed : m_nextAddress;
    m_placed = 0;
    block.size = size;
    block.stream = request.stream;
    block.isSmall = request.isSmall;
    const std::uint64_t end = block.address + std::uint64_t(roundedUp(size, largeRounding));
    m_nextAddress = std::max(m_nextAddress, end);
    ++m_statistics.deviceAllocations;
    m_statistics.takenBytes += size;
    change(&AllocatorCounts::segments, 1);
    change(&AllocatorCounts::reserved, size);
    const BlockIndex index = newBlock(block);
    m_blocks[index].state = BlockState::Free;
    return index;
}

/// With max_split_size only: gives back the smallest block that makes room, or the largest few.
bool CachingAllocator::releaseAvailable(const Request& request)
{
    if (!m_options.maxSplit)
        return false;
    auto& free = pool(request.isSmall).free;
    const std::int64_t wanted = std::max(request.rounded, *m_options.maxSplit);
    auto position = free.lowerBound(request.stream, wanted);
    const bool isOneEnough = !free.isEnd(position) && free[position].stream == request.stream
        && !m_blocks[free[position].block].isExpandable;
    if (isOneEnough) {
        releaseSegment(free[position].block);
        return true;
    }
    std::int64_t released = 0;
    while (!free.isFirst(position) && released < wanted) {
        const SortedBlocks::Key candidate = free[free.previous(position)];
        if (candidate.stream != request.stream || !isOversize(candidate.size))
            break;
        if (!m_blocks[candidate.block].isExpandable) {
            releaseSegment(candidate.block);
            released += candidate.size;
        }
        position = free.lowerBound(candidate.stream, candidate.size, candidate.address);
    }
    return released >= wanted;
}

void CachingAllocator::emptyCache()
{
    releaseCached();
}

void CachingAllocator::releaseCached()
{
    m_behind.clear();
    while (!m_pending.empty())
        completeFree(m_pending.front());
    releaseUnsplit(pool(false));
    releaseUnsplit(pool(true));
}

/// Every free block that is a whole segment, and the whole pages of expandable ones.
void CachingAllocator::releaseUnsplit(Pool& from)
{
    std::vector<BlockIndex> whole, expandable;
    for (const auto& key : from.free.keys()) {
        if (m_blocks[key.block].isExpandable)
            expandable.push_back(key.block);
        else if (!m_blocks[key.block].isSplit())
            whole.push_back(key.block);
    }
    for (const BlockIndex index : whole)
        releaseSegment(index);
    for (const BlockIndex index : expandable)
        unmap(index);
}

void CachingAllocator::releaseSegment(BlockIndex index)
{
    const AllocatorBlock& block = m_blocks[index];
    pool(block.isSmall).free.erase(key(index));
    ++m_statistics.deviceFrees;
    m_statistics.returnedBytes += block.size;
    change(&AllocatorCounts::segments, -1);
    change(&AllocatorCounts::reserved, -block.size);
    releaseSlot(index);
}

bool CachingAllocator::collectsGarbage() const
{
    return m_options.fractionLimit && m_options.garbageCollectionThreshold > 0;
}

/// Gives back large segments that were idle for longer than the average, until reserved bytes are
/// below the threshold or none is left.
void CachingAllocator::collectGarbage()
{
    const auto threshold = std::int64_t(m_options.garbageCollectionThreshold * double(*m_options.fractionLimit));
    if (m_statistics.current.reserved <= threshold)
        return;
    const std::int64_t target = m_statistics.current.reserved - threshold;
    Pool& large = pool(false);
    std::vector<BlockIndex> candidates;
    double totalAge = 0;
    const auto age = [&](BlockIndex index) { return double(large.searches - m_blocks[index].idleSince); };
    for (const auto& key : large.free.keys())
        if (!m_blocks[key.block].isSplit()) {
            candidates.push_back(key.block);
            totalAge += age(key.block);
        }
    std::int64_t reclaimed = 0;
    for (bool hasFreed = true; reclaimed < target && hasFreed && !candidates.empty();) {
        const double oldest = totalAge / double(candidates.size());
        hasFreed = false;
        std::vector<BlockIndex> kept;
        for (const BlockIndex index : candidates) {
            if (m_blocks[index].isExpandable || age(index) < oldest) {
                kept.push_back(index);
                continue;
            }
            hasFreed = true;
            reclaimed += m_blocks[index].size;
            totalAge -= age(index);
            releaseSegment(index);
        }
        candidates = std::move(kept);
    }
}

} // namespace memscape
