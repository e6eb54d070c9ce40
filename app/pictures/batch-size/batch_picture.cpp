// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture shows and what a hand does to it.
#include "app/pictures/batch-size/batch_picture.h"

#include "app/plots/plot_style.h"

#include <QKeyEvent>
#include <QMouseEvent>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr int frame = 40;              // ms
constexpr double schedulePlayTime = 5; // s for the whole schedule

QString bytesText(double bytes, ByteStyle style)
{
    return QString::fromStdString(quantityText(bytes, Unit::Byte, style));
}

} // namespace

BatchPicture::BatchPicture(QWidget* parent)
    : Picture({440, 276}, parent)
{
    setAccessibleName(tr("Memory, throughput and steps to the target over the batch"));
    m_timer.setInterval(frame);
    connect(&m_timer, &QTimer::timeout, this, &BatchPicture::advance);
}

void BatchPicture::read(const PictureValues& values)
{
    m_state = batchState(values.device, values.parameters, values.predicted, values.measured);
    m_state.bytes = byteStyle();
}

QString BatchPicture::title() const
{
    QString made = tr("%1, batch %2").arg(m_state.model).arg(m_state.batch, 0, 'f', 0);
    if (m_state.perBatch > 1)
        made += tr(" · an update of %1").arg(shortCount(m_state.batch * m_state.perBatch));
    return made;
}

QString BatchPicture::summary() const
{
    QStringList words{title()};
    if (m_state.curve.empty())
        return problem().isEmpty() ? title() : problem();
    words << tr("%1 on the device").arg(bytesText(m_state.memoryAt(m_state.batch), m_state.bytes));
    words << (m_state.largest > 0 ? tr("the largest batch that fits is %1").arg(m_state.largest, 0, 'f', 0)
                                  : tr("no batch fits"));
    words << tr("%1 examples per second, %2")
                 .arg(shortCount(m_state.throughputAt(m_state.batch)), m_state.boundAt(m_state.batch));
    if (m_state.knowsSteps())
        words << tr("critical batch %1").arg(shortCount(m_state.critical));
    if (m_state.sweetSpot > 0)
        words << tr("sweet spot %1: %2").arg(m_state.sweetSpot, 0, 'f', 0).arg(m_state.sweetReason);
    return words.join(QStringLiteral(". "));
}

QString BatchPicture::hint() const
{
    return tr("Drag the batch in the upper panels, click a point in the lower ones. Space plays the schedule.");
}

double BatchPicture::largestShown() const
{
    return m_state.curve.empty() ? 1 : m_state.curve.back().batch;
}

void BatchPicture::setBatch(double batch)
{
    batch = std::clamp(std::round(batch), 1.0, largestShown());
    if (batch != m_state.batch)
        emit parameterEdited(QStringLiteral("batch"), QString::number(batch, 'f', 0));
}

void BatchPicture::dragTo(const QPointF& at, const BatchLayout& layout)
{
    if (m_drag == Drag::Batch)
        return setBatch(layout.memory.batchAt(layout.throughput.frame.contains(at)
                                                  ? at.x() - layout.throughput.area.left() + layout.memory.area.left()
                                                  : at.x()));
    m_moment = std::clamp((at.x() - layout.schedule.area.left()) / layout.schedule.area.width(), 0.0, 1.0);
    update();
}

const BatchMark* BatchPicture::markAt(const QPointF& at, const BatchLayout& layout) const
{
    const BatchMark* nearest = nullptr;
    double best = 12 * plotUnit();
    const auto look = [&](const std::vector<BatchMark>& marks, const BatchPanel& panel, auto place) {
        if (!panel.frame.contains(at))
            return;
        for (const BatchMark& mark : marks) {
            const QPointF off = place(mark) - at;
            if (const double distance = std::hypot(off.x(), off.y()); distance < best) {
                best = distance;
                nearest = &mark;
            }
        }
    };
    look(m_state.curve, layout.target,
         [&](const BatchMark& mark) { return layout.target.at(mark.steps, mark.examples); });
    look(m_state.front, layout.front,
         [&](const BatchMark& mark) { return layout.front.at(mark.allocated, mark.throughput); });
    return nearest;
}

