// SPDX-License-Identifier: Apache-2.0
#include "core/report/summary.h"

#include "core/experiment/answer.h"
#include "core/experiment/by_key.h"
#include "core/experiment/gap_sentences.h"
#include "core/report/memory_tables.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr std::size_t longestRow = 2000; // points of a series that a table for people shows

/// Figures of both sides in display order: the prediction's, then what only the measurement has; idle ones left out.
std::vector<std::string> figureKeys(const Record& record)
{
    std::vector<std::string> keys;
    std::set<std::string_view> seen;
    const auto measured = figuresOf(record.measured);
    if (record.predicted)
        for (const Figure& figure : record.predicted->figures)
            if ((measured.find(figure.key) || !isIdleFigure(*record.predicted, figure))
                && seen.insert(figure.key).second)
                keys.push_back(figure.key);
    if (record.measured)
        for (const Figure& figure : record.measured->figures)
            if (seen.insert(figure.key).second)
                keys.push_back(figure.key);
    return keys;
}

std::string errorText(const FigureComparison* line, const Figure* predicted, const Figure* measured)
{
    if (!line || !predicted || !measured)
        return "–";
    if (!predicted->isNumber() || !measured->isNumber())
        return line->agree ? "same" : "differs";
    if (predicted->isCounted || measured->isCounted)
        return "counted";
    return signedPercentText(line->error);
}

/// The baseline's value and how far the shown one is from it.
void appendBaseline(std::vector<std::string>& row, const Figure* predicted, const Figure* measured,
                    const Record& baseline, ByteStyle style)
{
    const auto of = [](const auto& side, const Figure* like) {
        return side && like ? findFigure(side->figures, like->key) : nullptr;
    };
    const Figure* from = of(baseline.measured, measured);
    const Figure* to = from ? measured : predicted;
    if (!from)
        from = of(baseline.predicted, predicted);
    row.push_back(from ? from->text(style) : "–");
    if (!from)
        row.push_back("–");
    else if (!from->isNumber() || !to->isNumber())
        row.push_back(from->text(style) == to->text(style) ? "same" : "differs");
    else if (from->number() == to->number())
        row.push_back("same");
    else
        row.push_back(
            from->number() != 0 ? signedPercentText((to->number() - from->number()) / std::fabs(from->number())) : "–");
}

std::string xText(const SeriesAxis& axis, std::size_t i, ByteStyle style)
{
    if (i < axis.names.size())
        return axis.names[i];
    const double value = axis.values[i];
    return axis.unit == Unit::One ? numberText(value) : quantityText(value, axis.unit, style);
}

bool anyValue(const Series* series)
{
    return series && std::ranges::any_of(series->y, [](double y) { return std::isfinite(y); });
}

/// The value of `series` where its x is `x`; sweeps of both sides are the same values as a rule.
double valueAt(const Series& series, double x)
{
    for (std::size_t i = 0; i < std::min(series.x.values.size(), series.y.size()); ++i)
        if (series.x.values[i] == x)
            return series.y[i];
    return std::nan("");
}

struct Pair
{
    const Series* predicted = nullptr;
    const Series* measured = nullptr;
    const Series& any() const { return predicted ? *predicted : *measured; }
};

std::vector<Pair> seriesPairs(const Record& record)
{
    std::vector<Pair> pairs;
    const auto predicted = curvesOf(record.predicted), measured = curvesOf(record.measured);
    if (record.predicted)
        for (const Series& series : record.predicted->series)
            pairs.push_back({&series, measured.find(series.key)});
    if (record.measured)
        for (const Series& series : record.measured->series)
            if (!predicted.find(series.key))
                pairs.push_back({nullptr, &series});
    std::erase_if(pairs, [](const Pair& p) { return !anyValue(p.predicted) && !anyValue(p.measured); });
    return pairs;
}

TextTable seriesTable(const std::vector<Pair>& pairs, ByteStyle style)
{
    const SeriesAxis& axis = pairs.front().any().x;
    TextTable table;
    table.columns.push_back({axis.label, true});
    std::vector<std::pair<const Series*, Unit>> curves;
    const bool sides = std::ranges::any_of(pairs, [](const Pair& pair) { return anyValue(pair.measured); });
    for (const Pair& pair : pairs) {
        for (const Series* series : {pair.predicted, pair.measured}) {
            if (!anyValue(series))
                continue;
            const char* side = series == pair.predicted ? "\npredicted" : "\nmeasured";
            std::string title = series->label;
            std::replace(title.begin(), title.end(), ' ', '\n'); // numbers are narrower than names
            table.columns.push_back({title + (sides ? side : ""), true});
            curves.emplace_back(series, series->yUnit);
        }
    }
    for (std::size_t i = 0; i < std::min(axis.values.size(), longestRow); ++i) {
        std::vector<std::string> row{xText(axis, i, style)};
        for (const auto& [series, unit] : curves)
            row.push_back(quantityText(valueAt(*series, axis.values[i]), unit, style));
        table.rows.push_back(std::move(row));
    }
    return table;
}

