// SPDX-License-Identifier: Apache-2.0
// A sweep on one GPU, whatever is measured at a point: the order of visits, progress, Stop, points
// as they arrive, errors at single points, throttling and other users of the GPU, and the outcome
// with its provenance. An experiment brings two functions: visit a point once, and say its figures
// so far.
#pragma once

#include "kernels/cuda/session.h"
#include "kernels/measure/backend.h"
#include "kernels/measure/quality.h"

#include <functional>
#include <vector>

namespace memscape::cuda {

inline constexpr int passes = 3;

struct SweepPlan
{
    const Experiment& experiment;
    const BackendDevice& device;
    const Parameters& parameters;
    Sweep sweep;
};

/// What an experiment does at the points of a sweep.
class PointMeasurer
{
public:
    virtual ~PointMeasurer() = default;
    /// One pass over point `index`. An error is kept for this point and the others go on, except
    /// run.cancelled and those of endsRun().
    virtual Result<void> visit(std::size_t index, const Parameters& at, int pass) = 0;
    /// Figures and detail of the samples so far; empty figures while there are none.
    virtual Point point(std::size_t index) const = 0;
    virtual Quality quality(std::size_t index) const = 0;
};

/// The SM clock when busy, driver, versions, limits: measured once when a run begins.
struct Circumstance
{
    double referenceClock = 0; ///< Hz, NaN when unknown
    double launchPeriod = 0; ///< s between back-to-back empty kernels
    GpuState before;
};
Result<Circumstance> beginRun(Session& session, RunSink& sink);

Result<MeasuredRun> runSweep(Session& session, const Circumstance& circumstance,
                             const SweepPlan& plan, PointMeasurer& measurer, RunSink& sink);

/// Backend, versions, driver, clocks, state before and now; what every record of this run carries.
Json provenanceOf(const Session& session, const Circumstance& circumstance,
                  const BackendDevice& device);

} // namespace memscape::cuda
