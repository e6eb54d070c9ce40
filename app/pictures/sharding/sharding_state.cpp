// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/sharding/sharding_state.h"

#include "app/pictures/common/json_values.h"
#include "app/settings/words.h"
#include "core/experiment/outcome.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace memscape {

namespace {

constexpr std::size_t mostShardLanes = 8, mostShardSpansRead = 2048;
constexpr double mostBytesRead = 0x1p62;

struct PartName
{
    const char *key, *label;
};
constexpr std::array<PartName, 4> keptParts{{{"weights", "weights"},
                                             {"gradients", "gradients"},
                                             {"master_weights", "master weights"},
                                             {"optimizer_state", "optimizer state"}}};

bool isTime(double value)
{
    return std::isfinite(value) && value >= 0;
}

double bytesIn(const Json& object, const char* key)
{
    const double value = number(object, key, 0);
    return value >= 0 && value <= mostBytesRead ? value : 0;
}

/// Nothing where a number is missing or makes no sense.
std::optional<ShardingSpan> readSpan(const Json& json, std::size_t lanes)
{
    ShardingSpan span;
    const double lane = number(json, "lane");
    span.begin = number(json, "begin");
    span.end = number(json, "end");
    if (!(lane >= 0) || lane >= double(lanes) || !isTime(span.begin) || !isTime(span.end) || span.end < span.begin)
        return std::nullopt;
    span.lane = std::size_t(lane);
    span.first = whole(json, "first", 0, 1e9);
    span.last = std::max(span.first, whole(json, "last", span.first, 1e9));
    span.phase = textOf(json, "phase");
    span.what = textOf(json, "what");
    span.kind = textOf(json, "kind");
    span.unit = textOf(json, "unit");
    span.bytes = bytesIn(json, "bytes");
    span.sent = bytesIn(json, "sent");
    return span;
}

void readParts(ShardingState& state, const Json& detail)
{
    const Json &rank = member(detail, "rank"), &alone = member(detail, "alone");
    for (const PartName& part : keptParts)
        state.parts.push_back(
            {QLatin1String(part.key), tr(part.label), bytesIn(rank, part.key), bytesIn(alone, part.key)});
    state.parts.push_back({QStringLiteral("activations"), tr("activations"), bytesIn(rank, "activations"),
                           bytesIn(alone, "activations")});
    state.gathered = bytesIn(rank, "gathered");
    state.onHost = bytesIn(rank, "host");
    state.parts.push_back({QStringLiteral("communication"), tr("gathered"), state.gathered, 0});
}

} // namespace

double ShardingState::rankBytes() const
{
    double sum = 0;
    for (const ShardingPart& part : parts)
        sum += part.bytes;
    return sum;
}

double ShardingState::aloneBytes() const
{
    double sum = 0;
    for (const ShardingPart& part : parts)
        sum += part.alone;
    return sum;
}

double ShardingState::gatheredAt(double seconds) const
{
    double held = 0;
    for (const auto& [at, bytes] : gatheredOver) {
        if (at > seconds)
            break;
        held = bytes;
    }
    return held;
}

QString ShardingState::spanWords(const ShardingSpan& span) const
{
    const QString place = !span.unit.isEmpty() ? span.unit
        : span.first == span.last              ? QString()
                                               : tr("%1 to %2").arg(span.first + 1).arg(span.last + 1);
    QString said = span.kind.isEmpty() ? span.phase : tr("%1, %2: %3").arg(span.phase, span.kind, span.what);
    if (!place.isEmpty())
        said += tr(", %1").arg(place);
    if (span.sent > 0)
        said += tr(", %1, each rank sends %2").arg(bytesText(span.bytes), bytesText(span.sent));
    return tr("%1; from %2, %3 long").arg(said, secondsText(span.begin), secondsText(span.end - span.begin));
}

const ShardingSpan* ShardingState::collectiveAt(double seconds) const
{
    for (const ShardingSpan& span : spans) {
        if (!span.kind.isEmpty() && span.sent > 0 && span.begin <= seconds && seconds < span.end)
            return &span;
    }
    return nullptr;
}

QString ShardingState::wordsAt(double seconds) const
{
    QStringList said;
    for (const ShardingSpan& span : spans) {
        if (span.begin <= seconds && seconds < span.end)
            said << (span.kind.isEmpty() ? tr("%1 computes").arg(span.phase) : tr("%1 of %2").arg(span.kind, span.what))
                    + (span.unit.isEmpty() ? QString() : tr(", %1").arg(span.unit));
    }
    QString text = tr("After %1: %2.").arg(secondsText(seconds), said.isEmpty() ? tr("done") : said.join(u"; "));
    if (gathered > 0)
        text += tr(" %1 gathered.").arg(bytesText(gatheredAt(seconds)));
    return text;
}

ShardingState readSharding(const Prediction* predicted, const Measurement* measured, ByteStyle style)
{
    ShardingState state;
    state.byteStyle = style;
    if (!predicted)
        return state;
    const Json& detail = predicted->detail;
    state.ranks = whole(detail, "ranks", 0, 1e9);
    state.dataParallel = whole(detail, "data_parallel", 1, 1e9);
    state.zero = int(whole(detail, "zero", 0, 3));
    state.isSerial = isTrue(detail, "serial");
    state.mostRanks = state.isSerial ? 8 : 1024;
    state.link = textOf(member(detail, "link"), "label");
    readParts(state, detail);
    for (const Json& lane : listOf(detail, "lanes")) {
        if (std::size_t(state.lanes.size()) < mostShardLanes)
            state.lanes << textOf(lane);
    }
    for (const Json& json : listOf(detail, "spans")) {
        if (state.spans.size() == mostShardSpansRead)
            break;
        if (auto span = readSpan(json, std::size_t(state.lanes.size()))) {
            state.end = std::max(state.end, span->end);
            state.spans.push_back(std::move(*span));
        }
    }
    for (const Json& json : listOf(detail, "gathered")) {
        const std::vector<double> values = numbers(json);
        if (values.size() == 2 && isTime(values[0]) && isTime(values[1])
            && (state.gatheredOver.empty() || state.gatheredOver.back().first <= values[0]))
            state.gatheredOver.emplace_back(values[0], std::min(values[1], mostBytesRead));
    }
    if (!(state.end > 0))
        state.spans.clear();
    const auto figure = [](const Outcome* outcome, const char* key) -> std::optional<double> {
        const Figure* const found = outcome ? findFigure(outcome->figures, key) : nullptr;
        return found && found->isNumber() && isTime(found->number()) ? std::optional(found->number()) : std::nullopt;
    };
    state.exposed = figure(predicted, "exposed_time").value_or(0);
    state.sent = figure(predicted, "sent").value_or(0);
    state.communication = figure(predicted, "communication_time");
    state.measured = figure(measured, "communication_time");
    const QString model = textOf(detail, "model");
    state.title = tr("%1 on %2 ranks, %3")
                      .arg(model.isEmpty() ? tr("a step") : model)
                      .arg(state.ranks)
                      .arg(state.zero == 0 ? tr("data parallel") : tr("ZeRO stage %1").arg(state.zero));
    return state;
}

} // namespace memscape
