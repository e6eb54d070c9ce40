// SPDX-License-Identifier: Apache-2.0
// Whether a run is what it says it is. A record is a text file: a curve that was typed in has no samples that give it.
#include "core/lab/lab_grade.h"

#include "core/base/json_values.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

bool isNear(double a, double b, double relative)
{
    return a == b || (std::isnan(a) && std::isnan(b))
        || std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b));
}

double medianOfSamples(std::vector<double> values)
{
    std::ranges::sort(values);
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Samples of a point must give the statistics that it states, and a curve in seconds lies among its samples.
void compareSamples(const Record& record, std::vector<std::string>& problems)
{
    const Json& points = listOf(record.measured->detail, "points");
    for (const Json& one : listOf(record.provenance, "samples")) {
        const double x = number(one, "x");
        const std::string key = words(one, "key");
        const auto values = numbers(listOf(one, "values"));
        const auto point =
            std::ranges::find_if(points, [&](const Json& other) { return isNear(number(other, "x"), x, 1e-9); });
        if (point == points.end()) {
            if (!points.empty())
                problems.push_back(fmt::format("samples of {} at {}, where no point is", key, numberText(x)));
            continue;
        }
        const Json& stated = member(member(*point, "samples"), key.c_str());
        const double count = number(stated, "count");
        if (values.empty() || !stated.is_object())
            continue;
        if (count == double(values.size())) { // long lists are kept in part
            const double least = *std::ranges::min_element(values);
            if (!isNear(least, number(stated, "minimum"), 1e-6))
                problems.push_back(
                    fmt::format("the fastest sample of {} at {} is not the one that is stated", key, numberText(x)));
            if (std::abs(medianOfSamples(values) - number(stated, "median"))
                > 1e-3 * std::abs(number(stated, "median")))
                problems.push_back(fmt::format("the median of the samples of {} at {} is not the one that is stated",
                                               key, numberText(x)));
        }
        const Series* series = record.measured->findSeries(key);
        if (!series || series->yUnit != Unit::Second || words(one, "unit") != "s")
            continue;
        const auto at = std::ranges::find_if(series->x.values, [&](double other) { return isNear(other, x, 1e-9); });
        if (at == series->x.values.end())
            continue;
        const double y = series->y[std::size_t(at - series->x.values.begin())];
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        if (std::isfinite(y) && (y < *low * (1 - 1e-6) || y > *high * (1 + 1e-6)))
            problems.push_back(fmt::format("the curve {} at {} lies outside of its samples", key, numberText(x)));
    }
}

void compareSweep(const Record& record, std::vector<std::string>& problems)
{
    const auto experiment = findExperiment(record.experiment);
    if (!experiment || record.parameters.values().size() != (*experiment)->schema().size()
        || !record.parameters.sweep())
        return; // an axis of the experiment's own may be shortened by the device
    const Sweep& sweep = *record.parameters.sweep();
    std::vector<double> wanted;
    for (const ParameterValue& one : sweep.values)
        if (const auto* value = std::get_if<double>(&one))
            wanted.push_back(*value);
    if (wanted.size() != sweep.values.size())
        return;
    for (const Series& series : record.measured->series) {
        if (series.x.key != sweep.key)
            continue;
        for (const double x : series.x.values)
            if (std::ranges::none_of(wanted, [&](double one) { return isNear(one, x, 1e-9); }))
                problems.push_back(fmt::format("the curve {} has a point at {} = {}, which its parameters do not name",
                                               series.key, sweep.key, numberText(x)));
    }
}

void compareBands(const Record& record, std::vector<std::string>& problems)
{
    for (const Figure& figure : record.measured->figures)
        if (figure.isNumber() && figure.low && figure.high
            && (figure.number() < *figure.low * (1 - 1e-9) || figure.number() > *figure.high * (1 + 1e-9)))
            problems.push_back(fmt::format("{} lies outside of its own band", figure.key));
    for (const Series& series : record.measured->series)
        for (std::size_t i = 0; i < series.y.size(); ++i)
            if (i < series.low.size() && i < series.high.size() && std::isfinite(series.low[i])
                && (series.y[i] < series.low[i] * (1 - 1e-9) || series.y[i] > series.high[i] * (1 + 1e-9)))
                problems.push_back(fmt::format("the curve {} lies outside of its own band at {}", series.key,
                                               numberText(series.x.values[i])));
    if (!record.predicted)
        return;
    for (const Figure& figure : record.measured->figures) { // what is counted cannot be measured otherwise
        const Figure* predicted = findFigure(record.predicted->figures, figure.key);
        if (predicted && predicted->isCounted && figure.isNumber() && predicted->isNumber()
            && !isNear(figure.number(), predicted->number(), 1e-6))
            problems.push_back(fmt::format("{} is counted, and differs between prediction and run", figure.key));
    }
}

} // namespace

std::vector<std::string> runProblems(const Record& record)
{
    std::vector<std::string> problems;
    if (!record.measured)
        return {"it holds no measurement"};
    compareSweep(record, problems);
    compareSamples(record, problems);
    compareBands(record, problems);
    if (words(record.provenance, "time").empty())
        problems.emplace_back("it does not say when it was made");
    constexpr std::size_t shown = 5;
    if (problems.size() > shown) {
        const std::size_t more = problems.size() - shown;
        problems.resize(shown);
        problems.push_back(fmt::format("and {} more of this kind", more));
    }
    return problems;
}

std::string reproductionProblem(const Record& record, double relative)
{
    if (!record.predicted)
        return "the record holds no prediction";
    const auto experiment = findExperiment(record.experiment);
    if (!experiment || record.parameters.values().size() != (*experiment)->schema().size())
        return "this program does not know the experiment " + record.experiment;
    const auto again = (*experiment)->predict(record.device, record.parameters);
    if (!again)
        return "its parameters cannot be predicted: " + again.error().text();
    for (const Figure& old : record.predicted->figures) {
        const Figure* now = findFigure(again->figures, old.key);
        if (old.key == "solver_time") // a stopwatch of ours: another one every time
            continue;
        const bool same = now && now->isNumber() == old.isNumber()
            && (old.isNumber() ? isNear(old.number(), now->number(), relative) : old.value == now->value);
        if (!same)
            return fmt::format("{} reads {}, predicted again it is {}", old.key, old.text(),
                               now ? now->text() : "missing");
    }
    for (const Series& old : record.predicted->series) {
        const Series* now = again->findSeries(old.key);
        if (!now || now->y.size() != old.y.size() || now->x.values.size() != old.x.values.size())
            return fmt::format("the curve {} has other points when it is predicted again", old.key);
        for (std::size_t i = 0; i < old.y.size(); ++i)
            if (!isNear(old.y[i], now->y[i], relative) || !isNear(old.x.values[i], now->x.values[i], relative))
                return fmt::format("the curve {} at {} is {}, predicted again {}", old.key, numberText(old.x.values[i]),
                                   numberText(old.y[i]), numberText(now->y[i]));
    }
    return {};
}

} // namespace memscape
