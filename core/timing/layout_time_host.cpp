// SPDX-License-Identifier: Apache-2.0
#include "core/timing/layout_time_host.h"

#include "core/timing/stride_time.h"
#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double runLines = 4;   // that tiles in registers read from each row
constexpr double fillClocks = 2; // of a line from L2 into L1: half a line a clock

/// Lines per second that one core gets from DRAM. Far ones are not prefetched: each core waits for its own, so it
/// has its share of what all cores reach.
double coreLineRate(const Device& device, double pitch, std::string* source)
{
    const double one = dramLineRate(device, Operation::Read, pitch, 1, source);
    if (pitch < prefetchedPage / 2)
        return one;
    return std::min(
        one, dramLineRate(device, Operation::Read, pitch, std::max(1, device.threads)) / std::max(1, device.units));
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
    if (crowds && &level == device.lastCache() && pitch >= prefetchedPage)
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
    // Where lines are used again before they go, a part of the walk says little about how often they come: once each.
    const double lines = footprint / device.lineBytes;
    for (std::size_t i = 0; i < caches.size(); ++i) {
        if (misses.misses[i] < 3 * lines)
            misses.misses[i] = lines;
    }
    for (std::size_t i = 0; i < caches.size(); ++i)
        misses.misses[i] *=
            1 - hitShare(footprint, path[i]->capacity.value, path[i]->bandwidthKnee.value_or(path[i]->knee));
    return misses;
}

} // namespace

Result<WalkTime> hostWalkTime(const Device& device, const TensorWalk& walk)
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
    time.issue =
        double(walk.elements) / issueRate(device, Operation::Read, walk.itemBytes, pitch == double(walk.itemBytes), 1);
    time.seconds = std::max(time.memory, time.issue);
    if (time.issue >= time.memory)
        time.limit = "issue";
    return calibratedWalkTime(device, walk, time).value_or(time);
}

namespace {

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
/// storage has neighbours to turn (kernels/host/layout/layout_kernels.cpp).
bool storesPastCaches(const TensorWalk& walk)
{
    const bool turns =
        std::any_of(walk.loops.begin(), walk.loops.end(), [](const WalkLoop& loop) { return loop.stride == 1; })
        && walk.loops.front().stride > 1;
    return walk.itemBytes == 4 && turns && walk.loops.front().count % 16 == 0;
}

} // namespace

Result<CopyTime> hostCopyTime(const Device& device, const TensorWalk& walk, int version)
{
    const double line = device.lineBytes;
    const double target = double(walk.elements) * double(walk.itemBytes);
    const double lines = distinctGranules(walk, std::uint64_t(line));
    const double footprint = lines * line + target;
    const bool isScalar = version < 3 || walk.itemBytes != 4; // tiles in registers move several elements at once
    CopyTime time;
    WalkTime read;
    if (version == 1 || (copyPlane(walk).b == 0 && walk.pitchBytes() != walk.itemBytes)) { // visited one by one
        MEMSCAPE_TRY(walked, walkTime(device, walk));
        read = std::move(walked);
    }
    if (const auto calibrated = calibratedCopyTime(device, walk, version, read))
        return *calibrated;
    if (version == 1) {
        time.reads = read.memory;
    } else {
        time.reads = onceSeconds(device, lines, footprint, double(walk.pitchBytes()), isScalar ? 1 : runLines);
    }
    time.writes = target / bandwidthOf(device, footprint, Operation::Write, 1).bytesPerSecond;
    if (version == 4 && storesPastCaches(walk))
        time.writes = target / levelRate(device, *device.dram(), Operation::Write, 1);
    const bool isRows = walk.loops.empty() || walk.loops.front().stride == 1;
    time.issue = isRows ? double(walk.elements) / issueRate(device, Operation::Copy, walk.itemBytes, true, 1)
                        : double(walk.elements) / (device.clock.valueOr(1e9) * (isScalar ? 1 : 4));
    time.seconds = std::max(time.reads + time.writes, time.issue);
    time.limit = time.issue > time.reads + time.writes ? "issue" : time.reads > time.writes ? "reads" : "writes";
    return time;
}

} // namespace memscape
