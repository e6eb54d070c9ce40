// SPDX-License-Identifier: Apache-2.0
// `precision`, operation=train, on a GPU: kernels/programs/training-memory/amp_training.h on this session's device.
// Products by cuBLASLt where it is installed, with a workspace that the step's memory does not count (the step
// simulator leaves PyTorch's out as well), else by our own kernels, on tensor cores for FP16 and BF16; sums in FP32
// either way, without TF32.
#include "kernels/cuda/training-memory/amp_device.h"

#include "kernels/cuda/attention/attention_device.h"
#include "kernels/cuda/common/clock_watch.h"
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/float_products.h"
#include "kernels/cuda/precision/format_product.h"
#include "kernels/cuda/training-memory/amp.h"
#include "kernels/programs/training-memory/amp_training.h"

#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

class GpuTrainingMachine final : public TrainingMachine
{
public:
    GpuTrainingMachine(GpuSession& session, const SweepPlan& plan, const RunStart& runStart, RunSink& sink)
        : m_session(session)
        , m_plan(plan)

        , m_sink(sink)
        , m_blas(CublasLt::open())
        , m_watch(session, runStart.referenceClock)
    {
        noteLibrary(m_blas.get(), "our own kernels multiply", sink);
    }

    const Device& device() const override { return m_plan.device.device; }
    RunSink& sink() override { return m_sink; }

    Result<TrainingProducts> products(Format format) override
    {
        MEMSCAPE_TRY(who, whoMultiplies(format, m_blas.get(), computeCapability()));
        MEMSCAPE_CHECK(passedCheck(checkAmpElements(format == Format::Fp32       ? ElementFormat::Float32
                                                        : format == Format::Fp16 ? ElementFormat::Float16
                                                                                 : ElementFormat::BFloat16)));
        return TrainingProducts{gpuAmpDevices(
                                    m_session, m_blas.get(), [this] { return m_sink.cancelled(); }, m_fallbacks),
                                who,
                                {}};
    }

    void beginWatch() override { m_watch.restart(); }
    void look() override
    {
        // A reading keeps the GPU busy for a while: now and then is enough.
        if (m_looks++ % looksApart == 0)
            m_watch.read();
    }
    RunConditions seen(std::size_t) override { return m_watch.seen(); }

    Json method() const override
    {
        Json method{
            {"timing", "events of the GPU around a step; counts of gradients left out"},
            {"sums", m_blas ? "in FP32, without TF32; a workspace of 32 MiB is not counted" : "in FP32, without TF32"},
            {"passes", "our own kernels; AdamW and unscaling over all arrays in one launch"}};
        if (!m_fallbacks.empty())
            method["multiplied_by_our_kernels"] = m_fallbacks;
        return method;
    }
    const CublasLt* library() const { return m_blas.get(); }
    std::optional<Figure> stored(Format format, double value) override
    {
        if (format == Format::Fp32)
            return {};
        const auto found = gpuStored(m_session, format, value);
        if (!found)
            return {};
        return Figure{"stored_value", "value as stored", Unit::One, *found};
    }

private:
    static constexpr int looksApart = 16; ///< steps

    GpuSession& m_session;
    const SweepPlan& m_plan;
    RunSink& m_sink;
    std::unique_ptr<CublasLt> m_blas;
    AmpFallbacks m_fallbacks;
    ClockWatch m_watch;
    int m_looks = 0;
};

} // namespace

Result<MeasuredRun> measureTrainingOnGpu(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    MEMSCAPE_CHECK(checkTrained(plan.parameters));
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    GpuTrainingMachine machine(session, plan, runStart, sink);
    const auto measurer = makeTrainingMeasurer(machine, plan.experiment, plan.parameters);
    MEMSCAPE_TRY(run, runSweep(session, runStart, plan, *measurer, sink));
    addLibrary(run.provenance.machine, machine.library());
    return run;
}

Result<Check> checkGpuTraining(GpuSession& session, CublasLt* blas, Format format)
{
    MEMSCAPE_CHECK(whoMultiplies(format, blas, computeCapability()));
    AmpFallbacks fallbacks;
    const Device machine; // its memory is predicted alike everywhere
    return checkTrainer(machine,
                        gpuAmpDevices(
                            session, blas, [] { return false; }, fallbacks),
                        format);
}

} // namespace memscape::cuda
