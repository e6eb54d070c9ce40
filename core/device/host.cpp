// SPDX-License-Identifier: Apache-2.0
// This machine's CPU as a device. What the system reports (sizes, ways, lines, cores, memory) is taken as it is; what
// it does not report (latencies, bytes per clock, TLBs) comes from the catalogue's host of the same core, scaled to
// this clock and this number of cores:
//
//   latency of a cache   = clocks at the reference × 1 / clock here        (DRAM: unchanged)
//   bandwidth of a cache = reference, one core × clock here / clock there × cores
//   bandwidth of DRAM    = min(one core × cores, whole reference × max(1, cores / its cores))
//
// For a core that is not in the catalogue typical values stand in and are marked unverified. Where the system lists
// several nodes of memory the way to the farthest is a link, "numa": by the firmware's distance d (10 at home), latency
// of DRAM × (d / 10 − 1) more and its bandwidth × 10 / d, or the catalogue's, where it knows them.
// Left out: nodes nearer than the farthest, cores of a second kind (a note names them), and the memory
// channels that are really fitted (only root may read them): calibrating replaces all of it.
#include "core/device/catalogue.h"
#include "core/device/host_facts.h"
#include "core/device/host_reference.h"

#include "core/base/quantity.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

Sourced told(double value, const std::string& where)
{
    if (!std::isfinite(value))
        return {};
    return {value, Evidence::Specified, "the operating system: " + where, {}};
}

/// `value` from the reference times `factor`; never better evidence than derived.
Sourced taken(const Sourced& value, double factor, const HostReference& reference)
{
    if (!value.known())
        return {};
    const Evidence evidence = value.evidence == Evidence::Unverified ? Evidence::Unverified : Evidence::Derived;
    return {value.value * factor, evidence, reference.name + ": " + value.source, value.method};
}

std::optional<Sourced> taken(const std::optional<Sourced>& value, double factor, const HostReference& reference)
{
    if (!value)
        return std::nullopt;
    return taken(*value, factor, reference);
}

/// The fastest clock we know of: cpufreq's, else the greater of the reference's and cpuinfo's,
/// which is the nominal clock on many systems and above all in virtual machines.
Sourced clockOf(const HostFacts& facts, const HostReference& reference)
{
    if (std::isfinite(facts.boostHz))
        return told(facts.boostHz, "cpufreq/cpuinfo_max_freq");
    const Sourced& known = reference.device.clock;
    const std::string nominal = std::isfinite(facts.infoHz)
        ? quantityText(facts.infoHz, Unit::Hertz) + " in /proc/cpuinfo, which may be nominal"
        : "no clock in /proc/cpuinfo";
    if (std::isfinite(facts.infoHz) && (!reference.sameCore || facts.infoHz >= known.value))
        return {facts.infoHz, Evidence::Derived, "/proc/cpuinfo, cpu MHz: may be the nominal clock", {}};
    Sourced clock = taken(known, 1, reference);
    clock.source += "; " + nominal;
    return clock;
}

/// Reads, writes and copies scale alike.
void scaleBandwidths(MemoryLevel& level, const MemoryLevel& from, double factor, const HostReference& reference)
{
    level.bandwidth = taken(from.bandwidth, factor, reference);
    level.writeBandwidth = taken(from.writeBandwidth, factor, reference);
    level.copyBandwidth = taken(from.copyBandwidth, factor, reference);
}

MemoryLevel cacheLevel(const MemoryLevel& from, const Device& host, const HostReference& reference)
{
    MemoryLevel level = from;
    const double clocks = host.clock.value / reference.device.clock.value;
    const double cores = static_cast<double>(host.units) / reference.device.units;
    level.capacity = taken(from.capacity, 1, reference);
    level.line = taken(from.line, 1, reference);
    level.ways = taken(from.ways, 1, reference);
    level.latency = taken(from.latency, 1 / clocks, reference);
    const bool ownedByCore = from.id == "registers" || from.id == "L1" || from.id == "L2";
    level.instances = ownedByCore ? host.units : 1;
    scaleBandwidths(level, from, clocks * cores, reference);
    level.oneCoreBandwidth = taken(from.oneCoreBandwidth, clocks, reference);
    return level;
}

