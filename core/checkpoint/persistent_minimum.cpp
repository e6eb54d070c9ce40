// SPDX-License-Identifier: Apache-2.0
// The recursion with time left out: the least memory in which a segment can run at all.
#include "core/checkpoint/persistent.h"
#include "core/checkpoint/persistent_windows.h"

#include <algorithm>
#include <limits>

namespace memscape {

std::int64_t minimumPersistentBudget(const Chain& chain)
{
    const SlotChain exact = discretise(chain, 1);
    const persistent::Segments segments(exact.end);
    // By beginning and by end: the inner loop reads one row of each.
    std::vector<std::int64_t> least(segments.size()), byEnd(segments.size());
    const auto endIndex = [](int s, int t) { return std::size_t(t) * std::size_t(t + 1) / 2 + std::size_t(s); };
    for (int s = exact.end; s >= 0; --s) {
        for (int t = s; t <= exact.end; ++t) {
            std::int64_t best = std::numeric_limits<std::int64_t>::max();
            for (const SaveOption& option : exact.stages[s].options) {
                const std::int64_t after = s == t ? 0 : least[segments(s + 1, t)];
                best = std::min(best, std::max(exact.neededToSave(s, t, option), option.saved + after));
            }
            std::int64_t passing = 0;
            for (int j = s + 1; j <= t; ++j) {
                passing = std::max(passing, exact.values[t + 1] + exact.neededToPass(s, j - 1));
                if (passing >= best)
                    break; // it only grows
                best = std::min(
                    best, std::max({passing, exact.values[j] + byEnd[endIndex(j, t)], least[segments(s, j - 1)]}));
            }
            least[segments(s, t)] = byEnd[endIndex(s, t)] = best;
        }
    }
    return exact.values[0] + least[segments(0, exact.end)];
}

} // namespace memscape
