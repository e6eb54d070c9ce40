// SPDX-License-Identifier: GPL-3.0-or-later
// A picture with a walk in it: a schedule's operations, the tiles of a matrix. The cursor at one of its
// steps plays, steps by keys (player.h) and follows a drag over where the steps are drawn. What a
// picture of this kind says of itself is where its steps are and what happens at each, in words.
#pragma once

#include "app/pictures/common/picture.h"
#include "app/pictures/common/player.h"

namespace memscape {

class WalkPicture : public Picture
{
    Q_OBJECT

public:
    explicit WalkPicture(PictureSize size, QWidget* parent = nullptr);

    int cursor() const { return m_player.cursor(); } ///< the step; −1 without a walk
    void setCursor(int step) { m_player.setCursor(step); }
    QString cursorText() const { return wordsOf(cursor()); }
    bool isPlaying() const { return m_player.isPlaying(); }
    /// None in an export.
    PlayButton playSign(bool isScreen = true) const
    {
        return !isScreen ? PlayButton::None : isPlaying() ? PlayButton::Pause : PlayButton::Play;
    }
    void setPlaying(bool playing) { m_player.setPlaying(playing); }

signals:
    void cursorMoved(int step);

protected:
    /// After the values of the picture changed: so many steps, and where the cursor stands until
    /// the user moves it.
    void setSteps(int steps, int rest);
    void stopAt(int step) { m_player.stopAt(step); }

    /// What happens at a step; empty for −1.
    virtual QString wordsOf(int step) const = 0;
    virtual bool isWalk(QPointF at) const = 0;  ///< whether a press here scrubs
    virtual int stepNear(QPointF at) const = 0; ///< of any point, the nearest step; −1 without a walk
    virtual QRectF playButton() const = 0;
    virtual bool isButton(QPointF at) const { return playButton().contains(at); } ///< or one of its own

    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void hideEvent(QHideEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    Player m_player;
    bool m_scrubbing = false;
};

} // namespace memscape
