// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/common/word_pen.h"

#include "app/plots/part_colours.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QFontMetricsF>

namespace memscape {

void WordPen::line(const QRectF& box, int flags, const QString& text, const QColor& colour, double size,
                   bool isBold) const
{
    painter.setFont(plotFont(size, isBold));
    painter.setPen(colour);
    painter.drawText(box, flags | Qt::AlignVCenter,
                     QFontMetricsF(painter.font()).elidedText(text, Qt::ElideRight, box.width()));
}

QRectF WordPen::measured(const QRectF& head, const QString& seconds, double gap) const
{
    const QString text = tr("measured %1").arg(seconds);
    const double wide = QFontMetricsF(plotFont(0.9, true)).horizontalAdvance(text) + 2;
    line(QRectF(head.right() - wide, head.top(), wide, head.height()), Qt::AlignRight, text, theme.measuredText, 0.9,
         true);
    return head.adjusted(0, 0, -wide - gap, 0);
}

void WordPen::lanePiece(QRectF box, const QColor& colour, const QString& words, const QFont& font) const
{
    if (box.width() > 3)
        box.setWidth(box.width() - 1);
    painter.fillRect(box, colour);
    const QFontMetricsF metrics(font);
    if (metrics.horizontalAdvance(words) + 4 >= box.width() || metrics.height() > box.height() + 4)
        return;
    painter.setFont(font);
    painter.setPen(textOn(colour));
    painter.drawText(box, Qt::AlignCenter, words);
}

} // namespace memscape
