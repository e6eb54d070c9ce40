// SPDX-License-Identifier: Apache-2.0
#include "core/timing/layout_time.h"

#include "core/timing/layout_time_host.h"
#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memscape {

namespace {

constexpr double lookupsPerClock = 4; // lines per clock and multiprocessor

tl::unexpected<Error> unknownDevice(const Device& device)
{
    return fail("predict.device", "the memory bandwidth of this device is not known",
                "calibrate it, or choose a device of the catalogue", device.id);
}

struct GpuTraffic
{
    double l2 = 0, dram = 0; ///< B of one pass
    double lookups = 0;      ///< lines summed over requests
};

Result<GpuTraffic> gpuTraffic(const Device& device, const TensorWalk& walk)
{
    const GranuleSizes sizes{std::uint64_t(device.sectorBytes), std::uint64_t(device.lineBytes)};
    MEMSCAPE_TRY(requests, walkRequests(walk, sizes));
    GpuTraffic traffic;
    traffic.l2 = requests.requests * requests.fetchedBytes;
    traffic.lookups = requests.requests * requests.lines;
    const double distinct = distinctGranules(walk, sizes.sector) * double(sizes.sector);
    const MemoryLevel* l2 = device.lastCache();
    const double kept =
        l2 && l2->capacity.known() ? hitShare(reuseBytes(walk, sizes.sector), l2->capacity.value, l2->knee) : 0;
    traffic.dram = kept * distinct + (1 - kept) * std::max(distinct, traffic.l2);
    return traffic;
}

/// Bytes per second of DRAM, or of L2 where the tensor stays in it.
double gpuStream(const Device& device, double footprint, Operation operation)
{
    const MemoryLevel* l1 = device.level("L1"); // every block sees another part: L1 has no share in it
    const double beyond = l1 && l1->capacity.known() ? l1->knee.end * l1->capacity.value : 0;
    return bandwidthOf(device, std::max(footprint, beyond), operation, device.units).bytesPerSecond;
}

double l2Rate(const Device& device)
{
    const MemoryLevel* l2 = device.level("L2");
    return l2 && l2->bandwidth.known() ? l2->bandwidth.value : std::numeric_limits<double>::infinity();
}

double clockOf(const Device& device)
{
    return device.clock.valueOr(1e9);
}

Result<WalkTime> gpuWalk(const Device& device, const TensorWalk& walk)
{
    MEMSCAPE_TRY(traffic, gpuTraffic(device, walk));
    const double footprint = distinctGranules(walk, std::uint64_t(device.sectorBytes)) * device.sectorBytes;
    const double dram = traffic.dram / gpuStream(device, footprint, Operation::Read);
    const double l2 = traffic.l2 / l2Rate(device);
    WalkTime time;
    time.served = {{"L2", traffic.l2, l2}, {"DRAM", traffic.dram, dram}};
    time.memory = std::max(dram, l2);
    time.issue = traffic.lookups / (lookupsPerClock * clockOf(device) * device.units);
    time.seconds = device.launch.valueOr(0) + std::max(time.memory, time.issue);
    time.limit = time.issue > time.memory ? "issue" : dram >= l2 ? "DRAM" : "L2";
    time.source = levelBandwidth(device, *device.dram(), Operation::Read).source;
    return time;
}

Result<CopyTime> gpuCopy(const Device& device, const TensorWalk& walk, int version)
{
    MEMSCAPE_TRY(traffic, gpuTraffic(device, walk));
    const double target = double(walk.elements) * double(walk.itemBytes);
    const double distinct = distinctGranules(walk, std::uint64_t(device.sectorBytes)) * device.sectorBytes;
    const double rate = gpuStream(device, distinct + target, Operation::Copy);
    const bool isRows = walk.loops.empty() || walk.loops.front().stride <= 1;
    CopyTime time;
    time.writes = target / rate;
    time.reads = (version == 1 ? traffic.dram : distinct) / rate;
    if (version == 1)
        time.issue = std::max((traffic.l2 + target) / l2Rate(device),
                              traffic.lookups / (lookupsPerClock * clockOf(device) * device.units));
    else if (version == 2 && !isRows) // 32 wavefronts for the 32 lanes that read a column of the tile
        time.issue = double(walk.elements) / (clockOf(device) * device.units);
    time.seconds = device.launch.valueOr(0) + std::max(time.reads + time.writes, time.issue);
    time.limit = time.issue > time.reads + time.writes ? (version == 2 ? "bank conflicts" : "L2") : "DRAM";
    return time;
}

bool hasBandwidth(const Device& device)
{
    const MemoryLevel* dram = device.dram();
    return dram && levelBandwidth(device, *dram, Operation::Read).known();
}

} // namespace

std::vector<CacheGeometry> simulatedCaches(const Device& device)
{
    std::vector<CacheGeometry> caches;
    for (const MemoryLevel& level : device.levels) {
        if (level.kind != LevelKind::Cache || !level.capacity.known())
            continue;
        const auto line = std::uint64_t(device.lineBytes);
        const auto ways =
            std::uint64_t(std::clamp(level.ways.known() ? level.ways.value : 8.0, 1.0, double(cacheWaysLimit)));
        // A slice of a cache that is given as 1048600 bytes has 2048 sets.
        const double sets = std::round(level.capacity.value / double(ways * line));
        const double most = double(cacheLinesLimit / ways);
        caches.push_back({level.id, std::uint64_t(std::clamp(sets, 1.0, most)) * ways * line, ways, line});
    }
    return caches;
}

Result<WalkTime> walkTime(const Device& device, const TensorWalk& walk)
{
    if (!hasBandwidth(device))
        return unknownDevice(device);
    if (walk.elements == 0)
        return WalkTime{};
    return device.isGpu() ? gpuWalk(device, walk) : hostWalkTime(device, walk);
}

Result<CopyTime> copyTime(const Device& device, const TensorWalk& walk, int version)
{
    if (!hasBandwidth(device))
        return unknownDevice(device);
    if (walk.elements == 0)
        return CopyTime{};
    const int chosen = version == 0 ? copyVersionCount : version;
    return device.isGpu() ? gpuCopy(device, walk, chosen) : hostCopyTime(device, walk, chosen);
}

} // namespace memscape
