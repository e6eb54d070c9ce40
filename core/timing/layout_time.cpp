// SPDX-License-Identifier: Apache-2.0
#include "core/timing/layout_time.h"

#include "core/timing/stride_time.h"
#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memscape {

namespace {

constexpr double lookupsPerClock = 4; // lines per clock and multiprocessor
constexpr double pageBytes = 4096;    // beyond, prefetchers stop
constexpr double runLines = 4;        // that tiles in registers read from each row
constexpr double fillClocks = 2;      // of a line from L2 into L1: half a line a clock

tl::unexpected<Error> unknownDevice(const Device& device)
{
    return fail("predict.device", "the memory bandwidth of this device is not known",
                "calibrate it, or choose a device of the catalogue", device.id);
}

/// Lines per second that one core gets from DRAM. Far ones are not prefetched: each core waits for its own, so it
/// has its share of what all cores reach.
double coreLineRate(const Device& device, double pitch, std::string* source)
{
    const double one = dramLineRate(device, Operation::Read, pitch, 1, source);
    if (pitch < pageBytes / 2)
        return one;
    return std::min(one, dramLineRate(device, Operation::Read, pitch, std::max(1, device.threads)) / std::max(1, device.units));
}

/// Seconds for which a line of a level holds up one core when neighbours in the walk are `pitch` bytes apart.
/// `crowds`: so many of them are alive that far ones contend for sets of the caches.
double lineSeconds(const Device& device, const MemoryLevel& level, double pitch, bool crowds, std::string* source)
{
    const double far = std::max(device.lineBytes, pitch);
    if (!level.onChip())
        return 1 / coreLineRate(device, far, source);
    const double stream = levelRate(device, level, Operation::Read, 1) / device.lineBytes;
    if (pitch <= device.lineBytes)
        return 1 / stream;
    const Sourced& inFlight = device.concurrency.linesInFlightPerUnit;
    double rate = stream;
    if (inFlight.known() && level.latency.known())
        rate = std::min(rate, littleBandwidth(inFlight.value, level.latency.value));
    double seconds = 1 / rate + fillClocks / device.clock.valueOr(1e9);
    if (level.id == "L2")
        seconds = std::max(1 / rate, fillClocks / device.clock.valueOr(1e9));
    // What a far walk misses in the caches of its own shares their sets: it waits as memory's lines do.
    if (crowds && &level == device.lastCache() && pitch >= pageBytes)
        seconds = std::max(seconds, 1 / coreLineRate(device, far, nullptr));
    return seconds;
}

/// The caches and the memory behind them, as the walk meets them.
std::vector<const MemoryLevel*> pathOf(const Device& device)
{
    std::vector<const MemoryLevel*> path;
    for (const MemoryLevel& level : device.levels) {
        if (level.kind == LevelKind::Cache && level.capacity.known())
            path.push_back(&level);
    }
    path.push_back(device.dram());
    return path;
}

/// Lines that each level of the path misses in a pass.
Result<WalkMisses> missesOf(const Device& device, const TensorWalk& walk, double footprint)
{
    const std::vector<CacheGeometry> caches = simulatedCaches(device);
    const std::vector<const MemoryLevel*> path = pathOf(device);
    MEMSCAPE_TRY(misses, walkMisses(walk, caches));
    if (misses.isWhole)
        return misses;
    for (std::size_t i = 0; i < caches.size(); ++i)
        misses.misses[i] *= 1 - hitShare(footprint, path[i]->capacity.value, path[i]->bandwidthKnee.value_or(path[i]->knee));
    return misses;
}

Result<WalkTime> hostWalk(const Device& device, const TensorWalk& walk)
{
    const auto path = pathOf(device);
    const double line = device.lineBytes;
    const double footprint = distinctGranules(walk, std::uint64_t(line)) * line;
    MEMSCAPE_TRY(misses, missesOf(device, walk, footprint));
    const auto pitch = double(walk.pitchBytes());
    WalkTime time;
    time.isWhole = misses.isWhole;
    time.misses = misses.misses;
    time.source = device.basis;
    double longest = 0;
    for (std::size_t i = 1; i < path.size(); ++i) {
        time.caches.push_back(path[i - 1]->id);
        const double beyond = i < misses.misses.size() ? misses.misses[i] : 0;
        const double lines = std::max(0.0, misses.misses[i - 1] - beyond);
        const double seconds = lines * lineSeconds(device, *path[i], pitch, true, &time.source);
        time.served.push_back({path[i]->id, lines * line, seconds});
        time.memory += seconds;
        if (seconds > longest) {
            longest = seconds;
            time.limit = path[i]->id;
        }
    }
    time.issue = double(walk.elements)
        / issueRate(device, Operation::Read, walk.itemBytes, pitch == double(walk.itemBytes), 1);
    time.seconds = std::max(time.memory, time.issue);
    if (time.issue >= time.memory)
        time.limit = "issue";
    return time;
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
    const double kept = l2 && l2->capacity.known() ? hitShare(reuseBytes(walk, sizes.sector), l2->capacity.value, l2->knee) : 0;
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

/// Seconds to bring lines of a footprint once, in runs of `run` neighbours that are `pitch` apart.
double onceSeconds(const Device& device, double lines, double footprint, double pitch, double run)
{
    double seconds = 0;
    for (const ServedBy& one : servedBy(device, footprint, 1, KneeOf::Bandwidth)) {
        if (one.share <= 0 || one.level->id == "L1")
            continue;
        const double first = lineSeconds(device, *one.level, pitch, false, nullptr);
        const double next = lineSeconds(device, *one.level, device.lineBytes, false, nullptr);
        seconds += lines * one.share * (first + (run - 1) * next) / run;
    }
    return seconds;
}

/// Version 4 stores whole lines of 4-byte elements: where a row of the target is a whole number of them and the
/// storage has neighbours to turn (kernels/host/layout_kernels.cpp).
bool storesPastCaches(const TensorWalk& walk)
{
    const bool turns = std::any_of(walk.loops.begin(), walk.loops.end(), [](const WalkLoop& loop) { return loop.stride == 1; })
        && walk.loops.front().stride > 1;
    return walk.itemBytes == 4 && turns && walk.loops.front().count % 16 == 0;
}

Result<CopyTime> hostCopy(const Device& device, const TensorWalk& walk, int version)
{
    const double line = device.lineBytes;
    const double target = double(walk.elements) * double(walk.itemBytes);
    const double lines = distinctGranules(walk, std::uint64_t(line));
    const double footprint = lines * line + target;
    const bool isScalar = version < 3 || walk.itemBytes != 4; // tiles in registers move several elements at once
    CopyTime time;
    if (version == 1) {
        MEMSCAPE_TRY(read, walkTime(device, walk));
        time.reads = read.memory;
    } else {
        time.reads = onceSeconds(device, lines, footprint, double(walk.pitchBytes()), isScalar ? 1 : runLines);
    }
    time.writes = target / bandwidthOf(device, footprint, Operation::Write, 1).bytesPerSecond;
    if (version == 4 && storesPastCaches(walk))
        time.writes = target / levelRate(device, *device.dram(), Operation::Write, 1);
    const bool isRows = walk.loops.empty() || walk.loops.front().stride == 1;
    time.issue = isRows ? double(walk.elements) / issueRate(device, Operation::Copy, walk.itemBytes, true, 1)
                        : double(walk.elements) / (clockOf(device) * (isScalar ? 1 : 4));
    time.seconds = std::max(time.reads + time.writes, time.issue);
    time.limit = time.issue > time.reads + time.writes ? "issue" : time.reads > time.writes ? "reads" : "writes";
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
        const auto ways = std::uint64_t(std::clamp(level.ways.known() ? level.ways.value : 8.0, 1.0, double(cacheWaysLimit)));
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
    return device.isGpu() ? gpuWalk(device, walk) : hostWalk(device, walk);
}

Result<CopyTime> copyTime(const Device& device, const TensorWalk& walk, int version)
{
    if (!hasBandwidth(device))
        return unknownDevice(device);
    if (walk.elements == 0)
        return CopyTime{};
    const int chosen = version == 0 ? copyVersionCount : version;
    return device.isGpu() ? gpuCopy(device, walk, chosen) : hostCopy(device, walk, chosen);
}

} // namespace memscape
