// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/persistent_windows.h"

#include <algorithm>
#include <limits>

namespace memscape::persistent {

namespace {

constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

/// Beside x_i: the least that the backward of stage i needs.
std::int64_t leastBackward(const SlotChain& chain, int i)
{
    std::int64_t least = unbounded;
    for (const SaveOption& option : chain.stages[i].options)
        least = std::min(least, chain.values[i] + chain.values[i + 1] + option.saved + option.backwardOverhead);
    return least;
}

/// Beside x_s and y_{t+1}: the least that a forward of stage i needs, saving or not.
std::int64_t leastForward(const SlotChain& chain, int s, int i)
{
    std::int64_t least = chain.neededToPass(s, i);
    for (const SaveOption& option : chain.stages[i].options)
        least = std::min(least, (i == s ? 0 : chain.values[i]) + option.saved + option.forwardOverhead);
    return least;
}

} // namespace

std::vector<Window> segmentWindows(const SlotChain& chain, std::int64_t top)
{
    const Segments segments(chain.end);
    std::vector<Window> windows(segments.size());
    std::vector<std::int64_t> backward, forward;
    for (int i = 0; i <= chain.end; ++i) {
        backward.push_back(leastBackward(chain, i));
        forward.push_back(i == 0 ? 0 : leastForward(chain, i - 1, i));
    }
    for (int s = 0; s <= chain.end; ++s) {
        std::int64_t mostBackward = backward[s], mostForward = leastForward(chain, s, s);
        for (int t = s; t <= chain.end; ++t) {
            if (t > s) {
                mostBackward = std::max(mostBackward, chain.values[t] + backward[t]);
                mostForward = std::max(mostForward, forward[t]);
            }
            const std::int64_t least = std::max(mostBackward, chain.values[t + 1] + mostForward);
            windows[segments(s, t)].first = std::int32_t(std::min(least, top));
        }
    }
    for (int t = 0; t <= chain.end; ++t) {
        std::int64_t needed = 0;
        for (int s = t; s >= 0; --s) {
            needed = chain.neededToSaveFastest(s, t, needed).size;
            windows[segments(s, t)].last = std::int32_t(std::min(needed, top));
        }
    }
    return windows;
}

} // namespace memscape::persistent