void flatten(const Json& node, const std::string& path, TextPairs& rows)
{
    if (rows.size() > 200)
        return; // a page, not a dump; the JSON has everything
    if (node.is_object()) {
        for (const auto& [key, value] : node.items())
            flatten(value, path.empty() ? key : path + "." + key, rows);
    } else if (node.is_array()) {
        const bool words = std::ranges::all_of(node, [](const Json& item) { return item.is_string(); });
        if (words && !node.empty() && node.size() <= 8) {
            std::string all;
            for (const Json& item : node)
                all += (all.empty() ? "" : "; ") + item.get<std::string>();
            rows.emplace_back(path, all);
        } else if (!node.empty()) {
            rows.emplace_back(path, fmt::format("{} values", node.size()));
        }
    } else if (node.is_string()) {
        rows.emplace_back(path, node.get<std::string>());
    } else if (!node.is_null()) {
        rows.emplace_back(path, jsonLine(node));
    }
}

TextPairs rowsOf(const Record& record, bool (*isWanted)(const ParameterSpec&, const ParameterValue&))
{
    TextPairs rows;
    const Experiment* experiment = experimentOf(record);
    if (!experiment) {
        if (record.foreignParameters.is_object())
            flatten(record.foreignParameters, {}, rows);
        return rows;
    }
    for (const auto& [key, value] : record.parameters.values()) {
        const ParameterSpec* spec = findParameter(experiment->schema(), key);
        const auto& sweep = record.parameters.sweep();
        const bool isSwept = sweep && sweep->key == key;
        if (!spec || !(isSwept || isWanted(*spec, value)))
            continue;
        std::string text = valueLabel(*spec, value);
        if (isSwept)
            text = fmt::format("{} to {}, {} values", valueLabel(*spec, sweep->values.front()),
                               valueLabel(*spec, sweep->values.back()), sweep->values.size());
        if (text.empty())
            continue; // no file, no folder
        rows.emplace_back(spec->label, std::move(text));
    }
    return rows;
}

} // namespace

const Experiment* experimentOf(const Record& record)
{
    const auto found = findExperiment(record.experiment);
    return found ? *found : nullptr;
}

std::string recordTitle(const Record& record)
{
    if (!record.name.empty())
        return record.name;
    const Experiment* experiment = experimentOf(record);
    const std::string device = record.device.name.empty() ? record.device.id : record.device.name;
    return fmt::format("{} · {}", experiment ? experiment->title() : record.experiment, device);
}

TextPairs parameterRows(const Record& record)
{
    return rowsOf(record, [](const ParameterSpec&, const ParameterValue&) { return true; });
}

TextPairs namedParameterRows(const Record& record)
{
    return rowsOf(record, isNamed);
}

std::string parametersText(const Record& record)
{
    std::string text;
    for (const auto& [label, value] : namedParameterRows(record))
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", label, value);
    return text;
}

std::string answerText(const Record& record)
{
    const Experiment* experiment = experimentOf(record);
    if (!experiment || !record.predicted)
        return {};
    const Figures figures = record.measured ? measuredFirst(record.predicted->figures, record.measured->figures)
                                            : record.predicted->figures;
    return experiment->shortAnswer(record.device, record.parameters, figures).sentence;
}

TextTable figuresTable(const Record& record, const Record* baseline, ByteStyle style)
{
    TextTable table;
    table.columns.push_back({"figure", false});
    const auto hasBand = [](const Figure& figure) { return figure.low && figure.high; };
    const bool bands = record.predicted && std::ranges::any_of(record.predicted->figures, hasBand);
    if (record.predicted)
        table.columns.push_back({"predicted", true});
    if (bands)
        table.columns.push_back({"between", true});
    if (record.measured)
        table.columns.push_back({"measured", true});
    const bool both = record.predicted && record.measured;
    if (both)
        table.columns.push_back({"error", true});
    if (baseline) {
        table.columns.push_back({"baseline", true});
        table.columns.push_back({"vs baseline", true});
    }
    const Comparison comparison = record.comparison();
    const ByKey errors(comparison.figures);
    const auto predictedFigures = figuresOf(record.predicted), measuredFigures = figuresOf(record.measured);
    for (const std::string& key : figureKeys(record)) {
        const Figure* predicted = predictedFigures.find(key);
        const Figure* measured = measuredFigures.find(key);
        std::vector<std::string> row{(predicted ? predicted : measured)->label};
        if (record.predicted)
            row.push_back(predicted ? predicted->text(style) : "–");
        if (bands)
            row.push_back(predicted ? predicted->rangeText(style) : std::string());
        if (record.measured)
            row.push_back(measured ? measured->text(style) : "–");
        if (both)
            row.push_back(errorText(errors.find(key), predicted, measured));
        if (baseline)
            appendBaseline(row, predicted, measured, *baseline, style);
        table.rows.push_back(std::move(row));
    }
    return table;
}

