// SPDX-License-Identifier: Apache-2.0
// The points of a sweep, of which some may be refused: one value does not fit its limit, the others do. A refused point
// has no figures and is a gap: a hole in the curves, and a sentence with the reason.
#pragma once

#include "core/experiment/experiment.h"

#include <functional>
#include <string>
#include <vector>

namespace memscape {

/// A point without figures, predicted or measured.
struct Gap
{
    double x = 0;
    std::string label;  ///< "prefetch 4 layers"
    std::string reason; ///< with the remedy
};

/// "working set 192 MiB": a point of a sweep, for people.
std::string pointLabel(const Experiment& experiment, const Sweep& sweep, const ParameterValue& value);

/// A point without figures, with why.
Point refusedPoint(double x, std::string name, const Error& error);

/// What a model answers at a point, and which of the sweep it is.
using PointModel = std::function<Result<Figures>(const Parameters& point, std::size_t index)>;
/// The points of a sweep as a model answers them; those that it refuses keep the reason. Errors: that of the
/// parameters' own point where the user gave no sweep, the first where all are refused, predict.cancelled.
Result<std::vector<Point>> predictedPoints(const Sweep& sweep, const Parameters& parameters, const PointModel& model);

/// Writes the points that hold an error into the detail: "gaps": [{"x", "label", "reason"}…].
void addGaps(Outcome& outcome, const Experiment& experiment, const Sweep& sweep, const std::vector<Point>& points);
/// Reads them again; what is not of that form is left out.
std::vector<Gap> gapsOf(const Outcome& outcome);
/// `detail` with the gaps that the outcome has.
void setDetail(Outcome& outcome, Json detail);

} // namespace memscape
