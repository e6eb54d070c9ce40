// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/canary.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <limits>

#include <sys/resource.h>
#include <unistd.h>

namespace memscape {

namespace {

constexpr int steps = 4096;
constexpr double cyclesPerMultiply = 3;

double timeMultiplies(const Clock& clock)
{
    std::uint64_t value = 3;
    const double begin = clock.now();
    for (int i = 0; i < steps; i += 8) {
        // The empty assembly keeps the compiler from folding the chain; it emits nothing.
        for (int j = 0; j < 8; ++j) {
            value *= 0x9e3779b97f4a7c15u;
            asm volatile("" : "+r"(value));
        }
    }
    return clock.now() - begin;
}

double timeLoads(const Clock& clock)
{
    // A ring of 16 nodes, a line each: 1 KiB, in every L1.
    struct alignas(64) Node
    {
        const Node* next;
    };
    std::array<Node, 16> ring;
    for (std::size_t i = 0; i < ring.size(); ++i)
        ring[i].next = &ring[(i + 7) % ring.size()];
    const Node* node = ring.data();
    const double begin = clock.now();
    for (int i = 0; i < steps; i += 8) {
        for (int j = 0; j < 8; ++j) {
            node = node->next;
            asm volatile("" : "+r"(node));
        }
    }
    return clock.now() - begin;
}

double medianOf(std::vector<double> values)
{
    std::erase(values, 0.0);
    return summarize(values).median;
}

} // namespace

CanaryReading readCanary(const Clock& clock)
{
    double multiplies = timeMultiplies(clock);
    double loads = timeLoads(clock);
    for (int i = 0; i < 5; ++i) {
        multiplies = std::min(multiplies, timeMultiplies(clock));
        loads = std::min(loads, timeLoads(clock));
    }
    CanaryReading reading;
    if (multiplies > 0)
        reading.clockHz = cyclesPerMultiply * steps / multiplies;
    reading.l1Latency = std::max(loads, 0.0) / steps;
    return reading;
}

SystemTicks parseProcStat(const std::string& line)
{
    SystemTicks ticks;
    if (line.compare(0, 4, "cpu ") != 0)
        return ticks;
    // user nice system idle iowait irq softirq steal guest guest_nice; guests are in user already.
    const char* at = line.data() + 4;
    const char* const end = line.data() + line.size();
    for (int field = 0; field < 8 && at < end; ++field) {
        while (at < end && *at == ' ')
            ++at;
        std::int64_t value = 0;
        const auto [next, error] = std::from_chars(at, end, value);
        if (error != std::errc())
            break;
        at = next;
        ticks.total += static_cast<double>(value);
        if (field == 7)
            ticks.steal = static_cast<double>(value);
        else if (field != 3 && field != 4)
            ticks.busy += static_cast<double>(value);
    }
    return ticks;
}

double othersShare(const SystemTicks& begin, const SystemTicks& end)
{
    const double total = end.total - begin.total, own = end.own - begin.own;
    if (!(total > 0))
        return std::numeric_limits<double>::quiet_NaN();
    return std::max(0.0, (end.busy + end.steal - begin.busy - begin.steal - own) / total);
}

SystemTicks readSystemTicks()
{
    std::string line;
    std::ifstream file("/proc/stat");
    std::getline(file, line);
    SystemTicks ticks = parseProcStat(line);
    const auto secondsOf = [](const timeval& time) { return double(time.tv_sec) + 1e-6 * double(time.tv_usec); };
    rusage usage{};
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        ticks.preemptions = usage.ru_nivcsw;
    double own = secondsOf(usage.ru_utime) + secondsOf(usage.ru_stime);
    if (getrusage(RUSAGE_CHILDREN, &usage) == 0)
        own += secondsOf(usage.ru_utime) + secondsOf(usage.ru_stime);
    ticks.own = own * double(sysconf(_SC_CLK_TCK));
    return ticks;
}

RunConditions ContentionWatch::conditions(const SystemTicks& now, std::size_t samples) const
{
    RunConditions seen;
    double slowest = 0;
    for (const CanaryReading& reading : m_readings) {
        if (reading.clockHz > 0)
            slowest = slowest == 0 ? reading.clockHz : std::min(slowest, reading.clockHz);
    }
    const double reference = m_reference > 0 ? m_reference : fastestClock();
    if (reference > 0 && slowest > 0)
        seen.clockShare = slowest / reference;
    if (const double elapsed = now.total - m_begin.total; elapsed > 0)
        seen.stealShare = (now.steal - m_begin.steal) / elapsed;
    if (samples > 0)
        seen.preemptions = static_cast<double>(now.preemptions - m_begin.preemptions) / static_cast<double>(samples);
    return seen;
}

double ContentionWatch::clock() const
{
    std::vector<double> clocks;
    for (const CanaryReading& reading : m_readings)
        clocks.push_back(reading.clockHz);
    return medianOf(std::move(clocks));
}

double ContentionWatch::fastestClock() const
{
    double fastest = 0;
    for (const CanaryReading& reading : m_readings)
        fastest = std::max(fastest, reading.clockHz);
    return fastest;
}

double ContentionWatch::l1Latency() const
{
    std::vector<double> latencies;
    for (const CanaryReading& reading : m_readings)
        latencies.push_back(reading.l1Latency);
    return medianOf(std::move(latencies));
}

} // namespace memscape
