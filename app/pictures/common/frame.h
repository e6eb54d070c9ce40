// SPDX-License-Identifier: GPL-3.0-or-later
// What pictures of bytes on their way have around them: a title, a button that plays at its right, a line at the foot.
#pragma once

#include <QRectF>

namespace memscape {

struct PictureFrame
{
    QRectF inside; ///< all of it, without its margins
    QRectF title, button, foot;
    double unit = 1; ///< one pixel of the drawings (plotUnit())

    PictureFrame() = default;
    PictureFrame(const QRectF& rect, double ofUnit)
        : inside(rect.adjusted(12 * ofUnit, 6 * ofUnit, -12 * ofUnit, -6 * ofUnit))
        , title(inside.left(), inside.top(), inside.width() - 28 * ofUnit, 20 * ofUnit)
        , button(inside.right() - 22 * ofUnit, inside.top(), 22 * ofUnit, 20 * ofUnit)
        , foot(inside.left(), inside.bottom() - 18 * ofUnit, inside.width(), 18 * ofUnit)
        , unit(ofUnit)
    { }
};

} // namespace memscape
