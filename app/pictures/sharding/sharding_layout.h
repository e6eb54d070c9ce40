// SPDX-License-Identifier: GPL-3.0-or-later
// Where everything of the picture of `sharding` stands: a column for one rank alone, columns of the ranks (of many the
// first ones and the last), a track on which N is dragged, and below them lanes over one axis of time. Geometry only,
// for painting, hit tests and tests.
#pragma once

#include "app/pictures/common/frame.h"
#include "app/pictures/sharding/sharding_state.h"

#include <QRectF>

#include <vector>

namespace memscape {

/// A part of a column; `rank` −1 is the one alone.
struct ShardingBox
{
    std::int64_t rank = 0;
    std::size_t part = 0;
    QRectF rect;
};

struct ShardingColumn
{
    std::int64_t rank = 0; ///< −1: alone
    QRectF rect, label;
};

struct ShardingLayout : PictureFrame
{
    static constexpr std::int64_t mostColumns = 16;

    QRectF columnsArea, gap, legend, track, handle, times;
    std::vector<ShardingColumn> columns;
    std::vector<ShardingBox> boxes;
    std::vector<QRectF> legendRows; ///< beside ShardingState::parts
    std::vector<QRectF> labels, lanes, spans;
    double end = 0, bytesHeight = 0; ///< pixels of a byte
    std::int64_t most = 1;

    double x(double seconds) const { return times.left() + (end > 0 ? seconds / end * times.width() : 0); }
    double secondsAt(double x) const;
    /// N on the track: whole, 1 to `most`.
    double trackX(std::int64_t ranks) const;
    std::int64_t ranksAt(double x) const;
    int boxAt(QPointF at) const;  ///< −1 for none
    int spanAt(QPointF at) const; ///< the same
};

/// `gathered`: B that are whole at the moment that is shown. `unit`: one pixel of the drawings (plotUnit()).
ShardingLayout layoutSharding(const ShardingState& state, const QRectF& rect, double unit, double gathered);

} // namespace memscape
