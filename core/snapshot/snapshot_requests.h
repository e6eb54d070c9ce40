// SPDX-License-Identifier: Apache-2.0
// A recorded history as requests that any allocator can play (core/trace/memory_policy.h).
//
//   before the history   what is alive at its beginning is asked for first, by address
//   alloc, free          as recorded; what is never freed is alive at the end
//   free_completed       later than its free_requested: another stream used the block, and has come past it
//   segment_free         where no allocation follows it: empty_cache() (an allocation that the driver refuses empties
//                        the cache by itself)
//   oom                  the last one is a request that nothing follows: another allocator may serve it; the program
//                        went on after an earlier one, which emptied the cache
//
// With its Recording PyTorch's allocator begins with the segments and holes that were there and puts new segments where
// the driver put them, so with the recorded options it reserves what was reserved, event by event. It does not where
// these are not in the file: the rest of at most 1 MiB that a block from before the history took of its hole, when its
// neighbour is gone (lifetimes.h); what is unmapped below the first page that an expandable segment ever has; a CUDA
// graph's private pools, which are played as one with the others; set_per_process_memory_fraction(). Where the driver
// refused something, its limit is taken from what it had left, else no limit is known.
#pragma once

#include "core/snapshot/snapshot_device.h"
#include "core/trace/request_trace.h"

namespace memscape {

/// Errors: trace.length (more than `most` requests), trace.empty (nothing was allocated).
Result<RequestTrace> requestsOf(const SnapshotDevice& device, std::size_t most);

} // namespace memscape
