// SPDX-License-Identifier: Apache-2.0
// What every measurement on the host uses while it runs: the pinned threads, the clock, the
// canary, the meter of our own memory, the buffer that empties the caches, and the sink.
// What it reads of the machine comes from Instruments, so that a test can let a clock stand still, a
// core slow down or a hypervisor take time away, and see what becomes of the record.
#pragma once

#include "core/device/device.h"
#include "core/device/numa.h"
#include "kernels/host/common/arena.h"
#include "kernels/host/common/line_counter.h"
#include "kernels/host/common/threads.h"
#include "kernels/measure/backend.h"
#include "kernels/measure/canary.h"
#include "kernels/measure/clock.h"
#include "kernels/measure/memory.h"
#include "kernels/measure/stopping.h"
#include "kernels/measure/sweep.h"

#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace memscape::host {

inline constexpr double shortestSample = 200e-6; ///< s; shorter work is repeated within a sample
inline constexpr std::size_t cacheLine = 64;     ///< B

/// Seconds after which a page's own sweep is content with the passes that its points have: every
/// point has had one by then, or gets one.
inline constexpr double sweepBudget = 16;

/// What a session reads of the machine. The defaults are this machine's.
struct Instruments
{
    std::shared_ptr<const Clock> clock = std::make_shared<SteadyClock>(); ///< asked from all threads
    std::function<CanaryReading(const Clock&)> canary = memscape::readCanary;
    std::function<SystemTicks()> ticks = readSystemTicks;
    std::vector<int> processors = physicalCores(); ///< one thread is pinned to each
    OpenCounter openCounter = openLineReads;       ///< in the thread that asks
    std::function<std::vector<NumaNode>()> nodes = [] { return readNumaNodes(); };
};

class HostSession
{
public:
    /// `device` describes this machine; both must outlive the session.
    HostSession(const Device& device, RunSink& sink, Instruments instruments = {});

    const Device& device() const { return m_device; }
    const Clock& clock() const { return *m_instruments.clock; }
    RunSink& sink() const { return m_sink; }
    ThreadTeam& team() { return m_team; }
    MemoryMeter& memory() { return m_memory; }
    ContentionWatch& watch() { return m_watch; }

    bool stopped() { return m_team.checkStop(); }
    /// run.cancelled when stopped.
    Result<void> checkStopped();

    /// Seconds that a measurement should take, and the points among which it divides them. Unlimited until set.
    void setBudget(double seconds, std::size_t points = 1);
    double budget() const { return m_budget; }
    /// When to stop one of the `loops` that sample a point in a pass: at the latest when its share of the budget is
    /// spent.
    StoppingOptions passOptions(int loops = 1) const;

    /// 1 to the size of the team; 0 means all of it.
    int threadsFor(std::int64_t wanted) const;

    /// A reading of the canary on the first thread of the team; kept in watch() too.
    CanaryReading readCanary();
    /// Nodes of memory.
    std::vector<NumaNode> nodes() const { return m_instruments.nodes(); }
    /// The operating system's counters now.
    SystemTicks readTicks() const { return m_instruments.ticks(); }

    /// Opened and tried when it is first asked for.
    LineCounter& lineCounter();

    /// What the rule accepted, each divided by `per`. Says once when the clock gave nothing.
    std::vector<double> samplesOf(const StoppingRule& rule, double per);

    /// Before so many bytes are taken: run.memory with a remedy when they exceed 80 % of what is
    /// available. A forced run is warned instead.
    Result<void> checkFits(double bytes);

    /// Bytes of the largest cache that one core sees.
    double largestCache() const;
    /// Leaves nothing of ours in any cache: every thread streams through its share of twice the
    /// largest cache, and through its own caches at least. Errors: run.memory, run.cancelled.
    Result<void> flush();

    /// A note that is sent once, however often it is found.
    void noteOnce(const std::string& level, const std::string& code, const std::string& text);

private:
    const Device& m_device;
    RunSink& m_sink;
    Instruments m_instruments;
    MemoryMeter m_memory, m_ownMemory; // the flush buffer is not the experiment's
    ThreadTeam m_team;
    ContentionWatch m_watch;
    Buffer m_flushed;
    std::unique_ptr<LineCounter> m_lines;
    std::set<std::string> m_noted;
    double m_budget = std::numeric_limits<double>::infinity();
    std::size_t m_budgetedPoints = 1;
};

/// `seconds` as a clock gave them for moving `bytes` by one core, or what is the least it can have been
/// (no core moves a terabyte a second): how often to repeat a pass must not hang on a broken clock.
double possibleSeconds(double seconds, double bytes);

/// "Linux 6.1.0 x86_64", "AMD EPYC …" (or what /proc/cpuinfo calls it), the scaling governor or
/// "unknown".
struct HostFacts
{
    std::string kernel, processor, governor;
};
HostFacts hostFacts();
/// Backend, processor, kernel, clock and threads: Provenance::machine of every run on this host.
Json machineFacts(HostSession& session);

} // namespace memscape::host
