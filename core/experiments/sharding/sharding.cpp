// SPDX-License-Identifier: Apache-2.0
// sharding: who keeps what of a training step, and what travels? See sharding.h for what is modelled.
//
// The curves run over the number of data-parallel ranks; the network, its units and its activations are kept between
// questions, so that a dragged N only plans the step again.
#include "core/experiments/sharding/sharding.h"
#include "core/experiment/predicted_points.h"
#include "core/experiments/common/framework_lines.h"
#include "core/experiments/common/idle_parameters.h"
#include "core/experiments/memory/memory_parameters.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

class Sharding final : public Experiment
{
public:
    std::string id() const override { return "sharding"; }
    std::string title() const override { return "Sharding"; }
    std::string question() const override { return "Who keeps what of a training step, and what travels?"; }
    std::string group() const override { return "training"; }
    std::string help() const override
    {
        return "N ranks train one model: what each stores of weights, gradients, optimizer state and master weights, "
               "what it gathers for a moment, and what it sends. Data parallelism, ZeRO stages 1 to 3 (3 is FSDP), "
               "offload to the host, tensor and sequence parallelism. Between GPUs a collective takes what NCCL "
               "chooses "
               "by its own cost model: ring, tree or NVLS, with LL, LL128 or Simple; a CPU's is a ring, T = steps × (α "
               "+ piece / β). A timeline says which of them hide behind the computation: buckets "
               "of gradients behind backward, weights gathered ahead. A CPU measures the ring between threads or "
               "processes, a GPU between as many GPUs as there are ranks, by copies between them or through the host; "
               "the latter has not been run on GPUs yet. Left out: pipeline parallelism, accumulation, the update on "
               "the host.";
    }
    bool isThroughMemory(const Device&) const override { return false; }
    const Schema& schema() const override { return m_schema; }
    std::vector<std::string> idleParameters(const Device& device, const Parameters& parameters) const override;
    ParameterTexts implied(const Parameters& parameters) const override
    {
        return tokensWithinPositions(shardingTraining(parameters), {"sequence"});
    }
    ParameterTexts standardOn(const Device& device) const override
    {
        if (device.isGpu())
            return {};
        return {{"model", "from-scratch:hidden=256,layers=4,heads=4,ffn=1024,vocab=4096"},
                {"sequence", "128"},
                {"precision", "fp32"},
                {"data_parallel", "2"}};
    }
    std::vector<std::string> headlines() const override { return {"stored", "memory_ratio", "sent", "exposed_time"}; }
    std::vector<Snippet> snippets(const Device& device, const Parameters& parameters) const override
    {
        return trainingSnippets(device, shardingTraining(parameters));
    }
    ShortAnswer shortAnswer(const Device& device, const Parameters& parameters, const Figures& figures) const override;
    std::vector<SeriesSpec> series() const override
    {
        return {{"stored", "stored by each rank"},
                {"memory", "memory of a rank"},
                {"gathered", "gathered at most"},
                {"sent", "sent by each rank"},
                {"memory_ratio", "times less memory"},
                {"step_time", "step time"},
                {"communication_time", "collectives"},
                {"exposed_time", "exposed"},
                {"bus_bandwidth", "bandwidth of each link"},
                {"speedup", "speedup"}};
    }
    Sweep axis(const Device& device, const Parameters&) const override
    {
        // A CPU's ranks are its cores: what is measured there is a few.
        if (!device.isGpu())
            return {"data_parallel", {2.0, 3.0, 4.0, 8.0}};
        Sweep sweep{"data_parallel", {}};
        for (double ranks = 1; ranks <= 1024; ranks *= 2)
            sweep.values.emplace_back(ranks);
        return sweep;
    }
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override
    {
        PredictionContext once;
        MEMSCAPE_TRY(answer, answerSharding(device, parameters, once));
        return shardingFigures(answer);
    }
    Result<Prediction> predict(const Device& device, const Parameters& parameters,
                               PredictionContext& context) const override;
    std::vector<Claim> claims(const Device& device, const Parameters& parameters, const Measurement&) const override
    {
        PredictionContext once;
        const auto answer = answerSharding(device, parameters, once);
        return answer ? shardingClaims(*answer) : std::vector<Claim>();
    }

private:
    Schema m_schema = shardingSchema();
};

std::vector<std::string> Sharding::idleParameters(const Device& device, const Parameters& parameters) const
{
    std::vector<std::string> idle = idleTrainingParameters(device, parameters);
    const bool isGathered = parameters.integer("zero") == 3;
    if (isGathered)
        idle.emplace_back("bucket");
    if (!isGathered || !device.isGpu()) // a core that gathers computes nothing
        idle.emplace_back("prefetch");
    std::erase(idle, "network_bandwidth"); // the curve goes on to more ranks than one machine has
    if (!device.isGpu())
        idle.insert(idle.end(), {"network_bandwidth", "machine_gpus"});
    return idle;
}

Result<Prediction> Sharding::predict(const Device& device, const Parameters& parameters,
                                     PredictionContext& context) const
{
    Parameters own = parameters;
    own.setSweep({});
    MEMSCAPE_TRY(answer, answerSharding(device, own, context));
    const Sweep sweep = sweepOf(*this, device, parameters);
    PredictionContext others = context; // of other values: what is kept of the own ones stays
    const auto modelled = [&](const Parameters& point, std::size_t) -> Result<Figures> {
        MEMSCAPE_TRY(there, answerSharding(device, point, others));
        return shardingFigures(there);
    };
    MEMSCAPE_TRY(points, predictedPoints(sweep, own, modelled));
    Prediction prediction = outcomeFromPoints(*this, device, parameters, std::move(points));
    prediction.figures = shardingFigures(answer);
    setDetail(prediction, shardingDetail(answer));
    prediction.detail["basis"] = device.basis;
    if (const auto made = shardingClaims(answer); !made.empty())
        prediction.detail["claims"] = claimsJson(made);
    return prediction;
}

ShortAnswer Sharding::shortAnswer(const Device&, const Parameters& parameters, const Figures& figures) const
{
    const auto text = [&](const char* key) {
        const Figure* const one = findFigure(figures, key);
        return one && std::isfinite(one->number()) ? one->text() : std::string();
    };
    const std::string stored = text("stored"), sent = text("sent"), exposed = text("exposed_time");
    if (stored.empty() || sent.empty() || exposed.empty())
        return {};
    const std::int64_t ranks = parameters.integer("data_parallel") * parameters.integer("tensor_parallel");
    ShortAnswer answer{{}, "stored", false, {"zero", "data_parallel"}};
    if (ranks == 1) {
        answer.sentence = fmt::format("One rank keeps {} and sends nothing.", stored);
        return answer;
    }
    const Figure* const ratio = findFigure(figures, "memory_ratio");
    const std::string less = text("memory_ratio").empty()
        ? std::string()
        : fmt::format(", {} times less than one alone", quantityText(ratio->number(), Unit::One));
    answer.sentence = fmt::format("Each of {} ranks keeps {}{}, sends {} a step and waits {} for it.", ranks, stored,
                                  less, sent, exposed);
    return answer;
}

} // namespace

const Experiment& shardingExperiment()
{
    static const Sharding experiment;
    return experiment;
}

} // namespace memscape
