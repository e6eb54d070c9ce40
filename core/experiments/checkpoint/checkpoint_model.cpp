// SPDX-License-Identifier: Apache-2.0
// A network as a chain: what comes before the first layer, each layer, and what comes behind the
// last with the loss. Bytes are those of the recorded program and of its simulated step
// (core/training/), not of a formula:
//
//   value              storages that the next stage reads and that carry a gradient
//   saved              storages made in the stage that autograd packs or that the next stage reads
//   forward overhead   the stage's highest live storages above that, freed as Python names die
//   backward overhead  highest activations and temporaries during the stage's backward in the
//                      simulated step, above what was there before and y_i
//   selective          what the attention core saves is left out and made again in the backward:
//                      its bytes are overhead there, its forward is time there
//
// Times are operator by operator from the device's rates (core/timing/operator_time.h).
//
// Left out: tensors that all layers share and no gradient reaches (masks, rotary tables); weights'
// casts that autocast keeps beyond their layer; overlap of kernels.
#include "core/experiments/checkpoint/checkpoint_chain.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/network/model_names.h"
#include "core/timing/fp8_casts.h"
#include "core/timing/operator_time.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

namespace memscape {

namespace {

struct OperatorRange
{
    std::uint32_t first = 0, last = 0;
    std::string name;
};

struct ForwardBytes
{
    std::int64_t kept = 0, peak = 0;
};

class Cutter
{
public:
    Cutter(const Graph& graph, std::vector<OperatorRange> ranges);
    int count() const { return int(m_ranges.size()); }
    const OperatorRange& range(int stage) const { return m_ranges[std::size_t(stage)]; }
    std::int64_t inputBytes() const;          ///< of the batch
    std::int64_t valueBytes(int stage) const; ///< what stage + 1 reads, or the loss
    ForwardBytes forwardBytes(int stage, bool isSaving) const;
    std::int64_t savedBytesWithin(std::uint32_t first, std::uint32_t last, int stage) const;
    /// The stage that a module belongs to, −1 when to none or to several.
    int stageOf(const std::string& path) const;

private:
    bool isActivation(StorageId id) const
    {
        const Role role = m_graph.storages[id].role;
        return role == Role::Activation || role == Role::WeightCast;
    }
    bool isMadeIn(StorageId id, int stage) const { return m_madeBy[id] == stage; }
    bool isValue(StorageId id, int stage) const { return m_isValue[id] && isMadeIn(id, stage); }

