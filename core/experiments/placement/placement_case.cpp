// SPDX-License-Identifier: Apache-2.0
// What the parameters of `placement` say: a graph from a text, from `mlp:8x1024` or from a model, and a strategy.
//
// A model becomes a chain: what is before its layers, each layer, what is behind them. A layer's time is the sum over
// its operators (core/timing/operator_cost.h); between layers one tensor travels. While a layer runs forward it holds
// the largest operands of one operator beside; in training all that its operators make, as its forward is repeated in
// backward and only its input was kept.
//
// Left out: a head that shares the embedding's weights has none of its own here; what skips layers (the encoder's
// output in each layer of a decoder).
#include "core/experiments/placement/placement.h"

#include "core/base/text.h"
#include "core/checkpoint/mlp_chain.h"
#include "core/experiment/schema.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/timing/operator_time.h"
#include "core/timing/product_rates.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

const ChoiceTable<PlacementStrategy>& strategyTable()
{
    static const ChoiceTable<PlacementStrategy> all{
        {PlacementStrategy::Layers,
         {"layers", "layer by layer",
          "accelerate's device map: the first layers stay on the device, the others come up as they are due"}},
        {PlacementStrategy::Cheapest,
         {"cheapest", "cheapest", "what takes least time within the limit; exact for chains without prefetching"}},
        {PlacementStrategy::Implicit,
         {"implicit", "implicit", "an operator runs where its first input is; what is elsewhere is copied there"}},
        {PlacementStrategy::Device, {"device", "all on the device", "weights and operators, whether they fit or not"}},
        {PlacementStrategy::Host, {"host", "all on the host", "the host computes; the device stays empty"}},
        {PlacementStrategy::ZeroOffload,
         {"zero-offload", "ZeRO-Offload",
          "training: optimizer and its state on the host; gradients go down, new weights come up (Ren et al. 2021)"}},
        {PlacementStrategy::ZeroInfinity,
         {"zero-infinity", "ZeRO-Infinity",
          "training: the weights live on the host, too, the state there or on a disk (Rajbhandari et al. 2021)"}}};
    return all;
}

/// The half precision that a device has products in.
DType halfOf(const Device& device)
{
    return device.flopRate("bf16") > 0 ? DType::BFloat16 : DType::Float16;
}

Format productFormatOf(DType type)
{
    return type == DType::Float32 ? Format::Fp32 : type == DType::BFloat16 ? Format::Bf16 : Format::Fp16;
}

/// A network cut into its layers, the node of each operator.
class ModelChain
{
public:
    ModelChain(const Graph& network, const DeviceRates& rates, double efficiency, bool trains)
        : m_network(network)
        , m_rates(rates)
        , m_efficiency(efficiency)
        , m_trains(trains)
    { }

    void write(PlacementCase& asked)
    {
        std::vector<Block> layers;
        for (const Block& block : m_network.blocks) {
            if (block.kind == Block::Kind::Layer)
                layers.push_back(block);
        }
        const auto end = std::uint32_t(m_network.operators.size());
        m_owned.assign(m_network.storages.size(), false);
        GraphNode input;
        input.name = "input";
        input.pinned = Place::Host;
        for (const Storage& storage : m_network.storages)
            input.outputBytes += storage.role == Role::Input ? storage.bytes : 0;
        input.rows = std::max<std::int64_t>(1, input.outputBytes / asked.graph.elementBytes);
        input.columns = 1;
        asked.graph.nodes.push_back(input);
        asked.layers.emplace_back();
        if (layers.empty()) {
            add(asked, "network", 0, end, noTensor);
            return;
        }
        if (layers.front().first > 0)
            add(asked, "embedding", 0, layers.front().first, noTensor);
        for (std::size_t i = 0; i < layers.size(); ++i) {
            const std::uint32_t last = i + 1 < layers.size() ? layers[i + 1].first : layers[i].last;
            add(asked, fmt::format("layer{}", i), layers[i].first, last, layers[i].output);
        }
        if (layers.back().last < end)
            add(asked, "head", layers.back().last, end, noTensor);
    }

private:
    std::int64_t bytesOfTensor(TensorId tensor) const
    {
        return m_network.layoutOf(tensor).elements() * elementBytes(m_network.tensors[tensor].dtype);
    }

