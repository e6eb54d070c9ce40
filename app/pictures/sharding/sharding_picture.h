// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `sharding`: what one rank alone would store, what each of N ranks does, and below the step's
// timeline. Space plays through it: what is gathered stands on the columns, and who sends to whom between them. The
// yellow handle sets N.
#pragma once

#include "app/pictures/common/timeline_picture.h"
#include "app/pictures/sharding/sharding_layout.h"

namespace memscape {

class ShardingPicture final : public TimelinePicture
{
    Q_OBJECT

public:
    explicit ShardingPicture(QWidget* parent = nullptr);

    QString title() const override { return m_state.title; }
    QString summary() const override;
    QString hint() const override;

    const ShardingState& state() const { return m_state; }
    ShardingLayout layoutNow() const;
    static QString shortcuts(); ///< for the help

protected:
    void read(const PictureValues& values) override;
    void drawTimeline(QPainter& painter, const QRectF& rect, PlayButton play, const Theme& theme) const override;
    double secondsAt(double x) const override { return layoutNow().secondsAt(x); }
    QString wordsAt(double seconds) const override { return m_state.wordsAt(seconds); }
    bool isWalk(QPointF at) const override { return layoutNow().times.contains(at); }
    QRectF playButton() const override { return layoutNow().button; }
    bool isButton(QPointF at) const override;
    QString toolTipAt(QPointF at) const override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    ShardingLayout layoutIn(const QRectF& rect) const;
    bool isOnTrack(const ShardingLayout& layout, QPointF at) const;
    static QString ranksWords(std::int64_t ranks);
    void setRanks(std::int64_t ranks);
    void drag(QPointF at);

    ShardingState m_state;
};

/// sharding_paint.cpp: everything, with the cursor at so many seconds (below zero: none).
void paintSharding(QPainter& painter, const ShardingState& state, const ShardingLayout& layout, double cursor,
                   PlayButton play, const Theme& theme);

} // namespace memscape
