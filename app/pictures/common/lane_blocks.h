// SPDX-License-Identifier: GPL-3.0-or-later
// Ways of doing the same, each a block with a head and a row for each of its lanes, all to one scale of time; a bar for
// each piece of a lane at work. Geometry only, for painting, hit tests and tests.
#pragma once

#include "core/timing/pipeline.h"

#include <QPointF>
#include <QRectF>
#include <QStringList>

#include <algorithm>
#include <vector>

namespace memscape {

struct LaneBar
{
    std::size_t way = 0, piece = 0;
    QRectF rect;
};

struct LaneBlock
{
    QRectF head;
    std::vector<QRectF> labels, lanes; ///< a row each
};

struct LaneBlocks
{
    QRectF times; ///< over all lanes: from 0 to `longest` s
    std::vector<LaneBlock> blocks;
    std::vector<LaneBar> bars;
    double longest = 0;

    double x(double seconds) const { return times.left() + (longest > 0 ? seconds / longest * times.width() : 0); }
    double secondsAt(double at) const;
    int barAt(QPointF at) const;  ///< −1 for none
    int headAt(QPointF at) const; ///< index of a way; −1 for none

    /// A way's block below the others; `row`: the height of its lanes.
    void addBlock(const QRectF& area, qsizetype lanes, double row, double unit);
    void addBars(std::size_t way, const std::vector<LanePiece>& pieces);
};

/// What the rows may take, in units.
struct LaneSizes
{
    double labels = 66, gap = 5, leastRow = 6, mostRow = 90;
    static constexpr double head = 16;
};

/// Blocks of `ways` (with `lanes`, their names, and `pieces`) in `area`, whose rows share its height. Lanes of pieces
/// exist.
template <typename Way>
LaneBlocks placeLaneBlocks(const std::vector<Way>& ways, const QRectF& area, const LaneSizes& sizes, double unit,
                           double longest)
{
    LaneBlocks all;
    all.longest = longest;
    std::size_t rows = 0;
    for (const Way& way : ways)
        rows += std::size_t(way.lanes.size());
    const double heads = double(ways.size()) * (LaneSizes::head + sizes.gap) * unit;
    const double row = std::clamp((area.height() - heads) / double(std::max<std::size_t>(1, rows)),
                                  sizes.leastRow * unit, sizes.mostRow * unit);
    const double labels = sizes.labels * unit;
    all.times = {area.left() + labels, area.top(), std::max(1.0, area.width() - labels), 0};
    for (std::size_t i = 0; i < ways.size(); ++i) {
        const double top = all.times.bottom() + (i > 0 ? sizes.gap * unit : 0);
        all.addBlock({area.left(), top, area.width(), 0}, ways[i].lanes.size(), row, unit);
        all.addBars(i, ways[i].pieces);
    }
    return all;
}

} // namespace memscape
