// SPDX-License-Identifier: GPL-3.0-or-later
// Mouse and keys of the schedule's picture.
#include "app/pictures/checkpoint/checkpoint_picture.h"

#include <QKeyEvent>
#include <QMouseEvent>

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
    return Player::shortcuts() + u' ' + tr("P goes to the peak, T changes between rows and true time.");
}

bool CheckpointPicture::isWalk(QPointF at) const
{
    return inBody(layoutNow(), at);
}

bool CheckpointPicture::isButton(QPointF at) const
{
    const ScheduleLayout layout = layoutNow();
    return layout.axisButton.contains(at) || layout.playButton.contains(at);
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
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange
        || event->type() == QEvent::StyleChange)
        forget();
    return WalkPicture::event(event);
}

void CheckpointPicture::mousePressEvent(QMouseEvent* event)
{
    if (event->button() == Qt::LeftButton && layoutNow().axisButton.contains(event->position()))
        return changeAxis();
    WalkPicture::mousePressEvent(event);
}

void CheckpointPicture::keyPressEvent(QKeyEvent* event)
{
    switch (event->key()) {
    case Qt::Key_P: return stopAt(m_state.peak);
    case Qt::Key_T: return changeAxis();
    default: return WalkPicture::keyPressEvent(event);
    }
}

} // namespace memscape
