// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/placement/placement_layout.h"

#include <algorithm>

namespace memscape {

namespace {

constexpr double widestNode = 92; ///< units

void placeNodes(PlacementLayout& layout, const PlacementState& state)
{
    const double u = layout.unit;
    const QRectF& area = layout.bands[0];
    const double pitch = std::min(widestNode * u, area.width() / double(std::max<std::size_t>(1, state.nodes.size())));
    const double gap = pitch > 24 * u ? 10 * u : pitch > 6 * u ? 2 * u : 0;
    for (std::size_t i = 0; i < state.nodes.size(); ++i) {
        const PlacedNode& node = state.nodes[i];
        const QRectF& band = layout.bands[node.isOnHost];
        const double height = std::min(band.height() - 8 * u, 44 * u);
        const QRectF box(area.left() + double(i) * pitch + gap / 2, band.center().y() - height / 2,
                         std::max(1.0, pitch - gap), height);
        layout.nodes.push_back(box);
        layout.homes.emplace_back();
        if ((node.isStreamed || state.trains) && node.weights > 0 && !node.isOnHost) {
            const QRectF& host = layout.bands[1];
            const double small = std::min(host.height() - 8 * u, 30 * u);
            layout.homes.back() = {box.left(), host.center().y() - small / 2, box.width(), small};
        }
    }
}

} // namespace

double PlacementLayout::secondsAt(double at) const
{
    return times.width() > 0 ? std::clamp((at - times.left()) / times.width(), 0.0, 1.0) * longest : 0;
}

int PlacementLayout::nodeAt(QPointF at) const
{
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i].contains(at) || (!homes[i].isEmpty() && homes[i].contains(at)))
            return int(i);
    }
    return -1;
}

int PlacementLayout::pieceAt(QPointF at) const
{
    for (std::size_t i = pieces.size(); i-- > 0;) {
        if (pieces[i].contains(at))
            return int(i);
    }
    return -1;
}

int PlacementLayout::bandAt(QPointF at) const
{
    return bands[0].contains(at) ? 0 : bands[1].contains(at) ? 1 : -1;
}

PlacementLayout layoutPlacement(const PlacementState& state, const QRectF& rect, double unit)
{
    PlacementLayout layout;
    layout.unit = unit;
    layout.longest = state.time;
    const QRectF inside = rect.adjusted(12 * unit, 6 * unit, -12 * unit, -6 * unit);
    layout.title = {inside.left(), inside.top(), inside.width(), 20 * unit};
    layout.foot = {inside.left(), inside.bottom() - 18 * unit, inside.width(), 18 * unit};
    const double labels = 84 * unit, left = inside.left() + labels, width = std::max(1.0, inside.width() - labels);
    const double top = layout.title.bottom() + 4 * unit, room = std::max(1.0, layout.foot.top() - 4 * unit - top);
    const double band = std::min(room * 0.22, 96 * unit), between = std::min(room * 0.16, 64 * unit);
    for (std::size_t i = 0; i < 2; ++i) {
        const double y = top + double(i) * (band + between);
        layout.bands[i] = {left, y, width, band};
        layout.bandLabels[i] = {inside.left(), y, labels - 8 * unit, band};
    }
    placeNodes(layout, state);
    const double lanesTop = layout.bands[1].bottom() + 12 * unit;
    const double rows = double(std::max<qsizetype>(1, state.lanes.size()));
    const double row = std::clamp((layout.foot.top() - 4 * unit - lanesTop) / rows, 4 * unit, 140 * unit);
    layout.times = {left, lanesTop, width, row * rows};
    for (qsizetype i = 0; i < state.lanes.size(); ++i) {
        const double y = lanesTop + double(i) * row;
        layout.laneLabels.emplace_back(inside.left(), y, labels - 8 * unit, row);
        layout.lanes.emplace_back(left, y + 1, width, row - 2);
    }
    for (const PlacedPiece& piece : state.pieces) {
        const QRectF& lane = layout.lanes[piece.lane];
        const double begin = std::min(layout.x(piece.begin), lane.right() - 1);
        layout.pieces.emplace_back(begin, lane.top(),
                                   std::clamp(layout.x(piece.end) - begin, 1.0, lane.right() - begin), lane.height());
    }
    return layout;
}

} // namespace memscape