    const Graph& m_graph;
    std::vector<OperatorRange> m_ranges;
    std::vector<int> m_madeBy;   ///< by storage: stage, −1: none
    std::vector<bool> m_isValue; ///< by storage: read by the stage behind the one that made it
    std::vector<bool> m_isSaved; ///< by storage: packed by some node
    std::unordered_map<std::string, int> m_stages;
};

Cutter::Cutter(const Graph& graph, std::vector<OperatorRange> ranges)
    : m_graph(graph)
    , m_ranges(std::move(ranges))
    , m_madeBy(graph.storages.size(), -1)
    , m_isValue(graph.storages.size())
    , m_isSaved(graph.storages.size())
{
    for (int stage = 0; stage < count(); ++stage) {
        for (std::uint32_t i = range(stage).first; i < range(stage).last; ++i) {
            const Operator& op = graph.operators[i];
            if (op.kind == OperatorKind::Release)
                continue;
            const auto [it, isNew] = m_stages.try_emplace(graph.path(op.module), stage);
            if (!isNew && it->second != stage)
                it->second = -1;
            for (const TensorId tensor : graph.inputs(op)) {
                const StorageId id = graph.tensors[tensor].storage;
                if (isActivation(id) && graph.tensors[tensor].needsGradient && m_madeBy[id] >= 0
                    && m_madeBy[id] < stage)
                    m_isValue[id] = true;
            }
            for (const TensorId tensor : graph.outputs(op)) {
                const StorageId id = graph.tensors[tensor].storage;
                if (isActivation(id) && m_madeBy[id] < 0)
                    m_madeBy[id] = stage;
            }
            for (const TensorId tensor : graph.saved(op))
                m_isSaved[graph.tensors[tensor].storage] = true;
        }
    }
    if (graph.loss != noTensor)
        m_isValue[graph.tensors[graph.loss].storage] = true;
}

std::int64_t Cutter::inputBytes() const
{
    std::int64_t sum = 0;
    for (const Storage& storage : m_graph.storages)
        sum += storage.role == Role::Input ? storage.bytes : 0;
    return sum;
}

std::int64_t Cutter::valueBytes(int stage) const
{
    std::int64_t sum = 0;
    for (StorageId id = 0; id < m_graph.storages.size(); ++id)
        sum += isValue(id, stage) ? m_graph.storages[id].bytes : 0;
    return sum;
}

ForwardBytes Cutter::forwardBytes(int stage, bool isSaving) const
{
    std::unordered_map<StorageId, int> names; // Python's, of storages made here
    ForwardBytes bytes;
    std::int64_t live = 0;
    const auto stays = [&](StorageId id) { return isValue(id, stage) || (isSaving && m_isSaved[id]); };
    for (std::uint32_t i = range(stage).first; i < range(stage).last; ++i) {
        const Operator& op = m_graph.operators[i];
        const auto tensors = op.kind == OperatorKind::Release ? m_graph.inputs(op) : m_graph.outputs(op);
        for (const TensorId tensor : tensors) {
            const StorageId id = m_graph.tensors[tensor].storage;
            if (!isActivation(id) || !isMadeIn(id, stage))
                continue;
            const std::int64_t size = m_graph.storages[id].bytes;
            if (op.kind != OperatorKind::Release) {
                const auto [it, isNew] = names.try_emplace(id, 0);
                it->second += 1;
                live += isNew ? size : 0;
                bytes.kept += isNew && stays(id) ? size : 0;
            } else if (--names[id] == 0 && !stays(id)) {
                live -= size;
            }
        }
        bytes.peak = std::max(bytes.peak, live);
    }
    return bytes;
}

/// Of what the stage saves, the part that operators [first, last) made and nothing outside of them
/// reads.
std::int64_t Cutter::savedBytesWithin(std::uint32_t first, std::uint32_t last, int stage) const
{
    std::vector<StorageId> made, kept;
    for (std::uint32_t i = range(stage).first; i < range(stage).last; ++i) {
        const Operator& op = m_graph.operators[i];
        const bool isInside = i >= first && i < last;
        for (const TensorId tensor : isInside ? m_graph.outputs(op) : m_graph.saved(op))
            (isInside ? made : kept).push_back(m_graph.tensors[tensor].storage);
    }
    std::sort(made.begin(), made.end());
    made.erase(std::unique(made.begin(), made.end()), made.end());
    std::sort(kept.begin(), kept.end());
    std::int64_t sum = 0;
    for (const StorageId id : made) {
        if (isActivation(id) && isMadeIn(id, stage) && m_isSaved[id] && !m_isValue[id]
            && !std::binary_search(kept.begin(), kept.end(), id))
            sum += m_graph.storages[id].bytes;
    }
    return sum;
}

int Cutter::stageOf(const std::string& path) const
{
    const auto it = m_stages.find(path);
    return it == m_stages.end() ? -1 : it->second;
}

/// By stage: highest live activations and temporaries during its backward, above those at its
/// start.
std::vector<std::int64_t> backwardRise(const Trace& trace, const Cutter& cutter)
{
    std::vector<std::int64_t> rise(std::size_t(cutter.count()));
    std::vector<int> stages;
    for (const std::string& path : trace.modules())
        stages.push_back(cutter.stageOf(path));
    int current = cutter.count() - 1;
    std::int64_t live = 0, start = 0;
    bool isInside = false;
    for (const Event& event : trace.events()) {
        const bool isCounted = event.category == Category::Activations || event.category == Category::Temporary;
        if (event.phase == Phase::Backward && !isInside) {
            isInside = true;
            start = live;
        }
        const int stage = stages[event.module];
        if (isInside && event.isAllocation() && stage >= 0 && stage < current) {
            current = stage;
            start = live;
        }
        live += isCounted ? event.change() : 0;
        if (event.phase == Phase::Backward)
            rise[std::size_t(current)] = std::max(rise[std::size_t(current)], live - start);
    }
    return rise;
}

Result<std::vector<OperatorRange>> cut(const ModelDescription& model, const Graph& graph)
{
    std::vector<OperatorRange> ranges;
    std::uint32_t end = 0;
    for (const Block& block : graph.blocks) {
        if (block.kind != Block::Kind::Layer || block.first < end)
            continue;
        if (ranges.empty() && block.first > 0)
            ranges.push_back({0, block.first, "embedding"});
        else if (!ranges.empty())
            ranges.back().last = block.first; // what lies between two layers goes with the first
        const bool hasEmbedding = !ranges.empty() && ranges.front().name == "embedding";
        ranges.push_back({block.first, block.last, fmt::format("layer {}", ranges.size() - (hasEmbedding ? 1 : 0))});
        end = block.last;
    }
    if (end == 0 || model.family == Family::EncoderDecoder)
        return fail("chain.model", fmt::format("{} is not a chain of layers", model.name),
                    "choose a decoder, an encoder or a picture model, or write a memscape-chain file", "chain");
    if (end < graph.operators.size())
        ranges.push_back({end, std::uint32_t(graph.operators.size()), "head and loss"});
    return ranges;
}

Result<TrainingSetup> setupOf(const Device& device, std::string_view name, const Parameters& parameters)
{
    const std::int64_t batch = parameters.integer("batch");
    MEMSCAPE_TRY(training,
                 resolve(trainingSchema(),
                         {{"model", std::string(name)},
                          {"batch", fmt::format("{}", batch > 0 ? batch : standardSequences)},
                          {"sequence", fmt::format("{}", parameters.integer("sequence"))},
                          {"precision", parameters.choice("precision")},
                          {"attention", parameters.choice("attention")},
                          {"optimizer", "sgd"}}));
    return trainingSetup(withOwnKernels(device), training);
}

/// Sums of operators' times, in FLOPs where the device has no rates.
class Times
{
public:
    Times(const Graph& graph, const Plan& plan, Result<DeviceRates> rates)
        : m_graph(graph)
        , m_plan(plan)
        , m_rates(std::move(rates))
    { }
    bool isKnown() const { return m_rates.has_value(); }
    double forward(std::uint32_t first, std::uint32_t last) const { return sum(first, last, forwardCost); }
    double backward(std::uint32_t first, std::uint32_t last) const { return sum(first, last, backwardCost); }

private:
    double sum(std::uint32_t first, std::uint32_t last, OperatorCost (*cost)(const Graph&, const Operator&)) const
    {
        double total = 0;
        for (std::uint32_t i = first; i < last; ++i) {
            const OperatorCost one = inRecipe(cost(m_graph, m_graph.operators[i]), isInFp8(m_graph, i, m_plan));
            total += m_rates ? operatorSeconds(*m_rates, one) : one.flops;
        }
        return total;
    }

