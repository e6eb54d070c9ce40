// SPDX-License-Identifier: Apache-2.0
// The optimal schedule of a chain among memory-persistent ones (a kept value stays until its own backward), and the
// least time for every amount of memory at once.
//
//     O(s,t,m): least time of stages s … t forward and backward in m beside x_s, with y_{t+1}
//     resident keep x_j: Σ_{s≤i<j} fw_i + O(j,t,m − x_j) + O(s,j−1,m),  s < j ≤ t
//               if m ≥ y_{t+1} + max(x_{s+1} + ftmp_s, max_{s<i<j} x_i + x_{i+1} + ftmp_i)
//     save s:   fw_s + bw_s + O(s+1,t,m − x̄_{s+1}) in each of the stage's ways
//               if m ≥ max(y_{t+1} + x̄_{s+1} + ftmp_s, y_s + y_{s+1} + x̄_{s+1} + btmp_s)
//
// Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova (arXiv 1911.13214), with several ways to save a
// stage as in Rockmate (Zhao et al.). The loss is stage L. O(0,L,·) is the whole front. Two ways to
// solve it: in whole slots of memory, sizes rounded up (schedules fit in bytes, and are optimal for
// the rounded sizes) or down (nothing is quicker: a bound); and exactly, in the steps that O falls in
// as memory grows, where these are not too many.
//
// Left out: schedules that drop a kept value and recompute it, which can be better (3 equal
// stages: 10 instead of 11 steps); that search is NP-hard.
#pragma once

#include "core/base/result.h"
#include "core/checkpoint/chain.h"
#include "core/checkpoint/schedule.h"
#include "core/checkpoint/slot_chain.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace memscape {

struct PersistentSettings
{
    int slotCount = 500;                             ///< the memory limit of a chain in bytes is divided into so many
    std::int64_t memoryLimit = 0;                    ///< largest budget to solve for; 0: what no recomputation needs
    std::int64_t tableLimit = std::int64_t(4) << 30; ///< B that the solver may take itself
    SlotRounding rounding = SlotRounding::Up;        ///< Down: makespans are lower bounds, schedules may not fit
    int vectorBytes = 64;                            ///< widest vectors to use, where the processor has them
    std::function<bool()> isCancelled = {};          ///< asked every few milliseconds at most; may be empty
};

/// Least makespan within a budget (of everything, x_0 included, in the chain's units of memory).
struct FrontPoint
{
    std::int64_t budget = 0;
    double makespan = 0;
};

namespace persistent {
class Table;
}

/// The solved table. Copies share it.
class PersistentSolution
{
public:
    PersistentSolution(std::shared_ptr<const persistent::Table> table);

    /// Smallest budget that the table has a schedule for.
    std::int64_t minimumBudget() const;
    /// From here on nothing is recomputed; exact, not rounded to slots. May be above the memory
    /// limit.
    std::int64_t budgetWithoutRecomputation() const;
    /// From minimumBudget() to budgetWithoutRecomputation() or the memory limit: one point a slot, or,
    /// solved exactly, the first and the last budget of every step.
    std::vector<FrontPoint> front() const;
    /// The front at this budget. Of whole-number times exactly what the schedule's replay says, of
    /// others to the rounding of their sums. Errors: checkpoint.budget.
    Result<double> makespan(std::int64_t budget) const;
    /// An optimal schedule: found again from the table by walking it back, O(L²).
    /// Budgets above the memory limit get the limit's. Errors: checkpoint.budget, below the
    /// minimum, which is named.
    Result<Schedule> schedule(std::int64_t budget) const;

    std::int64_t slot() const;        ///< the size of a slot in the chain's units of memory
    bool isExact() const;             ///< no size was rounded
    std::int64_t tableBytes() const;  ///< what the table keeps
    std::int64_t solverBytes() const; ///< the most that solving took

private:
    std::shared_ptr<const persistent::Table> m_table;
};

/// O(L³ slots / 6) time, O(L² slots / 2) memory, whole-number times exactly.
/// Errors: chain.* (see checkChain), checkpoint.budget (the limit is too small for any schedule;
/// names the least), checkpoint.size (before anything is allocated), checkpoint.slots,
/// checkpoint.cancelled.
Result<PersistentSolution> solvePersistent(const Chain& chain, const PersistentSettings& settings = {});

struct ExactSettings
{
    /// Steps that may be looked at, some nanoseconds each.
    std::int64_t work = 30'000'000;
    std::function<bool()> isCancelled = {};
};

/// Longer chains are not tried exactly: a table over their segments alone is too large.
inline constexpr int exactLengthLimit = 1000;

/// The whole front on exact sizes, without slots (persistent_exact.h): at once where few stages
/// differ, as in networks; refused where the steps become too many. Errors: chain.*,
/// checkpoint.size, checkpoint.cancelled.
Result<PersistentSolution> solveExactly(const Chain& chain, const ExactSettings& settings = {});

/// Up to this length a limit that is too small is answered with the exact least budget.
inline constexpr int exactMinimumLength = 1000;

/// The least budget that any persistent schedule needs, exactly, without slots: O(L³) time, O(L²)
/// memory. The chain has passed checkChain.
std::int64_t minimumPersistentBudget(const Chain& chain);

} // namespace memscape
