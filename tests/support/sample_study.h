// SPDX-License-Identifier: GPL-3.0-or-later
// Small studies for tests of the window: a device with three levels, records made by hand.
#pragma once

#include "core/experiment/record.h"

#include <stdexcept>
#include <string>

namespace memscape::sample {

inline Sourced given(double value)
{
    return {value, Evidence::Specified, "made up for a test", {}};
}

/// A GPU with round numbers.
inline Device device()
{
    Device device;
    device.id = "sample-gpu";
    device.name = "Sample GPU";
    device.kind = DeviceKind::Gpu;
    device.vendor = "Sample";
    device.architecture = "Sample";
    device.basis = "catalogue";
    device.units = 100;
    device.clock = given(1e9);
    const auto made = [](const char* id, LevelKind kind, double bytes, double latency, double bandwidth) {
        MemoryLevel level;
        level.id = id;
        level.label = id;
        level.kind = kind;
        level.capacity = given(bytes);
        level.line = given(128);
        level.latency = given(latency);
        level.bandwidth = given(bandwidth);
        return level;
    };
    device.levels = {made("L1", LevelKind::Cache, 131072, 3e-8, 2e13),
                     made("L2", LevelKind::Cache, 33554432, 2e-7, 5e12),
                     made("DRAM", LevelKind::Dram, 1 << 30, 5e-7, 1e12)};
    device.levels[0].instances = 100;
    return device;
}

/// For the preparations of a test.
inline void mustWork(const Result<void>& result)
{
    if (!result)
        throw std::runtime_error(result.error().text());
}

inline Parameters parameters(const std::vector<std::string>& assignments = {})
{
    return resolve((*findExperiment("stride"))->schema(), assignments).value();
}

/// A measured and predicted stride record without the cost of predicting.
inline Record record(const std::string& name)
{
    Record record;
    record.experiment = "stride";
    record.parameters = parameters();
    record.device = device();
    record.name = name;
    record.predicted.emplace();
    record.predicted->figures = {Figure{"time", "time", Unit::Second, 1e-3}};
    record.predicted->detail = Json::object();
    record.measured = record.predicted;
    record.provenance = Json::object();
    return record;
}

} // namespace memscape::sample
