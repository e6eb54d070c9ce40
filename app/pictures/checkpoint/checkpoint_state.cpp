// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/checkpoint/checkpoint_state.h"

#include "app/pictures/common/json_values.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace memscape {

namespace {

constexpr std::size_t mostSteps = 2'000'000; ///< of a file; more is no schedule that we made
constexpr std::int32_t highestStage = 1 << 22;

std::optional<OperationKind> kindOf(const Json& value)
{
    constexpr std::array kinds{OperationKind::ForwardKeep, OperationKind::ForwardDrop, OperationKind::ForwardSave,
                               OperationKind::Loss,        OperationKind::Backward,    OperationKind::DiscardValue,
                               OperationKind::DiscardSaved};
    if (!value.is_string())
        return std::nullopt;
    for (const OperationKind kind : kinds) {
        if (operationText(kind) == value.get_ref<const std::string&>())
            return kind;
    }
    return std::nullopt;
}

std::optional<ScheduleStep> readStep(const Json& json)
{
    const std::optional<OperationKind> kind = kindOf(member(json, "operation"));
    const double stage = number(json, "stage", 0), option = number(json, "option", 0);
    if (!kind || !(stage >= 0 && stage < highestStage) || !(option >= 0 && option < highestStage))
        return std::nullopt;
    ScheduleStep step;
    step.operation = {*kind, std::int32_t(stage), std::int32_t(option)};
    step.begin = number(json, "begin", 0);
    step.end = number(json, "end", step.begin);
    step.during = number(json, "during", 0);
    step.after = number(json, "after", 0);
    step.isRecomputation = isTrue(json, "recomputation");
    const bool sound = std::isfinite(step.begin) && step.end >= step.begin && step.during >= 0 && step.after >= 0;
    return sound ? std::optional(step) : std::nullopt;
}

std::vector<ScheduleStep> readSteps(const Json& schedule)
{
    std::vector<ScheduleStep> steps;
    if (!schedule.is_array() || schedule.size() > mostSteps)
        return steps;
    steps.reserve(schedule.size());
    for (const Json& json : schedule) {
        const std::optional<ScheduleStep> step = readStep(json);
        if (!step)
            return {}; // half a schedule would be another one
        steps.push_back(*step);
    }
    return steps;
}

/// What is there while a schedule runs: by index the step that made it.
class Shelf
{
public:
    explicit Shelf(int length)
        : m_value(std::size_t(length) + 1, absent)
        , m_saved(std::size_t(length) + 1, absent)
    {
        m_value[0] = -1;
    }

    void run(const ChainOperation& operation, int at);
    std::vector<KeptSpan> finish(int end);

private:
    static constexpr int absent = -2;

    void make(std::vector<int>& shelf, int i, int at)
    {
        if (i >= 0 && std::size_t(i) < shelf.size())
            shelf[std::size_t(i)] = at;
    }
    void free(std::vector<int>& shelf, int i, int at)
    {
        if (i < 0 || std::size_t(i) >= shelf.size() || shelf[std::size_t(i)] == absent)
            return;
        const bool isSaved = &shelf == &m_saved;
        m_spans.push_back({isSaved ? i - 1 : i, isSaved, shelf[std::size_t(i)], at});
        shelf[std::size_t(i)] = absent;
    }

    std::vector<int> m_value, m_saved;
    std::vector<KeptSpan> m_spans;
};

void Shelf::run(const ChainOperation& operation, int at)
{
    const int i = operation.stage;
    switch (operation.kind) {
    case OperationKind::ForwardKeep: make(m_value, i + 1, at); break;
    case OperationKind::ForwardDrop:
        make(m_value, i + 1, at);
        free(m_value, i, at);
        break;
    case OperationKind::ForwardSave: make(m_saved, i + 1, at); break;
    case OperationKind::Loss: free(m_value, int(m_value.size()) - 1, at); break;
    case OperationKind::Backward:
        free(m_saved, i + 1, at);
        free(m_value, i, at);
        break;
    case OperationKind::DiscardValue: free(m_value, i, at); break;
    case OperationKind::DiscardSaved: free(m_saved, i, at); break;
    }
}

std::vector<KeptSpan> Shelf::finish(int end)
{
    for (int i = 0; i < int(m_value.size()); ++i) {
        free(m_value, i, end);
        free(m_saved, i, end);
    }
    return std::move(m_spans);
}

/// How many of the spans each step finds there.
std::vector<int> counts(const std::vector<KeptSpan>& kept, std::size_t steps)
{
    std::vector<int> change(steps + 1), count(steps);
    for (const KeptSpan& span : kept) {
        change[std::size_t(std::clamp(span.made + 1, 0, int(steps)))] += 1;
        change[std::size_t(std::clamp(span.freed + 1, 0, int(steps)))] -= 1;
    }
    int now = 0;
    for (std::size_t k = 0; k < steps; ++k)
        count[k] = now += change[k];
    return count;
}

int lengthOf(const Json& chain, const std::vector<ScheduleStep>& steps)
{
    int length = 0;
    for (const ScheduleStep& step : steps)
        length = std::max(length, step.operation.kind == OperationKind::Backward ? step.operation.stage + 1 : 0);
    const Json& forward = member(chain, "forward");
    const std::size_t told = forward.is_array() ? forward.size() : 0;
    return told > std::size_t(length) && told < std::size_t(highestStage) ? int(told) : length;
}

ScheduleUnits readUnits(const Json& chain)
{
    const Json& units = member(chain, "units");
    ScheduleUnits read;
    read.isBytes = textOf(units, "memory") == QStringLiteral("B");
    read.isSeconds = textOf(units, "time") == QStringLiteral("s");
    return read;
}

} // namespace

