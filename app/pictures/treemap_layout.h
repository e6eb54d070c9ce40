// SPDX-License-Identifier: GPL-3.0-or-later
// Rectangles whose areas are in the ratio of the values, as near to squares as they come:
// squarified treemaps (Bruls, Huizing, van Wijk 2000). Rows are filled along the shorter side of
// what is left, and a row ends where the next value would make its worst rectangle longer.
#pragma once

#include <QRectF>

#include <vector>

namespace memscape {

/// One rectangle per value, in the same order; empty ones for values that are not positive. The
/// values should be given largest first; together the rectangles fill `rect`.
std::vector<QRectF> squarify(const std::vector<double>& values, const QRectF& rect);

} // namespace memscape
