// SPDX-License-Identifier: Apache-2.0
// `checkpoint` as a sweep's points (sweep_run.h), whatever machine runs the chain: the schedule is the one that the
// prediction shows, and only a chain with real buffers can run.
#pragma once

#include "kernels/measure/sweep_run.h"
#include "kernels/programs/checkpoint/chain_run.h"

#include <functional>
#include <map>

namespace memscape {

/// The schedule of the parameters' strategy and budget. Errors: run.skipped for chains that are no
/// MLP, those of the prediction, checkpoint.* when the strategy has no schedule for the budget.
Result<ChainTask> chainTask(const Device& device, const Parameters& parameters);

class ChainMeasurer final : public PointMeasurer
{
public:
    using RunTask = std::function<Result<ChainRun>(const ChainTask&)>;
    /// `device` must outlive it.
    ChainMeasurer(const Device& device, RunTask runTask);

    /// Errors: those of chainTask() and of the task; run.cancelled for a run that was stopped, whose timed steps stay.
    Result<void> visit(std::size_t index, const Parameters& at, int pass) override;
    Point point(std::size_t index) const override;
    MergedSamples samples(std::size_t index) const override;
    Quality quality(std::size_t index) const override;
    Json method() const override { return m_method; }
    bool runsWhole() const override { return true; }
    /// The memory over time of the first point.
    void complete(Measurement& measurement) const override;

private:
    const Device& m_device;
    RunTask m_runTask;
    std::map<std::size_t, ChainRun> m_runs;
    Json m_method = Json::object();
};

} // namespace memscape
