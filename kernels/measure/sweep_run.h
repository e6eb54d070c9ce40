// SPDX-License-Identifier: Apache-2.0
// A sweep on any machine: in which order its points are visited, progress, Stop and the time it may take, points as
// they arrive, errors at single points, grades, which samples are kept, and the run with its provenance. An experiment
// brings a PointMeasurer, a backend its SweepMachine; both give runs of one shape
// (tests/kernels/cuda/tst_same_shape.cpp).
#pragma once

#include "kernels/measure/backend.h"
#include "kernels/measure/clock.h"
#include "kernels/measure/quality.h"
#include "kernels/measure/sweep.h"

#include <limits>
#include <map>
#include <string>

namespace memscape {

/// Seconds, pass by pass, by what they are of: "time", "latency_4k", "bandwidth".
using MergedSamples = std::map<std::string, PassSamples>;

/// What an experiment does at the points of a sweep.
class PointMeasurer
{
public:
    virtual ~PointMeasurer() = default;
    /// One pass over point `index`, whose parameters are `at`. An error ends the run when it is run.cancelled, one of
    /// endsRun(), or that of the point that was asked for; else it stays with this point.
    virtual Result<void> visit(std::size_t index, const Parameters& at, int pass) = 0;
    /// Figures of the samples so far, none while there are none, and what is said of the point beside grade and
    /// samples.
    virtual Point point(std::size_t index) const = 0;
    virtual MergedSamples samples(std::size_t index) const = 0;
    virtual Quality quality(std::size_t index) const = 0;
    /// How it was done: kernels and their checks, caches, threads.
    virtual Json method() const = 0;
    /// Whether each point is a run of its own, a training or a schedule: visited once, in the order of the sweep;
    /// without one of the user's the parameters alone are run.
    virtual bool runsWhole() const { return false; }
    /// Adds what the measurement says beside the figures of its points: curves over a run's own steps.
    virtual void complete(Measurement&) const { }
};

/// The machine that a sweep runs on, during one run.
class SweepMachine
{
public:
    virtual ~SweepMachine() = default;
    virtual const Device& device() const = 0;
    virtual RunSink& sink() = 0;
    virtual const Clock& clock() const = 0;
    /// Seconds; no visit of a later pass begins that would end after them.
    virtual double budget() const { return std::numeric_limits<double>::infinity(); }
    virtual void visited() { }     ///< after every visit, while the machine is still warm
    virtual void forgetError() { } ///< that of a point: the next one begins anew
    virtual void finished() { }    ///< after the last visit: says what disturbed the run
    virtual Json facts() = 0;      ///< backend, versions, clocks: Provenance::machine
};

/// What was timed, for people: the label of the figure that the samples make.
std::string sampledName(const Figures& figures, const std::string& key);

/// Grade, reason and numbers of each set of samples, as every point has them.
Json sampledDetail(const Quality& quality, const MergedSamples& samples);

/// Every point three times, in random order, the one that the parameters ask for first; whole runs once, in order. A
/// point that was stopped keeps the figures that it has, and the run is not complete. Errors: run.cancelled before the
/// first point, that of the point that was asked for, those of endsRun(), and the first one when no point could be
/// measured.
Result<MeasuredRun> runSweep(const Experiment& experiment, const Parameters& parameters, PointMeasurer& measurer,
                             SweepMachine& machine);

} // namespace memscape
