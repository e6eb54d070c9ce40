// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/checkpoint/checkpoint_picture.h"

#include "app/plots/plot_style.h"

#include <QCoreApplication>
#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

QColor keptColour(const Theme& theme)
{
    return theme.series(1);
}

QColor colourOf(LegendShape shape, const Theme& theme)
{
    switch (shape) {
    case LegendShape::Recompute: return theme.series(0);
    case LegendShape::Backward: return theme.measured;
    case LegendShape::Value:
    case LegendShape::Saved: return keptColour(theme);
    default: return theme.predicted;
    }
}

LegendShape shapeOf(const ScheduleStep& step)
{
    if (step.operation.kind == OperationKind::Backward)
        return LegendShape::Backward;
    return step.isRecomputation ? LegendShape::Recompute : LegendShape::Forward;
}

/// A kept value is a solid bar, what a stage saved an open one; a line each where there is no room.
void paintBar(QPainter& painter, const QRectF& bar, bool isSaved, const Theme& theme)
{
    const QColor colour = keptColour(theme);
    if (bar.width() < 4) {
        painter.fillRect(bar, isSaved ? mix(theme.background, colour, 0.55) : colour);
        return;
    }
    if (!isSaved) {
        painter.fillRect(bar, mix(theme.background, colour, 0.8));
        return;
    }
    painter.setPen(QPen(mix(theme.background, colour, 0.85), 1));
    painter.setBrush(mix(theme.background, colour, 0.16));
    painter.drawRect(bar.adjusted(0.5, 0, -0.5, -0.5));
}

QRectF barOf(const ScheduleLayout& layout, const KeptSpan& span)
{
    const double top = span.made < 0 ? layout.cells.top() : layout.edges[std::size_t(span.made) + 1];
    const double bottom = layout.edges[std::size_t(span.freed) + 1];
    const double column = layout.columnWidth, left = layout.columnLeft(span.stage);
    // Side by side, so that x_i and x̄_{i+1} of one stage are both seen.
    const double thick = std::clamp(column * 0.16, 1.0, 6.0 * plotUnit());
    const double at = left + column * (span.isSaved ? 0.68 : 0.32);
    return {column < 3 ? left : at - thick / 2, top, column < 3 ? std::max(1.0, column * 0.8) : thick, bottom - top};
}

/// The highest of the steps that share a line of pixels, as an outline from top to bottom.
QPolygonF outline(const ScheduleState& state, const ScheduleLayout& layout)
{
    QPolygonF line;
    double top = layout.edges.front(), highest = 0;
    for (std::size_t k = 0; k < state.steps.size(); ++k) {
        highest = std::max(highest, state.steps[k].during);
        const double bottom = layout.edges[k + 1];
        if (bottom - top < 1 && k + 1 < state.steps.size())
            continue;
        line << QPointF(layout.memoryX(highest), top) << QPointF(layout.memoryX(highest), bottom);
        top = bottom;
        highest = 0;
    }
    return line;
}

} // namespace

void paintScheduleCell(QPainter& painter, const QRectF& cell, LegendShape shape, const Theme& theme)
{
    const QColor colour = colourOf(shape, theme);
    if (cell.width() < 8 || cell.height() < 3.5) {
        painter.fillRect(cell, colour);
        return;
    }
    const double point = std::min(cell.height() * 0.5, cell.width() * 0.25);
    const bool back = shape == LegendShape::Backward;
    const double flat = back ? cell.right() : cell.left(), tip = back ? cell.left() : cell.right();
    const double neck = back ? tip + point : tip - point;
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    painter.drawPolygon(QPolygonF({{flat, cell.top()},
                                   {neck, cell.top()},
                                   {tip, cell.center().y()},
                                   {neck, cell.bottom()},
                                   {flat, cell.bottom()}}));
    if (shape == LegendShape::Recompute)
        painter.fillRect(
            QRectF(cell.left() + cell.width() * 0.14, cell.top(), std::max(1.5, cell.width() * 0.08), cell.height()),
            theme.background);
}

void SchedulePen::text(const ScheduleText& one, const QFont& font, const QColor& colour, int align) const
{
    if (one.text.isEmpty())
        return;
    painter.setFont(font);
    painter.setPen(colour);
    painter.drawText(one.rect, align, one.text);
}

