// SPDX-License-Identifier: Apache-2.0
// An experiment of timed samples as a sweep's points (sweep_run.h): something that is checked once, visited at a point
// in several passes, and turned into figures. Samples are kept by pass, and graded by their spread, their drift and
// what was seen of the machine at any of the visits.
#pragma once

#include "core/experiment/probed_links.h"
#include "kernels/measure/quality.h"
#include "kernels/measure/sweep_run.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace memscape {

/// Samples in seconds by what they are of ("time", "latency_4k", "bandwidth").
using SampleSets = std::map<std::string, std::vector<double>>;

class SampledMeasurement
{
public:
    virtual ~SampledMeasurement() = default;
    /// Every kernel that the sweep will time, against its reference. Errors: check.failed.
    virtual Result<void> check() = 0;
    /// Samples of one point. Errors: run.memory, run.cancelled, run.skipped.
    virtual Result<SampleSets> visit(const Parameters& point, int pass) = 0;
    /// The figures of a point from everything sampled so far, in the keys of the prediction.
    virtual Result<Figures> figures(const Parameters& point, const MergedSamples& samples) = 0;
    /// What was probed in turn with the points; nothing where they depend on no link.
    virtual RunProbes probes() const { return {}; }
    /// What the provenance says about how it was done (pages, threads, kernel versions).
    virtual Json method() const = 0;
};

/// Looks at the machine before and after a visit.
class VisitWatch
{
public:
    virtual ~VisitWatch() = default;
    virtual void begin() = 0;
    virtual RunConditions end(std::size_t samples) = 0;
};

/// Both must outlive it.
std::unique_ptr<PointMeasurer> makeSampledPoints(SampledMeasurement& measurement, VisitWatch& watch);

} // namespace memscape
