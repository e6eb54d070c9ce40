// SPDX-License-Identifier: Apache-2.0
// Looking things up in a device, and the bandwidth a stream reaches in one of its levels.
//
//   own value of the level            when it has one for this operation
//   B_spec × derating(operation)      DRAM whose bandwidth is the vendor's number
//   B_read × derating(op)/derating(read)   DRAM whose read bandwidth was measured
//   B_read                            every other level
//
// Derating is the share of the specified DRAM bandwidth that streams of each kind reach: refresh,
// bus turn-arounds between reads and writes and page misses take the rest. Left out: that the share
// depends on how many bytes are in flight (core/access has Little's law for that).
#include "core/device/device.h"

#include <algorithm>

namespace memscape {

namespace {

const Sourced& shareFor(const Derating& derating, Operation operation)
{
    switch (operation) {
    case Operation::Read: return derating.read;
    case Operation::Write: return derating.write;
    case Operation::Copy:
    case Operation::Triad: break;
    }
    return derating.copy;
}

Sourced scaled(const Sourced& bandwidth, double share, const std::string& shareSource)
{
    Sourced result;
    result.value = bandwidth.value * share;
    result.evidence = Evidence::Derived;
    result.source = bandwidth.source + " × derating (" + shareSource + ")";
    return result;
}

Sourced deratedBandwidth(const Device& device, const MemoryLevel& level, Operation operation)
{
    const Sourced& share = shareFor(device.derating, operation);
    if (level.bandwidth.evidence != Evidence::Measured) {
        return share.known() ? scaled(level.bandwidth, share.value, share.source) : level.bandwidth;
    }
    const Sourced& read = device.derating.read;
    if (operation == Operation::Read || !share.known() || !read.known())
        return level.bandwidth;
    return scaled(level.bandwidth, share.value / read.value, share.source);
}

} // namespace

std::string Device::unitWord() const
{
    if (!isGpu())
        return "cores";
    if (vendor == "Apple")
        return "GPU cores";
    return vendor == "AMD" ? "compute units" : "SMs";
}

const MemoryLevel* Device::level(std::string_view wanted) const
{
    const auto found = std::ranges::find(levels, wanted, &MemoryLevel::id);
    return found == levels.end() ? nullptr : &*found;
}

const Link* Device::link(std::string_view wanted) const
{
    const auto found = std::ranges::find(links, wanted, &Link::id);
    return found == links.end() ? nullptr : &*found;
}

const MemoryLevel* Device::dram() const
{
    const auto found = std::ranges::find(levels, LevelKind::Dram, &MemoryLevel::kind);
    return found == levels.end() ? nullptr : &*found;
}

double Device::flopRate(const std::string& format) const
{
    const auto entry = rates.find(format);
    return entry == rates.end() ? 0 : entry->second.flops.valueOr(0);
}

const MemoryLevel* Device::lastCache() const
{
    const auto found = std::find_if(levels.rbegin(), levels.rend(),
                                    [](const MemoryLevel& level) { return level.kind == LevelKind::Cache; });
    return found == levels.rend() ? nullptr : &*found;
}

Knee lruKnee(double ways)
{
    const double known = ways >= 1 ? ways : 8;
    return {1, 1 + 1 / known, 1,
            "LRU: a set with one contiguous line too many misses every time. Measured on Zen 4: "
            "all hits at the capacity of L1, none at 1.5 times"};
}

Sourced levelBandwidth(const Device& device, const MemoryLevel& level, Operation operation)
{
    if (operation == Operation::Write && level.writeBandwidth && level.writeBandwidth->known())
        return *level.writeBandwidth;
    if (operation == Operation::Copy && level.copyBandwidth && level.copyBandwidth->known())
        return *level.copyBandwidth;
    if (level.kind == LevelKind::Dram && level.bandwidth.known())
        return deratedBandwidth(device, level, operation);
    return level.bandwidth;
}

std::string_view operationText(Operation operation)
{
    switch (operation) {
    case Operation::Read: return "read";
    case Operation::Write: return "write";
    case Operation::Copy: return "copy";
    case Operation::Triad: break;
    }
    return "triad";
}

Operation operationOf(std::string_view text)
{
    for (const Operation operation : {Operation::Write, Operation::Copy, Operation::Triad}) {
        if (text == operationText(operation))
            return operation;
    }
    return Operation::Read;
}

std::string_view evidenceText(Evidence evidence)
{
    switch (evidence) {
    case Evidence::Specified: return "specified";
    case Evidence::Measured: return "measured";
    case Evidence::Derived: return "derived";
    case Evidence::Unverified: break;
    }
    return "unverified";
}

std::string_view levelKindText(LevelKind kind)
{
    switch (kind) {
    case LevelKind::Registers: return "registers";
    case LevelKind::Scratchpad: return "scratchpad";
    case LevelKind::Cache: return "cache";
    case LevelKind::Dram: return "dram";
    case LevelKind::Storage: break;
    }
    return "storage";
}

} // namespace memscape