    void add(PlacementCase& asked, std::string name, std::uint32_t first, std::uint32_t last, TensorId output)
    {
        GraphNode node;
        node.name = std::move(name);
        node.kind = NodeKind::Layer;
        node.inputs = {std::uint32_t(asked.graph.nodes.size() - 1)};
        LayerCost cost;
        std::int64_t made = 0, most = 0;
        for (std::uint32_t i = first; i < last; ++i) {
            const Operator& op = m_network.operators[i];
            if (op.kind == OperatorKind::Release)
                continue;
            const OperatorCost forward = forwardCost(m_network, op);
            cost.forward += operatorSeconds(m_rates, forward, m_efficiency);
            cost.flops += forward.isProduct ? forward.flops : 0;
            cost.bytes += forward.bytes;
            if (m_trains)
                cost.backward += operatorSeconds(m_rates, backwardCost(m_network, op), m_efficiency);
            std::int64_t held = 0;
            for (const TensorId tensor : m_network.inputs(op))
                held += own(node, tensor);
            for (const TensorId tensor : m_network.outputs(op)) {
                const bool isNew = forward.bytes > 0 && !op.inPlace;
                held += isNew ? bytesOfTensor(tensor) : 0;
                made += isNew ? bytesOfTensor(tensor) : 0;
                if (output == noTensor && isNew)
                    node.outputBytes = bytesOfTensor(tensor); // the last one
            }
            most = std::max(most, held);
        }
        cost.backward += cost.forward;
        if (output != noTensor)
            node.outputBytes = bytesOfTensor(output);
        node.rows = std::max<std::int64_t>(1, node.outputBytes / asked.graph.elementBytes);
        node.columns = 1;
        node.workBytes = m_trains ? made : most;
        asked.graph.nodes.push_back(std::move(node));
        asked.layers.push_back(cost);
    }

    /// The bytes of an operand that are activations; a parameter is counted with the first layer that reads it.
    std::int64_t own(GraphNode& node, TensorId tensor)
    {
        const StorageId id = m_network.tensors[tensor].storage;
        const Storage& storage = m_network.storages[id];
        if (storage.role == Role::Activation || storage.role == Role::WeightCast)
            return bytesOfTensor(tensor);
        if (storage.role == Role::Parameter && !m_owned[id]) {
            m_owned[id] = true;
            node.weightBytes += storage.bytes;
            node.updatedBytes += storage.bytes;
        }
        return 0;
    }

    const Graph& m_network;
    const DeviceRates& m_rates;
    double m_efficiency;
    bool m_trains;
    std::vector<bool> m_owned; ///< storages of parameters that a layer has
};

Result<void> addModel(PlacementCase& asked, const Device& device, const Parameters& parameters)
{
    MEMSCAPE_TRY(model, askedModel(parameters, parameters.text("graph")));
    BuildOptions options;
    options.batch = parameters.integer("batch");
    options.sequence = parameters.integer("sequence");
    options.weights = asked.graph.elementBytes == 2 ? halfOf(device) : DType::Float32;
    options.attention = AttentionKernel::Flash;
    options.gradient = options.loss = asked.trains();
    MEMSCAPE_TRY(network, buildNetwork(model, options));
    MEMSCAPE_TRY(rates, deviceRates(device));
    ModelChain(network, rates, reachedShare(device, productFormatOf(options.weights)), asked.trains()).write(asked);
    asked.subject = model.title.empty() ? model.name : model.title;
    return {};
}

Result<void> addGraph(PlacementCase& asked, const Device& device, const Parameters& parameters)
{
    const std::string& text = parameters.text("graph");
    const int bytes = asked.graph.elementBytes;
    if (isGraphText(text)) {
        MEMSCAPE_TRY(graph, parseGraph(text, bytes));
        asked.graph = std::move(graph);
        asked.subject = fmt::format("a graph of {} nodes", asked.graph.nodes.size());
        return {};
    }
    if (isMlpText(text) && text.find('x') != std::string::npos && text.find(',') == std::string::npos) {
        MEMSCAPE_TRY(mlp, parseMlpShape(text, parameters.integer("batch")));
        MEMSCAPE_SET(asked.graph, chainGraph(mlp.length, mlp.width, mlp.batch, bytes));
        asked.subject = fmt::format("{} layers of {} × {}", mlp.length, mlp.width, mlp.width);
        return {};
    }
    auto added = addModel(asked, device, parameters);
    if (!added && added.error().code == "model.unknown") {
        Error error = added.error();
        error.message += ", and no graph is written so";
        error.hint = "write a graph like `x: input 512 4096; y: gelu <- x`, or name a model; " + error.hint;
        return fail(std::move(error));
    }
    return added;
}

