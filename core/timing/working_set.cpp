// SPDX-License-Identifier: Apache-2.0
#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memscape {

namespace {

bool onLoadPath(const MemoryLevel& level)
{
    return level.kind != LevelKind::Registers && level.kind != LevelKind::Scratchpad && level.capacity.known();
}

double pageBytesOf(Pages pages)
{
    return pages == Pages::Huge ? 0x1p21 : 0x1p12;
}

/// What translation adds to one access: each TLB level's miss share times its penalty. Inside
/// windows that the first TLB covers there is nothing to add.
double translationCost(const Device& device, double workingSet, Pages pages)
{
    if (pages == Pages::Window)
        return 0;
    double cost = 0;
    for (const TlbLevel& tlb : device.tlbs) {
        if (tlb.pageBytes != pageBytesOf(pages) || !tlb.entries.known() || !tlb.missPenalty.known())
            continue;
        const double reach = tlb.entries.value * tlb.pageBytes;
        cost += (1 - hitShare(workingSet, reach, Knee{})) * tlb.missPenalty.value;
    }
    return cost;
}

} // namespace

double hitShare(double workingSet, double capacity, const Knee& knee)
{
    const double full = knee.begin * capacity, empty = knee.end * capacity;
    if (workingSet <= full)
        return 1;
    if (workingSet >= empty)
        return 0;
    return std::pow((empty - workingSet) / (empty - full), knee.exponent);
}

std::vector<ServedBy> servedBy(const Device& device, double workingSet, int cores, KneeOf curve)
{
    std::vector<ServedBy> served;
    double reached = 0; // cumulative share that this level or a nearer one holds
    for (const MemoryLevel& level : device.levels) {
        if (!onLoadPath(level))
            continue;
        const double capacity = level.capacity.value * std::clamp(cores, 1, std::max(1, level.instances));
        const bool own = curve == KneeOf::Bandwidth && level.bandwidthKnee;
        double share = hitShare(workingSet, capacity, own ? *level.bandwidthKnee : level.knee);
        if (!level.onChip()) // pages either are in memory or are not: no knee
            share = workingSet <= capacity ? 1 : capacity / workingSet;
        share = std::max(share, reached);
        served.push_back({&level, share - reached, capacity});
        reached = share;
    }
    if (!served.empty()) // the farthest level that is described holds the rest
        served.back().share += 1 - reached;
    return served;
}

const MemoryLevel* homeLevel(const Device& device, double workingSet, int cores)
{
    const MemoryLevel* home = nullptr;
    double largest = -1;
    for (const ServedBy& one : servedBy(device, workingSet, cores)) {
        if (one.share > largest) {
            largest = one.share;
            home = one.level;
        }
    }
    return home;
}

LatencyModel latencyOf(const Device& device, double workingSet, Pages pages)
{
    LatencyModel model{0, translationCost(device, workingSet, pages), servedBy(device, workingSet)};
    if (model.served.empty())
        model.seconds = nan;
    for (const ServedBy& one : model.served) {
        if (one.share > 0)
            model.seconds += one.share * one.level->latency.value;
    }
    model.seconds += model.translation;
    return model;
}

double levelRate(const Device& device, const MemoryLevel& level, Operation operation, int threads)
{
    const double all = levelBandwidth(device, level, operation).value;
    if (!level.oneCoreBandwidth || !level.oneCoreBandwidth->known())
        return level.instances > 1 ? all * std::min(1.0, double(threads) / device.units) : all;
    // The share of read bandwidth that this operation reaches holds for one core as well.
    const double share = level.bandwidth.known() ? all / level.bandwidth.value : 1;
    return std::min(all, threads * level.oneCoreBandwidth->value * share);
}

double bytesInFlight(const Device& device, const MemoryLevel& level, const StreamShape& shape)
{
    if (device.isGpu()) {
        const double resident = device.concurrency.maxThreadsPerUnit / device.warp;
        const double warps = shape.warps > 0 ? std::min(shape.warps, resident) : resident;
        return shape.threads * warps * device.warp * shape.wordBytes * gpuLoadsInFlight;
    }
    const int cores = std::clamp(shape.threads, 1, std::max(1, device.units));
    if (level.oneCoreBandwidth && level.oneCoreBandwidth->known() && level.latency.known())
        return cores * levelRate(device, level, Operation::Read, 1) * level.latency.value;
    return cores * device.concurrency.linesInFlightPerUnit.value * device.lineBytes;
}

BandwidthModel bandwidthOf(const Device& device, double workingSet, Operation operation, const StreamShape& shape)
{
    // On a GPU blocks land on any multiprocessor: the working set is as one of them sees it, and does
    // not add up over their L1 caches.
    const int cores = device.isGpu() ? 1 : std::clamp(shape.threads, 1, std::max(1, device.units));
    BandwidthModel model{0, servedBy(device, workingSet, cores, KneeOf::Bandwidth)};
    double secondsPerByte = 0;
    for (const ServedBy& one : model.served) {
        if (one.share <= 0)
            continue;
        double rate = levelRate(device, *one.level, operation, shape.threads);
        if (device.isGpu() && device.concurrency.maxThreadsPerUnit > 0 && one.level->latency.known())
            rate = std::min(rate, littleBandwidth(bytesInFlight(device, *one.level, shape), one.level->latency.value));
        secondsPerByte += one.share / rate;
    }
    model.bytesPerSecond = secondsPerByte > 0 ? 1 / secondsPerByte : nan;
    return model;
}

BandwidthModel bandwidthOf(const Device& device, double workingSet, Operation operation, int threads)
{
    return bandwidthOf(device, workingSet, operation, StreamShape{threads, 0, 16});
}

BandwidthModel triadOf(const Device& device, double workingSet, const StreamShape& shape)
{
    BandwidthModel model = bandwidthOf(device, workingSet, Operation::Copy, shape);
    const BandwidthModel read = bandwidthOf(device, workingSet, Operation::Read, shape);
    model.bytesPerSecond = 3 / (2 / model.bytesPerSecond + 1 / read.bytesPerSecond);
    return model;
}

double littleBandwidth(double bytesInFlight, double latency)
{
    return bytesInFlight / latency;
}

} // namespace memscape
