// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `transfer`: the same bytes moved in several ways, each a block of lanes over one axis of time. Space
// plays through that time; the yellow handle at the first chunk's end sets its size, the boxes below how many buffers
// are in flight.
#pragma once

#include "app/pictures/common/timeline_picture.h"
#include "app/pictures/transfer/transfer_layout.h"

namespace memscape {

using TransferTimeline = TimelineOf<TransferState, TransferLayout>;

class TransferPicture final : public TransferTimeline
{
    Q_OBJECT

public:
    explicit TransferPicture(QWidget* parent = nullptr);

    QString summary() const override;
    QString hint() const override;
    static QString shortcuts(); ///< for the help

protected:
    void read(const PictureValues& values) override;
    TransferLayout layoutIn(const QRectF& rect) const override;
    void drawTimeline(QPainter& painter, const QRectF& rect, PlayButton play, const Theme& theme) const override;
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

    Handle m_handle = Handle::Chunk; ///< that is held
};

/// transfer_paint.cpp: everything, with the cursor at so many seconds (below zero: none).
void paintTransfer(QPainter& painter, const TransferState& state, const TransferLayout& layout, double cursor,
                   PlayButton play, const Theme& theme);

} // namespace memscape
