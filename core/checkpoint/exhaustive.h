// SPDX-License-Identifier: Apache-2.0
// The true optimum of a tiny chain, by looking at everything: the shortest path (Dijkstra) over
// what is resident and which backward is due. Any value may go at any time, so this is not the
// optimum among persistent schedules that the dynamic program finds, and sometimes less (3 equal
// stages: 10 against 11). States grow as 4^L, hence the limit.
#pragma once

#include "core/base/result.h"
#include "core/checkpoint/chain.h"
#include "core/checkpoint/schedule.h"

namespace memscape {

inline constexpr int exhaustiveLengthLimit = 7;

/// A schedule of least makespan within the budget among all that the replay accepts. Errors:
/// chain.* of checkChain, chain.length beyond exhaustiveLengthLimit, checkpoint.budget when no
/// schedule fits.
Result<Schedule> exhaustiveSchedule(const Chain& chain, std::int64_t budget);

} // namespace memscape
