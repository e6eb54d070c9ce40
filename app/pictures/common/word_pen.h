// SPDX-License-Identifier: GPL-3.0-or-later
// What pictures write with: lines of words in boxes, lanes at work, the button that plays.
#pragma once

#include "app/pictures/common/player.h"
#include "app/settings/theme.h"

#include <QPainter>
#include <QString>
#include <QStringList>

namespace memscape {

struct WordPen
{
    QPainter& painter;
    const Theme& theme;

    /// One line in the middle of the box's height, with "…" where the rest has no room. `size`: of the plots' font.
    void line(const QRectF& box, const QString& words, double size, const QColor& colour, bool bold = false,
              int align = Qt::AlignLeft, bool isCode = false) const;
    /// The first of the words that has room as a whole, else the last.
    void line(const QRectF& box, const QStringList& words, double size, const QColor& colour, bool bold = false) const;
    /// "measured 3.2 ms" at the right end of a way's head; what is left of the head.
    QRectF measured(const QRectF& head, const QString& seconds, double gap) const;
    /// The row of a lane that does nothing yet, with its name beside it.
    void lane(const QRectF& row, const QRectF& label, const QString& name, bool isMarked = false) const;
    /// What a lane does for a while, with its words where they have room; neighbours have a gap between them.
    void lanePiece(QRectF box, const QColor& colour, const QString& words, const QFont& font) const;
    /// "▶ play" or "❚❚ pause"; nothing in an export.
    void playButton(const QRectF& box, PlayButton play) const;
};

} // namespace memscape
