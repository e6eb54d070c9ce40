// SPDX-License-Identifier: Apache-2.0
// Runs a schedule on a chain without running it: every operation's needs are checked, bytes and time are
// counted. Every solver's schedule goes through here, so a value that is shown is a value that was replayed.
//
//     memory during an operation = what is resident before it + what it makes + its overhead
//     makespan = Σ time of every forward, the loss and every backward
//
// x_0 is there at the start and counts; y_0 counts when it is made (Beaumont et al., arXiv 1911.13214).
#pragma once

#include "core/base/result.h"
#include "core/checkpoint/chain.h"
#include "core/checkpoint/schedule.h"

namespace memscape {

struct ReplayStep
{
    double begin = 0, end = 0;    ///< time
    std::int64_t during = 0;      ///< memory while it runs, overhead included
    std::int64_t after = 0;       ///< resident when it has ended
    bool isRecomputation = false; ///< a forward of a stage that ran before
};

struct Replay
{
    std::vector<ReplayStep> steps; ///< one per operation
    std::int64_t peak = 0;
    double makespan = 0;
    std::int64_t forwards = 0;   ///< forward executions of any kind
    std::int64_t recomputed = 0; ///< forwards − L
};

/// Errors: schedule.invalid, place "operation N", when something an operation needs is not there, an option
/// does not exist, a backward is out of order, missing or twice, or something is made that is there already.
Result<Replay> replay(const Chain& chain, const Schedule& schedule);

} // namespace memscape
