// SPDX-License-Identifier: Apache-2.0
// The contention canary: a tiny piece of work of known length, run beside the samples. Two chains of
// dependent operations that live entirely inside one core:
//   - integer multiplications, three cycles each on every x86-64 and AArch64 core that this program
//     meets: time per step gives the live core clock;
//   - pointer loads that always hit the L1 cache: with the clock they give the L1 latency in cycles.
// Neither leaves the core, so when they slow down it is the clock, another process on this core or the
// hypervisor, not memory. Steal time (/proc/stat) and involuntary context switches say which.
//
// Left out: what happens on other cores, and the shared cache: the drift between passes shows that.
#pragma once

#include "kernels/measure/clock.h"
#include "kernels/measure/quality.h"

#include <cstdint>
#include <string>
#include <vector>

namespace memscape {

struct CanaryReading
{
    double clockHz = 0;   ///< 0 when it could not be taken
    double l1Latency = 0; ///< s per dependent load
};

/// About 60 µs: the best of a few short runs, so that one interrupt does not look like a slow clock.
CanaryReading readCanary(const Clock& clock);

/// Counters of the operating system at one moment.
struct SystemTicks
{
    double steal = 0, total = 0;  ///< jiffies of all processors
    double busy = 0;              ///< of these, jiffies that programs and the kernel had
    double own = 0;               ///< of these, this process and what it started, as far as that has ended
    std::int64_t preemptions = 0; ///< involuntary context switches of this process
};
/// The share of all processors' time that others had in between, programs of this system and the hypervisor; NaN where
/// no time passed.
double othersShare(const SystemTicks& begin, const SystemTicks& end);
SystemTicks readSystemTicks();
/// The first line of /proc/stat; zeros when it is not one.
SystemTicks parseProcStat(const std::string& line);

/// Collects readings over a measurement and turns them into the conditions of a grade.
class ContentionWatch
{
public:
    /// `reference`: the clock that is held against the readings; 0 takes the fastest one seen.
    explicit ContentionWatch(double reference = 0)
        : m_reference(reference)
    { }

    void start(const SystemTicks& ticks) { m_begin = ticks; }
    void add(const CanaryReading& reading) { m_readings.push_back(reading); }
    RunConditions conditions(const SystemTicks& now, std::size_t samples) const;
    /// Median clock in Hz; 0 without readings.
    double clock() const;
    /// Highest clock in Hz; 0 without readings.
    double fastestClock() const;
    /// Median L1 latency in seconds; 0 without readings.
    double l1Latency() const;

private:
    double m_reference;
    SystemTicks m_begin;
    std::vector<CanaryReading> m_readings;
};

} // namespace memscape
