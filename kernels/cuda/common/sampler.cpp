// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/sampler.h"

#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/pacing.h"
#include "kernels/measure/kept_samples.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

constexpr std::uint64_t blockLimitNs = 5'000'000'000;

/// Opens on every way out, so that an early return cannot leave the stream waiting.
class StreamBlocker
{
public:
    explicit StreamBlocker(StreamBlock* block)
        : m_block(block)
    {
        block->timedOut = 0;
        block->open = 0;
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    ~StreamBlocker() { open(); }
    StreamBlocker(const StreamBlocker&) = delete;
    StreamBlocker& operator=(const StreamBlocker&) = delete;
    void open()
    {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        m_block->open = 1;
    }

private:
    StreamBlock* m_block;
};

double quantileOf(std::vector<double> values, double q)
{
    std::erase_if(values, [](double value) { return !std::isfinite(value); });
    if (values.empty())
        return std::numeric_limits<double>::quiet_NaN();
    std::ranges::sort(values);
    return quantile(values, q);
}

Result<void> queueBetweenStamps(GpuSession& session, const Work& work, int batch)
{
    cudaStream_t stream = session.stream();
    if (work.launches * std::size_t(batch) <= heldLaunches)
        MEMSCAPE_CHECK(
            cudaResult(launchBlockingKernel(session.deviceBlock(), blockLimitNs, stream), "holding the stream"));
    MEMSCAPE_CHECK(
        cudaResult(launchStamp(session.deviceStamps(), session.multiprocessors(), stream), "reading the clock"));
    MEMSCAPE_CHECK(cudaResult(cudaEventRecord(session.begin(), stream), "recording an event"));
    for (int turn = 0; turn < batch; ++turn)
        MEMSCAPE_CHECK(cudaResult(work.launch(turn), "starting ", work.name));
    MEMSCAPE_CHECK(cudaResult(cudaEventRecord(session.end(), stream), "recording an event"));
    return cudaResult(launchStamp(session.deviceStamps() + 1, session.multiprocessors(), stream), "reading the clock");
}

} // namespace

Result<Sample> takeSample(GpuSession& session, const Work& work, bool cold, int batch)
{
    if (cold)
        MEMSCAPE_CHECK(session.flush());
    MEMSCAPE_CHECK(session.synchronize("waiting for the flush"));
    Stamp* stamps = session.stamps();
    stamps[0] = stamps[1] = Stamp{};
    {
        StreamBlocker keeper(session.block());
        MEMSCAPE_CHECK(queueBetweenStamps(session, work, batch));
        keeper.open();
    }
    MEMSCAPE_CHECK(session.synchronize("running ", work.name));
    if (session.block()->timedOut != 0)
        return fail("run.failed", "the launch of " + work.name + " did not get through within 5 s",
                    "another program may hold the GPU; measure again");
    float milliseconds = 0;
    MEMSCAPE_CHECK(
        cudaResult(cudaEventElapsedTime(&milliseconds, session.begin(), session.end()), "reading the events"));
    return Sample{double(milliseconds) * 1e-3 / std::max(1, batch),
                  clockBetween(stamps[0].nanoseconds, stamps[0].clocks, stamps[1].nanoseconds, stamps[1].clocks)};
}

Result<void> meet(GpuSession& session, const Work& work)
{
    MEMSCAPE_CHECK(cudaResult(work.launch(0), "starting ", work.name));
    return session.synchronize("running ", work.name);
}

Result<double> warmUp(GpuSession& session, const Work& work)
{
    MEMSCAPE_CHECK(meet(session, work));
    const Clock& clock = session.clock();
    const double begin = clock.now();
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3 || clock.now() - begin < 25e-3; ++i) {
        MEMSCAPE_TRY(sample, takeSample(session, work, false, 1));
        best = std::min(best, sample.seconds);
    }
    return best;
}

Result<void> samplePass(GpuSession& session, const Work& work, bool cold, int pass, const StoppingOptions& options,
                        PointSamples& point)
{
    const Clock& clock = session.clock();
    StoppingRule rule(options, clock);
    while (!rule.finished()) {
        MEMSCAPE_TRY(sample, takeSample(session, work, cold, point.batch));
        rule.add(sample.seconds);
        point.clocks.push_back(sample.clockHz);
    }
    point.stop = rule.state();
    point.seconds.add(pass, rule.samples());
    return {};
}

Quality PointSamples::quality(double reference) const
{
    RunConditions seen;
    // The fifth percentile: the timer ticks once a microsecond, so a single short sample may be
    // off.
    const double low = quantileOf(clocks, 0.05);
    if (std::isfinite(low) && reference > 0)
        seen.clockShare = std::min(1.0, low / reference);
    if (isDense)
        seen.clockDrift = driftOf(clocks);
    seen.drift = seconds.drift();
    return gradeOf(summary(), seen);
}

Json PointSamples::detail() const
{
    Json detail = Json::object();
    detail["stop"] = stopText(stop);
    detail["batch"] = batch;
    detail["clock"] = jsonNumber(quantileOf(clocks, 0.5));
    const double median = quantileOf(clocks, 0.5);
    const auto throttled = std::ranges::count_if(clocks, [&](double clock) { return clock < 0.75 * median; });
    detail["throttled_samples"] = throttled;
    detail["device_memory_delta"] = jsonNumber(deviceDelta);
    return detail;
}

} // namespace memscape::cuda
