// SPDX-License-Identifier: Apache-2.0
// Checkpointing by the number of states that are kept, on a chain whose steps are all equal.
//
// Revolve (Griewank and Walther 2000, ACM TOMS 26:1): s slots, each holds one state x_i; the first
// holds x_0. With s slots and each step advanced at most r times, β(s,r) = C(s+r, s) steps can be
// reversed. So
//     r = least r with β(s,r) ≥ L        advances p = r L − C(s+r, s+1)
// (forwards that save nothing; each step also runs once saving), and no schedule of states does
// with fewer. Of the schedules with p advances this one writes the fewest checkpoints.
//
// Mixed (Maddison 2024, arXiv 2304.04525): a slot may also hold all that one step saves, which then
// need not run again. Total forwards by the recursion over (steps, slots).
//
// On a chain the states are the x_i that stay, what a step saves is x̄_{i+1} (its x_i stays with
// it: the backward of a stage reads both). Free, and counted by the replay only: the value a
// forward is working on and what the one step being reversed saves. Unequal stages are treated as
// equal ones: the replay says what that costs.
#pragma once

#include "core/base/result.h"
#include "core/checkpoint/schedule.h"

#include <vector>

namespace memscape {

/// C(n, k), at most 2^62 (also for everything above).
std::int64_t binomial(std::int64_t n, std::int64_t k);

struct SlotPlan
{
    Schedule schedule;
    std::int64_t forwards = 0; ///< executions of any kind
    std::int64_t writes = 0;   ///< states put into slots, x_0 included (Revolve)
};

/// r and p of the closed form. length ≥ 1, slotCount ≥ 1.
std::int64_t revolveRepetitions(std::int64_t length, std::int64_t slotCount);
std::int64_t revolveAdvances(std::int64_t length, std::int64_t slotCount);

/// More operations than this are not written out.
inline constexpr std::int64_t slotForwardLimit = 4'000'000;
/// Cells (steps × slots × splits) that the table of the mixed variant may take.
inline constexpr std::int64_t mixedWorkLimit = 2'000'000'000;

/// Errors: chain.length (with what would work) when the schedule passes slotForwardLimit. More
/// slots than steps are as good as one per step.
Result<SlotPlan> revolve(int length, std::int64_t slotCount);

/// The table of the mixed variant for all numbers of slots up to `slotCount`.
class MixedTable
{
public:
    /// Errors: chain.length beyond mixedWorkLimit.
    static Result<MixedTable> make(int length, std::int64_t slotCount);
    std::int64_t forwards(std::int64_t slotCount) const; ///< in total, all steps
    Result<SlotPlan> plan(std::int64_t slotCount) const; ///< errors as revolve()
    std::int64_t largestSlots() const { return m_slots; }

private:
    MixedTable(int length, int slotCount);
    std::int64_t& cell(int steps, int slotCount)
    {
        return m_total[std::size_t(slotCount) * std::size_t(m_length + 1) + std::size_t(steps)];
    }
    std::int64_t total(int steps, int slotCount) const
    {
        return m_total[std::size_t(slotCount) * std::size_t(m_length + 1) + std::size_t(steps)];
    }
    int bestSplit(int steps, int slotCount) const;

    int m_length, m_slots;
    std::vector<std::int64_t> m_total; ///< [slots][steps]
};

} // namespace memscape
