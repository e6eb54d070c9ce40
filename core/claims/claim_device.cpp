// SPDX-License-Identifier: Apache-2.0
#include "core/claims/claim_device.h"

#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

Result<ExpressionValue> noSuchValue(std::string_view name)
{
    return fail("claims.device", fmt::format("devices have no \"{}\"", quotedForMessage(name)),
                "name clock, units, warp, name, rate.FORMAT, registers_per_unit, shared_per_unit, lanes_per_unit, a "
                "level with capacity, total, latency, cycles, bandwidth or copy, or a link with bandwidth or latency");
}

Result<ExpressionValue> levelValue(const Device& device, const MemoryLevel* level, std::string_view name,
                                   std::string_view what)
{
    const MemoryLevel none;
    const MemoryLevel& one = level ? *level : none;
    if (what == "capacity")
        return numberValue(one.capacity.value, Unit::Byte);
    if (what == "total")
        return numberValue(one.capacity.value * one.instances, Unit::Byte);
    if (what == "latency")
        return numberValue(one.latency.value, Unit::Second);
    if (what == "cycles")
        return numberValue(one.latency.value * device.clock.value);
    if (what == "bandwidth")
        return numberValue(one.bandwidth.value, Unit::BytePerSecond);
    if (what == "copy")
        return numberValue(level ? levelBandwidth(device, one, Operation::Copy).value : nan, Unit::BytePerSecond);
    return noSuchValue(name);
}

Result<ExpressionValue> linkValue(const Device& device, std::string_view id, std::string_view name,
                                  std::string_view what)
{
    const auto found = std::ranges::find(device.links, id, &Link::id);
    const bool has = found != device.links.end();
    if (what == "bandwidth")
        return numberValue(has ? found->bandwidth.value : nan, Unit::BytePerSecond);
    if (what == "latency")
        return numberValue(has ? found->latency.value : nan, Unit::Second);
    return noSuchValue(name);
}

double knownPart(double value)
{
    return value > 0 ? value : nan; // concurrency holds 0 where it is not known
}

} // namespace

Result<ExpressionValue> claimDeviceValue(const Device& device, std::string_view name)
{
    const std::size_t point = name.find('.');
    const std::string_view head = name.substr(0, point);
    const std::string_view what = point == std::string_view::npos ? std::string_view() : name.substr(point + 1);
    if (what.empty()) {
        if (head == "name")
            return wordValue(device.name);
        if (head == "clock")
            return numberValue(device.clock.value, Unit::Hertz);
        if (head == "units")
            return numberValue(double(device.units));
        if (head == "warp")
            return numberValue(double(device.warp));
        if (head == "registers_per_unit")
            return numberValue(knownPart(device.concurrency.registersPerUnit));
        if (head == "shared_per_unit")
            return numberValue(knownPart(device.concurrency.sharedBytesPerUnit), Unit::Byte);
        if (head == "lanes_per_unit") {
            const auto rate = device.rates.find("fp32");
            return numberValue(rate == device.rates.end() ? nan : knownPart(rate->second.fmaPerClockPerUnit));
        }
        return noSuchValue(name);
    }
    if (head == "rate")
        return numberValue(knownPart(device.flopRate(std::string(what))), Unit::FlopPerSecond);
    if (head == "host" || head == "peer")
        return linkValue(device, head, name, what);
    if (head == "DRAM")
        return levelValue(device, device.dram(), name, what);
    if (head == "lastcache")
        return levelValue(device, device.lastCache(), name, what);
    for (const char* level : {"registers", "shared", "L1", "L2", "L3", "SSD"}) {
        if (head == level)
            return levelValue(device, device.level(head), name, what);
    }
    return noSuchValue(name);
}

} // namespace memscape
