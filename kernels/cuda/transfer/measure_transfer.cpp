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
#include "kernels/cuda/common/gpu_measurer.h"
#include "kernels/cuda/experiments.h"
#include "kernels/cuda/transfer/gpu_transfer.h"
#include "kernels/cuda/transfer/pinning.h"
#include "kernels/cuda/transfer/transfer.h"

#include "core/experiments/transfer/transfer.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

struct TransferPoint : NamedSamples
{
    TransferCase asked;
    std::optional<PinningCost> pinning;
};

class TransferMeasurer final : public GpuMeasurer<TransferPoint>
{
public:
    TransferMeasurer(GpuSession& session, const SweepPlan& plan, const RunStart& runStart, RunSink& sink)
        : GpuMeasurer(session, plan, runStart)
        , m_sink(sink)
    { }

    Result<void> visit(std::size_t index, const Parameters& at, int pass) override
    {
        TransferPoint& point = m_points[index];
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
        MEMSCAPE_CHECK(visitCase(asked, pass, samplings, point));
        if (asked.kind == TransferKind::Pinned && pass == 0)
            MEMSCAPE_CHECK(visitPinning(point));
        return {};
    }

    Point point(std::size_t index) const override
    {
        const TransferPoint& measured = m_points[index];
        Point point;
        const auto time = measured.samples.find("time");
        if (time == measured.samples.end())
            return point;
        point.detail = time->second.detail();
        if (measured.pinning)
            point.detail["pinning"] = pinningToJson(*measured.pinning);
        const auto timeOf = [&](const char* key) {
            const Summary summary = measured.summary(key);
            return summary.empty() ? TransferTime{} : TransferTime{summary.median, summary.minimum, summary.q3};
        };
        TransferNumbers numbers{timeOf("time"), timeOf("copy_time"), timeOf("kernel_time"), timeOf("latency")};
        numbers.halfSize = measuredHalfSize(measured.asked, numbers);
        point.figures = transferFigures(measured.asked, numbers);
        return point;
    }

    Json method() const override
    {
        return {{"kernel", fmt::format("work on a chunk v{}", transferVersions)},
                {"time", "between events around all streams, the calls that queue included"},
                {"caches", "steady state: transfers follow each other"}};
    }

private:
    struct Sampling
    {
        const char* key;
        bool withCopies, withKernel;
    };

    /// Said once, of the point that was asked for: it comes first.
    Result<void> visitPinning(TransferPoint& point)
    {
        MEMSCAPE_TRY(cost, measurePinning(m_session, point.asked.bytes));
        point.pinning = cost;
        if (!std::exchange(m_isPinningSaid, true))
            m_sink.note("info", "transfer.pinning", pinningText(cost, m_plan.device.device, point.asked));
        return {};
    }

    Result<void> visitCase(const TransferCase& asked, int pass, const std::vector<Sampling>& samplings,
                           TransferPoint& point)
    {
        m_session.resetPeak();
        GpuTransfer transfer(m_session, asked);
        MEMSCAPE_CHECK(transfer.open());
        MEMSCAPE_CHECK(transfer.check());
        for (const Sampling& one : samplings) {
            PointSamples& samples = point.samples[one.key];
            for (int warm = 0; warm < 2; ++warm)
                MEMSCAPE_CHECK(transfer.sample(one.withCopies, one.withKernel));
            const Clock& clock = m_session.clock();
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

    RunSink& m_sink;
    bool m_isPinningSaid = false;
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
    TransferMeasurer measurer(session, plan, runStart, sink);
    return runSweep(session, runStart, plan, measurer, sink);
}

} // namespace memscape::cuda
