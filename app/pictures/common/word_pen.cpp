// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/common/word_pen.h"

#include "app/plots/part_colours.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QFontDatabase>
#include <QFontMetricsF>

namespace memscape {

void WordPen::line(const QRectF& box, const QString& words, double size, const QColor& colour, bool bold, int align,
                   bool isCode) const
{
    QFont font = plotFont(size, bold);
    if (isCode)
        font.setFamily(QFontDatabase::systemFont(QFontDatabase::FixedFont).family());
    painter.setFont(font);
    painter.setPen(colour);
    painter.drawText(box, align | Qt::AlignVCenter, QFontMetricsF(font).elidedText(words, Qt::ElideRight, box.width()));
}

void WordPen::line(const QRectF& box, const QStringList& words, double size, const QColor& colour, bool bold) const
{
    const QFontMetricsF metrics(plotFont(size, bold));
    for (const QString& one : words) {
        if (metrics.horizontalAdvance(one) <= box.width())
            return line(box, one, size, colour, bold);
    }
    line(box, words.back(), size, colour, bold);
}

QRectF WordPen::measured(const QRectF& head, const QString& seconds, double gap) const
{
    const QString text = tr("measured %1").arg(seconds);
    const double wide = QFontMetricsF(plotFont(0.9, true)).horizontalAdvance(text) + 2;
    line(QRectF(head.right() - wide, head.top(), wide, head.height()), text, 0.9, theme.measuredText, true,
         Qt::AlignRight);
    return head.adjusted(0, 0, -wide - gap, 0);
}

void WordPen::lane(const QRectF& row, const QRectF& label, const QString& name, bool isMarked) const
{
    painter.fillRect(row, mix(theme.background, theme.grid, 0.5));
    line(label, name, 0.8, isMarked ? theme.highlightText : theme.textDim, isMarked, Qt::AlignRight);
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

void WordPen::playButton(const QRectF& box, PlayButton play) const
{
    if (play == PlayButton::None)
        return;
    painter.setPen(QPen(theme.border, 1));
    painter.setBrush(theme.raised);
    painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
    line(box, play == PlayButton::Pause ? tr("❚❚ pause") : tr("▶ play"), 0.85, theme.text, false, Qt::AlignCenter);
}

} // namespace memscape
