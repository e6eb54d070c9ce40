// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/records/compare_text.h"

#include "app/pages/records/record_text.h"

#include <QLocale>
#include <QObject>

#include <cmath>

namespace memscape {

namespace {

QString figureLine(const Figure& a, const Figure& b)
{
    QString line = QObject::tr("%1: %2 → %3, %4")
                       .arg(QString::fromStdString(a.label), QString::fromStdString(a.text()),
                            QString::fromStdString(b.text()), QString::fromUtf8(verdictText(compareFigures(a, b))));
    if (a.number() != 0 && std::isfinite(b.number() / a.number()))
        line += QStringLiteral(" (%1)").arg(QString::fromStdString(percentText(b.number() / a.number() - 1)));
    return line;
}

/// Two records of one name are distinguished by the time they were made.
QString nameBeside(const Record& record, const Record& other)
{
    const QString name = recordName(record);
    const QDateTime time = recordTime(record);
    if (name != recordName(other) || !time.isValid())
        return name;
    return QObject::tr("%1 of %2").arg(name, QLocale().toString(time.toLocalTime(), QStringLiteral("d MMM hh:mm:ss")));
}

QString sentence(const Record& first, const Record& second, const Series& a, Verdict verdict)
{
    const QString one = nameBeside(first, second);
    const QString two = nameBeside(second, first);
    const QString what = QString::fromStdString(a.label);
    switch (verdict) {
    case Verdict::Faster: return QObject::tr("“%1” is faster than “%2” in %3").arg(two, one, what);
    case Verdict::Slower: return QObject::tr("“%1” is slower than “%2” in %3").arg(two, one, what);
    case Verdict::Same: return QObject::tr("“%1” and “%2” are the same within noise in %3").arg(two, one, what);
    case Verdict::Unknown: break;
    }
    return QObject::tr("“%1” and “%2” have too few points in common to say which is faster").arg(two, one);
}

} // namespace

QString compareText(const Record& first, const Record& second)
{
    const bool areMeasured = first.measured && second.measured;
    if (!areMeasured && (!first.predicted || !second.predicted))
        return QObject::tr("One of them is measured only, the other predicted only: nothing to compare.");
    const Outcome& one = areMeasured ? *first.measured : *first.predicted;
    const Outcome& two = areMeasured ? *second.measured : *second.predicted;
    QStringList lines;
    if (!areMeasured)
        lines << QObject::tr("Predictions compared, because not both are measured:");
    if (!one.series.empty()) {
        const Series& a = one.series.front();
        if (const Series* b = two.findSeries(a.key))
            lines << sentence(first, second, a, compareSeries(a, *b));
    }
    for (const Figure& a : one.figures) {
        const Figure* b = findFigure(two.figures, a.key);
        const bool timed = a.unit == Unit::Second || a.unit == Unit::BytePerSecond || a.unit == Unit::FlopPerSecond;
        if (b != nullptr && timed && a.isNumber() && b->isNumber())
            lines << figureLine(a, *b);
    }
    return lines.join(u'\n');
}

} // namespace memscape
