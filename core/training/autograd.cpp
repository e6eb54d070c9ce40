// SPDX-License-Identifier: Apache-2.0
#include "core/training/autograd.h"

#include "core/training/deepspeed_weights.h"
#include "core/training/fsdp_units.h"
#include "core/training/host_activations.h"
#include "core/training/layer_units.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace memscape {

namespace {

Category categoryOf(Role role)
{
    switch (role) {
    case Role::Parameter:
    case Role::Buffer: return Category::Weights;
    case Role::Input:
    case Role::Target: return Category::Input;
    default: return Category::Activations;
    }
}

bool existsBeforeTheStep(Role role)
{
    return categoryOf(role) != Category::Activations;
}

/// The ids of a parameter's name and of its gradient's. A network of 50,000 parameters calls them "weight" and "bias".
class ParameterNames
{
public:
    explicit ParameterNames(Trace& trace)
        : m_trace(trace)
    { }
    std::pair<NameId, NameId> of(const std::string& name)
    {
        for (const auto& [known, ids] : m_recent)
            if (known == name)
                return ids;
        const NameId own = m_trace.name(name), gradient = m_trace.name(name + ".grad");
        if (m_recent.size() < most)
            m_recent.emplace_back(name, std::pair(own, gradient));
        return {own, gradient};
    }

private:
    static constexpr std::size_t most = 8;
    Trace& m_trace;
    std::vector<std::pair<std::string, std::pair<NameId, NameId>>> m_recent;
};

} // namespace

Autograd::Autograd(const Graph& graph, const CheckpointPlan& checkpointing, const EagerRules& rules, Trace& trace,
                   std::vector<ModuleId> moduleIds, ParameterPlacement placement)
    : m_graph(graph)
    , m_rules(rules)
    , m_placement(std::move(placement))
    , m_isReentrant(checkpointing.isReentrant)
    , m_segments(segments(graph, checkpointing))
    , m_trace(trace)
    , m_live(trace)
    , m_bound(graph.storages.size(), 0)
    , m_saved(graph.operands.size(), 0)
    , m_isNamed(graph.tensors.size(), 0)
    , m_slot(graph.tensors.size(), 0)
    , m_gradients(1)
    , m_uses(graph.tensors.size(), 0)
    , m_isLeaf(graph.tensors.size(), 1)
    , m_parameterGradient(graph.tensors.size(), 0)
    , m_keptGradient(graph.tensors.size(), -1)
    , m_parameterIndex(graph.tensors.size(), 0)
    , m_firstInput(m_segments.size() + 1, 0)
    , m_idle(graph.chunks.size())
    , m_moduleIds(std::move(moduleIds))
    , m_gradientNames(graph.tensors.size(), 0)
{
    for (std::size_t kind = 0; kind < m_forwardNames.size(); ++kind) {
        const std::string text(operatorText(OperatorKind(kind)));
        m_forwardNames[kind] = trace.name(text);
        m_backwardNames[kind] = trace.name(text + "_backward");
    }
    std::vector<NameId> names(graph.storages.size(), 0);
    ParameterNames known(trace);
    for (const auto* const list : {&graph.parameters, &graph.buffers}) {
        for (const NamedTensor& named : *list)
            std::tie(names[graph.tensors[named.tensor].storage], m_gradientNames[named.tensor]) = known.of(named.name);
    }
    makeUnits();
    if (m_fsdp)
        m_trace.beginPassing(m_fsdp->wrappingBytes());
    allocatePlaced(names);
    m_trace.endPassing();
    if (checkpointing.sendsToHost)
        m_host = std::make_unique<HostActivations>(graph, m_live);
    if (isCompiled())
        m_regionOf.assign(graph.operators.size(), noRegion);
    for (std::uint32_t i = 0; i < graph.regions.size(); ++i)
        std::fill(m_regionOf.begin() + graph.regions[i].first, m_regionOf.begin() + graph.regions[i].last, i);
    for (const Operator& op : graph.operators) {
        m_keepsGenerator |= m_rules.isOnCpu && op.kind == OperatorKind::Dropout;
        if (!op.hasGradient)
            continue;
        for (const TensorId tensor : graph.inputs(op))
            m_uses[tensor] += wants(tensor);
        for (const TensorId tensor : graph.outputs(op))
            m_isLeaf[tensor] = 0;
    }
}

