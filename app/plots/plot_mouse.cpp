// SPDX-License-Identifier: GPL-3.0-or-later
// The mouse and the wheel over a plot.
#include "app/plots/plot_private.h"

#include <QContextMenuEvent>
#include <QLineF>
#include <QMouseEvent>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double smallestBand = 20;    // pixels; a smaller rectangle is a slip of the hand
constexpr double grabDistance = 5;     // pixels around a marker's line
constexpr double clickDistance = 9;    // pixels around a curve
constexpr double togetherDistance = 6; // pixels: closer, one point hides the other

} // namespace

bool PlotView::eventFilter(QObject* watched, QEvent* event)
{
    if (watched != m_d->scene.widget())
        return QWidget::eventFilter(watched, event);
    switch (event->type()) {
    case QEvent::MouseButtonPress: return m_d->mousePress(*static_cast<QMouseEvent*>(event));
    case QEvent::MouseMove: return m_d->mouseMove(*static_cast<QMouseEvent*>(event));
    case QEvent::MouseButtonRelease: return m_d->mouseRelease(*static_cast<QMouseEvent*>(event));
    case QEvent::MouseButtonDblClick: return m_d->mouseDoubleClick(*static_cast<QMouseEvent*>(event));
    case QEvent::Wheel: return m_d->wheel(*static_cast<QWheelEvent*>(event));
    case QEvent::ContextMenu: // QCustomPlot lets nothing of the mouse through to its parents
        contextMenuEvent(static_cast<QContextMenuEvent*>(event));
        return true;
    case QEvent::Leave: m_d->leave(); break;
    default: break;
    }
    return QWidget::eventFilter(watched, event);
}

int PlotView::Private::markerAt(QPointF position) const
{
    const PlotMapper map = scene.mapper();
    const auto& markers = scene.state().markers;
    for (int i = static_cast<int>(markers.size()) - 1; i >= 0; --i) {
        const Marker& marker = markers[static_cast<std::size_t>(i)];
        const bool onLine = std::fabs(map.toX(marker.x) - position.x()) <= grabDistance && map.rect.contains(position);
        if (marker.draggable
            && (onLine || markerPill(scene.state(), static_cast<std::size_t>(i), map).contains(position)))
            return i;
    }
    return -1;
}

int PlotView::Private::markerAlong(const QString& curve) const
{
    const auto& markers = scene.state().markers;
    for (std::size_t i = 0; i < markers.size(); ++i) {
        if (markers[i].draggable && !curve.isEmpty() && markers[i].along == curve)
            return static_cast<int>(i);
    }
    return -1;
}

QPointF PlotView::Private::lonePointAt(QPointF position) const
{
    const QString key = curveAt(position);
    const PlotState& state = scene.state();
    const PlotMapper map = scene.mapper();
    for (std::size_t c = 0; c < state.curves.size(); ++c) {
        const CleanCurve& clean = state.cleaned[c];
        if (!key.isEmpty() && state.curves[c].key == key && clean.x.size() == 1)
            return {map.toX(clean.x[0]), map.toY(clean.y[0])};
    }
    return position;
}

QStringList PlotView::Private::lonePointsAt(QPointF position) const
{
    const QPointF place = lonePointAt(position);
    QStringList keys;
    const PlotState& state = scene.state();
    const PlotMapper map = scene.mapper();
    for (std::size_t c = 0; place != position && c < state.curves.size(); ++c) {
        const CleanCurve& clean = state.cleaned[c];
        if (!state.curves[c].visible || clean.x.size() != 1)
            continue;
        const QPointF point(map.toX(clean.x[0]), map.toY(clean.y[0]));
        if (QLineF(point, place).length() <= togetherDistance)
            keys.prepend(state.curves[c].key);
    }
    return keys;
}

int PlotView::Private::legendAt(QPointF position) const
{
    for (const LegendEntry& entry : scene.header().legend) {
        if (entry.rect.contains(position))
            return static_cast<int>(entry.curve);
    }
    return -1;
}

QString PlotView::Private::curveAt(QPointF position) const
{
    const PlotState& state = scene.state();
    const PlotMapper map = scene.mapper();
    double best = clickDistance;
    QString key;
    for (std::size_t c = 0; c < state.curves.size(); ++c) {
        if (!state.curves[c].visible || state.curves[c].role == CurveRole::Area)
            continue;
        const CleanCurve& clean = state.cleaned[c];
        const auto from = std::ranges::lower_bound(clean.x, map.fromX(position.x() - clickDistance));
        const auto to = std::ranges::upper_bound(clean.x, map.fromX(position.x() + clickDistance));
        for (auto it = from; it != to; ++it) {
            const auto i = static_cast<std::size_t>(it - clean.x.begin());
            const double d = std::hypot(map.toX(clean.x[i]) - position.x(), map.toY(clean.y[i]) - position.y());
            if (d < best || (d == best && !key.isEmpty())) { // what is drawn on top
                best = d;
                key = state.curves[c].key;
            }
        }
    }
    return key;
}

