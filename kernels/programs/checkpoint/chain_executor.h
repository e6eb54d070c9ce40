// SPDX-License-Identifier: Apache-2.0
// A schedule, run for real: the same operations that core/checkpoint/replay.h counts, on arrays
// that are taken from a pool and given back, forward, backward and weight gradients. What comes
// back has the shape of a replay, so that predicted and measured lie on one axis; the bytes are
// what the pool counted.
#pragma once

#include "core/checkpoint/replay.h"
#include "kernels/programs/checkpoint/mlp_device.h"

namespace memscape {

struct ExecutionOptions
{
    /// Arrays are filled with not-a-numbers when they are taken and when they are given back. For
    /// checks: it takes time.
    bool isPoisoned = false;
    bool isDigested = false; ///< gradients are digested after their backward
    std::function<void(std::size_t operation)> progress = {};
};

struct Execution
{
    Replay replay;                      ///< measured: times in s, bytes of the pool
    double loss = 0;                    ///< when digested
    std::vector<std::uint64_t> digests; ///< when digested: dW_i and db_i by stage, then y_0
};

/// Runs `schedule` on the first shape.length stages of the device. The pool has
/// `arenaBytes`. Errors: schedule.invalid (place "operation N") before the machine does anything
/// wrong, run.memory when the arena is too small, run.cancelled, those of the device.
Result<Execution> execute(MlpDevice& device, const MlpShape& shape, std::int64_t arenaBytes, const Schedule& schedule,
                          const ExecutionOptions& options = {});

/// The schedules that checks and profiles run: everything saved in one of the ways; and all inputs
/// kept, every stage made again just before its backward.
Schedule saveEverything(int length, MlpSave way = MlpSave::All);
Schedule keepInputs(int length);

} // namespace memscape
