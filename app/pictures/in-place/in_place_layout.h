// SPDX-License-Identifier: GPL-3.0-or-later
// Where everything of the picture of `in-place` stands: two lanes, out of place and in place, each with a row of
// tensors for three moments and a row of what is moved. All of it is to one scale of bytes, and a tensor stays where it
// is from row to row, as its memory does. Geometry only, for painting, hit tests and tests.
#pragma once

#include "app/pictures/in-place/in_place_state.h"

#include <QRectF>

namespace memscape {

inline constexpr int inPlaceRows = int(inPlaceMoments.size()) + 1; ///< the last: what is moved

/// A tensor at a moment, or a part of what is moved.
struct InPlaceBlock
{
    int way = 0, row = 0;
    std::size_t index = 0; ///< into the way's tensors, or its parts
    QRectF rect;

    bool isMoved() const { return row + 1 == inPlaceRows; }
    InPlaceMoment moment() const { return inPlaceMoments[std::size_t(std::min(row, inPlaceRows - 2))]; }
};

struct InPlaceLane
{
    QRectF head, bars;
    std::array<QRectF, inPlaceRows> totals;
    QRectF saving; ///< beside the peak: what the other way takes more; empty without
};

struct InPlaceLayout
{
    QRectF title, legend;
    std::array<QRectF, inPlaceRows> labels;
    std::array<InPlaceLane, 2> lanes;
    std::vector<InPlaceBlock> blocks; ///< row by row, out of place first
    QRectF verdict, backward;         ///< in words
    double unit = 1, pixelsPerByte = 0;
    bool isWide = false; ///< room for second lines of labels

    int blockAt(QPointF at) const; ///< −1 for none
    /// The block beside it: `rows` down or `columns` along the row; the same at an edge.
    int neighbour(int block, int columns, int rows) const;
};

/// `unit`: one pixel of the drawings (plotUnit()).
InPlaceLayout layoutInPlace(const InPlaceState& state, const QRectF& rect, double unit);

} // namespace memscape
