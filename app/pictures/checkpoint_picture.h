// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `checkpoint`: the schedule step by step, stages across and time down, beside the memory it
// holds. A cursor walks along it: dragging scrubs, Space plays, arrow keys step (Shift: ten at a time), Home and End go
// to the ends, P to the peak, T changes between rows and true time. What happens at the cursor stands
// below in words.
#pragma once

#include "app/pictures/checkpoint_layout.h"
#include "app/pictures/picture.h"

#include <QPixmap>
#include <QTimer>

namespace memscape {

class CheckpointPicture final : public Picture
{
    Q_OBJECT

public:
    explicit CheckpointPicture(QWidget* parent = nullptr);

    void setState(const Experiment& experiment, const Device& device, const Parameters& parameters,
                  const Prediction* predicted, const Measurement* measured) override;
    /// A schedule in place of that of a prediction; the cursor stays where it was, as a share of the whole.
    void setSchedule(ScheduleState state);

    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const override;
    QString title() const override { return m_state.title; }
    QString summary() const override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

    const ScheduleState& state() const { return m_state; }
    ScheduleLayout layoutNow() const;
    int cursor() const { return m_cursor; } ///< the step; −1 without a schedule
    void setCursor(int step);
    QString cursorText() const { return m_state.words(m_cursor); }
    bool isPlaying() const { return m_frames.isActive(); }
    void setPlaying(bool playing);
    ScheduleAxis axis() const { return m_axis; }
    void setAxis(ScheduleAxis axis);
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
    void forget(); ///< what is painted is not what is to be seen any more
    QString toolTipAt(QPointF at) const;
    void scrubTo(QPointF at);

    ScheduleState m_state;
    ScheduleAxis m_axis = ScheduleAxis::Rows;
    int m_cursor = -1;
    bool m_touched = false; ///< somebody moved the cursor: else it is at the peak
    bool m_scrubbing = false;
    QTimer m_frames;
    double m_progress = 0; ///< of what is played, in steps
    QPixmap m_still; ///< everything that does not move
};

// checkpoint_paint.cpp
struct SchedulePen
{
    QPainter& painter;
    const ScheduleState& state;
    const ScheduleLayout& layout;
    const Theme& theme;

    void still() const;                          ///< all but the cursor
    void moving(int cursor, bool playing) const; ///< cursor, words, buttons

private:
    void texts() const;
    void kept() const;
    void cells() const;
    void memory() const;
    void measured() const;
    void peak() const;
    void legend() const;
    void swatch(const ScheduleLegend& entry) const;
    void text(const ScheduleText& one, const QFont& font, const QColor& colour, int align) const;
};

/// The words of the legend as a shape: forwards point right, backwards left, a recomputation has a slit.
void paintScheduleCell(QPainter& painter, const QRectF& cell, LegendShape shape, const Theme& theme);

} // namespace memscape
