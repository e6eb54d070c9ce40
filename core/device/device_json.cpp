// SPDX-License-Identifier: Apache-2.0
// A device from its JSON document. The shape, version 1 (SI base units; a value with a source is
// {"value", "kind", "source", "method"}, unknown is null):
//
//   format, version, id, name, product_names, kind, vendor, architecture, compute_capability,
//   basis, units, threads, clock, tensor_clock, warp, sector_bytes, line_bytes, rates {fp32: {…}},
//   levels […], tlbs […], links […], derating {read, write, copy}, launch, concurrency {…},
//   eager_kernel, calibration, framework {name, version}, notes
//
// Keys we do not know are kept at any depth and written back, so that a file of a newer program
// survives an older one. Writing is in device_write.cpp.
#include "core/device/device_fields.h"
#include "core/device/device_unknown.h"
#include "core/device/recorded_kernels.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

// The largest value that any machine of the next decades could have, with room.
constexpr Range bytesRange{1e18};
constexpr Range secondsRange{1e3};
constexpr Range penaltyRange{1.0, true};
constexpr Range bandwidthRange{1e18};
constexpr Range flopsRange{1e24};
constexpr Range clockRange{1e12};
constexpr Range entriesRange{1e9};
constexpr Range shareRange{2};
constexpr Range countRange{1e6};
constexpr Range rateRange{1e18};

Knee readKnee(const Fields& inner)
{
    Knee knee;
    knee.begin = inner.number("begin", {100}, knee.begin);
    knee.end = inner.number("end", {100}, knee.end);
    knee.exponent = inner.number("exponent", {100}, knee.exponent);
    knee.source = inner.text("source", knee.source);
    if (!inner.failed() && knee.end < knee.begin)
        inner.refuse("end", "a knee must end after it begins");
    return knee;
}

MemoryLevel readLevel(const Fields& fields)
{
    MemoryLevel level;
    level.id = fields.requiredText("id");
    level.label = fields.text("label", level.id);
    level.kind = static_cast<LevelKind>(fields.choice("kind", {"registers", "scratchpad", "cache", "dram", "storage"},
                                                      static_cast<std::size_t>(LevelKind::Cache)));
    level.instances = fields.integer("instances", countRange, 1);
    level.capacity = fields.sourced("capacity", bytesRange);
    level.line = fields.sourced("line", {1e9});
    level.ways = fields.sourced("ways", countRange);
    level.latency = fields.sourced("latency", secondsRange);
    level.bandwidth = fields.sourced("bandwidth", bandwidthRange);
    level.writeBandwidth = fields.optionalSourced("write_bandwidth", bandwidthRange);
    level.copyBandwidth = fields.optionalSourced("copy_bandwidth", bandwidthRange);
    level.oneCoreBandwidth = fields.optionalSourced("one_core_bandwidth", bandwidthRange);
    fields.inside("knee", [&](const Fields& inner) { level.knee = readKnee(inner); });
    fields.inside("bandwidth_knee", [&](const Fields& inner) { level.bandwidthKnee = readKnee(inner); });
    return level;
}

void readLevels(const Fields& fields, Device& device)
{
    double innerCapacity = 0;
    fields.each("levels", 64, [&](const Fields& inner) {
        MemoryLevel level = readLevel(inner);
        if (inner.failed())
            return;
        if (device.level(level.id))
            inner.refuse("id", fmt::format("two levels are called \"{}\"", level.id));
        if (level.kind == LevelKind::Cache && level.capacity.known()) {
            if (level.capacity.value < innerCapacity)
                inner.refuse("capacity", "a cache must not be smaller than the one nearer to the core");
            innerCapacity = level.capacity.value;
        }
        device.levels.push_back(std::move(level));
    });
    if (device.levels.empty())
        fields.refuse("levels", "a device needs at least one level of memory");
}

