// SPDX-License-Identifier: Apache-2.0
// A trace through the caching allocator: what a real GPU would have reserved for it, and on which
// event it would have run out of memory.
#pragma once

#include "core/trace/allocator.h"
#include "core/trace/trace.h"

#include <deque>
#include <functional>
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
    std::vector<AllocatorSegment> segments; ///< at the end, of a replay with a listener
};

/// Told of each event: of an allocation when `block` serves it, of a free before it is done.
using ReplayListener = std::function<void(const Event& event, const CachingAllocator& allocator, BlockIndex block)>;

/// Finds the times of a repetition that need no replay: those of whole cycles of states. Each state of the allocator is
/// compared with the newest few, so that a short cycle is found as soon as it closes, and with one older state, which
/// is replaced after 1, 2, 4, 8 … times (Brent 1980): a cycle is found however long it is, and few states are kept.
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
        std::size_t time = 0; ///< after which of the times, from 1 on
    };
    static constexpr std::size_t kept = 5;

    std::deque<State> m_earlier; ///< the older one, then the newest
    std::size_t m_times = 0;
};

/// Replays all events. `moments` are event indices in rising order (those of a timeline, say). A listener hears of
/// every time of a repetition, and of what came and went before the step as allocations and frees of its setup.
AllocatorReplay replayTrace(const Trace& trace, const AllocatorOptions& options,
                            const std::vector<std::size_t>& moments = {}, const ReplayListener& listener = {});

} // namespace memscape
