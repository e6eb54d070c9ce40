// SPDX-License-Identifier: GPL-3.0-or-later
// A schedule on paper: on the left the stages side by side and time downwards, one row an operation or the
// true length of each; on the right the memory over the same time. Everything is a function of the state
// and the rectangle; cells smaller than a pixel are merged when they are drawn.
#pragma once

#include "app/pictures/checkpoint/checkpoint_state.h"

#include <QRectF>

namespace memscape {

enum class ScheduleAxis { Rows, Time };

struct ScheduleText
{
    QRectF rect;
    QString text;
};

enum class LegendShape { Forward, Recompute, Backward, Value, Saved, Peak, Measured };

struct ScheduleLegend
{
    QRectF swatch, rect;
    LegendShape shape = LegendShape::Forward;
    QString text;
};

struct ScheduleLayout
{
    QRectF area;
    ScheduleText title, hint, memoryHead, budget, words, help;
    QRectF axisButton, playButton;
    QString axisText;
    std::vector<ScheduleText> columns; ///< numbers above the stages, thinned out
    std::vector<ScheduleText> ticks;   ///< of the memory axis
    std::vector<double> tickValues;
    QRectF cells;  ///< stages and, at the right, the loss
    QRectF memory; ///< from 0 at the left to `memoryHigh` at the right
    double memoryHigh = 1;
    double columnWidth = 1;
    std::vector<double> edges; ///< y where each step begins, and the end of the last
    std::vector<ScheduleLegend> legend;

    double columnLeft(int stage) const { return cells.left() + stage * columnWidth; }
    double memoryX(double value) const { return memory.left() + value / memoryHigh * memory.width(); }
    /// The step at a height; −1 without steps.
    int stepAt(double y) const;
    double stepMiddle(int step) const; ///< y
    double yOf(double step) const;     ///< of a whole and a share of a step
    /// Where step k is drawn: its cell, or the loss's.
    QRectF cell(const ScheduleState& state, int step) const;
    /// Every text, for a test that looks whether they touch.
    std::vector<QRectF> pieces() const;
};

ScheduleLayout layoutSchedule(const ScheduleState& state, ScheduleAxis axis, const QString& words, const QRectF& rect);

} // namespace memscape
