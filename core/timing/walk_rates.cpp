// SPDX-License-Identifier: Apache-2.0
#include "core/timing/walk_rates.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace memscape {

namespace {

using Points = std::vector<std::pair<double, double>>;

Points pointsOf(const Device& device, const std::string& kind, double elementBytes)
{
    Points points;
    if (!device.calibration)
        return points;
    for (const WalkRate& rate : device.calibration->walkRates) {
        if (rate.kind == kind && rate.elementBytes == elementBytes && rate.at > 0 && rate.seconds > 0)
            points.emplace_back(rate.at, rate.seconds);
    }
    std::sort(points.begin(), points.end());
    return points;
}

/// y at x between two points; `map` and `back` are the scale in which they lie on a line.
template <typename Map, typename Back>
double between(const std::pair<double, double>& a, const std::pair<double, double>& b, double x, Map&& map, Back&& back)
{
    const double share = (map(x) - map(a.first)) / (map(b.first) - map(a.first));
    return back(map(a.second) + share * (map(b.second) - map(a.second)));
}

} // namespace

std::optional<double> bulkSeconds(const Device& device, const std::string& kind, double elementBytes)
{
    const Points points = pointsOf(device, kind, elementBytes);
    if (points.empty())
        return {};
    return points.back().second / points.back().first;
}

std::optional<double> runSeconds(const Device& device, const std::string& kind, double elementBytes, double elements)
{
    const Points points = pointsOf(device, kind, elementBytes);
    if (points.empty())
        return {};
    if (elements >= points.back().first)
        return points.back().second * elements / points.back().first;
    if (elements <= points.front().first)
        return points.front().second;
    const auto above = std::lower_bound(points.begin(), points.end(), std::make_pair(elements, 0.0));
    const auto same = [](double value) { return value; };
    return between(*(above - 1), *above, elements, same, same);
}

std::optional<double> curveSeconds(const Device& device, const std::string& kind, double elementBytes, double at)
{
    const Points points = pointsOf(device, kind, elementBytes);
    if (points.empty())
        return {};
    if (at <= points.front().first)
        return points.front().second;
    if (at >= points.back().first)
        return points.back().second;
    const auto above = std::lower_bound(points.begin(), points.end(), std::make_pair(at, 0.0));
    return between(
        *(above - 1), *above, at, [](double value) { return std::log(value); },
        [](double value) { return std::exp(value); });
}

double setStride(double pitchBytes)
{
    constexpr std::uint64_t line = 64, page = 4096;
    const auto pitch = std::uint64_t(std::clamp(pitchBytes, 0.0, 0x1p60));
    if (pitch == 0)
        return double(line);
    return double(std::clamp(pitch & (~pitch + 1), line, page));
}

} // namespace memscape
