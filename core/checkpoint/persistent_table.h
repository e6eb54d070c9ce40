// SPDX-License-Identifier: Apache-2.0
// The solved recursion: for every segment and memory the time beyond saving everything ("extra"),
// as whole numbers where the times are whole and all sums stay exact, as doubles where not.
// Arg-mins are not stored; walking back finds them again.
#pragma once

#include "core/base/result.h"
#include "core/checkpoint/persistent.h"
#include "core/checkpoint/persistent_exact.h"
#include "core/checkpoint/persistent_tiles.h"
#include "core/checkpoint/persistent_windows.h"

#include <limits>
#include <memory>
#include <optional>
#include <variant>

namespace memscape::persistent {

/// The extra times inside the windows, one segment after the other.
template <typename Cost> struct CostTable
{
    std::vector<std::size_t> starts; ///< per segment: `cells[starts[segment] + m]`, first ≤ m < last (may wrap)
    std::unique_ptr<Cost[]> cells;
    std::size_t size = 0;
    std::size_t bytes() const { return size * sizeof(Cost); }
};

class Table
{
public:
    SlotChain chain;
    bool isBytes = true;
    bool isExact = false;                  ///< no size was rounded
    bool isWhole = true;                   ///< the limit is what no recomputation needs, or more
    std::int64_t limit = 0;                ///< the largest budget, in the chain's units
    std::int64_t top = 0;                  ///< m < top are solved
    std::int64_t first = 0;                ///< the first m that O(0,L,·) is feasible for; `top` when none is
    std::int64_t withoutRecomputation = 0; ///< exact budget, in the chain's units
    Schedule saveAll;                      ///< the schedule of that budget
    std::vector<Window> windows;
    std::variant<CostTable<std::int32_t>, CostTable<double>, ExactTable> costs; ///< the last has no windows
    std::int64_t solverBytes = 0;

    /// Time of segment s … t beyond Σ fastest, infinite when it can't run in m beside x_s.
    double extra(int s, int t, std::int64_t m) const;
    std::int64_t firstFeasible() const;
    /// The m of a budget; those above the largest count as the largest. Errors: checkpoint.budget.
    Result<std::int64_t> slotsOf(std::int64_t budget) const;
};

/// B beside the cells, per segment: its window, where it starts, and two blocks of memory while it
/// is filled.
template <typename Cost>
inline constexpr std::size_t fillBytesPerSegment = sizeof(Window) + sizeof(std::size_t) + sizeof(std::int32_t)
    + 2 * laneCount * sizeof(Cost);

/// Fills the table; nothing when it was cancelled.
template <typename Cost>
std::optional<CostTable<Cost>> fillCosts(const SlotChain& chain, const std::vector<Window>& windows, std::int64_t top,
                                         const PersistentSettings& settings);
extern template std::optional<CostTable<std::int32_t>> fillCosts(const SlotChain&, const std::vector<Window>&,
                                                                 std::int64_t, const PersistentSettings&);
extern template std::optional<CostTable<double>> fillCosts(const SlotChain&, const std::vector<Window>&, std::int64_t,
                                                           const PersistentSettings&);

/// Walks O(0,L,m) back: the arg-min of every segment on the way, found again.
Schedule walkBack(const Table& table, std::int64_t m);

} // namespace memscape::persistent
