// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/loading/loading_layout.h"

#include <algorithm>

namespace memscape {

namespace {

void placeVessels(LoadingLayout& layout, const LoadingState& state, const QRectF& area)
{
    const double u = layout.unit;
    std::vector<VesselKind> kinds{VesselKind::Medium, VesselKind::Host};
    if (state.gpus > 0)
        kinds.push_back(VesselKind::Gpu);
    const double arrow = 56 * u;
    const double room = area.width() - arrow * double(kinds.size() - 1);
    const double width = std::max(20 * u, room / double(kinds.size()));
    double x = area.left();
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        LoadingVessel vessel;
        vessel.kind = kinds[i];
        vessel.label = {x, area.top(), width, 16 * u};
        vessel.words = {x, area.bottom() - 16 * u, width, 16 * u};
        vessel.box = {x, vessel.label.bottom() + 2 * u, width,
                      std::max(8 * u, vessel.words.top() - vessel.label.bottom() - 4 * u)};
        layout.vessels.push_back(vessel);
        x += width;
        if (i + 1 < kinds.size())
            layout.arrows.emplace_back(x, vessel.box.top(), arrow, vessel.box.height());
        x += arrow;
    }
}

void placeLanes(LoadingLayout& layout, const LoadingState& state, const QRectF& area)
{
    const double u = layout.unit, labels = 112 * u, gap = 4 * u, head = 16 * u;
    std::size_t rows = 0;
    for (const LoadingWay& way : state.ways)
        rows += std::size_t(way.lanes.size());
    const double heads = double(state.ways.size()) * (head + gap);
    const double row = std::clamp((area.height() - heads) / double(std::max<std::size_t>(1, rows)), 5 * u, 30 * u);
    layout.times = {area.left() + labels, area.top(), std::max(1.0, area.width() - labels), 0};
    double y = area.top();
    for (const LoadingWay& way : state.ways) {
        LoadingBlock block;
        block.head = {area.left(), y, area.width(), head};
        y = block.head.bottom();
        for (qsizetype lane = 0; lane < way.lanes.size(); ++lane) {
            block.labels.emplace_back(area.left(), y, labels - 6 * u, row);
            block.lanes.emplace_back(layout.times.left(), y + 1, layout.times.width(), row - 2);
            y += row;
        }
        y += gap;
        layout.blocks.push_back(std::move(block));
    }
    layout.times.setBottom(y - gap);
}

} // namespace

double LoadingLayout::secondsAt(double at) const
{
    return times.width() > 0 ? std::clamp((at - times.left()) / times.width(), 0.0, 1.0) * longest : 0;
}

int LoadingLayout::barAt(QPointF at) const
{
    for (std::size_t i = 0; i < bars.size(); ++i) {
        if (bars[i].rect.contains(at))
            return int(i);
    }
    return -1;
}

int LoadingLayout::headAt(QPointF at) const
{
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (blocks[i].head.contains(at))
            return int(i);
    }
    return -1;
}

LoadingLayout layoutLoading(const LoadingState& state, const QRectF& rect, double unit)
{
    LoadingLayout layout;
    layout.unit = unit;
    layout.longest = state.longest;
    const QRectF inside = rect.adjusted(12 * unit, 6 * unit, -12 * unit, -6 * unit);
    layout.button = {inside.right() - 22 * unit, inside.top(), 22 * unit, 20 * unit};
    layout.title = {inside.left(), inside.top(), inside.width() - 28 * unit, 20 * unit};
    layout.foot = {inside.left(), inside.bottom() - 18 * unit, inside.width(), 18 * unit};
    const double top = layout.title.bottom() + 4 * unit, room = layout.foot.top() - 4 * unit - top;
    std::size_t rows = 0;
    for (const LoadingWay& way : state.ways)
        rows += std::size_t(way.lanes.size());
    // The lanes take what they need, at most half of the height.
    const double lanes = std::min(0.55 * room, double(rows) * 18 * unit + double(state.ways.size()) * 20 * unit);
    placeVessels(layout, state, {inside.left(), top, inside.width(), room - lanes - 6 * unit});
    placeLanes(layout, state, {inside.left(), top + room - lanes, inside.width(), lanes});
    for (std::size_t way = 0; way < state.ways.size(); ++way) {
        const LoadingWay& one = state.ways[way];
        for (std::size_t piece = 0; piece < one.pieces.size(); ++piece) {
            const LanePiece& at = one.pieces[piece];
            const QRectF& lane = layout.blocks[way].lanes[at.lane];
            const double left = layout.x(at.begin), right = std::min(layout.x(at.end), layout.times.right());
            const double width = std::max(1.0, right - left);
            layout.bars.push_back(
                {way, piece, QRectF(std::min(left, layout.times.right() - width), lane.top(), width, lane.height())});
        }
    }
    return layout;
}

} // namespace memscape
