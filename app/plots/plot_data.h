// SPDX-License-Identifier: GPL-3.0-or-later
// What becomes of curves before they are drawn: cleaned of what an axis cannot show, sorted along
// x, measured for their ranges, looked up for the readout, written as a table. Pure values.
//
// A point that is not finite, or not positive on a logarithmic axis, becomes a gap in the line (a
// NaN) and is counted. Ranges are ours, not QCustomPlot's: its rescaling fails silently on an infinity and turns (0,
// 100) into (0.001, 100) on a logarithmic axis.
#pragma once

#include "app/plots/plot_types.h"

#include <QString>

#include <vector>

namespace memscape {

/// One axis as it is now: limits and whether it is logarithmic.
struct AxisRange
{
    double low = 0, high = 1;
    bool log = false;

    double toShare(double value) const; ///< 0 at low, 1 at high
    double fromShare(double share) const;
    bool operator==(const AxisRange&) const = default;
};

/// A curve that can be drawn: sorted by x, as many y as x, NaN y where there is a gap.
struct CleanCurve
{
    std::vector<double> x, y, low, high;
    int hidden = 0;    ///< points that the axes cannot show
    int notFinite = 0; ///< of these, how many are not numbers at all
};

CleanCurve clean(const Curve& curve, bool logX, bool logY);

/// Curves below that share of a limit would be flat beneath its line, which is then left out of the range.
inline constexpr double nearLimitShare = 0.3, nearLimitShareOfLog = 0.01;

/// Limits that show all visible curves and lines with some padding. Logarithmic limits are
/// positive; without data they are 0 to 1 (1 to 10), for one point they surround it.
AxisRange xRange(const AxisSpec& axis, const std::vector<Curve>& curves);
AxisRange yRange(const AxisSpec& axis, const std::vector<Curve>& curves, bool logX,
                 const std::vector<HorizontalLine>& lines);

/// Heights of the stack of visible areas, point by point; empty without areas.
std::vector<double> areaTotals(const std::vector<Curve>& curves);

/// Keeps zooming within what doubles and a logarithmic axis can bear.
AxisRange sane(AxisRange range);
AxisRange zoomed(AxisRange range, double factor, double shareOfCentre = 0.5);
AxisRange panned(AxisRange range, double share);

/// "3 points are not shown: 2 are not numbers, 1 is zero or negative on a logarithmic axis." Of the curve that lacks
/// most: curves of one sweep lack the same.
QString noteFor(const std::vector<CleanCurve>& curves);

/// What stands at one x: index of each curve's point there, -1 for none.
struct Sample
{
    double x = 0;
    std::vector<int> index; ///< as many as curves
    bool found = false;
};
/// The x of any visible curve's point that is nearest (in shares of the axis) to `share`, and what
/// the other curves have at the same x (within a thousandth of the axis).
Sample nearestSample(const std::vector<Curve>& curves, const std::vector<CleanCurve>& cleaned, const AxisRange& x,
                     double share);

/// The curves as a table with a header: x, then y (and low, high where there is a band) per visible
/// curve, a row per distinct x. Numbers round-trip; texts are quoted as in RFC 4180 when needed.
QString tableText(const AxisSpec& x, const AxisSpec& y, const std::vector<Curve>& curves, QChar separator,
                  const AxisRange* only);

/// The plot in words, for screen readers.
QString summaryText(const QString& title, const AxisSpec& x, const AxisSpec& y, const std::vector<Curve>& curves);

} // namespace memscape
