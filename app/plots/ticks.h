// SPDX-License-Identifier: GPL-3.0-or-later
// Where the ticks of an axis stand and what they say. Pure: no plot, no pixels but the number of
// ticks that fit.
//
// Linear axes step by 1, 2 or 5 times a power of ten (binary bytes: by powers of two), all ticks
// share one prefix and the last one names the unit: 0, 1, 2, "3 TB/s". Base-2 axes stand on powers
// of two (4 KiB, 32 KiB, 256 KiB, …), base-10 axes on 1, or 1-3, or 1-2-5 of each decade, each with
// its own prefix. A logarithmic axis that shows less than one step falls back to linear ticks.
#pragma once

#include "app/plots/plot_types.h"

#include <QString>

#include <vector>

namespace memscape {

struct Tick
{
    double value = 0;
    QString text;
};

/// Ticks within [low, high], about `wanted` of them (at least 2), in ascending order.
std::vector<Tick> majorTicks(const AxisSpec& axis, double low, double high, int wanted);

/// Of bytes. Where they would need many digits, the lowest tick says what is below and the others what comes on it:
/// "10.2 GiB", "+128", "+256 KiB".
std::vector<Tick> byteTicks(ByteStyle style, double low, double high, int wanted);

/// Positions of fine grid lines between them (logarithmic axes only), none where they would crowd.
std::vector<double> minorTicks(const AxisSpec& axis, double low, double high, int wanted);

/// A value as the crosshair says it: "24 MiB", "12.6 ns", "64", the name of a category.
QString axisValueText(const AxisSpec& axis, double value, int digits = 3);
/// The same, and of a ratio its value: "1.31× (0.42 s)".
QString axisReadoutText(const AxisSpec& axis, double value, int digits = 3);

/// 2¹⁶ for 65536 and such; plain digits below ten million.
QString powerOfTwoText(double value);

} // namespace memscape