std::vector<TextTable> seriesTables(const Record& record, ByteStyle style)
{
    std::vector<std::vector<Pair>> groups;
    for (const Pair& pair : seriesPairs(record)) {
        const auto group = std::ranges::find_if(groups, [&](const auto& other) {
            return other.front().any().x.key == pair.any().x.key && other.front().any().x.values == pair.any().x.values;
        });
        if (group != groups.end())
            group->push_back(pair);
        else
            groups.push_back({pair});
    }
    std::vector<TextTable> tables;
    const Experiment* experiment = experimentOf(record);
    if (record.experiment == "snapshot")
        return tables; // timelines as well
    for (const auto& group : groups) {
        // A timeline has hundreds of moments and an axis of its own: charts and JSON have it.
        const SeriesAxis& axis = group.front().any().x;
        if (experiment && (!findParameter(experiment->schema(), axis.key) || axis.values.size() < 2))
            continue;
        tables.push_back(seriesTable(group, style));
    }
    return tables;
}

TextTable errorsTable(const Record& record)
{
    TextTable table{{{"curve", false}, {"points", true}, {"median error", true}, {"largest error", true}, {"at", true}},
                    {}};
    const auto predicted = curvesOf(record.predicted);
    for (const SeriesComparison& line : record.comparison().series) {
        const Series* series = predicted.find(line.key);
        if (line.points == 0 || !series)
            continue;
        const auto& values = series->x.values;
        const auto worst = std::ranges::find(values, line.worstX) - values.begin();
        table.rows.push_back({series->label, numberText(static_cast<double>(line.points)),
                              percentText(line.medianError), percentText(line.largestError),
                              static_cast<std::size_t>(worst) < values.size()
                                  ? xText(series->x, static_cast<std::size_t>(worst), ByteStyle::Binary)
                                  : std::string("–")});
    }
    return table;
}

const Figure* headlineFigure(const Record& record)
{
    if (!record.predicted)
        return nullptr;
    // What the first curve shows is what the experiment is about.
    for (const Series& series : record.predicted->series) {
        const Figure* figure = findFigure(record.predicted->figures, series.key);
        if (figure && figure->why)
            return figure;
    }
    for (const Figure& figure : record.predicted->figures)
        if (figure.why)
            return &figure;
    return nullptr;
}

TextTable termsTable(const Why& why, ByteStyle style)
{
    TextTable table{{{"term", false}, {"value", true}, {"what it is", false}, {"from", false}}, {}};
    for (const Term& term : why.terms)
        table.rows.push_back({term.symbol, quantityText(term.value, term.unit, style), term.meaning, term.source});
    return table;
}

std::string basisText(const Device& device)
{
    const std::string name = device.name.empty() ? device.id : device.name;
    if (device.basis == "catalogue")
        return name + ", from the catalogue";
    if (device.basis == "calibrated") {
        const auto& calibration = device.calibration;
        return calibration ? fmt::format("{}, calibrated {} (grade {})", name, calibration->time, calibration->grade)
                           : name + ", calibrated";
    }
    if (device.basis == "described")
        return name + ", as this machine describes itself (not calibrated)";
    if (device.basis == "derived")
        return name + ", derived from its attributes (not in the catalogue)";
    return device.basis.empty() ? name : name + ", " + device.basis;
}

std::vector<std::string> gapSentences(const Record& record)
{
    return gapSentences(record.predicted ? &*record.predicted : nullptr, record.measured ? &*record.measured : nullptr);
}

std::string gradeText(const Record& record)
{
    if (!record.measured)
        return {};
    for (const Json* where : {&record.provenance, &record.measured->detail}) {
        if (!where->is_object() || !where->contains("grade") || !where->at("grade").is_string())
            continue;
        std::string text = "grade " + where->at("grade").get<std::string>();
        const bool hasReason = where->contains("reason") && where->at("reason").is_string();
        return hasReason ? text + ": " + where->at("reason").get<std::string>() : text;
    }
    return {};
}

TextPairs provenanceRows(const Record& record)
{
    TextPairs rows;
    flatten(record.provenance, {}, rows);
    return rows;
}

} // namespace memscape
