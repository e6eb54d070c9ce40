// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/answer.h"

#include "core/base/cancellation.h"
#include "core/experiment/by_key.h"
#include "core/experiment/experiment.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr double leastGain = 1.02;

/// Values that a user would try next: half and double of a number (1 after 0), every other choice, the other flag.
std::vector<ParameterValue> neighbours(const ParameterSpec& spec, const Parameters& parameters)
{
    std::vector<ParameterValue> values;
    const auto current = std::find_if(parameters.values().begin(), parameters.values().end(),
                                      [&](const auto& one) { return one.first == spec.key; });
    if (current == parameters.values().end() || spec.kind == ParameterKind::Text)
        return values;
    if (spec.kind == ParameterKind::Choice) {
        for (const ChoiceValue& choice : spec.choices)
            if (ParameterValue(choice.key) != current->second)
                values.emplace_back(choice.key);
        return values;
    }
    if (spec.kind == ParameterKind::Flag)
        return {ParameterValue(!std::get<bool>(current->second))};
    const double number = std::get<double>(current->second);
    for (double value : {number / 2, number > 0 ? number * 2 : 1}) {
        if (spec.kind == ParameterKind::Integer)
            value = std::floor(value);
        if (value != number && value >= spec.minimum && value <= spec.maximum)
            values.emplace_back(value);
    }
    return values;
}

double gain(double now, double then, bool wantsMore)
{
    return wantsMore ? then / now : now / then;
}

bool isIn(const std::vector<std::string>& keys, const std::string& key)
{
    return std::find(keys.begin(), keys.end(), key) != keys.end();
}

} // namespace

Figures measuredFirst(const Figures& predicted, const Figures& measured)
{
    Figures figures = predicted;
    const ByKey others(measured);
    for (Figure& figure : figures) {
        const Figure* other = others.find(figure.key);
        if (other && (!other->isNumber() || std::isfinite(other->number())))
            figure.value = other->value;
    }
    return figures;
}

std::vector<Improvement> improvements(const Experiment& experiment, const Device& device, const Parameters& parameters,
                                      const Figures& now, ByteStyle bytes)
{
    std::vector<Improvement> found;
    const ShortAnswer answer = experiment.shortAnswer(device, parameters, now);
    const Figure* before = findFigure(now, answer.figure);
    if (!before || !(before->number() > 0))
        return found;
    const auto idle = experiment.idleParameters(device, parameters);
    for (const std::string& key : answer.knobs) {
        const ParameterSpec* spec = findParameter(experiment.schema(), key);
        if (!spec || isIn(idle, key))
            continue;
        Improvement best;
        std::vector<ParameterValue> values = neighbours(*spec, parameters);
        for (const auto& [knob, value] : answer.tries) {
            if (knob == key)
                values.emplace_back(value);
        }
        for (const ParameterValue& value : values) {
            if (isCancelled())
                return found;
            const Parameters changed = parameters.at(key, value);
            const auto figures = experiment.predictPoint(device, changed);
            const Figure* after = figures ? findFigure(*figures, answer.figure) : nullptr;
            if (!after || !(after->number() > 0)
                || gain(before->number(), after->number(), answer.wantsMore) <= best.factor)
                continue;
            best = {key, valueText(value), fmt::format("{} {}", spec->label, valueLabel(*spec, value, bytes)),
                    after->text(bytes), gain(before->number(), after->number(), answer.wantsMore)};
        }
        if (best.factor >= leastGain)
            found.push_back(std::move(best));
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.factor > b.factor; });
    return found;
}

} // namespace memscape
