// SPDX-License-Identifier: Apache-2.0
// A device is levels of memory, rates and links. Every value says where it comes from: specified by
// the vendor, measured (and by which method), derived from others, or unverified. The catalogue
// (resources/devices/*.json), the description of this machine, and calibrated device files are all
// this one type; `basis` is the one that a prediction uses.
//
// Left out: coherence traffic, NUMA distance between sockets, power.
#pragma once

#include "core/base/json.h"
#include "core/base/number.h"
#include "core/device/operation.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace memscape {

enum class Evidence { Specified, Measured, Derived, Unverified };

/// A value with its provenance; unknown when NaN. In JSON:
/// {"value": 4.8e12, "kind": "specified", "source": "…", "method": "…"}.
struct Sourced
{
    double value = std::numeric_limits<double>::quiet_NaN();
    Evidence evidence = Evidence::Unverified;
    std::string source = {};
    std::string method = {}; ///< for Measured: "pointer chase, chain total (gpu-benches)"

    bool known() const { return std::isfinite(value); }
    double valueOr(double fallback) const { return known() ? value : fallback; }
};

enum class DeviceKind { Host, Gpu };
enum class LevelKind { Registers, Scratchpad, Cache, Dram, Storage };

/// Where hits in a level begin to fall and where they end, as fractions of its capacity: the knee of
/// a working-set curve. Hopper's L2 is (0.84, 1.64) with exponent 2.
struct Knee
{
    double begin = 0.84;
    double end = 1.64;
    double exponent = 2.0;
    std::string source = "Hopper L2 fit, used as the default for every cache";
};

/// The knee of a small cache with true LRU that walks over contiguous lines in circles: a set that
/// must hold one line more than its ways misses every time, so hits fall linearly from the capacity
/// to one more way. What a CPU's L1 does; 8 ways when they are not known.
Knee lruKnee(double ways);

struct MemoryLevel
{
    std::string id;    ///< "registers", "L1", "shared", "L2", "L3", "DRAM", "SSD"
    std::string label; ///< "L1 data cache"
    LevelKind kind = LevelKind::Cache;
    int instances = 1;                       ///< how many of it the device has (one L1 per core or SM)
    Sourced capacity;                        ///< B, one instance, as one core (SM) sees it
    Sourced line;                            ///< B moved at a time into this level
    Sourced ways;                            ///< associativity
    Sourced latency;                         ///< s, dependent random read served by this level
    Sourced bandwidth;                       ///< B/s, reads by the whole device served by this level
    std::optional<Sourced> writeBandwidth;   ///< B/s of useful bytes stored
    std::optional<Sourced> copyBandwidth;    ///< B/s, bytes read + bytes written
    std::optional<Sourced> oneCoreBandwidth; ///< B/s, reads by one core or SM
    Knee knee;                               ///< of latencies, and of bandwidths without one of their own
    std::optional<Knee> bandwidthKnee;       ///< of streams: where a shared cache keeps more of them

    bool onChip() const { return kind != LevelKind::Dram && kind != LevelKind::Storage; }
};

/// One level of address translation, with the latency that missing it adds.
struct TlbLevel
{
    std::string id;   ///< "L1 dTLB"
    double pageBytes; ///< the page size these entries hold: 4096, 2097152
    Sourced entries;
    Sourced missPenalty; ///< s added to an access that misses this level and hits the next
};

struct Rate
{
    Sourced flops;                 ///< FLOP/s dense, the whole device
    double fmaPerClockPerUnit = 0; ///< for the check: units × fma × 2 × clock
    bool atTensorClock = false;
    std::string exception = {}; ///< why the formula does not reproduce it, when it does not
};

/// A way for bytes. Of a GPU "host" and "peer"; within a host, calibrated, one for each kind of `transfer` ("pipe").
struct Link
{
    std::string id;                           ///< "host", "peer", "pipe"
    std::string label;                        ///< "PCIe 5.0 x16"
    Sourced bandwidth;                        ///< B/s, one direction; within a host: of data that its last cache holds
    Sourced latency;                          ///< s
    std::optional<Sourced> pageable = {};     ///< B/s of "host" from memory that is not pinned: staged by the driver
    std::optional<Sourced> farBandwidth = {}; ///< B/s within a host, of data that no cache holds
    std::optional<Sourced> ownBandwidth = {}; ///< B/s within a host, of data that the caches of one core hold
};

/// Share of the specified DRAM bandwidth that streams reach.
struct Derating
{
    Sourced read, write, copy;
};

/// What limits bytes in flight (Little's law).
struct Concurrency
{
    double maxThreadsPerUnit = 0; ///< resident threads per SM; 0 for a host
    double maxBlocksPerUnit = 0;
    double registersPerUnit = 0; ///< 32-bit
    double sharedBytesPerUnit = 0;
    Sourced linesInFlightPerUnit; ///< host: outstanding L1 misses per core
};

