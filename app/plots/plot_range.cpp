// SPDX-License-Identifier: GPL-3.0-or-later
// Which part of its data a plot shows: limits that follow the data until a person zooms or pans,
// and the logarithms of the axes.
#include "app/plots/plot_dense.h"
#include "app/plots/plot_private.h"

#include <algorithm>

namespace memscape {

void PlotView::Private::applyAxes()
{
    PlotState& state = scene.state();
    AxisSpec x = specX;
    AxisSpec y = specY;
    x.log = !x.names.isEmpty() ? 0 : logX >= 0 ? logX : x.log;
    y.log = logY >= 0 ? logY : y.log;
    const bool scaleChanged = (x.log != 0) != (state.x.log != 0) || (y.log != 0) != (state.y.log != 0)
        || x.names.isEmpty() != state.x.names.isEmpty();
    state.x = x;
    state.y = y;
    if (scaleChanged) {
        crosshair = {}; // its indices are of the points as they were
        scene.cleanAgain();
        following = true; // limits of another scale say nothing on this one
    }
    rangesDirty = true;
    updateNote();
}

void PlotView::Private::ensureRanges()
{
    PlotState& state = scene.state();
    if (rangesDirty && following) {
        state.xRange = xRange(state.x, state.curves);
        state.yRange = yRange(state.y, state.curves, state.x.log != 0, state.lines);
    }
    rangesDirty = false;
}

bool PlotView::Private::inSight() const
{
    const PlotState& state = scene.state();
    const auto crosses = [&](const CleanCurve& curve) {
        const std::vector<DensePoint> points = visiblePoints(curve, state.xRange);
        for (std::size_t i = 0; i < points.size(); ++i) {
            const double y = points[i].y;
            const double before = i > 0 ? points[i - 1].y : y;
            if (std::max(y, before) >= state.yRange.low && std::min(y, before) <= state.yRange.high)
                return true;
        }
        return false;
    };
    for (std::size_t c = 0; c < state.curves.size(); ++c) {
        if (state.curves[c].visible && crosses(state.cleaned[c]))
            return true;
    }
    return false;
}

void PlotView::Private::changeRange(const AxisRange& x, const AxisRange& y)
{
    ensureRanges();
    following = false;
    scene.state().xRange = sane(x);
    scene.state().yRange = sane(y);
    view->scheduleReplot();
    emit view->rangeChanged();
}

void PlotView::setLogX(int base)
{
    m_d->logX = base;
    m_d->applyAxes();
    scheduleReplot();
}

void PlotView::setLogY(int base)
{
    m_d->logY = base;
    m_d->applyAxes();
    scheduleReplot();
}

void PlotView::resetView()
{
    m_d->following = true;
    m_d->rangesDirty = true;
    scheduleReplot();
    emit rangeChanged();
}

bool PlotView::following() const
{
    return m_d->following;
}

PlotRange PlotView::range() const
{
    m_d->ensureRanges();
    const PlotState& state = m_d->scene.state();
    return {state.xRange.low, state.xRange.high, state.yRange.low, state.yRange.high};
}

void PlotView::setRange(const PlotRange& range)
{
    const PlotState& state = m_d->scene.state();
    m_d->changeRange({range.xLow, range.xHigh, state.x.log != 0}, {range.yLow, range.yHigh, state.y.log != 0});
}

void PlotView::zoom(double xFactor, double yFactor)
{
    m_d->ensureRanges();
    const PlotState& state = m_d->scene.state();
    m_d->changeRange(zoomed(state.xRange, xFactor), zoomed(state.yRange, yFactor));
}

void PlotView::pan(double xShare, double yShare)
{
    m_d->ensureRanges();
    const PlotState& state = m_d->scene.state();
    m_d->changeRange(panned(state.xRange, xShare), panned(state.yRange, yShare));
}

} // namespace memscape