void readTranslation(const Fields& fields, Device& device)
{
    fields.each("tlbs", 64, [&](const Fields& inner) {
        TlbLevel tlb;
        tlb.id = inner.requiredText("id");
        tlb.pageBytes = inner.number("page_bytes", {1e12}, 4096);
        tlb.entries = inner.sourced("entries", entriesRange);
        tlb.missPenalty = inner.sourced("miss_penalty", penaltyRange);
        device.tlbs.push_back(std::move(tlb));
    });
    fields.each("links", 64, [&](const Fields& inner) {
        Link link;
        link.id = inner.requiredText("id");
        link.label = inner.text("label", link.id);
        link.bandwidth = inner.sourced("bandwidth", bandwidthRange);
        link.latency = inner.sourced("latency", secondsRange);
        link.pageable = inner.optionalSourced("pageable", bandwidthRange);
        link.farBandwidth = inner.optionalSourced("far_bandwidth", bandwidthRange);
        link.ownBandwidth = inner.optionalSourced("own_bandwidth", bandwidthRange);
        device.links.push_back(std::move(link));
    });
}

void readRates(const Fields& fields, Device& device)
{
    fields.eachMember("rates", 64, [&](const std::string& name, const Fields& inner) {
        Rate rate;
        rate.flops = inner.sourced("flops", flopsRange);
        rate.fmaPerClockPerUnit = inner.number("fma_per_clock_per_unit", {1e9, true}, 0);
        rate.atTensorClock = inner.boolean("at_tensor_clock", false);
        rate.exception = inner.text("exception");
        device.rates.emplace(name, std::move(rate));
    });
}

void readLimits(const Fields& fields, Device& device)
{
    fields.inside("derating", [&](const Fields& inner) {
        device.derating.read = inner.sourced("read", shareRange);
        device.derating.write = inner.sourced("write", shareRange);
        device.derating.copy = inner.sourced("copy", shareRange);
    });
    device.launch = fields.sourced("launch", {10, true});
    device.eagerKernel = fields.sourced("eager_kernel", secondsRange);
    fields.inside("concurrency", [&](const Fields& inner) {
        Concurrency& limits = device.concurrency;
        limits.maxThreadsPerUnit = inner.number("max_threads_per_unit", {1e6, true}, 0);
        limits.maxBlocksPerUnit = inner.number("max_blocks_per_unit", {1e6, true}, 0);
        limits.registersPerUnit = inner.number("registers_per_unit", {1e9, true}, 0);
        limits.sharedBytesPerUnit = inner.number("shared_bytes_per_unit", {1e9, true}, 0);
        limits.linesInFlightPerUnit = inner.sourced("lines_in_flight_per_unit", countRange);
    });
}

Operation readOperation(const Fields& fields)
{
    return static_cast<Operation>(fields.choice("operation", {"read", "write", "copy"}, 0));
}

/// A measured value that was left out would be written as 0, which cannot be read.
double requiredNumber(const Fields& fields, std::string_view key, Range range)
{
    if (!fields.has(key))
        fields.refuse(key, "is missing");
    return fields.number(key, range, 0);
}

std::vector<LineRate> readLineRates(const Fields& fields, std::string_view key)
{
    std::vector<LineRate> rates;
    fields.each(key, 100'000, [&](const Fields& inner) {
        LineRate rate;
        rate.operation = readOperation(inner);
        rate.strideBytes = inner.number("stride_bytes", bytesRange, rate.strideBytes);
        rate.linesPerSecond = requiredNumber(inner, "lines_per_second", rateRange);
        rates.push_back(rate);
    });
    return rates;
}

