// SPDX-License-Identifier: Apache-2.0
// The pointer chase: how long one dependent load takes. See chase.cpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace memscape::host {

/// One cache line with the address of the next one to visit.
struct alignas(64) ChaseNode
{
    const ChaseNode* next;
};
static_assert(sizeof(ChaseNode) == 64);

struct ChaseOptions
{
    /// 0: one random cycle over everything. Otherwise random within windows of this many bytes, which
    /// are visited in order: only one window's pages are needed at a time.
    std::size_t windowBytes = 0;
    std::uint64_t seed = 1;
};

using StopFlag = std::function<bool()>; ///< true: give up

/// Links the whole lines of `memory` into one cycle, on the calling thread (which thereby touches the
/// pages first). Two nodes at least. Null when `stop` said so.
const ChaseNode* buildChase(std::span<std::byte> memory, const ChaseOptions& options, const StopFlag& stop);

/// Follows `loads` pointers (rounded up to whole unrolled groups) and returns where that ends.
const ChaseNode* chase(const ChaseNode* start, std::size_t loads);
const ChaseNode* chase_v1(const ChaseNode* start, std::size_t loads);
const ChaseNode* chase_v2(const ChaseNode* start, std::size_t loads);
inline constexpr std::size_t chaseGroup = 32; ///< loads of one unrolled group of v2

/// Empty when the nodes form exactly one cycle over all of them and it stays inside its windows;
/// otherwise what is wrong.
std::string checkChase(std::span<const std::byte> memory, const ChaseOptions& options);

} // namespace memscape::host
