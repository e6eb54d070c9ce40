// SPDX-License-Identifier: Apache-2.0
// A sweep on one GPU (kernels/measure/sweep_run.h): before it the idle clock is left, during it throttling and other
// users of the GPU are watched.
#pragma once

#include "kernels/cuda/session.h"
#include "kernels/measure/backend.h"
#include "kernels/measure/sampled_points.h"
#include "kernels/measure/sweep_run.h"

namespace memscape::cuda {

struct SweepPlan
{
    const Experiment& experiment;
    const BackendDevice& device;
    const Parameters& parameters;
    Sweep sweep;
};

/// The SM clock when busy, driver, versions, limits: measured once when a run begins.
struct RunStart
{
    double referenceClock = 0; ///< Hz, NaN when unknown
    double launchPeriod = 0;   ///< s between back-to-back empty kernels
    GpuState before;
};
Result<RunStart> beginRun(GpuSession& session, RunSink& sink);

/// The points of `plan`, on this session's GPU. Errors: those of memscape::runSweep().
Result<MeasuredRun> runSweep(GpuSession& session, const RunStart& runStart, const SweepPlan& plan,
                             PointMeasurer& measurer, RunSink& sink);
/// The same of timed samples, which are checked first.
Result<MeasuredRun> runSweep(GpuSession& session, const RunStart& runStart, const SweepPlan& plan,
                             SampledMeasurement& measurement, RunSink& sink);

/// Backend, versions, driver, clocks, state before and now: Provenance::machine of every run on this GPU.
Json machineFacts(const GpuSession& session, const RunStart& runStart, const BackendDevice& device);

} // namespace memscape::cuda