bool PlotView::Private::mousePress(QMouseEvent& event)
{
    view->setFocus(Qt::MouseFocusReason);
    if (event.button() != Qt::LeftButton && event.button() != Qt::MiddleButton)
        return false;
    ensureRanges();
    pressed = last = event.position();
    moved = false;
    const QRectF rect = scene.mapper().rect;
    int marker = markerAt(pressed);
    if (marker < 0 && rect.contains(pressed))
        marker = markerAlong(curveAt(pressed));
    if (marker >= 0 && event.button() == Qt::LeftButton) {
        drag = Drag::MoveMarker;
        dragged = scene.state().markers[static_cast<std::size_t>(marker)].key;
    } else if (rect.contains(pressed)) {
        const bool isLeft = event.button() == Qt::LeftButton;
        drag = rubberBand && isLeft ? Drag::RubberBand : pen && isLeft ? Drag::Pen : Drag::Pan;
        if (drag == Drag::Pen)
            drawTo(pressed, pressed); // a click sets a point
    } else if (pressed.y() > rect.bottom() && pressed.x() >= rect.left()) {
        drag = Drag::PanX;
    } else if (pressed.x() < rect.left() && pressed.y() >= rect.top()) {
        drag = Drag::PanY;
    }
    return true;
}

bool PlotView::Private::mouseMove(QMouseEvent& event)
{
    const QPointF at = event.position();
    if (drag == Drag::None || event.buttons() == Qt::NoButton) {
        drag = Drag::None;
        hover(at);
        return true;
    }
    if (!moved && (at - pressed).manhattanLength() < 3)
        return true;
    moved = true;
    const PlotState& state = scene.state();
    const PlotMapper map = scene.mapper();
    const double dx = (last.x() - at.x()) / map.rect.width();
    const double dy = (at.y() - last.y()) / map.rect.height();
    const QPointF before = std::exchange(last, at);
    switch (drag) {
    case Drag::Pan: changeRange(panned(state.xRange, dx), panned(state.yRange, dy)); break;
    case Drag::PanX: changeRange(panned(state.xRange, dx), state.yRange); break;
    case Drag::PanY: changeRange(state.xRange, panned(state.yRange, dy)); break;
    case Drag::MoveMarker: moveMarker(map.fromX(std::clamp(at.x(), map.rect.left(), map.rect.right()))); break;
    case Drag::RubberBand: scene.replotOverlay(); break;
    case Drag::Pen: drawTo(before, at); break;
    case Drag::None: break;
    }
    return true;
}

void PlotView::Private::drawTo(QPointF from, QPointF to)
{
    const PlotMapper map = scene.mapper();
    const auto value = [&map](QPointF pixel) {
        return QPointF(map.fromX(std::clamp(pixel.x(), map.rect.left(), map.rect.right())),
                       map.fromY(std::clamp(pixel.y(), map.rect.top(), map.rect.bottom())));
    };
    emit view->penMoved(value(from), value(to));
}

void PlotView::Private::moveMarker(double x)
{
    for (Marker& marker : scene.state().markers) {
        if (marker.key != dragged)
            continue;
        marker.x = x;
        view->scheduleReplot();
        emit view->markerDragged(dragged, x); // may replace the markers
        return;
    }
}

bool PlotView::Private::mouseRelease(QMouseEvent& event)
{
    const Drag was = std::exchange(drag, Drag::None);
    const QPointF at = event.position();
    if (was == Drag::MoveMarker && moved) {
        const auto& markers = scene.state().markers;
        const auto marker = std::ranges::find(markers, dragged, &Marker::key);
        if (marker != markers.end())
            emit view->markerReleased(dragged, double(marker->x)); // a copy: slots replace markers
    } else if (was == Drag::Pen) {
        emit view->penLifted();
    } else if (was == Drag::RubberBand && moved) {
        zoomInto(QRectF(pressed, at).normalized());
    } else if (!moved && event.button() == Qt::LeftButton) {
        click(at);
    }
    if (moved)
        hover(at); // what was read before the drag lies elsewhere
    return true;
}

