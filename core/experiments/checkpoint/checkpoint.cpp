// SPDX-License-Identifier: Apache-2.0
// checkpoint: which activations should we keep, and which are cheaper to compute again?
//
// A network is a chain of stages; a backward needs what its forward saved, so it is kept or made
// again. Every strategy answers with a schedule (core/checkpoint/), every schedule is replayed
// operation by operation for bytes and time, and the optimal ones for every budget form the front.
// Left out: parameters, their gradients and the optimizer's state (there all the time); networks
// that are no chain.
#include "core/experiments/checkpoint/checkpoint.h"

#include "core/base/cancellation.h"
#include "core/experiment/predicted_points.h"
#include "core/experiments/common/answers.h"
#include "core/experiments/common/framework_lines.h"
#include "core/experiments/common/idle_parameters.h"

#include <fmt/format.h>

namespace memscape {

namespace {

class Checkpoint final : public Experiment
{
public:
    std::string id() const override { return "checkpoint"; }
    std::string title() const override { return "Checkpointing"; }
    std::string question() const override
    {
        return "Which activations should we keep, and which are cheaper to compute again?";
    }
    std::string group() const override { return "training"; }
    std::string help() const override
    {
        return "A chain of stages, run forward and backward. What a stage saves for its backward is kept, or dropped "
               "and computed again: memory against time. Each strategy's schedule is replayed operation by operation, "
               "so peak and time are counted, not estimated; the front is the best time for every budget, optimal "
               "among persistent schedules (a kept value stays until its own backward) on exact sizes; where a chain "
               "of many different stages is too much for that, sizes are rounded, and the answer says how far from the "
               "optimum it may be. Left out: parameters, their gradients and the optimizer's state, which no schedule "
               "changes, and networks that are not a chain.";
    }
    const Schema& schema() const override { return m_schema; }
    std::vector<std::string> idleParameters(const Device&, const Parameters& parameters) const override
    {
        return idleCheckpointParameters(parameters);
    }
    std::vector<std::string> headlines() const override
    {
        return {"peak", "makespan", "recomputed_forwards", "lower_bound_memory"};
    }
    std::vector<Snippet> snippets(const Device&, const Parameters& parameters) const override
    {
        return checkpointSnippets(parameters);
    }
    ShortAnswer shortAnswer(const Device&, const Parameters&, const Figures& figures) const override
    {
        return checkpointAnswer(figures);
    }
    std::vector<SeriesSpec> series() const override
    {
        return {{"peak", "peak"}, {"makespan", "time of the step"}, {"recomputed_forwards", "recomputed forwards"}};
    }
    Sweep axis(const Device&, const Parameters& parameters) const override
    {
        return {"slots", {parameters.number("slots")}}; // the schedule over time is the curve; a sweep is asked for
    }
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override
    {
        MEMSCAPE_TRY(answer, answerCheckpoint(device, parameters));
        return checkpointFigures(answer);
    }
    Result<Prediction> predict(const Device& device, const Parameters& parameters,
                               PredictionContext& context) const override;
    std::vector<Claim> claims(const Device& device, const Parameters& parameters, const Measurement&) const override
    {
        const auto answer = answerCheckpoint(device, parameters);
        return answer ? checkpointClaims(*answer) : std::vector<Claim>();
    }

private:
    Schema m_schema = checkpointSchema();
};

Result<Prediction> Checkpoint::predict(const Device& device, const Parameters& parameters,
                                       PredictionContext& context) const
{
    Parameters own = parameters;
    own.setSweep({});
    MEMSCAPE_TRY(answer, answerCheckpoint(device, own, context));
    MEMSCAPE_CHECK(checkWanted());
    const Figures figures = checkpointFigures(answer);
    const auto modelled = [&](const Parameters& point, std::size_t i) -> Result<Figures> {
        if (!parameters.sweep() || i == 0) // the first is the parameters' own
            return figures;
        return predictPoint(device, point);
    };
    MEMSCAPE_TRY(points, predictedPoints(sweepOf(*this, device, parameters), parameters, modelled));
    Prediction prediction = outcomeFromPoints(*this, device, parameters, std::move(points));
    prediction.figures = figures;
    prediction.series.insert(prediction.series.begin(), checkpointMemorySeries(answer));
    const auto strategies = compareStrategies(answer, own);
    MEMSCAPE_CHECK(checkWanted());
    setDetail(prediction, checkpointDetail(answer, strategies));
    prediction.detail["basis"] = device.basis;
    prediction.detail["claims"] = claimsJson(checkpointClaims(answer));
    return prediction;
}

} // namespace

std::string memoryText(const CheckpointAnswer& answer, double memory)
{
    return quantityText(memory, answer.memoryUnit(), ByteStyle::Binary, 4);
}

std::string timeText(const CheckpointAnswer& answer, double time)
{
    return quantityText(time, answer.timeUnit(), ByteStyle::Binary, 4);
}

Result<CheckpointAnswer> answerCheckpoint(const Device& device, const Parameters& parameters)
{
    PredictionContext once;
    return answerCheckpoint(device, parameters, once);
}

Result<CheckpointAnswer> answerCheckpoint(const Device& device, const Parameters& parameters,
                                          PredictionContext& context)
{
    CheckpointAnswer answer;
    MEMSCAPE_TRY(source, chainSource(device, parameters));
    answer.source = std::move(source);
    MEMSCAPE_TRY(budget, parseBudget(answer.source, parameters));
    answer.budget = budget;
    MEMSCAPE_TRY(tables, CheckpointTables::solve(answer.chain(), int(parameters.integer("slots")), context.kept));
    answer.tables = std::move(tables);
    answer.fullMemory = answer.tables->fullMemory();
    answer.fullTime = answer.tables->fullTime();
    answer.isLeastExact = answer.tables->isLeastExact();
    answer.leastMemory = answer.tables->leastMemory();
    answer.front = answer.tables->front();
    answer.frontMissing = answer.tables->frontMissing();
    if (answer.budget.memory == 0)
        answer.budget.memory = answer.leastMemory + (answer.fullMemory - answer.leastMemory) / 2;
    MEMSCAPE_CHECK(checkWanted());
    const std::string& strategy = parameters.choice("strategy");
    if (strategy == "optimal")
        answer.others = solveOthers(answer, parameters);
    answer.chosen =
        strategy == "optimal" ? solveOptimal(answer, answer.others) : solveStrategy(answer, strategy, parameters);
    if (answer.chosen.missing && answer.chosen.missing->code != "checkpoint.budget")
        return fail(*answer.chosen.missing); // no budget would help
    return answer;
}

const Experiment& checkpointExperiment()
{
    static const Checkpoint experiment;
    return experiment;
}

} // namespace memscape
