// SPDX-License-Identifier: GPL-3.0-or-later
// Mouse and keys of the schedule's picture.
#include "app/pictures/checkpoint_picture.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>

#include <algorithm>

namespace memscape {

namespace {

bool inBody(const ScheduleLayout& layout, QPointF at)
{
    const QRectF body = layout.cells.united(layout.memory).adjusted(-14, -4, 4, 4);
    return body.contains(at);
}

} // namespace

QString CheckpointPicture::shortcuts()
{
    return tr("Space plays, arrow keys step (Shift: ten at a time), Page Up and Page Down leap, Home and End go to "
              "the ends, P to the peak, T changes between rows and true time; a drag scrubs.");
}

QString CheckpointPicture::toolTipAt(QPointF at) const
{
    const ScheduleLayout layout = layoutNow();
    if (layout.axisButton.contains(at))
        return tr("Rows of one height, or heights in proportion to time (T)");
    if (layout.playButton.contains(at))
        return tr("Play the schedule (Space)");
    if (m_state.empty() || !inBody(layout, at))
        return {};
    const int step = layout.stepAt(at.y());
    if (!layout.cells.contains(at))
        return m_state.details(step);
    // Beside a cell, what the column keeps is what one points at.
    if (!layout.cell(m_state, step).adjusted(-2, -2, 2, 2).contains(at)) {
        const int stage = std::clamp(int((at.x() - layout.cells.left()) / layout.columnWidth), 0, m_state.length);
        for (const KeptSpan& span : m_state.kept) {
            if (span.stage == stage && span.made < step && step <= span.freed) {
                const QString what = span.isSaved ? tr("x̄%1, what stage %2 saved").arg(stage + 1).arg(stage + 1)
                                                  : tr("x%1, the input of stage %2").arg(stage).arg(stage + 1);
                return tr("%1: kept from step %2 to step %3").arg(what).arg(span.made + 1).arg(span.freed + 1) + u'\n'
                    + m_state.words(step);
            }
        }
    }
    return m_state.details(step);
}

bool CheckpointPicture::event(QEvent* event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        QToolTip::showText(help->globalPos(), toolTipAt(help->pos()), this);
        return true;
    }
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange
        || event->type() == QEvent::StyleChange)
        forget();
    return Picture::event(event);
}

void CheckpointPicture::scrubTo(QPointF at)
{
    setCursor(layoutNow().stepAt(at.y()));
}

void CheckpointPicture::mousePressEvent(QMouseEvent* event)
{
    const ScheduleLayout layout = layoutNow();
    if (event->button() != Qt::LeftButton)
        return Picture::mousePressEvent(event);
    if (layout.axisButton.contains(event->position()))
        return setAxis(m_axis == ScheduleAxis::Rows ? ScheduleAxis::Time : ScheduleAxis::Rows);
    if (layout.playButton.contains(event->position()))
        return setPlaying(!isPlaying());
    if (m_state.empty() || !inBody(layout, event->position()))
        return Picture::mousePressEvent(event);
    setPlaying(false);
    m_scrubbing = true;
    scrubTo(event->position());
}

void CheckpointPicture::mouseMoveEvent(QMouseEvent* event)
{
    if (m_scrubbing)
        return scrubTo(event->position());
    const ScheduleLayout layout = layoutNow();
    const bool button = layout.axisButton.contains(event->position()) || layout.playButton.contains(event->position());
    QWidget::setCursor(button ? Qt::PointingHandCursor : Qt::ArrowCursor);
    emit hoverText(inBody(layout, event->position()) ? m_state.words(layout.stepAt(event->position().y())) : QString());
}

void CheckpointPicture::mouseReleaseEvent(QMouseEvent* event)
{
    m_scrubbing = false;
    Picture::mouseReleaseEvent(event);
}

void CheckpointPicture::leaveEvent(QEvent* event)
{
    emit hoverText({});
    Picture::leaveEvent(event);
}

void CheckpointPicture::hideEvent(QHideEvent* event)
{
    setPlaying(false);
    Picture::hideEvent(event);
}

void CheckpointPicture::keyPressEvent(QKeyEvent* event)
{
    const int step = event->modifiers() & Qt::ShiftModifier ? 10 : 1;
    const int page = std::max(1, int(m_state.steps.size()) / 10);
    const auto go = [this](int to) {
        setPlaying(false);
        setCursor(to);
    };
    switch (event->key()) {
    case Qt::Key_Space: return setPlaying(!isPlaying());
    case Qt::Key_Left:
    case Qt::Key_Up: return go(m_cursor - step);
    case Qt::Key_Right:
    case Qt::Key_Down: return go(m_cursor + step);
    case Qt::Key_PageUp: return go(m_cursor - page);
    case Qt::Key_PageDown: return go(m_cursor + page);
    case Qt::Key_Home: return go(0);
    case Qt::Key_End: return go(int(m_state.steps.size()) - 1);
    case Qt::Key_P: return go(m_state.peak);
    case Qt::Key_T: return setAxis(m_axis == ScheduleAxis::Rows ? ScheduleAxis::Time : ScheduleAxis::Rows);
    default: return Picture::keyPressEvent(event);
    }
}

} // namespace memscape
