// SPDX-License-Identifier: Apache-2.0
// Chains for the pointer chase: one random cycle through all nodes (Sattolo, 1986: swap each
// element with an earlier one, never with itself), so that a chase visits every node before it
// repeats and no prefetcher can guess the next. A plain shuffle would make several shorter cycles.
// C++17.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace memscape::cuda {

/// The successor of each of `count` nodes, one cycle of length `count`; the same seed, the same
/// chain.
inline std::vector<std::uint32_t> sattoloCycle(std::uint32_t count, std::uint64_t seed)
{
    std::vector<std::uint32_t> next(count);
    for (std::uint32_t i = 0; i < count; ++i)
        next[i] = i;
    std::uint64_t state = seed;
    for (std::uint32_t i = count; i-- > 1;) {
        // SplitMix64 (Steele, Lea, Flood 2014); the high half scaled to 0 … i-1.
        state += 0x9e3779b97f4a7c15ULL;
        std::uint64_t z = state;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        z ^= z >> 31;
        const auto j = static_cast<std::uint32_t>(((z >> 32) * i) >> 32);
        std::swap(next[i], next[j]);
    }
    return next;
}

} // namespace memscape::cuda
