// SPDX-License-Identifier: Apache-2.0
// Experiments of timed samples in PyTorch: attention, layout, precision. Points, passes, grades, figures and the record
// are the program's, as for its own kernels; the probe answers a visit of one point with samples in seconds
// (memscape_probe/sampling.py).
#pragma once

#include "kernels/measure/canary.h"
#include "kernels/measure/sampled_points.h"
#include "kernels/pytorch/probe.h"

#include <string>

namespace memscape {

/// Seconds that a page's own sweep may take, as on the host.
inline constexpr double probeBudget = 16;

/// A measurement whose visits are runs of the probe.
class ProbedMeasurement : public SampledMeasurement
{
public:
    /// `experiment`: its id. `points`: of the sweep, when a page's own sweep is limited in time; 0: it is not.
    ProbedMeasurement(PytorchProbe& probe, std::string experiment, std::size_t points)
        : m_probe(probe)
        , m_experiment(std::move(experiment))
        , m_points(points)
    { }

    Result<void> check() override { return {}; } // the probe checks before it times
    Result<SampleSets> visit(const Parameters& point, int pass) override;
    Json method() const override { return m_method; }

protected:
    /// What the probe must know beside the parameters, put into `words`. Errors: run.skipped.
    virtual Result<void> add(Json& words, const Parameters& point) const = 0;
    /// `detail` of the answer, beside samples and method.
    virtual Result<void> take(const Parameters& point, const JsonReader& detail) = 0;
    const Device& device() const { return m_probe.device().device; }

private:
    PytorchProbe& m_probe;
    std::string m_experiment;
    std::size_t m_points;
    Json m_method = Json::object();
};

/// {"pass", "samples", "seconds", "wall", "cache_bytes"}: how the probe paces a visit. `points` as above.
Json visitWords(const Device& device, std::size_t points, int pass);

/// The canary on this process's core while the probe waits, and the system's counters; nothing of a GPU.
class ProbeWatch final : public VisitWatch
{
public:
    explicit ProbeWatch(const Device& device)
        : m_isGpu(device.isGpu())
    { }
    void begin() override;
    RunConditions end(std::size_t samples) override;

private:
    bool m_isGpu;
    double m_fastest = 0; ///< Hz
    ContentionWatch m_watch;
};

using MeasureInPytorch = Result<MeasuredRun> (*)(PytorchProbe&, const Experiment&, const Parameters&);
/// Null for the experiments whose bytes are traced (training-memory, inference-memory) and for those that PyTorch does
/// not measure.
MeasureInPytorch sampledInPytorch(const std::string& experiment);

// One for each experiment. Errors: those of runSweep(), run.skipped.
Result<MeasuredRun> measureAttentionInPytorch(PytorchProbe& probe, const Experiment& experiment,
                                              const Parameters& parameters);
Result<MeasuredRun> measureLayoutInPytorch(PytorchProbe& probe, const Experiment& experiment,
                                           const Parameters& parameters);
Result<MeasuredRun> measurePrecisionInPytorch(PytorchProbe& probe, const Experiment& experiment,
                                              const Parameters& parameters);

/// The points of `parameters`, once the probe has imported PyTorch and said where it runs.
Result<MeasuredRun> runProbed(PytorchProbe& probe, const Experiment& experiment, const Parameters& parameters,
                              PointMeasurer& points);
/// The same of a measurement of samples, made for so many points.
template <class Made>
Result<MeasuredRun> runSampled(PytorchProbe& probe, const Experiment& experiment, const Parameters& parameters)
{
    const Device& device = probe.device().device;
    Made measurement(probe, experiment.id(),
                     parameters.sweep() ? 0 : sweepOf(experiment, device, parameters).values.size());
    ProbeWatch watch(device);
    return runProbed(probe, experiment, parameters, *makeSampledPoints(measurement, watch));
}

} // namespace memscape
