// SPDX-License-Identifier: Apache-2.0
#include "core/published/published_errors.h"

#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/device/catalogue.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace memscape {

namespace {

double medianOf(std::vector<double> values)
{
    if (values.empty())
        return nan;
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Fills in what the row's setting is predicted to be. Errors: published.figure.
Result<void> predictOne(PublishedOutcome& outcome, const Device& device)
{
    const auto figures = outcome.row.experiment->predictPoint(device, outcome.row.parameters);
    if (!figures) {
        outcome.why = figures.error().text();
        return {};
    }
    const Figure* const figure = findFigure(*figures, outcome.row.figure);
    if (figure == nullptr || !figure->isNumber()) {
        std::vector<std::string> keys;
        for (const Figure& one : *figures)
            keys.push_back(one.key);
        return fail("published.figure",
                    fmt::format("{} has no figure \"{}\" that is a number", outcome.row.experiment->id(),
                                quotedForMessage(outcome.row.figure)),
                    didYouMean(outcome.row.figure, keys),
                    fmt::format("{}, \"{}\"", outcome.row.table, outcome.row.row));
    }
    outcome.predicted = figure->number();
    outcome.low = figure->low.value_or(nan);
    outcome.high = figure->high.value_or(nan);
    if (!std::isfinite(outcome.predicted))
        outcome.why = figure->why ? figure->why->with : "the figure has no value here";
    return {};
}

FamilyError errorsOf(const std::string& group, const std::vector<const PublishedOutcome*>& outcomes)
{
    FamilyError family;
    family.group = group;
    std::vector<double> sizes, errors;
    for (const PublishedOutcome* const one : outcomes) {
        if (!one->isPredicted()) {
            ++family.refused;
            continue;
        }
        errors.push_back(one->error());
        sizes.push_back(std::abs(one->error()));
        family.banded += one->hasBand();
        family.inBand += one->isInBand();
        if (family.worst == nullptr || std::abs(family.worst->error()) < sizes.back())
            family.worst = one;
    }
    family.rows = errors.size();
    if (errors.empty())
        return family;
    double sum = 0;
    for (const double size : sizes)
        sum += size;
    family.mean = sum / double(sizes.size());
    family.median = medianOf(std::move(sizes));
    family.bias = medianOf(std::move(errors));
    return family;
}

} // namespace

std::string PublishedOutcome::group() const
{
    return row.family == "step time" && !deviceName.empty() ? row.family + ", " + deviceName : row.family;
}

Result<std::vector<PublishedOutcome>> predictPublished(std::vector<PublishedRow> rows)
{
    std::map<std::string, Device> devices;
    std::vector<PublishedOutcome> outcomes;
    for (PublishedRow& row : rows) {
        if (!row.device.empty() && !devices.contains(row.device)) {
            MEMSCAPE_TRY(device, findDevice(row.device));
            devices.emplace(row.device, std::move(device));
        }
        PublishedOutcome outcome{std::move(row), nan, nan, nan, {}, {}};
        outcome.why = outcome.row.cannot;
        if (const auto device = devices.find(outcome.row.device); device != devices.end())
            outcome.deviceName = device->second.name;
        outcomes.push_back(std::move(outcome));
    }
    std::vector<std::optional<Error>> errors(outcomes.size());
    inParallel(outcomes.size(), coreCount(), [&](std::size_t i) {
        if (!outcomes[i].isPredicted())
            return;
        if (const auto done = predictOne(outcomes[i], devices.at(outcomes[i].row.device)); !done)
            errors[i] = done.error();
    });
    for (const auto& error : errors) {
        if (error)
            return fail(*error);
    }
    return outcomes;
}

std::vector<FamilyError> familyErrors(const std::vector<PublishedOutcome>& outcomes)
{
    std::vector<FamilyError> all;
    for (const std::string& family : publishedFamilies()) {
        std::map<std::string, std::vector<const PublishedOutcome*>> groups;
        for (const PublishedOutcome& outcome : outcomes) {
            if (outcome.row.family == family)
                groups[outcome.group()].push_back(&outcome);
        }
        for (const auto& [group, members] : groups)
            all.push_back(errorsOf(group, members));
    }
    return all;
}

} // namespace memscape
