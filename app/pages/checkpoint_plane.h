// SPDX-License-Identifier: GPL-3.0-or-later
// Memory against time, for a plot: the best time for every budget as a line, each strategy as a point that
// can be chosen, what was measured as rings. Time is given as a multiple of the step in which everything is kept. Pure
// values from a record's `detail`.
#pragma once

#include "app/pictures/checkpoint/checkpoint_state.h"
#include "app/plots/plot_types.h"

#include <limits>

namespace memscape {

/// The key of the plot among those of the page, and of the marker that is the budget.
inline constexpr auto planeKey = "plane";
inline constexpr auto budgetMarker = "budget";

/// A schedule that was run for real.
struct MeasuredSchedule
{
    QString strategy;
    double peak = 0, makespan = 0;
    /// What the same run says storing everything takes; NaN where it does not.
    double fullTime = std::numeric_limits<double>::quiet_NaN();
};

struct PlaneInput
{
    FrontLine front;
    std::vector<StrategyPoint> strategies;
    QString chosen; ///< key of the strategy on the page
    std::vector<MeasuredSchedule> measured;
    QString measuredOn; ///< "measured on This CPU"
};

struct CheckpointPlane
{
    AxisSpec x, y;
    std::vector<Curve> curves;
    std::vector<Marker> markers;
};

CheckpointPlane checkpointPlane(const PlaneInput& input);

/// The strategy of a curve of the plane; empty for the front and what was measured.
QString strategyOfCurve(const QString& key);

} // namespace memscape
