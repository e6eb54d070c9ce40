// SPDX-License-Identifier: Apache-2.0
#include "core/base/quantity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace memscape {

namespace {

/// Figures without a unit that are said as shares of a whole, and as factors.
constexpr std::array<std::string_view, 5> shares{"efficiency", "fragmentation", "unusable", "notes_fragmentation",
                                                 "quantization"};
constexpr std::array<std::string_view, 2> factors{"speedup", "memory_ratio"};

bool isNamedIn(const auto& keys, const Figure& figure)
{
    return figure.unit == Unit::One && std::ranges::find(keys, figure.key) != keys.end();
}

bool isCount(const Figure& figure)
{
    return figure.unit == Unit::One && !isNamedIn(shares, figure) && !isNamedIn(factors, figure);
}

/// A value of `figure`, its own or an end of its band: "37.5 %", "2.91×", "1.92 TB/s".
std::string saidOf(const Figure& figure, double value, ByteStyle style)
{
    if (isNamedIn(shares, figure))
        return value == 0 ? "0 %" : percentText(value, 3);
    if (isNamedIn(factors, figure))
        return quantityText(value, figure.unit) + (std::isfinite(value) ? "×" : "");
    if (figure.unit != Unit::One || !(std::fabs(value) >= 1e5) || !std::isfinite(value))
        return quantityText(value, figure.unit, style);
    std::string estimate = quantityText(value, Unit::Hertz); // 1.28 M, of the 1 279 348.86 examples in a second
    estimate.resize(estimate.size() - unitText(Unit::Hertz).size());
    return estimate;
}

} // namespace

double Figure::number() const
{
    const double* number = std::get_if<double>(&value);
    return number ? *number : std::numeric_limits<double>::quiet_NaN();
}

bool Figure::countsOperations() const
{
    return isNumber() && unit == Unit::One && (key == "flops" || key.ends_with("_flops"));
}

std::string Figure::text(ByteStyle style) const
{
    if (const auto* word = std::get_if<std::string>(&value))
        return *word;
    if ((key == "fits" || key == "feasible") && std::isfinite(number())) // 1 or 0 in documents
        return number() != 0 ? "yes" : "no";
    if (countsOperations())
        return operationsText(number());
    // Counts are exact: 6 738 415 616 parameters, 1024 tokens.
    if (isCount(*this) && number() == std::floor(number()) && std::fabs(number()) < 0x1p53)
        return countText(number());
    return saidOf(*this, number(), style);
}

std::string Figure::rangeText(ByteStyle style) const
{
    if (!low || !high)
        return {};
    const std::string from = saidOf(*this, *low, style), to = saidOf(*this, *high, style);
    const std::size_t name = from.rfind(' '), other = to.rfind(' ');
    const bool isAlike =
        name != std::string::npos && other != std::string::npos && from.substr(name) == to.substr(other);
    return (isAlike ? from.substr(0, name) : from) + " to " + to;
}

Figure figureOf(std::string key, std::string label, Unit unit, std::variant<double, std::string> value, Why why)
{
    return {std::move(key), std::move(label), unit, std::move(value), {}, {}, std::move(why)};
}

void markCounted(Figures& figures, std::initializer_list<std::string_view> keys)
{
    for (Figure& figure : figures)
        figure.isCounted = figure.isCounted || std::ranges::find(keys, figure.key) != keys.end();
}

const Figure* findFigure(const Figures& figures, std::string_view key)
{
    for (const Figure& figure : figures) {
        if (figure.key == key)
            return &figure;
    }
    return nullptr;
}

} // namespace memscape