Autograd::~Autograd() = default;

void Autograd::allocatePlaced(const std::vector<NameId>& names)
{
    std::vector<std::int64_t> bytes(m_graph.storages.size(), -1);
    for (std::size_t i = 0; i < m_graph.parameters.size(); ++i) {
        const TensorId tensor = m_graph.parameters[i].tensor;
        m_parameterIndex[tensor] = std::uint32_t(i);
        if (!m_placement.weights.empty())
            bytes[m_graph.tensors[tensor].storage] = m_placement.weights[i];
        if (!m_placement.gradients.empty())
            m_keptGradient[tensor] = m_placement.gradients[i];
    }
    for (StorageId id = 0; id < m_graph.storages.size(); ++id) {
        const Storage& storage = m_graph.storages[id];
        if (existsBeforeTheStep(storage.role))
            m_bound[id] = m_live.allocate(bytes[id] < 0 ? storage.bytes : bytes[id], categoryOf(storage.role),
                                          names[id], m_moduleIds[storage.module]);
    }
}

void Autograd::makeUnits()
{
    const std::vector<std::int64_t>& gathered = m_placement.gathered;
    if (m_placement.fsdp) {
        auto units = std::make_unique<FsdpUnits>(m_graph, *m_placement.fsdp, gathered, m_trace, m_moduleIds);
        m_fsdp = units.get();
        m_units = std::move(units);
    } else if (m_placement.deepspeed && !gathered.empty()) {
        m_units = std::make_unique<DeepSpeedWeights>(m_graph, *m_placement.deepspeed, gathered, m_trace, m_moduleIds,
                                                     m_segments);
    } else if (!gathered.empty() || m_placement.reducesLayers) {
        m_units = std::make_unique<LayerUnits>(m_graph, gathered, m_trace, m_moduleIds);
    }
}

void Autograd::name(TensorId tensor)
{
    m_isNamed[tensor] = 1;
    m_live.retain(m_bound[m_graph.tensors[tensor].storage]);
}

void Autograd::unname(TensorId tensor)
{
    if (!m_isNamed[tensor])
        return;
    m_isNamed[tensor] = 0;
    m_live.release(m_bound[m_graph.tensors[tensor].storage]);
}

void Autograd::run(const Operator& op, bool saves)
{
    if (op.kind == OperatorKind::Release) {
        unname(m_graph.operands[op.first]);
        return;
    }
    enterUnit(op);
    if (op.kind == OperatorKind::LigerLoss)
        return runLigerLoss(op);
    const auto outputs = m_graph.outputs(op);
    const bool namesAll = op.kind == OperatorKind::Split || op.kind == OperatorKind::Fused;
    std::array<LiveId, 4> made{};
    const auto makeOutput = [&](std::size_t i) {
        const StorageId storage = m_graph.tensors[outputs[i]].storage;
        const bool isView = storage == m_graph.tensors[m_graph.operands[op.first]].storage;
        if (op.inputs == 0 || !isView) {
            m_bound[storage] = m_takesKept
                ? m_segmentInputs[m_nextKept++]
                : m_live.allocate(m_graph.storages[storage].bytes, Category::Activations,
                                  m_forwardNames[std::size_t(op.kind)], m_moduleIds[op.module]);
            if (op.kind == OperatorKind::Fused)
                m_fusedResults.push_back(m_bound[storage]);
            else
                made[std::min<std::size_t>(i, 3)] = m_bound[storage];
        }
        if (i == 0 || namesAll)
            name(outputs[i]);
    };
    const LiveId half = op.kind == OperatorKind::Dequantize
        ? halfCopy(outputs[0], m_forwardNames[std::size_t(op.kind)], m_moduleIds[op.module])
        : 0;
    const KernelSteps steps = m_rules.isOnCpu ? cpuKernelSteps(m_graph, op, m_rules) : KernelSteps();
    if (steps.empty() || m_takesKept)
        for (std::size_t i = 0; i < outputs.size(); ++i)
            makeOutput(i);
    else
        runKernel(steps, op, makeOutput);
    if (half)
        m_live.release(half);
    ringScratch(op, false);
    if (isMatrixProduct(op.kind))
        provideBlasWorkspace(m_moduleIds[op.module]);
    if (saves)
        pack(op);
    else if (m_rules.isOnCpu)
        packNumber(op);
    if (!saves && op.keepsAsAttribute && !m_isReentrant) // else the first run has no graph
        pack(op);
    for (const LiveId live : made) { // the operator's own reference ends
        if (live && m_keepsResults)
            m_segmentInputs.push_back(live);
        else if (live)
            m_live.release(live);
    }
    for (const LiveId live : m_fusedResults)
        m_live.release(live);
    m_fusedResults.clear();
    if (m_units)
        m_units->ran();
}

