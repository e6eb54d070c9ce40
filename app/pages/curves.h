// SPDX-License-Identifier: GPL-3.0-or-later
// From outcomes to what a plot draws, for any experiment: which series share a plot (those of one
// unit), the axes, the curves of prediction, measurement and pinned records, the device's
// capacities as lines of the x axis and its specified bandwidth as a line of the y axis.
#pragma once

#include "app/plots/plot_types.h"
#include "core/device/device.h"
#include "core/experiment/outcome.h"
#include "core/experiment/parameter.h"

#include <vector>

namespace memscape {

/// Series of one unit over one axis: they share a plot. `key` is that of the first.
struct SeriesGroup
{
    QString key;
    QString label; ///< of the y axis, what all have in common: "latency", "bandwidth"
    Unit unit = Unit::One;
    std::vector<std::string> series;

    bool operator==(const SeriesGroup&) const = default;
};

/// In the order of first appearance.
std::vector<SeriesGroup> seriesGroups(const Outcome& outcome);

/// A record that is drawn beside the current one.
struct PinnedOutcome
{
    QString name;
    int palette = 0;
    const Outcome* predicted = nullptr;
    const Outcome* measured = nullptr;
    bool isBaseline = false; ///< the other curves are compared with it
};

/// What another basis than the shown prediction's would predict.
struct OtherBasis
{
    QString name; ///< legend: "datasheet"
    CurveRole role = CurveRole::Datasheet;
    const Outcome* predicted = nullptr;
};

struct CurveInput
{
    const Outcome* predicted = nullptr;
    QString basis = {}; ///< legend: "predicted (H100, calibrated)"; empty: "predicted"
    std::vector<OtherBasis> others = {};
    const Outcome* measured = nullptr; ///< or the points that have arrived so far
    QString measuredOn;                ///< legend: "measured on This CPU"
    bool measuredElsewhere = false;    ///< with other parameters than the page's: drawn hollow
    std::vector<PinnedOutcome> pinned;
};

std::vector<Curve> makeCurves(const SeriesGroup& group, const CurveInput& input);
/// What a pinned record's curve was made from; null for other curves.
const Outcome* pinnedOutcomeOf(const Curve& curve, const CurveInput& input);

/// The x axis that the series of a group share; that of the outcome when it has none of them.
const SeriesAxis* axisOf(const Outcome& outcome, const SeriesGroup& group);
AxisSpec xAxisOf(const Outcome& outcome, const SeriesGroup& group, ByteStyle bytes, const Schema& schema = {});
/// A category of an axis as the form calls it; a record names it as the command line does.
QString categoryName(const SeriesAxis& axis, std::size_t index, const Schema& schema);
/// Logarithmic when times or rates of arithmetic span more than a decade, all else more than two; a
/// linear axis starts at zero.
AxisSpec yAxisOf(const SeriesGroup& group, const CurveInput& input, ByteStyle bytes);

/// Capacities of the cache levels, where the x axis counts bytes.
std::vector<Band> capacityBands(const Device& device, const SeriesAxis& axis);
/// The vendor's DRAM bandwidth, where the y axis is one; empty when it is not specified.
std::vector<HorizontalLine> datasheetLines(const Device& device, Unit unit, ByteStyle bytes);

} // namespace memscape
