// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/training-memory/memory_state.h"

#include "app/pictures/common/json_values.h"
#include "app/settings/words.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double mostEvents = 2e9; ///< of a document that was written by hand

std::optional<double> optionalNumber(const Json& object, const char* key)
{
    const double value = number(object, key);
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

template <typename Value, typename Read> std::vector<Value> list(const Json& array, Read read)
{
    std::vector<Value> values;
    if (!array.is_array())
        return values;
    values.reserve(array.size());
    for (const Json& one : array)
        values.push_back(read(one));
    return values;
}

std::optional<FitAnswer> readFit(const Json& detail)
{
    const Json& json = member(detail, "make_it_fit");
    if (!json.is_object())
        return std::nullopt;
    FitAnswer answer;
    answer.combinations = list<LeverCard>(member(json, "combinations"), readLever);
    answer.changing = list<LeverCard>(member(json, "changing_training"), readLever);
    answer.tried = int(whole(json, "tried", 0, mostEvents));
    if (const Json& smallest = member(json, "smallest"); smallest.is_object() && !textOf(smallest, "label").isEmpty())
        answer.smallest = readLever(smallest);
    const Json& largest = member(detail, "largest");
    answer.largestBatch = optionalNumber(largest, "batch");
    answer.largestSequence = optionalNumber(largest, "sequence");
    answer.fewestDevices = optionalNumber(largest, "fewest_devices");
    return answer;
}

} // namespace

LeverCard readLever(const Json& json)
{
    LeverCard card{textOf(json, "key"), textOf(json, "label"), textOf(json, "why"), textOf(json, "acts_on"), {}};
    if (const Json& changes = member(json, "changes"); changes.is_object()) {
        for (const auto& [key, value] : changes.items()) {
            if (value.is_string())
                card.changes.emplace_back(key, value.get<std::string>());
        }
    }
    card.saving = number(json, "saving", 0);
    card.total = number(json, "device_total");
    card.timeChange = number(json, "time_change");
    card.fits = isTrue(json, "fits", false);
    card.keepsTraining = isTrue(json, "keeps_training", true);
    return card;
}

double MemoryState::total() const
{
    double sum = 0;
    for (const MemoryPart& part : parts)
        sum += part.bytes;
    return sum;
}

std::vector<double> MemoryTimeline::totals() const
{
    std::vector<double> sums(event.size(), 0);
    for (const TimelineCategory& category : categories) {
        for (std::size_t i = 0; i < sums.size() && i < category.bytes.size(); ++i)
            sums[i] += std::isfinite(category.bytes[i]) ? category.bytes[i] : 0;
    }
    return sums;
}

namespace {

PipelineRanks readRanks(const Json& json)
{
    PipelineRanks ranks;
    for (const Json& rank : member(json, "ranks")) {
        const double total = number(rank, "device_total");
        if (!(total > 0))
            return {}; // of a file: the others would stand under wrong numbers
        ranks.totals.push_back(total);
        ranks.inFlight.push_back(number(rank, "in_flight", 0));
    }
    ranks.fullest = int(whole(json, "rank", 0, std::max<double>(0, double(ranks.totals.size()) - 1)));
    return ranks;
}

} // namespace

MemoryState readMemoryState(const Json& detail)
{
    MemoryState state;
    const Json& model = member(detail, "model");
    state.model = textOf(model, "title");
    if (state.model.isEmpty())
        state.model = textOf(model, "name");
    state.family = textOf(model, "family");
    state.positions = number(model, "positions", 0);
    state.caution = textOf(model, "caution");
    state.assumptions = list<QString>(member(model, "assumptions"), [](const Json& one) {
        return one.is_string() ? QString::fromStdString(one.get<std::string>()) : QString();
    });
    for (const Json& part : member(detail, "parts")) {
        const double bytes = number(part, "bytes");
        if (bytes > 0)
            state.parts.push_back({textOf(part, "key"), textOf(part, "label"), bytes});
    }
    state.ranks = readRanks(member(detail, "pipeline"));
    state.capacity = optionalNumber(member(detail, "capacity"), "bytes");
    state.available = optionalNumber(member(detail, "capacity"), "available");
    state.device = textOf(member(detail, "capacity"), "label");
    state.fits = isTrue(detail, "fits", true);
    state.isTight = textOf(detail, "fit") == QLatin1String("tight");
    state.over = number(detail, "over", 0);
    state.loading = number(detail, "loading", 0);
    state.levers = list<LeverCard>(member(detail, "levers"), readLever);
    state.outOfMemory = textOf(member(detail, "out_of_memory"), "summary");
    state.fit = readFit(detail);
    return state;
}