QString BatchPicture::toolTipAt(QPointF at) const
{
    const BatchLayout layout = layoutBatch(m_state, QRectF(rect()));
    if (layout.reason.contains(at) && m_state.sweetSpot > 0)
        return tr("Sweet spot %1: %2. A click takes it.").arg(m_state.sweetSpot, 0, 'f', 0).arg(m_state.sweetReason);
    if (const BatchMark* mark = markAt(at, layout)) {
        QString text = mark->accumulation > 1
            ? tr("batch %1 × %2").arg(mark->batch, 0, 'f', 0).arg(mark->accumulation, 0, 'f', 0)
            : tr("batch %1").arg(mark->batch, 0, 'f', 0);
        if (layout.target.frame.contains(at))
            return text
                + tr(": ≈ %1 steps, %2 examples").arg(shortCount(std::ceil(mark->steps)), shortCount(mark->examples));
        text += tr(": %1, %2 examples/s").arg(bytesText(mark->allocated, m_state.bytes), shortCount(mark->throughput));
        return std::isfinite(mark->examples) ? text + tr(", %1 examples to the target").arg(shortCount(mark->examples))
                                             : text;
    }
    for (const BatchPanel* panel : {&layout.memory, &layout.throughput}) {
        if (!panel->area.contains(at))
            continue;
        const double batch = std::clamp(std::round(panel->batchAt(at.x())), 1.0, largestShown());
        return tr("batch %1: %2, %3 examples/s, %4")
            .arg(batch, 0, 'f', 0)
            .arg(bytesText(m_state.memoryAt(batch), m_state.bytes), shortCount(m_state.throughputAt(batch)),
                 m_state.boundAt(batch));
    }
    return {};
}

void BatchPicture::mousePressEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton || m_state.curve.empty())
        return;
    const BatchLayout layout = layoutBatch(m_state, QRectF(rect()));
    const QPointF at = event->position();
    if (layout.hasSchedule && layout.play.adjusted(-4, -4, 4, 4).contains(at))
        return togglePlay();
    if (layout.reason.contains(at) && m_state.sweetSpot > 0)
        return setBatch(m_state.sweetSpot);
    if (const BatchMark* mark = markAt(at, layout)) {
        emit changesWanted({{"batch", QString::number(mark->batch, 'f', 0).toStdString()},
                            {"accumulation", QString::number(mark->accumulation, 'f', 0).toStdString()}},
                           tr("Choose a batch"));
        return;
    }
    if (layout.memory.frame.contains(at) || layout.throughput.frame.contains(at)) {
        m_drag = Drag::Batch;
        hold();
    } else if (layout.schedule.frame.contains(at) && !m_state.schedule.empty()) {
        m_drag = Drag::Schedule;
        m_timer.stop();
    } else {
        return;
    }
    dragTo(at, layout);
}

void BatchPicture::mouseMoveEvent(QMouseEvent* event)
{
    const BatchLayout layout = layoutBatch(m_state, QRectF(rect()));
    if (m_drag != Drag::None)
        return dragTo(event->position(), layout);
    const QPointF at = event->position();
    const bool isAcross =
        layout.memory.frame.contains(at) || layout.throughput.frame.contains(at) || layout.schedule.area.contains(at);
    const bool isClick =
        markAt(at, layout) || layout.play.contains(at) || (layout.reason.contains(at) && m_state.sweetSpot > 0);
    setCursor(isClick ? Qt::PointingHandCursor : isAcross ? Qt::SizeHorCursor : Qt::ArrowCursor);
    if (isClick)
        tell(*event);
    else
        emit hoverText(toolTipAt(at));
}

void BatchPicture::mouseReleaseEvent(QMouseEvent* event)
{
    m_drag = Drag::None;
    Picture::mouseReleaseEvent(event);
}

void BatchPicture::keyPressEvent(QKeyEvent* event)
{
    const bool isFine = event->modifiers() & Qt::ShiftModifier;
    switch (event->key()) {
    case Qt::Key_Right: return setBatch(isFine ? m_state.batch + 1 : m_state.batch * 2);
    case Qt::Key_Left: return setBatch(isFine ? m_state.batch - 1 : m_state.batch / 2);
    case Qt::Key_Home: return setBatch(1);
    case Qt::Key_End: return setBatch(m_state.largest > 0 ? m_state.largest : largestShown());
    case Qt::Key_Return:
    case Qt::Key_Enter: return m_state.sweetSpot > 0 ? setBatch(m_state.sweetSpot) : Picture::keyPressEvent(event);
    case Qt::Key_Space: return togglePlay();
    default: Picture::keyPressEvent(event);
    }
}

void BatchPicture::togglePlay()
{
    if (m_state.schedule.empty())
        return;
    if (m_timer.isActive())
        return m_timer.stop(), update();
    if (m_moment >= 1)
        m_moment = 0;
    if (motionAllowed())
        m_timer.start();
    else
        m_moment = m_moment < 1 ? std::min(1.0, m_moment + 0.1) : 0; // a step at a time
    update();
}

void BatchPicture::advance()
{
    m_moment = std::min(1.0, m_moment + frame / 1000.0 / schedulePlayTime);
    if (m_moment >= 1)
        m_timer.stop();
    update();
}

BatchSchedulePoint BatchPicture::scheduleNow() const
{
    const double step = m_moment * m_state.scheduleSteps;
    BatchSchedulePoint now = m_state.schedule.front();
    for (const BatchSchedulePoint& point : m_state.schedule) {
        if (point.step <= step)
            now = point;
    }
    return now;
}

} // namespace memscape
