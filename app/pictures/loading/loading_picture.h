// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `loading`: three vessels, the disk, the host's memory and the GPU's, and the bytes in them at a moment
// of the load; below, what each step does over time, in turn and in a pipeline. Space plays; a press on the name of a
// way chooses it.
#pragma once

#include "app/pictures/common/timeline_picture.h"
#include "app/pictures/loading/loading_layout.h"

namespace memscape {

using LoadingTimeline = TimelineOf<LoadingState, LoadingLayout>;

class LoadingPicture final : public LoadingTimeline
{
    Q_OBJECT

public:
    explicit LoadingPicture(QWidget* parent = nullptr);

    QString summary() const override;
    QString hint() const override;
    static QString shortcuts(); ///< for the help

protected:
    void read(const PictureValues& values) override;
    LoadingLayout layoutIn(const QRectF& rect) const override;
    void drawTimeline(QPainter& painter, const QRectF& rect, PlayButton play, const Theme& theme) const override;
    bool isWalk(QPointF at) const override { return layoutNow().times.contains(at) && layoutNow().headAt(at) < 0; }
    bool isButton(QPointF at) const override;
    QString toolTipAt(QPointF at) const override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void setDepth(int depth);
    void setChunk(std::int64_t chunk);
};

/// loading_paint.cpp: everything, with the cursor at so many seconds (below zero: at the end).
void paintLoading(QPainter& painter, const LoadingState& state, const LoadingLayout& layout, double cursor,
                  PlayButton play, const Theme& theme);

} // namespace memscape