void readCalibration(const Fields& fields, Device& device)
{
    if (!fields.has("calibration") || fields.node().node()["calibration"].is_null())
        return;
    fields.inside("calibration", [&](const Fields& inner) {
        Calibration calibration;
        calibration.time = inner.text("time");
        calibration.program = inner.text("program");
        calibration.machine = inner.text("machine");
        calibration.grade = inner.text("grade");
        calibration.lineRates = readLineRates(inner, "line_rates");
        calibration.randomRates = readLineRates(inner, "random_rates");
        inner.each("issue_rates", 100'000, [&](const Fields& entry) {
            IssueRate rate;
            rate.operation = readOperation(entry);
            rate.elementBytes = entry.number("element_bytes", {1e6}, rate.elementBytes);
            rate.contiguous = entry.boolean("contiguous", false);
            rate.elementsPerSecond = requiredNumber(entry, "elements_per_second", rateRange);
            calibration.issueRates.push_back(rate);
        });
        inner.each("walk_rates", 100'000, [&](const Fields& entry) {
            WalkRate rate;
            rate.kind = entry.text("kind");
            rate.elementBytes = entry.number("element_bytes", {1e6}, rate.elementBytes);
            rate.at = requiredNumber(entry, "at", bytesRange);
            rate.seconds = requiredNumber(entry, "seconds", {1e6});
            calibration.walkRates.push_back(std::move(rate));
        });
        if (inner.has("raw"))
            calibration.raw = inner.node().node()["raw"];
        device.calibration = std::move(calibration);
    });
}

void checkFormat(const Fields& fields)
{
    if (const std::string format = fields.requiredText("format"); !fields.failed() && format != "memscape-device") {
        fields.refuse(Error{"json.format", "not a device: the format is \"" + format + "\"",
                            fields.node().path() + ".format",
                            "a device file begins with \"format\": \"memscape-device\""});
    }
    const int version = fields.integer("version", {1e9}, 1);
    if (!fields.failed() && version > 1) {
        fields.refuse(Error{"json.version", fmt::format("version {} is newer than this program reads (1)", version),
                            fields.node().path() + ".version", "update Memscape"});
    }
}

void readIdentity(const Fields& fields, Device& device)
{
    device.id = fields.requiredText("id");
    device.name = fields.requiredText("name");
    device.productNames = fields.texts("product_names", 100);
    device.kind = static_cast<DeviceKind>(fields.choice("kind", {"host", "gpu"}, 0));
    device.vendor = fields.text("vendor");
    device.architecture = fields.text("architecture");
    device.computeCapability = fields.text("compute_capability");
    device.sharesHostMemory = fields.boolean("shares_host_memory", false);
    device.gpuMemory = fields.sourced("gpu_memory", bytesRange);
    device.basis = fields.text("basis", "catalogue");
    device.units = fields.integer("units", countRange, 1);
    device.threads = fields.integer("threads", {1e7}, device.isGpu() ? 1 : device.units);
    device.clock = fields.sourced("clock", clockRange);
    device.tensorClock = fields.sourced("tensor_clock", clockRange);
    const bool gpu = device.isGpu();
    device.warp = fields.integer("warp", {1024}, gpu ? 32 : 1);
    device.sectorBytes = fields.number("sector_bytes", {1e6}, gpu ? 32 : 64);
    device.lineBytes = fields.number("line_bytes", {1e6}, gpu ? 128 : 64);
}

} // namespace

Result<Device> deviceFromJson(const Json& json, const std::string& place)
{
    const JsonReader root(json, place);
    if (!json.is_object())
        return root.expected("an object");
    const Fields fields(root);
    Device device;
    checkFormat(fields);
    readIdentity(fields, device);
    readRates(fields, device);
    readLevels(fields, device);
    readTranslation(fields, device);
    readLimits(fields, device);
    readCalibration(fields, device);
    checkKernels(fields);
    fields.inside("framework", [&](const Fields& inner) {
        device.framework = Framework{inner.requiredText("name"), inner.text("version")};
    });
    device.notes = fields.texts("notes", 1000);
    if (fields.failed())
        return fail(fields.error());
    device.extra = unknownPart(json, deviceToJson(device));
    return device;
}

} // namespace memscape
