// SPDX-License-Identifier: Apache-2.0
// `transfer` on a GPU: chunks over as many streams as buffers are in flight, each chunk copied in, worked on and copied
// out in its stream, so that a buffer is used again once its chunk has left it. Time lies between two events around all
// streams; what the host needs to queue the calls is part of it, as it is of a program's.
//
// Nothing is held back by the blocking kernel: a copy of pageable memory waits inside the call, and would wait for it
// without an end. Each run begins and ends with an idle GPU. Before a point is timed its first and last chunk are
// moved and every byte of them compared.
//
// Left out: graphs, copies by kernels, more than two GPUs, which host core or NUMA node the memory is near.
#include "kernels/cuda/common/sampler.h"
#include "kernels/cuda/experiments.h"
#include "kernels/cuda/transfer/gpu_transfer.h"
#include "kernels/cuda/transfer/transfer.h"

#include "core/experiments/transfer/transfer.h"

#include <map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

class TransferMeasurer : public PointMeasurer
{
public:
    TransferMeasurer(GpuSession& session, const SweepPlan& plan, const RunStart& runStart)
        : m_session(session)
        , m_plan(plan)
        , m_runStart(runStart)
        , m_points(plan.sweep.values.size())
    { }

    Result<void> visit(std::size_t index, const Parameters& at, int pass) override
    {
        PerPoint& point = m_points[index];
        MEMSCAPE_TRY(asked, transferCase(m_plan.device.device, at));
        point.asked = asked;
        TransferCase least = asked;
        least.bytes = least.chunk = sizeof(float);
        least.depth = 1;
        least.work = 0;
        if (asked.goesIn() && asked.goesOut())
            least.direction = TransferDirection::To;
        MEMSCAPE_CHECK(visitCase(least, pass, {{"latency", true, false}}, point));
        std::vector<Sampling> samplings{{"copy_time", true, false}};
        if (asked.hasKernel())
            samplings.push_back({"kernel_time", false, true});
        samplings.push_back({"time", true, true});
        return visitCase(asked, pass, samplings, point);
    }

    Point point(std::size_t index) const override
    {
        const PerPoint& measured = m_points[index];
        Point point;
        const auto time = measured.samples.find("time");
        if (time == measured.samples.end())
            return point;
        point.detail = time->second.detail();
        const auto timeOf = [&](const char* key) {
            const auto found = measured.samples.find(key);
            const Summary summary = found == measured.samples.end() ? Summary() : found->second.summary();
            return summary.empty() ? TransferTime{} : TransferTime{summary.median, summary.minimum, summary.q3};
        };
        TransferNumbers numbers{timeOf("time"), timeOf("copy_time"), timeOf("kernel_time"), timeOf("latency")};
        numbers.halfSize = measuredHalfSize(measured.asked, numbers);
        point.figures = transferFigures(measured.asked, numbers);
        return point;
    }

    MergedSamples samples(std::size_t index) const override
    {
        MergedSamples all;
        for (const auto& [key, samples] : m_points[index].samples)
            all[key] = samples.seconds;
        return all;
    }

    Quality quality(std::size_t index) const override
    {
        const auto& samples = m_points[index].samples;
        const auto time = samples.find("time");
        return time == samples.end() ? Quality() : time->second.quality(m_runStart.referenceClock);
    }

    Json method() const override
    {
        return {{"kernel", fmt::format("work on a chunk v{}", transferVersions)},
                {"time", "between events around all streams, the calls that queue included"},
                {"caches", "steady state: transfers follow each other"}};
    }

private:
    struct PerPoint
    {
        TransferCase asked;
        std::map<std::string, PointSamples> samples;
    };
    struct Sampling
    {
        const char* key;
        bool withCopies, withKernel;
    };

    Result<void> visitCase(const TransferCase& asked, int pass, const std::vector<Sampling>& samplings, PerPoint& point)
    {
        m_session.resetPeak();
        GpuTransfer transfer(m_session, asked);
        MEMSCAPE_CHECK(transfer.open());
        MEMSCAPE_CHECK(transfer.check());
        for (const Sampling& one : samplings) {
            PointSamples& samples = point.samples[one.key];
            for (int warm = 0; warm < 2; ++warm)
                MEMSCAPE_CHECK(transfer.sample(one.withCopies, one.withKernel));
            const SteadyClock clock;
            StoppingRule rule(StoppingOptions().perPass(sweepPasses), clock);
            while (!rule.finished()) {
                MEMSCAPE_TRY(seconds, transfer.sample(one.withCopies, one.withKernel));
                rule.add(seconds);
            }
            samples.stop = rule.state();
            samples.seconds.add(pass, rule.samples());
            samples.peak = std::max(samples.peak, m_session.peakBytes());
        }
        return m_session.synchronize("freeing the buffers");
    }

    GpuSession& m_session;
    const SweepPlan& m_plan;
    const RunStart& m_runStart;
    std::vector<PerPoint> m_points;
};

} // namespace

Checks checksOfTransfer(int multiprocessors)
{
    Checks checks;
    for (int version = 1; version <= transferVersions; ++version) {
        for (const bool isStored : {false, true})
            checks.push_back([=] { return checkTransferWork(version, isStored, multiprocessors); });
    }
    return checks;
}

Result<MeasuredRun> measureTransfer(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    for (const bool isStored : {false, true})
        MEMSCAPE_CHECK(passedCheck(checkTransferWork(transferVersions, isStored, session.multiprocessors())));
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    TransferMeasurer measurer(session, plan, runStart);
    return runSweep(session, runStart, plan, measurer, sink);
}

} // namespace memscape::cuda
