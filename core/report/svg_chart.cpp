// SPDX-License-Identifier: Apache-2.0
// Layout: title on top, legend under it, then the plot area with ticks outside of it. Everything is
// computed in pixels of the viewBox by two functions, one per axis, that map a value to a coordinate
// or to nothing when the value has no place on that axis.
#include "core/report/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace memscape {

namespace {

// The light theme of the window: Okabe and Ito's blue, and their orange a little darker for paper.
constexpr auto predictedColour = "#0072B2";
constexpr auto measuredColour = "#D98C00";
constexpr auto drawnColour = "#CC79A7"; // their reddish purple, as on the page of a lab
constexpr auto inkColour = "#333333";
constexpr auto gridColour = "#DDDDDD";

// Values beyond this would overflow when a range is computed from them; no memory is that large.
constexpr double largestValue = 1e290;

bool plottable(ChartScale scale, double value)
{
    if (!std::isfinite(value) || std::abs(value) > largestValue)
        return false;
    return (scale != ChartScale::Log2 && scale != ChartScale::Log10) || value > 1e-290;
}

std::string_view roleText(ChartRole role)
{
    return role == ChartRole::Predicted ? "predicted" : role == ChartRole::Drawn ? "drawn" : "measured";
}

/// Attributes of a curve that is a line.
std::string lineStyle(ChartRole role)
{
    if (role == ChartRole::Drawn)
        return fmt::format("stroke=\"{}\" stroke-width=\"3\"", drawnColour);
    return fmt::format("stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"7 4\"", predictedColour);
}

struct ValueRange
{
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();

    bool empty() const { return !(low <= high); }
    void include(double value)
    {
        low = std::min(low, value);
        high = std::max(high, value);
    }
};

ValueRange widened(ChartScale scale, ValueRange range, bool fromZero)
{
    if (range.empty())
        return scale == ChartScale::Linear || scale == ChartScale::Category ? ValueRange{0, 1} : ValueRange{1, 10};
    if (scale == ChartScale::Category)
        return {range.low - 0.5, range.high + 0.5};
    if (scale == ChartScale::Log2 || scale == ChartScale::Log10) {
        const double step = scale == ChartScale::Log2 ? std::sqrt(2.0) : 1.25;
        return {range.low / step, range.high * step};
    }
    if (fromZero) {
        range.include(0);
        if (range.low == range.high)
            range.high = 1;
        return {range.low * 1.05, range.high * 1.05};
    }
    const double margin =
        range.high > range.low ? (range.high - range.low) * 0.03 : std::max(std::abs(range.high) * 0.5, 0.5);
    return {range.low - margin, range.high + margin};
}

std::vector<double> powerTicks(double base, double low, double high, int atMost)
{
    const double first = std::ceil(std::log(low) / std::log(base) - 1e-9);
    const double last = std::floor(std::log(high) / std::log(base) + 1e-9);
    const double step = std::max(1.0, std::ceil((last - first + 1) / atMost));
    std::vector<double> ticks;
    for (double power = first; power <= last; power += step)
        ticks.push_back(std::pow(base, power));
    return ticks;
}

std::vector<double> linearTicks(double low, double high, int atMost)
{
    const double rough = (high - low) / atMost;
    const double decade = std::pow(10.0, std::floor(std::log10(rough)));
    double step = 10 * decade;
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor * decade >= rough * (1 - 1e-9)) {
            step = factor * decade;
            break;
        }
    }
    std::vector<double> ticks;
    for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i)
        ticks.push_back(i == 0 ? 0.0 : i * step); // not −0
    return ticks;
}

std::vector<double> log10Ticks(double low, double high, int atMost)
{
    auto ticks = powerTicks(10, low, high, atMost);
    if (high / low > 100)
        return ticks;
    ticks.clear(); // under two decades whole powers are too few: 1, 2, 5
    for (double power = std::floor(std::log10(low)); power <= std::log10(high); ++power) {
        for (const double factor : {1.0, 2.0, 5.0}) {
            const double tick = factor * std::pow(10.0, power);
            if (tick >= low && tick <= high)
                ticks.push_back(tick);
        }
    }
    return ticks;
}

std::string tickText(const ChartAxis& axis, double value)
{
    if (axis.scale == ChartScale::Category) {
        const bool has = value > -0.5 && value < double(axis.names.size()) - 0.5; // or lround() would overflow
        return has ? axis.names[static_cast<std::size_t>(std::lround(value))] : std::string();
    }
    return quantityText(value, axis.unit);
}

/// One axis on the page: `from` is the pixel of range.low, `to` that of range.high.
struct Mapping
{
    ChartScale scale;
    ValueRange range;
    double from, to;

    double operator()(double value) const
    {
        const bool log = scale == ChartScale::Log2 || scale == ChartScale::Log10;
        const auto f = [log](double v) { return log ? std::log(v) : v; };
        const double share = (f(value) - f(range.low)) / (f(range.high) - f(range.low));
        return from + share * (to - from);
    }
};

