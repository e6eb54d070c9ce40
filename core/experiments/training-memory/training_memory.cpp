// SPDX-License-Identifier: Apache-2.0
// training-memory: will a training step fit, what takes the space, what would help most?
//
// The step is simulated allocation by allocation (core/training/simulation.h), not multiplied together: the
// network's operators, what autograd saves for each, the backward pass with its gradients and temporaries,
// the optimizer's own; then the caching allocator is replayed on it. The closed formulas of papers stand
// beside the result, with what they leave out.
// Left out: see the omits of each figure.
#include "core/experiments/training-memory/training_memory.h"

#include "core/experiment/predicted_points.h"
#include "core/experiments/common/answers.h"
#include "core/experiments/common/framework_lines.h"
#include "core/experiments/common/idle_parameters.h"
#include "core/experiments/memory/library_defaults.h"
#include "core/experiments/memory/memory_advice.h"
#include "core/experiments/memory/memory_detail.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/experiments/memory/memory_textbook.h"
#include "core/timing/pipeline_time.h"
#include "core/trace/timeline.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

class TrainingMemory final : public Experiment
{
public:
    std::string id() const override { return "training-memory"; }
    std::string title() const override { return "Memory budget"; }
    std::string question() const override { return "Will it fit, what takes the space, and what would help most?"; }
    std::string group() const override { return "training"; }
    std::string help() const override
    {
        return "One training step, allocation by allocation: the network's operators, what autograd saves for each, "
               "gradients, the optimizer and their temporaries, as eager PyTorch makes and frees them; then PyTorch's "
               "caching allocator replayed on it. Allocated, reserved and device total are three numbers; on a CPU, "
               "where "
               "PyTorch caches nothing, one. Every advice is a step simulated again. Left out: cuDNN's workspaces, "
               "and the driver's context, which is a setting. With torch.compile the operators are those that Inductor "
               "makes of them, and backward keeps what its minimum cut chooses; CUDA graphs are left out.";
    }
    std::string notMeasured() const override
    {
        return "A measurement is a training step in PyTorch: choose a device whose name begins with PyTorch. If there "
               "is none: "
               "packaging/run --with-pytorch, or a Python that has torch (Settings, Workers in the window; --python, "
               "MEMSCAPE_PYTHON).";
    }
    std::string notMeasuredOn(const Device& device) const override
    {
        return device.framework ? std::string() : notMeasured();
    }
    bool isMeasuredInPytorch() const override { return true; }
    const Schema& schema() const override { return m_schema; }
    std::vector<std::string> idleParameters(const Device& device, const Parameters& parameters) const override
    {
        return idleTrainingParameters(device, parameters);
    }
    ParameterTexts implied(const Parameters& parameters) const override
    {
        return tokensWithinPositions(parameters, {"sequence"}, libraryDefaults(parameters));
    }
    ParameterTexts standardOn(const Device& device) const override { return standardModelOn(device); }
    std::vector<std::string> headlines() const override
    {
        return {"fits", "device_total", "peak_allocated", "step_time"};
    }
    std::vector<Snippet> snippets(const Device& device, const Parameters& parameters) const override
    {
        return trainingSnippets(device, parameters);
    }
    ShortAnswer shortAnswer(const Device& device, const Parameters& parameters, const Figures& figures) const override
    {
        ShortAnswer answer = memoryAnswer(device, figures);
        const std::int64_t ranks = parameters.integer("pipeline_parallel");
        const Figure* const fullest = findFigure(figures, "fullest_rank");
        if (ranks > 1 && fullest && !answer.sentence.empty())
            answer.sentence += fmt::format(" Rank {} of {} needs most.", numberText(fullest->number()), ranks);
        return answer;
    }
    std::vector<SeriesSpec> series() const override
    {
        return {{"peak_allocated", "peak allocated"},
                {"peak_reserved", "peak reserved"},
                {"device_total", "device total"},
                {"activations", "activations"},
                {"step_time", "step time"}};
    }
    Sweep axis(const Device&, const Parameters& parameters) const override
    {
        return {"batch", {parameters.number("batch")}}; // the timeline is the curve; a sweep is asked for
    }
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override;
    Result<Prediction> predict(const Device& device, const Parameters& parameters, PredictionContext&) const override;
    std::vector<Claim> claims(const Device& device, const Parameters& parameters,
                              const Measurement& measured) const override;

private:
    Result<std::vector<Point>> pointsOf(const Device& device, const Parameters& parameters,
                                        const std::shared_ptr<RecordedNetworks>& networks, const Figures& own) const;

    Schema m_schema = trainingSchema();
};

/// With its micro-batches as a repetition.
Result<TrainingAnswer> answerOnce(const Device& device, const Parameters& parameters)
{
    MEMSCAPE_TRY(model, askedModel(parameters));
    return answerTraining(device, parameters, std::make_shared<RecordedNetworks>(std::move(model)));
}

/// {"rank","ranks":[{"layers","parameters","in_flight","allocated","reserved","device_total","work"}…],"schedule","bubble",
/// "ideal_bubble","micro_batches_shown"}; bytes in B, times in s.
Json pipelineJson(const TrainingAnswer& answer)
{
    const Plan& plan = answer.setup.step.plan;
    Json ranks = Json::array();
    for (const PipelineRank& rank : answer.ranks)
        ranks.push_back({{"layers", rank.layers},
                         {"parameters", rank.parameters},
                         {"in_flight", rank.inFlight},
                         {"allocated", rank.allocated},
                         {"reserved", rank.reserved},
                         {"device_total", rank.reserved + answer.setup.context},
                         {"work", jsonNumber(rank.work)}});
    return {{"rank", answer.rank()},
            {"ranks", std::move(ranks)},
            {"schedule", pipelineScheduleText(plan.pipelineSchedule)},
            {"bubble", jsonNumber(answer.time.bubble)},
            {"ideal_bubble", idealBubble(plan)},
            {"micro_batches_shown", differentMicroBatches(plan)}};
}