MemoryTimeline readTimeline(const Json& json)
{
    MemoryTimeline timeline;
    timeline.event = numbers(member(json, "event"));
    timeline.categories = list<TimelineCategory>(member(json, "categories"), [](const Json& one) {
        return TimelineCategory{textOf(one, "key"), textOf(one, "label"), numbers(member(one, "bytes"))};
    });
    std::erase_if(timeline.categories,
                  [&](const TimelineCategory& one) { return one.bytes.size() != timeline.event.size(); });
    timeline.phases = list<TimelinePhase>(member(json, "phases"), [](const Json& one) {
        return TimelinePhase{textOf(one, "key"), textOf(one, "label"), number(one, "begin", 0), number(one, "end", 0),
                             int(whole(one, "micro_batch", 0, mostEvents))};
    });
    timeline.peak = int(whole(json, "peak", -1, mostEvents));
    timeline.capacity = optionalNumber(json, "capacity");
    if (const Json& point = member(json, "out_of_memory"); point.is_object())
        timeline.outOfMemory =
            OutOfMemoryPoint{number(point, "event", 0), textOf(point, "phase"), textOf(point, "module"),
                             textOf(point, "name"), number(point, "bytes", 0)};
    return timeline;
}

MemoryMoment readMoment(const Json& json)
{
    MemoryMoment moment;
    moment.event = int(whole(json, "event", -1, mostEvents));
    moment.phase = textOf(json, "phase");
    moment.module = textOf(json, "module");
    moment.name = textOf(json, "name");
    moment.microBatch = int(whole(json, "micro_batch", 0, mostEvents));
    moment.allocated = number(json, "allocated", 0);
    moment.live = list<LiveTensor>(member(json, "live"), [](const Json& one) {
        return LiveTensor{textOf(one, "category"), textOf(one, "module"), textOf(one, "name"), number(one, "bytes", 0),
                          int(whole(one, "count", 1, mostEvents))};
    });
    const Json& rest = member(json, "rest");
    moment.restBytes = number(rest, "bytes", 0);
    moment.restCount = int(whole(rest, "count", 0, mostEvents));
    return moment;
}

std::vector<TextbookFormula> readTextbook(const Json& textbook)
{
    return list<TextbookFormula>(textbook, [](const Json& one) {
        return TextbookFormula{textOf(one, "formula"), textOf(one, "source"), textOf(one, "difference"),
                               number(one, "value"), number(one, "ours")};
    });
}

QString memoryText(double bytes, ByteStyle style)
{
    return QString::fromStdString(quantityText(bytes, Unit::Byte, style));
}

QString savingText(double saving, ByteStyle style)
{
    return (saving >= 0 ? QStringLiteral("−") : QStringLiteral("+")) + memoryText(std::abs(saving), style);
}

QString timeChangeText(double change)
{
    if (!std::isfinite(change))
        return tr("time not known");
    if (std::abs(change) < 0.01)
        return tr("≈ same time");
    const QString percent = QString::fromStdString(percentText(change));
    return tr("%1 time").arg(percent.front().isDigit() ? u'+' + percent : percent);
}

QString placeText(const QString& phase, const QString& module, const QString& name)
{
    QStringList parts{phase, module, name};
    parts.removeAll(QString());
    return parts.join(QStringLiteral(" · "));
}

} // namespace memscape
