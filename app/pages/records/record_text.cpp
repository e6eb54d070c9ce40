// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/records/record_text.h"
#include "core/report/summary.h"

#include "app/pictures/common/json_values.h"
#include "app/settings/words.h"
#include "core/base/json.h"

#include <nlohmann/json.hpp>

#include <QLocale>

namespace memscape {

QString recordName(const Record& record)
{
    if (!record.name.empty())
        return toQString(record.name);
    return toQString(record.experiment) + QStringLiteral(" · ") + shortDeviceName(record.device);
}

QDateTime recordTime(const Record& record)
{
    return QDateTime::fromString(textOf(record.provenance, "time"), Qt::ISODate);
}

QString ageText(const QDateTime& time, const QDateTime& now)
{
    if (!time.isValid())
        return {};
    const qint64 seconds = time.secsTo(now);
    if (seconds < 60)
        return QObject::tr("now");
    if (seconds < 3600)
        return QObject::tr("%n min ago", nullptr, int(seconds / 60));
    const QDate day = time.toLocalTime().date();
    const QDate today = now.toLocalTime().date();
    if (day == today)
        return QObject::tr("%n h ago", nullptr, int(seconds / 3600));
    if (day.daysTo(today) == 1)
        return QObject::tr("yesterday");
    return QLocale().toString(day, QStringLiteral("d MMM yyyy"));
}

QString dateText(const QDateTime& time)
{
    return time.isValid() ? QLocale().toString(time.toLocalTime(), QStringLiteral("d MMM yyyy hh:mm")) : QString();
}

QString recordGrade(const Record& record)
{
    return textOf(record.provenance, "grade");
}

QString incompleteText(const Record& record)
{
    const QString status = textOf(record.provenance, "status");
    if (status == QStringLiteral("cancelled"))
        return QObject::tr("stopped");
    if (status == QStringLiteral("interrupted"))
        return QObject::tr("interrupted");
    return status == QStringLiteral("failed") ? QObject::tr("failed") : QString();
}

QString recordToolTip(const Record& record)
{
    QStringList lines{recordName(record)};
    const auto add = [&](const QString& what, const QString& value) {
        if (!value.isEmpty())
            lines << what.arg(value);
    };
    add(QObject::tr("device: %1"), toQString(record.device.name));
    add(QObject::tr("made: %1"),
        recordTime(record).isValid() ? QLocale().toString(recordTime(record).toLocalTime(), QLocale::ShortFormat)
                                     : QString());
    add(QObject::tr("quality grade: %1"), recordGrade(record));
    add(QObject::tr("because: %1"), textOf(record.provenance, "reason"));
    add(QObject::tr("not measured to its end: %1"), incompleteText(record));
    add(QStringLiteral("%1"), toQString(parametersText(record)));
    add(QStringLiteral("%1"), toQString(record.note));
    return lines.join(u'\n');
}

std::string sweptKey(const Record& record)
{
    for (const Outcome* outcome :
         {record.measured ? &*record.measured : nullptr, record.predicted ? &*record.predicted : nullptr}) {
        if (outcome != nullptr && !outcome->series.empty())
            return outcome->series.front().x.key;
    }
    return {};
}

bool answers(const Record& record, const std::string& experiment, const std::string& device,
             const Parameters& parameters)
{
    if (record.experiment != experiment || record.device.id != device || !record.measured)
        return false;
    std::string swept = sweptKey(record);
    if (parameters.sweep()) // a record may have curves over something else beside
        for (const Series& series : record.measured->series)
            if (series.x.key == parameters.sweep()->key)
                swept = series.x.key;
    for (const auto& [key, value] : parameters.values()) {
        if (key == swept)
            continue;
        const auto& theirs = record.parameters.values();
        const bool same =
            std::ranges::any_of(theirs, [&](const auto& pair) { return pair.first == key && pair.second == value; });
        if (!same)
            return false;
    }
    return !parameters.sweep() || parameters.sweep()->key == swept;
}

QString differenceText(const Schema& schema, const Parameters& of, const Parameters& from, const std::string& except,
                       ByteStyle bytes)
{
    QStringList parts;
    for (const auto& [key, value] : of.values()) {
        const ParameterSpec* spec = findParameter(schema, key);
        if (spec == nullptr || key == except || !from.has(key))
            continue;
        for (const auto& [other, theirs] : from.values()) {
            if (other == key && theirs != value)
                parts << toQString(spec->label) + u' ' + toQString(valueLabel(*spec, value, bytes));
        }
    }
    return parts.join(QStringLiteral(", "));
}

QString shortDeviceName(const Device& device)
{
    if (device.kind == DeviceKind::Host && device.id == "cpu")
        return QObject::tr("This CPU");
    QString name = toQString(device.name.empty() ? device.id : device.name);
    if (name.startsWith(QStringLiteral("NVIDIA ")))
        name.remove(0, 7);
    return name;
}

QString nameElsewhere(const Device& device)
{
    return toQString(device.name).replace(QStringLiteral(" on this CPU"), QObject::tr(" on another CPU"));
}

QString basisText(const Device& device, TimeText when)
{
    if (device.calibration) {
        const auto time = QDateTime::fromString(toQString(device.calibration->time), Qt::ISODate);
        const QString told = when == TimeText::Age ? ageText(time) : dateText(time);
        QString basis = told.isEmpty() ? QObject::tr("calibrated") : QObject::tr("calibrated %1").arg(told);
        if (!device.calibration->grade.empty())
            basis += QObject::tr(", grade %1").arg(toQString(device.calibration->grade));
        return basis;
    }
    if (device.basis == "catalogue")
        return QObject::tr("catalogue values, not calibrated");
    if (device.basis == "derived")
        return QObject::tr("derived from its attributes, not calibrated");
    if (device.basis == "described")
        return QObject::tr("described by the system, not calibrated");
    return device.basis.empty() ? QObject::tr("not calibrated") : toQString(device.basis);
}

Error withBriefHint(Error error)
{
    constexpr std::size_t most = 160;
    const std::size_t end = error.hint.size() > most ? error.hint.rfind(", ", most) : most;
    if (end < most)
        error.hint = error.hint.substr(0, end) + ", …";
    return error;
}

} // namespace memscape
