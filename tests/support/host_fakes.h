// SPDX-License-Identifier: Apache-2.0
// A machine for the host's measurements that does exactly what a test says: a clock that moves by
// given steps, a canary with given readings, counters of an operating system that stays out of the
// way, one thread.
#pragma once

#include "kernels/host/session.h"
#include "tests/support/listener.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace memscape::test {

/// Every look at it moves it on by the next of its steps, again and again. Thread-safe. What one
/// thread does between two looks therefore takes exactly a step.
class TickingClock : public Clock
{
public:
    explicit TickingClock(std::vector<double> steps)
        : m_steps(std::move(steps))
    { }
    double now() const override
    {
        const std::lock_guard lock(m_mutex);
        m_now += m_steps[m_next++ % m_steps.size()];
        return m_now;
    }

private:
    std::vector<double> m_steps;
    mutable std::mutex m_mutex;
    mutable std::size_t m_next = 0;
    mutable double m_now = 0;
};

/// One thread, a core at a steady 4 GHz, no other load, and a clock of the given steps.
inline host::Instruments steadyMachine(std::vector<double> steps)
{
    host::Instruments instruments;
    instruments.clock = std::make_shared<TickingClock>(std::move(steps));
    instruments.canary = [](const Clock&) { return CanaryReading{4e9, 1e-9}; };
    instruments.ticks = [] { return SystemTicks{}; };
    instruments.processors = {host::physicalCores().front()};
    return instruments;
}

/// Few samples, so that a test takes no time.
inline StoppingOptions fewSamples(std::size_t samples = 5)
{
    StoppingOptions options;
    options.minimumSamples = samples;
    options.minimumTime = 0;
    options.wallLimit = 1e9;
    options.target = 1e9;
    options.shortTarget = 1e9;
    return options;
}

} // namespace memscape::test
