// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `sharding`: what one rank alone would store, what each of N ranks does, and below the step's
// timeline. Space plays through it: what is gathered stands on the columns, and who sends to whom between them. The
// yellow handle sets N.
#pragma once

#include "app/pictures/common/timeline_picture.h"
#include "app/pictures/sharding/sharding_layout.h"

namespace memscape {

using ShardingTimeline = TimelineOf<ShardingState, ShardingLayout>;

class ShardingPicture final : public ShardingTimeline
{
    Q_OBJECT

public:
    explicit ShardingPicture(QWidget* parent = nullptr);

    QString summary() const override;
    QString hint() const override;
    static QString shortcuts(); ///< for the help

protected:
    void read(const PictureValues& values) override;
    ShardingLayout layoutIn(const QRectF& rect) const override;
    void drawTimeline(QPainter& painter, const QRectF& rect, PlayButton play, const Theme& theme) const override;
    bool isButton(QPointF at) const override;
    QString toolTipAt(QPointF at) const override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    bool isOnTrack(const ShardingLayout& layout, QPointF at) const;
    static QString ranksWords(std::int64_t ranks);
    void setRanks(std::int64_t ranks);
    void drag(QPointF at);
};

/// sharding_paint.cpp: everything, with the cursor at so many seconds (below zero: none).
void paintSharding(QPainter& painter, const ShardingState& state, const ShardingLayout& layout, double cursor,
                   PlayButton play, const Theme& theme);

} // namespace memscape
