// SPDX-License-Identifier: GPL-3.0-or-later
// Where everything of the picture of `placement` stands: a band for each place with the nodes in it, from left to right
// in the order in which they run, and below them the lanes over one axis of time. Geometry only.
#pragma once

#include "app/pictures/placement/placement_state.h"

#include <QRectF>

#include <array>

namespace memscape {

struct PlacementLayout
{
    QRectF title, times, foot;
    std::array<QRectF, 2> bands, bandLabels; ///< device, host
    std::vector<QRectF> nodes;               ///< where each runs
    std::vector<QRectF> homes; ///< of weights that come up or are updated there, in the host's band; empty of others
    std::vector<QRectF> lanes, laneLabels;
    std::vector<QRectF> pieces;
    double unit = 1, longest = 0;

    double x(double seconds) const { return times.left() + (longest > 0 ? seconds / longest * times.width() : 0); }
    double secondsAt(double x) const;
    int nodeAt(QPointF at) const;  ///< −1 for none
    int pieceAt(QPointF at) const; ///< −1 for none
    int bandAt(QPointF at) const;  ///< 0 device, 1 host, −1 none
};

/// `unit`: one pixel of the drawings (plotUnit()).
PlacementLayout layoutPlacement(const PlacementState& state, const QRectF& rect, double unit);

} // namespace memscape
