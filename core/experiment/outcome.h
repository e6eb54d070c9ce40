// SPDX-License-Identifier: Apache-2.0
// What a prediction and a measurement both are: figures, series, detail. Because the shapes are the
// same, overlaying, comparing, exporting and grading need no code of their own per experiment.
#pragma once

#include "core/base/json.h"
#include "core/base/quantity.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace memscape {

/// How x is drawn; in documents "linear", "log2", "category".
enum class AxisScale { Linear, Log2, Category };

/// The x axis of a series. `names` are the labels of a category scale (a swept choice), else empty.
struct SeriesAxis
{
    std::string key; ///< the parameter that is swept
    std::string label;
    Unit unit = Unit::One;
    AxisScale scale = AxisScale::Linear;
    std::vector<double> values;
    std::vector<std::string> names;
};

/// A curve. y holds NaN where a point could not be had; low/high are the measured band or empty.
struct Series
{
    std::string key;
    std::string label;
    SeriesAxis x;
    std::string yLabel;
    Unit yUnit = Unit::One;
    std::vector<double> y, low, high;
};

struct Outcome
{
    Figures figures;
    std::vector<Series> series;
    Json detail; ///< what is special to the experiment; an object

    const Series* findSeries(std::string_view key) const;
};

using Prediction = Outcome;
using Measurement = Outcome;

/// The figures at one point of a sweep.
struct Point
{
    double x = 0;
    std::string name; ///< of a category
    Figures figures;
    Json detail; ///< grade, reason, samples of a measured point; null for a predicted one
};

/// Which figure becomes a curve, and how it is called there.
struct SeriesSpec
{
    std::string key; ///< of the figure
    std::string label;
};

/// Series from points: y of every series is the figure of the same key at each point.
std::vector<Series> seriesFromPoints(const std::vector<SeriesSpec>& specs, const SeriesAxis& axis,
                                     const std::vector<Point>& points);

Json outcomeToJson(const Outcome& outcome);
Result<Outcome> outcomeFromJson(const JsonReader& reader);
Json figuresToJson(const Figures& figures);
Result<Figures> figuresFromJson(const JsonReader& reader);

} // namespace memscape
