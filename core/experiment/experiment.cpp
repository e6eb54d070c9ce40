// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/experiment.h"

#include "core/base/cancellation.h"
#include "core/base/text.h"
#include "core/experiment/predicted_points.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

double xOf(const ParameterValue& value, std::size_t index)
{
    const double* number = std::get_if<double>(&value);
    return number ? *number : static_cast<double>(index);
}

bool isNumber(const ParameterValue& value)
{
    return std::holds_alternative<double>(value);
}

} // namespace

Json Experiment::predictDetail(const Device&, const Parameters&) const
{
    return Json::object();
}

std::vector<Claim> Experiment::claims(const Device&, const Parameters&, const Measurement&) const
{
    return {};
}

Sweep sweepOf(const Experiment& experiment, const Device& device, const Parameters& parameters)
{
    if (parameters.sweep())
        return *parameters.sweep();
    Sweep sweep = experiment.axis(device, parameters);
    for (const auto& [key, value] : parameters.values()) {
        if (key == sweep.key && std::find(sweep.values.begin(), sweep.values.end(), value) == sweep.values.end())
            sweep.values.push_back(value);
    }
    if (!sweep.values.empty() && isNumber(sweep.values.front()))
        std::sort(sweep.values.begin(), sweep.values.end());
    return sweep;
}

SeriesAxis axisOf(const Experiment& experiment, const Sweep& sweep)
{
    SeriesAxis axis;
    axis.key = sweep.key;
    axis.label = sweep.key;
    bool positive = true;
    for (std::size_t i = 0; i < sweep.values.size(); ++i) {
        axis.values.push_back(xOf(sweep.values[i], i));
        positive = positive && axis.values.back() > 0;
    }
    if (const ParameterSpec* spec = findParameter(experiment.schema(), sweep.key)) {
        axis.label = spec->suffix.empty() ? spec->label : fmt::format("{} ({})", spec->label, spec->suffix);
        axis.unit = spec->unit;
        if (spec->kind != ParameterKind::Integer && spec->kind != ParameterKind::Real) {
            axis.scale = AxisScale::Category;
            for (const ParameterValue& value : sweep.values)
                axis.names.push_back(valueText(value));
        } else if (spec->scale == Scale::Log2 && positive) {
            axis.scale = AxisScale::Log2; // zero has no place on a logarithmic axis
        }
    }
    return axis;
}

Outcome outcomeFromPoints(const Experiment& experiment, const Device& device, const Parameters& parameters,
                          std::vector<Point> points)
{
    const Sweep sweep = sweepOf(experiment, device, parameters);
    const SeriesAxis axis = axisOf(experiment, sweep);
    Outcome outcome;
    outcome.detail = Json::object();
    outcome.series = seriesFromPoints(experiment.series(), axis, points);
    addGaps(outcome, experiment, sweep, points);
    for (std::size_t i = 0; i < sweep.values.size(); ++i) {
        bool current = false;
        for (const auto& [key, value] : parameters.values())
            current |= key == sweep.key && value == sweep.values[i];
        if (!current)
            continue;
        const double x = xOf(sweep.values[i], i);
        for (const Point& point : points) {
            if (point.x == x)
                outcome.figures = point.figures;
        }
        break;
    }
    return outcome;
}

Result<Prediction> Experiment::predict(const Device& device, const Parameters& parameters, PredictionContext&) const
{
    const auto modelled = [&](const Parameters& point, std::size_t) { return predictPoint(device, point); };
    MEMSCAPE_TRY(points, predictedPoints(sweepOf(*this, device, parameters), parameters, modelled));
    Prediction prediction = outcomeFromPoints(*this, device, parameters, std::move(points));
    setDetail(prediction, predictDetail(device, parameters));
    prediction.detail["basis"] = device.basis;
    if (const auto made = claims(device, parameters); !made.empty())
        prediction.detail["claims"] = claimsJson(made);
    return prediction;
}

Result<Prediction> Experiment::predict(const Device& device, const Parameters& parameters) const
{
    PredictionContext once;
    return predict(device, parameters, once);
}

std::string Experiment::notMeasuredOn(const Device& device) const
{
    if (!device.framework || isMeasuredInPytorch())
        return notMeasured();
    return fmt::format("\"{}\" is measured by Memscape's own kernels, not by {}. Choose {}.", title(),
                       device.framework->name, device.isGpu() ? "the GPU itself (cuda:0)" : "the CPU itself (cpu)");
}

