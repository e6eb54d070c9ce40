// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/checkpoint/checkpoint_measurement.h"

#include "core/experiments/checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

Result<ChainTask> chainTask(const Device& device, const Parameters& parameters)
{
    const std::string& chain = parameters.text("chain");
    if (!isMlpText(chain))
        return fail("run.skipped",
                    fmt::format("the chain \"{}\" is numbers without operations: it can be predicted, not run", chain),
                    "choose mlp:DEPTHxWIDTH, e.g. mlp:12x2048: its products and activations are real", "chain");
    MEMSCAPE_TRY(answer, answerCheckpoint(device, parameters));
    const std::int64_t batch = parameters.integer("batch");
    MEMSCAPE_TRY(shape, parseMlpShape(chain, batch > 0 ? batch : MlpShape().batch));
    if (answer.chosen.missing)
        return fail(*answer.chosen.missing);
    if (!answer.chosen.hasSchedule())
        return fail("run.skipped", "the strategy has no schedule for this budget",
                    "choose a larger budget or strategy=optimal", "budget");
    return ChainTask{shape, std::move(answer.chosen.schedule)};
}

ChainMeasurer::ChainMeasurer(const Device& device, RunTask runTask)
    : m_device(device)
    , m_runTask(std::move(runTask))
{ }

Result<void> ChainMeasurer::visit(std::size_t index, const Parameters& at, int)
{
    MEMSCAPE_TRY(task, chainTask(m_device, at));
    MEMSCAPE_TRY(run, m_runTask(task));
    m_method = run.method;
    const bool isComplete = run.complete;
    m_runs.insert_or_assign(index, std::move(run));
    return isComplete ? Result<void>() : fail("run.cancelled", "the measurement was stopped");
}

Point ChainMeasurer::point(std::size_t index) const
{
    const auto run = m_runs.find(index);
    if (run == m_runs.end())
        return {};
    return {0, {}, chainFigures(run->second), chainRunDetail(run->second)};
}

MergedSamples ChainMeasurer::samples(std::size_t index) const
{
    const auto run = m_runs.find(index);
    if (run == m_runs.end())
        return {};
    MergedSamples samples(run->second.profile.samples().begin(), run->second.profile.samples().end());
    samples["makespan"] = run->second.steps;
    return samples;
}

Quality ChainMeasurer::quality(std::size_t index) const
{
    const auto run = m_runs.find(index);
    return run == m_runs.end() ? Quality{'D', "no samples"} : run->second.quality;
}

void ChainMeasurer::complete(Measurement& measurement) const
{
    if (!m_runs.empty())
        measurement.series.insert(measurement.series.begin(), chainMemorySeries(m_runs.begin()->second));
}

} // namespace memscape