/// checkpoint(preserve_rng_state=True) keeps the state of the CPU's generator from the first run of a segment
/// (at::CPUGeneratorImplState), and during the replay that of the caller. It is asked for where something is dropped.
LiveId Autograd::generatorState()
{
    constexpr std::int64_t mersenneTwister = 5056;
    return m_live.allocate(mersenneTwister, Category::Activations, m_trace.name("random state"), m_module);
}

template <typename MakeOutput>
void Autograd::runKernel(const KernelSteps& steps, const Operator& op, const MakeOutput& makeOutput)
{
    Few<LiveId, 24> temporaries;
    for (const KernelStep& step : steps) {
        if (step.kind == KernelStep::Kind::Output && m_isCut && step.index == 0)
            continue;
        if (step.kind == KernelStep::Kind::Output)
            makeOutput(step.index);
        else if (step.kind == KernelStep::Kind::Temporary)
            temporaries.push_back(m_live.allocate(step.bytes, Category::Workspace, m_forwardNames[std::size_t(op.kind)],
                                                  m_moduleIds[op.module]));
        else
            m_live.release(temporaries[step.index]);
    }
}

void Autograd::provideBlasWorkspace(ModuleId module)
{
    bool& isThere = m_hasBlasWorkspace[std::size_t(m_trace.phase())];
    if (m_blasWorkspace == 0 || isThere)
        return;
    isThere = true;
    m_trace.allocate(m_blasWorkspace, Category::Workspace, m_trace.name("cuBLAS workspace"), module);
}

void Autograd::pack(const Operator& op)
{
    const std::uint32_t first = op.first + op.inputs + op.outputs;
    for (std::uint32_t i = first; i < first + op.saved; ++i) {
        const LiveId live = m_bound[m_graph.tensors[m_graph.operands[i]].storage];
        m_live.retain(live);
        const bool isNumber = m_rules.isOnCpu && op.kind == OperatorKind::Scale;
        if (m_saved[i] && (isNumber || op.keepsAsAttribute)) // by the first run of a checkpointed segment
            m_replayed.push_back(live);
        else if (sendsToHost(op) && !isInRegion(op) && goesToHost(m_graph, m_graph.operands[i]))
            m_host->send(i, live);
        else
            m_saved[i] = live;
    }
}

/// A number that is a tensor passes the hooks of checkpointing by (torch/csrc/autograd/saved_variable.cpp, since 2.0):
/// the first run of a segment packs it.
void Autograd::packNumber(const Operator& op)
{
    if (op.kind == OperatorKind::Scale && op.outputs > 1 && !m_isReentrant && !m_rules.isBefore2)
        pack(op);
}

void Autograd::forward()
{
    runForward(0, std::uint32_t(m_graph.operators.size()));
}

void Autograd::exchange(Pass& pass)
{
    std::swap(m_bound, pass.bound);
    std::swap(m_saved, pass.saved);
    std::swap(m_isNamed, pass.isNamed);
    std::swap(m_segmentInputs, pass.segmentInputs);
    std::swap(m_firstInput, pass.firstInput);
    std::swap(m_loss, pass.loss);
    std::swap(m_outputs, pass.outputs);
    std::swap(m_attributes, pass.attributes);
}

void Autograd::forward(std::uint32_t chunk, std::uint32_t microBatch)
{
    std::vector<Pass>& idle = m_idle[chunk];
    Pass pass;
    if (idle.empty()) { // only what exists before the step is bound
        pass = {m_bound, m_saved, m_isNamed, {}, m_firstInput, 0, {}, {}};
    } else {
        pass = std::move(idle.back());
        idle.pop_back();
    }
    exchange(pass);
    runForward(m_graph.chunks[chunk].first, m_graph.chunks[chunk].last);
    exchange(pass);
    m_inFlight.emplace(std::pair(chunk, microBatch), std::move(pass));
}

