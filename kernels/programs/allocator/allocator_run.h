// SPDX-License-Identifier: Apache-2.0
// The measurement of `allocator` at one point, whatever machine runs it:
//
//   1  the requests once, with what is allocated and reserved noted after each; the machine checks its blocks
//   2  the requests again and again, each time from nothing, timed as a whole, until the median is known
//   3  what the machine adds: on a host each page is written for the first time, and page faults are counted
//
// A replay is every request of the trace, one after the other, with nothing between them: what a program computes
// there is left out, and so are threads that ask at the same time.
#pragma once

#include "core/experiments/allocator/allocator.h"
#include "kernels/measure/clock.h"
#include "kernels/measure/stopping.h"
#include "kernels/measure/sweep_run.h"

#include <functional>
#include <map>
#include <memory>

namespace memscape {

/// An allocator of the machine, empty. It gives back all that it took when it goes.
class RealAllocator
{
public:
    virtual ~RealAllocator() = default;
    /// False: memory ran out.
    virtual bool play(const Request& request, const RequestedBlock& block) = 0;
    /// B as the machine counts them, for the curves; not called while requests are timed.
    virtual PolicyCounts counts() = 0;
    /// Calls of the driver so far.
    virtual double driverCalls() const = 0;
    virtual double retries() const { return 0; }
    /// After the last request of a timed replay: what was queued ends.
    virtual void settle() { }
    /// What is wrong with its blocks; empty when nothing is. Noted by play() where `checks` was asked for.
    virtual std::string wrong() const { return {}; }
};

/// From what was counted after each request: peaks, what of the reserved peak was of no use to the request that made
/// it, and the end.
void addPeaks(AllocatorNumbers& numbers, const std::vector<PolicyCounts>& counts);

struct AllocatorRun
{
    PassSamples seconds;                     ///< of whole replays
    std::vector<double> allocated, reserved; ///< B after each request
    AllocatorNumbers numbers;
    Quality quality;
    Json method = Json::object();
};

struct AllocatorMachine
{
    /// Errors: run.memory, run.skipped.
    std::function<Result<std::unique_ptr<RealAllocator>>(const AllocatorCase&, bool checks)> open;
    /// Step 3; may be empty.
    std::function<Result<void>(const AllocatorCase&, AllocatorRun&)> afterwards;
    std::function<RunConditions(std::size_t samples)> conditions;
    std::function<Result<void>()> checkStopped;
    StoppingOptions stopping;
    const Clock& clock;
    RunSink& sink;
    Json method; ///< what all runs on it say
};

/// Errors: those of the machine, check.failed, run.cancelled.
Result<AllocatorRun> runAllocator(const AllocatorCase& asked, const AllocatorMachine& machine);

/// `allocator` as a sweep's points (sweep_run.h).
class AllocatorMeasurer final : public PointMeasurer
{
public:
    /// `device` and `machine` must outlive it.
    AllocatorMeasurer(const Device& device, const AllocatorMachine& machine)
        : m_device(device)
        , m_machine(machine)
    { }

    Result<void> visit(std::size_t index, const Parameters& at, int pass) override;
    Point point(std::size_t index) const override;
    MergedSamples samples(std::size_t index) const override;
    Quality quality(std::size_t index) const override;
    Json method() const override { return m_method; }
    bool runsWhole() const override { return true; }
    /// What was allocated and reserved over the requests of the first point.
    void complete(Measurement& measurement) const override;

private:
    struct Measured
    {
        AllocatorCase asked;
        AllocatorRun run;
    };

    const Device& m_device;
    const AllocatorMachine& m_machine;
    PredictionContext m_context;
    std::map<std::size_t, Measured> m_runs;
    Json m_method = Json::object();
};

} // namespace memscape
