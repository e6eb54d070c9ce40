// SPDX-License-Identifier: Apache-2.0
// A repetition is replayed until the allocator is where it was after an earlier time: free blocks at the same
// addresses, and the blocks that the next time frees. What follows is what followed then, so it is skipped.
#include "core/trace/allocator_replay.h"

#include <algorithm>
#include <optional>

namespace memscape {

namespace {

class Replayer
{
public:
    Replayer(const Trace& trace, const AllocatorOptions& options, const std::vector<std::size_t>& moments,
             const ReplayListener& listener)
        : m_trace(trace)
        , m_moments(moments)
        , m_listener(listener)
        , m_allocator(options)
        , m_served(trace.blockCount() + 1)
        , m_mayCollect(options.fractionLimit.has_value())
    {
        m_replay.moments.reserve(moments.size());
        m_allocator.reserve(trace.blockCount());
    }
    AllocatorReplay run();

private:
    bool run(std::size_t first, std::size_t last);
    void tell(const Event& event, BlockIndex block) const
    {
        if (m_listener)
            m_listener(event, m_allocator, block);
    }
    std::vector<BlockIndex> allocatePassing();
    void freePassing(const std::vector<BlockIndex>& passing);
    bool repeat();
    void carryOver();
    std::size_t timesLeft(std::size_t left);

    const Trace& m_trace;
    const std::vector<std::size_t>& m_moments;
    const ReplayListener& m_listener;
    CachingAllocator m_allocator;
    std::vector<BlockIndex> m_served;
    std::vector<BlockId> m_carried; ///< that a time of the repetition frees for the one before it
    AllocatorCycle m_cycle;
    bool m_mayCollect; ///< garbage: it goes by age
    std::size_t m_moment = 0;
    AllocatorReplay m_replay;
};

/// The stored events [first, last); false when memory runs out.
bool Replayer::run(std::size_t first, std::size_t last)
{
    for (std::size_t i = first; i < last; ++i, ++m_moment) {
        const Event& event = m_trace.events()[i];
        m_allocator.passBehind(event.waiting);
        if (!event.isAllocation()) {
            tell(event, m_served[event.block]);
            event.isBehind ? m_allocator.freeBehind(m_served[event.block]) : m_allocator.free(m_served[event.block]);
        } else if (const BlockIndex block = m_allocator.allocate(event.bytes, event.stream)) {
            m_served[event.block] = block;
            tell(event, block);
        } else {
            m_replay.outOfMemory =
                OutOfMemory{m_moment, event.bytes, m_allocator.refusedBytes(), m_allocator.statistics().current};
            return false;
        }
        while (m_replay.moments.size() < m_moments.size() && m_moments[m_replay.moments.size()] <= m_moment)
            m_replay.moments.push_back(m_allocator.statistics().current);
    }
    return true;
}

void Replayer::carryOver()
{
    for (const BlockId block : m_carried)
        m_served[block] = m_served[block + m_trace.repetition().blocks];
}

std::size_t Replayer::timesLeft(std::size_t left)
{
    if (m_mayCollect || !m_moments.empty() || m_listener)
        return left;
    std::vector<BlockIndex> carried;
    for (const BlockId block : m_carried)
        carried.push_back(m_served[block + m_trace.repetition().blocks]);
    const std::size_t replayed = m_cycle.timesLeft(m_allocator, carried, left);
    m_moment += (left - replayed) * m_trace.repetition().length();
    return replayed;
}

bool Replayer::repeat()
{
    const Repetition& repetition = m_trace.repetition();
    if (repetition.times == 1)
        return true;
    const BlockId first = m_trace.events().size() > repetition.first ? m_trace.blockBefore(repetition.first) : noBlock;
    for (std::size_t i = repetition.first; i < repetition.last; ++i) {
        const Event& event = m_trace.events()[i];
        if (!event.isAllocation() && event.block <= first)
            m_carried.push_back(event.block);
    }
    for (std::size_t left = timesLeft(repetition.times - 1); left > 0;) {
        carryOver();
        if (!run(repetition.first, repetition.last))
            return false;
        left = timesLeft(left - 1);
    }
    return true;
}

std::vector<BlockIndex> Replayer::allocatePassing()
{
    std::vector<BlockIndex> passing = m_allocator.allocateAll(m_trace.passing().bytes);
    for (const BlockIndex block : passing)
        tell({.bytes = m_allocator.block(block).requested}, block);
    return passing;
}

void Replayer::freePassing(const std::vector<BlockIndex>& passing)
{
    for (const BlockIndex block : passing) {
        tell({.bytes = m_allocator.block(block).requested, .kind = EventKind::Free}, block);
        m_allocator.free(block);
    }
}

AllocatorReplay Replayer::run()
{
    const std::size_t begun = m_trace.passing().last;
    const std::size_t last = m_trace.repetition().times > 1 ? m_trace.repetition().last : begun;
    const std::vector<BlockIndex> passing = allocatePassing();
    const bool isServed = run(0, begun);
    freePassing(passing);
    if (isServed && run(begun, last) && repeat())
        run(last, m_trace.events().size());
    m_replay.statistics = m_allocator.statistics();
    if (m_listener)
        m_replay.segments = m_allocator.segments();
    return std::move(m_replay);
}

} // namespace

std::size_t AllocatorCycle::timesLeft(CachingAllocator& allocator, std::span<const BlockIndex> carried,
                                      std::size_t left)
{
    State now{allocator.freePlaces(), allocator.statistics(), ++m_times};
    for (const BlockIndex block : carried)
        now.places.push_back(allocator.block(block).address);
    std::size_t skipped = 0;
    const auto same = std::find_if(m_earlier.rbegin(), m_earlier.rend(),
                                   [&](const State& earlier) { return earlier.places == now.places; });
    if (same != m_earlier.rend()) {
        const std::size_t cycle = now.time - same->time;
        skipped = left / cycle * cycle;
        allocator.countAgain(same->statistics, left / cycle);
    }
    if (m_earlier.size() == kept) {
        const bool isOlderKept = m_earlier[1].time < 2 * m_earlier[0].time;
        m_earlier.erase(m_earlier.begin() + (isOlderKept ? 1 : 0));
    }
    m_earlier.push_back(std::move(now));
    return left - skipped;
}

AllocatorReplay replayTrace(const Trace& trace, const AllocatorOptions& options,
                            const std::vector<std::size_t>& moments, const ReplayListener& listener)
{
    return Replayer(trace, options, moments, listener).run();
}

} // namespace memscape
