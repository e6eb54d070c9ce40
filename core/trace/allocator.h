// SPDX-License-Identifier: Apache-2.0
// PyTorch's CUDA caching allocator, byte for byte: which block serves a request, what is split and
// merged, what is taken from the driver and given back. It answers why *reserved* is more than
// *allocated*: rounding, segments larger than their contents, and free pieces that nothing fits.
//
//   request -> rounded up to 512 B -> small pool (<= 1 MiB, segments of 2 MiB) or large pool
//   (segments of 20 MiB, or of the request from 10 MiB on) -> best fit, lowest address first
//   -> the front is used, the rest stays free -> freed neighbours merge
//
// Source: c10/cuda/CUDACachingAllocator.cpp of PyTorch 2.6, native backend. cudaMalloc hands out
// rising addresses at multiples of 2 MiB and never the same twice; it succeeds while the reserved
// bytes stay within the device's limit.
//
// Not modelled: CUDA graphs' private pools, several devices, fragmentation inside the driver, and
// when another stream's event completes (the caller says when).
#pragma once

#include "core/trace/allocator_blocks.h"
#include "core/trace/allocator_options.h"

namespace memscape {

/// torch.cuda.memory_stats() in bytes and counts.
struct AllocatorCounts
{
    std::int64_t allocated = 0;     ///< blocks in the program's hands (rounded sizes)
    std::int64_t active = 0;        ///< and those that another stream still uses
    std::int64_t requested = 0;     ///< what the program asked for
    std::int64_t reserved = 0;      ///< taken from the driver
    std::int64_t inactiveSplit = 0; ///< free pieces of segments that are in use elsewhere
    std::int64_t segments = 0;      ///< without expandable ones, as PyTorch counts
    std::int64_t allocations = 0;   ///< blocks in the program's hands
};

struct AllocatorStatistics
{
    AllocatorCounts current;
    AllocatorCounts peak;               ///< each of its own moment
    std::int64_t deviceAllocations = 0; ///< cudaMalloc, or mappings of expandable segments
    std::int64_t deviceFrees = 0;
    std::int64_t takenBytes = 0;    ///< by all of these allocations
    std::int64_t returnedBytes = 0; ///< by all of these frees
    std::int64_t retries = 0;       ///< the cache was emptied because the driver refused
};

/// One range that is mapped: a segment of the snapshot, with its blocks in address order.
struct AllocatorSegment
{
    std::uint64_t address = 0;
    std::int64_t size = 0;
    std::uint16_t stream = 0;
    bool isSmall = false;
    bool isExpandable = false;
    std::vector<AllocatorBlock> blocks;
};

class CachingAllocator
{
public:
    explicit CachingAllocator(const AllocatorOptions& options = {});
    /// Continues from a recorded state. Blocks get the indices 1, 2, … in the order of `segments`.
    /// Expandable ones of a stream and pool are one range of addresses, unmapped between them and behind the last (a
    /// snapshot doesn't say what is unmapped before the first).
    /// Errors: allocator.segments when blocks don't tile their segment, or segments lie over each other.
    static Result<CachingAllocator> continued(const AllocatorOptions& options,
                                              const std::vector<AllocatorSegment>& segments);

    /// The block that serves `bytes` > 0, or 0 when even an empty cache leaves too little: the
    /// program would raise torch.OutOfMemoryError. `refusedBytes()` is what the driver was asked
    /// for.
    BlockIndex allocate(std::int64_t bytes, std::uint16_t stream = 0);
    std::int64_t refusedBytes() const { return m_refused; }
    /// Those of them that can be served.
    std::vector<BlockIndex> allocateAll(const std::vector<std::int64_t>& bytes);

    /// The program is done with an active block, and so are all streams.
    void free(BlockIndex block);
    /// The program is done with it but another stream is not: it stays active until `completeFree`,
    /// `emptyCache`, or an allocation that the driver refuses.
    void requestFree(BlockIndex block);
    void completeFree(BlockIndex block);
    /// record_stream() and the end of the program's use: the block is completed by `passBehind`.
    void freeBehind(BlockIndex block);
    /// Of the blocks that wait so, all but the newest `waiting` are completed.
    void passBehind(std::size_t waiting);

