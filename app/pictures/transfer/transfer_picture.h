// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `transfer`: the same bytes moved in several ways, each a block of lanes over one axis of time. Space
// plays through that time; the yellow handle at the first chunk's end sets its size, the boxes below how many buffers
// are in flight.
#pragma once

#include "app/pictures/common/timeline_picture.h"
#include "app/pictures/transfer/transfer_layout.h"

namespace memscape {

class TransferPicture final : public TimelinePicture
{
    Q_OBJECT

public:
    explicit TransferPicture(QWidget* parent = nullptr);

    QString title() const override { return m_state.title; }
    QString summary() const override;
    QString hint() const override;

    const TransferState& state() const { return m_state; }
    TransferLayout layoutNow() const;
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
    enum class Handle { Chunk, Depth };

    void drag(QPointF at);
    void setChunk(std::int64_t chunk);
    void setDepth(int depth);

    TransferState m_state;
    Handle m_handle = Handle::Chunk; ///< that is held
};

/// transfer_paint.cpp: everything, with the cursor at so many seconds (below zero: none).
void paintTransfer(QPainter& painter, const TransferState& state, const TransferLayout& layout, double cursor,
                   PlayButton play, const Theme& theme);

} // namespace memscape
