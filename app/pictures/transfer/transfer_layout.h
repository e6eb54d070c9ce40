// SPDX-License-Identifier: GPL-3.0-or-later
// Where everything of the picture of `transfer` stands: a block for each way, a row for each of its lanes, all to one
// scale of time. Geometry only, for painting, hit tests and tests.
#pragma once

#include "app/pictures/transfer/transfer_state.h"

#include <QRectF>

#include <array>

namespace memscape {

struct TransferBar
{
    std::size_t way = 0, piece = 0;
    QRectF rect;
};

struct TransferBlock
{
    QRectF head;
    std::vector<QRectF> labels, lanes; ///< a row each
};

struct TransferLayout
{
    QRectF title, button, times, foot;
    std::vector<TransferBlock> blocks;
    std::vector<TransferBar> bars;
    QRectF handle; ///< at the end of the first copy of the way that a hand changes; empty without
    QRectF depthLabel;
    std::array<QRectF, 8> depths; ///< buffers in flight, one to eight
    double unit = 1, longest = 0;

    double x(double seconds) const { return times.left() + (longest > 0 ? seconds / longest * times.width() : 0); }
    double secondsAt(double x) const;
    int barAt(QPointF at) const;   ///< −1 for none
    int depthAt(QPointF at) const; ///< 1 to 8; 0 for none
};

/// `unit`: one pixel of the drawings (plotUnit()).
TransferLayout layoutTransfer(const TransferState& state, const QRectF& rect, double unit);

} // namespace memscape
