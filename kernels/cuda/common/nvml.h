// SPDX-License-Identifier: Apache-2.0
// What the driver's management library reports about the GPU while we measure: why its clock is reduced, how warm it
// is, which other processes compute on it. Opened at run time and declared here, because not every toolkit ships nvml.h
// and not every machine the library; whatever it cannot say stays unknown.
#pragma once

#include "core/base/json.h"

#include <optional>
#include <string>
#include <vector>

namespace memscape::cuda {

struct GpuState
{
    std::optional<double> temperature;         ///< °C
    std::optional<double> power;               ///< W
    std::optional<double> powerLimit;          ///< W
    std::optional<double> smClock, maxSmClock; ///< Hz
    std::optional<unsigned long long> reasons; ///< why the clock is not higher, a bit mask
    std::optional<int> otherProcesses;         ///< computing on this GPU beside us
    std::optional<bool> ecc, persistence;
};

/// The state of the GPU at this PCI address ("00000000:01:00.0"). All unknown without NVML.
GpuState readGpuState(const std::string& pciBusId);

/// "580.65.06"; empty without NVML.
std::string driverVersion();

/// "power limit", "thermal slowdown by software" … of a reasons mask; idle and application clocks
/// are named too.
std::vector<std::string> reasonTexts(unsigned long long reasons);
/// Whether one of them slows the clock below what was asked for (power, heat, hardware).
bool throttles(unsigned long long reasons);

Json stateToJson(const GpuState& state);

} // namespace memscape::cuda
