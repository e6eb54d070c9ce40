// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/in-place/in_place_layout.h"

#include "app/plots/plot_style.h"

#include <QFontMetricsF>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

double heightOf(const QString& text, const QFont& font, double width)
{
    return std::ceil(QFontMetricsF(font).boundingRect(QRectF(0, 0, width, 1e5), Qt::TextWordWrap, text).height());
}

void placeBlocks(InPlaceLayout& layout, const InPlaceState& state)
{
    for (int row = 0; row < inPlaceRows; ++row) {
        for (int way = 0; way < int(state.ways.size()); ++way) {
            const InPlaceWay& shown = state.ways[std::size_t(way)];
            const QRectF& label = layout.labels[std::size_t(row)];
            double x = layout.lanes[std::size_t(way)].bars.left();
            const auto place = [&](std::size_t index, double bytes, bool isThere) {
                const QRectF rect(x, label.top(), bytes * layout.pixelsPerByte, label.height());
                if (isThere)
                    layout.blocks.push_back({way, row, index, rect});
                x = rect.right();
            };
            if (row + 1 == inPlaceRows) {
                for (std::size_t i = 0; i < shown.parts.size(); ++i)
                    place(i, shown.parts[i].bytes, true);
                continue;
            }
            // One that is freed leaves a gap that says so.
            const InPlaceMoment moment = inPlaceMoments[std::size_t(row)];
            for (std::size_t i = 0; i < shown.tensors.size(); ++i)
                place(i, shown.tensors[i].bytes, shown.tensors[i].isThere(moment) || moment == InPlaceMoment::After);
        }
    }
}

} // namespace

int InPlaceLayout::blockAt(QPointF at) const
{
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (blocks[i].rect.contains(at))
            return int(i);
    }
    return -1;
}

int InPlaceLayout::neighbour(int block, int columns, int rows) const
{
    if (block < 0 || block >= int(blocks.size()))
        return blocks.empty() ? -1 : 0;
    const InPlaceBlock& from = blocks[std::size_t(block)];
    int best = block;
    double distance = 1e9;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const InPlaceBlock& to = blocks[i];
        const double dx = to.rect.center().x() - from.rect.center().x();
        const bool isAside = rows == 0 && to.row == from.row && dx * columns > 0;
        const bool isBelow = rows != 0 && to.row == from.row + rows && to.way == from.way;
        if ((isAside || isBelow) && std::abs(dx) < distance) {
            distance = std::abs(dx);
            best = int(i);
        }
    }
    return best;
}

InPlaceLayout layoutInPlace(const InPlaceState& state, const QRectF& rect, double unit)
{
    const double u = unit;
    InPlaceLayout layout;
    layout.unit = u;
    const QRectF inside = rect.adjusted(12 * u, 5 * u, -12 * u, -6 * u);
    layout.isWide = inside.width() > 600 * u;
    const double legendWidth = layout.isWide ? 240 * u : 0;
    layout.title = {inside.left(), inside.top(), inside.width() - legendWidth, 20 * u};
    layout.legend = {inside.right() - legendWidth, inside.top(), legendWidth, 20 * u};

    const QFont words = plotFont(0.85);
    const double backwardHeight = heightOf(state.backward(), words, inside.width());
    const double verdictHeight = heightOf(state.verdict(), words, inside.width());

    const double labelWidth = layout.isWide ? 92 * u : 44 * u;
    const double totalWidth = layout.isWide ? 68 * u : 54 * u, gap = layout.isWide ? 18 * u : 8 * u;
    const double laneWidth = (inside.width() - labelWidth - gap) / 2;
    const double headTop = layout.title.bottom() + 3 * u, headHeight = 18 * u;
    const double rowsTop = headTop + headHeight + 2 * u, between = 5 * u;
    const double room =
        inside.bottom() - backwardHeight - verdictHeight - 5 * u - rowsTop - (inPlaceRows - 1) * between;
    const double rowHeight = std::clamp(room / (inPlaceRows - 0.4), 12 * u, 76 * u);
    for (int row = 0; row < inPlaceRows; ++row) {
        const bool isMoved = row + 1 == inPlaceRows;
        layout.labels[std::size_t(row)] = {inside.left(), rowsTop + row * (rowHeight + between), labelWidth,
                                           isMoved ? std::max(10 * u, rowHeight * 0.6) : rowHeight};
    }
    layout.verdict = {inside.left(), layout.labels.back().bottom() + 5 * u, inside.width(), verdictHeight};
    layout.backward = {inside.left(), layout.verdict.bottom(), inside.width(), backwardHeight};

    const double barsWidth = std::max(10 * u, laneWidth - totalWidth - 6 * u);
    layout.pixelsPerByte = barsWidth / state.most();
    for (std::size_t way = 0; way < layout.lanes.size(); ++way) {
        InPlaceLane& lane = layout.lanes[way];
        const double left = inside.left() + labelWidth + double(way) * (laneWidth + gap);
        lane.head = {left, headTop, laneWidth, headHeight};
        lane.bars = {left, rowsTop, barsWidth, layout.labels.back().bottom() - rowsTop};
        for (std::size_t row = 0; row < lane.totals.size(); ++row) {
            const QRectF& label = layout.labels[row];
            lane.totals[row] = {left + barsWidth + 6 * u, label.top(), laneWidth - barsWidth - 6 * u, label.height()};
        }
        const double less = state.ways[1 - way].peak - state.ways[way].peak;
        const QRectF& peak = layout.labels[std::size_t(InPlaceMoment::During)];
        if (less > 0 && state.isAllowed)
            lane.saving = {left + state.ways[way].peak * layout.pixelsPerByte, peak.top(), less * layout.pixelsPerByte,
                           peak.height()};
    }
    placeBlocks(layout, state);
    return layout;
}

} // namespace memscape
