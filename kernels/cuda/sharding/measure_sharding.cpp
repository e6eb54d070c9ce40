// SPDX-License-Identifier: Apache-2.0
// `sharding` on several GPUs (kernels/programs/sharding/sharding_measurement.h): a ring of them (gpu_ring.h). What one
// thread of the host needs to queue the steps of all ranks is part of the times, and rules those of small pieces.
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/experiments.h"
#include "kernels/cuda/sharding/gpu_ring.h"
#include "kernels/cuda/sharding/ring.h"

#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

class GpuSharding final : public ShardingMeasurement
{
public:
    GpuSharding(GpuSession& session, const Device& device, RunSink& sink)
        : ShardingMeasurement(device)
        , m_session(session)
        , m_sink(sink)
    { }

    Result<void> check() override { return {}; } // the kernel was checked; every ring is, before it is timed
    Json method() const override
    {
        return {{"link", m_isStaged ? "pinned memory of the host" : "peer copies"},
                {"time", "between events of the first GPU around the streams of all"},
                {"caches", "steady state: steps follow each other"},
                {"kernels", checksOfRings()}};
    }

protected:
    double mostSent() const override { return 0x1p34; }
    StoppingOptions loopOptions() const override { return StoppingOptions().perPass(sweepPasses); }
    const Clock& clock() const override { return m_session.clock(); }
    Result<std::unique_ptr<RankRing>> ringOf(ShardingWay way, int ranks, std::size_t memory,
                                             std::vector<RingOperation> operations) override
    {
        auto ring =
            std::make_unique<GpuRing>(m_session, ranks, std::move(operations), [this] { return m_sink.cancelled(); });
        MEMSCAPE_CHECK(ring->open(way == ShardingWay::Host, memory));
        m_isStaged = way == ShardingWay::Host || !ring->whyStaged().empty();
        if (!ring->whyStaged().empty() && !m_isSaid)
            m_sink.note("warning", "sharding.staged", ring->whyStaged());
        m_isSaid = m_isSaid || !ring->whyStaged().empty();
        return std::unique_ptr<RankRing>(std::move(ring));
    }

private:
    GpuSession& m_session;
    RunSink& m_sink;
    bool m_isStaged = false, m_isSaid = false;
};

} // namespace

Checks checksOfSharding(int)
{
    return {[] { return checkRingAdd(4); }, [] { return checkRingAdd(2); }};
}

Result<MeasuredRun> measureSharding(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    for (const auto& check : checksOfSharding(session.multiprocessors()))
        MEMSCAPE_CHECK(passedCheck(check()));
    GpuSharding measurement(session, plan.device.device, sink);
    return runSweep(session, runStart, plan, measurement, sink);
}

} // namespace memscape::cuda
