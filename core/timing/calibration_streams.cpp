// SPDX-License-Identifier: Apache-2.0
// Bandwidths of levels and the knees between them, from streams.
//
// Streams see another knee than the pointer chase: a cache shared with other tenants keeps what is
// touched often, and a chase touches a line once per round of latencies. So the knee of bandwidths is
// fitted by itself, from the farthest level inwards: with the farther plateau known, every candidate
// knee says which probes lie before it, their median is the nearer plateau, and between the two the
// model's times per byte add up,
//     1 / bandwidth = H(W) / near + (1 − H(W)) / far.
// The knee with the least absolute deviations in log bandwidth over all operations and thread counts is
// taken: streams of writes leave a cache early (at a third of an L1 that a hypervisor shares), and squares
// would bend the knee of all towards them.
//
// Left out: a knee of each operation, knees that move with the number of threads.
#include "core/timing/calibration_fit.h"
#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memscape {

namespace {

/// One operation on so many threads, with the bandwidth of each level as it sees it.
struct StreamCurve
{
    const BandwidthProbes* probes = nullptr;
    std::vector<Region> regions;
    std::vector<double> plateaus; ///< B/s; NaN where no probe lies
};

std::vector<StreamCurve> curvesOf(Device& device, const HostProbes& probes)
{
    std::vector<StreamCurve> curves;
    for (const BandwidthProbes& set : probes.bandwidths) {
        const int cores = std::clamp(set.threads, 1, std::max(1, device.units));
        StreamCurve curve{&set, regionsOf(device, cores), {}};
        for (const Region& region : curve.regions)
            curve.plateaus.push_back(median(valuesOf(region, set.points)));
        curves.push_back(std::move(curve));
    }
    return curves;
}

/// Median of the level's probes that lie before `knee`; NaN when fewer than two do.
double plateauBefore(const StreamCurve& curve, std::size_t level, const Knee& knee)
{
    const Region& region = curve.regions[level];
    const auto values = valuesBetween(curve.probes->points, region.begin, knee.begin * region.capacity);
    return values.size() < 2 ? std::numeric_limits<double>::quiet_NaN() : median(values);
}

/// Sum of absolute deviations in log bandwidth between two plateaus, and of how many probes.
struct Misfit
{
    double error = 0;
    int points = 0;
};

Misfit misfitOf(const StreamCurve& curve, std::size_t level, const Knee& knee)
{
    const Region& region = curve.regions[level];
    double near = plateauBefore(curve, level, knee);
    if (!std::isfinite(near))
        near = curve.plateaus[level];
    const double far = curve.plateaus[level + 1];
    Misfit misfit;
    if (!std::isfinite(near) || !std::isfinite(far))
        return misfit;
    const double end = std::min(5 * region.capacity, curve.regions[level + 1].end);
    for (const Probe& probe : curve.probes->points) {
        if (probe.x < region.begin || probe.x > end || !(probe.value > 0))
            continue;
        const double share = hitShare(probe.x, region.capacity, knee);
        const double model = 1 / (share / near + (1 - share) / far);
        misfit.error += std::abs(std::log(model / probe.value));
        ++misfit.points;
    }
    return misfit;
}

std::optional<Knee> fitStreamKnee(const std::vector<StreamCurve>& curves, std::size_t level)
{
    std::optional<Knee> best;
    double smallest = std::numeric_limits<double>::infinity();
    for (Knee& knee : kneeCandidates("fitted to the streams on this machine")) {
        Misfit all;
        for (const StreamCurve& curve : curves) {
            const Misfit one = misfitOf(curve, level, knee);
            all.error += one.error;
            all.points += one.points;
        }
        if (all.points >= 3 && all.error < smallest) {
            smallest = all.error;
            best = std::move(knee);
        }
    }
    return best;
}

void store(const StreamCurve& curve, bool all)
{
    const BandwidthProbes& set = *curve.probes;
    for (std::size_t i = 0; i < curve.regions.size(); ++i) {
        if (!std::isfinite(curve.plateaus[i]))
            continue;
        MemoryLevel& level = *curve.regions[i].level;
        const Sourced value =
            measuredHere(curve.plateaus[i], set.threads == 1 ? "streams, one thread" : "streams, all threads");
        if (set.operation == Operation::Read && set.threads == 1)
            level.oneCoreBandwidth = value;
        if (!all)
            continue;
        if (set.operation == Operation::Read)
            level.bandwidth = value;
        else if (set.operation == Operation::Write)
            level.writeBandwidth = value;
        else
            level.copyBandwidth = value;
    }
}

} // namespace

void fitBandwidths(Device& device, const HostProbes& probes)
{
    std::vector<StreamCurve> curves = curvesOf(device, probes);
    const std::size_t levels = regionsOf(device, 1).size();
    for (std::size_t level = levels < 2 ? 0 : levels - 1; level-- > 0;) {
        const std::optional<Knee> knee = fitStreamKnee(curves, level);
        if (!knee)
            continue;
        for (StreamCurve& curve : curves) {
            curve.regions[level].level->bandwidthKnee = knee;
            const double plateau = plateauBefore(curve, level, *knee);
            if (std::isfinite(plateau))
                curve.plateaus[level] = plateau;
        }
    }
    for (const StreamCurve& curve : curves)
        store(curve, curve.probes->threads >= probes.threads);
}

} // namespace memscape
