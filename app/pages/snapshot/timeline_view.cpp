// SPDX-License-Identifier: GPL-3.0-or-later
// What hands do to the timeline.
#include "app/pages/snapshot/timeline_view.h"

#include "app/pages/snapshot/snapshot_words.h"
#include "app/pictures/training-memory/memory_state.h"
#include "app/plots/plot_style.h"

#include <QKeyEvent>
#include <QMouseEvent>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double zoomStep = 0.8;
constexpr double clickRoom = 4; ///< pixels that a click may wander
constexpr int stackLines = 10;

} // namespace

TimelineView::TimelineView(QWidget* parent)
    : SnapshotView(parent)
{
    setFocusPolicy(Qt::WheelFocus); // keys act on what the wheel has zoomed
    setAccessibleName(tr("Allocated and reserved bytes over the events of the snapshot"));
}

void TimelineView::shownChanged(bool isOtherDevice)
{
    if (isOtherDevice && shown().device)
        m_sight = whole();
    if (!shown().device)
        return;
    const SnapshotBytes bytes = shown().device->lifetimes().bytesAt(shown().moment);
    setAccessibleDescription(tr("%1: %2 allocated, %3 reserved")
                                 .arg(momentText(*shown().device, shown().moment),
                                      memoryText(double(bytes.allocated), shown().bytes),
                                      memoryText(double(bytes.reserved), shown().bytes)));
}

TimelineSight TimelineView::whole() const
{
    TimelineSight sight = wholeSight(*shown().device);
    if (!m_prediction.empty())
        sight.top = std::max(sight.top, 1.06 * *std::ranges::max_element(m_prediction));
    return sight;
}

void TimelineView::setPrediction(PredictedStep step)
{
    if (step == m_prediction)
        return;
    const bool wasWhole = shown().device && m_sight.top == whole().top;
    m_prediction = std::move(step);
    if (wasWhole)
        m_sight.top = whole().top;
    changed();
}

void TimelineView::setSight(const TimelineSight& sight)
{
    m_sight = shown().device ? withMemory(*shown().device, sight) : sight;
    changed();
}

void TimelineView::look(std::size_t first, std::size_t last)
{
    if (!shown().device)
        return;
    const TimelineSight all = whole();
    const std::size_t room = std::max(fewestMoments, (last - std::min(first, last)) / 2);
    setSight({first - std::min(first, room), std::min(last + room, all.last), all.bottom, all.top});
}

TimelineChart TimelineView::chartIn(const QRectF& rect) const
{
    return layoutTimeline(*shown().device, m_sight, rect, shown().byTime, shown().bytes);
}

const TimelineChart& TimelineView::chartNow() const
{
    if (!m_chart)
        m_chart = shown().device ? chartIn(QRectF(rect())) : TimelineChart();
    return *m_chart;
}

QString TimelineView::hint() const
{
    return tr("Wheel zooms, Esc shows all, drag selects a range, click sets the moment.");
}

QString TimelineView::shortcuts()
{
    return tr(
        "← → move the moment event by event, with Shift in larger steps, Home and End to the ends, P to the peak; "
        "+ − zoom, 0 shows all, Z the selection, Page up and down pan, Esc ends the selection, then shows all. The "
        "wheel zooms at the pointer (Shift: bytes), a double click shows all, a drag selects, the right button pans.");
}

QString TimelineView::textAt(QPointF at) const
{
    if (!shown().device)
        return {};
    const SnapshotDevice& device = *shown().device;
    const TimelineChart& chart = chartNow();
    for (const auto* stretches : {&chart.phases, &chart.steps}) {
        for (const TimelineStretch& stretch : *stretches) {
            if (stretch.rect.contains(at))
                return stretch.name;
        }
    }
    if (!chart.area.contains(at))
        return {};
    const std::size_t moment = chart.peakAt(at.x());
    const SnapshotBytes bytes = device.lifetimes().bytesAt(moment);
    const QString state = tr("%1 allocated, %2 reserved, %3")
                              .arg(memoryText(double(bytes.allocated), shown().bytes),
                                   memoryText(double(bytes.reserved), shown().bytes), momentText(device, moment));
    const TimelineShape* shape = chart.at(at);
    if (shape == nullptr)
        return state;
    if (shape->lifetime == noLifetime)
        return tr("smaller blocks of %1 · %2").arg(categoryName(shape->category), state);
    const Lifetime& life = device.lifetimes()[shape->lifetime];
    QString text = lifetimeText(device, shape->lifetime, shown().bytes);
    if (const QString stack = stackText(device.snapshot(), life.stack, stackLines); !stack.isEmpty())
        text += u'\n' + stack;
    return text;
}

void TimelineView::mousePressEvent(QMouseEvent* event)
{
    if (!shown().device || m_pressed)
        return;
    setPointer(event->position());
    m_pressed = event->position();
    m_pressedSight = m_sight;
    m_button = event->button();
    m_isDragged = false;
}

