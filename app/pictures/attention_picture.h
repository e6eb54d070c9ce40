// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `attention`: the queries × keys matrix that standard attention writes to memory
// and flash attention never does. A cursor walks over its tiles as flash attention does, row by
// row: what is on the chip, the running maximum and sum, and the bytes that have gone to memory by
// then stand beside it. A drag over the matrix scrubs, Space plays, arrow keys step, Home and End
// go to the ends.
#pragma once

#include "app/pictures/attention_layout.h"
#include "app/pictures/picture.h"

#include <QTimer>

namespace memscape {

class AttentionPicture final : public Picture
{
    Q_OBJECT

public:
    explicit AttentionPicture(QWidget* parent = nullptr);

    void setState(const Experiment& experiment, const Device& device, const Parameters& parameters,
                  const Prediction* predicted, const Measurement* measured) override;
    void setWalk(AttentionState state); ///< in place of that of a prediction
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const override;
    QString title() const override { return m_state.title; }
    QString summary() const override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

    const AttentionState& state() const { return m_state; }
    AttentionLayout layoutNow() const { return layoutAttention(m_state, QRectF(rect())); }
    int cursor() const { return m_cursor; } ///< the step; −1 without a walk
    void setCursor(int step);
    bool isPlaying() const { return m_frames.isActive(); }
    void setPlaying(bool playing);
    static QString shortcuts(); ///< for the help

signals:
    void cursorMoved(int step);

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void hideEvent(QHideEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void nextFrame();
    int stepUnder(QPointF at) const;

    AttentionState m_state;
    int m_cursor = -1;
    bool m_touched = false; ///< somebody moved the cursor: else it stands in the middle
    bool m_scrubbing = false;
    QTimer m_frames;
    double m_progress = 0;
};

/// attention_paint.cpp: everything, with the cursor at a step.
void paintAttention(QPainter& painter, const AttentionState& state, const AttentionLayout& layout,
                    int cursor, bool playing, const Theme& theme);

} // namespace memscape
