// SPDX-License-Identifier: Apache-2.0
#include "core/trace/allocator_replay.h"

namespace memscape {

AllocatorReplay replayTrace(const Trace& trace, const AllocatorOptions& options,
                            const std::vector<std::size_t>& moments)
{
    AllocatorReplay replay;
    replay.moments.reserve(moments.size());
    CachingAllocator allocator(options);
    std::vector<BlockIndex> served(trace.blockCount() + 1);
    const auto& events = trace.events();
    std::size_t nextMoment = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
        const Event& event = events[i];
        if (!event.isAllocation()) {
            allocator.free(served[event.block]);
        } else if (const BlockIndex block = allocator.allocate(event.bytes, event.stream)) {
            served[event.block] = block;
        } else {
            replay.outOfMemory = OutOfMemory{i, event.bytes, allocator.refusedBytes(),
                                             allocator.statistics().current};
            break;
        }
        while (nextMoment < moments.size() && moments[nextMoment] <= i) {
            replay.moments.push_back(allocator.statistics().current);
            ++nextMoment;
        }
    }
    replay.statistics = allocator.statistics();
    replay.segments = allocator.segments();
    return replay;
}

} // namespace memscape
