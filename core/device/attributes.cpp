// SPDX-License-Identifier: Apache-2.0
// A live GPU as a device. The same product in the catalogue gives everything, with the live sizes
// put in; the product's name decides and not the die, because the same die is sold at half and at
// full tensor rate; the memory must agree too, for some names are shared. Any other GPU is derived:
//
//   rate(type)  = SMs × FMA per clock and SM of its compute capability × 2 × clock
//   B_dram      = 2 × memory clock × bus width / 8
//   on-chip     = bytes per clock (and SM, for L1 and shared memory) of the nearest architecture
//                 × clock (× SMs); latencies of its caches in clocks, of its DRAM in seconds
//
// Left out: boost behaviour below the reported clock, memory partitions of MIG slices beyond their
// share of capacity.
#include "core/device/catalogue.h"

#include "core/base/quantity.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// The reference device of a compute capability; `gamer` when the name says GeForce.
struct Architecture
{
    int major, minor;
    std::string_view reference;
    std::string_view gamer;
    double tensorFactor; ///< tensor rate per SM against the reference
};

constexpr Architecture architectures[] = {
    {7, 0, "nvidia-v100-sxm2", "nvidia-v100-sxm2", 1},
    {7, 5, "nvidia-t4", "nvidia-t4", 1},
    {8, 0, "nvidia-a100-80gb", "nvidia-a100-80gb", 1},
    {8, 6, "nvidia-a10", "nvidia-rtx-3090", 1},
    {8, 7, "nvidia-jetson-agx-orin-64gb", "nvidia-jetson-agx-orin-64gb", 1},
    {8, 9, "nvidia-l40s", "nvidia-rtx-4090", 1},
    {9, 0, "nvidia-h200", "nvidia-h200", 1},
    {10, 0, "nvidia-b200", "nvidia-b200", 1},
    // A workstation card of this die was measured at twice the GeForce tensor rate.
    {12, 0, "nvidia-rtx-5090", "nvidia-rtx-5090", 2},
};

/// B/s of the DRAM as the driver reports it; 0 when it does not.
double reportedBandwidth(const GpuAttributes& attributes)
{
    return 2 * attributes.memoryClockHz * attributes.memoryBusBits / 8;
}

/// One name is given to cards with different memory: an RTX 3060 has 8 or 12 GB on another bus, and
/// every Jetson Orin is "Orin". There CUDA's memory clock is not that of the LPDDR5 (it yields 83
/// GB/s where 153 are measured), so the size decides.
bool sameMemory(const Device& device, const GpuAttributes& attributes)
{
    const MemoryLevel* dram = device.dram();
    if (!dram)
        return true;
    const double reported = device.sharesHostMemory ? attributes.memoryBytes : reportedBandwidth(attributes);
    const double listed = device.sharesHostMemory ? dram->capacity.value : dram->bandwidth.value;
    return !(reported > 0) || std::abs(reported / listed - 1) < 0.2;
}

bool sameProduct(const Device& device, const GpuAttributes& attributes)
{
    const std::string wanted = lowered(trimmed(attributes.name));
    return std::ranges::any_of(device.productNames, [&](const std::string& product) {
        const std::string known = lowered(product);
        return (wanted == known && sameMemory(device, attributes)) || wanted.rfind(known + " mig ", 0) == 0;
    });
}

void derive(Sourced& value, double factor, const std::string& why)
{
    if (!value.known())
        return;
    value.value *= factor;
    if (value.evidence != Evidence::Unverified)
        value.evidence = Evidence::Derived;
    value.source += "; " + why;
    value.method.clear();
}

void derive(std::optional<Sourced>& value, double factor, const std::string& why)
{
    if (value)
        derive(*value, factor, why);
}

bool ownedByUnit(const MemoryLevel& level)
{
    return level.kind == LevelKind::Registers || level.kind == LevelKind::Scratchpad || level.id == "L1";
}

void scaleBandwidths(MemoryLevel& level, double factor, const std::string& why)
{
    derive(level.bandwidth, factor, why);
    derive(level.writeBandwidth, factor, why);
    derive(level.copyBandwidth, factor, why);
}

void scaleUnits(Device& device, int units)
{
    if (units <= 0 || units == device.units)
        return;
    const double factor = static_cast<double>(units) / device.units;
    const std::string why = fmt::format("× {} / {} SMs", units, device.units);
    for (auto& [name, rate] : device.rates)
        derive(rate.flops, factor, why);
    for (MemoryLevel& level : device.levels) {
        if (!ownedByUnit(level))
            continue;
        scaleBandwidths(level, factor, why);
        level.instances = units;
    }
    device.notes.push_back(fmt::format("{} SMs are visible of {}", units, device.units));
    device.units = units;
}

