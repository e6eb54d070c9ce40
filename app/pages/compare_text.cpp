// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/compare_text.h"

#include "app/pages/record_text.h"

#include <QObject>

#include <cmath>

namespace memscape {

namespace {

QString figureLine(const Figure& a, const Figure& b)
{
    QString line = QObject::tr("%1: %2 → %3, %4")
                       .arg(QString::fromStdString(a.label), QString::fromStdString(a.text()),
                            QString::fromStdString(b.text()),
                            QString::fromUtf8(verdictText(compareFigures(a, b))));
    if (a.number() != 0 && std::isfinite(b.number() / a.number()))
        line += QStringLiteral(" (%1)").arg(
            QString::fromStdString(percentText(b.number() / a.number() - 1)));
    return line;
}

} // namespace

QString compareText(const Record& first, const Record& second)
{
    if (!first.measured || !second.measured)
        return QObject::tr("Only measured records can be compared.");
    QStringList lines;
    if (!first.measured->series.empty()) {
        const Series& a = first.measured->series.front();
        if (const Series* b = second.measured->findSeries(a.key))
            lines << QObject::tr("“%1” is %2 than “%3” in %4")
                         .arg(recordName(second),
                              QString::fromUtf8(verdictText(compareSeries(a, *b))),
                              recordName(first), QString::fromStdString(a.label))
                         .replace(QObject::tr("noise than"), QObject::tr("noise as"));
    }
    for (const Figure& a : first.measured->figures) {
        const Figure* b = findFigure(second.measured->figures, a.key);
        const bool timed = a.unit == Unit::Second || a.unit == Unit::BytePerSecond
            || a.unit == Unit::FlopPerSecond;
        if (b != nullptr && timed && a.isNumber() && b->isNumber())
            lines << figureLine(a, *b);
    }
    return lines.join(u'\n');
}

} // namespace memscape
