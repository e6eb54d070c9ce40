// SPDX-License-Identifier: Apache-2.0
// How long one pass of an access pattern takes, and which limit holds it.
//
// Host: whole lines move, so  t = max(lines / line rate, accesses / issue rate).
//   line rate   from DRAM: calibrated against the distance between lines (prefetchers make it a
//               curve), else bandwidth / (64 B × ways moved), and beyond a page, where prefetchers
//               stop, at most cores × lines in flight / latency (Little's law)
//   issue rate  what the cores start per second when everything is in L1: calibrated, else one
//               element per cycle and thread for single elements, L1 bandwidth for neighbours
// Warm caches serve their share of the lines at their own rate (working_set.h).
//
// GPU: whole 32-byte sectors move,  t = launch + max(fetched bytes / bandwidth, latency bound).
//   bytes in flight = units × resident warps × fetched bytes per request × 4 loads; the bound is
//   Little's law. A calibrated device brings its own sector rates against stride.
//
// Left out: store buffers, page walks in the GPU, partial sector writes that read first, several
// processes.
#pragma once

#include "core/access/stride_case.h"
#include "core/base/quantity.h"

#include <string>
#include <string_view>

namespace memscape {

/// What holds a walk: the memory's rate, the instructions that ask for it, or how many loads are in flight.
enum class StrideLimit { Memory, Issue, Latency };
std::string_view limitText(StrideLimit limit); ///< "memory", "issue", "latency"

struct StrideTime
{
    double seconds = 0;
    double movedBytes = 0; ///< lines or sectors, written lines count twice on a host (fill, write back)
    double memoryRate = 0; ///< lines (host) or bytes (GPU) per second that the memory gives
    double issueRate = 0;  ///< accesses per second; hosts only
    StrideLimit limit = StrideLimit::Memory;
    std::string rateSource; ///< "calibrated on this machine", "catalogue: …"
};

/// Errors: predict.device with a hint when DRAM bandwidth is not known; access.*.
Result<StrideTime> strideTime(const Device& device, const StrideCase& walk);

/// Accesses per second that `threads` threads start when everything is in the nearest cache; hosts only.
/// Neighbours are loaded in vectors, others one by one.
double issueRate(const Device& device, Operation operation, std::uint64_t elementBytes, bool neighbours, int threads);

/// Lines per second that DRAM gives a walk with `pitchBytes` between lines; see above.
double dramLineRate(const Device& device, Operation operation, double pitchBytes, int threads,
                    std::string* source = nullptr);

} // namespace memscape
