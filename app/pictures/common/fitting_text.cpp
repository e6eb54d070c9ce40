// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/common/fitting_text.h"

#include <QFontMetricsF>
#include <QRectF>

namespace memscape {

QString fittingText(QString text, const QFont& font, double width, double height)
{
    const QFontMetricsF metrics(font);
    const auto isTooHigh = [&](const QString& words) {
        return metrics.boundingRect(QRectF(0, 0, width, 1e5), Qt::TextWordWrap, words).height() > height;
    };
    if (!isTooHigh(text))
        return text;
    while (text.contains(u' ') && isTooHigh(text + QChar(0x2026)))
        text = text.section(u' ', 0, -2);
    return text + QChar(0x2026);
}

} // namespace memscape
