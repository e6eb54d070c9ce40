// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/transfer/transfer_layout.h"

#include <algorithm>

namespace memscape {

namespace {

/// Rows share what is left of the height below `top`.
void placeBlocks(TransferLayout& layout, const TransferState& state, const QRectF& inside, double top)
{
    const double u = layout.unit;
    std::size_t rows = 0;
    for (const TransferWay& way : state.ways)
        rows += std::size_t(way.lanes.size());
    const double room = layout.foot.top() - 4 * u - top, gap = 5 * u;
    const double heads = double(state.ways.size()) * (16 * u + gap);
    const double row = std::clamp((room - heads) / double(std::max<std::size_t>(1, rows)), 6 * u, 44 * u);
    double y = top;
    for (const TransferWay& way : state.ways) {
        TransferBlock block;
        block.head = {inside.left(), y, inside.width(), 16 * u};
        y = block.head.bottom();
        for (qsizetype lane = 0; lane < way.lanes.size(); ++lane) {
            block.labels.emplace_back(inside.left(), y, layout.times.left() - inside.left() - 6 * u, row);
            block.lanes.emplace_back(layout.times.left(), y + 1, layout.times.width(), row - 2);
            y += row;
        }
        y += gap;
        layout.blocks.push_back(std::move(block));
    }
    layout.times.setTop(top);
    layout.times.setBottom(y - gap);
}

} // namespace

double TransferLayout::secondsAt(double at) const
{
    return times.width() > 0 ? std::clamp((at - times.left()) / times.width(), 0.0, 1.0) * longest : 0;
}

int TransferLayout::barAt(QPointF at) const
{
    for (std::size_t i = 0; i < bars.size(); ++i) {
        if (bars[i].rect.contains(at))
            return int(i);
    }
    return -1;
}

int TransferLayout::depthAt(QPointF at) const
{
    for (std::size_t i = 0; i < depths.size(); ++i) {
        if (!depths[i].isEmpty() && depths[i].adjusted(-2 * unit, -4 * unit, 2 * unit, 4 * unit).contains(at))
            return int(i) + 1;
    }
    return 0;
}

TransferLayout layoutTransfer(const TransferState& state, const QRectF& rect, double unit)
{
    TransferLayout layout;
    layout.unit = unit;
    layout.longest = state.longest;
    const QRectF inside = rect.adjusted(12 * unit, 6 * unit, -12 * unit, -6 * unit);
    layout.button = {inside.right() - 22 * unit, inside.top(), 22 * unit, 20 * unit};
    layout.title = {inside.left(), inside.top(), inside.width() - 28 * unit, 20 * unit};
    layout.foot = {inside.left(), inside.bottom() - 18 * unit, inside.width(), 18 * unit};
    const double labels = 66 * unit;
    layout.times = {inside.left() + labels, 0, std::max(1.0, inside.width() - labels), 0};
    placeBlocks(layout, state, inside, layout.title.bottom() + 3 * unit);
    for (std::size_t way = 0; way < state.ways.size(); ++way) {
        const TransferWay& one = state.ways[way];
        for (std::size_t piece = 0; piece < one.pieces.size(); ++piece) {
            const LanePiece& at = one.pieces[piece];
            const QRectF& lane = layout.blocks[way].lanes[at.lane];
            const double left = layout.x(at.begin), width = std::max(1.0, layout.x(at.end) - left);
            layout.bars.push_back({way, piece, QRectF(left, lane.top(), width, lane.height())});
        }
    }
    if (const int dragged = state.draggedWay(); dragged >= 0) {
        const TransferWay& way = state.ways[std::size_t(dragged)];
        const QRectF& lane = layout.blocks[std::size_t(dragged)].lanes.front();
        const double end = layout.x(way.fixed + way.perByte * double(way.chunk));
        layout.handle = {end - 3 * unit, lane.top() - 2 * unit, 6 * unit, lane.height() + 4 * unit};
    }
    layout.depthLabel = {inside.left(), layout.foot.top(), labels, layout.foot.height()};
    for (std::size_t i = 0; i < layout.depths.size() && state.serial.isEmpty(); ++i)
        layout.depths[i] = {layout.times.left() + double(i) * 17 * unit, layout.foot.center().y() - 6 * unit, 13 * unit,
                            12 * unit};
    return layout;
}

} // namespace memscape