std::vector<KeptSpan> keptSpans(const std::vector<ScheduleStep>& steps, int length)
{
    Shelf shelf(length);
    for (std::size_t k = 0; k < steps.size(); ++k)
        shelf.run(steps[k].operation, int(k));
    std::vector<KeptSpan> spans = shelf.finish(int(steps.size()) - 1);
    // The value that the next forward reads and drops is on its way, not kept.
    std::erase_if(spans, [](const KeptSpan& span) { return !span.isSaved && span.freed <= span.made + 1; });
    return spans;
}

std::vector<double> ScheduleState::rows() const
{
    std::vector<double> edges{0};
    edges.reserve(steps.size() + 1);
    for (const ScheduleStep& step : steps)
        edges.push_back(edges.back() + (step.isDiscard() ? 0 : 1));
    return edges;
}

bool ScheduleState::hasTimes() const
{
    return !steps.empty() && steps.back().end > steps.front().begin;
}

std::vector<double> ScheduleState::times() const
{
    if (!hasTimes())
        return rows();
    std::vector<double> edges{steps.front().begin};
    edges.reserve(steps.size() + 1);
    for (const ScheduleStep& step : steps)
        edges.push_back(std::max(edges.back(), step.end));
    return edges;
}

ScheduleState readSchedule(const Json& detail)
{
    ScheduleState state;
    const Json& chain = member(detail, "chain");
    state.steps = readSteps(member(detail, "schedule"));
    state.length = lengthOf(chain, state.steps);
    const Json& missing = member(member(detail, "strategy"), "missing");
    state.missing = textOf(missing, "message");
    if (const QString hint = textOf(missing, "hint"); !hint.isEmpty())
        state.missing += QStringLiteral(" (%1)").arg(hint);
    if (state.missing.isEmpty())
        state.missing = textOf(detail, "schedule_missing");
    state.units = readUnits(chain);
    if (const Json& names = member(chain, "names"); names.is_array()) {
        for (const Json& name : names)
            state.stages << textOf(name);
    }
    const Json& budget = member(detail, "budget");
    if (!member(budget, "states").is_number()) // states are counted: memory has no limit
        state.budget = number(budget, "value");
    state.kept = keptSpans(state.steps, state.length);
    state.keptCount = counts(state.kept, state.steps.size());
    for (std::size_t k = 0; k < state.steps.size(); ++k) {
        if (state.peak < 0 || state.steps[k].during > state.highest) {
            state.highest = state.steps[k].during;
            state.peak = int(k);
        }
    }
    return state;
}

FrontLine readFront(const Json& detail)
{
    FrontLine front;
    const Json& budget = member(detail, "budget");
    front.given = member(budget, "states").is_number() ? nan : number(budget, "value");
    front.least = number(budget, "minimum");
    front.full = number(budget, "without_recomputation");
    front.fullTime = number(budget, "makespan_without_recomputation");
    front.units = readUnits(member(detail, "chain"));
    const Json& points = member(detail, "front");
    if (!points.is_array())
        return front;
    for (const Json& point : points) {
        const double memory = number(point, "budget"), makespan = number(point, "makespan");
        if (std::isfinite(memory) && std::isfinite(makespan)) {
            front.budget.push_back(memory);
            front.makespan.push_back(makespan);
        }
    }
    return front;
}

std::vector<StrategyPoint> readStrategies(const Json& detail)
{
    std::vector<StrategyPoint> points;
    const Json& strategies = member(detail, "strategies");
    if (!strategies.is_array())
        return points;
    for (const Json& json : strategies) {
        StrategyPoint point;
        point.key = textOf(json, "key");
        point.label = strategyLabel(point.key);
        point.note = textOf(json, "note");
        point.missing = textOf(member(json, "missing"), "message");
        point.peak = number(json, "peak");
        point.makespan = number(json, "makespan");
        const Json& feasible = member(json, "feasible");
        point.feasible = !feasible.is_boolean() || feasible.get<bool>();
        if (!point.key.isEmpty())
            points.push_back(point);
    }
    return points;
}

std::vector<MeasuredPoint> measuredPoints(const Outcome& measured, const ScheduleState& predicted)
{
    std::vector<MeasuredPoint> points;
    const Series* curve = measured.findSeries("memory");
    if (curve == nullptr || predicted.empty())
        return points;
    const std::vector<ScheduleStep> own = readSteps(member(measured.detail, "schedule"));
    const bool same = own.size() == predicted.steps.size();
    const std::vector<ScheduleStep>& clock = same ? own : predicted.steps;
    const std::size_t count = std::min(curve->x.values.size(), curve->y.size());
    const double last = count > 0 ? curve->x.values[count - 1] : 0;
    const double scale = same || !(last > 0) ? 1 : clock.back().end / last;
    for (std::size_t k = 0; k < count; ++k) {
        const double time = curve->x.values[k] * scale;
        if (!std::isfinite(time) || !std::isfinite(curve->y[k]))
            continue;
        const auto at = std::lower_bound(clock.begin(), clock.end(), time,
                                         [](const ScheduleStep& step, double t) { return step.end < t; });
        if (at == clock.end())
            break;
        const double length = at->end - at->begin;
        const double share = length > 0 ? std::clamp((time - at->begin) / length, 0.0, 1.0) : 0.5;
        points.push_back({double(at - clock.begin()) + share, curve->y[k]});
    }
    return points;
}

} // namespace memscape
