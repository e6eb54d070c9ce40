// SPDX-License-Identifier: GPL-3.0-or-later
// One request on paper: which sectors are drawn where. Touched sectors get a cell each; a few
// untouched ones between them are drawn as empty outlines, so that one sees what is skipped; longer
// stretches become a gap mark with their size. Lines (128 bytes, or pages on a host) are groups.
#pragma once

#include "core/access/warp.h"

#include <QPointF>
#include <QRectF>

#include <vector>

namespace memscape {

struct StrideCell
{
    enum class Kind { Touched, Skipped, Gap };
    Kind kind = Kind::Touched;
    QRectF rect;
    std::uint64_t address = 0; ///< of the sector; where the gap begins
    std::uint64_t bytes = 0;   ///< of a gap
    std::size_t sector = 0;    ///< index into WarpAccess::sectors when touched
    bool beginsLine = false;
};

struct StrideStrip
{
    std::vector<StrideCell> cells;
    std::vector<double> targets; ///< by lane: x of the middle of its element
    std::uint64_t commonGap = 0; ///< all gaps are of this size; 0: they differ or there are none
};

/// Cells from left to right inside `area`.
StrideStrip layoutStrip(const WarpAccess& access, const QRectF& area);

/// Middles of the lanes' circles along `area`, and their radius.
struct LaneRow
{
    std::vector<QPointF> centres;
    double radius = 0;
};
LaneRow layoutLanes(std::size_t lanes, const QRectF& area);

} // namespace memscape
