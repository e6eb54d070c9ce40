// SPDX-License-Identifier: GPL-3.0-or-later
// What the two files of StridePicture share: stride_picture.cpp (what it shows and what a hand does to
// it) and stride_paint.cpp (how it is drawn).
#pragma once

#include "app/pictures/stride/stride_picture.h"

#include <array>

namespace memscape {

constexpr std::array<Operation, 3> warpOperations{Operation::Read, Operation::Write, Operation::Copy};
QString warpOperationWord(Operation operation);

struct StridePicture::Layout
{
    QRectF head, foot;
    LaneRow lanes;
    QRectF laneArea;
    std::optional<StrideStrip> source; ///< above the lanes, of a copy
    StrideStrip strip;                 ///< below them
    std::array<QRectF, warpOperations.size()> chips;
};

} // namespace memscape
