// SPDX-License-Identifier: Apache-2.0
#include "core/timing/calibration.h"

#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memscape {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Inside a level's region: past twice what the nearer level holds, well below its own capacity.
constexpr double regionBegin = 2.0, regionEnd = 0.7;

Sourced measured(double value, std::string method)
{
    return {value, Evidence::Measured, "calibration on this machine", std::move(method)};
}

std::vector<double> valuesBetween(const std::vector<Probe>& probes, double begin, double end)
{
    std::vector<double> values;
    for (const Probe& probe : probes) {
        if (probe.x >= begin && probe.x <= end && std::isfinite(probe.value) && probe.value > 0)
            values.push_back(probe.value);
    }
    std::sort(values.begin(), values.end());
    return values;
}

double median(const std::vector<double>& sorted)
{
    if (sorted.empty())
        return nan;
    const std::size_t middle = sorted.size() / 2;
    return sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/// The caches of the load path and DRAM, with the region in which each one serves.
struct Region
{
    MemoryLevel* level;
    double begin, end; ///< working sets of one core
};

std::vector<Region> regionsOf(Device& device, int cores)
{
    std::vector<Region> regions;
    double nearer = 0;
    for (MemoryLevel& level : device.levels) {
        if ((level.kind != LevelKind::Cache && level.kind != LevelKind::Dram) || !level.capacity.known())
            continue;
        const double capacity = level.capacity.value * std::clamp(cores, 1, std::max(1, level.instances));
        // DRAM's region begins where the last cache's knee has surely ended.
        const double begin = level.kind == LevelKind::Dram ? 4 * nearer : regionBegin * nearer;
        regions.push_back({&level, begin, regionEnd * capacity});
        nearer = capacity;
    }
    return regions;
}

/// Translation of L1-resident windows is free, so their curve shows the levels alone.
const std::vector<Probe>& plainest(const HostProbes& probes)
{
    if (!probes.latencyWindow.empty())
        return probes.latencyWindow;
    return probes.latencyHuge.empty() ? probes.latency4k : probes.latencyHuge;
}

bool fitLatencies(Device& device, const HostProbes& probes)
{
    const std::vector<Probe>& curve = plainest(probes);
    bool any = false;
    auto regions = regionsOf(device, 1);
    for (Region& region : regions) {
        // A region too narrow for its margins (a small cache after a smaller one) loses them.
        auto values = valuesBetween(curve, region.begin, region.end);
        if (values.empty())
            values = valuesBetween(curve, region.begin / regionBegin * 1.25, region.end);
        if (values.empty())
            continue;
        any = true;
        // Noise only ever adds: near levels take the lower quartile, DRAM the median.
        const double value = region.level->kind == LevelKind::Dram ? median(values)
                                                                   : values[values.size() / 4];
        region.level->latency = measured(value, "pointer chase, translation-friendly windows");
    }
    for (std::size_t i = 0; i + 1 < regions.size(); ++i) {
        MemoryLevel& level = *regions[i].level;
        level.knee = fitKnee(curve, level.capacity.value, level.latency.value,
                             regions[i + 1].level->latency.value);
    }
    return any;
}

double interpolated(const std::vector<Probe>& curve, double x)
{
    const auto above = std::lower_bound(curve.begin(), curve.end(), x,
                                        [](const Probe& probe, double value) { return probe.x < value; });
    if (above == curve.end() || above->x > x * 1.001)
        return nan;
    return above->value;
}

/// Effective reach and penalty of translation with one page size: what its curve has above the
/// windows' curve, as one step. Two levels of TLB are fitted as two steps where both show.
void fitTranslation(Device& device, const std::vector<Probe>& curve, const std::vector<Probe>& plain,
                    double pageBytes)
{
    std::vector<Probe> extra;
    for (const Probe& probe : curve) {
        const double difference = probe.value - interpolated(plain, probe.x);
        if (std::isfinite(difference))
            extra.push_back({probe.x, std::max(0.0, difference), 0, 0});
    }
    if (extra.size() < 4)
        return;
    std::erase_if(device.tlbs, [&](const TlbLevel& tlb) { return tlb.pageBytes == pageBytes; });
    // Two steps at reaches r1 < r2 with heights that least squares gives: a small grid search.
    double best = std::numeric_limits<double>::infinity();
    double bestReach[2] = {0, 0}, bestHeight[2] = {0, 0};
    for (std::size_t i = 0; i < extra.size(); ++i) {
        for (std::size_t j = i; j < extra.size(); ++j) {
            double a11 = 0, a12 = 0, a22 = 0, b1 = 0, b2 = 0;
            for (const Probe& probe : extra) {
                const double s1 = 1 - hitShare(probe.x, extra[i].x, Knee{});
                const double s2 = i == j ? 0 : 1 - hitShare(probe.x, extra[j].x, Knee{});
                a11 += s1 * s1, a12 += s1 * s2, a22 += s2 * s2, b1 += s1 * probe.value, b2 += s2 * probe.value;
            }
            const double determinant = a11 * a22 - a12 * a12;
            double h1 = a11 > 0 ? b1 / a11 : 0, h2 = 0;
            if (i != j && determinant > 1e-9 * a11 * a22) {
                h1 = (b1 * a22 - b2 * a12) / determinant;
                h2 = (a11 * b2 - a12 * b1) / determinant;
            }
            if (h1 < 0 || h2 < 0)
                continue;
            double error = 0;
            for (const Probe& probe : extra) {
                const double model = h1 * (1 - hitShare(probe.x, extra[i].x, Knee{}))
                    + h2 * (i == j ? 0 : 1 - hitShare(probe.x, extra[j].x, Knee{}));
                error += (model - probe.value) * (model - probe.value);
            }
            if (error < best) {
                best = error;
                bestReach[0] = extra[i].x, bestReach[1] = extra[j].x;
                bestHeight[0] = h1, bestHeight[1] = h2;
            }
        }
    }
    for (int step = 0; step < 2; ++step) {
        if (bestHeight[step] <= 0)
            continue;
        const std::string method = "fit of the pointer chase over these pages less that over windows";
        device.tlbs.push_back({step == 0 ? "near translation" : "far translation", pageBytes,
                               measured(bestReach[step] / pageBytes, method),
                               measured(bestHeight[step], method)});
    }
}

void fitBandwidths(Device& device, const HostProbes& probes)
{
    for (const BandwidthProbes& set : probes.bandwidths) {
        const int cores = std::clamp(set.threads, 1, std::max(1, device.units));
        const bool all = set.threads >= probes.threads;
        for (Region& region : regionsOf(device, cores)) {
            const auto values = valuesBetween(set.points, region.begin, region.end);
            if (values.empty())
                continue;
            const Sourced value = measured(median(values), set.threads == 1 ? "streams, one thread"
                                                                            : "streams, all threads");
            if (set.operation == Operation::Read && set.threads == 1)
                region.level->oneCoreBandwidth = value;
            if (!all)
                continue;
            if (set.operation == Operation::Read)
                region.level->bandwidth = value;
            else if (set.operation == Operation::Write)
                region.level->writeBandwidth = value;
            else
                region.level->copyBandwidth = value;
        }
    }
}

} // namespace

