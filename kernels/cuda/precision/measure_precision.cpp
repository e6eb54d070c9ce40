// SPDX-License-Identifier: Apache-2.0
// `precision`, operation=matmul, on a GPU: one product in a format and the same in FP32 in turn with it, so
// that a clock that sinks meets both. Warm: products are measured back to back, as they run in training; a
// short one several times within a sample. NVIDIA's library multiplies where it is installed. For
// operation=train see measure_training.cpp.
#include "kernels/cuda/experiments.h"

#include "kernels/cuda/attention/attention_work.h"
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/float_products.h"
#include "kernels/cuda/common/gpu_measurer.h"
#include "kernels/cuda/precision/format_product.h"
#include "kernels/cuda/training-memory/amp_device.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

struct PrecisionPoint
{
    PrecisionCase asked;
    PointSamples samples;
    PassSamples single; ///< s, the same product in FP32
    std::optional<double> stored;

    std::vector<SampledThing> sampled() const { return {{"time", samples}}; }
};

class PrecisionMeasurer final : public GpuMeasurer<PrecisionPoint>
{
public:
    PrecisionMeasurer(GpuSession& session, const SweepPlan& plan, const RunStart& runStart, RunSink& sink)
        : GpuMeasurer(session, plan, runStart)
        , m_sink(sink)
        , m_blas(CublasLt::open())
    {
        noteLibrary(m_blas.get(), "our own kernels multiply", sink);
    }

    Result<void> visit(std::size_t index, const Parameters& at, int pass) override
    {
        PrecisionPoint& point = m_points[index];
        point.asked = precisionCase(at);
        std::vector<GpuProduct> products;
        for (const Format format : {point.asked.format, Format::Fp32}) {
            if (!products.empty() && format == point.asked.format)
                break;
            MEMSCAPE_CHECK(checkOnce(format));
            MEMSCAPE_TRY(product, GpuProduct::make(m_session, m_blas.get(), format, point.asked.shape));
            m_who[std::string(numberFormat(format).key)] = product.who();
            products.push_back(std::move(product));
        }
        MEMSCAPE_CHECK(sampleInTurn(point, products, pass));
        if (!point.stored)
            point.stored = gpuStored(m_session, point.asked.format, point.asked.value);
        products.clear();
        return m_session.synchronize("freeing the matrices");
    }

    Point point(std::size_t index) const override
    {
        const PrecisionPoint& measured = m_points[index];
        Point point;
        point.detail = measured.samples.detail();
        if (!measured.samples.summary().empty())
            point.figures = figuresOf(measured);
        return point;
    }

    MergedSamples samples(std::size_t index) const override
    {
        return {{"time", m_points[index].samples.seconds}, {"fp32_time", m_points[index].single}};
    }

    const CublasLt* library() const { return m_blas.get(); }
    Json method() const override { return {{"products", m_who}, {"checks", m_checks}, {"caches", "warm"}}; }

private:
    Result<void> checkOnce(Format format)
    {
        const std::string key(numberFormat(format).key);
        if (m_checks.contains(key))
            return {};
        MEMSCAPE_TRY(check, checkGpuProduct(m_session, m_blas.get(), format));
        MEMSCAPE_CHECK(check.result(std::string(numberFormat(format).label) + " product"));
        m_checks[key] = check.text();
        return {};
    }

    Result<void> sampleInTurn(PrecisionPoint& point, std::vector<GpuProduct>& products, int pass)
    {
        std::vector<Work> works;
        std::vector<int> batches;
        for (GpuProduct& product : products) {
            MEMSCAPE_CHECK(product.launch(m_session)); // chooses the algorithm, with its own words if there is none
            works.push_back(
                {[this, &product](int) { return product.launch(m_session) ? cudaSuccess : cudaErrorUnknown; },
                 "the product"});
            MEMSCAPE_TRY(once, warmUp(m_session, works.back()));
            batches.push_back(batchFor(once));
        }
        point.samples.batch = batches.front();
        point.samples.isDense = true;
        const Clock& clock = m_session.clock();
        const StoppingOptions options = StoppingOptions().perPass(sweepPasses);
        std::vector<StoppingRule> rules(works.size(), StoppingRule(options, clock));
        while (!rules.front().finished() && !m_sink.cancelled()) {
            for (std::size_t i = 0; i < works.size(); ++i) {
                MEMSCAPE_TRY(sample, takeSample(m_session, works[i], false, batches[i]));
                rules[i].add(sample.seconds);
                if (i == 0)
                    point.samples.clocks.push_back(sample.clockHz);
            }
        }
        point.samples.stop = rules.front().state();
        point.samples.seconds.add(pass, rules.front().samples());
        point.single.add(pass, rules.back().samples());
        return {};
    }

    static Figures figuresOf(const PrecisionPoint& point)
    {
        const PrecisionCase& asked = point.asked;
        const Summary time = point.samples.summary(), single = summarize(point.single.merged());
        const double flops = asked.shape.flops(), bytes = gemmBytes(numberFormat(asked.format), asked.shape);
        Figures figures{
            {"time", "time", Unit::Second, time.median, time.minimum, time.q3, {}},
            {"flop_rate", "rate", Unit::FlopPerSecond, flops / time.median, flops / time.q3, flops / time.minimum, {}},
            {"speedup", "speedup", Unit::One, single.median / time.median},
            {"flops", "operations", Unit::One, flops},
            {"bytes", "bytes", Unit::Byte, bytes},
            {"intensity", "intensity (FLOP/B)", Unit::One, flops / bytes}};
        if (point.stored)
            figures.push_back({"stored_value", "value as stored", Unit::One, *point.stored});
        return figures;
    }

    RunSink& m_sink;
    std::unique_ptr<CublasLt> m_blas;
    std::map<std::string, std::string> m_who, m_checks; ///< by format
};

} // namespace

Result<MeasuredRun> measurePrecision(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    if (precisionCase(plan.parameters).trains())
        return measureTrainingOnGpu(session, plan, sink);
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    PrecisionMeasurer measurer(session, plan, runStart, sink);
    MEMSCAPE_TRY(run, runSweep(session, runStart, plan, measurer, sink));
    addLibrary(run.provenance.machine, measurer.library());
    return run;
}

} // namespace memscape::cuda
