// SPDX-License-Identifier: Apache-2.0
// A trace through the caching allocator: what a real GPU would have reserved for it, and on which
// event it would have run out of memory.
#pragma once

#include "core/trace/allocator.h"
#include "core/trace/trace.h"

#include <optional>
#include <span>

namespace memscape {

/// The allocation that the driver refused although the cache was emptied for it: where PyTorch
/// raises OutOfMemoryError. Nothing is replayed after it.
struct OutOfMemory
{
    std::size_t event = 0;       ///< the moment
    std::int64_t wanted = 0;     ///< bytes of the tensor
    std::int64_t segment = 0;    ///< what the driver was asked for
    AllocatorCounts before = {}; ///< of the allocator at its failure
};

struct AllocatorReplay
{
    AllocatorStatistics statistics;
    std::optional<OutOfMemory> outOfMemory;
    /// Counts after each of the asked moments, as far as the replay came.
    std::vector<AllocatorCounts> moments;
};

/// Finds the times of a repetition that need no replay: those of whole cycles of states. Each state of the allocator is
/// compared with one earlier state, which is replaced after 1, 2, 4, 8 … times (Brent 1980): a cycle is found however
/// long the allocator takes to come to rest, and two states are kept.
class AllocatorCycle
{
public:
    /// After each time: of the `left` ones, those that must be replayed; the others are counted. `carried`: the blocks
    /// that the next time frees for the one before it. An allocator that collects garbage goes by age: not for it.
    std::size_t timesLeft(CachingAllocator& allocator, std::span<const BlockIndex> carried, std::size_t left);

private:
    /// All that decides what becomes of the times that follow.
    struct State
    {
        std::vector<std::uint64_t> places; ///< address and size of free blocks, addresses of those carried over
        AllocatorStatistics statistics;
    };

    std::optional<State> m_earlier; ///< after one of the times
    std::size_t m_since = 0;        ///< times since that one
    std::size_t m_stretch = 1;      ///< times after which a later one takes its place
};

/// Replays all events. `moments` are event indices in rising order (those of a timeline, say).
AllocatorReplay replayTrace(const Trace& trace, const AllocatorOptions& options,
                            const std::vector<std::size_t>& moments = {});

} // namespace memscape
