// SPDX-License-Identifier: Apache-2.0
// Cache lines and pages that a walk over an array touches on a host: how much memory must move at
// least once, and how many address translations it takes. Closed forms (granules.h), so an array of
// terabytes costs no more than one of bytes.
//
// A walk visits the elements at offset, offset + stride, offset + 2·stride, … as far as they fit in
// the array: one pass. An array of structures is a walk whose stride is the structure and whose
// offset is the field; a misaligned walk has an offset that is no multiple of the element.
//
// Left out: eviction and reuse between passes (cache_simulator.h), prefetched lines that no load
// asked for, the write-allocate read of a store (count lines twice for stores without it).
#pragma once

#include "core/base/result.h"

#include <cstdint>

namespace memscape {

struct HostSizes
{
    std::uint64_t line = 64;
    std::uint64_t page = 4096; ///< 2 MiB with huge pages
};

/// A pass over an array of `bytes` that begins at a line and page border.
struct HostWalk
{
    std::uint64_t bytes = 0;
    std::uint64_t elementBytes = 4;
    std::uint64_t strideBytes = 4; ///< 0: the same element, as often as the array has elements
    std::uint64_t offsetBytes = 0; ///< of the first element
};

struct HostFootprint
{
    double accesses = 0;   ///< elements visited
    double lines = 0;      ///< distinct lines; an expectation for random
    double pages = 0;      ///< distinct pages
    double lineVisits = 0; ///< lines summed over elements: what is fetched if nothing stays cached
    double usedBytes = 0;  ///< distinct bytes asked for
    double movedBytes = 0; ///< distinct lines × line size

    double efficiency() const { return usedBytes / movedBytes; }
};

/// Exact counts of one strided pass, O(log page). Errors: access.element (0), access.bytes (not
/// even one element fits), access.granule (a line or page of 0), access.overflow.
Result<HostFootprint> stridedFootprint(const HostWalk& walk, const HostSizes& sizes = {});

/// Expected counts of `accesses` independent uniform draws among the whole elements of the array.
/// Errors as above, and access.count (no accesses).
Result<HostFootprint> randomFootprint(std::uint64_t bytes, std::uint64_t elementBytes, std::uint64_t accesses,
                                      const HostSizes& sizes = {});

} // namespace memscape