Knee fitKnee(const std::vector<Probe>& curve, double capacity, double near, double far)
{
    Knee best;
    if (!(near > 0) || !(far > near) || !(capacity > 0))
        return best;
    double smallest = std::numeric_limits<double>::infinity();
    // The model's own form, on the latencies around this knee only.
    for (double begin = 0.2; begin <= 1.301; begin += 0.05) {
        for (double width = 0.1; width <= 4.001; width *= 1.15) {
            const Knee knee{begin, begin + width, 2.0, "fitted to the pointer chase on this machine"};
            double error = 0;
            int points = 0;
            for (const Probe& probe : curve) {
                if (probe.x < 0.1 * capacity || probe.x > 5 * capacity || !(probe.value > 0))
                    continue;
                const double share = hitShare(probe.x, capacity, knee);
                const double model = share * near + (1 - share) * far;
                const double seen = std::clamp(probe.value, near, far);
                error += std::pow(std::log(model / seen), 2);
                ++points;
            }
            if (points >= 3 && error < smallest) {
                smallest = error;
                best = knee;
            }
        }
    }
    return best;
}

Result<Device> fitHostCalibration(const Device& described, const HostProbes& probes)
{
    Device device = described;
    if (!fitLatencies(device, probes)) {
        return fail("calibration.probes", "the probes do not reach inside any level of memory",
                    "calibrate again when the machine is quieter");
    }
    fitTranslation(device, probes.latency4k, plainest(probes), 0x1p12);
    fitTranslation(device, probes.latencyHuge, plainest(probes), 0x1p21);
    fitBandwidths(device, probes);
    if (probes.clockHz > 0 && std::isfinite(probes.clockHz))
        device.clock = measured(probes.clockHz, "chain of dependent multiplications of known latency");
    device.basis = "calibrated";
    Calibration calibration;
    calibration.grade = probes.grade;
    calibration.lineRates = probes.lineRates;
    calibration.randomRates = probes.randomRates;
    calibration.issueRates = probes.issueRates;
    calibration.machine = described.name;
    calibration.raw = probesToJson(probes);
    device.calibration = std::move(calibration);
    for (const std::string& note : probes.notes)
        device.notes.push_back(note);
    return device;
}

namespace {

Json curveToJson(const std::vector<Probe>& curve)
{
    Json array = Json::array();
    for (const Probe& probe : curve)
        array.push_back({jsonNumber(probe.x), jsonNumber(probe.value), jsonNumber(probe.low), jsonNumber(probe.high)});
    return array;
}

} // namespace

Json probesToJson(const HostProbes& probes)
{
    Json bandwidths = Json::array();
    for (const BandwidthProbes& set : probes.bandwidths) {
        bandwidths.push_back({{"operation", operationText(set.operation)},
                              {"threads", set.threads},
                              {"points", curveToJson(set.points)}});
    }
    return {{"columns", {"x", "value", "low", "high"}},
            {"clock", jsonNumber(probes.clockHz)},
            {"threads", probes.threads},
            {"latency_4k", curveToJson(probes.latency4k)},
            {"latency_huge", curveToJson(probes.latencyHuge)},
            {"latency_window", curveToJson(probes.latencyWindow)},
            {"bandwidth", std::move(bandwidths)}};
}

} // namespace memscape
