// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `checkpoint`: the schedule step by step, stages across and time down, beside the memory it
// holds. A cursor walks along it; P goes to the peak, T changes between rows and true time. What happens
// at the cursor stands below in words.
#pragma once

#include "app/pictures/checkpoint/checkpoint_layout.h"
#include "app/pictures/common/walk_picture.h"

#include <QPixmap>

namespace memscape {

class CheckpointPicture final : public WalkPicture
{
    Q_OBJECT

public:
    explicit CheckpointPicture(QWidget* parent = nullptr);

    /// A schedule in place of that of a prediction; the cursor stays where it was, as a share of the whole.
    void setSchedule(ScheduleState state);
    QString title() const override { return m_state.title; }
    QString summary() const override;

    const ScheduleState& state() const { return m_state; }
    ScheduleLayout layoutNow() const;
    ScheduleAxis axis() const { return m_axis; }
    void setAxis(ScheduleAxis axis);
    static QString shortcuts(); ///< for the help

protected:
    void read(const PictureValues& values) override;
    QString wordsOf(int step) const override { return m_state.words(step); }
    bool isWalk(QPointF at) const override;
    int stepNear(QPointF at) const override { return layoutNow().stepAt(at.y()); }
    QRectF playButton() const override { return layoutNow().playButton; }
    bool isButton(QPointF at) const override;
    QString toolTipAt(QPointF at) const override;
    bool event(QEvent* event) override;
    void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const override;
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void forget(); ///< what is painted is out of date
    void changeAxis() { setAxis(m_axis == ScheduleAxis::Rows ? ScheduleAxis::Time : ScheduleAxis::Rows); }

    ScheduleState m_state;
    ScheduleAxis m_axis = ScheduleAxis::Rows;
    QPixmap m_still; ///< everything that does not move
};

// checkpoint_paint.cpp
struct SchedulePen
{
    QPainter& painter;
    const ScheduleState& state;
    const ScheduleLayout& layout;
    const Theme& theme;

    PlayButton play = PlayButton::None;

    void still() const;            ///< all but the cursor
    void moving(int cursor) const; ///< cursor, words, buttons

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
