// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/layout/layout_geometry.h"

#include "app/plots/plot_style.h"

#include <QFontMetricsF>

#include <algorithm>

namespace memscape {

QRectF LayoutGeometry::cellRect(int panel, int row, int column) const
{
    return {grid.left() + panel * panelStep + column * cell, grid.top() + row * cell, cell, cell};
}

QRectF LayoutGeometry::slotRect(int line, int slot) const
{
    const QRectF& bar = lines[std::size_t(line)];
    const double width = bar.width() / slotCount;
    return {bar.left() + slot * width, bar.top(), width, bar.height()};
}

QRectF LayoutGeometry::removeOf(int chip) const
{
    const QRectF& rect = chips[std::size_t(chip)];
    const double side = 14 * plotUnit();
    return {rect.right() - side - 3 * plotUnit(), rect.top() + 3 * plotUnit(), side, side};
}

int LayoutGeometry::chipAt(QPointF at) const
{
    for (std::size_t i = 0; i < chips.size(); ++i) {
        if (chips[i].contains(at))
            return int(i);
    }
    return -1;
}

int LayoutGeometry::lineAt(QPointF at) const
{
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i].contains(at))
            return int(i);
    }
    return -1;
}

int LayoutGeometry::slotAt(QPointF at, int line) const
{
    const QRectF& bar = lines[std::size_t(line)];
    return std::clamp(int((at.x() - bar.left()) / bar.width() * slotCount), 0, slotCount - 1);
}

namespace {

/// As wide as the wider of its two lines, and the cross.
double chipWidth(const OperationChip& chip, double most)
{
    const double u = plotUnit();
    const double upper = QFontMetricsF(plotFont(0.88, true)).horizontalAdvance(chip.text) + 34 * u;
    const double lower = QFontMetricsF(plotFont(0.76)).horizontalAdvance(chip.strides + QStringLiteral(" · "))
        + QFontMetricsF(plotFont(0.76, true)).horizontalAdvance(chip.verdict) + 22 * u;
    return std::min(std::max({upper, lower, 84 * u}), most);
}

/// In rows; their bottom.
double placeChips(LayoutGeometry& layout, const LayoutState& state, const QRectF& inside, double top)
{
    const double u = plotUnit();
    const double height = 36 * u, gap = 18 * u;
    double left = inside.left(), y = top;
    const auto place = [&](double width) {
        if (left > inside.left() && left + width > inside.right()) {
            left = inside.left();
            y += height + 5 * u;
        }
        const QRectF rect(left, y, width, height);
        left = rect.right() + gap;
        return rect;
    };
    layout.base = place(chipWidth(state.base, inside.width() * 0.5));
    for (const OperationChip& chip : state.chips)
        layout.chips.push_back(place(chipWidth(chip, inside.width() * 0.5)));
    layout.plus = place(34 * u);
    return y + height;
}

void placeGrid(LayoutGeometry& layout, const LayoutState& state, const QRectF& area)
{
    const double u = plotUnit();
    layout.gridTitle = {area.left(), area.top(), area.width(), 16 * u};
    const double left = area.left() + 24 * u, top = layout.gridTitle.bottom() + 16 * u;
    const double width = area.right() - 18 * u - left, height = area.bottom() - 14 * u - top;
    const double across = state.panels * state.columns + (state.panels - 1) * 0.8;
    layout.cell = std::max(4.0, std::min({width / across, height / state.rows, 72 * u}));
    layout.panelStep = layout.cell * (state.columns + 0.8);
    layout.grid = {left, top, layout.cell * across, layout.cell * state.rows};
}

void placeStrip(LayoutGeometry& layout, const LayoutState& state, const QRectF& area)
{
    const double u = plotUnit();
    layout.stripTitle = {area.left(), area.top(), area.width(), 16 * u};
    const double top = layout.stripTitle.bottom() + 4 * u;
    const double height = area.bottom() - top;
    const int count = int(state.lines.size());
    const int columns = count > 12 && height / count < 13 * u ? 2 : 1;
    const int rows = std::max(1, (count + columns - 1) / columns);
    const double step = std::min(height / rows, 36 * u);
    const QFontMetricsF metrics(plotFont(0.72));
    layout.lineNames = 20 * u;
    for (const std::int64_t line : state.lines)
        layout.lineNames =
            std::max(layout.lineNames, metrics.horizontalAdvance(QString::number(line * state.lineBytes)) + 7 * u);
    const double columnWidth = area.width() / columns;
    for (int i = 0; i < count; ++i) {
        const double left = area.left() + (i / rows) * columnWidth + layout.lineNames;
        layout.lines.emplace_back(left, top + (i % rows) * step + 1, columnWidth - layout.lineNames - 8 * u, step - 2);
    }
    layout.slotCount = std::max(1, state.lineSlots());
}

} // namespace

LayoutGeometry layoutGeometry(const LayoutState& state, const QRectF& rect)
{
    const double u = plotUnit();
    LayoutGeometry layout;
    const QRectF inside = rect.adjusted(14 * u, 8 * u, -14 * u, -8 * u);
    layout.title = {inside.left(), inside.top(), inside.width() * 0.45, 20 * u};
    layout.hint = {layout.title.right(), inside.top(), inside.width() * 0.55, 20 * u};
    const double chipsBottom = placeChips(layout, state, inside, layout.title.bottom() + 4 * u);
    const double code = 17 * u;
    layout.numpy = {inside.left(), inside.bottom() - code, inside.width(), code};
    layout.pytorch = layout.numpy.translated(0, -code);
    layout.playButton = {inside.left(), layout.pytorch.top() - 25 * u, 70 * u, 20 * u};
    layout.words = {layout.playButton.right() + 10 * u, layout.playButton.top(),
                    inside.right() - layout.playButton.right() - 10 * u, 20 * u};
    const double top = chipsBottom + 8 * u;
    const double bottom = std::max(top + 60 * u, layout.playButton.top() - 6 * u);
    // The grid is as wide as its height lets it be; the lines do with the rest.
    const double across = state.panels * state.columns + (state.panels - 1) * 0.8;
    const double wanted = (bottom - top - 46 * u) / std::max(1, state.rows) * across + 42 * u;
    const double left = std::clamp(wanted, 0.46 * inside.width(), 0.62 * inside.width());
    placeGrid(layout, state, {inside.left(), top, left, bottom - top});
    placeStrip(layout, state, {inside.left() + left + 16 * u, top, inside.width() - left - 16 * u, bottom - top});
    return layout;
}

} // namespace memscape
