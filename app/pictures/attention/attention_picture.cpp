// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/attention/attention_picture.h"

#include "app/plots/plot_style.h"
#include "core/experiment/outcome.h"

#include <QKeyEvent>
#include <QPainter>

#include <algorithm>

namespace memscape {

AttentionPicture::AttentionPicture(QWidget* parent)
    : WalkPicture({290, 200}, parent)
{
    setAccessibleName(tr("Attention, tile by tile"));
}

void AttentionPicture::read(const PictureValues& values)
{
    AttentionState state;
    if (values.predicted)
        state = readAttention(values.predicted->detail, values.measured ? values.measured->detail : Json());
    state.byteStyle = byteStyle();
    setWalk(std::move(state));
}

void AttentionPicture::setWalk(AttentionState state)
{
    m_state = std::move(state);
    const int steps = int(m_state.steps.size());
    setSteps(steps, int(0.45 * steps)); // some rows are done, some are to come
}

QString AttentionPicture::summary() const
{
    if (m_state.empty())
        return tr("No prediction.");
    return tr("%1: %2 × %3 scores a head, %4 of one sequence written by standard attention; flash "
              "attention writes %5 instead. %6.")
        .arg(m_state.title)
        .arg(m_state.queries)
        .arg(m_state.keys)
        .arg(m_state.bytes(m_state.scoreBytes), m_state.bytes(m_state.logBytes), cursorText());
}

void AttentionPicture::draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const
{
    paintAttention(painter, m_state, layoutAttention(m_state, rect), cursor(), playSign(isScreen), theme);
}

QString AttentionPicture::shortcuts()
{
    return Player::shortcuts() + u' ' + tr("Up and Down go a row of tiles.");
}

int AttentionPicture::stepNear(QPointF at) const
{
    const AttentionLayout layout = layoutNow();
    if (m_state.empty())
        return -1;
    const int row = std::clamp(int((at.y() - layout.matrix.top()) / layout.cellHeight), 0, m_state.rows - 1);
    const int column = std::clamp(int((at.x() - layout.matrix.left()) / layout.cellWidth), 0, m_state.columns - 1);
    return m_state.stepAt(row, column);
}

QString AttentionPicture::toolTipAt(QPointF at) const
{
    if (isWalk(at))
        return m_state.words(stepNear(at));
    return playButton().contains(at) ? tr("Walk over the tiles (Space)") : QString();
}

void AttentionPicture::keyPressEvent(QKeyEvent* event)
{
    const bool up = event->key() == Qt::Key_Up;
    if (m_state.empty() || (!up && event->key() != Qt::Key_Down))
        return WalkPicture::keyPressEvent(event);
    const TileStep& at = m_state.steps[std::size_t(cursor())];
    stopAt(m_state.stepAt(std::clamp(at.row + (up ? -1 : 1), 0, m_state.rows - 1), at.column));
}

} // namespace memscape
