// SPDX-License-Identifier: Apache-2.0
#include "core/timing/pipeline_time.h"

#include <algorithm>

namespace memscape {

namespace {

constexpr double notYet = -1;

/// The passes of `count` micro-batches on all ranks.
class RunningPipeline
{
public:
    RunningPipeline(const Plan& plan, const std::vector<RankPasses>& ranks, double transfer, std::int64_t count)
        : m_ranks(ranks)
        , m_transfer(transfer)
        , m_count(std::size_t(count))
        , m_stages(ranks.size() * std::size_t(plan.virtualStages))
        , m_isFree(ranks.size(), 0)
        , m_forward(m_stages * m_count, notYet)
        , m_backward(m_forward)
    {
        for (std::size_t rank = 0; rank < ranks.size(); ++rank)
            m_actions.push_back(pipelineActions(plan, int(rank), count));
    }

    /// When the last rank is free, s.
    double end()
    {
        std::vector<std::size_t> next(m_ranks.size(), 0);
        for (bool hasMoved = true; hasMoved;) {
            hasMoved = false;
            for (std::size_t rank = 0; rank < m_ranks.size(); ++rank)
                for (; next[rank] < m_actions[rank].size() && run(rank, m_actions[rank][next[rank]]); ++next[rank])
                    hasMoved = true;
        }
        return *std::max_element(m_isFree.begin(), m_isFree.end());
    }

private:
    /// false: what it needs is not there.
    bool run(std::size_t rank, const PipelineAction& action)
    {
        const std::size_t stage = action.chunk * m_ranks.size() + rank;
        const bool isSent = action.isForward ? stage > 0 : stage + 1 < m_stages;
        double ready = 0;
        if (action.isForward && isSent)
            ready = ended(m_forward, stage - 1, action);
        else if (!action.isForward)
            ready = isSent ? ended(m_backward, stage + 1, action) : ended(m_forward, stage, action);
        if (ready == notYet)
            return false;
        const RankPasses& own = m_ranks[rank];
        m_isFree[rank] = std::max(m_isFree[rank], ready + (isSent ? m_transfer : 0))
            + (action.isForward ? own.forward : own.backward)[action.chunk];
        ended(action.isForward ? m_forward : m_backward, stage, action) = m_isFree[rank];
        return true;
    }
    double& ended(std::vector<double>& times, std::size_t stage, const PipelineAction& action) const
    {
        return times[stage * m_count + action.microBatch];
    }

    const std::vector<RankPasses>& m_ranks;
    double m_transfer;
    std::size_t m_count, m_stages;
    std::vector<double> m_isFree;              ///< by rank
    std::vector<double> m_forward, m_backward; ///< when each stage has ended each micro-batch
    std::vector<std::vector<PipelineAction>> m_actions;
};

} // namespace

double scheduleSeconds(const Plan& plan, const std::vector<RankPasses>& ranks, double transfer)
{
    const auto seconds = [&](std::int64_t count) { return RunningPipeline(plan, ranks, transfer, count).end(); };
    const std::int64_t count = plan.accumulation, round = plan.pipelineParallel, some = 8 * round;
    if (count <= some)
        return seconds(count);
    const double first = seconds(some);
    return first + (first - seconds(some - round)) * double(count - some) / double(round);
}

double idealBubble(const Plan& plan)
{
    return double(plan.pipelineParallel - 1) / (double(plan.accumulation) * plan.virtualStages);
}

} // namespace memscape