/// `place`: "layer3@host, gelu3@host".
Result<void> pinNodes(OperatorGraph& graph, const std::string& text)
{
    if (text == "none")
        return {};
    std::map<std::string, GraphNode*, std::less<>> byName;
    std::vector<std::string> names;
    for (GraphNode& node : graph.nodes) {
        byName.emplace(node.name, &node);
        names.push_back(node.name);
    }
    std::string spaced = text;
    std::replace(spaced.begin(), spaced.end(), ' ', ',');
    for (const std::string& word : split(spaced, ',')) {
        if (trimmed(word).empty())
            continue;
        const std::size_t at = word.find('@');
        const std::string name = word.substr(0, at), where = at == std::string::npos ? "" : word.substr(at + 1);
        if (where != "host" && where != "device")
            return fail("placement.name", fmt::format("{} places nothing", quotedForMessage(word)),
                        "write name@host or name@device, with commas between", "place");
        const auto found = byName.find(name);
        if (found == byName.end())
            return fail("placement.name", fmt::format("the graph has no {}", quotedForMessage(name)),
                        "take a name of the graph" + nearNames(name, names), "place");
        if (found->second->isCopy())
            return fail("placement.name", fmt::format("{} is a copy: where it ends is fixed", quotedForMessage(name)),
                        "place the operator behind it", "place");
        found->second->pinned = where == "host" ? Place::Host : Place::Device;
    }
    return {};
}

} // namespace

const std::string& placementStrategyKey(PlacementStrategy strategy)
{
    return strategyTable().keyOf(strategy);
}

std::vector<ChoiceValue> placementStrategyChoices()
{
    return strategyTable().choices();
}

Result<PlacementCase> placementCase(const Device& device, const Parameters& parameters)
{
    PlacementCase asked;
    asked.strategy = strategyTable().of(parameters.choice("strategy"));
    asked.graph.elementBytes = device.isGpu() && parameters.choice("format") == "half" ? 2 : 4;
    MEMSCAPE_CHECK(addGraph(asked, device, parameters));
    asked.limit = parameters.integer("limit");
    asked.prefetch = int(parameters.integer("prefetch"));
    asked.sharing = device.isGpu() ? LaneSharing::Apart : LaneSharing::Worker;
    if (!device.isGpu() && device.units < 2) {
        asked.sharing = LaneSharing::Single;
        asked.serial = "one core does all: nothing overlaps";
    }
    if (asked.trains()) {
        if (!asked.graph.isChain())
            return fail("placement.training", "training is modelled for chains, and this graph branches",
                        "choose graph=mlp:8x1024, a model, or a strategy without training", "strategy");
        asked.training.overlaps = parameters.flag("overlap");
        asked.training.prefetch = asked.prefetch;
        asked.training.streamsWeights = asked.strategy == PlacementStrategy::ZeroInfinity;
        const double disk = parameters.number("disk");
        asked.training.stateBytes = asked.training.streamsWeights && disk > 0 ? 12.0 / asked.graph.elementBytes : 0;
        asked.graph.nodes.front().pinned.reset();
    } else {
        MEMSCAPE_CHECK(pinNodes(asked.graph, parameters.text("place")));
    }
    return asked;
}

Result<Placement> chosenPlacement(const PlacementCase& asked, const StepSeconds& seconds)
{
    const PlacementMachine machine{seconds, asked.sharing};
    const auto named = [&](std::vector<Way> ways) {
        return placementOf(asked.graph, std::move(ways), asked.prefetch, machine);
    };
    switch (asked.strategy) {
    case PlacementStrategy::Implicit: return named(implicitWays(asked.graph));
    case PlacementStrategy::Device: return named(uniformWays(asked.graph, Place::Device));
    case PlacementStrategy::Host: return named(uniformWays(asked.graph, Place::Host));
    case PlacementStrategy::Layers: return layersPlacement(asked.graph, asked.limit, asked.prefetch, machine);
    case PlacementStrategy::Cheapest: return cheapestPlacement(asked.graph, asked.limit, asked.prefetch, machine);
    case PlacementStrategy::ZeroOffload:
    case PlacementStrategy::ZeroInfinity: break;
    }
    Placement placement;
    placement.ways.assign(asked.graph.nodes.size(), asked.training.streamsWeights ? Way::Streamed : Way::Resident);
    placement.prefetch = asked.prefetch;
    placement.program = trainingProgram(asked.graph, asked.training, seconds);
    placement.peak = peakOf(placement.program).bytes;
    for (const LaneSpan& span : placement.program.spans(asked.sharing))
        placement.seconds = std::max(placement.seconds, span.end);
    return placement;
}

} // namespace memscape
