// SPDX-License-Identifier: Apache-2.0
#include "core/timing/stride_time.h"

#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memscape {

namespace {

/// Bytes that cross the memory bus per line walked: a written line is read first (write-allocate).
double linesMoved(Operation operation)
{
    switch (operation) {
    case Operation::Read: return 1;
    case Operation::Write: return 2;
    case Operation::Copy: return 3;
    case Operation::Triad: break; // no stride of three arrays
    }
    return 4;
}

/// Bytes that the level's bandwidth counts per line walked: a copy's counts both directions.
double linesCounted(Operation operation)
{
    return arraysOf(operation);
}

/// y at x, linear in the logarithms, flat beyond the ends. `points` ascend in x.
double logInterpolated(const std::vector<std::pair<double, double>>& points, double x)
{
    if (x <= points.front().first)
        return points.front().second;
    for (std::size_t i = 1; i < points.size(); ++i) {
        if (x > points[i].first)
            continue;
        const double share = std::log(x / points[i - 1].first) / std::log(points[i].first / points[i - 1].first);
        return points[i - 1].second * std::pow(points[i].second / points[i - 1].second, share);
    }
    return points.back().second;
}

std::vector<std::pair<double, double>> ratesOf(const std::vector<LineRate>& rates, Operation operation)
{
    std::vector<std::pair<double, double>> points;
    for (const LineRate& rate : rates) {
        if (rate.operation == operation && rate.linesPerSecond > 0)
            points.emplace_back(rate.strideBytes, rate.linesPerSecond);
    }
    std::sort(points.begin(), points.end());
    return points;
}

/// Threads scale what all of them reach as they scale DRAM's read bandwidth.
double threadShare(const Device& device, int threads)
{
    const MemoryLevel* dram = device.dram();
    return levelRate(device, *dram, Operation::Read, threads)
        / levelRate(device, *dram, Operation::Read, std::max(1, device.threads));
}

/// The most lines per second that outstanding misses allow: cores × lines in flight / latency.
double missRate(const Device& device, int threads)
{
    const MemoryLevel* dram = device.dram();
    const Sourced& inFlight = device.concurrency.linesInFlightPerUnit;
    if (!inFlight.known() || !dram->latency.known())
        return std::numeric_limits<double>::infinity();
    return littleBandwidth(std::min(threads, device.units) * inFlight.value, dram->latency.value);
}

/// Seconds per line walked when `footprint` bytes stay in the caches between passes.
double warmSecondsPerLine(const Device& device, const StrideCase& walk, double footprint, int threads, double dramRate)
{
    const int cores = std::clamp(threads, 1, std::max(1, device.units));
    double seconds = 0;
    const KneeOf curve = walk.pattern == Pattern::Random ? KneeOf::Latency : KneeOf::Bandwidth;
    for (const ServedBy& one : servedBy(device, footprint, cores, curve)) {
        if (one.share <= 0)
            continue;
        const double rate = one.level->onChip()
            ? levelRate(device, *one.level, walk.operation, threads) / (device.lineBytes * linesCounted(walk.operation))
            : dramRate;
        seconds += one.share / rate;
    }
    return seconds;
}

/// Accesses per second to random lines of DRAM.
double randomRate(const Device& device, const StrideCase& walk, int threads, std::string& source)
{
    if (device.calibration) {
        const auto points = ratesOf(device.calibration->randomRates, walk.operation);
        if (!points.empty()) {
            source = "calibrated on this machine";
            return logInterpolated(points, double(walk.arrayBytes)) * threadShare(device, threads);
        }
    }
    return std::min(missRate(device, threads),
                    dramLineRate(device, walk.operation, device.lineBytes, threads, &source));
}

Result<StrideTime> hostTime(const Device& device, const StrideCase& walk)
{
    const int threads = walk.threadsOn(device);
    MEMSCAPE_TRY(footprint, hostFootprint(walk, {static_cast<std::uint64_t>(device.lineBytes), 4096}));
    StrideTime time;
    time.movedBytes = footprint.lines * device.lineBytes * linesMoved(walk.operation);
    const bool random = walk.pattern == Pattern::Random;
    const double dramRate = random
        ? randomRate(device, walk, threads, time.rateSource)
        : dramLineRate(device, walk.operation, std::max(device.lineBytes, double(walk.pitchBytes)), threads,
                       &time.rateSource);
    double secondsPerLine = 1 / dramRate;
    if (!walk.cold)
        secondsPerLine =
            warmSecondsPerLine(device, walk, footprint.lines * device.lineBytes * walk.arrays(), threads, dramRate);
    time.memoryRate = 1 / secondsPerLine;
    time.issueRate =
        issueRate(device, walk.operation, walk.elementBytes, walk.pitchBytes == walk.elementBytes, threads);
    const double memory = (random ? double(walk.accesses) : footprint.lines) * secondsPerLine;
    const double issue = double(walk.accesses) / time.issueRate;
    time.seconds = std::max(memory, issue);
    time.limit = memory >= issue ? StrideLimit::Memory : StrideLimit::Issue;
    return time;
}

/// Bytes per second that the memory of a GPU gives this pattern.
double gpuRate(const Device& device, const StrideCase& walk, double fetchedPerRequest, double footprint,
               std::string& source, StrideLimit& limit)
{
    const MemoryLevel& dram = *device.dram();
    const Sourced bandwidth = levelBandwidth(device, dram, walk.operation);
    double rate = bandwidth.value;
    source = bandwidth.source;
    if (!walk.cold)
        rate = bandwidthOf(device, footprint, walk.operation, device.units).bytesPerSecond;
    if (device.calibration && walk.pattern != Pattern::Random) {
        const auto points = ratesOf(device.calibration->lineRates, walk.operation);
        if (!points.empty()) {
            source = "calibrated on this machine";
            rate = std::min(rate,
                            logInterpolated(points, std::max(device.sectorBytes, double(walk.pitchBytes)))
                                * device.sectorBytes * walk.arrays());
        }
    }
    limit = StrideLimit::Memory;
    if (device.concurrency.maxThreadsPerUnit > 0 && dram.latency.known()) {
        const double warps = device.units * device.concurrency.maxThreadsPerUnit / device.warp;
        const double bound =
            littleBandwidth(warps * fetchedPerRequest * gpuLoadsInFlight * walk.arrays(), dram.latency.value);
        if (bound < rate) {
            rate = bound;
            limit = StrideLimit::Latency;
        }
    }
    return rate;
}

Result<StrideTime> gpuTime(const Device& device, const StrideCase& walk)
{
    MEMSCAPE_TRY(
        counts,
        requestCounts(walk,
                      {static_cast<std::uint64_t>(device.sectorBytes), static_cast<std::uint64_t>(device.lineBytes)}));
    const double requests = std::ceil(double(walk.accesses) / device.warp);
    StrideTime time;
    // A broadcast reads the same sector again and again, which leaves the memory only once.
    const double fetches = walk.pitchBytes == 0 && walk.pattern != Pattern::Random ? 1 : requests;
    time.movedBytes = fetches * counts.fetchedBytes * walk.arrays();
    time.memoryRate = gpuRate(device, walk, counts.fetchedBytes, time.movedBytes, time.rateSource, time.limit);
    const double memory = time.movedBytes / time.memoryRate;
    double issue = 0;
    for (const MemoryLevel& level : device.levels) { // whatever is fetched, L1 hands it to the lanes
        if (level.kind == LevelKind::Cache && level.bandwidth.known()) {
            issue = walk.usefulBytes() / level.bandwidth.value;
            break;
        }
    }
    if (issue > memory)
        time.limit = StrideLimit::Issue;
    time.seconds = device.launch.valueOr(0) + std::max(memory, issue);
    return time;
}

} // namespace

