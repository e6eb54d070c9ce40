// SPDX-License-Identifier: Apache-2.0
// The step of `train`, recipe by recipe: the network is recorded as eager PyTorch runs it and
// simulated allocation by allocation (core/training). Blocks count as the pool of a live run rounds
// them, to 512 B, which is also what PyTorch's caching allocator does.
#include "core/checkpoint/mlp_chain.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/experiments/precision/precision.h"
#include "core/network/builder.h"
#include "core/timing/reached_step.h"
#include "core/training/step.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace memscape {

namespace {

Result<Graph> recorded(const TrainedNetwork& network, Precision recipe)
{
    const Numerics numerics = numericsOf(recipe);
    BuildOptions options;
    options.batch = network.batch;
    options.weights = numerics.weights;
    options.autocast = numerics.autocast;
    NetworkBuilder b(options);
    const Variable input = b.input("x", {network.batch, network.inputs}, numerics.weights);
    const Variable target = b.target("y", {network.batch}, DType::Int64);
    Variable x = b.relu(b.linear("fc1", input, network.hidden));
    x = b.relu(b.linear("fc2", std::move(x), network.hidden));
    x = b.linear("fc3", std::move(x), TrainedNetwork::classes);
    Variable loss = b.crossEntropy(x, target);
    return b.finish(std::move(x), std::move(loss));
}

/// What lives at once, every block rounded as the pool rounds it: of one category, or of all.
std::int64_t highestPooled(const Trace& trace, std::optional<Category> category = {})
{
    std::int64_t live = 0, most = 0;
    for (const Event& event : trace.events()) {
        if (category && event.category != *category)
            continue;
        live += pooledBytes(event.bytes) * (event.isAllocation() ? 1 : -1);
        most = std::max(most, live);
    }
    return most;
}

std::int64_t weightCastBytes(const Graph& graph)
{
    std::int64_t bytes = 0;
    for (const Storage& storage : graph.storages)
        bytes += storage.role == Role::WeightCast ? pooledBytes(storage.bytes) : 0;
    return bytes;
}

double stepSeconds(const Device& device, const Graph& graph, const std::vector<ParameterTensor>& parameters,
                   const Plan& plan, Format format)
{
    StepTimeOptions options;
    options.efficiency = reachedShare(device, format);
    const auto time = stepTime(graph, parameters, plan, device, options);
    return time ? time->total : std::numeric_limits<double>::quiet_NaN();
}

} // namespace

double TrainedNetwork::flops() const
{
    const double first = double(inputs) * double(hidden);
    const double others = double(hidden) * double(hidden + classes);
    return 2.0 * double(batch) * (2 * first + 3 * others);
}

TrainedNetwork trainedNetwork(const GemmShape& shape)
{
    return {shape.m, shape.k, shape.n};
}

Result<Precision> trainingRecipe(Format format)
{
    switch (format) {
    case Format::Fp32: return Precision::Fp32;
    case Format::Bf16: return Precision::Bf16Autocast;
    case Format::Fp16: return Precision::Fp16Autocast;
    default:
        return fail("predict.format",
                    "training in " + std::string(numberFormat(format).label)
                        + " is not modelled: it needs scales of tensors or blocks",
                    "choose bf16, fp16 or fp32; operation=matmul takes every format", "format");
    }
}

Result<RecipeStep> recipeStep(const Device& device, const TrainedNetwork& network, Precision recipe)
{
    MEMSCAPE_TRY(graph, recorded(network, recipe));
    StepSettings settings;
    settings.plan.precision = recipe;
    settings.plan.optimizer = OptimizerKind::AdamW;
    settings.plan.update = UpdateStyle::Fused;
    MEMSCAPE_TRY(trace, simulateStep(graph, settings));
    const std::vector<ParameterTensor> parameters = parameterTensors(graph, trace);
    const KeptBytes kept = keptBytes(parameters, settings.plan);
    RecipeStep step{recipe, kept.weights, kept.gradients, kept.master, kept.state};
    step.peak = highestPooled(trace);
    step.casts = weightCastBytes(graph);
    step.activations = highestPooled(trace, Category::Activations);
    step.seconds = stepSeconds(device, graph, parameters, settings.plan, productFormat(recipe));
    return step;
}

} // namespace memscape
