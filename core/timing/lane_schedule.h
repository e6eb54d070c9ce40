// SPDX-License-Identifier: Apache-2.0
// Lanes that work side by side, each through its own tasks in order: the kernels of a step beside its collectives. A
// task begins when the one before it in its lane has ended and every task that it waits for has got far enough.
//
// Left out: lanes that slow each other down, tasks that are interrupted.
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <vector>

namespace memscape {

struct LaneTask
{
    /// Another task that must have run for this share of its time: 1 has ended, 0 has begun.
    struct Wait
    {
        std::size_t lane = 0, task = 0;
        double share = 1;
    };

    double seconds = 0;
    std::vector<Wait> waits = {};
};

struct TaskSpan
{
    double begin = 0, end = 0; ///< s
};

/// When every task runs, beside `lanes`. Errors: timing.cycle where tasks wait for each other, or for one that is not
/// there.
Result<std::vector<std::vector<TaskSpan>>> scheduleLanes(const std::vector<std::vector<LaneTask>>& lanes);

} // namespace memscape
