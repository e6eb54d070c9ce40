// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/outcome.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr std::array<std::pair<AxisScale, std::string_view>, 3> scaleTexts{
    {{AxisScale::Linear, "linear"}, {AxisScale::Log2, "log2"}, {AxisScale::Category, "category"}}};

std::string_view scaleText(AxisScale scale)
{
    return scaleTexts[std::size_t(scale)].second;
}

/// Linear for a word that this version does not know.
AxisScale scaleOf(std::string_view text)
{
    for (const auto& [scale, known] : scaleTexts) {
        if (known == text)
            return scale;
    }
    return AxisScale::Linear;
}

Json numbersToJson(const std::vector<double>& values)
{
    Json array = Json::array();
    for (const double value : values)
        array.push_back(jsonNumber(value));
    return array;
}

Result<Unit> readUnit(const JsonReader& reader)
{
    if (!reader.has("unit"))
        return Unit::One;
    MEMSCAPE_TRY(node, reader.at("unit"));
    MEMSCAPE_TRY(text, node.string());
    if (const auto unit = unitFromText(text))
        return *unit;
    return node.expected("a unit (1, B, s, B/s, FLOP/s, Hz)");
}

Json whyToJson(const Why& why)
{
    Json terms = Json::array();
    for (const Term& term : why.terms) {
        terms.push_back({{"symbol", term.symbol},
                         {"value", jsonNumber(term.value)},
                         {"unit", unitText(term.unit)},
                         {"meaning", term.meaning},
                         {"source", term.source}});
    }
    return {{"formula", why.formula},
            {"with", why.with},
            {"terms", std::move(terms)},
            {"source", why.source},
            {"omits", why.omits}};
}

Result<Why> whyFromJson(const JsonReader& reader)
{
    Why why;
    MEMSCAPE_TRY(formula, reader.string("formula", ""));
    MEMSCAPE_TRY(with, reader.string("with", ""));
    MEMSCAPE_TRY(source, reader.string("source", ""));
    why.formula = formula;
    why.with = with;
    why.source = source;
    if (reader.has("terms")) {
        MEMSCAPE_TRY(terms, reader.at("terms"));
        MEMSCAPE_TRY(items, terms.items());
        for (const JsonReader& item : items) {
            Term term;
            MEMSCAPE_TRY(symbol, item.string("symbol"));
            MEMSCAPE_TRY(value, item.at("value"));
            MEMSCAPE_TRY(number, value.numberOrNan());
            MEMSCAPE_TRY(unit, readUnit(item));
            MEMSCAPE_TRY(meaning, item.string("meaning", ""));
            MEMSCAPE_TRY(termSource, item.string("source", ""));
            why.terms.push_back({symbol, number, unit, meaning, termSource});
        }
    }
    if (reader.has("omits")) {
        MEMSCAPE_TRY(omits, reader.at("omits"));
        MEMSCAPE_TRY(items, omits.items());
        for (const JsonReader& item : items) {
            MEMSCAPE_TRY(text, item.string());
            why.omits.push_back(text);
        }
    }
    return why;
}

Result<Figure> figureFromJson(const std::string& key, const JsonReader& reader)
{
    Figure figure;
    figure.key = key;
    MEMSCAPE_TRY(value, reader.at("value"));
    MEMSCAPE_TRY(unit, readUnit(reader));
    figure.unit = unit;
    // Words are figures without a unit, such as the level that holds a working set.
    if (value.node().is_string() && unit == Unit::One && !value.node().get_ref<const std::string&>().empty()
        && std::string_view("0123456789+-.").find(value.node().get_ref<const std::string&>()[0])
            == std::string_view::npos) {
        figure.value = value.node().get<std::string>();
    } else {
        MEMSCAPE_TRY(number, value.numberOrNan());
        figure.value = number;
    }
    MEMSCAPE_TRY(label, reader.string("label", key));
    figure.label = label;
    for (const auto& [name, target] : {std::pair{"low", &figure.low}, std::pair{"high", &figure.high}}) {
        if (reader.has(name)) {
            MEMSCAPE_TRY(bound, reader.number(name));
            *target = bound;
        }
    }
    MEMSCAPE_SET(figure.isCounted, reader.boolean("counted", figure.isCounted));
    if (reader.has("why")) {
        MEMSCAPE_TRY(node, reader.at("why"));
        MEMSCAPE_TRY(why, whyFromJson(node));
        figure.why = std::move(why);
    }
    return figure;
}

Json seriesToJson(const Series& series)
{
    Json x{{"key", series.x.key},
           {"label", series.x.label},
           {"unit", unitText(series.x.unit)},
           {"scale", scaleText(series.x.scale)},
           {"values", numbersToJson(series.x.values)}};
    if (!series.x.names.empty())
        x["names"] = series.x.names;
    Json y{{"label", series.yLabel}, {"unit", unitText(series.yUnit)}, {"values", numbersToJson(series.y)}};
    if (!series.low.empty())
        y["low"] = numbersToJson(series.low);
    if (!series.high.empty())
        y["high"] = numbersToJson(series.high);
    return {{"key", series.key}, {"label", series.label}, {"x", std::move(x)}, {"y", std::move(y)}};
}

Result<std::vector<double>> columnOf(const JsonReader& reader, std::string_view key, std::size_t size)
{
    MEMSCAPE_TRY(node, reader.at(key));
    MEMSCAPE_TRY(values, node.numbers());
    if (values.size() != size)
        return node.expected(fmt::format("{} values, one per x", size));
    return values;
}

