// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/measurement_text.h"

#include "app/pictures/common/json_values.h"

#include <QObject>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace memscape {

namespace {

constexpr double staleFactor = 1.4;
constexpr std::size_t stalePoints = 3;

/// NaN where the series has no point at that x.
double valueAt(const Series& series, double x)
{
    for (std::size_t i = 0; i < std::min(series.x.values.size(), series.y.size()); ++i) {
        if (series.x.values[i] == x)
            return series.y[i];
    }
    return std::numeric_limits<double>::quiet_NaN();
}

} // namespace

QString staleText(const Outcome& predicted, const Outcome& measured, const std::string& series)
{
    const Series* ours = predicted.findSeries(series);
    const Series* theirs = measured.findSeries(series);
    if (ours == nullptr || theirs == nullptr || gradeText(measured) == QLatin1String("D"))
        return {};
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(theirs->x.values.size(), theirs->y.size()); ++i) {
        const double ratio = theirs->y[i] / valueAt(*ours, theirs->x.values[i]);
        if (std::isfinite(ratio) && ratio > 0)
            ratios.push_back(ratio);
    }
    if (ratios.size() < stalePoints)
        return {};
    std::ranges::sort(ratios);
    const double middle = ratios[ratios.size() / 2];
    if (middle >= staleFactor)
        return QObject::tr("measured %1× above it").arg(middle, 0, 'f', 1);
    if (middle <= 1 / staleFactor)
        return QObject::tr("measured %1× below it").arg(1 / middle, 0, 'f', 1);
    return {};
}

QString gradeText(const Outcome& measured)
{
    return textOf(member(measured.detail, "quality"), "grade");
}

} // namespace memscape
