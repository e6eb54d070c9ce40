// SPDX-License-Identifier: GPL-3.0-or-later
// Where everything of the picture of `loading` stands: the vessels side by side, below them a block for each way with a
// row for each step, all to one scale of time. Geometry only, for painting, hit tests and tests.
#pragma once

#include "app/pictures/loading/loading_state.h"

#include <QRectF>

namespace memscape {

enum class VesselKind { Medium, Host, Gpu };

/// Heights are to one scale for all vessels: `fullest` B fill a whole one.
struct LoadingVessel
{
    VesselKind kind = VesselKind::Medium;
    QRectF label, box, words;
    double heightOf(double bytes, double fullest) const { return fullest > 0 ? bytes / fullest * box.height() : 0; }
};

struct LoadingBar
{
    std::size_t way = 0, piece = 0;
    QRectF rect;
};

struct LoadingBlock
{
    QRectF head;
    std::vector<QRectF> labels, lanes;
};

struct LoadingLayout
{
    QRectF title, button, times, foot;
    std::vector<LoadingVessel> vessels;
    std::vector<QRectF> arrows; ///< between neighbours
    std::vector<LoadingBlock> blocks;
    std::vector<LoadingBar> bars;
    double unit = 1, longest = 0;

    double x(double seconds) const { return times.left() + (longest > 0 ? seconds / longest * times.width() : 0); }
    double secondsAt(double x) const;
    int barAt(QPointF at) const;  ///< −1 for none
    int headAt(QPointF at) const; ///< index of a way; −1 for none
};

/// `unit`: one pixel of the drawings (plotUnit()).
LoadingLayout layoutLoading(const LoadingState& state, const QRectF& rect, double unit);

} // namespace memscape
