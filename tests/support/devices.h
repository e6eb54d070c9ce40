// SPDX-License-Identifier: Apache-2.0
// Devices for tests: one of the catalogue, and small machines made up of few values, all of them round.
#pragma once

#include "core/device/catalogue.h"

namespace memscape::test {

/// A level whose latency and bandwidth are known and whose other values are not.
inline MemoryLevel level(const char* id, LevelKind kind, double capacity, int instances, double latency,
                         double bandwidth)
{
    MemoryLevel one;
    one.id = one.label = id;
    one.kind = kind;
    one.instances = instances;
    one.capacity.value = capacity;
    one.latency.value = latency;
    one.bandwidth.value = bandwidth;
    return one;
}

/// Two cores with an L1 (32 KiB) and an L2 (1 MiB) each, an L3 of 32 MiB and memory behind it.
inline Device twoCores(const char* id = "test")
{
    Device device;
    device.id = device.name = id;
    device.units = device.threads = 2;
    device.lineBytes = 64;
    device.levels = {level("L1", LevelKind::Cache, 32768, 2, 1e-9, 400e9),
                     level("L2", LevelKind::Cache, 1 << 20, 2, 4e-9, 200e9),
                     level("L3", LevelKind::Cache, 32 << 20, 1, 12e-9, 100e9),
                     level("DRAM", LevelKind::Dram, 16e9, 1, 100e-9, 40e9)};
    return device;
}

inline Device h200()
{
    return *findDevice("nvidia-h200");
}

} // namespace memscape::test
