// SPDX-License-Identifier: Apache-2.0
#include "core/timing/calibration_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memscape {

std::vector<Region> regionsOf(Device& device, int cores)
{
    std::vector<Region> regions;
    double nearer = 0;
    for (MemoryLevel& level : device.levels) {
        if ((level.kind != LevelKind::Cache && level.kind != LevelKind::Dram) || !level.capacity.known())
            continue;
        const double capacity = level.capacity.value * std::clamp(cores, 1, std::max(1, level.instances));
        // DRAM's region begins where the last cache's knee has surely ended.
        const double begin = level.kind == LevelKind::Dram ? 4 * nearer : regionBegin * nearer;
        regions.push_back({&level, begin, regionEnd * capacity, capacity, nearer});
        nearer = capacity;
    }
    return regions;
}

std::vector<double> valuesBetween(const std::vector<Probe>& probes, double begin, double end)
{
    std::vector<double> values;
    for (const Probe& probe : probes) {
        if (probe.x >= begin && probe.x <= end && std::isfinite(probe.value) && probe.value > 0)
            values.push_back(probe.value);
    }
    std::sort(values.begin(), values.end());
    return values;
}

std::vector<double> valuesOf(const Region& region, const std::vector<Probe>& probes)
{
    auto values = valuesBetween(probes, region.begin, region.end);
    return values.empty() ? valuesBetween(probes, 1.25 * region.nearer, region.end) : values;
}

double median(const std::vector<double>& sorted)
{
    if (sorted.empty())
        return std::numeric_limits<double>::quiet_NaN();
    const std::size_t middle = sorted.size() / 2;
    return sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

Sourced measuredHere(double value, std::string method)
{
    return {value, Evidence::Measured, "calibration on this machine", std::move(method)};
}

std::vector<Knee> kneeCandidates(const std::string& source)
{
    std::vector<Knee> knees;
    for (double begin = 0.03; begin <= 1.301; begin += std::clamp(0.1 * begin, 0.005, 0.05)) {
        for (double width = 0.1; width <= 4.001; width *= 1.15)
            knees.push_back({begin, begin + width, 2.0, source});
    }
    return knees;
}

} // namespace memscape
