// SPDX-License-Identifier: Apache-2.0
// A recorded network as units with times and weights, and what one rank alone would keep of it.
//
// A unit is a layer, or what uses weights before, between or behind layers; of a network without layers, each operator
// that uses weights for the first time begins one. On a processor a rank computes on one core: what all cores compute
// together takes that many times as long, and ranks beyond the cores take turns.
//
// Left out: cores that share a memory; accumulation of micro-batches; pipeline parallelism.
#include "core/experiments/sharding/sharding.h"

#include "core/experiments/memory/memory_parameters.h"
#include "core/network/model_names.h"
#include "core/timing/reached_step.h"
#include "core/training/segments.h"
#include "core/training/sharding.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::uint32_t noUnit = UINT32_MAX;

/// Of each operator the layer that it lies in.
std::vector<std::uint32_t> layersOfOperators(const Graph& graph)
{
    std::vector<std::uint32_t> layers(graph.operators.size(), noUnit);
    std::uint32_t layer = 0;
    for (const Block& block : graph.blocks) {
        if (block.kind == Block::Kind::Layer)
            std::fill(layers.begin() + block.first, layers.begin() + block.last, layer++);
    }
    return layers;
}

/// The collective that is an operator of the network, if it is one.
std::optional<Collective> recordedCollective(const Graph& graph, const Operator& op, int degree)
{
    if (op.kind < OperatorKind::AllReduce || op.kind > OperatorKind::ReduceScatter)
        return std::nullopt;
    const bool isGather = op.kind == OperatorKind::AllGather;
    const TensorId whole = isGather ? graph.outputs(op)[0] : graph.inputs(op)[0];
    const double payload = double(graph.layoutOf(whole).elements() * elementBytes(graph.tensors[whole].dtype));
    return Collective{"activations",
                      op.kind == OperatorKind::AllReduce ? CollectiveKind::AllReduce
                          : isGather                     ? CollectiveKind::AllGather
                                                         : CollectiveKind::ReduceScatter,
                      payload, 1, degree};
}

void addTensor(ShardUnit& unit, const Collective& collective)
{
    for (Collective& other : unit.tensor) {
        if (other.kind == collective.kind && other.payload == collective.payload) {
            ++other.count;
            return;
        }
    }
    unit.tensor.push_back(collective);
}

struct UnitTimes
{
    std::vector<OperatorTime> operators;
    std::vector<bool> isRecomputed;
    double turns = 1; ///< a rank's seconds for one of the whole device
};

std::vector<ShardUnit> unitsOf(const Graph& graph, const UnitTimes& times, int tensorParallel)
{
    std::vector<std::int64_t> elements(graph.storages.size(), 0); // of parameters that were not used yet
    for (const NamedTensor& parameter : graph.parameters)
        elements[graph.tensors[parameter.tensor].storage] = graph.layoutOf(parameter.tensor).elements();
    const std::vector<std::uint32_t> layers = layersOfOperators(graph);
    std::vector<ShardUnit> units;
    std::uint32_t current = noUnit; // the layer of the last unit
    const bool hasLayers = std::ranges::any_of(layers, [](std::uint32_t one) { return one != noUnit; });
    for (std::uint32_t i = 0; i < graph.operators.size(); ++i) {
        const Operator& op = graph.operators[i];
        std::vector<std::int64_t> used;
        for (const TensorId tensor : graph.inputs(op)) {
            const StorageId storage = graph.tensors[tensor].storage;
            if (elements[storage] > 0)
                used.push_back(std::exchange(elements[storage], 0));
        }
        const bool isOwn = !used.empty() && !units.empty() && !units.back().weights.empty();
        const bool isNew = layers[i] != noUnit ? layers[i] != current : isOwn && (!hasLayers || current != noUnit);
        if (units.empty() || isNew) {
            units.push_back({layers[i] != noUnit ? fmt::format("layer {}", layers[i] + 1)
                                 : !hasLayers    ? fmt::format("part {}", units.size() + 1)
                                 : units.empty() ? std::string("before the layers")
                                                 : fmt::format("behind layer {}", current + 1)});
            current = layers[i];
            units.back().isLayer = layers[i] != noUnit;
        }
        ShardUnit& unit = units.back();
        unit.weights.insert(unit.weights.end(), used.begin(), used.end());
        unit.forward += times.turns * times.operators[i].forward;
        unit.backward +=
            times.turns * (times.operators[i].backward + (times.isRecomputed[i] ? times.operators[i].forward : 0));
        if (const auto collective = recordedCollective(graph, op, tensorParallel))
            addTensor(unit, *collective);
    }
    return units;
}

double turnsOf(const Device& device, std::int64_t ranks)
{
    return device.isGpu() ? 1 : double(std::max<std::int64_t>(ranks, std::max(1, device.units)));
}

