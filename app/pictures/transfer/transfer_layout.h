// SPDX-License-Identifier: GPL-3.0-or-later
// Where everything of the picture of `transfer` stands: a block for each way, a row for each of its lanes, all to one
// scale of time. Geometry only, for painting, hit tests and tests.
#pragma once

#include "app/pictures/common/frame.h"
#include "app/pictures/common/lane_blocks.h"
#include "app/pictures/transfer/transfer_state.h"

#include <array>

namespace memscape {

struct TransferLayout : PictureFrame, LaneBlocks
{
    QRectF handle; ///< at the end of the first copy of the way that a hand changes; empty without
    QRectF depthLabel;
    std::array<QRectF, 8> depths; ///< buffers in flight, one to eight

    int depthAt(QPointF at) const; ///< 1 to 8; 0 for none
};

/// `unit`: one pixel of the drawings (plotUnit()).
TransferLayout layoutTransfer(const TransferState& state, const QRectF& rect, double unit);

} // namespace memscape