void scaleClock(Device& device, double clockHz)
{
    if (!(clockHz > 0) || std::abs(clockHz / device.clock.value - 1) < 0.005)
        return;
    const double factor = clockHz / device.clock.value;
    const std::string why = fmt::format("at {}", quantityText(clockHz, Unit::Hertz));
    for (auto& [name, rate] : device.rates)
        derive(rate.flops, factor, why);
    for (MemoryLevel& level : device.levels) {
        if (!level.onChip())
            continue;
        scaleBandwidths(level, factor, why);
        derive(level.oneCoreBandwidth, factor, why);
        derive(level.latency, 1 / factor, why);
    }
    device.notes.push_back(fmt::format("the driver reports {} where {} was expected",
                                       quantityText(clockHz, Unit::Hertz),
                                       quantityText(device.clock.value, Unit::Hertz)));
    derive(device.tensorClock, factor, why);
    device.clock = {clockHz, Evidence::Derived, "CUDA runtime, clock rate", {}};
}

void putCapacity(MemoryLevel& level, double bytes, const char* attribute)
{
    if (bytes > 0)
        level.capacity = {bytes, Evidence::Derived, std::string("CUDA runtime, ") + attribute, {}};
}

void putCapacities(Device& device, const GpuAttributes& attributes)
{
    const bool halves = device.level("L2 far") != nullptr;
    for (MemoryLevel& level : device.levels) {
        if (level.kind == LevelKind::Dram)
            putCapacity(level, attributes.memoryBytes, "total global memory");
        else if (level.kind == LevelKind::Scratchpad)
            putCapacity(level, attributes.sharedBytesPerUnit, "shared memory per multiprocessor");
        else if (level.id == "L2 far" || (level.id == "L2" && !halves))
            putCapacity(level, attributes.l2Bytes, "L2 size");
        else if (level.id == "L2")
            putCapacity(level, attributes.l2Bytes / 2, "half of the L2 size");
    }
    Concurrency& limits = device.concurrency;
    const auto put = [](double& limit, double value) { limit = value > 0 ? value : limit; };
    put(limits.maxThreadsPerUnit, attributes.maxThreadsPerUnit);
    put(limits.maxBlocksPerUnit, attributes.maxBlocksPerUnit);
    put(limits.registersPerUnit, attributes.registersPerUnit);
    put(limits.sharedBytesPerUnit, attributes.sharedBytesPerUnit);
}

/// A MIG slice has its share of the memory, and of its bandwidth and the L2's with it.
void scaleSlice(Device& device, const GpuAttributes& attributes)
{
    const MemoryLevel* dram = device.dram();
    const double share = dram ? attributes.memoryBytes / dram->capacity.value : 1;
    if (!(share > 0 && share < 0.8) || attributes.multiprocessors >= device.units)
        return;
    const std::string why = fmt::format("× {:.2f}, the slice's share of the memory", share);
    for (MemoryLevel& level : device.levels) {
        if (level.kind == LevelKind::Dram || level.id.rfind("L2", 0) == 0)
            scaleBandwidths(level, share, why);
    }
    device.notes.push_back("a slice of the GPU: bandwidths of L2 and DRAM are its share");
}

Device fromProduct(Device device, const GpuAttributes& attributes)
{
    scaleSlice(device, attributes);
    scaleUnits(device, attributes.multiprocessors);
    scaleClock(device, attributes.clockHz);
    putCapacities(device, attributes);
    return device;
}

/// The architecture of this compute capability, or the newest one below it.
const Architecture& nearestArchitecture(int major, int minor)
{
    const Architecture* best = &architectures[0];
    for (const Architecture& architecture : architectures) {
        if (std::pair(architecture.major, architecture.minor) <= std::pair(major, minor))
            best = &architecture;
    }
    return *best;
}

void deriveDram(Device& device, const GpuAttributes& attributes)
{
    const double bandwidth = device.sharesHostMemory ? 0 : reportedBandwidth(attributes);
    for (MemoryLevel& level : device.levels) {
        if (level.kind != LevelKind::Dram)
            continue;
        level.label = "DRAM";
        level.bandwidth = {};
        if (bandwidth > 0) {
            level.bandwidth = {bandwidth,
                               Evidence::Derived,
                               fmt::format("2 × {} memory clock × {} bit / 8",
                                           quantityText(attributes.memoryClockHz, Unit::Hertz),
                                           attributes.memoryBusBits),
                               {}};
        }
    }
}

