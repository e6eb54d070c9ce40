// SPDX-License-Identifier: GPL-3.0-or-later
// Where the parts of the batch picture are: four panels (memory, throughput, to the target, the front), under
// them the schedule as a strip and the sweet spot's reason in a line.
#pragma once

#include "app/pictures/batch-size/batch_state.h"

#include <QRectF>

namespace memscape {

/// Values to pixels along one side of a panel.
struct BatchAxis
{
    double low = 1, high = 2;
    bool isLog = true;

    double share(double value) const;
    double value(double share) const;
    /// Round values on it, at most about so many.
    std::vector<double> ticks(int most, double base = 10) const; ///< powers of `base` on a logarithmic one
};

struct BatchPanel
{
    QRectF frame, title, area;
    BatchAxis x, y;

    QPointF at(double xValue, double yValue) const
    {
        return {area.left() + x.share(xValue) * area.width(), area.bottom() - y.share(yValue) * area.height()};
    }
    double batchAt(double pixel) const { return x.value((pixel - area.left()) / area.width()); }
};

struct BatchLayout
{
    QRectF title;
    BatchPanel memory, throughput, target, front, schedule;
    QRectF play, scheduleText;
    QRectF reason;           ///< the lines about the sweet spot
    QString reasonText;      ///< of three lines at most
    bool hasSchedule = true; ///< there is room for its strip
};

BatchLayout layoutBatch(const BatchState& state, const QRectF& rect);

} // namespace memscape
