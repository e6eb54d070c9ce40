// SPDX-License-Identifier: GPL-3.0-or-later
// Areas that go up and down in steps: of each column of pixels a lower and an upper edge. Timelines of memory are
// drawn with them.
#pragma once

#include <QPolygonF>
#include <QRectF>

#include <vector>

namespace memscape {

/// Columns from `first` on. `edges`: x of all columns' borders, one more than columns; `low` and `high`: y.
struct Stairs
{
    const std::vector<double>& edges;
    std::size_t first;
    const std::vector<double>& low;
    const std::vector<double>& high;
};

QPolygonF outlineOf(const Stairs& stairs);
/// The longest part that goes straight on and is at least so high, within `area`; empty where there is none.
QRectF longestStretch(const Stairs& stairs, const QRectF& area, double leastHeight);
/// The column at x; −1 outside.
int columnAt(const std::vector<double>& edges, double x);
/// Whether the place lies in that area; `column` is that of columnAt().
bool contains(const Stairs& stairs, int column, double y);

} // namespace memscape
