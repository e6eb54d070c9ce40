// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/session.h"

#include "core/base/rounding.h"
#include "core/base/text.h"
#include "kernels/host/common/streams.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>

namespace memscape::host {

namespace {

constexpr std::size_t flushBlock = std::size_t{4} << 20;
constexpr double unknownCache = 32 << 20; // when sysfs gives none

} // namespace

HostSession::HostSession(const Device& device, RunSink& sink, Instruments instruments)
    : m_device(device)
    , m_sink(sink)
    , m_instruments(std::move(instruments))
    , m_team(m_instruments.processors, clock(), [this] { return m_sink.cancelled(); })
{
    m_watch.start(readTicks());
    m_team.run([](int) {}); // now every thread has asked for its core
    if (!m_team.pinned())
        noteOnce("warning", "host.unpinned", "the system did not let the threads be pinned to cores");
}

void HostSession::setBudget(double seconds, std::size_t points)
{
    m_budget = seconds;
    m_budgetedPoints = std::max<std::size_t>(points, 1);
}

StoppingOptions HostSession::passOptions(int loops) const
{
    constexpr double least = 0.06; // s: shorter loops say too little, whatever the budget
    StoppingOptions options = StoppingOptions().perPass(sweepPasses);
    options.minimumTime /= loops;
    const double share = m_budget / double(m_budgetedPoints) / sweepPasses / loops;
    options.wallLimit = std::min(options.wallLimit / loops, std::max(least, share));
    return options;
}

Result<void> HostSession::checkStopped()
{
    if (stopped())
        return fail("run.cancelled", "the measurement was stopped");
    return {};
}

int HostSession::threadsFor(std::int64_t wanted) const
{
    const auto all = static_cast<std::int64_t>(m_team.size());
    return static_cast<int>(wanted <= 0 ? all : std::min(wanted, all));
}

CanaryReading HostSession::readCanary()
{
    CanaryReading reading;
    m_team.run([&](int) { reading = m_instruments.canary(clock()); }, 1);
    m_watch.add(reading);
    return reading;
}

LineCounter& HostSession::lineCounter()
{
    if (!m_lines)
        m_lines = std::make_unique<LineCounter>(m_team, m_instruments.openCounter);
    return *m_lines;
}

std::vector<double> HostSession::samplesOf(const StoppingRule& rule, double per)
{
    std::vector<double> samples = rule.samples();
    for (double& sample : samples)
        sample /= per;
    if (samples.empty())
        noteOnce("warning", "clock.broken", "the clock stood still or ran backwards: no sample has a time");
    return samples;
}

Result<void> HostSession::checkFits(double bytes)
{
    auto fits = host::checkFits(bytes);
    if (fits || !m_sink.isForced())
        return fits;
    noteOnce("warning", "run.forced", fits.error().message + "; it is tried anyway");
    return {};
}

double HostSession::largestCache() const
{
    double largest = 0;
    for (const MemoryLevel& level : m_device.levels) {
        if (level.kind == LevelKind::Cache)
            largest = std::max(largest, level.capacity.valueOr(0));
    }
    return largest > 0 ? largest : unknownCache;
}

Result<void> HostSession::flush()
{
    const auto threads = static_cast<std::size_t>(m_team.size());
    if (m_flushed.bytes() == 0) {
        // Every thread needs more than its own caches hold, and all together twice the shared one.
        const auto shared = static_cast<std::size_t>(2 * largestCache());
        const std::size_t each = std::max(shared / threads, flushBlock);
        const std::size_t bytes = roundedUp(each, flushBlock) * threads;
        MEMSCAPE_CHECK(checkFits(static_cast<double>(bytes)));
        MEMSCAPE_SET(m_flushed, allocate(bytes, Pages::Huge, m_ownMemory));
        m_team.run([&](int thread) {
            const Part part = partOf(m_flushed.bytes(), thread, m_team.size(), flushBlock);
            std::memset(m_flushed.data() + part.begin, 1, part.size());
        });
    }
    const StreamKernel read = bestStream(Operation::Read);
    m_team.run([&](int thread) {
        const Part part = partOf(m_flushed.bytes(), thread, m_team.size(), flushBlock);
        for (std::size_t at = part.begin; at < part.end && !m_team.stopping(); at += flushBlock)
            read.run({m_flushed.data() + at, nullptr, nullptr, std::min(flushBlock, part.end - at)}, 1);
    });
    return checkStopped();
}

void HostSession::noteOnce(const std::string& level, const std::string& code, const std::string& text)
{
    if (m_noted.insert(code).second)
        m_sink.note(level, code, text);
}

double possibleSeconds(double seconds, double bytes)
{
    return std::max({seconds, 1e-8, bytes / 1e12});
}

HostFacts hostFacts()
{
    HostFacts facts;
    utsname name{};
    if (uname(&name) == 0)
        facts.kernel = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
    std::ifstream cpuinfo("/proc/cpuinfo");
    for (std::string line; facts.processor.empty() && std::getline(cpuinfo, line);) {
        if (line.starts_with("model name") && line.find(':') != std::string::npos)
            facts.processor = trimmed(std::string_view(line).substr(line.find(':') + 1));
    }
    std::ifstream governor("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    if (!std::getline(governor, facts.governor))
        facts.governor = "unknown (no cpufreq)";
    return facts;
}

Json machineFacts(HostSession& session)
{
    const HostFacts facts = hostFacts();
    return {{"backend", "host"},
            {"processor", facts.processor},
            {"kernel", facts.kernel},
            {"governor", facts.governor},
            {"clock_hz", jsonNumber(session.watch().clock())},
            {"l1_latency_s", jsonNumber(session.watch().l1Latency())},
            {"pinned", session.team().pinned()},
            {"processors", session.team().processors()}};
}

} // namespace memscape::host
