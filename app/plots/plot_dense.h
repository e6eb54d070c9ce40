// SPDX-License-Identifier: GPL-3.0-or-later
// A curve of a million points on a thousand pixels: what each column of pixels shows of it. A tree
// of extremes is made once, when the data come; a frame then asks it for the lowest and highest
// point of every column, in time that depends on the pixels and hardly on the points.
//
// Left out: how often the curve passes through a pixel. A column is drawn as wide as what it holds.
#pragma once

#include "app/plots/plot_data.h"

#include <cstddef>
#include <vector>

namespace memscape {

/// Lowest and highest of a stretch; both NaN when it holds no number.
struct Extremes
{
    double low, high;
};

/// Extremes of blocks of y, of blocks of these blocks, and so on.
class ExtremesTree
{
public:
    explicit ExtremesTree(const std::vector<double>& y);

    /// Of y[begin, end), which must be the vector that the tree was made of. NaNs are passed over.
    Extremes over(const std::vector<double>& y, std::size_t begin, std::size_t end) const;

private:
    std::vector<std::vector<Extremes>> m_levels; // the finest first
};

struct DensePoint
{
    double x, y;
    bool joined = false; ///< represents a full stretch between it and the point before
};

/// How many points of `curve` lie inside `range`.
std::ptrdiff_t visibleCount(const CleanCurve& curve, const AxisRange& range);

/// Its points from the one before `range` to the one after it.
std::vector<DensePoint> visiblePoints(const CleanCurve& curve, const AxisRange& range);

/// The points of `curve` inside `range` for a plot of so many columns, in the order of x: those of
/// a column with few points as they are, else its first, lowest, highest and last. One point on
/// either side of the range comes along, so that lines reach the edge. Gaps wider than a column
/// stay gaps. Of a cloud of dots, which no line joins, the lowest and the highest of a full column
/// are enough.
std::vector<DensePoint> densePoints(const CleanCurve& curve, const ExtremesTree& tree, const AxisRange& range,
                                    int columns, bool cloud = false);

} // namespace memscape