std::vector<std::string> Experiment::idleParameters(const Device& device, const Parameters&) const
{
    const AppliesTo elsewhere = device.isGpu() ? AppliesTo::Hosts : AppliesTo::Gpus;
    std::vector<std::string> idle;
    for (const ParameterSpec& spec : schema()) {
        if (spec.appliesTo == elsewhere || (spec.appliesTo == AppliesTo::Pytorch && !device.framework))
            idle.push_back(spec.key);
    }
    return idle;
}

namespace {

bool isAssigned(const std::vector<std::string>& assignments, const std::string& key)
{
    return std::any_of(assignments.begin(), assignments.end(),
                       [&](const std::string& one) { return one.starts_with(key + "="); });
}

/// Sets those of `texts` that are not assigned.
Result<void> setOthers(Parameters& parameters, const Experiment& experiment, const ParameterTexts& texts,
                       const std::vector<std::string>& assignments)
{
    for (const auto& [key, text] : texts) {
        if (!isAssigned(assignments, key)) {
            MEMSCAPE_TRY(value, parseValue(*findParameter(experiment.schema(), key), text));
            parameters.set(key, value);
        }
    }
    return {};
}

} // namespace

Result<Parameters> askedParameters(const Experiment& experiment, const std::vector<std::string>& assignments)
{
    MEMSCAPE_TRY(parameters, resolve(experiment.schema(), assignments));
    for (int round = 0; round < 2; ++round) // what is implied may imply more: a precision, the type of a base
        MEMSCAPE_CHECK(setOthers(parameters, experiment, experiment.implied(parameters), assignments));
    return parameters;
}

Result<Parameters> changedWithImplied(const Experiment& experiment, const Parameters& now, const std::string& key,
                                      const std::string& text)
{
    const ParameterTexts before = experiment.implied(now);
    MEMSCAPE_TRY(standard, resolve(experiment.schema(), std::vector<std::string>{}));
    std::vector<std::string> given{key + "=" + text};
    for (std::size_t i = 0; i < now.values().size(); ++i) {
        const std::string& own = now.values()[i].first;
        const std::string said = valueText(now.values()[i].second);
        const auto implied =
            std::find_if(before.begin(), before.end(), [&](const auto& one) { return one.first == own; });
        const bool isByHand =
            implied == before.end() ? !(now.values()[i] == standard.values()[i]) : implied->second != said;
        if (own != key && isByHand)
            given.push_back(own + "=" + said);
    }
    MEMSCAPE_TRY(asked, askedParameters(experiment, given));
    Parameters next = now;
    for (const auto& [own, value] : asked.values())
        next.set(own, value);
    return next;
}

Parameters standardParameters(const Experiment& experiment, const Device& device)
{
    auto standard = resolve(experiment.schema(), experiment.standardOn(device));
    assert(standard); // a test resolves those of every experiment
    return standard.value_or(Parameters());
}

Result<Parameters> standardParameters(const Experiment& experiment, const Device& device,
                                      const std::vector<std::string>& assignments)
{
    MEMSCAPE_TRY(parameters, askedParameters(experiment, assignments));
    const ParameterTexts own = experiment.standardOn(device);
    if (!own.empty() && !isAssigned(assignments, own.front().first))
        MEMSCAPE_CHECK(setOthers(parameters, experiment, own, assignments));
    return parameters;
}

std::vector<const Figure*> headlineFigures(const Experiment& experiment, const Figures& figures)
{
    constexpr std::size_t most = 4;
    std::vector<const Figure*> chosen;
    const auto add = [&](const Figure* figure) {
        const bool says = figure && (!figure->isNumber() || !std::isnan(figure->number()));
        if (says && chosen.size() < most && std::find(chosen.begin(), chosen.end(), figure) == chosen.end())
            chosen.push_back(figure);
    };
    for (const std::string& key : experiment.headlines())
        add(findFigure(figures, key));
    for (const Figure& figure : figures)
        add(&figure);
    return chosen;
}

Json claimsJson(const std::vector<Claim>& claims)
{
    Json json = Json::array();
    for (const Claim& claim : claims) {
        json.push_back(
            {{"quote", claim.quote}, {"source", claim.source}, {"verdict", claim.verdict}, {"ours", claim.ours}});
        if (!claim.id.empty())
            json.back()["id"] = claim.id;
    }
    return json;
}

Result<const Experiment*> findExperiment(std::string_view id)
{
    std::vector<std::string> ids;
    for (const Experiment* experiment : experiments()) {
        if (experiment->id() == id)
            return experiment;
        ids.push_back(experiment->id());
    }
    return fail("experiment.unknown", fmt::format("no experiment \"{}\"", quotedForMessage(id)), didYouMean(id, ids));
}

} // namespace memscape
