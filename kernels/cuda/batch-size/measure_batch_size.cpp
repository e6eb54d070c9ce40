// SPDX-License-Identifier: Apache-2.0
// `batch-size` on a GPU: kernels/programs/batch-size/batch_measurement.h on this session's device. Steps are timed
// warm, behind the blocking kernel; training to the target and the noise of the gradients are not timed.
#include "kernels/cuda/experiments.h"

#include "kernels/cuda/batch-size/batch_device.h"
#include "kernels/cuda/batch-size/batch_kernels.h"
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/float_products.h"
#include "kernels/cuda/common/gpu_measurer.h"
#include "kernels/programs/batch-size/batch_measurement.h"

#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

constexpr double warmSeconds = 0.03; // before a point: training to the target lets the clock sink

struct BatchPoint
{
    PointSamples samples;

    std::vector<SampledThing> sampled() const { return {{"step_time", samples}}; }
};

class BatchMeasurer final : public GpuMeasurer<BatchPoint>
{
public:
    BatchMeasurer(GpuSession& session, const SweepPlan& plan, const RunStart& runStart, CublasLt* blas, RunSink& sink)
        : GpuMeasurer(session, plan, runStart)
        , m_measurement({batchDevices(
                             session, blas, [&sink] { return sink.cancelled(); }, &m_clocks),
                         plan.device.device, session.clock(), sink},
                        plan.parameters)
        , m_products(blas ? blas->name() + ", float without TF32, PyTorch's workspace" : productsText(nullptr))
    { }

    BatchMeasurement& shared() { return m_measurement; }

    Result<void> visit(std::size_t index, const Parameters& at, int pass) override
    {
        MEMSCAPE_CHECK(m_session.warmClock(warmSeconds));
        m_clocks.clear();
        MEMSCAPE_TRY(rule, m_measurement.visit(at, pass, sweepPasses));
        PointSamples& point = m_points[index].samples;
        point.seconds.add(pass, rule.samples());
        point.clocks.insert(point.clocks.end(), m_clocks.begin(), m_clocks.end());
        point.isDense = true;
        point.stop = rule.state();
        point.batch = m_measurement.repeats();
        return m_session.synchronize("freeing the arrays");
    }

    Point point(std::size_t index) const override
    {
        const PointSamples& samples = m_points[index].samples;
        Point point;
        point.detail = samples.detail();
        if (const Summary seconds = samples.summary(); !seconds.empty())
            point.figures =
                m_measurement.figures(m_plan.parameters.at(m_plan.sweep.key, m_plan.sweep.values[index]), seconds);
        return point;
    }

    Json method() const override
    {
        return {{"products", m_products},
                {"check", m_measurement.checked()},
                {"caches", "warm, as training finds them"},
                {"memory",
                 "the allocations that were made, replayed by the caching allocator; the "
                 "context as it is set"},
                {"timing", "events of the GPU around a step"},
                {"data", batchDataText}};
    }

private:
    std::vector<double> m_clocks; ///< Hz, of the visit's samples
    BatchMeasurement m_measurement;
    std::string m_products; ///< the implementation of products
};

} // namespace

Result<MeasuredRun> measureBatchSize(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    // Asked before the GPU is warmed up: most mistakes are in the parameters.
    MEMSCAPE_CHECK(batchTask(plan.device.device, plan.parameters));
    MEMSCAPE_CHECK(passedCheck(checkMlpElements()));
    MEMSCAPE_CHECK(passedCheck(checkBatchElements()));
    MEMSCAPE_TRY(blas, openProducts(sink));
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    BatchMeasurer measurer(session, plan, runStart, blas.get(), sink);
    MEMSCAPE_CHECK(measurer.shared().check(productsText(blas.get())));
    MEMSCAPE_TRY(swept, runSweep(session, runStart, plan, measurer, sink));
    MEMSCAPE_TRY(run, measurer.shared().finished(std::move(swept), plan.parameters));
    run.provenance.machine["state_after"] = stateToJson(readGpuState(session.pciBusId()));
    addLibrary(run.provenance.machine, blas.get());
    return run;
}

} // namespace memscape::cuda
