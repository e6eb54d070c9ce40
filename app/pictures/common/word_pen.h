// SPDX-License-Identifier: GPL-3.0-or-later
// What the pictures of bytes on their way write with: lines of words in boxes.
#pragma once

#include "app/settings/theme.h"

#include <QPainter>
#include <QString>

namespace memscape {

struct WordPen
{
    QPainter& painter;
    const Theme& theme;

    /// One line in the middle of the box's height, with "…" where the rest has no room. `size`: of the plots' font.
    void line(const QRectF& box, int flags, const QString& text, const QColor& colour, double size, bool isBold) const;
    /// "measured 3.2 ms" at the right end of a way's head; what is left of the head.
    QRectF measured(const QRectF& head, const QString& seconds, double gap) const;
    /// What a lane does for a while, with its words where they have room; neighbours have a gap between them.
    void lanePiece(QRectF box, const QColor& colour, const QString& words, const QFont& font) const;
};

} // namespace memscape
