// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/sharding/sharding_layout.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// The ranks that have a column; −2 stands for those between.
std::vector<std::int64_t> shownRanks(std::int64_t ranks)
{
    std::vector<std::int64_t> shown;
    const bool isCut = ranks > ShardingLayout::mostColumns;
    const std::int64_t first = isCut ? ShardingLayout::mostColumns - 2 : ranks;
    for (std::int64_t rank = 0; rank < first; ++rank)
        shown.push_back(rank);
    if (isCut)
        shown.insert(shown.end(), {-2, ranks - 1});
    return shown;
}

void placeParts(ShardingLayout& layout, const ShardingState& state, const ShardingColumn& column, double gathered)
{
    double y = column.rect.bottom();
    for (std::size_t part = 0; part < state.parts.size(); ++part) {
        const ShardingPart& one = state.parts[part];
        const bool isGathered = part + 1 == state.parts.size();
        const double bytes = column.rank < 0 ? one.alone : isGathered ? gathered : one.bytes;
        const double height = bytes * layout.bytesHeight;
        if (height <= 0)
            continue;
        y -= height;
        layout.boxes.push_back({column.rank, part, QRectF(column.rect.left(), y, column.rect.width(), height)});
    }
}

void placeColumns(ShardingLayout& layout, const ShardingState& state, double gathered)
{
    const double u = layout.unit;
    const QRectF& area = layout.columnsArea;
    const std::vector<std::int64_t> shown = shownRanks(state.ranks);
    // Bytes are compared by eye, so the one that is alone is as wide as the others where they are not thin.
    const double leastAlone = 46 * u, apart = 22 * u, room = area.width() - apart;
    const double ranks = double(shown.size());
    const double shared = room / (ranks + 1);
    const double step = std::min(140 * u, shared >= leastAlone ? shared : (room - leastAlone) / ranks);
    const double wide = std::max(2.0, step - std::min(8 * u, step * 0.2));
    const double aloneWidth = std::max(leastAlone, wide);
    const double left = area.left() + aloneWidth + apart;
    const double bottom = area.bottom() - 15 * u, height = bottom - area.top();
    layout.bytesHeight = state.highest() > 0 ? height / state.highest() : 0;
    const auto add = [&](std::int64_t rank, double x, double width) {
        layout.columns.push_back(
            {rank, QRectF(x, area.top(), width, height), QRectF(x - 8 * u, bottom, width + 16 * u, 15 * u)});
        placeParts(layout, state, layout.columns.back(), gathered);
    };
    add(-1, area.left(), aloneWidth);
    for (std::size_t i = 0; i < shown.size(); ++i) {
        const double x = left + double(i) * step;
        if (shown[i] == -2)
            layout.gap = QRectF(x, area.top(), wide, height);
        else
            add(shown[i], x, wide);
    }
}

void placeLanes(ShardingLayout& layout, const ShardingState& state, double top)
{
    const double u = layout.unit;
    const double room = layout.foot.top() - 3 * u - top;
    const double row = std::clamp(room / double(std::max<qsizetype>(1, state.lanes.size())), 8 * u, 34 * u);
    double y = top;
    for (qsizetype lane = 0; lane < state.lanes.size(); ++lane) {
        layout.labels.emplace_back(layout.title.left(), y, layout.times.left() - layout.title.left() - 6 * u, row);
        layout.lanes.emplace_back(layout.times.left(), y + 1, layout.times.width(), row - 2);
        y += row;
    }
    layout.times.setTop(top);
    layout.times.setBottom(y);
    for (const ShardingSpan& span : state.spans) {
        const QRectF& lane = layout.lanes[span.lane];
        const double left = layout.x(span.begin);
        layout.spans.emplace_back(left, lane.top(), std::max(1.0, layout.x(span.end) - left), lane.height());
    }
}

} // namespace

double ShardingLayout::secondsAt(double at) const
{
    return times.width() > 0 ? std::clamp((at - times.left()) / times.width(), 0.0, 1.0) * end : 0;
}

double ShardingLayout::trackX(std::int64_t ranks) const
{
    const double share =
        most > 1 ? std::log2(double(std::clamp<std::int64_t>(ranks, 1, most))) / std::log2(double(most)) : 0;
    return track.left() + share * track.width();
}

std::int64_t ShardingLayout::ranksAt(double at) const
{
    const double share = track.width() > 0 ? std::clamp((at - track.left()) / track.width(), 0.0, 1.0) : 0;
    const double ranks = std::exp2(share * std::log2(double(most)));
    // Near a power of two it is that.
    const double power = std::exp2(std::round(std::log2(ranks)));
    return std::int64_t(std::abs(trackX(std::int64_t(power)) - at) < 6 * unit ? power : std::round(ranks));
}

int ShardingLayout::boxAt(QPointF at) const
{
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        if (boxes[i].rect.contains(at))
            return int(i);
    }
    return -1;
}

int ShardingLayout::spanAt(QPointF at) const
{
    for (std::size_t i = 0; i < spans.size(); ++i) {
        if (spans[i].contains(at))
            return int(i);
    }
    return -1;
}

ShardingLayout layoutSharding(const ShardingState& state, const QRectF& rect, double unit, double gathered)
{
    ShardingLayout layout;
    static_cast<PictureFrame&>(layout) = PictureFrame(rect, unit);
    layout.end = state.end;
    layout.most = std::max<std::int64_t>(2, state.mostRanks);
    const QRectF& inside = layout.inside;
    const double top = layout.title.bottom() + 6 * unit;
    const double lanesHeight = std::min(24.0 * unit * double(state.lanes.size()), 0.35 * (layout.foot.top() - top));
    const double lanesTop = layout.foot.top() - 3 * unit - lanesHeight;
    const double trackRow = 30 * unit;
    const double legendWidth = std::min(190 * unit, 0.34 * inside.width());
    layout.columnsArea = {inside.left(), top, inside.width() - legendWidth - 16 * unit,
                          std::max(30 * unit, lanesTop - trackRow - 6 * unit - top)};
    layout.legend = {inside.right() - legendWidth, top, legendWidth, layout.columnsArea.height()};
    const double row = std::min(17 * unit, layout.legend.height() / double(state.parts.size() + 2));
    for (std::size_t part = 0; part < state.parts.size(); ++part) // the highest part of a column first
        layout.legendRows.emplace_back(layout.legend.left(), top + double(state.parts.size() - 1 - part) * row,
                                       legendWidth, row);
    const double labels = 92 * unit;
    layout.times = {inside.left() + labels, 0, std::max(1.0, inside.width() - labels), 0};
    const double trackY = layout.columnsArea.bottom() + 4 * unit;
    layout.track = {inside.left() + labels, trackY + 6 * unit, std::max(1.0, inside.width() - labels - 40 * unit),
                    4 * unit};
    layout.handle = {layout.trackX(state.dataParallel) - 6 * unit, trackY + 2 * unit, 12 * unit, 12 * unit};
    placeColumns(layout, state, gathered);
    placeLanes(layout, state, lanesTop);
    return layout;
}

} // namespace memscape
