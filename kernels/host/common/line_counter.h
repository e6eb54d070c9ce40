// SPDX-License-Identifier: Apache-2.0
// Lines that reads bring into the L1 data caches, counted by the processor itself: Linux's perf_event_open(2), event
// L1-dcache-load-misses of every thread of the team, in user mode.
//
// What this event counts differs between processors, so it is used only after it has counted a known walk
// (every line of a buffer far larger than L1, read once) and next to nothing where one line is read again and
// again. Most virtual machines show no such counters. Left out: lines that stores fetch, deeper caches, TLBs.
#pragma once

#include "core/base/result.h"
#include "kernels/host/common/threads.h"
#include "kernels/measure/memory.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace memscape::host {

/// Counts one kind of event in the thread that opened it.
class EventCounter
{
public:
    virtual ~EventCounter() = default;
    virtual void start() = 0;
    /// Events since start(); not a number when the kernel gave the counter no time.
    virtual double stop() = 0;
};

/// `type` and `config` of perf_event_open(2). Errors: counter.missing, with what would help.
Result<std::unique_ptr<EventCounter>> openEvent(std::uint32_t type, std::uint64_t config);
/// L1-dcache-load-misses.
Result<std::unique_ptr<EventCounter>> openLineReads();

using OpenCounter = std::function<Result<std::unique_ptr<EventCounter>>()>;

class LineCounter
{
public:
    /// Opens a counter in every thread of the team and tries them on the known walk.
    LineCounter(ThreadTeam& team, const OpenCounter& open);

    /// Why nothing is counted; empty when lines are.
    const std::string& missing() const { return m_missing; }
    /// Lines that `work`, which runs on the team, brings into the L1 caches; nothing when they are not counted.
    std::optional<double> during(const std::function<void()>& work);

private:
    std::optional<double> counted(const std::function<void()>& work);
    Result<void> tryKnownWalk();

    ThreadTeam& m_team;
    std::vector<std::unique_ptr<EventCounter>> m_counters; ///< one of each thread
    MemoryMeter m_memory;                                  // the known walk's, not the experiment's
    std::string m_missing;
};

} // namespace memscape::host
