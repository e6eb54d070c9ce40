// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/fields/slider_stops.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

std::vector<double> linearStops(const ParameterSpec& spec)
{
    const double width = spec.maximum - spec.minimum;
    const bool whole = spec.kind == ParameterKind::Integer;
    const double wanted = whole && width <= 1000 ? width : 200;
    std::vector<double> stops;
    for (int i = 0; i <= int(wanted); ++i) {
        const double value = spec.minimum + width * i / std::max(1.0, wanted);
        stops.push_back(whole ? std::round(value) : value);
    }
    return stops;
}

std::vector<double> logarithmicStops(const ParameterSpec& spec)
{
    const bool whole = spec.kind == ParameterKind::Integer;
    std::vector<double> stops{spec.minimum};
    const double lowest = spec.minimum > 0 ? spec.minimum : (whole ? 1.0 : spec.maximum * 0x1p-40);
    for (double octave = std::exp2(std::floor(std::log2(lowest))); octave <= spec.maximum; octave *= 2) {
        for (const double step : {1.0, 1.25, 1.5, 1.75}) {
            const double value = octave * step;
            const bool fits = !whole || value == std::round(value);
            if (fits && value >= lowest && value <= spec.maximum)
                stops.push_back(value);
        }
    }
    stops.push_back(spec.maximum);
    return stops;
}

/// "all", "as many as fit": the least value stands for all that there is.
bool leastMeansMost(const ParameterSpec& spec)
{
    return std::ranges::any_of(spec.choices, [&](const ChoiceValue& word) {
        const bool isAll = word.label.starts_with("all") || word.label.starts_with("as many");
        return word.key == numberText(spec.minimum) && isAll;
    });
}

} // namespace

std::vector<double> sliderStops(const ParameterSpec& spec)
{
    std::vector<double> stops = spec.scale == Scale::Log2 ? logarithmicStops(spec) : linearStops(spec);
    std::ranges::sort(stops);
    stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
    if (spec.kind == ParameterKind::Integer && leastMeansMost(spec))
        std::ranges::rotate(stops, stops.begin() + 1);
    return stops;
}

int nearestStop(const std::vector<double>& stops, double value)
{
    const bool isRotated = stops.back() < stops.front();
    if (isRotated && value <= stops.back())
        return int(stops.size()) - 1;
    const auto end = stops.end() - (isRotated ? 1 : 0);
    const auto above = std::lower_bound(stops.begin(), end, value);
    if (above == stops.begin())
        return 0;
    if (above == end)
        return int(end - stops.begin()) - 1;
    const double low = *(above - 1);
    const double high = *above;
    const bool lowIsNearer = low > 0 ? value / low < high / value : value - low < high - value;
    return int(above - stops.begin()) - (lowIsNearer ? 1 : 0);
}

} // namespace memscape
