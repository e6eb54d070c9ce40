// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/common/walk_picture.h"

#include <QKeyEvent>
#include <QMouseEvent>

namespace memscape {

WalkPicture::WalkPicture(PictureSize size, QWidget* parent)
    : Picture(size, parent)
{
    connect(&m_player, &Player::moved, this, [this](int step) {
        if (!isPlaying()) // a screen reader announces where it stopped
            setAccessibleDescription(wordsOf(step));
        update();
        emit cursorMoved(step);
    });
    connect(&m_player, &Player::playingChanged, this, [this](bool playing) {
        if (!playing)
            setAccessibleDescription(summary());
        update();
    });
}

void WalkPicture::setSteps(int steps, int rest)
{
    m_player.setSteps(steps, rest);
    setAccessibleDescription(summary());
    update();
}

void WalkPicture::mousePressEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton)
        return Picture::mousePressEvent(event);
    if (playButton().contains(event->position()))
        return setPlaying(!isPlaying());
    if (cursor() < 0 || !isWalk(event->position()))
        return Picture::mousePressEvent(event);
    m_scrubbing = true;
    stopAt(stepNear(event->position()));
}

void WalkPicture::mouseMoveEvent(QMouseEvent* event)
{
    const QPointF at = event->position();
    if (m_scrubbing)
        return setCursor(stepNear(at));
    QWidget::setCursor(isButton(at) ? Qt::PointingHandCursor : Qt::ArrowCursor);
    emit hoverText(cursor() >= 0 && isWalk(at) ? wordsOf(stepNear(at)) : QString());
}

void WalkPicture::mouseReleaseEvent(QMouseEvent* event)
{
    m_scrubbing = false;
    Picture::mouseReleaseEvent(event);
}

void WalkPicture::hideEvent(QHideEvent* event)
{
    setPlaying(false);
    Picture::hideEvent(event);
}

void WalkPicture::keyPressEvent(QKeyEvent* event)
{
    if (!m_player.takeKey(*event))
        Picture::keyPressEvent(event);
}

} // namespace memscape
