// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/attention_picture.h"

#include "app/plots/plot_style.h"
#include "core/experiment/outcome.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr int frameTime = 33; ///< ms
constexpr double playTime =
    9000; ///< ms for a whole walk, unless its steps would be slower than that
constexpr double slowestStep = 250; ///< ms

} // namespace

AttentionPicture::AttentionPicture(QWidget* parent)
    : Picture(parent)
{
    setAccessibleName(tr("Attention, tile by tile"));
    m_frames.setInterval(frameTime);
    connect(&m_frames, &QTimer::timeout, this, &AttentionPicture::nextFrame);
}

void AttentionPicture::setState(const Experiment&, const Device&, const Parameters&,
                                const Prediction* predicted, const Measurement*)
{
    AttentionState state;
    if (predicted)
        state = readAttention(predicted->detail);
    state.byteStyle = byteStyle();
    setWalk(std::move(state));
}

void AttentionPicture::setWalk(AttentionState state)
{
    const double share = m_state.empty() ? 0 : m_state.share(m_cursor);
    m_state = std::move(state);
    const int last = int(m_state.steps.size()) - 1;
    const double wanted = m_touched ? share : 0.45;
    m_cursor = last < 0 ? -1 : std::clamp(int(std::lround(wanted * (last + 1))) - 1, 0, last);
    if (m_state.empty())
        setPlaying(false);
    setAccessibleDescription(summary());
    update();
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
        .arg(m_state.bytes(m_state.scoreBytes), m_state.bytes(m_state.logBytes),
             m_state.words(m_cursor));
}

QSize AttentionPicture::sizeHint() const
{
    return {int(840 * plotUnit()), int(290 * plotUnit())};
}

QSize AttentionPicture::minimumSizeHint() const
{
    return {int(480 * plotUnit()), int(200 * plotUnit())};
}

void AttentionPicture::setCursor(int step)
{
    if (m_state.empty())
        return;
    m_touched = true;
    const int next = std::clamp(step, 0, int(m_state.steps.size()) - 1);
    if (next == m_cursor)
        return;
    m_cursor = next;
    if (!isPlaying()) // a screen reader is told where it came to rest
        setAccessibleDescription(m_state.words(m_cursor));
    update();
    emit cursorMoved(m_cursor);
}

void AttentionPicture::setPlaying(bool playing)
{
    if (playing == isPlaying() || (playing && m_state.empty()))
        return;
    if (playing && m_cursor >= int(m_state.steps.size()) - 1)
        setCursor(0);
    if (playing) {
        m_progress = m_cursor;
        m_frames.start();
    } else {
        m_frames.stop();
        setAccessibleDescription(summary());
    }
    update();
}

void AttentionPicture::nextFrame()
{
    const double steps = double(m_state.steps.size());
    m_progress += frameTime / std::min(slowestStep, playTime / std::max(1.0, steps));
    setCursor(int(m_progress));
    if (m_cursor >= int(steps) - 1)
        setPlaying(false);
}

void AttentionPicture::paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const
{
    painter.save();
    painter.fillRect(rect, theme.background);
    paintAttention(painter, m_state, layoutAttention(m_state, rect), m_cursor, false, theme);
    painter.restore();
}

void AttentionPicture::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    const Theme& theme = currentTheme();
    painter.fillRect(rect(), theme.background);
    paintAttention(painter, m_state, layoutNow(), m_cursor, isPlaying(), theme);
    paintFocusRing(painter, theme);
}

QString AttentionPicture::shortcuts()
{
    return tr("Space plays, arrow keys step (Shift: ten at a time), Home and End go to the ends; a "
              "drag over "
              "the matrix scrubs.");
}

int AttentionPicture::stepUnder(QPointF at) const
{
    const AttentionLayout layout = layoutNow();
    if (m_state.empty())
        return -1;
    const int row =
        std::clamp(int((at.y() - layout.matrix.top()) / layout.cellHeight), 0, m_state.rows - 1);
    const int column =
        std::clamp(int((at.x() - layout.matrix.left()) / layout.cellWidth), 0, m_state.columns - 1);
    return m_state.stepAt(row, column);
}

bool AttentionPicture::event(QEvent* event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const AttentionLayout layout = layoutNow();
        QString text;
        if (layout.matrix.contains(help->pos()))
            text = m_state.words(stepUnder(help->pos()));
        else if (layout.playButton.contains(help->pos()))
            text = tr("Walk over the tiles (Space)");
        QToolTip::showText(help->globalPos(), text, this);
        return true;
    }
    return Picture::event(event);
}

void AttentionPicture::mousePressEvent(QMouseEvent* event)
{
    const AttentionLayout layout = layoutNow();
    if (event->button() != Qt::LeftButton)
        return Picture::mousePressEvent(event);
    if (layout.playButton.contains(event->position()))
        return setPlaying(!isPlaying());
    if (m_state.empty() || !layout.matrix.contains(event->position()))
        return Picture::mousePressEvent(event);
    setPlaying(false);
    m_scrubbing = true;
    setCursor(stepUnder(event->position()));
}

void AttentionPicture::mouseMoveEvent(QMouseEvent* event)
{
    if (m_scrubbing)
        return setCursor(stepUnder(event->position()));
    const AttentionLayout layout = layoutNow();
    const bool inMatrix = layout.matrix.contains(event->position());
    const bool button = layout.playButton.contains(event->position());
    QWidget::setCursor(button || inMatrix ? Qt::PointingHandCursor : Qt::ArrowCursor);
    emit hoverText(inMatrix ? m_state.words(stepUnder(event->position())) : QString());
}

void AttentionPicture::mouseReleaseEvent(QMouseEvent* event)
{
    m_scrubbing = false;
    Picture::mouseReleaseEvent(event);
}

void AttentionPicture::leaveEvent(QEvent* event)
{
    emit hoverText({});
    Picture::leaveEvent(event);
}

void AttentionPicture::hideEvent(QHideEvent* event)
{
    setPlaying(false);
    Picture::hideEvent(event);
}

void AttentionPicture::keyPressEvent(QKeyEvent* event)
{
    const int step = event->modifiers() & Qt::ShiftModifier ? 10 : 1;
    const auto go = [this](int to) {
        setPlaying(false);
        setCursor(to);
    };
    const auto rowAway = [this](int rows) {
        if (m_state.empty())
            return 0;
        const TileStep& at = m_state.steps[std::size_t(m_cursor)];
        return m_state.stepAt(std::clamp(at.row + rows, 0, m_state.rows - 1), at.column);
    };
    switch (event->key()) {
    case Qt::Key_Space:
        return setPlaying(!isPlaying());
    case Qt::Key_Left:
        return go(m_cursor - step);
    case Qt::Key_Right:
        return go(m_cursor + step);
    case Qt::Key_Up:
        return go(rowAway(-1));
    case Qt::Key_Down:
        return go(rowAway(1));
    case Qt::Key_Home:
        return go(0);
    case Qt::Key_End:
        return go(int(m_state.steps.size()) - 1);
    default:
        return Picture::keyPressEvent(event);
    }
}

} // namespace memscape