struct ChartLayout
{
    double left, right, top, bottom;
    Mapping x, y;
};

ChartLayout layoutOf(const Chart& chart)
{
    ValueRange xs, ys;
    for (const ChartCurve& curve : chart.curves) {
        for (std::size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
            if (!plottable(chart.x.scale, curve.x[i]) || !plottable(chart.y.scale, curve.y[i]))
                continue;
            xs.include(curve.x[i]);
            ys.include(curve.y[i]);
            for (const auto* band : {&curve.low, &curve.high})
                if (i < band->size() && plottable(chart.y.scale, (*band)[i]))
                    ys.include((*band)[i]);
        }
    }
    const double left = 84, right = chart.width - 20.0, top = 52, bottom = chart.height - 48.0;
    return {left,
            right,
            top,
            bottom,
            {chart.x.scale, widened(chart.x.scale, xs, false), left, right},
            {chart.y.scale, widened(chart.y.scale, ys, true), bottom, top}};
}

std::string textAt(double x, double y, std::string_view anchor, std::string_view text, std::string_view more = {})
{
    return fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                       escapedForXml(text));
}

std::string axesText(const Chart& chart, const ChartLayout& layout)
{
    std::string out = fmt::format("<g class=\"grid\" stroke=\"{}\" fill=\"none\">\n", gridColour);
    std::string labels = fmt::format("<g class=\"axis\" fill=\"{}\" stroke=\"none\">\n", inkColour);
    const auto xTicks = chartTicks(chart.x.scale, layout.x.range.low, layout.x.range.high, 9);
    for (const double tick : xTicks) {
        const double x = layout.x(tick);
        out += fmt::format("<path d=\"M{0:.2f} {1:.2f}V{2:.2f}\"/>\n", x, layout.top, layout.bottom);
        labels += textAt(x, layout.bottom + 16, "middle", tickText(chart.x, tick));
    }
    for (const double tick : chartTicks(chart.y.scale, layout.y.range.low, layout.y.range.high, 6)) {
        const double y = layout.y(tick);
        out += fmt::format("<path d=\"M{0:.2f} {1:.2f}H{2:.2f}\"/>\n", layout.left, y, layout.right);
        labels += textAt(layout.left - 6, y + 4, "end", tickText(chart.y, tick));
    }
    out += fmt::format("<path d=\"M{:.2f} {:.2f}V{:.2f}H{:.2f}\" stroke=\"{}\" class=\"frame\"/>\n", layout.left,
                       layout.top, layout.bottom, layout.right, inkColour);
    labels += textAt((layout.left + layout.right) / 2, layout.bottom + 36, "middle", chart.x.label);
    const double middle = (layout.top + layout.bottom) / 2;
    labels += textAt(14, middle, "middle", chart.y.label, fmt::format(" transform=\"rotate(-90 14 {:.2f})\"", middle));
    return out + "</g>\n" + labels + "</g>\n";
}

/// Consecutive points that have a place, as runs: a gap ends one.
std::vector<std::vector<std::size_t>> runsOf(const Chart& chart, const ChartCurve& curve, bool band)
{
    std::vector<std::vector<std::size_t>> runs(1);
    for (std::size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
        bool has = plottable(chart.x.scale, curve.x[i]) && plottable(chart.y.scale, curve.y[i]);
        if (band)
            has = has && i < curve.low.size() && i < curve.high.size() && plottable(chart.y.scale, curve.low[i])
                && plottable(chart.y.scale, curve.high[i]);
        const bool isApart = chart.x.scale == ChartScale::Category; // no way leads from one to the next
        if (!runs.back().empty() && (!has || isApart))
            runs.emplace_back();
        if (has)
            runs.back().push_back(i);
    }
    if (runs.back().empty())
        runs.pop_back();
    return runs;
}

constexpr double levelReach = 0.3; ///< of a line over categories, which stands at each: to either side

/// Straight lines from point to point, with gaps; over categories a level at each.
std::string lineText(const Chart& chart, const ChartLayout& layout, const ChartCurve& curve)
{
    std::string path;
    for (const auto& run : runsOf(chart, curve, false))
        for (const std::size_t i : run)
            path += chart.x.scale == ChartScale::Category
                ? fmt::format("M{:.2f} {:.2f}H{:.2f}", layout.x(curve.x[i] - levelReach), layout.y(curve.y[i]),
                              layout.x(curve.x[i] + levelReach))
                : fmt::format("{}{:.2f} {:.2f}", i == run.front() ? "M" : "L", layout.x(curve.x[i]),
                              layout.y(curve.y[i]));
    return fmt::format("<path class=\"{}\" d=\"{}\" fill=\"none\" {}/>\n", roleText(curve.role), path,
                       lineStyle(curve.role));
}

