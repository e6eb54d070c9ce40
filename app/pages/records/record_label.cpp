// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/records/record_label.h"

#include "app/pages/records/record_text.h"

#include <QLocale>
#include <QObject>

#include <algorithm>

namespace memscape {

namespace {

using Value = std::optional<ParameterValue>; // nothing: it runs over all values

/// The value of a record in one parameter.
Value valueIn(const Record& record, const std::string& key, const std::string& swept)
{
    if (const auto& sweep = record.parameters.sweep(); sweep && sweep->key == key && sweep->values.size() == 1)
        return sweep->values.front();
    if (key == swept)
        return std::nullopt;
    for (const auto& [known, value] : record.parameters.values()) {
        if (known == key)
            return value;
    }
    return std::nullopt;
}

/// Choices and amounts are clear without a name; a bare number needs its parameter's name.
QString valueName(const ParameterSpec& spec, const ParameterValue& value, ByteStyle bytes)
{
    const QString name = QString::fromStdString(valueLabel(spec, value, bytes));
    const bool isClear = spec.kind == ParameterKind::Choice || spec.kind == ParameterKind::Text
        || (spec.unit == Unit::Byte && name != u'0');
    return isClear ? name : QString::fromStdString(spec.label) + u' ' + name;
}

/// The parameters that not all records share.
std::vector<const ParameterSpec*> differing(const Schema& schema, const std::vector<const Record*>& records,
                                            const std::vector<std::string>& swept)
{
    std::vector<const ParameterSpec*> specs;
    for (const ParameterSpec& spec : schema) {
        const Value first = valueIn(*records.front(), spec.key, swept.front());
        for (std::size_t i = 1; i < records.size(); ++i) {
            if (valueIn(*records[i], spec.key, swept[i]) == first)
                continue;
            specs.push_back(&spec);
            break;
        }
    }
    return specs;
}

/// Those in which the first of them is not as the defaults.
std::vector<const ParameterSpec*> unusual(const Schema& schema, const Record& record, const std::string& swept)
{
    std::vector<const ParameterSpec*> specs;
    const auto standard = resolve(schema, std::vector<std::string>{});
    for (const ParameterSpec& spec : schema) {
        const Value own = valueIn(record, spec.key, swept);
        for (const auto& [key, value] : standard ? standard->values() : record.parameters.values()) {
            if (key == spec.key && own && value != *own)
                specs.push_back(&spec);
        }
    }
    return specs;
}

QString timeText(const QDateTime& time, const QDateTime& now)
{
    if (!time.isValid())
        return {};
    const QDateTime local = time.toLocalTime();
    const bool isToday = local.date() == now.toLocalTime().date();
    return QLocale().toString(local, isToday ? QStringLiteral("hh:mm") : QStringLiteral("d MMM hh:mm"));
}

} // namespace

QString RecordLabel::text() const
{
    return what.isEmpty() || time.isEmpty() ? what + time : what + QStringLiteral(", ") + time;
}

std::vector<RecordLabel> recordLabels(const std::vector<Record>& records, const std::vector<std::size_t>& indices,
                                      const std::string& device, ByteStyle bytes, const QDateTime& now)
{
    std::vector<const Record*> own;
    std::vector<std::string> swept;
    for (const std::size_t index : indices) {
        own.push_back(&records[index]);
        swept.push_back(sweptKey(records[index]));
    }
    if (own.empty())
        return {};
    const std::string& common = device.empty() ? own.front()->device.id : device;
    const bool namesDevice =
        std::ranges::any_of(own, [&](const Record* record) { return record->device.id != common; });
    std::vector<const ParameterSpec*> specs;
    if (const auto experiment = findExperiment(own.front()->experiment)) {
        const Schema& schema = (*experiment)->schema();
        specs = differing(schema, own, swept);
        if (specs.empty()) { // of one curve: identified by the points from which it was looked at
            std::vector<std::string> nothing(own.size());
            specs = differing(schema, own, nothing);
            if (!specs.empty())
                swept = std::move(nothing);
        }
        if (specs.empty() && !namesDevice)
            specs = unusual(schema, *own.front(), swept.front());
    }
    std::vector<RecordLabel> labels;
    for (std::size_t i = 0; i < own.size(); ++i) {
        const Record& record = *own[i];
        QStringList parts;
        if (!record.measured)
            parts << QObject::tr("predicted");
        if (const QString incomplete = incompleteText(record); !incomplete.isEmpty())
            parts << incomplete;
        if (namesDevice)
            parts << shortDeviceName(record.device);
        for (const ParameterSpec* spec : specs) {
            if (const Value value = valueIn(record, spec->key, swept[i]))
                parts << valueName(*spec, *value, bytes);
        }
        labels.push_back({parts.join(QStringLiteral(", ")), timeText(recordTime(record), now)});
        if (!record.name.empty())
            labels.back() = {QString::fromStdString(record.name), {}};
    }
    return labels;
}

} // namespace memscape
