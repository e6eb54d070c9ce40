// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `transfer`: the same bytes moved in several ways, each a block of lanes over one axis of time. Space
// plays through that time; the yellow handle at the first chunk's end sets its size, the boxes below how many buffers
// are in flight.
#pragma once

#include "app/pictures/common/walk_picture.h"
#include "app/pictures/transfer/transfer_layout.h"

namespace memscape {

class TransferPicture final : public WalkPicture
{
    Q_OBJECT

public:
    explicit TransferPicture(QWidget* parent = nullptr);

    void setState(const Experiment& experiment, const Device& device, const Parameters& parameters,
                  const Prediction* predicted, const Measurement* measured) override;
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const override;
    QString title() const override { return m_state.title; }
    QString summary() const override;
    bool sharesHeight() const override { return true; }
    QString hint() const override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

    const TransferState& state() const { return m_state; }
    TransferLayout layoutNow() const;
    double cursorSeconds() const { return secondsOf(cursor()); }
    static QString shortcuts(); ///< for the help

protected:
    QString wordsOf(int step) const override;
    bool isWalk(QPointF at) const override { return layoutNow().times.contains(at); }
    int stepNear(QPointF at) const override;
    QRectF playButton() const override { return layoutNow().button; }
    bool isButton(QPointF at) const override;
    QString toolTipAt(QPointF at) const override;
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    enum class Drag { None, Chunk, Depth };

    double secondsOf(int step) const;
    void drag(QPointF at);
    void setChunk(std::int64_t chunk);
    void setDepth(int depth);

    TransferState m_state;
    Drag m_drag = Drag::None;
};

/// transfer_paint.cpp: everything, with the cursor at so many seconds (below zero: none).
void paintTransfer(QPainter& painter, const TransferState& state, const TransferLayout& layout, double cursor,
                   PlayButton play, const Theme& theme);

} // namespace memscape
