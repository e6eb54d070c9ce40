// SPDX-License-Identifier: Apache-2.0
// A trace through the caching allocator: what a real GPU would have reserved for it, and on which
// event it would have run out of memory.
#pragma once

#include "core/trace/allocator.h"
#include "core/trace/trace.h"

#include <optional>

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

/// Replays all events. `moments` are event indices in rising order (those of a timeline, say).
AllocatorReplay replayTrace(const Trace& trace, const AllocatorOptions& options,
                            const std::vector<std::size_t>& moments = {});

} // namespace memscape
