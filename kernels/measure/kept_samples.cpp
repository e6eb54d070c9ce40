// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/kept_samples.h"

#include <algorithm>
#include <random>

namespace memscape {

namespace {

constexpr std::size_t perSet = 1000, fewest = 32, perRun = 400'000;

} // namespace

std::size_t keptPerSet(std::size_t sets)
{
    return std::clamp(perRun / std::max<std::size_t>(sets, 1), fewest, perSet);
}

std::vector<double> thinned(const std::vector<double>& values, std::size_t limit)
{
    if (values.size() <= limit)
        return values;
    std::mt19937_64 random(1);
    std::vector<double> kept;
    kept.reserve(limit);
    for (std::size_t i = 0; i < values.size(); ++i) {
        // So many are still wanted of so many that are left.
        if (random() % (values.size() - i) < limit - kept.size())
            kept.push_back(values[i]);
    }
    return kept;
}

Json keptSamples(const std::string& key, const std::vector<double>& seconds, std::size_t limit)
{
    Json values = Json::array();
    for (const double value : thinned(seconds, limit))
        values.push_back(jsonNumber(value));
    return {{"key", key}, {"unit", "s"}, {"count", seconds.size()}, {"values", std::move(values)}};
}

} // namespace memscape