MemoryLevel dramLevel(const MemoryLevel& from, const HostFacts& facts, const Device& host,
                      const HostReference& reference)
{
    MemoryLevel level = cacheLevel(from, host, reference);
    level.label = "Memory";
    level.instances = 1;
    level.latency = taken(from.latency, 1, reference);
    level.oneCoreBandwidth = taken(from.oneCoreBandwidth, 1, reference);
    double whole = from.bandwidth.value * std::max(1.0, static_cast<double>(host.units) / reference.device.units);
    if (level.oneCoreBandwidth && level.oneCoreBandwidth->known())
        whole = std::min(whole, level.oneCoreBandwidth->value * host.units);
    if (reference.dramLimit > 0)
        whole = std::min(whole, reference.dramLimit);
    scaleBandwidths(level, from, whole / from.bandwidth.value, reference);
    if (from.bandwidth.evidence == Evidence::Measured && whole == from.bandwidth.value)
        level.bandwidth.evidence = Evidence::Measured;
    if (std::isfinite(facts.memoryBytes))
        level.capacity = told(facts.memoryBytes, "/proc/meminfo MemTotal");
    return level;
}

/// What the system says about a cache wins over the reference.
void apply(const CacheFacts& facts, MemoryLevel& level)
{
    const auto put = [&](Sourced& into, double value, const char* file) {
        if (std::isfinite(value))
            into = told(value, facts.place + "/" + file);
    };
    put(level.capacity, facts.bytes, "size");
    put(level.line, facts.lineBytes, "coherency_line_size");
    put(level.ways, facts.ways, "ways_of_associativity");
    level.instances = std::max(1, facts.instances);
    if (level.id == "L1")
        level.knee = lruKnee(level.ways.value);
}

/// Outer caches are larger than inner ones; a reported capacity below the inner one is discarded.
void keepAscending(Device& host)
{
    double inner = 0;
    for (MemoryLevel& level : host.levels) {
        if (level.kind != LevelKind::Cache || !level.capacity.known())
            continue;
        if (level.capacity.value < inner) {
            host.notes.push_back(fmt::format("{} is reported as smaller than the cache before it; "
                                             "its size is taken as unknown",
                                             level.label));
            level.capacity = {};
            continue;
        }
        inner = level.capacity.value;
    }
}

void addLevels(const HostFacts& facts, const HostReference& reference, Device& host)
{
    for (const MemoryLevel& from : reference.device.levels) {
        if (from.kind == LevelKind::Storage) {
            host.levels.push_back(from);
        } else if (from.kind == LevelKind::Dram) {
            host.levels.push_back(dramLevel(from, facts, host, reference));
        } else if (from.kind != LevelKind::Cache) {
            host.levels.push_back(cacheLevel(from, host, reference));
        } else {
            const auto found = std::ranges::find_if(
                facts.caches, [&](const CacheFacts& f) { return from.id == fmt::format("L{}", f.level); });
            if (found == facts.caches.end() && !facts.caches.empty())
                continue; // the system lists its caches and this one is not among them
            host.levels.push_back(cacheLevel(from, host, reference));
            if (found != facts.caches.end())
                apply(*found, host.levels.back());
        }
    }
    if (facts.caches.empty()) {
        host.notes.push_back("the system does not list its caches: their sizes are those of " + reference.name);
    }
    keepAscending(host);
}

