// SPDX-License-Identifier: GPL-3.0-or-later
// What the two files of WarpPicture share: warp_picture.cpp (what it shows and what a hand does to
// it) and warp_paint.cpp (how it is drawn).
#pragma once

#include "app/pictures/warp_picture.h"

#include <array>

namespace memscape {

constexpr std::array<Operation, 3> warpOperations{Operation::Read, Operation::Write,
                                                  Operation::Copy};
QString warpOperationWord(Operation operation);

struct WarpPicture::Layout
{
    QRectF head, foot;
    LaneRow lanes;
    QRectF laneArea;
    std::optional<WarpStrip> source; ///< above the lanes, of a copy
    WarpStrip strip; ///< below them
    std::array<QRectF, warpOperations.size()> chips;
};

} // namespace memscape