std::string measuredText(const Chart& chart, const ChartLayout& layout, const ChartCurve& curve)
{
    std::string out;
    for (const auto& run : runsOf(chart, curve, true)) {
        std::string path;
        for (const std::size_t i : run)
            path +=
                fmt::format("{}{:.2f} {:.2f}", path.empty() ? "M" : "L", layout.x(curve.x[i]), layout.y(curve.high[i]));
        for (auto i = run.rbegin(); i != run.rend(); ++i)
            path += fmt::format("L{:.2f} {:.2f}", layout.x(curve.x[*i]), layout.y(curve.low[*i]));
        // A lone point's band has no area; the outline keeps it visible.
        out += fmt::format("<path class=\"band\" d=\"{}Z\" fill=\"{}\" fill-opacity=\"0.25\" "
                           "stroke=\"{}\" stroke-opacity=\"0.4\"/>\n",
                           path, measuredColour, measuredColour);
    }
    for (const auto& run : runsOf(chart, curve, false))
        for (const std::size_t i : run)
            out += fmt::format("<circle class=\"measured\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"3.5\" "
                               "fill=\"{}\"/>\n",
                               layout.x(curve.x[i]), layout.y(curve.y[i]), measuredColour);
    return out;
}

std::string legendText(const Chart& chart, const ChartLayout& layout)
{
    std::string out = fmt::format("<g class=\"legend\" fill=\"{}\">\n", inkColour);
    double x = layout.left;
    for (const ChartCurve& curve : chart.curves) {
        if (curve.role != ChartRole::Measured)
            out += fmt::format("<path class=\"{}\" d=\"M{:.2f} 37H{:.2f}\" fill=\"none\" {}/>\n", roleText(curve.role),
                               x, x + 25, lineStyle(curve.role));
        else
            out += fmt::format("<circle class=\"measured\" cx=\"{:.2f}\" cy=\"37\" r=\"3.5\" "
                               "fill=\"{}\"/>\n",
                               x + 12, measuredColour);
        out += textAt(x + 32, 41, "start", curve.label);
        x += 32 + 7.0 * static_cast<double>(curve.label.size()) + 20;
    }
    return out + "</g>\n";
}

} // namespace

std::vector<double> chartTicks(ChartScale scale, double low, double high, int atMost)
{
    if (!(low < high) || atMost < 1 || !std::isfinite(high - low))
        return {};
    switch (scale) {
    case ChartScale::Log2: return low > 0 ? powerTicks(2, low, high, atMost) : std::vector<double>();
    case ChartScale::Log10: return low > 0 ? log10Ticks(low, high, atMost) : std::vector<double>();
    case ChartScale::Category: {
        std::vector<double> ticks;
        const double step = std::max(1.0, std::ceil((high - low) / (4.0 * atMost)));
        for (double i = std::max(0.0, std::ceil(low)); i <= high; i += step)
            ticks.push_back(i);
        return ticks;
    }
    case ChartScale::Linear: break;
    }
    return linearTicks(low, high, atMost);
}

Chart chartOf(const Series* predicted, const Series* measured)
{
    const Series& one = predicted ? *predicted : *measured;
    Chart chart;
    chart.title = one.label;
    chart.x = {one.x.label, one.x.unit, ChartScale::Linear, one.x.names};
    if (one.x.scale == AxisScale::Log2)
        chart.x.scale = ChartScale::Log2;
    else if (one.x.scale == AxisScale::Category)
        chart.x.scale = ChartScale::Category;
    chart.y = {one.yLabel.empty() ? one.label : one.yLabel, one.yUnit, ChartScale::Linear, {}};
    ValueRange positive;
    bool other = false;
    for (const Series* series : {predicted, measured}) {
        if (!series)
            continue;
        chart.curves.push_back({series == predicted ? "predicted" : "measured",
                                series == predicted ? ChartRole::Predicted : ChartRole::Measured, series->x.values,
                                series->y, series->low, series->high});
        for (const double y : series->y) {
            if (plottable(ChartScale::Log10, y))
                positive.include(y);
            else if (std::isfinite(y))
                other = true; // zero and below have a place on a linear axis only
        }
    }
    if (!positive.empty() && !other && positive.high / positive.low > 100)
        chart.y.scale = ChartScale::Log10;
    return chart;
}

std::string svgChart(const Chart& chart)
{
    const ChartLayout layout = layoutOf(chart);
    const std::string title = escapedForXml(chart.title);
    std::string out =
        fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
                    "height=\"{1}\" role=\"img\" aria-label=\"{2}\" font-family=\"'DejaVu Sans', Verdana, "
                    "sans-serif\" font-size=\"12\">\n<title>{2}</title>\n",
                    chart.width, chart.height, title);
    out += textAt(layout.left, 20, "start", chart.title,
                  fmt::format(" class=\"title\" font-weight=\"bold\" fill=\"{}\"", inkColour));
    out += legendText(chart, layout) + axesText(chart, layout);
    for (const ChartCurve& curve : chart.curves)
        out += curve.role == ChartRole::Measured ? measuredText(chart, layout, curve) : lineText(chart, layout, curve);
    return out + "</svg>\n";
}

} // namespace memscape
