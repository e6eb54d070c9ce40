// SPDX-License-Identifier: Apache-2.0
// Online eviction, without a plan: everything is saved until memory is short, then whatever is
// cheapest by
//
//     h = cost / (size × staleness)
//
// goes, and is made again when something needs it (Kirisame et al. 2021, "Dynamic tensor
// rematerialization", DTR). cost: forwards that bring it back, those of its discarded neighbours
// included; staleness: time since it was last read. A heuristic: it looks at the past only, and no
// bound holds for one chain. On a chain its things are the values x_i and what the stages save,
// x̄_i; x_0 and gradients can't be made again and stay.
//
// Left out: fragmentation (Coop), and that finding the least h takes time itself.
#pragma once

#include "core/base/result.h"
#include "core/checkpoint/chain.h"
#include "core/checkpoint/schedule.h"

namespace memscape {

/// Operations, and looks at resident things, after which the heuristic stops.
inline constexpr std::size_t adaptiveOperationLimit = 1'000'000;
inline constexpr std::int64_t adaptiveLookLimit = 1'000'000'000;

/// Errors: checkpoint.budget when at some operation everything that may go has gone and it still
/// does not fit (a planned schedule may fit where this one does not); chain.length when it stops.
Result<Schedule> adaptiveSchedule(const Chain& chain, std::int64_t budget);

} // namespace memscape