/// The way to another node of memory: `latency` is what a line takes longer than from the own one.
void addNodeLink(const HostFacts& facts, const HostReference& reference, Device& host)
{
    const NumaNode* const home = facts.nodes.empty() ? nullptr : &facts.nodes.front();
    const NumaNode* const far = home ? farthestNode(facts.nodes, *home) : nullptr;
    const MemoryLevel* const dram = host.dram();
    if (!far)
        return;
    Link link;
    link.id = "numa";
    link.label = fmt::format("node {} to node {}", far->id, home->id);
    if (const double ratio = distanceBetween(facts.nodes, *home, *far) / ownDistance;
        ratio > 1 && dram && dram->latency.known() && dram->bandwidth.known()) {
        const std::string source = fmt::format("the firmware's distance, {} against {}, which is rough",
                                               numberText(ratio * ownDistance), numberText(ownDistance));
        link.bandwidth = {dram->bandwidth.value / ratio, Evidence::Unverified, source, {}};
        link.latency = {dram->latency.value * (ratio - 1), Evidence::Unverified, source, {}};
    }
    if (const Link* const known = reference.sameCore ? reference.device.link("numa") : nullptr) {
        if (known->bandwidth.known())
            link.bandwidth = taken(known->bandwidth, 1, reference);
        if (known->latency.known())
            link.latency = taken(known->latency, 1, reference);
    }
    host.links.push_back(std::move(link));
}

void addRates(const HostReference& reference, Device& host)
{
    const bool allCore = reference.device.tensorClock.known() && reference.sameCore;
    if (allCore)
        host.tensorClock = taken(reference.device.tensorClock, 1, reference);
    const double clock = allCore ? host.tensorClock.value : host.clock.value;
    for (const auto& [name, from] : reference.device.rates) {
        Rate rate = from;
        rate.atTensorClock = allCore;
        rate.flops.value = host.units * from.fmaPerClockPerUnit * 2 * clock;
        rate.flops.evidence = reference.sameCore ? Evidence::Derived : Evidence::Unverified;
        rate.flops.source =
            fmt::format("{} cores × {} FMA per clock × 2 × {}, as {}", host.units, numberText(from.fmaPerClockPerUnit),
                        quantityText(clock, Unit::Hertz), reference.name);
        if (!reference.sameCore)
            rate.flops.source += ": " + from.flops.source;
        host.rates.emplace(name, std::move(rate));
    }
}

void addNotes(const HostFacts& facts, const HostReference& reference, Device& host)
{
    if (!reference.sameCore) {
        host.notes.push_back("this core is not in the catalogue: latencies, bandwidths and TLBs are "
                             "typical values, unverified. Calibrate this device.");
    } else {
        host.notes.push_back("latencies, bandwidths and TLBs are those of " + reference.name
                             + " until this device is calibrated");
    }
    if (facts.virtualMachine) {
        host.notes.push_back(
            "a virtual machine: L3 and DRAM are shared with other tenants, and the reported values may be wrong");
    }
    if (!facts.hugePages.empty())
        host.notes.push_back("transparent huge pages: " + facts.hugePages);
    host.notes.insert(host.notes.end(), facts.notes.begin(), facts.notes.end());
}

} // namespace

Device describeHost(const std::filesystem::path& root)
{
    const HostFacts facts = readHostFacts(root);
    const HostReference reference = hostReference(facts);
    Device host;
    host.id = "cpu";
    host.name = facts.name.empty() ? "This computer's CPU" : facts.name;
    host.kind = DeviceKind::Host;
    host.vendor = reference.vendor.empty() ? facts.vendor : reference.vendor;
    host.architecture = reference.sameCore ? reference.device.architecture : "unknown";
    host.basis = "described";
    host.units = facts.cores;
    host.threads = facts.threads;
    host.warp = 1;
    host.clock = clockOf(facts, reference);
    addLevels(facts, reference, host);
    if (const MemoryLevel* first = host.level("L1"); first && first->line.known())
        host.lineBytes = first->line.value;
    host.sectorBytes = host.lineBytes;
    addNodeLink(facts, reference, host);
    addRates(reference, host);
    for (TlbLevel tlb : reference.device.tlbs) {
        tlb.entries = taken(tlb.entries, 1, reference);
        tlb.missPenalty = taken(tlb.missPenalty, 1, reference);
        host.tlbs.push_back(std::move(tlb));
    }
    host.derating = reference.device.derating;
    host.launch = reference.device.launch;
    host.concurrency = reference.device.concurrency;
    addNotes(facts, reference, host);
    return host;
}

} // namespace memscape
