// SPDX-License-Identifier: Apache-2.0
// The solved recursion: for every segment and memory the time beyond saving everything ("extra"), as whole
// numbers where the times are whole and all sums stay exact, as doubles where not. Arg-mins are not stored;
// walking back finds them again.
#pragma once

#include "core/base/result.h"
#include "core/checkpoint/persistent.h"
#include "core/checkpoint/persistent_windows.h"

#include <limits>
#include <memory>
#include <optional>
#include <variant>

namespace memscape {

/// Sums of two stay representable, and what is infeasible stays far above what is not.
template<typename Cost> inline constexpr Cost infeasible = std::numeric_limits<Cost>::infinity();
template<> inline constexpr std::int32_t infeasible<std::int32_t> = (1 << 30) - 1;
/// Everything feasible is below.
template<typename Cost> inline constexpr Cost costLimit = std::numeric_limits<Cost>::max();
template<> inline constexpr std::int32_t costLimit<std::int32_t> = 1 << 29;

/// The extra times inside the windows, one segment after the other.
template<typename Cost>
struct CostTable
{
    std::vector<std::size_t> starts;  ///< per segment: `cells[starts[segment] + m]`, first ≤ m < last (may wrap)
    std::unique_ptr<Cost[]> cells;
    std::size_t size = 0;
};

class PersistentTable
{
public:
    SlotChain chain;
    bool isBytes = true;
    bool isWhole = true;                   ///< the limit is what no recomputation needs, or more
    std::int64_t top = 0;                  ///< m < top are solved
    std::int64_t first = 0;                ///< the first m that O(0,L,·) is feasible for; `top` when none is
    std::int64_t withoutRecomputation = 0; ///< exact budget, in the chain's units
    Schedule saveAll;                      ///< the schedule of that budget
    std::vector<Window> windows;
    std::variant<CostTable<std::int32_t>, CostTable<double>> costs;
    std::int64_t solverBytes = 0;

    /// Time of segment s … t beyond Σ fastest, infinite when it can't run in m beside x_s.
    double extra(int s, int t, std::int64_t m) const;
    std::int64_t firstFeasible() const;
    /// The m of a budget; those above the largest count as the largest. Errors: checkpoint.budget.
    Result<std::int64_t> slotsOf(std::int64_t budget) const;
};

/// B beside the cells, per segment: windows and starts.
template<typename Cost> inline constexpr std::size_t fillBytesPerSegment = sizeof(Window) + sizeof(std::size_t);

/// Fills the table; nothing when it was cancelled.
template<typename Cost>
std::optional<CostTable<Cost>> fillCosts(const SlotChain& chain, const std::vector<Window>& windows, std::int64_t top,
                                         const std::function<bool()>& isCancelled);
extern template std::optional<CostTable<std::int32_t>> fillCosts(const SlotChain&, const std::vector<Window>&, std::int64_t,
                                                                 const std::function<bool()>&);
extern template std::optional<CostTable<double>> fillCosts(const SlotChain&, const std::vector<Window>&, std::int64_t,
                                                           const std::function<bool()>&);

/// Walks O(0,L,m) back: the arg-min of every segment on the way, found again.
Schedule walkBack(const PersistentTable& table, std::int64_t m);

} // namespace memscape