void Autograd::runForward(std::uint32_t first, std::uint32_t last)
{
    std::size_t next = 0;
    while (next < m_segments.size() && m_segments[next].first < first)
        ++next;
    m_segmentInputs.clear();
    if (m_units)
        m_units->beginForward();
    for (std::uint32_t i = first; i < last; ++i) {
        const Operator& op = m_graph.operators[i];
        if (next < m_segments.size() && m_segments[next].first == i) {
            runSegment(m_segments[next]);
            i = m_segments[next++].last - 1;
            continue;
        }
        run(op, true);
        if (m_host && isCompiled() && m_regionOf[i] != noRegion && m_graph.regions[m_regionOf[i]].last == i + 1)
            sendRegion(m_regionOf[i]);
        if (op.kind == OperatorKind::Release)
            continue;
        // `logits = …` and `loss = …` name the new value before the old one is freed.
        const auto outputs = m_graph.outputs(op);
        for (const TensorId made : op.kind == OperatorKind::Fused ? outputs : outputs.first(1)) {
            if (made == m_graph.output && !m_graph.returnsLoss)
                releaseOutputs();
            if (made == m_graph.loss)
                releaseLoss();
        }
    }
    leaveUnit();
    if (m_units)
        m_units->endForward();
    releaseOutputs();
    if (m_graph.loss != noTensor && m_isNamed[m_graph.loss])
        m_loss = m_bound[m_graph.tensors[m_graph.loss].storage];
    const auto keep = [this](TensorId output) {
        if (output != noTensor && m_isNamed[output])
            m_outputs.push_back(m_bound[m_graph.tensors[output].storage]);
    };
    keep(m_graph.output);
    for (const TensorId output : m_graph.otherOutputs)
        keep(output);
}

void Autograd::releaseOutputs()
{
    for (const LiveId output : std::exchange(m_outputs, {}))
        m_live.release(output);
}

bool Autograd::isKept(const Segment& segment, std::uint32_t op)
{
    return std::binary_search(segment.kept.begin(), segment.kept.end(), op);
}

void Autograd::runSegment(const Segment& segment)
{
    m_firstInput[std::size_t(&segment - m_segments.data())] = LiveId(m_segmentInputs.size());
    for (const TensorId tensor : segment.inputs) {
        m_segmentInputs.push_back(m_bound[m_graph.tensors[tensor].storage]);
        m_live.retain(m_segmentInputs.back());
    }
    if (m_keepsGenerator)
        m_segmentInputs.push_back(generatorState());
    for (std::uint32_t i = segment.first; i < segment.last; ++i) {
        m_keepsResults = isKept(segment, i);
        run(m_graph.operators[i], false);
    }
    m_keepsResults = false;
    if (m_host)
        sendInputs(segment);
}

std::vector<BlockId> Autograd::results() const
{
    std::vector<BlockId> blocks;
    if (m_loss)
        blocks.push_back(m_live.block(m_loss));
    for (const LiveId output : m_outputs)
        blocks.push_back(m_live.block(output));
    for (const LiveId attribute : m_attributes)
        blocks.push_back(m_live.block(attribute));
    return blocks;
}

void Autograd::findAttributes()
{
    if (m_graph.loss == noTensor || m_isReentrant)
        return;
    std::vector<StorageId> found;
    for (const Operator& op : m_graph.operators) {
        if (!op.keepsAsAttribute)
            continue;
        for (const TensorId saved : m_graph.saved(op)) {
            const StorageId storage = m_graph.tensors[saved].storage;
            if (m_graph.storages[storage].role != Role::Activation
                || std::find(found.rbegin(), found.rend(), storage) != found.rend())
                continue;
            found.push_back(storage);
            m_attributes.push_back(m_live.allocate(m_graph.storages[storage].bytes, Category::Activations,
                                                   m_forwardNames[std::size_t(op.kind)], m_moduleIds[op.module]));
        }
    }
}

void Autograd::dropResults()
{
    releaseOutputs();
    releaseLoss();
}

/// The loss, and with it the nodes behind it.
void Autograd::releaseLoss()
{
    if (m_loss)
        m_live.release(std::exchange(m_loss, 0));
    for (const LiveId attribute : std::exchange(m_attributes, {}))
        m_live.release(attribute);
}

} // namespace memscape
