// SPDX-License-Identifier: GPL-3.0-or-later
// Where the parts of the attention picture are: matrix and its words at the left, chip and bytes at
// the right. Heights follow the width that there is; nothing overlaps down to the smallest size.
#pragma once

#include "app/pictures/attention/attention_state.h"

#include <QRectF>

namespace memscape {

struct AttentionLayout
{
    QRectF title, hint; ///< in one line
    QRectF keys;        ///< "keys →" above the matrix
    QRectF matrix;
    QRectF words;         ///< beside the matrix
    QRectF chip, traffic; ///< two boxes
    QRectF playButton;
    double cellWidth = 0, cellHeight = 0;

    QRectF cell(int row, int column) const
    {
        return {matrix.left() + column * cellWidth, matrix.top() + row * cellHeight, cellWidth, cellHeight};
    }
    QRectF row(int index, int columns) const
    {
        return {matrix.left(), matrix.top() + index * cellHeight, columns * cellWidth, cellHeight};
    }
};

AttentionLayout layoutAttention(const AttentionState& state, const QRectF& rect);

} // namespace memscape