Result<Series> seriesFromJson(const JsonReader& reader)
{
    Series series;
    MEMSCAPE_TRY(key, reader.string("key"));
    MEMSCAPE_TRY(label, reader.string("label", key));
    MEMSCAPE_TRY(x, reader.at("x"));
    MEMSCAPE_TRY(y, reader.at("y"));
    MEMSCAPE_TRY(xKey, x.string("key", ""));
    MEMSCAPE_TRY(xLabel, x.string("label", ""));
    MEMSCAPE_TRY(xUnit, readUnit(x));
    MEMSCAPE_TRY(scale, x.string("scale", "linear"));
    MEMSCAPE_TRY(xValuesNode, x.at("values"));
    MEMSCAPE_TRY(xValues, xValuesNode.numbers());
    series.key = key;
    series.label = label;
    series.x = {xKey, xLabel, xUnit, scaleOf(scale), xValues, {}};
    if (x.has("names")) {
        MEMSCAPE_TRY(names, x.at("names"));
        MEMSCAPE_TRY(items, names.items());
        for (const JsonReader& item : items) {
            MEMSCAPE_TRY(name, item.string());
            series.x.names.push_back(name);
        }
        if (series.x.names.size() != xValues.size())
            return names.expected(fmt::format("{} names, one per x", xValues.size()));
    }
    MEMSCAPE_TRY(yLabel, y.string("label", ""));
    MEMSCAPE_TRY(yUnit, readUnit(y));
    MEMSCAPE_TRY(yValues, columnOf(y, "values", xValues.size()));
    series.yLabel = yLabel;
    series.yUnit = yUnit;
    series.y = yValues;
    for (const auto& [name, target] : {std::pair{"low", &series.low}, std::pair{"high", &series.high}}) {
        if (y.has(name)) {
            MEMSCAPE_TRY(column, columnOf(y, name, xValues.size()));
            *target = column;
        }
    }
    return series;
}

} // namespace

const Series* Outcome::findSeries(std::string_view key) const
{
    for (const Series& one : series) {
        if (one.key == key)
            return &one;
    }
    return nullptr;
}

std::vector<Series> seriesFromPoints(const std::vector<SeriesSpec>& specs, const SeriesAxis& axis,
                                     const std::vector<Point>& points)
{
    std::vector<Series> all;
    const auto has = [&](const std::string& key) {
        return std::any_of(points.begin(), points.end(),
                           [&](const Point& point) { return findFigure(point.figures, key) != nullptr; });
    };
    const bool any =
        std::any_of(points.begin(), points.end(), [](const Point& point) { return !point.figures.empty(); });
    for (const SeriesSpec& spec : specs) {
        if (any && !has(spec.key)) // figures of another operation of the experiment
            continue;
        Series series{spec.key, spec.label, axis, {}, Unit::One, {}, {}, {}};
        series.x.values.clear();
        series.x.names.clear();
        bool banded = false;
        for (const Point& point : points) {
            const Figure* figure = findFigure(point.figures, spec.key);
            series.x.values.push_back(point.x);
            if (axis.scale == AxisScale::Category)
                series.x.names.push_back(point.name);
            series.y.push_back(figure ? figure->number() : nan);
            series.low.push_back(figure && figure->low ? *figure->low : nan);
            series.high.push_back(figure && figure->high ? *figure->high : nan);
            banded |= figure && figure->low;
            if (figure) {
                series.yLabel = figure->label;
                series.yUnit = figure->unit;
            }
        }
        if (!banded) {
            series.low.clear();
            series.high.clear();
        }
        all.push_back(std::move(series));
    }
    return all;
}

Json figuresToJson(const Figures& figures)
{
    Json json = Json::object();
    for (const Figure& figure : figures) {
        Json one = Json::object(); // an empty value that becomes an object breaks the library when memory runs out
        if (figure.isNumber())
            one["value"] = jsonNumber(figure.number());
        else
            one["value"] = std::get<std::string>(figure.value);
        one["unit"] = unitText(figure.unit);
        one["label"] = figure.label;
        if (figure.low)
            one["low"] = jsonNumber(*figure.low);
        if (figure.high)
            one["high"] = jsonNumber(*figure.high);
        if (figure.isCounted)
            one["counted"] = true;
        if (figure.why)
            one["why"] = whyToJson(*figure.why);
        addMember(json, figure.key, std::move(one));
    }
    return json;
}

Result<Figures> figuresFromJson(const JsonReader& reader)
{
    MEMSCAPE_TRY(members, reader.members());
    Figures figures;
    for (const auto& [key, node] : members) {
        MEMSCAPE_TRY(figure, figureFromJson(key, node));
        figures.push_back(std::move(figure));
    }
    return figures;
}

Json outcomeToJson(const Outcome& outcome)
{
    Json series = Json::array();
    for (const Series& one : outcome.series)
        series.push_back(seriesToJson(one));
    return {{"figures", figuresToJson(outcome.figures)},
            {"series", std::move(series)},
            {"detail", outcome.detail.is_null() ? Json::object() : outcome.detail}};
}

Result<Outcome> outcomeFromJson(const JsonReader& reader)
{
    Outcome outcome;
    MEMSCAPE_TRY(figuresNode, reader.at("figures"));
    MEMSCAPE_TRY(figures, figuresFromJson(figuresNode));
    outcome.figures = std::move(figures);
    if (reader.has("series")) {
        MEMSCAPE_TRY(node, reader.at("series"));
        MEMSCAPE_TRY(items, node.items());
        for (const JsonReader& item : items) {
            MEMSCAPE_TRY(series, seriesFromJson(item));
            outcome.series.push_back(std::move(series));
        }
    }
    outcome.detail = reader.has("detail") ? reader.node()["detail"] : Json::object();
    return outcome;
}

} // namespace memscape
