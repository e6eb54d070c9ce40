// SPDX-License-Identifier: Apache-2.0
// A machine for the host's measurements that does exactly what a test says: a clock that moves by
// given steps, a canary with given readings, counters of an operating system that stays out of the
// way, one thread; and a listener that keeps what it is told.
#pragma once

#include "kernels/host/session.h"

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
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
    {
    }
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

/// Keeps everything; says stop when it has been asked `stopAfter` times, or when `stop` is set.
class Listener : public RunSink
{
public:
    void progress(int done, int total, const std::string& label) override
    {
        steps.push_back(label);
        lastDone = done;
        lastTotal = total;
    }
    void point(const std::string&, const Point& point) override { points.push_back(point); }
    void note(const std::string&, const std::string& code, const std::string& text) override
    {
        notes.emplace_back(code, text);
    }
    bool cancelled() const override { return stop || ++m_asked > stopAfter; }

    int count(const std::string& code) const
    {
        int count = 0;
        for (const auto& note : notes)
            count += note.first == code;
        return count;
    }

    std::atomic<bool> stop {false};
    int stopAfter = std::numeric_limits<int>::max();
    std::vector<std::string> steps;
    int lastDone = -1, lastTotal = -1;
    std::vector<Point> points;
    std::vector<std::pair<std::string, std::string>> notes; ///< code and text

private:
    mutable int m_asked = 0;
};

/// One thread, a core at a steady 4 GHz, nobody else, and a clock of the given steps.
inline host::Instruments steadyMachine(std::vector<double> steps)
{
    host::Instruments instruments;
    instruments.clock = std::make_shared<TickingClock>(std::move(steps));
    instruments.canary = [](const Clock&) { return CanaryReading {4e9, 1e-9}; };
    instruments.ticks = [] { return SystemTicks {}; };
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
