// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a measurement that needs no GPU: how much to flush, how many launches make one
// sample, what two stamps say about the clock, how a working set is cut for the laps. Kept apart so
// that it is tested where there is no GPU.
//
//   flush      max(256 MB, 3 × L2), at most a quarter of the free memory: once the L2 is not
//              enough, its replacement is not LRU
//   batch      events resolve about half a microsecond and a launch takes one to three, so whatever
//              is shorter than 200 µs is measured as k launches with k × t ≥ 200 µs; at most 200, and
//              of work of several kernels only what the queue holds
//   queue      a stream's queue holds about a thousand launches; half of it is used
//   clock      clocks / time between two stamps of one SM
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace memscape::cuda {

inline constexpr double batchTime = 200e-6; ///< s
inline constexpr int batchLimit = 200;
inline constexpr std::size_t heldLaunches = 512; ///< behind the blocking kernel
inline constexpr std::uint64_t mega = 1'000'000;

inline std::uint64_t flushBytes(std::uint64_t l2Bytes, std::uint64_t freeBytes)
{
    return std::min(std::max(256 * mega, 3 * l2Bytes), freeBytes / 4);
}

/// Runs in one sample of what takes `seconds` and `launches`.
inline int batchFor(double seconds, std::size_t launches = 1)
{
    const double fits = std::max(1.0, std::floor(double(heldLaunches) / double(std::max<std::size_t>(1, launches))));
    const double most = std::min(double(batchLimit), fits);
    if (!(seconds > 0))
        return static_cast<int>(most);
    return static_cast<int>(std::clamp(std::ceil(batchTime / seconds), 1.0, most));
}

/// How many copies of arrays of `bytes` a cold batch walks in turn, so that no launch finds what
/// the one before it left in the cache; what fits into `spareBytes`, at least the one there is.
inline int copiesFor(int batch, std::uint64_t bytes, std::uint64_t spareBytes)
{
    if (batch <= 1 || bytes == 0)
        return 1;
    const std::uint64_t fits = spareBytes / bytes + 1;
    return static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(batch), fits));
}

/// Hz; NaN when the stamps are not two moments of one counter.
inline double clockBetween(unsigned long long beginNs, long long beginClocks, unsigned long long endNs,
                           long long endClocks)
{
    if (beginNs == 0 || endNs <= beginNs || endClocks <= beginClocks)
        return std::numeric_limits<double>::quiet_NaN();
    return double(endClocks - beginClocks) / (double(endNs - beginNs) * 1e-9);
}

/// How a working set is laid out for the laps of hierarchy's bandwidth.
struct LapsShape
{
    bool isPrivate = false;       ///< every SM has `workingSet` bytes of its own
    std::uint64_t chunkBytes = 0; ///< a multiple of 32
    std::uint64_t chunks = 0;
    std::uint64_t memoryBytes() const { return chunkBytes * chunks; }
};

/// Up to 1.25 × L1 each SM goes over its own slice; beyond that all share chunks of about 64 KiB.
inline LapsShape lapsShape(std::uint64_t workingSet, std::uint64_t l1Bytes, int multiprocessors)
{
    LapsShape shape;
    shape.isPrivate = double(workingSet) <= 1.25 * double(l1Bytes);
    shape.chunks = shape.isPrivate ? static_cast<std::uint64_t>(std::max(1, multiprocessors))
                                   : std::max<std::uint64_t>(1, (workingSet + (32u << 10)) / (64u << 10));
    shape.chunkBytes = (shape.isPrivate ? workingSet : workingSet / shape.chunks) / 32 * 32;
    shape.chunkBytes = std::max<std::uint64_t>(32, shape.chunkBytes);
    return shape;
}

/// Laps of every block so that one launch moves about `bytes` in all, whole rounds over the chunks
/// when they are shared, at least one.
inline std::uint64_t lapsFor(const LapsShape& shape, int blocks, double bytes)
{
    const double perLap = double(shape.chunkBytes) * std::max(1, blocks);
    return static_cast<std::uint64_t>(std::max(1.0, std::round(bytes / perLap)));
}

/// Loads of one chase launch: long enough for the global timer (ticks of up to 1 µs on most GPUs),
/// far below the 200 ms that a display driver tolerates.
inline std::uint64_t chaseLoads(std::uint64_t workingSet, std::uint64_t l2Bytes)
{
    return workingSet <= l2Bytes ? (1u << 18) : (1u << 16);
}

/// Loads of a chase before it is timed, until the caches hold what they can: one lap, or as many lines
/// as L2 has; whole turns of 32.
inline std::uint64_t warmLoads(std::uint64_t nodes, std::uint64_t lineBytes, std::uint64_t l2Bytes)
{
    const std::uint64_t lines = std::max<std::uint64_t>(1u << 18, l2Bytes / lineBytes);
    return (std::min(nodes, lines) + 31) / 32 * 32;
}

} // namespace memscape::cuda
