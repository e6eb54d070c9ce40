// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/schedule_json.h"

#include <cassert>

namespace memscape {

Json scheduleJson(const Schedule& schedule, const Replay& replay)
{
    assert(schedule.size() == replay.steps.size());
    Json operations = Json::array();
    for (std::size_t i = 0; i < schedule.size(); ++i) {
        const ReplayStep& step = replay.steps[i];
        operations.push_back({{"operation", operationText(schedule[i].kind)},
                              {"stage", schedule[i].stage},
                              {"option", schedule[i].option},
                              {"begin", jsonNumber(step.begin)},
                              {"end", jsonNumber(step.end)},
                              {"during", step.during},
                              {"after", step.after},
                              {"recomputation", step.isRecomputation}});
    }
    return operations;
}

} // namespace memscape
