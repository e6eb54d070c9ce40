// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/common/player.h"

#include <QKeyEvent>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr int frameTime = 33;       ///< ms
constexpr double playTime = 9000;   ///< ms for a whole walk, unless its steps would be slower than that
constexpr double slowestStep = 250; ///< ms

} // namespace

Player::Player(QObject* parent)
    : QObject(parent)
{
    m_frames.setInterval(frameTime);
    connect(&m_frames, &QTimer::timeout, this, &Player::nextFrame);
}

void Player::setSteps(int steps, int rest)
{
    const double share = m_steps > 1 ? double(m_cursor) / (m_steps - 1) : 0;
    const int wanted = m_touched ? int(std::lround(share * (steps - 1))) : rest;
    m_steps = std::max(0, steps);
    m_cursor = m_steps > 0 ? std::clamp(wanted, 0, m_steps - 1) : -1;
    m_progress = m_cursor;
    if (m_steps == 0)
        setPlaying(false);
}

void Player::setCursor(int step)
{
    if (m_steps == 0)
        return;
    m_touched = true;
    const int next = std::clamp(step, 0, m_steps - 1);
    if (next == m_cursor)
        return;
    m_cursor = next;
    if (int(m_progress) != next)
        m_progress = next; // it plays on from here
    emit moved(next);
}

void Player::setPlaying(bool playing)
{
    if (playing == isPlaying() || (playing && m_steps == 0))
        return;
    if (playing) {
        if (m_cursor == m_steps - 1)
            setCursor(0);
        m_progress = m_cursor;
        m_frames.start();
    } else {
        m_frames.stop();
    }
    emit playingChanged(playing);
}

void Player::stopAt(int step)
{
    setPlaying(false);
    setCursor(step);
}

void Player::nextFrame()
{
    m_progress += frameTime / std::min(slowestStep, playTime / m_steps);
    setCursor(int(m_progress));
    if (m_cursor == m_steps - 1)
        setPlaying(false);
}

bool Player::takeKey(const QKeyEvent& event)
{
    const int step = event.modifiers() & Qt::ShiftModifier ? 10 : 1;
    const int page = std::max(1, m_steps / 10);
    switch (event.key()) {
    case Qt::Key_Space: setPlaying(!isPlaying()); return true;
    case Qt::Key_Left:
    case Qt::Key_Up: stopAt(m_cursor - step); return true;
    case Qt::Key_Right:
    case Qt::Key_Down: stopAt(m_cursor + step); return true;
    case Qt::Key_PageUp: stopAt(m_cursor - page); return true;
    case Qt::Key_PageDown: stopAt(m_cursor + page); return true;
    case Qt::Key_Home: stopAt(0); return true;
    case Qt::Key_End: stopAt(m_steps - 1); return true;
    default: return false;
    }
}

QString Player::shortcuts()
{
    return tr("Space plays, arrow keys step (Shift: ten at a time), Page Up and Page Down leap, Home and End go to "
              "the ends; a drag scrubs.");
}

} // namespace memscape
