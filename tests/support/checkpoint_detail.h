// SPDX-License-Identifier: Apache-2.0
// The detail of a `checkpoint` prediction for tests of what is drawn from it: schedules that are written
// down here or found by the solver, replayed, so that every number belongs to the schedule.
#pragma once

#include "core/base/number.h"
#include "core/checkpoint/persistent.h"
#include "core/checkpoint/replay.h"

#include <nlohmann/json.hpp>

#include <stdexcept>

namespace memscape {

/// Everything is saved on the way forward; nothing runs twice.
inline Schedule storeEverything(int length)
{
    Schedule schedule;
    for (int i = 0; i < length; ++i)
        schedule.push_back({OperationKind::ForwardSave, i, 0});
    schedule.push_back({OperationKind::Loss, length, 0});
    for (int i = length - 1; i >= 0; --i)
        schedule.push_back({OperationKind::Backward, i, 0});
    return schedule;
}

/// Only x_0 is kept: each backward starts from the beginning.
inline Schedule keepNothing(int length)
{
    Schedule schedule;
    for (int end = length - 1; end >= 0; --end) {
        for (int i = 0; i < end; ++i)
            schedule.push_back({i == 0 ? OperationKind::ForwardKeep : OperationKind::ForwardDrop, i, 0});
        schedule.push_back({OperationKind::ForwardSave, end, 0});
        if (end == length - 1)
            schedule.push_back({OperationKind::Loss, length, 0});
        schedule.push_back({OperationKind::Backward, end, 0});
    }
    return schedule;
}

/// The inputs of segments of that many stages are kept; each segment but the last is run again.
inline Schedule segments(int length, int each)
{
    Schedule schedule;
    const int lastBegin = (length - 1) / each * each;
    for (int i = 0; i < lastBegin; ++i)
        schedule.push_back({i % each == 0 ? OperationKind::ForwardKeep : OperationKind::ForwardDrop, i, 0});
    for (int begin = lastBegin, end = length; begin >= 0; end = begin, begin -= each) {
        for (int i = begin; i < end; ++i)
            schedule.push_back({OperationKind::ForwardSave, i, 0});
        if (end == length)
            schedule.push_back({OperationKind::Loss, length, 0});
        for (int i = end - 1; i >= begin; --i)
            schedule.push_back({OperationKind::Backward, i, 0});
    }
    return schedule;
}

inline Schedule optimalSchedule(const Chain& chain, std::int64_t budget)
{
    return *solvePersistent(chain)->schedule(budget);
}

inline Json scheduleDetail(const Chain& chain, const Schedule& schedule, std::int64_t budget)
{
    const auto run = replay(chain, schedule);
    if (!run)
        throw std::runtime_error(run.error().text());
    Json operations = Json::array();
    for (std::size_t k = 0; k < schedule.size(); ++k) {
        const ReplayStep& step = run->steps[k];
        operations.push_back({{"operation", operationText(schedule[k].kind)},
                              {"stage", schedule[k].stage},
                              {"option", schedule[k].option},
                              {"begin", step.begin},
                              {"end", step.end},
                              {"during", step.during},
                              {"after", step.after},
                              {"recomputation", step.isRecomputation}});
    }
    return {{"schedule", operations}, {"budget", {{"value", budget}, {"given", true}}}, {"chain", chainToJson(chain)}};
}

} // namespace memscape