void TimelineView::mouseMoveEvent(QMouseEvent* event)
{
    SnapshotView::mouseMoveEvent(event);
    if (!shown().device)
        return;
    const TimelineChart& chart = chartNow();
    setCursor(chart.area.contains(event->position()) ? Qt::CrossCursor : Qt::ArrowCursor);
    if (!m_pressed || chart.area.width() < 1)
        return;
    const QPointF way = event->position() - *m_pressed;
    m_isDragged |= std::hypot(way.x(), way.y()) > clickRoom * plotUnit();
    if (m_isDragged && m_button != Qt::LeftButton) {
        setCursor(Qt::ClosedHandCursor);
        setSight(pannedSight(*shown().device, m_pressedSight, shown().byTime, -way.x() / chart.area.width()));
    }
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event)
{
    if (!m_pressed || event->button() != m_button)
        return;
    const QPointF pressed = *m_pressed;
    const bool wasDragged = std::exchange(m_isDragged, false);
    m_pressed.reset();
    update();
    if (!shown().device || m_button != Qt::LeftButton)
        return;
    const TimelineChart& chart = chartNow();
    if (!wasDragged) {
        if (chart.area.contains(event->position()))
            emit momentWanted(chart.peakAt(event->position().x()));
        return;
    }
    const std::size_t a = chart.momentAt(pressed.x()), b = chart.momentAt(event->position().x());
    if (a != b)
        emit rangeWanted(std::min(a, b), std::max(a, b));
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event)
{
    if (shown().device && event->button() == Qt::LeftButton) {
        m_pressed.reset();
        setSight(whole());
    }
}

void TimelineView::wheelEvent(QWheelEvent* event)
{
    event->accept();
    // A touchpad may turn Shift+wheel into a sideways one.
    const QPoint angle = event->angleDelta();
    const bool isShift = event->modifiers() & Qt::ShiftModifier;
    const TimelineChart& chart = chartNow();
    if (!shown().device || chart.area.width() < 1)
        return;
    if (angle.x() != 0 && angle.y() == 0 && !isShift)
        return setSight(pannedSight(*shown().device, m_sight, shown().byTime, -angle.x() / 1200.0));
    const double factor = std::pow(zoomStep, (angle.y() != 0 ? angle.y() : angle.x()) / 120.0);
    const double share = (event->position().x() - chart.area.left()) / chart.area.width();
    setSight(isShift ? chart.zoomedBytes(*shown().device, event->position(), factor, whole().top)
                     : zoomedSight(*shown().device, m_sight, shown().byTime, share, factor));
}

/// About the moment, or the middle when that is out of sight.
void TimelineView::zoomBy(double factor)
{
    const TimelineChart& chart = chartNow();
    const bool isIn = shown().moment >= m_sight.first && shown().moment <= m_sight.last && chart.area.width() > 0;
    const double share = isIn ? (chart.x(double(shown().moment)) - chart.area.left()) / chart.area.width() : 0.5;
    setSight(zoomedSight(*shown().device, m_sight, shown().byTime, share, factor));
}

void TimelineView::moveMoment(int key, bool isFar)
{
    const std::size_t events = shown().device->lifetimes().events();
    const std::size_t step = isFar ? std::max<std::size_t>(1, (m_sight.last - m_sight.first) / 50) : 1;
    std::size_t moment = shown().moment;
    switch (key) {
    case Qt::Key_Left: moment -= std::min(moment, step); break;
    case Qt::Key_Right: moment = std::min(moment + step, events); break;
    case Qt::Key_Home: moment = 0; break;
    case Qt::Key_End: moment = events; break;
    default: moment = shown().device->timeline().peakAllocated(shown().range.first, shown().range.last);
    }
    if (moment < m_sight.first || moment > m_sight.last) { // it stays in sight
        const std::size_t width = m_sight.last - m_sight.first;
        TimelineSight sight = m_sight;
        sight.first = std::min(moment - std::min(moment, width / 2), events - std::min(events, width));
        sight.last = sight.first + width;
        setSight(sight);
    }
    emit momentWanted(moment);
}

void TimelineView::keyPressEvent(QKeyEvent* event)
{
    if (!shown().device)
        return QWidget::keyPressEvent(event);
    const SnapshotDevice& device = *shown().device;
    switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right:
    case Qt::Key_Home:
    case Qt::Key_End:
    case Qt::Key_P: return moveMoment(event->key(), event->modifiers() & Qt::ShiftModifier);
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoomBy(zoomStep);
    case Qt::Key_Minus: return zoomBy(1 / zoomStep);
    case Qt::Key_0: return setSight(whole());
    case Qt::Key_Z: return look(shown().range.first, shown().range.last);
    case Qt::Key_PageUp:
    case Qt::Key_PageDown:
        return setSight(pannedSight(device, m_sight, shown().byTime, event->key() == Qt::Key_PageUp ? -0.5 : 0.5));
    case Qt::Key_Escape:
        if (shown().isSelected) {
            emit rangeWanted(0, device.lifetimes().events());
            return;
        }
        return setSight(whole());
    default: QWidget::keyPressEvent(event);
    }
}

} // namespace memscape