    const Graph& m_graph;
    const Plan& m_plan;
    Result<DeviceRates> m_rates;
};

/// Without the tensors of the stage's attention cores.
std::optional<SaveOption> selectiveOption(const Graph& graph, const Cutter& cutter, const Times& times, int stage,
                                          const SaveOption& all)
{
    SaveOption option = all;
    option.name = "selective";
    for (const Block& block : graph.blocks) {
        if (block.kind != Block::Kind::AttentionCore || block.first < cutter.range(stage).first
            || block.last > cutter.range(stage).last)
            continue;
        const std::int64_t bytes = cutter.savedBytesWithin(block.first, block.last, stage);
        option.saved -= bytes;
        option.forwardOverhead += bytes;
        option.backwardOverhead += bytes;
        option.backward += times.forward(block.first, block.last);
    }
    return option.saved < all.saved ? std::optional(option) : std::nullopt;
}

Stage stageOf(const Graph& graph, const Cutter& cutter, const Times& times, int index, std::int64_t backwardOverhead,
              bool isSelective)
{
    const OperatorRange& range = cutter.range(index);
    const ForwardBytes saving = cutter.forwardBytes(index, true), passing = cutter.forwardBytes(index, false);
    Stage stage;
    stage.name = range.name;
    stage.forward = times.forward(range.first, range.last);
    stage.forwardOverhead = passing.peak - passing.kept;
    stage.options = {{"all", stage.forward, times.backward(range.first, range.last), saving.kept,
                      saving.peak - saving.kept, backwardOverhead}};
    if (isSelective) {
        if (auto option = selectiveOption(graph, cutter, times, index, stage.options.front()))
            stage.options.push_back(*std::move(option));
    }
    return stage;
}

} // namespace

Result<ChainSource> modelSource(const Device& device, std::string_view name, const Parameters& parameters)
{
    MEMSCAPE_TRY(model, askedModel(parameters, name));
    MEMSCAPE_TRY(setup, setupOf(device, name, parameters));
    MEMSCAPE_TRY(graph, buildNetwork(model, setup.build));
    MEMSCAPE_TRY(ranges, cut(model, graph));
    MEMSCAPE_TRY(trace, simulateStep(graph, setup.step));
    const Cutter cutter(graph, std::move(ranges));
    const Times times(graph, setup.step.plan, deviceRates(device));
    const auto rise = backwardRise(trace, cutter);
    ChainSource source;
    Chain& chain = source.chain;
    chain.name = fmt::format("{}, batch {}", model.title.empty() ? model.name : model.title, setup.build.batch);
    chain.units = {true, times.isKnown()};
    chain.values.push_back(cutter.inputBytes());
    const bool isSelective = parameters.choice("layer_options") == "selective";
    for (int i = 0; i < cutter.count(); ++i) {
        const std::int64_t overhead = std::max<std::int64_t>(0, rise[std::size_t(i)] - chain.values.back());
        chain.stages.push_back(stageOf(graph, cutter, times, i, overhead, isSelective));
        chain.values.push_back(cutter.valueBytes(i));
    }
    MEMSCAPE_CHECK(checkChain(chain));
    source.sizes = "the recorded network and its simulated step, operator by operator";
    source.times = times.isKnown() ? fmt::format("roofline of {}, operator by operator", device.name)
                                   : "FLOPs: the device's rates are not known";
    source.attention = graph.attention.text;
    source.omits = {"tensors without a gradient that all layers share", "overlap of kernels",
                    "Python and dispatch on the host"};
    return source;
}

} // namespace memscape