void deriveRates(Device& device, const Architecture& architecture, bool known, bool gamer)
{
    if (!known) {
        std::erase_if(device.rates, [](const auto& entry) { return entry.first != "fp32"; });
        device.notes.push_back(fmt::format("compute capability {} is not in the table: tensor rates "
                                           "are unknown, the rest is as for {}.{}",
                                           device.computeCapability, architecture.major, architecture.minor));
    }
    for (auto& [name, rate] : device.rates) {
        rate.exception.clear();
        rate.atTensorClock = false; // only the one clock is reported
        if (name != "fp32" && name != "fp64" && !gamer)
            rate.fmaPerClockPerUnit *= architecture.tensorFactor;
        rate.flops = {device.units * rate.fmaPerClockPerUnit * 2 * device.clock.value,
                      known ? Evidence::Derived : Evidence::Unverified,
                      fmt::format("{} SMs × {} FMA per clock × 2 × {}", device.units,
                                  numberText(rate.fmaPerClockPerUnit), quantityText(device.clock.value, Unit::Hertz)),
                      {}};
    }
    device.tensorClock = {};
}

void markDerived(Device& device)
{
    const std::string why = "as " + device.name;
    for (MemoryLevel& level : device.levels) {
        for (Sourced* value : {&level.capacity, &level.line, &level.ways, &level.latency, &level.bandwidth})
            derive(*value, 1, why);
        derive(level.oneCoreBandwidth, 1, why);
    }
    for (Link& link : device.links) {
        derive(link.bandwidth, 1, why);
        derive(link.pageable, 1, why);
    }
    for (Sourced* value :
         {&device.derating.read, &device.derating.write, &device.derating.copy, &device.launch, &device.clock})
        derive(*value, 1, why);
}

Device withoutCatalogue(const GpuAttributes& attributes)
{
    Device device;
    device.kind = DeviceKind::Gpu;
    device.vendor = "NVIDIA";
    device.units = std::max(1, attributes.multiprocessors);
    if (attributes.clockHz > 0)
        device.clock = {attributes.clockHz, Evidence::Derived, "CUDA runtime, clock rate", {}};
    MemoryLevel dram;
    dram.id = "DRAM";
    dram.kind = LevelKind::Dram;
    device.levels.push_back(dram);
    device.notes.push_back("no catalogue was found: only the attributes of the CUDA runtime are known");
    return device;
}

Device fromArchitecture(const GpuAttributes& attributes)
{
    const Architecture& architecture = nearestArchitecture(attributes.major, attributes.minor);
    const bool known = architecture.major == attributes.major && architecture.minor == attributes.minor;
    const bool gamer = lowered(attributes.name).find("geforce") != std::string::npos;
    auto reference = findDevice(std::string(gamer ? architecture.gamer : architecture.reference));
    Device device = reference ? std::move(*reference) : withoutCatalogue(attributes);
    markDerived(device);
    device.notes.clear();
    device.productNames.clear();
    device.extra = Json();
    std::erase_if(device.links, [&](const Link& link) {
        return link.id == "peer" || device.sharesHostMemory; // that link is the DRAM, of another module
    });
    device.computeCapability = fmt::format("{}.{}", attributes.major, attributes.minor);
    scaleUnits(device, attributes.multiprocessors);
    scaleClock(device, attributes.clockHz);
    putCapacities(device, attributes);
    deriveDram(device, attributes);
    device.notes.clear();
    device.notes.push_back("not in the catalogue: derived from the attributes that the driver "
                           "reports. Calibrate this device.");
    deriveRates(device, architecture, known, gamer);
    return device;
}

} // namespace

Device deviceFromAttributes(const GpuAttributes& attributes, const std::string& id)
{
    std::vector<Device> known = catalogue();
    const auto product =
        std::ranges::find_if(known, [&](const Device& device) { return sameProduct(device, attributes); });
    const bool listed = product != known.end();
    Device device = listed ? fromProduct(std::move(*product), attributes) : fromArchitecture(attributes);
    device.id = id;
    device.basis = listed ? "catalogue" : "derived";
    if (!listed)
        device.name = attributes.name.empty() ? "Unnamed GPU" : attributes.name;
    return device;
}

} // namespace memscape
