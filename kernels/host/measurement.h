// SPDX-License-Identifier: Apache-2.0
// A host experiment as the sweep sees it: something that is checked once, visited at a point of the
// sweep in several passes, and turned into figures. The sweep (sweep_run.cpp) does the rest: order,
// grades, provenance, progress, stopping.
#pragma once

#include "kernels/host/session.h"
#include "kernels/measure/sweep_run.h"
#include "kernels/measure/timed_figures.h"

#include <map>
#include <string>
#include <vector>

namespace memscape::host {

/// Samples in seconds by what they are of ("time", "latency_4k", "bandwidth").
using SampleSets = std::map<std::string, std::vector<double>>;

class HostMeasurement
{
public:
    virtual ~HostMeasurement() = default;
    /// Every kernel that the sweep will time, against its reference. Errors: check.failed.
    virtual Result<void> check() = 0;
    /// Samples of one point. Errors: run.memory, run.cancelled, run.skipped.
    virtual Result<SampleSets> visit(const Parameters& point, int pass) = 0;
    /// The figures of a point from everything sampled so far, in the keys of the prediction.
    virtual Result<Figures> figures(const Parameters& point, const MergedSamples& samples) = 0;
    /// What the provenance says about how it was done (pages, threads, kernel versions).
    virtual Json method() const = 0;
};

/// The points of `parameters` on this session's threads. Errors: those of memscape::runSweep().
Result<MeasuredRun> runSweep(const Experiment& experiment, const Parameters& parameters, PointMeasurer& measurer,
                             HostSession& session);
/// The whole measurement of `parameters`. A cancelled run that has points already is a result that is
/// not complete; one without is run.cancelled.
Result<MeasuredRun> runSweep(const Experiment& experiment, const Parameters& parameters, HostMeasurement& measurement,
                             HostSession& session);

} // namespace memscape::host