void SchedulePen::texts() const
{
    text(layout.title, plotFont(1.05, true), theme.text, Qt::AlignLeft | Qt::AlignVCenter);
    text(layout.hint, plotFont(0.85), theme.textFaint, Qt::AlignRight | Qt::AlignVCenter);
    for (const ScheduleText& column : layout.columns)
        text(column, plotFont(0.72), theme.textFaint, Qt::AlignHCenter | Qt::AlignVCenter);
    if (state.empty())
        return;
    text(layout.memoryHead, plotFont(0.8), theme.textDim, Qt::AlignLeft | Qt::AlignVCenter);
    text(layout.budget, plotFont(0.8), theme.series(2), Qt::AlignHCenter | Qt::AlignVCenter);
    for (std::size_t i = 0; i < layout.ticks.size(); ++i) {
        const double x = layout.memoryX(layout.tickValues[i]);
        painter.setPen(QPen(theme.grid, 1, Qt::DotLine));
        painter.drawLine(QPointF(x, layout.memory.top()), QPointF(x, layout.memory.bottom()));
        text(layout.ticks[i], plotFont(0.72), theme.textFaint, Qt::AlignHCenter | Qt::AlignVCenter);
    }
}

void SchedulePen::kept() const
{
    for (const bool isSaved : {true, false}) {
        for (const KeptSpan& span : state.kept) {
            if (span.isSaved == isSaved && span.stage <= state.length)
                paintBar(painter, barOf(layout, span), isSaved, theme);
        }
    }
}

void SchedulePen::cells() const
{
    const double gap = layout.columnWidth > 12 ? 1.5 : layout.columnWidth > 5 ? 0.5 : 0;
    QRect last;
    LegendShape lastShape = LegendShape::Peak;
    for (std::size_t k = 0; k < state.steps.size(); ++k) {
        if (state.steps[k].isDiscard())
            continue;
        QRectF cell = layout.cell(state, int(k));
        const double room = cell.height();
        if (room > 5)
            cell.adjust(0, 0.5, 0, -0.5);
        cell.adjust(gap, 0, -gap, 0);
        cell.setHeight(std::max(cell.height(), 1.4));
        cell.setWidth(std::max(cell.width(), 1.2));
        if (cell.height() > 9 * plotUnit()) { // few steps: bands as in the drawing, not bricks
            const double middle = cell.center().y();
            cell.setTop(middle - 4.5 * plotUnit());
            cell.setBottom(middle + 4.5 * plotUnit());
        }
        const LegendShape shape = shapeOf(state.steps[k]);
        if (room < 0.5 && shape == lastShape && cell.toRect() == last)
            continue; // the very same pixels
        last = cell.toRect();
        lastShape = shape;
        if (state.steps[k].operation.kind == OperationKind::Loss) {
            painter.setPen(QPen(theme.textDim, 1.4));
            painter.drawLine(QPointF(cell.left(), cell.center().y()), QPointF(cell.right(), cell.center().y()));
            painter.drawLine(cell.center() - QPointF(0, 3), cell.center() + QPointF(0, 3));
            continue;
        }
        paintScheduleCell(painter, cell, shape, theme);
    }
}

void SchedulePen::memory() const
{
    const QPolygonF line = outline(state, layout);
    QPolygonF area = line;
    area << QPointF(layout.memory.left(), layout.edges.back()) << QPointF(layout.memory.left(), layout.edges.front());
    painter.setPen(Qt::NoPen);
    painter.setBrush(mix(theme.background, keptColour(theme), theme.dark ? 0.32 : 0.22));
    painter.drawPolygon(area);
    // Dashed like every prediction; where steps are thinner than a dash there would be only crumbs.
    const bool isDense = layout.memory.height() < 5.0 * double(state.steps.size());
    QPen pen(theme.predicted, isDense ? 1.0 : 1.5, Qt::SolidLine, Qt::FlatCap, Qt::MiterJoin);
    if (!isDense)
        pen.setDashPattern({3, 1.6});
    painter.setPen(pen);
    painter.drawPolyline(line);
    painter.setPen(QPen(theme.border, 1));
    painter.drawLine(layout.memory.topLeft(), layout.memory.bottomLeft());
    if (!std::isfinite(state.budget))
        return;
    painter.setPen(QPen(theme.series(2), 1.6, Qt::DashLine));
    const double x = layout.memoryX(state.budget);
    painter.drawLine(QPointF(x, layout.memory.top()), QPointF(x, layout.memory.bottom()));
}

void SchedulePen::measured() const
{
    const double radius = state.measured.size() > 200 ? 2 : 3;
    painter.setPen(QPen(theme.background, 0.8));
    painter.setBrush(theme.measured);
    double lastY = -1e9, lastX = -1e9;
    for (const MeasuredPoint& point : state.measured) {
        const QPointF at(layout.memoryX(point.memory), layout.yOf(point.step));
        if (std::hypot(at.x() - lastX, at.y() - lastY) < 1)
            continue;
        lastX = at.x();
        lastY = at.y();
        painter.drawEllipse(at, radius, radius);
    }
}

