// SPDX-License-Identifier: Apache-2.0
#include "core/claims/claim_device.h"

#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

Result<ClaimValue> noSuchValue(std::string_view name)
{
    return fail("claims.device", fmt::format("devices have no \"{}\"", quotedForMessage(name)),
                "name clock, units, warp, name, rate.FORMAT, registers_per_unit, shared_per_unit, lanes_per_unit, a "
                "level with capacity, total, latency, cycles, bandwidth or copy, or a link with bandwidth or latency");
}

Result<ClaimValue> levelValue(const Device& device, const MemoryLevel* level, std::string_view name,
                              std::string_view what)
{
    const MemoryLevel none;
    const MemoryLevel& one = level ? *level : none;
    if (what == "capacity")
        return ClaimValue{one.capacity.value, Unit::Byte};
    if (what == "total")
        return ClaimValue{one.capacity.value * one.instances, Unit::Byte};
    if (what == "latency")
        return ClaimValue{one.latency.value, Unit::Second};
    if (what == "cycles")
        return ClaimValue{one.latency.value * device.clock.value};
    if (what == "bandwidth")
        return ClaimValue{one.bandwidth.value, Unit::BytePerSecond};
    if (what == "copy")
        return ClaimValue{level ? levelBandwidth(device, one, Operation::Copy).value : nan, Unit::BytePerSecond};
    return noSuchValue(name);
}

Result<ClaimValue> linkValue(const Device& device, std::string_view id, std::string_view name, std::string_view what)
{
    const auto found =
        std::find_if(device.links.begin(), device.links.end(), [&](const Link& link) { return link.id == id; });
    const bool has = found != device.links.end();
    if (what == "bandwidth")
        return ClaimValue{has ? found->bandwidth.value : nan, Unit::BytePerSecond};
    if (what == "latency")
        return ClaimValue{has ? found->latency.value : nan, Unit::Second};
    return noSuchValue(name);
}

double knownPart(double value)
{
    return value > 0 ? value : nan; // concurrency holds 0 where it is not known
}

} // namespace

Result<ClaimValue> claimDeviceValue(const Device& device, std::string_view name)
{
    const std::size_t point = name.find('.');
    const std::string_view head = name.substr(0, point);
    const std::string_view what = point == std::string_view::npos ? std::string_view() : name.substr(point + 1);
    if (what.empty()) {
        if (head == "name")
            return ClaimValue{nan, Unit::One, device.name, true};
        if (head == "clock")
            return ClaimValue{device.clock.value, Unit::Hertz};
        if (head == "units")
            return ClaimValue{double(device.units)};
        if (head == "warp")
            return ClaimValue{double(device.warp)};
        if (head == "registers_per_unit")
            return ClaimValue{knownPart(device.concurrency.registersPerUnit)};
        if (head == "shared_per_unit")
            return ClaimValue{knownPart(device.concurrency.sharedBytesPerUnit), Unit::Byte};
        if (head == "lanes_per_unit") {
            const auto rate = device.rates.find("fp32");
            return ClaimValue{rate == device.rates.end() ? nan : knownPart(rate->second.fmaPerClockPerUnit)};
        }
        return noSuchValue(name);
    }
    if (head == "rate")
        return ClaimValue{knownPart(device.flopRate(std::string(what))), Unit::FlopPerSecond};
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
