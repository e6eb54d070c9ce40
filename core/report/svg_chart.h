// SPDX-License-Identifier: Apache-2.0
// A small line chart as SVG text: a prediction and its measurement on the same axes, for HTML reports
// and for figures without a display. Predicted is the blue dashed line, measured the
// orange dots with their band, as everywhere in Memscape, what a student drew a purple line; shape says the same as
// colour.
//
// Axes are linear, log2 (bytes, powers of two), log10 or categories; ticks are whole powers or
// 1-2-5 steps written with their unit. Same input, same bytes: coordinates have two decimals. Points
// that are not finite are gaps; on a logarithmic axis so are zero and negative values.
//
// Not done: more than one y axis, legends that avoid data, rotated tick labels.
#pragma once

#include "core/experiment/outcome.h"

#include <string>
#include <vector>

namespace memscape {

enum class ChartScale { Linear, Log2, Log10, Category };

struct ChartAxis
{
    std::string label;
    Unit unit = Unit::One;
    ChartScale scale = ChartScale::Linear;
    std::vector<std::string> names; ///< of a category axis, at 0, 1, 2 …
};

enum class ChartRole { Predicted, Measured, Drawn };

struct ChartCurve
{
    std::string label;
    ChartRole role = ChartRole::Predicted;
    std::vector<double> x, y;
    std::vector<double> low, high; ///< the band, or empty
};

struct Chart
{
    std::string title;
    ChartAxis x, y;
    std::vector<ChartCurve> curves;
    int width = 720, height = 360; ///< pixels of the viewBox
};

/// The same series of a prediction and a measurement; either may be null, not both. The y axis is
/// log10 when the values span more than two decades, else linear from zero.
Chart chartOf(const Series* predicted, const Series* measured);

/// A whole `<svg>` element, without XML declaration. Colours are presentation attributes beside
/// classes (axis, grid, predicted, measured, drawn, band), so a page can restyle them for a dark theme.
std::string svgChart(const Chart& chart);

/// Tick positions inside [low, high], ascending; exposed for tests.
std::vector<double> chartTicks(ChartScale scale, double low, double high, int atMost);

/// `text` safe inside HTML and SVG text and quoted attributes: & < > " ' escaped, characters that XML
/// forbids dropped, invalid UTF-8 replaced by U+FFFD.
std::string escapedForXml(std::string_view text);

} // namespace memscape
