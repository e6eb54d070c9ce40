// SPDX-License-Identifier: Apache-2.0
#include "core/timing/calibration.h"

#include "core/timing/calibration_check.h"
#include "core/timing/calibration_fit.h"
#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memscape {

namespace {

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
        const auto values = valuesOf(region, curve);
        if (values.empty())
            continue;
        any = true;
        // Noise only ever adds: near levels take the lower quartile, DRAM the median.
        const double value = region.level->kind == LevelKind::Dram ? median(values) : values[values.size() / 4];
        region.level->latency = measuredHere(value, "pointer chase, translation-friendly windows");
    }
    for (std::size_t i = 0; i + 1 < regions.size(); ++i) {
        MemoryLevel& level = *regions[i].level;
        level.knee = fitKnee(curve, level.capacity.value, level.latency.value, regions[i + 1].level->latency.value);
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

/// `curve`, and `ceiling` where that has less: a huge page takes no longer to translate than its small ones, so that a
/// point above them was disturbed (a neighbour took the shared cache for a moment).
std::vector<Probe> atMost(const std::vector<Probe>& ceiling, std::vector<Probe> curve)
{
    for (Probe& probe : curve) {
        if (const double most = interpolated(ceiling, probe.x); most < probe.value)
            probe.value = most;
    }
    return curve;
}

/// Effective reach and penalty of translation with one page size: what its curve has above the
/// windows' curve, as one step. Two levels of TLB are fitted as two steps where both show.
void fitTranslation(Device& device, const std::vector<Probe>& curve, const std::vector<Probe>& plain, double pageBytes)
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
                               measuredHere(bestReach[step] / pageBytes, method),
                               measuredHere(bestHeight[step], method)});
    }
}

/// Rates scale with the clock that was measured, and none is below what products reached: a core that
/// the catalogue lacks may have wider units than its extensions show.
void fitRates(Device& device, double describedClock, const HostProbes& probes)
{
    const double faster = device.clock.value / describedClock;
    for (auto& [name, rate] : device.rates) {
        if (!rate.atTensorClock && std::isfinite(faster) && faster > 0 && faster != 1) {
            rate.flops.value *= faster;
            rate.flops.source += ", at the measured clock";
        }
        const auto reached = probes.productRates.find(name);
        if (reached == probes.productRates.end() || !(reached->second > rate.flops.value))
            continue;
        rate.flops = measuredHere(reached->second, "large products on all cores");
        rate.fmaPerClockPerUnit = reached->second / (2 * device.units * device.clock.value);
        rate.atTensorClock = false;
    }
}

/// Each link that its probes determine; the others stay unknown, with a note. What pieces cost, by link.
std::map<std::string, double> fitLinks(Device& device, const std::vector<LinkProbes>& probes)
{
    std::map<std::string, double> pieceCosts;
    for (const LinkProbes& kind : probes) {
        auto fitted = fitLink(onDevice(device, kind));
        if (!fitted) {
            device.notes.push_back(fitted.error().message);
            continue;
        }
        if (fitted->piece > 0)
            pieceCosts[kind.id] = fitted->piece;
        std::erase_if(device.links, [&](const Link& described) { return described.id == kind.id; });
        device.links.push_back(std::move(fitted->link));
    }
    return pieceCosts;
}

} // namespace

Knee fitKnee(const std::vector<Probe>& curve, double capacity, double near, double far)
{
    Knee best;
    if (!(near > 0) || !(far > near) || !(capacity > 0))
        return best;
    double smallest = std::numeric_limits<double>::infinity();
    // The model's own form, on the latencies around this knee only.
    for (Knee knee : kneeCandidates("fitted to the pointer chase on this machine")) {
        double error = 0;
        int points = 0;
        for (const Probe& probe : curve) {
            if (probe.x < 0.02 * capacity || probe.x > 5 * capacity || !(probe.value > 0))
                continue;
            const double share = hitShare(probe.x, capacity, knee);
            const double model = share * near + (1 - share) * far;
            const double seen = std::clamp(probe.value, near, far);
            error += std::pow(std::log(model / seen), 2);
            ++points;
        }
        if (points >= 3 && error < smallest) {
            smallest = error;
            best = std::move(knee);
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
    fitTranslation(device, atMost(probes.latency4k, probes.latencyHuge), plainest(probes), 0x1p21);
    fitBandwidths(device, probes);
    if (probes.clockHz > 0 && std::isfinite(probes.clockHz))
        device.clock = measuredHere(probes.clockHz, "chain of dependent multiplications of known latency");
    fitRates(device, described.clock.value, probes);
    device.basis = "calibrated";
    Calibration& calibration = device.calibration.emplace();
    calibration.grade = probes.grade;
    calibration.lineRates = probes.lineRates;
    calibration.randomRates = probes.randomRates;
    calibration.issueRates = probes.issueRates;
    calibration.walkRates = probes.walkRates;
    calibration.machine = described.name;
    calibration.raw = probesToJson(probes);
    if (probes.pageCache.isKnown())
        calibration.raw["page_cache"] = pageCacheToJson(probes.pageCache);
    calibration.raw["piece_seconds"] = fitLinks(device, probes.links);
    if (!probes.operations.empty()) {
        const auto operations = fitHostOperations(probes.operations, device.units, probes.tileRows, probes.tileColumns);
        if (operations)
            calibration.raw["operations"] = hostOperationsToJson(*operations);
        else
            device.notes.push_back(operations.error().message
                                   + ": small training steps are predicted with typical values");
    }
    for (const std::string& note : probes.notes)
        device.notes.push_back(note);
    MEMSCAPE_CHECK(checkPossible(device));
    return device;
}

Device withFittedLinks(Device device, const std::vector<LinkProbes>& probes)
{
    const std::map<std::string, double> pieceCosts = fitLinks(device, probes);
    if (!device.calibration)
        device.calibration.emplace();
    Json& raw = device.calibration->raw;
    if (!raw.is_object())
        raw = Json::object();
    Json& pieces = raw["piece_seconds"];
    if (!pieces.is_object())
        pieces = Json::object();
    for (const LinkProbes& kind : probes)
        pieces.erase(kind.id);
    for (const auto& [id, seconds] : pieceCosts)
        pieces[id] = seconds;
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
    Json operations = Json::array();
    for (const OperationProbe& probe : probes.operations) {
        const ProductShape& shape = probe.shape;
        operations.push_back(
            {hostOperationText(probe.operation), shape.m, shape.n, shape.k, jsonNumber(probe.seconds)});
    }
    Json links = Json::array();
    for (const LinkProbes& kind : probes.links) {
        for (const LinkProbe& probe : kind.points)
            links.push_back({kind.id, jsonNumber(probe.bytes), jsonNumber(probe.seconds)});
    }
    return {{"columns", {"x", "value", "low", "high"}},
            {"clock", jsonNumber(probes.clockHz)},
            {"threads", probes.threads},
            {"product_rates", probes.productRates},
            {"latency_4k", curveToJson(probes.latency4k)},
            {"latency_huge", curveToJson(probes.latencyHuge)},
            {"latency_window", curveToJson(probes.latencyWindow)},
            {"bandwidth", std::move(bandwidths)},
            {"link_columns", {"kind", "bytes", "seconds"}},
            {"links", std::move(links)},
            {"operation_columns", {"operation", "m", "n", "k", "seconds"}},
            {"operation_probes", std::move(operations)}};
}

} // namespace memscape
