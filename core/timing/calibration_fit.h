// SPDX-License-Identifier: Apache-2.0
// What the parts of a host's calibration share: robust statistics of the probes inside a level's
// region, and the knees that a fit tries.
#pragma once

#include "core/timing/calibration.h"

#include <string>
#include <vector>

namespace memscape {

/// Inside a level's region: past twice what the nearer level holds, well below its own capacity.
inline constexpr double regionBegin = 2.0, regionEnd = 0.7;

/// A cache of the load path or DRAM, with the working sets in which it serves.
struct Region
{
    MemoryLevel* level = nullptr;
    double begin = 0, end = 0; ///< B, of `cores` together
    double capacity = 0;       ///< B, of `cores` together
    double nearer = 0;         ///< B, capacity of the level before
};

/// Nearest first; `cores` share out the working set.
std::vector<Region> regionsOf(Device& device, int cores);

/// The positive values of the probes from `begin` to `end`, ascending.
std::vector<double> valuesBetween(const std::vector<Probe>& probes, double begin, double end);
/// Those of a region. One that is too narrow for its margins (a small cache after a smaller one), or whose beginning
/// the probes hardly reach (memory behind a last cache of hundreds of MiB), loses them.
std::vector<double> valuesOf(const Region& region, const std::vector<Probe>& probes);
/// NaN when there are none.
double median(const std::vector<double>& sorted);

Sourced measuredHere(double value, std::string method);

/// Knees with exponent 2 from 0.03 to 5.3 capacities: a tenant of a shared cache sees a part of it.
std::vector<Knee> kneeCandidates(const std::string& source);

/// Bandwidths of levels and the knees between them, from streams. See calibration_streams.cpp.
void fitBandwidths(Device& device, const HostProbes& probes);

} // namespace memscape
