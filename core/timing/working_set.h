// SPDX-License-Identifier: Apache-2.0
// Latency and bandwidth of a working set over the levels of a device.
//
// A working set of W bytes, walked again and again in random order, hits level i (or one nearer) for
// a share H_i(W) of its accesses. A strict LRU would make H_i fall from 1 to 0 at the capacity; real
// caches hash and approximate, so the fall is a knee, measured rather than derived:
//     H(W) = 1 for W ≤ a·C,   clamp((b·C − W) / ((b − a)·C), 0, 1)^k beyond      (a, b, k = Knee)
// With cumulative shares, latency = Σ (H_i − H_{i−1}) · latency_i + Σ_tlb miss share · penalty, and
// since times per byte add up, 1/bandwidth = Σ (H_i − H_{i−1}) / bandwidth_i.
//
// Where a calibration found that streams have knees of their own, bandwidths take those: a cache that
// is shared with other tenants keeps less of what is touched rarely (a chase, 64 B per latency) than
// of what is streamed.
//
// Source: the knee's form and its Hopper values are fitted to gpu-l2-cache of RRZE's gpu-benches;
// a CPU's L1 has that of LRU (lruKnee); a calibration replaces both with this machine's.
// Left out: set conflicts of particular addresses, other tenants of a shared cache, NUMA, power.
#pragma once

#include "core/base/quantity.h"
#include "core/device/device.h"

#include <vector>

namespace memscape {

/// Which pages the working set lies in: sets the translation cost.
enum class Pages { Huge, Small, Window };

/// Share of accesses that a level of `capacity` bytes holds of a working set.
double hitShare(double workingSet, double capacity, const Knee& knee);

/// A level on the path of an ordinary load, and the share of accesses it serves.
struct ServedBy
{
    const MemoryLevel* level = nullptr;
    double share = 0;
    double capacity = 0; ///< B, all instances in use together
};

/// Of what: dependent random reads, or streams, of which a shared cache may keep more.
enum class KneeOf { Latency, Bandwidth };

/// Shares over caches, DRAM and storage, nearest first; they add up to 1. `cores` share the working
/// set, each with a private slice in the levels it has of its own.
std::vector<ServedBy> servedBy(const Device& device, double workingSet, int cores = 1, KneeOf curve = KneeOf::Latency);

/// The level that serves most accesses.
const MemoryLevel* homeLevel(const Device& device, double workingSet, int cores = 1);

struct LatencyModel
{
    double seconds = 0;     ///< NaN when no level on the path has a known latency
    double translation = 0; ///< of which address translation
    std::vector<ServedBy> served;
};
LatencyModel latencyOf(const Device& device, double workingSet, Pages pages);

struct BandwidthModel
{
    double bytesPerSecond = 0; ///< NaN when unknown; a copy counts what it reads and writes
    std::vector<ServedBy> served;
};
BandwidthModel bandwidthOf(const Device& device, double workingSet, Operation operation, int threads);

/// Independent loads that a GPU thread keeps open in the kernels here.
inline constexpr double gpuLoadsInFlight = 4;

/// How streams run, which says how many bytes they keep in flight.
struct StreamShape
{
    int threads = 1;       ///< of a host; multiprocessors of a GPU
    double warps = 0;      ///< resident on each multiprocessor, 0: as many as fit; GPUs only
    double wordBytes = 16; ///< a lane's load; GPUs only
};

/// Bytes that streams keep on their way from `level`. GPU: multiprocessors × warps × lanes × word ×
/// loads. Host: cores × what one core draws × latency, or its outstanding lines where that is not
/// known. NaN when neither is.
double bytesInFlight(const Device& device, const MemoryLevel& level, const StreamShape& shape);

/// The same as above; on a GPU each level gives at most bytes in flight / its latency.
BandwidthModel bandwidthOf(const Device& device, double workingSet, Operation operation, const StreamShape& shape);
/// a ← b + 3 c, counting three arrays: a copy of two and a read of the third, one after the other.
BandwidthModel triadOf(const Device& device, double workingSet, const StreamShape& shape);

/// Bandwidth of one level for `threads` of its device's threads: the whole device's, or what so many
/// cores draw from it when that is less.
double levelRate(const Device& device, const MemoryLevel& level, Operation operation, int threads);

/// Little's law: the most that `bytesInFlight` outstanding bytes can draw through a latency.
double littleBandwidth(double bytesInFlight, double latency);

} // namespace memscape
