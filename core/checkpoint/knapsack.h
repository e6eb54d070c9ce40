// SPDX-License-Identifier: Apache-2.0
// Selective recomputation as a knapsack: of all stages keep those whose recomputation would cost
// the most, as long as what they save stays within a budget of bytes. That budget is of what lies
// between forward and backward pass (the activation_memory_budget of PyTorch's partitioner), not of
// the peak: what is not kept is recomputed in the backward pass and is in memory there beside what is kept. The replay
// shows that peak.
//
//     maximise Σ runtime_i over kept i      with Σ memory_i ≤ capacity
//
// exactly, by dynamic programming over the capacity; sizes rounded up and the capacity down where
// it is divided into slots, so that a plan never passes it. The greedy choice (most runtime per byte first) is given
// beside it.
#pragma once

#include "core/base/result.h"
#include "core/checkpoint/chain.h"
#include "core/checkpoint/schedule.h"

namespace memscape {

struct KnapsackItem
{
    std::int64_t memory = 0;
    double runtime = 0;
};

struct Selection
{
    std::vector<bool> kept;
    std::int64_t memory = 0; ///< Σ of the kept
    double runtime = 0;
};

/// Items × slots of the table at most.
inline constexpr std::int64_t knapsackCellLimit = 400'000'000;

/// Every capacity's best selection from one table.
class Knapsack
{
public:
    /// The table up to `capacity`, divided into `slotCount` (0: one slot a unit, exact). Errors:
    /// chain.length when the table passes knapsackCellLimit, with what would work.
    static Result<Knapsack> make(std::vector<KnapsackItem> items, std::int64_t capacity, std::int64_t slotCount = 0);

    std::int64_t slotCount() const { return m_slots; }
    std::int64_t unit() const { return m_unit; }
    /// The most valuable selection within `slot` slots, 0 ≤ slot ≤ slotCount().
    Selection best(std::int64_t slot) const;

private:
    Knapsack(std::vector<KnapsackItem> items, std::int64_t slotCount, std::int64_t unit);
    std::int64_t weight(std::size_t item) const { return (m_items[item].memory + m_unit - 1) / m_unit; }

    std::vector<KnapsackItem> m_items;
    std::int64_t m_slots, m_unit;
    std::vector<bool> m_takes; ///< [item][slot]
};

/// Most runtime per byte first, taking whatever still fits.
Selection greedySelection(const std::vector<KnapsackItem>& items, std::int64_t capacity);

/// What keeping each stage of a chain costs and saves: x̄_{i+1} and its forward's time.
std::vector<KnapsackItem> stageItems(const Chain& chain);

/// Whether the inputs of stages that are not kept stay, so that each is made again alone, or go, so
/// that runs of such stages are made again together when a backward needs them: less between the
/// passes, more within the second.
enum class Borders { Kept, Dropped };

/// Kept stages are saved in the first pass; each of the others runs twice.
Schedule selectiveSchedule(const std::vector<bool>& kept, Borders borders);

} // namespace memscape