/// [[{"length","allocated","reserved"}…]…], a draw each, and of it each micro-batch; tokens and B.
Json lengthsJson(const std::vector<LengthsDraw>& draws)
{
    Json all = Json::array();
    for (const LengthsDraw& draw : draws) {
        Json& batches = all.emplace_back(Json::array());
        for (const BatchOfLength& one : draw)
            batches.push_back({{"length", one.length}, {"allocated", one.allocated}, {"reserved", one.reserved}});
    }
    return all;
}

Json detailOf(const Device& device, const TrainingAnswer& answer, const std::vector<Moment>& line,
              const std::optional<OutOfMemory>& outOfMemory)
{
    const Simulation& simulation = answer.simulation;
    const std::int64_t over = answer.capacity ? std::max<std::int64_t>(0, answer.deviceBytes() - *answer.capacity) : 0;
    std::optional<std::int64_t> available;
    if (answer.capacity)
        available = *answer.capacity - answer.setup.context;
    Json detail = objectWithRoom(27); // more than it has, with advice
    detail["model"] = modelJson(answer.model);
    if (!answer.ranks.empty())
        detail["pipeline"] = pipelineJson(answer);
    if (!answer.lengths.empty())
        detail["lengths"] = lengthsJson(answer.lengths);
    detail["parts"] = partsJson(simulation.peak, simulation.reservedBytes(), answer.setup.context);
    detail["fits"] = answer.fits;
    detail["fit"] = fitText(answer.fits, answer.deviceBytes(), answer.capacity);
    detail["over"] = over;
    detail["timeline"] = timelineJson(simulation.trace, line, simulation.peak, available, outOfMemory);
    addPeaks(detail, simulation.trace, simulation.peak);
    detail["live_at_end"] = simulation.allocator.current.allocated;
    detail["textbook"] = textbookJson(textbookFigures(answer));
    if (!simulation.graph->attention.text.empty())
        detail["attention"] = simulation.graph->attention.text;
    detail["basis"] = device.basis;
    detail["capacity"] = capacityJson(device, answer.setup.context);
    return detail;
}

std::vector<Claim> claimsOf(const TrainingAnswer& answer, const Device& device, const Parameters& parameters)
{
    const std::int64_t batch = parameters.integer("batch");
    if (batch < 2)
        return trainingClaims(answer, nullptr);
    const auto halved = totalsOfTraining(device, parameters.at("batch", double(batch / 2)), answer.networks);
    return trainingClaims(answer, halved ? &*halved : nullptr);
}

/// The points of the sweep; `own` are the figures of the parameters' own values.
Result<std::vector<Point>> TrainingMemory::pointsOf(const Device& device, const Parameters& parameters,
                                                    const std::shared_ptr<RecordedNetworks>& networks,
                                                    const Figures& own) const
{
    const Sweep sweep = sweepOf(*this, device, parameters);
    return predictedPoints(sweep, parameters, [&](const Parameters& point, std::size_t i) -> Result<Figures> {
        if (!parameters.sweep() || i == 0) // the first is the parameters' own
            return own;
        MEMSCAPE_TRY(answer,
                     sweep.key == "model" ? answerOnce(device, point) : answerTraining(device, point, networks));
        return trainingFigures(answer);
    });
}

Result<Prediction> TrainingMemory::predict(const Device& device, const Parameters& parameters, PredictionContext&) const
{
    Parameters own = parameters;
    own.setSweep({});
    MEMSCAPE_TRY(answer, answerOnce(device, own));
    MEMSCAPE_TRY(figures, trainingFigures(answer));
    MEMSCAPE_TRY(points, pointsOf(device, parameters, answer.networks, figures));
    Prediction prediction = outcomeFromPoints(*this, device, parameters, std::move(points));
    prediction.figures = std::move(figures);
    const std::vector<Moment> line = timelineOf(answer.simulation.trace, timelinePoints);
    prediction.series.insert(prediction.series.begin(), timelineSeries(line));
    const std::optional<OutOfMemory> outOfMemory = outOfMemoryOf(answer);
    setDetail(prediction, detailOf(device, answer, line, outOfMemory));
    addAdvice(prediction.detail, device, own, answer, outOfMemory);
    if (own.choice("advice") != "none")
        prediction.detail["claims"] = claimsJson(claimsOf(answer, device, own));
    return prediction;
}

std::vector<Claim> TrainingMemory::claims(const Device& device, const Parameters& parameters, const Measurement&) const
{
    const auto answer = answerOnce(device, parameters);
    return answer ? claimsOf(*answer, device, parameters) : std::vector<Claim>();
}

Result<Figures> TrainingMemory::predictPoint(const Device& device, const Parameters& parameters) const
{
    MEMSCAPE_TRY(answer, answerOnce(device, parameters));
    return trainingFigures(answer);
}

} // namespace

const Experiment& trainingMemoryExperiment()
{
    static const TrainingMemory experiment;
    return experiment;
}

} // namespace memscape
