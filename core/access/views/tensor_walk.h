// SPDX-License-Identifier: Apache-2.0
// What is touched when every element of a view is visited once in a given order: requests of a GPU's
// warp (32 neighbouring visits), the granules of memory in all, the caches of one CPU core.
//
// A walk is a nest of loops, fastest first. Loops that follow on from each other (a step of the outer
// one is where the inner one would have gone next) are one loop, so a contiguous tensor of any shape
// is one loop of stride 1.
//
//   requests   The shape of a request repeats: after P visits, P the product of the inner loops that is
//              a multiple of 32, only the address has moved, and of that only the remainder by the line
//              counts. So the requests of one period are resolved (warp.h) for every remainder that
//              occurs, weighted by how often it does: exact for any size. Where no product of inner loops
//              is a multiple of 32, or too many remainders occur, every k-th request is resolved instead,
//              k odd, which `isExact` says.
//   granules   Sectors, lines and pages of the set of all addresses, whatever the order: closed form for
//              each run (granules.h), run after run.
//   caches     Two passes are played through the cache simulator and the second is counted; where there are
//              more visits than it may take, the first are played and the second half of them stands for all.
//
// Left out: the stores of a copy, prefetching, hashed cache sets, several cores.
#pragma once

#include "core/access/cache_simulator.h"
#include "core/access/views/tensor_view.h"
#include "core/access/warp.h"

#include <cstdint>
#include <vector>

namespace memscape {

enum class WalkOrder { LastFastest, FirstFastest };

struct WalkLoop
{
    std::int64_t count = 1;
    std::int64_t stride = 0; ///< elements
};

struct TensorWalk
{
    std::vector<WalkLoop> loops; ///< fastest first, none of count 1
    std::int64_t offset = 0;     ///< elements
    std::int64_t elements = 0;   ///< visits
    std::uint64_t itemBytes = 4;

    /// Byte address of the i-th visit; the storage begins at 0.
    std::uint64_t address(std::int64_t visit) const;
    /// Bytes between neighbouring visits; the item for a walk of one visit.
    std::uint64_t pitchBytes() const;
    /// Every visit follows on from the one before.
    bool isSequential() const;
};
/// Visits [begin, end) of the slowest loop, as a walk of its own: for work that looks up between parts.
TensorWalk sliceOf(const TensorWalk& walk, std::int64_t begin, std::int64_t end);
TensorWalk walkOf(const TensorView& view, WalkOrder order, std::int64_t itemBytes);

/// Means over the requests of a walk.
struct WalkRequests
{
    double requests = 0;
    double sectors = 0, lines = 0;          ///< per request
    double usedBytes = 0, fetchedBytes = 0; ///< per request; distinct bytes asked for, sectors × size
    bool isExact = true;

    double efficiency() const { return usedBytes / fetchedBytes; } ///< NaN of an empty walk
};
/// Errors: those of resolveRequest(): access.granule, access.element.
Result<WalkRequests> walkRequests(const TensorWalk& walk, const GranuleSizes& sizes = {});

/// Distinct granules of `granule` bytes over the whole walk. Exact where runs do not interleave
/// (every view but overlapping windows) or visits are few; else what the walk's extent allows at most.
double distinctGranules(const TensorWalk& walk, std::uint64_t granule);

/// Misses of each level, nearest first, in one pass over the walk after another.
struct WalkMisses
{
    std::vector<double> misses; ///< lines that the level did not have
    std::int64_t simulated = 0; ///< visits of a pass that were played
    bool isWhole = true;        ///< all of them
};
/// Errors: those of CacheSimulator.
Result<WalkMisses> walkMisses(const TensorWalk& walk, const std::vector<CacheGeometry>& levels,
                              std::int64_t limit = 1 << 17);

/// Bytes of the lines that are fetched between two visits of one line that are not neighbours: what a
/// cache must hold so that no line is fetched twice. 0 when every line is used up at once.
double reuseBytes(const TensorWalk& walk, std::uint64_t line);

} // namespace memscape
