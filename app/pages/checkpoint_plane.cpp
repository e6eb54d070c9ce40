// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/checkpoint_plane.h"

#include "app/settings/words.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr auto frontKey = "front";
const QString strategyPrefix = QStringLiteral("strategy.");

Curve frontCurve(const FrontLine& front)
{
    Curve curve;
    curve.key = QString::fromLatin1(frontKey);
    curve.name = tr("optimal among persistent schedules, predicted");
    curve.role = CurveRole::Predicted;
    curve.x = front.budget;
    for (const double makespan : front.makespan)
        curve.y.push_back(makespan / front.fullTime);
    return curve;
}

/// A dot for what fits the budget, grey for what does not; keeping everything is a diamond.
Curve strategyCurve(const StrategyPoint& point, const PlaneInput& input)
{
    Curve curve;
    curve.key = strategyPrefix + point.key;
    curve.name = point.label;
    curve.role = point.feasible ? CurveRole::Predicted : CurveRole::Datasheet;
    curve.shape = point.key == QStringLiteral("none") ? MarkerShape::Diamond : MarkerShape::Circle;
    if (point.key == input.chosen) {
        curve.role = CurveRole::Variant; // yellow, as everything that one moves
        curve.palette = 3;
        curve.shape = MarkerShape::Square;
    }
    curve.x = {point.peak};
    curve.y = {point.makespan / input.front.fullTime};
    curve.labelled = true;
    curve.listed = false;
    return curve;
}

Curve measuredCurve(const MeasuredSchedule& measured, std::size_t index, const PlaneInput& input)
{
    Curve curve;
    curve.key = QStringLiteral("measured.%1").arg(index);
    curve.name = index == 0 ? input.measuredOn : tr("measured: %1").arg(strategyLabel(measured.strategy));
    curve.role = CurveRole::MeasuredVariant;
    curve.shape = MarkerShape::Circle;
    curve.x = {measured.peak};
    // A machine is held against itself: how far its times lie from the predicted ones is no matter of schedules.
    curve.y = {measured.makespan / (measured.fullTime > 0 ? measured.fullTime : input.front.fullTime)};
    curve.listed = index == 0;
    return curve;
}

/// Points that stand together have one label: each of the others would lie on it.
void mergeLabels(std::vector<Curve>& curves, const AxisSpec& y)
{
    constexpr double near = 0.03; ///< of the axes
    double right = 1e-300;
    for (const Curve& curve : curves)
        right = std::max(right, curve.x.back());
    const double height = y.range->second - y.range->first;
    for (std::size_t i = 0; i < curves.size(); ++i) {
        if (!curves[i].labelled)
            continue;
        int together = 1;
        for (std::size_t j = i + 1; j < curves.size(); ++j) {
            const bool same = curves[j].labelled && std::abs(curves[j].x[0] - curves[i].x[0]) < near * right
                && std::abs(curves[j].y[0] - curves[i].y[0]) < 2 * near * height;
            if (!same)
                continue;
            curves[j].labelled = false;
            if (++together == 2)
                curves[i].name += QStringLiteral(", ") + curves[j].name;
            else if (together == 3)
                curves[i].name += QStringLiteral(", …");
        }
    }
}

/// The schedules and what lies between them; the front's steep end would flatten them all.
std::pair<double, double> timeRange(const std::vector<Curve>& curves)
{
    double high = 1.2, front = 1;
    for (const Curve& curve : curves) {
        const double top = *std::ranges::max_element(curve.y);
        (curve.key == QLatin1String(frontKey) ? front : high) =
            std::max(curve.key == QLatin1String(frontKey) ? front : high, top);
    }
    high = 1 + 1.25 * (high - 1);
    return {1 - 0.22 * (high - 1), std::max(high, std::min(front, 1.75))};
}

} // namespace

CheckpointPlane checkpointPlane(const PlaneInput& input)
{
    const FrontLine& front = input.front;
    CheckpointPlane plane;
    plane.x = {tr("memory"), front.units.isBytes ? Unit::Byte : Unit::One};
    plane.x.bytes = front.units.bytes;
    plane.x.fromZero = true;
    plane.y = {tr("step time, as a multiple of storing everything"), Unit::One};
    plane.y.suffix = QStringLiteral("×");
    if (!(front.fullTime > 0))
        return plane;
    plane.y.one = front.fullTime;
    plane.y.oneUnit = front.units.isSeconds ? Unit::Second : Unit::One;
    if (!front.budget.empty())
        plane.curves.push_back(frontCurve(front));
    std::vector<StrategyPoint> points = input.strategies;
    std::stable_partition(points.begin(), points.end(), [&](const StrategyPoint& point) {
        return point.key != input.chosen; // that one is drawn last: nothing hides it
    });
    for (const StrategyPoint& point : points) {
        if (std::isfinite(point.peak) && std::isfinite(point.makespan))
            plane.curves.push_back(strategyCurve(point, input));
    }
    for (std::size_t i = 0; i < input.measured.size(); ++i)
        plane.curves.push_back(measuredCurve(input.measured[i], i, input));
    if (!plane.curves.empty()) {
        plane.y.range = timeRange(plane.curves);
        mergeLabels(plane.curves, plane.y);
    }
    if (std::isfinite(front.given)) {
        Marker marker{QString::fromLatin1(budgetMarker), front.given, front.units.memory(front.given)};
        marker.along = QString::fromLatin1(frontKey);
        plane.markers.push_back(std::move(marker));
    }
    return plane;
}

QString strategyOfCurve(const QString& key)
{
    return key.startsWith(strategyPrefix) ? key.mid(strategyPrefix.size()) : QString();
}

} // namespace memscape
