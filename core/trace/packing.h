// SPDX-License-Identifier: Apache-2.0
// Offline packing: the whole trace is known, so each block gets its place before the first request. Finding the
// smallest arena is dynamic storage allocation, NP-hard (Garey and Johnson 1979, SR2); two heuristics:
//
//   largest first      blocks by size, largest first, each at the lowest address that is free during its whole life
//                      ("greedy by size for offset calculation", Pisarchyk and Lee 2020, arXiv:2001.03288)
//   lifetime colouring blocks whose lives overlap need different buffers: colours of an interval graph. In order of
//                      their beginning, each takes the free buffer that has to grow least (left-edge colouring;
//                      as few buffers as blocks are ever alive at once), and a buffer is as large as its largest block
//
// Neither can go below the most bytes that are alive at once. Sizes are rounded up to 512 B, as a GPU aligns them.
// Left out: the optimum, which the bound is often equal to.
#pragma once

#include "core/trace/memory_policy.h"

namespace memscape {

struct Packing
{
    std::int64_t bytes = 0;              ///< of the arena
    std::vector<std::int64_t> offsets;   ///< by BlockId
    std::vector<std::int64_t> sizes;     ///< by BlockId, as placed: rounded
    std::size_t buffers = 1;             ///< that blocks share; 1: one arena
    std::vector<std::int64_t> starts{0}; ///< offset of each buffer, rising
};

/// More blocks than this are not packed largest first: each is compared with all that lie below it.
inline constexpr std::size_t mostPackedBlocks = 60'000;

/// Errors: packing.length, predict.cancelled.
Result<Packing> packLargestFirst(const RequestTrace& trace);
/// Errors: predict.cancelled.
Result<Packing> colourLifetimes(const RequestTrace& trace);

/// An allocator that follows a plan: all of it is taken at the first request.
std::unique_ptr<MemoryPolicy> makePlanned(Packing plan, std::optional<std::int64_t> limit = {});

} // namespace memscape
