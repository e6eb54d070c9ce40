// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/allocator/allocator_run.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr int replayPasses = 3;
constexpr std::size_t stopEvery = 4096; ///< requests between two looks whether to stop

class ReplayRun
{
public:
    ReplayRun(const AllocatorCase& asked, const AllocatorMachine& machine)
        : m_asked(asked)
        , m_machine(machine)
        , m_trace(*asked.trace)
    { }

    Result<AllocatorRun> run();

private:
    Result<void> note();
    Result<void> time();
    const RequestedBlock& blockOf(const Request& request) const { return m_trace.blocks[request.block]; }

    const AllocatorCase& m_asked;
    const AllocatorMachine& m_machine;
    const RequestTrace& m_trace;
    std::size_t m_played = 0; ///< requests before memory ran out
    AllocatorRun m_result;
};

Result<void> ReplayRun::note()
{
    MEMSCAPE_TRY(allocator, m_machine.open(m_asked, true));
    AllocatorNumbers& numbers = m_result.numbers;
    std::vector<PolicyCounts> counts;
    counts.reserve(m_trace.requests.size());
    for (m_played = 0; m_played < m_trace.requests.size(); ++m_played) {
        if (m_played % stopEvery == 0)
            MEMSCAPE_CHECK(m_machine.checkStopped());
        const Request& request = m_trace.requests[m_played];
        if (!allocator->play(request, blockOf(request))) {
            numbers.outOfMemory = fmt::format("at request {} of {}", m_played + 1, m_trace.requests.size());
            break;
        }
        counts.push_back(allocator->counts());
    }
    if (const std::string wrong = allocator->wrong(); !wrong.empty())
        return fail("check.failed", wrong, "an allocator that gives a byte twice is not timed; please report this");
    addPeaks(numbers, counts);
    numbers.driverCalls = allocator->driverCalls();
    numbers.retries = allocator->retries();
    for (const PolicyCounts& now : counts) {
        m_result.allocated.push_back(double(now.allocated));
        m_result.reserved.push_back(double(now.reserved));
    }
    return {};
}

Result<void> ReplayRun::time()
{
    for (int pass = 0; pass < replayPasses; ++pass) {
        StoppingRule rule(m_machine.stopping.perPass(replayPasses), m_machine.clock);
        while (!rule.finished()) {
            MEMSCAPE_CHECK(m_machine.checkStopped());
            MEMSCAPE_TRY(allocator, m_machine.open(m_asked, false));
            const double begin = m_machine.clock.now();
            for (std::size_t i = 0; i < m_played; ++i)
                allocator->play(m_trace.requests[i], blockOf(m_trace.requests[i]));
            allocator->settle();
            rule.add(m_machine.clock.now() - begin);
        }
        m_result.seconds.add(pass, rule.samples());
        m_machine.sink.progress(pass + 2, replayPasses + 2, "the requests, timed");
    }
    return {};
}

Result<AllocatorRun> ReplayRun::run()
{
    m_machine.sink.progress(0, replayPasses + 2, "the requests, one by one");
    MEMSCAPE_CHECK(m_machine.checkStopped());
    MEMSCAPE_CHECK(note());
    m_machine.sink.progress(1, replayPasses + 2, "the requests, timed");
    MEMSCAPE_CHECK(time());
    const Summary seconds = summarize(m_result.seconds.merged());
    m_result.numbers.seconds = seconds.empty() ? nan : seconds.median;
    m_result.numbers.secondsLow = seconds.minimum;
    m_result.numbers.secondsHigh = seconds.q3;
    RunConditions conditions = m_machine.conditions(seconds.count);
    conditions.drift = m_result.seconds.drift();
    m_result.quality = gradeOf(seconds, conditions);
    m_result.method = m_machine.method;
    if (m_asked.divisor > 1)
        m_machine.sink.note("info", "allocator.scale",
                            fmt::format("all sizes are divided by {}, so that they fit this machine", m_asked.divisor));
    m_result.method["sizes_divided_by"] = m_asked.divisor;
    m_result.method["replays"] = seconds.count;
    if (m_machine.afterwards)
        MEMSCAPE_CHECK(m_machine.afterwards(m_asked, m_result));
    m_machine.sink.progress(replayPasses + 2, replayPasses + 2, "done");
    return std::move(m_result);
}

} // namespace

void addPeaks(AllocatorNumbers& numbers, const std::vector<PolicyCounts>& counts)
{
    if (counts.empty())
        return;
    const auto peak = std::ranges::max_element(counts, {}, &PolicyCounts::reserved);
    const PolicyCounts before = peak != counts.begin() ? *std::prev(peak) : PolicyCounts{};
    const auto reserved = double(peak->reserved);
    numbers.peakReserved = reserved;
    numbers.unusable =
        reserved > 0 ? double(std::max<std::int64_t>(0, before.reserved - before.requested)) / reserved : 0;
    for (const PolicyCounts& now : counts) {
        numbers.peakAllocated = std::max(numbers.peakAllocated, double(now.allocated));
        numbers.segments = std::max(numbers.segments, double(now.segments));
    }
    numbers.endAllocated = double(counts.back().allocated);
    numbers.endReserved = double(counts.back().reserved);
}

Result<AllocatorRun> runAllocator(const AllocatorCase& asked, const AllocatorMachine& machine)
{
    return ReplayRun(asked, machine).run();
}

Result<void> AllocatorMeasurer::visit(std::size_t index, const Parameters& at, int)
{
    MEMSCAPE_TRY(asked, allocatorCase(m_device, at, m_context));
    asked.setting.goesOn = false; // what a recording found cannot be taken again: it is asked for like the rest
    MEMSCAPE_TRY(run, runAllocator(asked, m_machine));
    m_method = run.method;
    m_runs.insert_or_assign(index, Measured{std::move(asked), std::move(run)});
    return {};
}

Point AllocatorMeasurer::point(std::size_t index) const
{
    const auto found = m_runs.find(index);
    if (found == m_runs.end())
        return {};
    const auto& [asked, run] = found->second;
    return {0, {}, allocatorFigures(m_device, asked, run.numbers), Json::object()};
}

MergedSamples AllocatorMeasurer::samples(std::size_t index) const
{
    const auto found = m_runs.find(index);
    return found == m_runs.end() ? MergedSamples() : MergedSamples{{"time", found->second.run.seconds}};
}

Quality AllocatorMeasurer::quality(std::size_t index) const
{
    const auto found = m_runs.find(index);
    return found == m_runs.end() ? Quality{'D', "no samples"} : found->second.run.quality;
}

void AllocatorMeasurer::complete(Measurement& measurement) const
{
    if (m_runs.empty())
        return;
    const AllocatorRun& first = m_runs.begin()->second.run;
    const std::vector<Series> curves = requestSeries(first.allocated, first.reserved);
    measurement.series.insert(measurement.series.begin(), curves.begin(), curves.end());
}

} // namespace memscape
