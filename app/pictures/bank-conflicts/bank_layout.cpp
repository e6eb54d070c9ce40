// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/bank-conflicts/bank_layout.h"

#include "app/plots/plot_style.h"

#include <algorithm>
#include <cmath>

namespace memscape {

int BankLayout::laneAt(QPointF at) const
{
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        if (std::hypot(at.x() - lanes[i].x(), at.y() - lanes[i].y()) <= radius + 1)
            return int(i);
    }
    return -1;
}

int BankLayout::bankAt(QPointF at) const
{
    return std::clamp(int((at.x() - grid.left()) / cellWidth), 0, 31);
}

int BankLayout::lineAt(QPointF at) const
{
    return grid.contains(at) ? int((at.y() - grid.top()) / cellHeight) : -1;
}

namespace {

void placeLanes(BankLayout& layout, std::size_t count)
{
    const double pitch = layout.laneRow.width() / double(std::max<std::size_t>(count, 1));
    // Of a few lanes each stands above the bank of its number.
    const double step = count < 32 ? layout.cellWidth : pitch;
    layout.radius = std::min({step * 0.45, layout.laneRow.height() / 2, 11 * plotUnit()});
    for (std::size_t i = 0; i < count; ++i)
        layout.lanes.emplace_back(layout.laneRow.left() + (double(i) + 0.5) * step, layout.laneRow.center().y());
}

void placeSide(BankLayout& layout, const BankState& state, const QRectF& side)
{
    const double u = plotUnit();
    const double row = std::min(22 * u, side.height() * (state.notHere.isEmpty() ? 0.12 : 0.085));
    const double cures = (row + 3 * u) * double(state.cures.size());
    const double noteHeight = state.notHere.isEmpty() ? 0 : std::min(side.height() * 0.3, 70 * u);
    const double curesTop = side.bottom() - noteHeight - cures;
    layout.words = {side.left(), side.top(), side.width(), std::max(10.0, curesTop - 20 * u - side.top())};
    layout.curesTitle = {side.left(), curesTop - 18 * u, side.width(), 16 * u};
    for (std::size_t i = 0; i < state.cures.size(); ++i)
        layout.cures.emplace_back(side.left(), curesTop + double(i) * (row + 3 * u), side.width(), row);
    layout.note = {side.left(), side.bottom() - noteHeight, side.width(), noteHeight};
}

} // namespace

BankLayout layoutBanks(const BankState& state, const QRectF& rect)
{
    const double u = plotUnit();
    BankLayout layout;
    const QRectF inside = rect.adjusted(14 * u, 8 * u, -14 * u, -10 * u);
    const double titleWidth = inside.width() * (inside.width() > 700 * u ? 0.66 : 1);
    layout.title = {inside.left(), inside.top(), titleWidth, 22 * u};
    layout.hint = {inside.left() + titleWidth, inside.top(), inside.width() - titleWidth, 22 * u};
    const double top = layout.title.bottom() + 6 * u;
    const double sideWidth = std::clamp(inside.width() * 0.27, 150 * u, 300 * u);
    const double names = 34 * u; // of the lines
    const double gridLeft = inside.left() + names;
    const double gridWidth = std::max(64.0, inside.right() - sideWidth - 18 * u - gridLeft);
    layout.cellWidth = gridWidth / 32;
    layout.laneRow = {gridLeft, top, gridWidth, 18 * u};
    const double foot = 24 * u;
    const double gap = std::clamp(inside.height() * 0.08, 12 * u, 34 * u);
    layout.bankNames = {gridLeft, layout.laneRow.bottom() + gap, gridWidth, 13 * u};
    const double gridTop = layout.bankNames.bottom() + 1 * u;
    const double room = std::max(20.0, inside.bottom() - foot - 6 * u - gridTop);
    const double lines = double(std::max<std::size_t>(state.lines.size(), 1));
    layout.cellHeight = std::min(room / lines, 22 * u);
    layout.grid = {gridLeft, gridTop, gridWidth, layout.cellHeight * lines};
    layout.lineNames = {inside.left(), gridTop, names - 4 * u, layout.grid.height()};
    placeLanes(layout, state.lanes.size());
    const double footTop = inside.bottom() - 20 * u;
    layout.playButton = {gridLeft, footTop, 70 * u, 20 * u};
    layout.strip = {layout.playButton.right() + 10 * u, footTop, std::max(20.0, gridWidth - 80 * u), 20 * u};
    placeSide(layout, state, {inside.right() - sideWidth, top, sideWidth, inside.bottom() - top});
    return layout;
}

} // namespace memscape
