// SPDX-License-Identifier: Apache-2.0
// How long does one load take when the next address is not known before it has arrived?
//
// Nodes of one cache line hold the address of the next node. They form a single random cycle (Sattolo),
// so no prefetcher can guess it, every line is visited once a lap, and no short cycle can hide in the
// cache. Time / loads is the latency of the level that the array fits in.
//
//   v1  one load per turn of the loop: teaches that the loop itself hides behind a 4-cycle load
//   v2  32 loads per turn: teaches that nothing but the load is left
//
// Three ways to lay the cycle, because a load has to be translated before it can be served: random over
// small pages (every load misses the TLB when the array is large), random over huge pages, and random
// inside windows of 256 KiB that are visited in order (translation is nearly free). A core may fetch lines in pairs of
// 128 B (Intel's spatial prefetcher: 64-ia-32 Optimization Reference Manual, "Data Prefetching"), which would serve
// every other load of a window from L2. So each window is visited twice a lap, first for one line of each pair, and for
// the other when the rest of the array has been visited.
//
// Left out: loads that are not aligned, other cores' dirty lines, NUMA distance.
#include "kernels/host/hierarchy/chase.h"

#include "core/base/rounding.h"
#include "kernels/host/common/permutation.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace memscape::host {

// --- Reference: walk the cycle and count ----------------------------------------------------------

std::string checkChase(std::span<const std::byte> memory, const ChaseOptions& options)
{
    const std::size_t count = memory.size() / sizeof(ChaseNode);
    const auto* const nodes = reinterpret_cast<const ChaseNode*>(memory.data());
    const std::size_t window = std::max<std::size_t>(options.windowBytes / sizeof(ChaseNode), 1);
    std::vector<bool> seen(count);
    std::size_t at = 0, crossings = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (seen[at])
            return fmt::format("node {} comes again after {} of {} loads", at, i, count);
        seen[at] = true;
        const auto* const next = nodes[at].next;
        if (next < nodes || next >= nodes + count)
            return fmt::format("node {} points out of the array", at);
        const auto to = static_cast<std::size_t>(next - nodes);
        if (at / window != to / window)
            ++crossings;
        at = to;
    }
    if (at != 0)
        return "the cycle does not close";
    const std::size_t windows = quotientUp(count, window);
    if (options.windowBytes > 0 && windows > 1 && crossings > 2 * windows) // each is visited twice
        return fmt::format("{} steps leave a window, at most {} expected", crossings, 2 * windows);
    return {};
}

// --- Layouts --------------------------------------------------------------------------------------

namespace {

constexpr std::size_t loadsBetweenStops = std::size_t{1} << 18; // a few milliseconds

std::uint64_t below(std::uint64_t& state, std::uint64_t limit)
{
    // Multiply and shift instead of a division; `limit` is below 2^32, so nothing overflows.
    return ((nextRandom(state) >> 32) * limit) >> 32;
}

/// Sattolo's algorithm over 32-bit indices (16 times denser than the nodes), which leaves the successor
/// of every node; then the nodes are written in order.
const ChaseNode* buildRandom(std::span<ChaseNode> nodes, std::uint64_t seed, const StopFlag& stop)
{
    std::vector<std::uint32_t> successor(nodes.size());
    std::iota(successor.begin(), successor.end(), 0u);
    for (std::size_t i = nodes.size() - 1; i > 0; --i) {
        std::swap(successor[i], successor[below(seed, i)]);
        if (i % loadsBetweenStops == 0 && stop())
            return nullptr;
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        nodes[i].next = &nodes[successor[i]];
        if (i % loadsBetweenStops == 0 && stop())
            return nullptr;
    }
    return nodes.data();
}

/// A random path through the even lines of every window, its end joined to the start of the next window's; then the
/// same through the odd lines.
const ChaseNode* buildWindows(std::span<ChaseNode> nodes, const ChaseOptions& options, const StopFlag& stop)
{
    const std::size_t window = std::max<std::size_t>(options.windowBytes / sizeof(ChaseNode), 2);
    std::uint64_t seed = options.seed;
    std::vector<std::size_t> order;
    ChaseNode *first = nullptr, *last = nullptr;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        for (std::size_t begin = 0; begin < nodes.size(); begin += window) {
            order.clear();
            for (std::size_t at = begin + (begin + side) % 2; at < std::min(begin + window, nodes.size()); at += 2)
                order.push_back(at);
            for (std::size_t i = order.size(); i > 1; --i)
                std::swap(order[i - 1], order[below(seed, i)]);
            for (const std::size_t at : order) {
                if (last)
                    last->next = &nodes[at];
                else
                    first = &nodes[at];
                last = &nodes[at];
            }
            if (stop())
                return nullptr;
        }
    }
    last->next = first;
    return nodes.data();
}

} // namespace

const ChaseNode* buildChase(std::span<std::byte> memory, const ChaseOptions& options, const StopFlag& stop)
{
    const std::span<ChaseNode> nodes(reinterpret_cast<ChaseNode*>(memory.data()), memory.size() / sizeof(ChaseNode));
    if (nodes.size() < 2)
        return nullptr;
    if (options.windowBytes == 0)
        return buildRandom(nodes, options.seed, stop);
    return buildWindows(nodes, options, stop);
}

// --- Kernels --------------------------------------------------------------------------------------

/// One load a turn.
const ChaseNode* chase_v1(const ChaseNode* start, std::size_t loads)
{
    const ChaseNode* node = start;
    for (std::size_t i = 0; i < loads; ++i) {
        node = node->next;
        asm volatile("" : "+r"(node));
    }
    return node;
}

/// 32 loads a turn; the empty assembly only forbids the compiler to look through the chain.
const ChaseNode* chase_v2(const ChaseNode* start, std::size_t loads)
{
    const ChaseNode* node = start;
    for (std::size_t i = 0; i < loads; i += chaseGroup) {
#pragma GCC unroll 32
        for (std::size_t j = 0; j < chaseGroup; ++j)
            node = node->next;
        asm volatile("" : "+r"(node));
    }
    return node;
}

const ChaseNode* chase(const ChaseNode* start, std::size_t loads)
{
    return chase_v2(start, loads);
}

} // namespace memscape::host
