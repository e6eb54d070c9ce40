// SPDX-License-Identifier: Apache-2.0
#include "core/training/pipeline_schedule.h"

#include <algorithm>

namespace memscape {

namespace {

/// The i-th pass of a rank in its direction: `ranks` micro-batches through one chunk, then through the next.
PipelineAction pass(const Plan& plan, bool isForward, std::int64_t i)
{
    const std::int64_t ranks = plan.pipelineParallel, chunks = plan.virtualStages;
    if (chunks == 1)
        return {isForward, 0, std::uint32_t(i)};
    const std::int64_t chunk = i / ranks % chunks, round = i / (ranks * chunks);
    return {isForward, std::uint32_t(isForward ? chunk : chunks - 1 - chunk), std::uint32_t(round * ranks + i % ranks)};
}

/// Forwards before the first backward.
std::int64_t warmUp(const Plan& plan, int rank, std::int64_t passes)
{
    const std::int64_t behind = plan.pipelineParallel - rank - 1;
    switch (plan.pipelineSchedule) {
    case PipelineSchedule::GPipe: return passes;
    case PipelineSchedule::OneForwardOneBackward: return std::min(behind + 1, passes);
    case PipelineSchedule::Interleaved: break;
    }
    return std::min(2 * behind + (plan.virtualStages - 1) * std::int64_t(plan.pipelineParallel) + 1, passes);
}

} // namespace

std::vector<PipelineAction> pipelineActions(const Plan& plan, int rank, std::int64_t microBatches)
{
    const std::int64_t passes = microBatches * plan.virtualStages, first = warmUp(plan, rank, passes);
    std::vector<PipelineAction> actions;
    actions.reserve(std::size_t(2 * passes));
    for (std::int64_t i = 0; i < first; ++i)
        actions.push_back(pass(plan, true, i));
    for (std::int64_t i = 0; i < passes; ++i) {
        actions.push_back(pass(plan, false, i));
        if (first + i < passes)
            actions.push_back(pass(plan, true, first + i));
    }
    return actions;
}

std::int64_t passesInFlight(const Plan& plan, int rank)
{
    return warmUp(plan, rank, std::int64_t(plan.accumulation) * plan.virtualStages);
}

std::int64_t differentMicroBatches(const Plan& plan)
{
    const std::int64_t all = plan.accumulation, ranks = plan.pipelineParallel;
    return plan.pipelineSchedule == PipelineSchedule::GPipe ? all : std::min(all, 4 * ranks);
}

} // namespace memscape
