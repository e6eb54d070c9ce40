// SPDX-License-Identifier: GPL-3.0-or-later
// Where the picture of `layout` draws what: chips in rows, the grid of elements, the strip of lines, the play
// button, two lines of code.
#pragma once

#include "app/pictures/layout/layout_state.h"

#include <QPointF>
#include <QRectF>

#include <vector>

namespace memscape {

struct LayoutGeometry
{
    QRectF title, hint;
    QRectF base;               ///< the chip of the tensor itself
    std::vector<QRectF> chips; ///< of the operations
    QRectF plus;               ///< the chip that adds one
    QRectF gridTitle, grid;    ///< all panels
    double cell = 0;           ///< side of an element
    double panelStep = 0;      ///< from one panel to the next
    QRectF stripTitle;
    std::vector<QRectF> lines; ///< bars of the lines of memory, without their names
    double lineNames = 0;      ///< width to the left of a bar
    QRectF playButton, words;
    QRectF pytorch, numpy;
    int slotCount = 1; ///< elements of a line

    QRectF cellRect(int panel, int row, int column) const;
    QRectF slotRect(int line, int slot) const;
    QRectF removeOf(int chip) const; ///< the cross of a chip
    int chipAt(QPointF at) const;    ///< −1 where there is none
    int lineAt(QPointF at) const;
    int slotAt(QPointF at, int line) const;
};

LayoutGeometry layoutGeometry(const LayoutState& state, const QRectF& rect);

} // namespace memscape
