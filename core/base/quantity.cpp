// SPDX-License-Identifier: Apache-2.0
#include "core/base/quantity.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memscape {

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
    if (unit == Unit::One && number() == std::floor(number()) && std::fabs(number()) < 0x1p53)
        return countText(number());
    return quantityText(number(), unit, style);
}

std::string Figure::rangeText(ByteStyle style) const
{
    if (!low || !high)
        return {};
    const std::string from = quantityText(*low, unit, style), to = quantityText(*high, unit, style);
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
