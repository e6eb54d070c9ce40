// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/byte_words.h"

#include <QRegularExpression>

#include <algorithm>

namespace memscape {

QString bytesInStyle(const QString& text, ByteStyle style)
{
    if (style == ByteStyle::Binary)
        return text;
    static const QRegularExpression sizes(QStringLiteral("(?<![\\w.])(\\d+(?:\\.\\d+)?) ([KMGTPE])iB\\b"));
    QString made;
    qsizetype at = 0;
    for (auto matches = sizes.globalMatch(text); matches.hasNext();) {
        const QRegularExpressionMatch match = matches.next();
        const QString number = match.captured(1);
        double bytes = number.toDouble();
        for (qsizetype power = QStringLiteral("KMGTPE").indexOf(match.captured(2)); power >= 0; --power)
            bytes *= 1024;
        const auto digits = number.size() - number.count(u'.');
        made += text.mid(at, match.capturedStart() - at)
            + QString::fromStdString(quantityText(bytes, Unit::Byte, style, std::max(3, int(digits) - 1)));
        at = match.capturedEnd();
    }
    return made + text.mid(at);
}

} // namespace memscape
