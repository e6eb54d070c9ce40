// SPDX-License-Identifier: GPL-3.0-or-later
// Plays a walk: steps one after another, and a cursor at one of them that is set, stepped by keys or
// played. A whole walk plays in nine seconds; one of few steps is slower than it needs to be read, so
// no step lasts longer than a quarter of a second.
#pragma once

#include <QObject>
#include <QTimer>

class QKeyEvent;

namespace memscape {

/// What stands at the button of a walk; nothing, and no hints, in an export: paper cannot be pressed.
enum class PlayButton { None, Play, Pause };

class Player final : public QObject
{
    Q_OBJECT

public:
    explicit Player(QObject* parent = nullptr);

    /// A walk of so many steps. Once the user has moved the cursor it keeps its share of the walk;
    /// before, it stands at `rest`. Nothing plays on without steps. No signal of the cursor: the caller with a new walk
    /// draws it anyway.
    void setSteps(int steps, int rest);
    int steps() const { return m_steps; }
    int cursor() const { return m_cursor; } ///< the step; −1 without a walk
    void setCursor(int step);               ///< the nearest there is
    bool isPlaying() const { return m_frames.isActive(); }
    void setPlaying(bool playing); ///< from the end it starts again
    void stopAt(int step);         ///< the user points at a step: it does not play on

    /// Space, arrow keys (Shift: ten at a time), Page Up and Down, Home and End; false for any other.
    bool takeKey(const QKeyEvent& event);
    static QString shortcuts(); ///< those keys, for the help

signals:
    void moved(int step);
    void playingChanged(bool playing);

private:
    void nextFrame();

    int m_steps = 0;
    int m_cursor = -1;
    bool m_touched = false; ///< the user moved the cursor
    QTimer m_frames;
    double m_progress = 0; ///< of what is played, in steps
};

} // namespace memscape
