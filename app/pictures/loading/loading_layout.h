// SPDX-License-Identifier: GPL-3.0-or-later
// Where everything of the picture of `loading` stands: the vessels side by side, below them a block for each way with a
// row for each step, all to one scale of time. Geometry only, for painting, hit tests and tests.
#pragma once

#include "app/pictures/common/frame.h"
#include "app/pictures/common/lane_blocks.h"
#include "app/pictures/loading/loading_state.h"

namespace memscape {

enum class VesselKind { Medium, Host, Gpu };

/// Heights are to one scale for all vessels: `fullest` B fill a whole one.
struct LoadingVessel
{
    VesselKind kind = VesselKind::Medium;
    QRectF label, box, words;
    double heightOf(double bytes, double fullest) const { return fullest > 0 ? bytes / fullest * box.height() : 0; }
};

struct LoadingLayout : PictureFrame, LaneBlocks
{
    std::vector<LoadingVessel> vessels;
    std::vector<QRectF> arrows; ///< between neighbours
};

/// `unit`: one pixel of the drawings (plotUnit()).
LoadingLayout layoutLoading(const LoadingState& state, const QRectF& rect, double unit);

} // namespace memscape
