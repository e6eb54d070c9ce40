// SPDX-License-Identifier: Apache-2.0
// batch-size: how large a batch: what fits, what is fast, and what still learns from every example?
//
// See batch_size.h for what is modelled. The curves run over the batch; everything that does not depend on the
// batch is kept between questions, so a dragged batch simulates one step.
#include "core/experiments/batch-size/batch_size.h"

#include "core/experiment/predicted_points.h"
#include "core/experiments/common/answers.h"
#include "core/experiments/common/framework_lines.h"
#include "core/experiments/common/idle_parameters.h"
#include "core/experiments/memory/library_defaults.h"
#include "core/experiments/memory/memory_parameters.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <vector>

namespace memscape {

namespace {

class BatchSize final : public Experiment
{
public:
    std::string id() const override { return "batch-size"; }
    std::string title() const override { return "Batch size"; }
    std::string question() const override
    {
        return "How large a batch fits, is fast, and still learns from every example?";
    }
    std::string group() const override { return "training"; }
    std::string help() const override
    {
        return "Memory over the batch from the simulated training step, throughput from its operators' times, and "
               "steps to a target loss from the gradients' noise: S = S_min (1 + B_crit / B). The sweet spot is the "
               "batch that reaches the target soonest on this device. Measured on a chain of linear layers that is "
               "trained for real: time, memory, noise of its gradients by two estimators, steps to the target at each "
               "batch, accumulation against the large batch. Left out: momentum and Adam in the noise, generalisation, "
               "data loading.";
    }
    const Schema& schema() const override { return m_schema; }
    std::vector<std::string> idleParameters(const Device& device, const Parameters& parameters) const override
    {
        return idleBatchParameters(device, parameters);
    }
    ParameterTexts implied(const Parameters& parameters) const override
    {
        ParameterTexts implied = libraryDefaults(trainingParameters(parameters));
        std::erase_if(implied, [&](const auto& text) { return !parameters.has(text.first); });
        return tokensWithinPositions(parameters, {"sequence"}, std::move(implied));
    }
    std::vector<std::string> headlines() const override
    {
        return {"largest_batch", "sweet_spot", "throughput", "critical_batch"};
    }
    std::vector<Snippet> snippets(const Device& device, const Parameters& parameters) const override
    {
        return trainingSnippets(device, trainingParameters(parameters));
    }
    ShortAnswer shortAnswer(const Device&, const Parameters& parameters, const Figures& figures) const override
    {
        ShortAnswer answer = batchSizeAnswer(figures);
        const Figure* const largest = findFigure(figures, "largest_batch");
        if (largest && largest->number() < 2 * double(parameters.integer("batch")))
            std::erase(answer.knobs, "batch"); // what is faster with twice as much does not fit
        return answer;
    }
    std::vector<SeriesSpec> series() const override
    {
        return {{"memory", "memory"},
                {"throughput", "throughput (examples/s)"},
                {"examples_to_target", "examples to the target"}};
    }
    Sweep axis(const Device&, const Parameters&) const override
    {
        Sweep sweep{"batch", {}};
        for (double batch = 1; batch <= 1024; batch *= 2)
            sweep.values.emplace_back(batch);
        return sweep;
    }
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override
    {
        PredictionContext once;
        MEMSCAPE_TRY(study, studyBatch(device, parameters, {}, once));
        return batchFigures(device, study, study.point);
    }
    Result<Prediction> predict(const Device& device, const Parameters& parameters,
                               PredictionContext& context) const override;
    std::vector<Claim> claims(const Device& device, const Parameters& parameters,
                              const Measurement& measured) const override
    {
        PredictionContext once;
        const auto study = studyBatch(device, parameters, {}, once);
        return study ? batchClaims(*study, measured) : std::vector<Claim>();
    }

private:
    Result<std::vector<Point>> points(const Device& device, const Parameters& parameters, const Sweep& sweep,
                                      const BatchStudy& study, PredictionContext& context) const;

    Schema m_schema = batchSizeSchema();
};

Result<std::vector<Point>> BatchSize::points(const Device& device, const Parameters& parameters, const Sweep& sweep,
                                             const BatchStudy& study, PredictionContext& context) const
{
    return predictedPoints(sweep, parameters, [&](const Parameters& point, std::size_t i) -> Result<Figures> {
        const double* const number = std::get_if<double>(&sweep.values[i]);
        if (const BatchPoint* const known = sweep.key == "batch" && number ? study.at(std::int64_t(*number)) : nullptr)
            return batchFigures(device, study, *known);
        if (!parameters.sweep()) // of our own axis: larger than can be counted
            return Figures();
        MEMSCAPE_TRY(there, studyBatch(device, point, {}, context));
        return batchFigures(device, there, there.point);
    });
}

Result<Prediction> BatchSize::predict(const Device& device, const Parameters& parameters,
                                      PredictionContext& context) const
{
    Parameters own = parameters;
    own.setSweep({});
    std::vector<std::int64_t> batches;
    if (parameters.sweep() && parameters.sweep()->key == "batch") {
        for (const ParameterValue& value : parameters.sweep()->values)
            batches.push_back(std::int64_t(std::get<double>(value)));
    }
    MEMSCAPE_TRY(study, studyBatch(device, own, batches, context));
    const Sweep sweep = sweepOf(*this, device, parameters);
    PredictionContext others; // of other values: what is kept of the own ones stays
    MEMSCAPE_TRY(made, points(device, parameters, sweep, study, others));
    Prediction prediction = outcomeFromPoints(*this, device, parameters, std::move(made));
    prediction.figures = batchFigures(device, study, study.point);
    prediction.series.push_back(paretoSeries(study));
    setDetail(prediction, batchDetail(study));
    prediction.detail["basis"] = device.basis;
    prediction.detail["claims"] = claimsJson(batchClaims(study, {}));
    return prediction;
}

} // namespace

const Experiment& batchSizeExperiment()
{
    static const BatchSize experiment;
    return experiment;
}

} // namespace memscape