void SchedulePen::peak() const
{
    const double high = state.steps[std::size_t(state.peak)].during;
    const QPointF at(layout.memoryX(high), layout.stepMiddle(state.peak));
    const double r = 5 * plotUnit();
    painter.setPen(QPen(theme.background, 1));
    painter.setBrush(theme.text);
    painter.drawPolygon(QPolygonF({at, at + QPointF(-1.5 * r, -0.8 * r), at + QPointF(-1.5 * r, 0.8 * r)}));
    const QFont font = plotFont(0.85, true);
    const QFontMetricsF metrics(font);
    const QString words = QCoreApplication::translate("Checkpoint", "peak %1").arg(state.units.memory(high));
    const double width = metrics.horizontalAdvance(words);
    // Above its line, where the cursor stands at first.
    QRectF rect(at.x() - width - 8, at.y() - metrics.height() - 4, width + 4, metrics.height());
    if (rect.left() < layout.memory.left() + 2)
        return; // the legend says what the mark is
    if (rect.top() < layout.memory.top())
        rect.moveTop(at.y() + 4);
    painter.fillRect(rect, mix(theme.background, keptColour(theme), theme.dark ? 0.32 : 0.22));
    painter.setFont(font);
    painter.setPen(theme.text);
    painter.drawText(rect, Qt::AlignCenter, words);
}

void SchedulePen::swatch(const ScheduleLegend& entry) const
{
    const QRectF& box = entry.swatch;
    switch (entry.shape) {
    case LegendShape::Value:
    case LegendShape::Saved:
        paintBar(painter, QRectF(box.center().x() - 2.5, box.top(), 5, box.height()), entry.shape == LegendShape::Saved,
                 theme);
        break;
    case LegendShape::Peak:
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.text);
        painter.drawPolygon(QPolygonF({{box.right(), box.center().y()},
                                       {box.right() - 7, box.center().y() - 4},
                                       {box.right() - 7, box.center().y() + 4}}));
        break;
    case LegendShape::Measured:
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.measured);
        painter.drawEllipse(box.center(), 3.5, 3.5);
        break;
    default: paintScheduleCell(painter, box.adjusted(0, 1, 0, -1), entry.shape, theme);
    }
}

void SchedulePen::legend() const
{
    for (const ScheduleLegend& entry : layout.legend) {
        swatch(entry);
        text({entry.rect, entry.text}, plotFont(0.85), theme.textDim, Qt::AlignLeft | Qt::AlignVCenter);
    }
    if (play != PlayButton::None)
        text(layout.help, plotFont(0.85), theme.textFaint, Qt::AlignRight | Qt::AlignVCenter);
}

void SchedulePen::still() const
{
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(theme.border, 1));
    painter.setBrush(mix(theme.background, theme.surface, 0.6));
    painter.drawRoundedRect(layout.cells.adjusted(-3, -3, 3, 3), 4, 4);
    texts();
    if (!state.empty()) {
        painter.save();
        painter.setClipRect(layout.cells.adjusted(-2, -2, 2, 2));
        kept();
        cells();
        painter.restore();
        memory();
        measured();
        peak();
    }
    if (state.empty() && !state.missing.isEmpty()) {
        painter.setFont(plotFont(1.0));
        painter.setPen(theme.bad);
        painter.drawText(layout.cells.adjusted(24, 12, -24, -12), Qt::AlignCenter | Qt::TextWordWrap, state.missing);
    }
    legend();
}

void SchedulePen::moving(int cursor) const
{
    painter.setRenderHint(QPainter::Antialiasing);
    const bool onScreen = play != PlayButton::None;
    painter.setPen(QPen(theme.border, 1));
    painter.setBrush(Qt::NoBrush);
    if (onScreen)
        painter.drawRoundedRect(layout.axisButton, 5, 5);
    text({layout.axisButton, onScreen ? layout.axisText + QStringLiteral(" ⇄") : layout.axisText}, plotFont(0.85),
         theme.textDim, Qt::AlignCenter);
    if (cursor < 0 || state.empty())
        return;
    const double y = layout.stepMiddle(cursor), r = 5 * plotUnit();
    painter.setPen(QPen(theme.highlight, 1.3));
    painter.drawLine(QPointF(layout.cells.left() - 3, y), QPointF(layout.memory.right(), y));
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.highlight);
    painter.drawEllipse(QPointF(layout.cells.left() - 6 * plotUnit(), y), r, r);
    text(layout.words, plotFont(0.92, true), theme.highlightText, Qt::AlignLeft | Qt::AlignVCenter);
    if (!onScreen)
        return;
    const QRectF box = layout.playButton.adjusted(3, 3, -3, -3);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.text);
    if (play == PlayButton::Pause) {
        const double bar = box.width() / 3;
        painter.drawRect(QRectF(box.left(), box.top(), bar, box.height()));
        painter.drawRect(QRectF(box.right() - bar, box.top(), bar, box.height()));
    } else {
        painter.drawPolygon(QPolygonF({box.topLeft(), {box.right(), box.center().y()}, box.bottomLeft()}));
    }
}

} // namespace memscape
