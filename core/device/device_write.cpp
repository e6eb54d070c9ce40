// SPDX-License-Identifier: Apache-2.0
// A device to its JSON document, keys in the order that device_json.cpp lists. What is empty by
// nature (a method of a specified value, the knee of a level that is no cache) is left out.
#include "core/device/device.h"
#include "core/device/device_unknown.h"

#include <nlohmann/json.hpp>

namespace memscape {

namespace {

Json sourcedJson(const Sourced& sourced)
{
    if (!sourced.known() && sourced.source.empty())
        return Json();
    Json json = {{"value", jsonNumber(sourced.value)}, {"kind", std::string(evidenceText(sourced.evidence))}};
    if (!sourced.source.empty())
        json["source"] = sourced.source;
    if (!sourced.method.empty())
        json["method"] = sourced.method;
    return json;
}

Json ratesJson(const Device& device)
{
    Json rates = Json::object();
    for (const auto& [name, rate] : device.rates) {
        Json json = {{"flops", sourcedJson(rate.flops)},
                     {"fma_per_clock_per_unit", jsonNumber(rate.fmaPerClockPerUnit)},
                     {"at_tensor_clock", rate.atTensorClock}};
        if (!rate.exception.empty())
            json["exception"] = rate.exception;
        rates[name] = std::move(json);
    }
    return rates;
}

Json kneeJson(const Knee& knee)
{
    return {{"begin", jsonNumber(knee.begin)},
            {"end", jsonNumber(knee.end)},
            {"exponent", jsonNumber(knee.exponent)},
            {"source", knee.source}};
}

Json levelJson(const MemoryLevel& level)
{
    Json json = {{"id", level.id},
                 {"label", level.label},
                 {"kind", std::string(levelKindText(level.kind))},
                 {"instances", level.instances},
                 {"capacity", sourcedJson(level.capacity)},
                 {"line", sourcedJson(level.line)},
                 {"ways", sourcedJson(level.ways)},
                 {"latency", sourcedJson(level.latency)},
                 {"bandwidth", sourcedJson(level.bandwidth)}};
    if (level.writeBandwidth)
        json["write_bandwidth"] = sourcedJson(*level.writeBandwidth);
    if (level.copyBandwidth)
        json["copy_bandwidth"] = sourcedJson(*level.copyBandwidth);
    if (level.oneCoreBandwidth)
        json["one_core_bandwidth"] = sourcedJson(*level.oneCoreBandwidth);
    if (level.kind == LevelKind::Cache) {
        json["knee"] = kneeJson(level.knee);
        if (level.bandwidthKnee)
            json["bandwidth_knee"] = kneeJson(*level.bandwidthKnee);
    }
    return json;
}

Json tlbsJson(const Device& device)
{
    Json tlbs = Json::array();
    for (const TlbLevel& tlb : device.tlbs) {
        tlbs.push_back({{"id", tlb.id},
                        {"page_bytes", jsonNumber(tlb.pageBytes)},
                        {"entries", sourcedJson(tlb.entries)},
                        {"miss_penalty", sourcedJson(tlb.missPenalty)}});
    }
    return tlbs;
}

Json linksJson(const Device& device)
{
    Json links = Json::array();
    for (const Link& link : device.links) {
        Json one{{"id", link.id},
                 {"label", link.label},
                 {"bandwidth", sourcedJson(link.bandwidth)},
                 {"latency", sourcedJson(link.latency)}};
        if (link.pageable)
            one["pageable"] = sourcedJson(*link.pageable);
        if (link.farBandwidth)
            one["far_bandwidth"] = sourcedJson(*link.farBandwidth);
        if (link.ownBandwidth)
            one["own_bandwidth"] = sourcedJson(*link.ownBandwidth);
        links.push_back(std::move(one));
    }
    return links;
}

Json concurrencyJson(const Concurrency& limits)
{
    return {{"max_threads_per_unit", jsonNumber(limits.maxThreadsPerUnit)},
            {"max_blocks_per_unit", jsonNumber(limits.maxBlocksPerUnit)},
            {"registers_per_unit", jsonNumber(limits.registersPerUnit)},
            {"shared_bytes_per_unit", jsonNumber(limits.sharedBytesPerUnit)},
            {"lines_in_flight_per_unit", sourcedJson(limits.linesInFlightPerUnit)}};
}

Json lineRatesJson(const std::vector<LineRate>& rates)
{
    Json json = Json::array();
    for (const LineRate& rate : rates) {
        json.push_back({{"operation", std::string(operationText(rate.operation))},
                        {"stride_bytes", jsonNumber(rate.strideBytes)},
                        {"lines_per_second", jsonNumber(rate.linesPerSecond)}});
    }
    return json;
}

Json calibrationJson(const Calibration& calibration)
{
    Json issueRates = Json::array();
    for (const IssueRate& rate : calibration.issueRates) {
        issueRates.push_back({{"operation", std::string(operationText(rate.operation))},
                              {"element_bytes", jsonNumber(rate.elementBytes)},
                              {"contiguous", rate.contiguous},
                              {"elements_per_second", jsonNumber(rate.elementsPerSecond)}});
    }
    Json walkRates = Json::array();
    for (const WalkRate& rate : calibration.walkRates) {
        walkRates.push_back({{"kind", rate.kind},
                             {"element_bytes", jsonNumber(rate.elementBytes)},
                             {"at", jsonNumber(rate.at)},
                             {"seconds", jsonNumber(rate.seconds)}});
    }
    return {{"time", calibration.time},
            {"program", calibration.program},
            {"machine", calibration.machine},
            {"grade", calibration.grade},
            {"line_rates", lineRatesJson(calibration.lineRates)},
            {"random_rates", lineRatesJson(calibration.randomRates)},
            {"issue_rates", std::move(issueRates)},
            {"walk_rates", std::move(walkRates)},
            {"raw", calibration.raw}};
}

Json levelsJson(const Device& device)
{
    Json levels = Json::array();
    for (const MemoryLevel& level : device.levels)
        levels.push_back(levelJson(level));
    return levels;
}

} // namespace

Json deviceToJson(const Device& device)
{
    Json json = {{"format", "memscape-device"},
                 {"version", 1},
                 {"id", device.id},
                 {"name", device.name},
                 {"product_names", device.productNames},
                 {"kind", device.isGpu() ? "gpu" : "host"},
                 {"vendor", device.vendor},
                 {"architecture", device.architecture},
                 {"compute_capability", device.computeCapability},
                 {"basis", device.basis},
                 {"units", device.units},
                 {"threads", device.threads},
                 {"clock", sourcedJson(device.clock)},
                 {"tensor_clock", sourcedJson(device.tensorClock)},
                 {"warp", device.warp},
                 {"sector_bytes", jsonNumber(device.sectorBytes)},
                 {"line_bytes", jsonNumber(device.lineBytes)},
                 {"rates", ratesJson(device)},
                 {"levels", levelsJson(device)},
                 {"tlbs", tlbsJson(device)},
                 {"links", linksJson(device)},
                 {"derating",
                  {{"read", sourcedJson(device.derating.read)},
                   {"write", sourcedJson(device.derating.write)},
                   {"copy", sourcedJson(device.derating.copy)}}},
                 {"launch", sourcedJson(device.launch)},
                 {"concurrency", concurrencyJson(device.concurrency)}};
    if (device.sharesHostMemory)
        json["shares_host_memory"] = true;
    if (device.eagerKernel.known())
        json["eager_kernel"] = sourcedJson(device.eagerKernel);
    if (device.gpuMemory.known())
        json["gpu_memory"] = sourcedJson(device.gpuMemory);
    if (device.calibration)
        json["calibration"] = calibrationJson(*device.calibration);
    if (device.framework)
        json["framework"] = {{"name", device.framework->name}, {"version", device.framework->version}};
    json["notes"] = device.notes;
    mergeUnknown(json, device.extra);
    return json;
}

} // namespace memscape
