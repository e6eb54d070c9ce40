// SPDX-License-Identifier: Apache-2.0
#include "core/trace/allocator.h"
#include "core/base/rounding.h"

#include <cassert>

namespace memscape {

namespace {

/// Beyond any device, and far enough from 2^63 that sizes can be rounded up.
constexpr std::int64_t mostRequest = std::int64_t(1) << 60;

} // namespace

CachingAllocator::CachingAllocator(const AllocatorOptions& options)
    : m_options(options)
    , m_blocks(1)
{ }

SortedBlocks::Key CachingAllocator::key(BlockIndex index) const
{
    const AllocatorBlock& block = m_blocks[index];
    return {block.isMapped() ? block.size : 0, block.address, index, block.stream};
}

BlockIndex CachingAllocator::newBlock(const AllocatorBlock& block)
{
    if (m_freeSlots.empty()) {
        m_blocks.push_back(block);
        return BlockIndex(m_blocks.size() - 1);
    }
    const BlockIndex index = m_freeSlots.back();
    m_freeSlots.pop_back();
    m_blocks[index] = block;
    return index;
}

void CachingAllocator::releaseSlot(BlockIndex index)
{
    m_blocks[index] = {};
    m_freeSlots.push_back(index);
}

/// Puts a block into its segment's chain behind `previous`.
void CachingAllocator::linkAfter(BlockIndex index, BlockIndex previous)
{
    AllocatorBlock& block = m_blocks[index];
    block.previous = previous;
    block.next = m_blocks[previous].next;
    m_blocks[previous].next = index;
    if (block.next)
        m_blocks[block.next].previous = index;
}

void CachingAllocator::insertFree(BlockIndex index)
{
    AllocatorBlock& block = m_blocks[index];
    block.state = BlockState::Free;
    block.idleSince = pool(block.isSmall).searches;
    pool(block.isSmall).free.insert(key(index));
}

void CachingAllocator::change(Count count, std::int64_t amount)
{
    m_statistics.current.*count += amount;
    if (m_statistics.current.*count > m_statistics.peak.*count)
        m_statistics.peak.*count = m_statistics.current.*count;
}

BlockIndex CachingAllocator::allocate(std::int64_t bytes, std::uint16_t stream)
{
    assert(bytes > 0);
    if (bytes > mostRequest) {
        m_refused = bytes;
        return 0;
    }
    if (!m_options.caches)
        return allocateDirectly(bytes);
    const std::int64_t rounded = roundedRequest(bytes, m_options);
    const Request request{rounded, segmentBytes(rounded), stream, rounded <= smallLimit};
    BlockIndex found = takeFree(request);
    if (!found) {
        if (collectsGarbage())
            collectGarbage();
        found = newSegment(request, false);
        if (!found && releaseAvailable(request))
            found = newSegment(request, false);
        if (!found) {
            releaseCached();
            found = newSegment(request, true);
        }
    }
    if (!found) {
        m_refused = request.segment;
        return 0;
    }
    return handOut(found, request, bytes);
}

std::vector<BlockIndex> CachingAllocator::allocateAll(const std::vector<std::int64_t>& bytes)
{
    std::vector<BlockIndex> blocks;
    for (const std::int64_t size : bytes)
        if (const BlockIndex block = allocate(size))
            blocks.push_back(block);
    return blocks;
}

/// One malloc: a segment of its own.
BlockIndex CachingAllocator::allocateDirectly(std::int64_t bytes)
{
    if (!driverHas(bytes)) {
        m_refused = bytes;
        return 0;
    }
    AllocatorBlock block;
    block.size = block.requested = bytes;
    block.state = BlockState::Active;
    changeDirectly(bytes, 1);
    return newBlock(block);
}

void CachingAllocator::freeDirectly(BlockIndex index)
{
    changeDirectly(-m_blocks[index].size, -1);
    releaseSlot(index);
}

void CachingAllocator::changeDirectly(std::int64_t bytes, std::int64_t blocks)
{
    for (const Count count : {&AllocatorCounts::allocated, &AllocatorCounts::active, &AllocatorCounts::requested,
                              &AllocatorCounts::reserved})
        change(count, bytes);
    for (const Count count : {&AllocatorCounts::allocations, &AllocatorCounts::segments})
        change(count, blocks);
}

BlockIndex CachingAllocator::takeFree(const Request& request)
{
    Pool& from = pool(request.isSmall);
    if (collectsGarbage())
        ++from.searches;
    auto& free = from.free;
    auto position = free.lowerBound(request.stream, request.rounded);
    if (free.isEnd(position) || free[position].stream != request.stream)
        return 0;
    // A block that can grow counts with the size that it can grow to.
    const auto reach = [&](SortedBlocks::Position at) {
        const AllocatorBlock& block = m_blocks[free[at].block];
        const AllocatorBlock& next = m_blocks[block.next];
        return block.size + (block.next && !next.isMapped() ? next.size : 0);
    };
    if (m_options.expandableSegments)
        for (auto next = free.next(position);
             !free.isEnd(next) && free[next].stream == request.stream && reach(next) < reach(position);
             next = free.next(position))
            position = next;
    const std::int64_t size = free[position].size;
    if (isOversize(request.rounded)) {
        if (size >= request.rounded + m_options.maxNonSplitRounding)
            return 0;
    } else if (isOversize(size)) {
        return 0;
    }
    const BlockIndex found = free[position].block;
    free.eraseAt(position);
    return found;
}

bool CachingAllocator::shouldSplit(const AllocatorBlock& block, std::int64_t rounded) const
{
    const std::int64_t remaining = block.size - rounded;
    if (block.isSmall || m_options.expandableSegments)
        return remaining >= smallestBlock;
    return !isOversize(rounded) && remaining > smallLimit;
}

BlockIndex CachingAllocator::handOut(BlockIndex index, const Request& request, std::int64_t bytes)
{
    const bool wasSplit = m_blocks[index].isSplit();
    if (shouldSplit(m_blocks[index], request.rounded)) { // the front is used, the tail stays free
        AllocatorBlock tail = m_blocks[index];
        tail.address += std::uint64_t(request.rounded);
        tail.size -= request.rounded;
        m_blocks[index].size = request.rounded;
        const BlockIndex rest = newBlock(tail);
        linkAfter(rest, index);
        insertFree(rest);
        if (!tail.isExpandable)
            change(&AllocatorCounts::inactiveSplit, wasSplit ? -request.rounded : tail.size);
    } else if (wasSplit && !m_blocks[index].isExpandable) {
        change(&AllocatorCounts::inactiveSplit, -m_blocks[index].size);
    }
    AllocatorBlock& block = m_blocks[index];
    block.state = BlockState::Active;
    block.requested = bytes;
    change(&AllocatorCounts::allocations, 1);
    change(&AllocatorCounts::allocated, block.size);
    change(&AllocatorCounts::active, block.size);
    change(&AllocatorCounts::requested, bytes);
    return index;
}

void CachingAllocator::requestFree(BlockIndex index)
{
    assert(m_blocks[index].state == BlockState::Active);
    m_blocks[index].state = BlockState::Pending;
    change(&AllocatorCounts::allocations, -1);
    change(&AllocatorCounts::allocated, -m_blocks[index].size);
    m_pending.push_back(index);
}

void CachingAllocator::freeBehind(BlockIndex index)
{
    if (!m_options.caches)
        return freeDirectly(index);
    requestFree(index);
    m_behind.push_back(index);
}

void CachingAllocator::passBehind(std::size_t waiting)
{
    const std::size_t passed = m_behind.size() - std::min(m_behind.size(), waiting);
    for (std::size_t i = 0; i < passed; ++i)
        completeFree(m_behind[i]);
    m_behind.erase(m_behind.begin(), m_behind.begin() + std::ptrdiff_t(passed));
}

void CachingAllocator::free(BlockIndex index)
{
    if (!m_options.caches)
        return freeDirectly(index);
    assert(m_blocks[index].state == BlockState::Active);
    change(&AllocatorCounts::allocations, -1);
    change(&AllocatorCounts::allocated, -m_blocks[index].size);
    takeBack(index);
}

void CachingAllocator::completeFree(BlockIndex index)
{
    assert(m_blocks[index].state == BlockState::Pending);
    m_pending.erase(std::find(m_pending.rbegin(), m_pending.rend(), index).base() - 1);
    takeBack(index);
}

/// Into its pool, with its idle neighbours.
void CachingAllocator::takeBack(BlockIndex index)
{
    AllocatorBlock& block = m_blocks[index];
    const std::int64_t size = block.size;
    block.state = BlockState::Free;
    std::int64_t split = -merge(index, block.previous);
    split -= merge(index, block.next);
    insertFree(index);
    if (block.isSplit())
        split += block.size;
    if (!block.isExpandable)
        change(&AllocatorCounts::inactiveSplit, split);
    change(&AllocatorCounts::active, -size);
    change(&AllocatorCounts::requested, -block.requested);
}

/// Swallows a neighbour that is idle and of the same kind; the bytes it had, or 0.
std::int64_t CachingAllocator::merge(BlockIndex into, BlockIndex other)
{
    AllocatorBlock& block = m_blocks[into];
    if (!other || !m_blocks[other].isIdle() || m_blocks[other].isMapped() != block.isMapped())
        return 0;
    const AllocatorBlock neighbour = m_blocks[other];
    auto& owner = pool(neighbour.isSmall);
    (neighbour.isMapped() ? owner.free : owner.unmapped).erase(key(other));
    if (block.previous == other) {
        block.address = neighbour.address;
        block.previous = neighbour.previous;
        if (block.previous)
            m_blocks[block.previous].next = into;
    } else {
        block.next = neighbour.next;
        if (block.next)
            m_blocks[block.next].previous = into;
    }
    block.size += neighbour.size;
    releaseSlot(other);
    return neighbour.size;
}

Result<CachingAllocator> CachingAllocator::continued(const AllocatorOptions& options,
                                                     const std::vector<AllocatorSegment>& segments)
{
    CachingAllocator allocator(options);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    for (const AllocatorSegment& segment : segments) {
        MEMSCAPE_CHECK(allocator.adopt(segment));
        ranges.emplace_back(segment.address, segment.address + std::uint64_t(segment.size));
    }
    std::sort(ranges.begin(), ranges.end());
    for (std::size_t i = 1; i < ranges.size(); ++i)
        if (ranges[i].first < ranges[i - 1].second)
            return fail("allocator.segments", "two segments lie over each other");
    allocator.joinExpandable();
    return allocator;
}

Result<void> CachingAllocator::adopt(const AllocatorSegment& segment)
{
    std::uint64_t end = segment.address;
    std::int64_t unmapped = 0;
    BlockIndex previous = 0;
    for (AllocatorBlock block : segment.blocks) {
        const bool isPage = segment.isExpandable || block.state != BlockState::Unmapped;
        if (block.address != end || block.size <= 0 || !isPage)
            return fail("allocator.segments", "the blocks of a segment leave gaps or overlap");
        end += std::uint64_t(block.size);
        block.stream = segment.stream;
        block.isSmall = segment.isSmall;
        block.isExpandable = segment.isExpandable;
        block.previous = block.next = 0;
        const BlockIndex index = newBlock(block);
        if (previous)
            linkAfter(index, previous);
        previous = index;
        if (block.state == BlockState::Unmapped) {
            pool(block.isSmall).unmapped.insert(key(index));
            unmapped += block.size;
            continue;
        }
        if (block.state == BlockState::Free) {
            insertFree(index);
            if (segment.blocks.size() > 1 && !segment.isExpandable)
                change(&AllocatorCounts::inactiveSplit, block.size);
            continue;
        }
        change(&AllocatorCounts::active, block.size);
        change(&AllocatorCounts::requested, block.requested);
        if (block.state == BlockState::Pending)
            m_pending.push_back(index);
        change(&AllocatorCounts::allocated, block.state == BlockState::Active ? block.size : 0);
        change(&AllocatorCounts::allocations, block.state == BlockState::Active);
    }
    if (end != segment.address + std::uint64_t(segment.size))
        return fail("allocator.segments", "the blocks of a segment leave gaps or overlap");
    change(&AllocatorCounts::segments, segment.isExpandable ? 0 : 1);
    change(&AllocatorCounts::reserved, segment.size - unmapped);
    m_nextAddress = std::max(m_nextAddress, roundedUp(end, largeRounding));
    return {};
}

bool CachingAllocator::isTaken(std::uint64_t address, std::int64_t size) const
{
    return std::any_of(m_blocks.begin(), m_blocks.end(), [&](const AllocatorBlock& block) {
        return block.state != BlockState::Unused && block.address < address + std::uint64_t(size)
            && address < block.address + std::uint64_t(block.size);
    });
}

std::vector<std::uint64_t> CachingAllocator::freePlaces() const
{
    std::vector<std::uint64_t> places;
    for (const Pool& pool : m_pools) {
        for (const SortedBlocks* const set : {&pool.free, &pool.unmapped}) {
            for (const SortedBlocks::Key& key : set->keys()) {
                places.push_back(key.address);
                places.push_back(std::uint64_t(m_blocks[key.block].size));
            }
            places.push_back(0);
        }
    }
    for (const BlockIndex index : m_behind)
        places.push_back(m_blocks[index].address);
    return places;
}

void CachingAllocator::countAgain(const AllocatorStatistics& before, std::size_t times)
{
    for (std::int64_t AllocatorStatistics::*const count :
         {&AllocatorStatistics::deviceAllocations, &AllocatorStatistics::deviceFrees, &AllocatorStatistics::takenBytes,
          &AllocatorStatistics::returnedBytes, &AllocatorStatistics::retries})
        m_statistics.*count += std::int64_t(times) * (m_statistics.*count - before.*count);
}

std::vector<AllocatorSegment> CachingAllocator::segments() const
{
    std::vector<AllocatorSegment> segments;
    for (BlockIndex head = 1; head < m_blocks.size(); ++head) {
        const AllocatorBlock& first = m_blocks[head];
        if (first.state == BlockState::Unused || !first.isMapped()
            || (first.previous && m_blocks[first.previous].isMapped()))
            continue;
        AllocatorSegment segment{first.address, 0, first.stream, first.isSmall, first.isExpandable, {}};
        for (BlockIndex at = head; at && m_blocks[at].isMapped(); at = m_blocks[at].next) {
            segment.size += m_blocks[at].size;
            segment.blocks.push_back(m_blocks[at]);
        }
        segments.push_back(std::move(segment));
    }
    std::sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
    return segments;
}

} // namespace memscape
