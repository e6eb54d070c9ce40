// SPDX-License-Identifier: Apache-2.0
// One access pattern of the experiment `stride`: which elements of which array are touched. The prediction, every
// backend's kernel and the picture read the pattern from here, so they cannot mean different things.
//
//   strided      element i at offset + i · stride · e, as many as fit in `bytes`; stride 0 is the
//                same element again and again, as often as the array has elements
//   contiguous   stride 1; misaligned: stride 1 from `offset` bytes on
//   aos          one field of structures of `stride` fields: the strided walk
//   soa          the same field of the same number of structures, stored contiguously
//   random       one uniformly drawn element per 64 bytes of the array
// A copy walks two arrays of `bytes` in the same way and counts what it reads and what it writes.
#pragma once

#include "core/access/host_lines.h"
#include "core/access/warp.h"
#include "core/device/device.h"

#include <compare>
#include <cstdint>

namespace memscape {

enum class Pattern { Contiguous, Strided, Random, Misaligned, Aos, Soa };

struct StrideCase
{
    Pattern pattern = Pattern::Strided;
    Operation operation = Operation::Read;
    std::uint64_t elementBytes = 4;
    std::uint64_t stride = 1; ///< elements, as given; the number of fields for aos and soa
    std::uint64_t offsetBytes = 0;
    std::uint64_t arrayBytes = 0; ///< of one array
    std::uint64_t accesses = 0;   ///< elements touched in one pass (per array)
    std::uint64_t pitchBytes = 0; ///< between neighbours in the walk; 0 for random and stride 0
    int threads = 0;              ///< 0: all
    bool cold = true;             ///< caches flushed before each sample

    auto operator<=>(const StrideCase&) const = default;

    int arrays() const { return operation == Operation::Copy ? 2 : 1; }
    /// Bytes the program accesses in one pass: accesses × element, both ways for a copy.
    double usefulBytes() const;
    /// Bytes of memory that the arrays take: the peak of a run, which allocates nothing else.
    double memoryBytes() const;
    /// Threads of `device` that take part.
    int threadsOn(const Device& device) const;
};

/// `walk` with its pitch and accesses worked out from the rest. Errors: access.bytes when not one
/// element fits behind the offset.
Result<StrideCase> completed(StrideCase walk);

/// The first request of 32 neighbouring accesses, resolved: the picture's state. The random pattern
/// is one draw with seed 1.
Result<WarpAccess> firstRequest(const StrideCase& walk, const GranuleSizes& sizes);

/// Counts per request of 32 neighbouring accesses; expectations for random.
Result<WarpCounts> requestCounts(const StrideCase& walk, const GranuleSizes& sizes);

/// What one pass touches of one array on a host.
Result<HostFootprint> hostFootprint(const StrideCase& walk, const HostSizes& sizes);

} // namespace memscape