Result<std::vector<ShardUnit>> timedUnits(const Device& device, const Graph& graph, const StepSettings& step,
                                          double activations, std::int64_t ranks)
{
    const ReachedTiming timing(device, step.plan, activations);
    UnitTimes times;
    MEMSCAPE_SET(times.operators, operatorTimes(graph, step.plan, device, timing.options()));
    times.isRecomputed.resize(graph.operators.size());
    for (const RecomputedRange& range : recomputedRanges(graph, step))
        std::fill(times.isRecomputed.begin() + std::ptrdiff_t(range.first),
                  times.isRecomputed.begin() + std::ptrdiff_t(range.last), true);
    times.turns = turnsOf(device, ranks);
    return unitsOf(graph, times, step.plan.tensorParallel);
}

/// B, the most at one moment of one rank's step.
Result<std::int64_t> activationsOf(const Graph& graph, const PreparedNetwork& network, StepSettings step)
{
    step.plan.zeroStage = 0;
    step.plan.dataParallel = 1;
    step.plan.offload = Offload::None;
    MEMSCAPE_TRY(trace, simulateStep(graph, network, step));
    return highestBytes(trace, Category::Activations);
}

/// The same plan for one rank that has everything.
Plan alonePlan(const Plan& plan)
{
    Plan alone = plan;
    alone.zeroStage = 0;
    alone.dataParallel = alone.tensorParallel = 1;
    alone.sequenceParallel = false;
    alone.offload = Offload::None;
    return alone;
}

/// Of everything that changes what shardedNetwork() makes.
std::string networkKey(const Device& device, const Parameters& parameters, std::int64_t ranks)
{
    std::string key = fmt::format("{} {} {} {}", device.id, device.name, device.basis, turnsOf(device, ranks));
    for (const auto& [name, rate] : device.rates)
        key += ' ' + name + numberText(rate.flops.valueOr(0));
    for (const MemoryLevel& level : device.levels)
        key += ' ' + numberText(level.bandwidth.valueOr(0));
    for (const auto& [name, value] : parameters.values()) {
        const bool isOther = name == "zero" || name == "sharding_implementation" || name == "data_parallel"
            || name == "bucket" || name == "prefetch" || name == "offload" || name.starts_with("link");
        if (!isOther)
            key += '\n' + name + '=' + valueText(value);
    }
    return key;
}

/// Of one rank alone: units in their order, then the update.
Result<double> aloneSeconds(const Device& device, const Graph& graph, const PreparedNetwork& network,
                            const StepSettings& step, double activations)
{
    MEMSCAPE_TRY(units, timedUnits(device, graph, step, activations, 1));
    const ReachedTiming timing(device, step.plan, activations);
    MEMSCAPE_TRY(seconds, updateSeconds(network.parameters, step.plan, device, timing.options()));
    seconds *= turnsOf(device, 1);
    for (const ShardUnit& unit : units)
        seconds += unit.forward + unit.backward;
    return seconds;
}

} // namespace

std::int64_t ShardUnit::pieceElements(std::int64_t n) const
{
    return std::accumulate(weights.begin(), weights.end(), std::int64_t(0),
                           [n](std::int64_t sum, std::int64_t one) { return sum + piece(one, n); });
}

std::int64_t ShardUnit::elements() const
{
    return pieceElements(1);
}

Result<std::shared_ptr<const ShardedNetwork>> shardedNetwork(const Device& device, const Parameters& parameters,
                                                             const ShardingCase& asked, PredictionContext& context)
{
    const std::string key = networkKey(device, parameters, asked.ranks());
    using Kept = std::shared_ptr<const ShardedNetwork>;
    const Kept* const kept = std::any_cast<Kept>(&context.kept);
    if (kept && (*kept)->key == key)
        return *kept;
    auto made = std::make_shared<ShardedNetwork>();
    made->key = key;
    MEMSCAPE_TRY(model, askedModel(parameters));
    RecordedNetworks networks(model);
    made->model = std::move(model);
    MEMSCAPE_TRY(graph, networks.network(asked.setup.build));
    made->graph = graph;
    made->network = preparedNetwork(networks, *graph);

    // Activations do not depend on what is sharded over data-parallel ranks.
    MEMSCAPE_TRY(activations, activationsOf(*graph, *made->network, asked.setup.step));
    made->activations = activations;
    MEMSCAPE_SET(made->units, timedUnits(device, *graph, asked.setup.step, double(made->activations), asked.ranks()));

    BuildOptions build = asked.setup.build;
    StepSettings step = asked.setup.step;
    step.plan = alonePlan(step.plan);
    build.tensorParallel = 1;
    build.sequenceParallel = false;
    MEMSCAPE_TRY(whole, networks.network(build));
    const auto wholeNetwork = preparedNetwork(networks, *whole);
    made->alone = keptBytes(wholeNetwork->parameters, step.plan);
    made->aloneActivations = activations;
    if (whole != graph)
        MEMSCAPE_SET(made->aloneActivations, activationsOf(*whole, *wholeNetwork, step));
    MEMSCAPE_SET(made->aloneSeconds, aloneSeconds(device, *whole, *wholeNetwork, step, double(made->activations)));
    Kept answer = std::move(made);
    context.kept = answer;
    return answer;
}

} // namespace memscape