/// Calibrated: lines per second that the whole device fetches from DRAM when it walks with a stride
/// of so many bytes. Prefetchers make this a curve, not a constant.
struct LineRate
{
    Operation operation = Operation::Read;
    double strideBytes = 64;
    double linesPerSecond = 0;
};

/// Calibrated: how many elements per second the whole device issues from L1 with a scalar loop.
struct IssueRate
{
    Operation operation = Operation::Read;
    double elementBytes = 4;
    bool contiguous = false; ///< wide loads over neighbours, or one element at a time
    double elementsPerSecond = 0;
};

/// Calibrated: what one core needs for its walks over tensors; core/timing/walk_rates.h says which and why.
struct WalkRate
{
    std::string kind; ///< "read neighbours", "tiles 3", "column L2" …
    double elementBytes = 4;
    double at = 0;      ///< elements of a run, or bytes of a footprint or a distance
    double seconds = 0; ///< of a run, an element or a visit
};

struct Calibration
{
    std::string time;    ///< ISO 8601, UTC
    std::string program; ///< "memscape 0.1.0"
    std::string machine; ///< what it ran on
    std::string grade;   ///< A to D, the worst of the parts
    std::vector<LineRate> lineRates;
    std::vector<LineRate> randomRates; ///< strideBytes holds the footprint instead
    std::vector<IssueRate> issueRates;
    std::vector<WalkRate> walkRates; ///< hosts
    Json raw;                        ///< the measurements the fits were made from
};

/// Which program's operations a device stands for: a pytorch device has this machine's memory and rates, and
/// allocates as that version of PyTorch does.
struct Framework
{
    std::string name;    ///< "pytorch"
    std::string version; ///< "2.9.1+cpu", as the framework says it
};

struct Device
{
    std::string id;                        ///< "cpu", "cuda:0", "pytorch:cpu", "nvidia-h200"
    std::string name;                      ///< "NVIDIA H200 SXM"
    std::vector<std::string> productNames; ///< what drivers and /proc/cpuinfo call it: "NVIDIA H200"
    DeviceKind kind = DeviceKind::Host;
    std::string vendor;
    std::string architecture;
    std::string computeCapability; ///< "9.0"; empty for hosts
    std::string basis;             ///< "catalogue", "described", "derived", "calibrated"
    int units = 1;                 ///< SMs, compute units or physical cores
    int threads = 1;               ///< hardware threads of a host
    Sourced clock;                 ///< Hz; latencies in cycles are at this clock
    Sourced tensorClock;           ///< Hz of tensor rates (hosts: all cores busy); unknown: the same
    int warp = 32;                 ///< lanes of one request
    double sectorBytes = 32;       ///< what one request moves at least: 32 on GPUs, the line on hosts
    double lineBytes = 128;
    std::map<std::string, Rate> rates; ///< "fp32", "tf32", "fp16", "bf16", "fp8", "int8"
    std::vector<MemoryLevel> levels;   ///< nearest first
    std::vector<TlbLevel> tlbs;
    std::vector<Link> links;
    bool sharesHostMemory = false; ///< one DRAM for CPU and GPU (Jetson, Apple): offloading to the host frees nothing
    Sourced gpuMemory;             ///< B of a shared DRAM that the system lets the GPU have; unknown: all of it
    Derating derating;
    Sourced launch;      ///< s between back-to-back kernel starts; 0 on hosts
    Sourced eagerKernel; ///< s that the host it is sold with takes for a kernel of PyTorch's; unknown: nothing is known
    Concurrency concurrency;
    std::optional<Calibration> calibration;
    std::optional<Framework> framework; ///< not set: memscape's own kernels
    std::vector<std::string> notes;
    Json extra; ///< unknown keys at any depth, kept and written back

    /// What `units` counts, in the vendor's word: "SMs", "compute units", "GPU cores", "cores".
    std::string unitWord() const;
    const MemoryLevel* level(std::string_view id) const;
    const MemoryLevel* dram() const;
    /// The largest cache before DRAM: "L2", or "L2 far" where one SM reaches half of it more slowly.
    const MemoryLevel* lastCache() const;
    const Link* link(std::string_view id) const;
    double flopRate(const std::string& format) const; ///< FLOP/s of "fp32", "bf16", …; 0 where it is not known
    bool isGpu() const { return kind == DeviceKind::Gpu; }
};

/// Bandwidth of a level for an operation, in bytes that the program names (a copy counts what it
/// reads and what it writes): the level's own value, else read bandwidth × derating for DRAM, else
/// the read bandwidth. A measured read bandwidth is what streams reach, so it is not derated again.
Sourced levelBandwidth(const Device& device, const MemoryLevel& level, Operation operation);

/// `{"format": "memscape-device", "version": 1, …}`. Errors name the place: json.missing, json.type,
/// json.format, json.version, json.range.
Result<Device> deviceFromJson(const Json& json, const std::string& place = "device");
Json deviceToJson(const Device& device);

std::string_view evidenceText(Evidence evidence); ///< "specified", "measured", "derived", …
std::string_view levelKindText(LevelKind kind);   ///< "registers", "scratchpad", "cache", …

} // namespace memscape
