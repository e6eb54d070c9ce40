// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/transfer/transfer_layout.h"

namespace memscape {

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
    const PictureFrame frame(rect, unit);
    const double top = frame.title.bottom() + 3 * unit;
    constexpr LaneSizes sizes;
    TransferLayout layout{
        frame,
        placeLaneBlocks(state.ways, {frame.inside.left(), top, frame.inside.width(), frame.foot.top() - 4 * unit - top},
                        sizes, unit, state.longest),
        {},
        {},
        {}};
    if (const int dragged = state.draggedWay(); dragged >= 0) {
        const TransferWay& way = state.ways[std::size_t(dragged)];
        const QRectF& lane = layout.blocks[std::size_t(dragged)].lanes.front();
        const double end = layout.x(way.fixed + way.perByte * double(way.chunk));
        layout.handle = {end - 3 * unit, lane.top() - 2 * unit, 6 * unit, lane.height() + 4 * unit};
    }
    layout.depthLabel = {layout.inside.left(), layout.foot.top(), sizes.labels * unit, layout.foot.height()};
    for (std::size_t i = 0; i < layout.depths.size() && state.serial.isEmpty(); ++i)
        layout.depths[i] = {layout.times.left() + double(i) * 17 * unit, layout.foot.center().y() - 6 * unit, 13 * unit,
                            12 * unit};
    return layout;
}

} // namespace memscape