    /// Room for so many blocks in the program's hands.
    void reserve(std::size_t blocks) { m_blocks.reserve(blocks + blocks / 2); }

    /// Where a real driver put the segment that is taken next: it comes there unless something is there. 0: not known.
    void placeNextSegment(std::uint64_t address) { m_placed = address; }

    /// torch.cuda.empty_cache().
    void emptyCache();

    const AllocatorBlock& block(BlockIndex index) const { return m_blocks[index]; }
    const AllocatorStatistics& statistics() const { return m_statistics; }
    /// By address.
    std::vector<AllocatorSegment> segments() const;
    /// Addresses and sizes of everything that is free or unmapped: what an allocation may get.
    std::vector<std::uint64_t> freePlaces() const;
    /// What happened since `before` happens so often once more, and ends as it does now.
    void countAgain(const AllocatorStatistics& before, std::size_t times);

private:
    struct Pool
    {
        SortedBlocks free;
        SortedBlocks unmapped;
        std::uint64_t searches = 0; ///< the clock of garbage collection
    };
    struct Request
    {
        std::int64_t rounded;
        std::int64_t segment;
        std::uint16_t stream;
        bool isSmall;
    };
    using Count = std::int64_t AllocatorCounts::*;

    // allocator.cpp
    BlockIndex allocateDirectly(std::int64_t bytes);
    void freeDirectly(BlockIndex index);
    void changeDirectly(std::int64_t bytes, std::int64_t blocks);
    Pool& pool(bool isSmall) { return m_pools[isSmall ? 0 : 1]; }
    SortedBlocks::Key key(BlockIndex index) const;
    BlockIndex newBlock(const AllocatorBlock& block);
    void releaseSlot(BlockIndex index);
    void linkAfter(BlockIndex index, BlockIndex previous);
    void insertFree(BlockIndex index);
    void change(Count count, std::int64_t amount);
    BlockIndex takeFree(const Request& request);
    bool shouldSplit(const AllocatorBlock& block, std::int64_t rounded) const;
    BlockIndex handOut(BlockIndex index, const Request& request, std::int64_t bytes);
    void takeBack(BlockIndex index);
    std::int64_t merge(BlockIndex into, BlockIndex other);
    Result<void> adopt(const AllocatorSegment& segment);
    void joinExpandable();
    void addUnmapped(BlockIndex behind, std::uint64_t end);
    bool isTaken(std::uint64_t address, std::int64_t size) const;
    bool isOversize(std::int64_t size) const { return m_options.maxSplit && size >= *m_options.maxSplit; }

    // allocator_driver.cpp: what passes between the cache and the driver
    BlockIndex newSegment(const Request& request, bool isRetry);
    bool driverHas(std::int64_t bytes) const;
    bool releaseAvailable(const Request& request);
    void releaseCached();
    void releaseUnsplit(Pool& pool);
    void releaseSegment(BlockIndex index);
    void collectGarbage();
    bool collectsGarbage() const;

    // allocator_expandable.cpp
    BlockIndex expand(const Request& request);
    BlockIndex findExpandable(const Request& request);
    bool map(BlockIndex index, std::int64_t bytes);
    void unmap(BlockIndex index);

    AllocatorOptions m_options;
    AllocatorStatistics m_statistics;
    std::vector<AllocatorBlock> m_blocks; ///< [0] is none
    std::vector<BlockIndex> m_freeSlots;
    std::vector<BlockIndex> m_pending;
    std::vector<BlockIndex> m_behind; ///< of these, what freeBehind() has given
    Pool m_pools[2];
    std::uint64_t m_nextAddress = 0x7f0000000000;
    std::uint64_t m_placed = 0; ///< of the next segment, where it is known
    std::int64_t m_refused = 0;
};

} // namespace memscape
