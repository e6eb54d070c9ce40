// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/common/lane_blocks.h"

namespace memscape {

double LaneBlocks::secondsAt(double at) const
{
    return times.width() > 0 ? std::clamp((at - times.left()) / times.width(), 0.0, 1.0) * longest : 0;
}

int LaneBlocks::barAt(QPointF at) const
{
    const auto found = std::ranges::find_if(bars, [&](const LaneBar& bar) { return bar.rect.contains(at); });
    return found == bars.end() ? -1 : int(found - bars.begin());
}

int LaneBlocks::headAt(QPointF at) const
{
    const auto found = std::ranges::find_if(blocks, [&](const LaneBlock& block) { return block.head.contains(at); });
    return found == blocks.end() ? -1 : int(found - blocks.begin());
}

void LaneBlocks::addBlock(const QRectF& area, qsizetype lanes, double row, double unit)
{
    LaneBlock block;
    block.head = {area.left(), area.top(), area.width(), LaneSizes::head * unit};
    double y = block.head.bottom();
    for (qsizetype lane = 0; lane < lanes; ++lane) {
        block.labels.emplace_back(area.left(), y, times.left() - area.left() - 6 * unit, row);
        block.lanes.emplace_back(times.left(), y + 1, times.width(), row - 2);
        y += row;
    }
    times.setBottom(y);
    blocks.push_back(std::move(block));
}

void LaneBlocks::addBars(std::size_t way, const std::vector<LanePiece>& pieces)
{
    for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
        const QRectF& lane = blocks[way].lanes[pieces[piece].lane];
        const double left = x(pieces[piece].begin), right = std::min(x(pieces[piece].end), times.right());
        const double width = std::max(1.0, right - left);
        bars.push_back({way, piece, QRectF(std::min(left, times.right() - width), lane.top(), width, lane.height())});
    }
}

} // namespace memscape
