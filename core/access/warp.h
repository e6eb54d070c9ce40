// SPDX-License-Identifier: Apache-2.0
// Coalescing: which 32-byte sectors and 128-byte lines one memory request of a warp touches.
//
// From compute capability 6.0 on, a warp's load or store is served in as many 32-byte transactions
// as its lanes touch distinct 32-byte segments (CUDA C++ Best Practices Guide, "Coalesced Access to
// Global Memory"). Here every byte of every lane counts, so an element that straddles a border
// touches both sectors. efficiency = distinct bytes used / bytes fetched, so a broadcast is at
// most 1.
//
// A request wider than 128 bytes is served in passes: 16 B per lane in 4 passes of 8 lanes, 8 B in
// 2 passes of 16. The distinct sectors stay the same; `passes` lists them per pass.
//
// Left out: L1 and L2 hits, DRAM's own granularity (64 B on some parts), replays, predicated-off
// lanes (leave their addresses away), the several instructions that a compiler makes of widths
// other than 1, 2, 4, 8 and 16 bytes.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <vector>

namespace memscape {

inline constexpr int warpLanes = 32;
inline constexpr std::uint64_t requestLaneLimit = 1024;
inline constexpr std::uint64_t requestWidthLimit = 4096;

/// The accesses of one request: each lane's first byte, and how many bytes each lane accesses.
struct WarpRequest
{
    std::vector<std::uint64_t> addresses; ///< by lane
    std::uint64_t width = 4;              ///< B per lane
};

// Address generators. `base` is the byte address of the array, so its remainder mod 128 is the
// misalignment; `stride` counts elements. Errors of all: access.element (0 or over 4096 bytes),
// access.lanes (not 1 … 1024), access.overflow (an address beyond 2^64 - 1).

/// Lane i reads element i × stride. Stride 0 is a broadcast, stride 1 contiguous; a `base` that is
/// no multiple of 128 is misaligned.
Result<WarpRequest> stridedRequest(std::uint64_t base, std::uint64_t stride, std::uint64_t elementBytes,
                                   int lanes = warpLanes);

/// Lane i reads a uniformly random element of an array of `elements`, drawn with SplitMix64 from
/// `seed`. Error: access.elements (0).
Result<WarpRequest> randomRequest(std::uint64_t base, std::uint64_t seed, std::uint64_t elements,
                                  std::uint64_t elementBytes, int lanes = warpLanes);

/// Bytes [begin, end) counted from the start of their granule.
struct ByteRange
{
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool operator==(const ByteRange&) const = default;
};

/// A touched sector or line: where it begins, and which of its bytes are used (ascending, merged).
struct TouchedGranule
{
    std::uint64_t address = 0;
    std::vector<ByteRange> used;

    std::uint64_t usedBytes() const;
    bool operator==(const TouchedGranule&) const = default;
};

/// Where one lane falls: its first byte, and the first and last of its sectors and lines as indices
/// into WarpAccess::sectors and ::lines.
struct LaneAccess
{
    std::uint64_t address = 0;
    std::size_t firstSector = 0, lastSector = 0;
    std::size_t firstLine = 0, lastLine = 0;
};

/// Lanes that are served together.
struct WarpPass
{
    int firstLane = 0;
    int lanes = 0;
    std::uint64_t sectors = 0; ///< distinct within the pass
};

struct GranuleSizes
{
    std::uint64_t sector = 32; ///< B moved at least; a host's is its cache line
    std::uint64_t line = 128;  ///< B that share one tag
};

/// One request, resolved: all that a picture draws and a prediction counts.
struct WarpAccess
{
    std::uint64_t width = 0;
    GranuleSizes sizes;
    std::vector<LaneAccess> lanes;
    std::vector<TouchedGranule> sectors; ///< distinct, ascending
    std::vector<TouchedGranule> lines;   ///< distinct, ascending
    std::vector<WarpPass> passes;
    std::uint64_t usedBytes = 0;    ///< distinct bytes that some lane asked for
    std::uint64_t fetchedBytes = 0; ///< sectors × sector size

    double efficiency() const { return double(usedBytes) / double(fetchedBytes); }
};

/// Errors: access.lanes (none or over 1024), access.element (width 0 or over 4096), access.granule
/// (0, or a line that is no multiple of the sector), access.overflow.
Result<WarpAccess> resolveRequest(const WarpRequest& request, const GranuleSizes& sizes = {});

/// Lanes served together: 128 / width rounded down to a power of two, at least 1.
int lanesPerPass(std::uint64_t width, std::uint64_t lineBytes = 128);

/// Counts without the lists.
struct WarpCounts
{
    double sectors = 0; ///< per request; an expectation for random
    double lines = 0;
    double usedBytes = 0;
    double fetchedBytes = 0;

    double efficiency() const { return usedBytes / fetchedBytes; }
};

/// Closed form of resolveRequest(stridedRequest(…)): equal to it for every stride, element and
/// misalignment (granules.h says why), O(log). Aligned and with powers of two it is
/// sectors = min(32, max(1, stride × element)) for 32 lanes and 32-byte sectors.
Result<WarpCounts> stridedCounts(std::uint64_t base, std::uint64_t stride, std::uint64_t elementBytes,
                                 int lanes = warpLanes, const GranuleSizes& sizes = {});

/// Expected counts of resolveRequest(randomRequest(…)) over seeds. For arrays much larger than the
/// warp nearly every lane has a sector of its own: sectors → lanes, efficiency → element / sector.
/// `efficiency()` is then the ratio of the expectations.
Result<WarpCounts> expectedRandomCounts(std::uint64_t base, std::uint64_t elements, std::uint64_t elementBytes,
                                        int lanes = warpLanes, const GranuleSizes& sizes = {});

} // namespace memscape
