// SPDX-License-Identifier: Apache-2.0
// A host experiment as the sweep sees it: something that is checked once, visited at a point of the
// sweep in several passes, and turned into figures. The sweep (sweep_run.cpp) does the rest: order,
// grades, provenance, progress, stopping.
#pragma once

#include "kernels/host/session.h"
#include "kernels/measure/sampled_points.h"
#include "kernels/measure/timed_figures.h"

namespace memscape::host {

using HostMeasurement = SampledMeasurement;

/// The points of `parameters` on this session's threads. Errors: those of memscape::runSweep().
Result<MeasuredRun> runSweep(const Experiment& experiment, const Parameters& parameters, PointMeasurer& measurer,
                             HostSession& session);
/// The whole measurement of `parameters`. A cancelled run that has points already is a result that is
/// not complete; one without is run.cancelled.
Result<MeasuredRun> runSweep(const Experiment& experiment, const Parameters& parameters, HostMeasurement& measurement,
                             HostSession& session);

} // namespace memscape::host
