// SPDX-License-Identifier: GPL-3.0-or-later
// Where the parts of the bank picture are: lanes above a grid whose columns are the banks and whose rows
// are 128 bytes of shared memory, the wavefronts as a strip below, words and cures at the right.
#pragma once

#include "app/pictures/bank-conflicts/bank_state.h"

#include <QPointF>
#include <QRectF>

#include <vector>

namespace memscape {

struct BankLayout
{
    QRectF title, hint; ///< in one line
    QRectF laneRow;
    std::vector<QPointF> lanes; ///< middles of their circles
    double radius = 0;
    QRectF bankNames; ///< above the grid
    QRectF lineNames; ///< at its left
    QRectF grid;
    double cellWidth = 0, cellHeight = 0;
    QRectF playButton, strip; ///< of wavefronts
    QRectF words;             ///< what happens now
    QRectF curesTitle;
    std::vector<QRectF> cures;
    QRectF note; ///< what the device lacks

    QRectF cell(int bank, int line) const
    {
        return {grid.left() + bank * cellWidth, grid.top() + line * cellHeight, cellWidth, cellHeight};
    }
    QRectF wavefront(int index, int count) const
    {
        const double width = strip.width() / std::max(1, count);
        return {strip.left() + index * width, strip.top(), width, strip.height()};
    }
    int laneAt(QPointF at) const; ///< −1 where there is none
    int bankAt(QPointF at) const; ///< 0 to 31, clamped
    int lineAt(QPointF at) const; ///< −1 outside the grid
};

BankLayout layoutBanks(const BankState& state, const QRectF& rect);

} // namespace memscape
