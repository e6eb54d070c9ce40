// SPDX-License-Identifier: GPL-3.0-or-later
// A picture whose walk is time: lanes of copies, a load, the collectives of a step. The cursor stands at a moment,
// space plays through, a press or a drag over the lanes moves it there. Such a picture says how long the whole takes,
// where a moment lies and what happens then, and draws itself.
#pragma once

#include "app/pictures/common/walk_picture.h"

namespace memscape {

class TimelinePicture : public WalkPicture
{
    Q_OBJECT

public:
    double cursorSeconds() const { return secondsOf(cursor()); } ///< below zero: no cursor
    bool sharesHeight() const override { return true; }

protected:
    using WalkPicture::WalkPicture;

    /// After the values changed: s of the whole, 0 without a prediction; the cursor rests at a share of it.
    void setEnd(double seconds, double rest);
    bool isEmpty() const { return !(m_end > 0); }

    /// Everything, with the cursor at cursorSeconds(); called only where there is a prediction.
    virtual void drawTimeline(QPainter& painter, const QRectF& rect, PlayButton play, const Theme& theme) const = 0;
    virtual double secondsAt(double x) const = 0; ///< as it is laid out now
    virtual QString wordsAt(double seconds) const = 0;

    void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const override;
    QString wordsOf(int step) const override;
    int stepNear(QPointF at) const override;
    void mouseMoveEvent(QMouseEvent* event) override;

private:
    double secondsOf(int step) const;

    double m_end = 0;
};

/// One whose state has a title and words for a moment, and whose layout has a play button and an axis of time.
template <typename State, typename Layout> class TimelineOf : public TimelinePicture
{
public:
    QString title() const override { return m_state.title; }
    const State& state() const { return m_state; }
    Layout layoutNow() const { return layoutIn(QRectF(rect())); }

protected:
    using TimelinePicture::TimelinePicture;

    virtual Layout layoutIn(const QRectF& rect) const = 0;
    double secondsAt(double x) const override { return layoutNow().secondsAt(x); }
    QString wordsAt(double seconds) const override { return m_state.wordsAt(seconds); }
    bool isWalk(QPointF at) const override { return layoutNow().times.contains(at); }
    QRectF playButton() const override { return layoutNow().button; }

    State m_state;
};

/// Two bars or a triangle in the middle of `button`; nothing in an export.
void paintPlayButton(QPainter& painter, const QRectF& button, double unit, PlayButton play, const Theme& theme);
/// The line at the moment, down the lanes.
void paintMoment(QPainter& painter, double x, const QRectF& lanes, double unit, const Theme& theme);
/// The same in a chart, with its name at the bottom.
void paintNamedMoment(QPainter& painter, double x, const QRectF& chart, const QString& name, const Theme& theme);

} // namespace memscape