void PlotView::Private::zoomInto(const QRectF& rectangle)
{
    const PlotMapper map = scene.mapper();
    const QRectF band = rectangle.intersected(map.rect);
    const PlotState& state = scene.state();
    AxisRange x = state.xRange;
    AxisRange y = state.yRange;
    if (band.width() >= smallestBand) {
        x.low = state.xRange.fromShare(map.shareX(band.left()));
        x.high = state.xRange.fromShare(map.shareX(band.right()));
    }
    if (band.height() >= smallestBand) {
        y.low = state.yRange.fromShare(map.shareY(band.bottom()));
        y.high = state.yRange.fromShare(map.shareY(band.top()));
    }
    if (band.width() >= smallestBand || band.height() >= smallestBand)
        changeRange(x, y);
    scene.replotOverlay();
}

void PlotView::Private::click(QPointF at)
{
    const int entry = legendAt(at);
    if (entry < 0) {
        const QStringList together = lonePointsAt(at);
        if (together.size() > 1)
            emit view->pointsClicked(together, scene.widget()->mapToGlobal(at).toPoint());
        else if (const QString key = curveAt(at); !key.isEmpty())
            emit view->curveClicked(key);
        return;
    }
    std::vector<Curve> curves = scene.state().curves;
    Curve& curve = curves[static_cast<std::size_t>(entry)];
    curve.visible = !curve.visible;
    if (curve.visible)
        hiddenByHand.remove(curve.key);
    else
        hiddenByHand.insert(curve.key);
    view->setCurves(std::move(curves));
}

bool PlotView::Private::mouseDoubleClick(QMouseEvent& event)
{
    if (event.button() == Qt::LeftButton && legendAt(event.position()) < 0 && !pen)
        view->resetView();
    return true;
}

bool PlotView::Private::wheel(QWheelEvent& event)
{
    ensureRanges();
    // A touchpad may turn Shift+wheel into a sideways one.
    const QPoint angle = event.angleDelta();
    const double delta = angle.y() != 0 ? angle.y() : angle.x();
    if (delta == 0)
        return true;
    const double factor = std::pow(0.85, delta / 120.0);
    const PlotState& state = scene.state();
    const PlotMapper map = scene.mapper();
    const QPointF at = event.position();
    const bool onX = at.y() > map.rect.bottom() || event.modifiers() & Qt::ControlModifier;
    const bool onY = at.x() < map.rect.left() || event.modifiers() & Qt::ShiftModifier;
    AxisRange x = state.xRange;
    AxisRange y = state.yRange;
    if (onX || !onY)
        x = zoomed(x, factor, std::clamp(map.shareX(at.x()), 0.0, 1.0));
    if (onY || !onX)
        y = zoomed(y, factor, std::clamp(map.shareY(at.y()), 0.0, 1.0));
    changeRange(x, y);
    return true;
}

void PlotView::Private::leave()
{
    scene.setHoveredLegend(-1);
    if (!byKeyboard && crosshair.sample.found)
        setCrosshair({}, {});
}

void PlotView::Private::hover(QPointF at)
{
    const PlotMapper map = scene.mapper();
    const bool inside = map.rect.contains(at);
    const int marker = markerAt(at);
    QWidget* widget = scene.widget();
    const int entry = legendAt(at);
    widget->setToolTip(entry < 0 ? QString() : scene.state().curves[std::size_t(entry)].name); // it may be shortened
    if (marker >= 0 || (inside && markerAlong(curveAt(at)) >= 0))
        widget->setCursor(Qt::SizeHorCursor);
    else if (inside && lonePointAt(at) != at)
        widget->setCursor(Qt::PointingHandCursor);
    else if (entry >= 0)
        widget->setCursor(Qt::PointingHandCursor);
    else if (!inside && at.y() > map.rect.bottom())
        widget->setCursor(Qt::SizeHorCursor);
    else if (!inside && at.x() < map.rect.left() && at.y() > map.rect.top())
        widget->setCursor(Qt::SizeVerCursor);
    else
        widget->setCursor(rubberBand || pen ? Qt::CrossCursor : Qt::ArrowCursor);
    if (!crosshairOn)
        return;
    byKeyboard = false;
    if (!inside) {
        if (crosshair.sample.found)
            setCrosshair({}, {});
        return;
    }
    const PlotState& state = scene.state();
    const QPointF point = lonePointAt(at); // a dot of its own is what one points at
    setCrosshair(nearestSample(state.curves, state.cleaned, state.xRange, map.shareX(point.x())), point);
}

void PlotView::Private::paintOverlay(QPainter& painter)
{
    const PlotMapper map = scene.mapper();
    if (drag == Drag::RubberBand && moved)
        paintRubberBand(painter, QRectF(pressed, last).normalized().intersected(map.rect), scene.theme());
    else if (drag == Drag::None)
        paintCrosshair(painter, scene.state(), map, scene.theme(), crosshair);
    if (keyboardFocus)
        paintFocus(painter, QRectF(scene.widget()->rect()), scene.theme());
}

} // namespace memscape
