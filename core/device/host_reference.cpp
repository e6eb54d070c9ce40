// SPDX-License-Identifier: Apache-2.0
// The table of CPU families that the catalogue knows, and the typical host for all others.
//
// Families: AMD 25 is Zen 3 and Zen 4; of these the models 0x10–0x1f (Genoa and its workstation
// sibling), 0x60–0x7f (desktop and mobile) and 0xa0–0xaf (Bergamo, Siena) are Zen 4. AMD 26 is Zen 5 in
// the models 0x00–0x2f (Turin), 0x40–0x4f and 0x60–0x7f (desktop and mobile). Intel 6/143
// and 6/207 are Sapphire and Emerald Rapids. Ranges as in the Linux kernel's family tables, not
// re-checked.
//
// The typical host's arithmetic follows from the extensions that the system lists: two vector units
// that multiply and add, as wide as AVX-512 (counted as 256 bits: many cores pair their halves),
// AVX2 or Advanced SIMD; products in BF16 and INT8 where there are instructions for them. A CPU
// without BF16 instructions still multiplies BF16: each value is widened to FP32 first, exactly, and
// the product runs at FP32's rate.
#include "core/device/host_reference.h"

#include "core/device/catalogue.h"

#include <algorithm>
#include <initializer_list>

namespace memscape {

namespace {

struct ProcessorFamily
{
    std::string_view vendor;
    int family;
    int firstModel, lastModel;
    std::string_view shortVendor;
    std::string_view catalogueId;
    std::string_view virtualId; ///< the reference inside a virtual machine; empty: the same
    double dramLimit;
};

constexpr double twoChannels = 83.2e9; // two channels of DDR5-5200: 2 × 8 B × 5.2 GT/s

constexpr ProcessorFamily families[] = {
    {"AuthenticAMD", 25, 0x10, 0x1f, "AMD", "amd-epyc-9654", "amd-epyc-zen4-vm", 0},
    {"AuthenticAMD", 25, 0xa0, 0xaf, "AMD", "amd-epyc-9654", "amd-epyc-zen4-vm", 0},
    {"AuthenticAMD", 25, 0x60, 0x7f, "AMD", "amd-epyc-9654", "", twoChannels},
    {"AuthenticAMD", 26, 0x00, 0x2f, "AMD", "amd-epyc-zen5-vm", "", 0},
    {"AuthenticAMD", 26, 0x40, 0x4f, "AMD", "amd-epyc-zen5-vm", "", twoChannels},
    {"AuthenticAMD", 26, 0x60, 0x7f, "AMD", "amd-epyc-zen5-vm", "", twoChannels},
    {"GenuineIntel", 6, 143, 143, "Intel", "intel-xeon-8480plus", "", 0},
    {"GenuineIntel", 6, 207, 207, "Intel", "intel-xeon-8480plus", "", 0},
};

Sourced typical(double value)
{
    return {value, Evidence::Unverified, "of a server or desktop core of the 2020s", {}};
}

MemoryLevel typicalCache(const char* id, const char* label, double bytes, double ways, double clocks,
                         double bytesPerClock, double clock)
{
    MemoryLevel level;
    level.id = id;
    level.label = label;
    level.capacity = typical(bytes);
    level.line = typical(64);
    level.ways = typical(ways);
    level.latency = typical(clocks / clock);
    level.bandwidth = typical(bytesPerClock * clock);
    level.oneCoreBandwidth = level.bandwidth;
    return level;
}

MemoryLevel typicalStore(const char* id, const char* label, LevelKind kind, double bytes, double latency,
                         double bandwidth)
{
    MemoryLevel level;
    level.id = id;
    level.label = label;
    level.kind = kind;
    level.capacity = typical(bytes);
    level.line = typical(kind == LevelKind::Storage ? 4096 : 64);
    level.latency = typical(latency);
    level.bandwidth = typical(bandwidth);
    return level;
}

bool hasAny(const HostFacts& facts, std::initializer_list<std::string_view> extensions)
{
    return std::ranges::any_of(
        extensions, [&](std::string_view name) { return facts.extensions.find(name) != facts.extensions.end(); });
}

/// Fused multiply-adds per clock of one core.
void addTypicalRates(const HostFacts& facts, double clock, Device& host)
{
    const auto add = [&](const char* format, double fma, const std::string& source) {
        Rate rate{typical(2 * fma * clock), fma, false, {}};
        rate.flops.source = source;
        host.rates[format] = std::move(rate);
    };
    const bool wide = hasAny(facts, {"avx2", "avx512f"});
    const double fp32 = wide ? 16 : 8; // two units of 256 or of 128 bits
    add("fp32", fp32, wide ? "two vector units of 256 bits" : "two vector units of 128 bits");
    add("fp64", fp32 / 2, "half of FP32: vectors hold half as many");
    if (hasAny(facts, {"amx_bf16"}))
        add("bf16", 512, "AMX: a tile product of 16 × 16 × 32 every 16 clocks");
    else if (hasAny(facts, {"avx512_bf16", "bf16"}))
        add("bf16", 2 * fp32, "twice FP32: its instructions multiply pairs");
    else
        add("bf16", fp32, "FP32's: without BF16 instructions values are widened to FP32 first");
    if (hasAny(facts, {"amx_int8"}))
        add("int8", 1024, "AMX: a tile product of 16 × 16 × 64 every 16 clocks");
    else if (hasAny(facts, {"avx512_vnni", "avx_vnni", "asimddp"}))
        add("int8", 4 * fp32, "four times FP32: its instructions multiply groups of four");
}

/// One core of a typical 3 GHz CPU; describeHost scales it.
Device typicalHost(const HostFacts& facts)
{
    constexpr double clock = 3e9;
    Device host;
    host.clock = typical(clock);
    MemoryLevel registers = typicalCache("registers", "Vector registers", 512, 1, 1, 192, clock);
    registers.kind = LevelKind::Registers;
    registers.ways = {};
    registers.line = typical(32);
    MemoryLevel dram = typicalStore("DRAM", "Memory", LevelKind::Dram, 0x1p34, 100e-9, 15e9);
    dram.oneCoreBandwidth = dram.bandwidth;
    host.levels = {registers,
                   typicalCache("L1", "L1 data cache", 0x1p15, 8, 4, 64, clock),
                   typicalCache("L2", "L2 cache", 0x1p20, 8, 14, 32, clock),
                   typicalCache("L3", "L3 cache", 0x1p25, 16, 50, 16, clock),
                   dram,
                   typicalStore("SSD", "NVMe drive", LevelKind::Storage, 1e12, 80e-6, 7e9)};
    host.levels[1].knee = lruKnee(host.levels[1].ways.value);
    for (const double page : {4096.0, 2097152.0}) {
        host.tlbs.push_back({"L1 dTLB", page, typical(64), typical(7 / clock)});
        host.tlbs.push_back({"L2 dTLB", page, typical(1536), typical(20e-9)});
    }
    host.derating = {typical(0.85), typical(0.4), typical(0.56)};
    host.launch = {0, Evidence::Specified, "a host starts loops, not kernels", {}};
    host.concurrency.linesInFlightPerUnit = typical(12);
    addTypicalRates(facts, clock, host);
    return host;
}

} // namespace

HostReference hostReference(const HostFacts& facts)
{
    for (const ProcessorFamily& family : families) {
        if (facts.vendor != family.vendor || facts.family != family.family || facts.model < family.firstModel
            || facts.model > family.lastModel)
            continue;
        const bool inVirtual = facts.virtualMachine && !family.virtualId.empty();
        const std::string id(inVirtual ? family.virtualId : family.catalogueId);
        if (auto device = findDevice(id)) {
            return {std::move(*device), id + " (catalogue)", std::string(family.shortVendor), true, family.dramLimit};
        }
    }
    return {typicalHost(facts), "typical value", {}, false, 2 * twoChannels};
}

} // namespace memscape