std::string_view limitText(StrideLimit limit)
{
    switch (limit) {
    case StrideLimit::Memory: return "memory";
    case StrideLimit::Issue: return "issue";
    case StrideLimit::Latency: return "latency";
    }
    return {};
}

double issueRate(const Device& device, Operation operation, std::uint64_t elementBytes, bool neighbours, int threads)
{
    if (device.calibration) {
        for (const IssueRate& rate : device.calibration->issueRates) {
            if (rate.operation == operation && rate.contiguous == neighbours
                && rate.elementBytes == double(elementBytes))
                return rate.elementsPerSecond * threads / std::max(1, device.threads);
        }
    }
    const int cores = std::min(threads, device.units);
    if (!neighbours)
        return device.clock.valueOr(1e9) * cores;
    for (const MemoryLevel& level : device.levels) {
        if (level.kind == LevelKind::Cache && level.bandwidth.known())
            return levelRate(device, level, operation, threads) / (double(elementBytes) * linesCounted(operation));
    }
    return device.clock.valueOr(1e9) * cores;
}

double dramLineRate(const Device& device, Operation operation, double pitchBytes, int threads, std::string* source)
{
    if (device.calibration) {
        const auto points = ratesOf(device.calibration->lineRates, operation);
        if (!points.empty()) {
            if (source)
                *source = "calibrated on this machine";
            return logInterpolated(points, pitchBytes) * threadShare(device, threads);
        }
    }
    const Sourced bandwidth = levelBandwidth(device, *device.dram(), operation);
    if (source)
        *source = bandwidth.source;
    const double rate =
        levelRate(device, *device.dram(), operation, threads) / (device.lineBytes * linesCounted(operation));
    return pitchBytes >= 4096 ? std::min(rate, missRate(device, threads)) : rate;
}

Result<StrideTime> strideTime(const Device& device, const StrideCase& walk)
{
    const MemoryLevel* dram = device.dram();
    if (!dram || !levelBandwidth(device, *dram, walk.operation).known()) {
        return fail("predict.device", "the memory bandwidth of this device is not known",
                    "calibrate it, or choose a device of the catalogue", device.id);
    }
    return device.isGpu() ? gpuTime(device, walk) : hostTime(device, walk);
}

} // namespace memscape
