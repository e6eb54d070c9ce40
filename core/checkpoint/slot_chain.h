// SPDX-License-Identifier: Apache-2.0
// A chain as the persistent solver's recursion reads it: sizes in whole slots, the loss as one more
// stage that saves nothing, and zeros beyond the end, so that no formula needs a special case.
#pragma once

#include "core/checkpoint/chain.h"

namespace memscape {

/// An amount of memory, and the way to save that it belongs to.
struct SlotNeed
{
    std::int64_t size = 0;
    int option = 0;
};

struct SlotChain
{
    int end = 0;                      ///< L: the loss is stage `end`
    std::int64_t slot = 1;            ///< the chain's units of memory in a slot
    std::vector<std::int64_t> values; ///< L + 2: the size of x_i and y_i, 0 for i = L + 1
    std::vector<Stage> stages;        ///< L + 1
    std::vector<double> fastest;      ///< L + 1: min over the ways of forward + backward
    std::vector<double> passed;       ///< L + 2: Σ_{i<j} of plain forward times
    double base = 0;                  ///< Σ fastest: nothing is recomputed

    /// Every time is a whole number.
    bool hasWholeTimes() const;

    /// Needed beside x_s to run stage s forward and backward in this way, y_{t+1} resident.
    std::int64_t neededToSave(int s, int t, const SaveOption& option) const;
    /// The part of what passing stages s … j−1 without saving needs beside x_s and y_{t+1} that
    /// stage i has.
    std::int64_t neededToPass(int s, int i) const;
    /// Saving stage s in one of its fastest ways, when stages s+1 … t need `after` beside what it
    /// saves.
    SlotNeed neededToSaveFastest(int s, int t, std::int64_t after) const;
};

/// What becomes of a size that is no whole number of slots. Up: schedules fit. Down: what is found
/// is quicker than any schedule, or as quick; its schedules may not fit.
enum class SlotRounding { Up, Down };

/// Every size divided by `slot`.
SlotChain discretise(const Chain& chain, std::int64_t slot, SlotRounding rounding = SlotRounding::Up);

/// Whether every size is a whole number of slots, so that nothing is rounded.
bool dividesSizes(const Chain& chain, std::int64_t slot);

/// The size of a slot: 1 for abstract units; else the largest size that divides all of them, if
/// `limit` then has at most `slotCount`, and limit / slotCount rounded up if not.
std::int64_t slotSize(const Chain& chain, std::int64_t limit, int slotCount);

} // namespace memscape
