// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/predicted_points.h"

#include "core/base/cancellation.h"
#include "core/experiment/gap_sentences.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

/// A value that is no number stands at its index.
double pointX(const ParameterValue& value, std::size_t index)
{
    const double* const number = std::get_if<double>(&value);
    return number ? *number : double(index);
}

std::string textOf(const Json& json, const char* key)
{
    return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>()
                                                                           : std::string();
}

} // namespace

std::string pointLabel(const Experiment& experiment, const Sweep& sweep, const ParameterValue& value)
{
    const ParameterSpec* const spec = findParameter(experiment.schema(), sweep.key);
    return spec ? fmt::format("{} {}", spec->label, valueLabel(*spec, value))
                : fmt::format("{} {}", sweep.key, valueText(value));
}

Point refusedPoint(double x, std::string name, const Error& error)
{
    return {x, std::move(name), {}, {{"error", error.code}, {"reason", error.text()}}};
}

Result<std::vector<Point>> predictedPoints(const Sweep& sweep, const Parameters& parameters, const PointModel& model)
{
    std::vector<Point> points;
    std::optional<Error> refused;
    bool isAnswered = sweep.values.empty();
    for (std::size_t i = 0; i < sweep.values.size(); ++i) {
        MEMSCAPE_CHECK(checkWanted());
        const Parameters there = parameters.at(sweep.key, sweep.values[i]);
        const double x = pointX(sweep.values[i], i);
        std::string name = valueText(sweep.values[i]);
        auto figures = model(there, i);
        if (figures) {
            isAnswered = true;
            points.push_back({x, std::move(name), std::move(*figures), {}});
            continue;
        }
        const bool isOwn = !parameters.sweep() && there.values() == parameters.values();
        if (isOwn || figures.error().code == "predict.cancelled")
            return fail(std::move(figures).error());
        points.push_back(refusedPoint(x, std::move(name), figures.error()));
        if (!refused)
            refused = std::move(figures).error();
    }
    if (!isAnswered)
        return fail(std::move(*refused));
    return points;
}

void addGaps(Outcome& outcome, const Experiment& experiment, const Sweep& sweep, const std::vector<Point>& points)
{
    for (const Point& point : points) {
        if (textOf(point.detail, "error").empty())
            continue;
        for (std::size_t i = 0; i < sweep.values.size(); ++i) {
            if (pointX(sweep.values[i], i) == point.x)
                outcome.detail["gaps"].push_back({{"x", jsonNumber(point.x)},
                                                  {"label", pointLabel(experiment, sweep, sweep.values[i])},
                                                  {"reason", textOf(point.detail, "reason")}});
        }
    }
}

std::vector<Gap> gapsOf(const Outcome& outcome)
{
    std::vector<Gap> gaps;
    if (!outcome.detail.is_object() || !outcome.detail.contains("gaps") || !outcome.detail["gaps"].is_array())
        return gaps;
    for (const Json& gap : outcome.detail["gaps"]) {
        const std::string label = textOf(gap, "label"), reason = textOf(gap, "reason");
        if (!label.empty() && !reason.empty())
            gaps.push_back({gap.contains("x") && gap["x"].is_number() ? gap["x"].get<double>() : nan, label, reason});
    }
    return gaps;
}

void setDetail(Outcome& outcome, Json detail)
{
    if (outcome.detail.is_object() && outcome.detail.contains("gaps") && detail.is_object())
        detail["gaps"] = outcome.detail["gaps"];
    outcome.detail = std::move(detail);
}

std::vector<std::string> gapSentences(const Prediction* predicted, const Measurement* measured)
{
    constexpr std::size_t most = 4;
    const std::vector<Gap> models = predicted ? gapsOf(*predicted) : std::vector<Gap>(),
                           runs = measured ? gapsOf(*measured) : std::vector<Gap>();
    const auto holds = [](const std::vector<Gap>& gaps, const Gap& gap) {
        return std::any_of(gaps.begin(), gaps.end(),
                           [&](const Gap& one) { return one.label == gap.label && one.reason == gap.reason; });
    };
    std::vector<std::string> sentences;
    for (const Gap& gap : models)
        sentences.push_back(fmt::format("{} at {}: {}.",
                                        holds(runs, gap) ? "Neither predicted nor measured" : "Not predicted",
                                        gap.label, gap.reason));
    for (const Gap& gap : runs) {
        if (!holds(models, gap))
            sentences.push_back(fmt::format("Not measured at {}: {}.", gap.label, gap.reason));
    }
    if (sentences.size() > most) {
        const std::size_t others = sentences.size() - most;
        sentences.resize(most);
        sentences.push_back(fmt::format("{} more points are missing.", others));
    }
    return sentences;
}

} // namespace memscape
