// SPDX-License-Identifier: Apache-2.0
#include "core/timing/lane_schedule.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace memscape {

namespace {

using Spans = std::vector<std::vector<TaskSpan>>;

/// When the task can begin; nothing while one that it waits for is not placed.
std::optional<double> beginOf(const LaneTask& task, const Spans& placed, double free)
{
    double begin = free;
    for (const LaneTask::Wait& wait : task.waits) {
        if (wait.lane >= placed.size() || wait.task >= placed[wait.lane].size())
            return std::nullopt;
        const TaskSpan& other = placed[wait.lane][wait.task];
        begin = std::max(begin, other.begin + wait.share * (other.end - other.begin));
    }
    return begin;
}

} // namespace

Result<Spans> scheduleLanes(const std::vector<std::vector<LaneTask>>& lanes)
{
    Spans placed(lanes.size());
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            std::vector<TaskSpan>& own = placed[lane];
            while (own.size() < lanes[lane].size()) {
                const LaneTask& task = lanes[lane][own.size()];
                const auto begin = beginOf(task, placed, own.empty() ? 0 : own.back().end);
                if (!begin)
                    break;
                own.push_back({*begin, *begin + task.seconds});
                moved = true;
            }
        }
    }
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        if (placed[lane].size() < lanes[lane].size())
            return fail("timing.cycle",
                        fmt::format("task {} of lane {} waits for one that never runs", placed[lane].size(), lane));
    }
    return placed;
}

} // namespace memscape
