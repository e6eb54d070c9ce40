// SPDX-License-Identifier: Apache-2.0
#include "core/training/autograd.h"

#include <algorithm>
#include <string>
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

bool existsBeforeTheStep(Role role) { return categoryOf(role) != Category::Activations; }

std::vector<ModuleId> moduleIds(const Graph& graph, Trace& trace)
{
    std::vector<ModuleId> ids;
    std::vector<std::string> paths; // parents come before their children
    ids.reserve(graph.modules.size());
    paths.reserve(graph.modules.size());
    for (const ModuleCall& module : graph.modules) {
        std::string path = ids.empty() ? std::string() : paths[module.parent];
        if (!path.empty())
            path += '.';
        path += module.name;
        ids.push_back(trace.module(path));
        paths.push_back(std::move(path));
    }
    return ids;
}

} // namespace

Autograd::Autograd(const Graph& graph, const CheckpointPlan& checkpointing, const EagerRules& rules,
                   Trace& trace, ParameterPlacement placement)
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
    , m_firstInput(m_segments.size() + 1, 0)
    , m_moduleIds(moduleIds(graph, trace))
    , m_gradientNames(graph.tensors.size(), 0)
{
    for (std::size_t kind = 0; kind < m_forwardNames.size(); ++kind) {
        const std::string text(operatorText(OperatorKind(kind)));
        m_forwardNames[kind] = trace.name(text);
        m_backwardNames[kind] = trace.name(text + "_backward");
    }
    std::vector<NameId> names(graph.storages.size(), 0);
    for (const auto* const list : {&graph.parameters, &graph.buffers}) {
        for (const NamedTensor& named : *list) {
            names[graph.tensors[named.tensor].storage] = trace.name(named.name);
            m_gradientNames[named.tensor] = trace.name(named.name + ".grad");
        }
    }
    allocatePlaced(trace, names);
    for (const Operator& op : graph.operators) {
        if (!op.hasGradient)
            continue;
        for (const TensorId tensor : graph.inputs(op))
            m_uses[tensor] += wants(tensor);
        for (const TensorId tensor : graph.outputs(op))
            m_isLeaf[tensor] = 0;
    }
}

void Autograd::allocatePlaced(Trace& trace, const std::vector<NameId>& names)
{
    std::vector<std::int64_t> bytes(m_graph.storages.size(), -1);
    for (std::size_t i = 0; i < m_graph.parameters.size(); ++i) {
        const TensorId tensor = m_graph.parameters[i].tensor;
        if (!m_placement.weights.empty())
            bytes[m_graph.tensors[tensor].storage] = m_placement.weights[i];
        if (!m_placement.gradients.empty())
            m_keptGradient[tensor] = m_placement.gradients[i];
    }
    for (StorageId id = 0; id < m_graph.storages.size(); ++id) {
        const Storage& storage = m_graph.storages[id];
        if (existsBeforeTheStep(storage.role))
            m_bound[id] = m_live.allocate(bytes[id] < 0 ? storage.bytes : bytes[id],
                                          categoryOf(storage.role), names[id],
                                          m_moduleIds[storage.module]);
    }
    if (!m_placement.gathered.empty() || m_placement.reducesLayers)
        m_units.emplace(m_graph, m_placement.gathered, trace, m_moduleIds);
}

// --- forward --------------------------------------------------------------------------------------

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
    const auto outputs = m_graph.outputs(op);
    const bool isSplit = op.kind == OperatorKind::Split;
    std::array<LiveId, 4> made{};
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const StorageId storage = m_graph.tensors[outputs[i]].storage;
        const bool isView = storage == m_graph.tensors[m_graph.operands[op.first]].storage;
        if (op.inputs == 0 || !isView) {
            m_bound[storage]
                = m_live.allocate(m_graph.storages[storage].bytes, Category::Activations,
                                  m_forwardNames[std::size_t(op.kind)], m_moduleIds[op.module]);
            made[std::min<std::size_t>(i, 3)] = m_bound[storage];
        }
        if (i == 0 || isSplit)
            name(outputs[i]);
    }
    if (isMatrixProduct(op.kind))
        provideBlasWorkspace(m_moduleIds[op.module]);
    if (saves)
        pack(op);
    for (const LiveId live : made) // the operator's own reference ends
        if (live)
            m_live.release(live);
    if (m_units)
        m_units->ran();
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
        m_saved[i] = m_bound[m_graph.tensors[m_graph.operands[i]].storage];
        m_live.retain(m_saved[i]);
    }
}

void Autograd::forward()
{
    std::size_t next = 0;
    m_segmentInputs.clear();
    for (std::uint32_t i = 0; i < m_graph.operators.size(); ++i) {
        const Operator& op = m_graph.operators[i];
        if (next < m_segments.size() && m_segments[next].first == i) {
            runSegment(m_segments[next]);
            i = m_segments[next++].last - 1;
            continue;
        }
        run(op, true);
        if (op.kind == OperatorKind::Release)
            continue;
        // `logits = …` and `loss = …` name the new value before the old one dies.
        const TensorId made = m_graph.outputs(op)[0];
        if (made == m_graph.output && m_output)
            m_live.release(std::exchange(m_output, 0));
        if (made == m_graph.loss && m_loss)
            m_live.release(std::exchange(m_loss, 0));
    }
    leaveUnits();
    if (m_graph.loss != noTensor && m_isNamed[m_graph.loss])
        m_loss = m_bound[m_graph.tensors[m_graph.loss].storage];
    if (m_graph.output != noTensor && m_isNamed[m_graph.output])
        m_output = m_bound[m_graph.tensors[m_graph.output].storage];
}

void Autograd::runSegment(const Segment& segment)
{
    m_firstInput[std::size_t(&segment - m_segments.data())] = LiveId(m_segmentInputs.size());
    for (const TensorId tensor : segment.inputs) {
        m_segmentInputs.push_back(m_bound[m_graph.tensors[tensor].storage]);
        m_live.retain(m_segmentInputs.back());
    }
    for (std::uint32_t i = segment.first; i < segment.last; ++i)
        run(m_graph.operators[i], false);
}

void Autograd::dropResults()
{
    for (LiveId* const held : {&m_output, &m_loss})
        if (*held)
            m_live.release(std::exchange(*held, 0));
}

// --- backward -------------------------------------------------------------------------------------

void Autograd::backward()
{
    const TensorId root = m_graph.loss != noTensor ? m_graph.loss : m_graph.output;
    if (root == noTensor || !wants(root))
        return;
    m_pending = m_uses;
    m_name = m_trace.name("ones_like");
    m_module = 0;
    Gradient ones = fresh(layoutOf(root), m_graph.tensors[root].dtype);
    deliver(root, alias(ones));
    std::uint32_t end = std::uint32_t(m_graph.operators.size());
    for (auto segment = m_segments.rbegin(); segment != m_segments.rend(); ++segment) {
        runBackward(segment->last, end);
        runSegmentBackward(*segment);
        end = segment->first;
    }
    runBackward(0, end);
    leaveUnits();
    drop(ones);
}

void Autograd::runBackward(std::uint32_t first, std::uint32_t last)
{
    for (std::uint32_t i = last; i-- > first;) {
        if (!m_graph.operators[i].hasGradient)
            continue;
        enterUnit(m_graph.operators[i]);
        runNode(m_graph.operators[i]);
        if (m_units)
            m_units->ran();
    }
}

void Autograd::runSegmentBackward(const Segment& segment)
{
    Gradient held; // a nested backward's caller keeps the gradient of the segment's result
    const std::uint32_t trigger = m_isReentrant ? segment.last - 1 : segment.trigger;
    if (m_isReentrant && m_slot[segment.output])
        held = alias(m_gradients[m_slot[segment.output]]);
    runBackward(trigger + 1, segment.last);
    replay(segment);
    m_ownsUnpacked = !m_isReentrant;
    const std::uint32_t last = lastHolder(segment);
    runBackward(last + 1, trigger + 1);
    m_dying = m_isReentrant ? nullptr : &segment;
    runBackward(segment.first, last + 1);
    m_ownsUnpacked = false;
    for (TensorId tensor = segment.firstTensor; tensor < segment.lastTensor; ++tensor)
        unname(tensor); // the replayed result, where it was kept
    if (held.live)
        drop(held);
    if (m_isReentrant || m_dying)
        releaseInputs(segment);
}

void Autograd::releaseInputs(const Segment& segment)
{
    m_dying = nullptr;
    const std::size_t index = std::size_t(&segment - m_segments.data());
    for (std::size_t i = 0; i < segment.inputs.size(); ++i)
        m_live.release(m_segmentInputs[m_firstInput[index] + i]);
}

std::uint32_t Autograd::lastHolder(const Segment& segment) const
{
    for (std::uint32_t i = segment.first; i < segment.trigger; ++i)
        if (m_graph.operators[i].hasGradient && m_graph.operators[i].saved > 0)
            return i;
    return segment.trigger;
}

void Autograd::replay(const Segment& segment)
{
    for (TensorId tensor = segment.firstTensor; tensor < segment.lastTensor; ++tensor)
        m_isNamed[tensor] = 0; // the first run's names belong to storages that live elsewhere now
    const std::uint32_t end = m_isReentrant ? segment.last : segment.trigger;
    for (std::uint32_t i = segment.first; i < end; ++i) {
        const Operator& op = m_graph.operators[i];
        const bool isOutside = op.kind == OperatorKind::Release
            && m_graph.operands[op.first] < segment.firstTensor;
        if (!isOutside)
            run(op, true);
    }
    if (!m_isReentrant && m_graph.operators[segment.trigger].saved > 0)
        replayLast(m_graph.operators[segment.trigger]);
    for (TensorId tensor = segment.firstTensor; tensor < segment.lastTensor; ++tensor)
        if (!m_isReentrant || tensor != segment.output)
            unname(tensor);
}

/// The replay stops when the last tensor is packed, and inputs are packed before the kernel runs.
void Autograd::replayLast(const Operator& op)
{
    const auto outputs = m_graph.outputs(op);
    for (const TensorId saved : m_graph.saved(op)) {
        if (std::find(outputs.begin(), outputs.end(), saved) != outputs.end())
            return run(op, true);
    }
    pack(op);
}

void Autograd::dropSaved(const Operator& op)
{
    const std::uint32_t first = op.first + op.inputs + op.outputs;
    for (std::uint32_t i = first; i < first + op.saved; ++i)
        if (m_saved[i])
            m_live.release(std::exchange(m_saved[i], 0));
}

void Autograd::runNode(const Operator& op)
{
    m_module = m_moduleIds[op.module];
    m_name = m_backwardNames[std::size_t(op.kind)];
    const auto inputs = m_graph.inputs(op);
    if (op.kind == OperatorKind::Split) {
        splitBackward(op);
        return;
    }
    const TensorId output = m_graph.outputs(op)[0];
    if (!m_slot[output]) {
        dropSaved(op);
        return;
    }
    Gradient given = taken(output);
    for (std::size_t i = 0; i < inputs.size(); ++i)
        m_results[i].live = 0;
    applyRule(op, given);
    if (m_ownsUnpacked)
        dropSaved(op);
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (m_results[i].live)
            validate(inputs[i], m_results[i]);
    drop(given);
    dropSaved(op);
    if (m_dying)
        releaseInputs(*m_dying);
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (m_results[i].live)
            deliver(inputs[i], m_results[i]);
}

Autograd::Gradient Autograd::taken(TensorId tensor)
{
    const std::uint32_t slot = std::exchange(m_slot[tensor], 0);
    m_freeSlots.push_back(slot);
    return m_gradients[slot];
}

void Autograd::splitBackward(const Operator& op)
{
    bool isGiven = false;
    for (const TensorId output : m_graph.outputs(op))
        isGiven |= m_slot[output] != 0;
    if (!isGiven)
        return;
    const TensorId input = m_graph.inputs(op)[0];
    Gradient whole = fresh(Layout(layoutOf(input).shape), m_graph.tensors[input].dtype);
    for (const TensorId output : m_graph.outputs(op)) {
        if (!m_slot[output])
            continue;
        Gradient part = taken(output);
        drop(part);
    }
    deliver(input, whole);
}

void Autograd::validate(TensorId tensor, Gradient& gradient)
{
    const Tensor& wanted = m_graph.tensors[tensor];
    if (!(gradient.layout.shape == wanted.layout.shape)) {
        Gradient summed = freshFor(tensor, Layout(wanted.layout.shape), gradient.dtype);
        drop(gradient);
        gradient = summed;
    }
    if (gradient.dtype != wanted.dtype) {
        const Layout* const like = &gradient.layout;
        Gradient converted = freshFor(
            tensor, elementwiseLayout(gradient.layout.shape, {&like, 1}), wanted.dtype);
        drop(gradient);
        gradient = converted;
    }
}

void Autograd::deliver(TensorId tensor, Gradient gradient)
{
    if (!m_slot[tensor]) {
        if (m_freeSlots.empty()) {
            m_freeSlots.push_back(std::uint32_t(m_gradients.size()));
            m_gradients.emplace_back();
        }
        m_slot[tensor] = m_freeSlots.back();
        m_freeSlots.pop_back();
        m_gradients[m_slot[tensor]] = gradient;
    } else {
        accumulate(tensor, m_gradients[m_slot[tensor]], gradient);
    }
    const bool isLast = m_pending[tensor] <= 1;
    m_pending[tensor] -= m_pending[tensor] > 0;
    if (isLast && m_isLeaf[tensor])
        accumulateIntoParameter(tensor, taken(tensor));
}

void Autograd::accumulate(TensorId tensor, Gradient& sum, Gradient gradient)
{
    const bool inPlace = m_rules.accumulatesInPlace && m_live.references(sum.live) == 1
        && !sum.isView && sum.layout.isDense();
    if (inPlace) {
        drop(gradient);
        return;
    }
    const std::array<const Layout*, 2> like{&sum.layout, &gradient.layout};
    Gradient added = freshFor(tensor, elementwiseLayout(sum.layout.shape, like), sum.dtype);
    drop(sum);
    drop(gradient);
    sum = added;
}

void Autograd::accumulateIntoParameter(TensorId tensor, Gradient gradient)
{
    LiveId& kept = m_parameterGradient[tensor];
    if (isReduced(tensor)) {
        if (m_placement.reducesLayers)
            m_unreduced.emplace_back(tensor, gradient);
        else
            reduce(tensor, gradient);
        return;
    }
    const bool isOwn = gradient.layout.isContiguous() && m_live.references(gradient.live) == 1;
    if (!kept && isOwn) {
        kept = gradient.live;
        return;
    }
    if (!kept)
        kept = freshFor(tensor, Layout(gradient.layout.shape), gradient.dtype).live;
    drop(gradient);
}

// --- weights and gradients of which a part is kept --------------------------------------------------

void Autograd::enterUnit(const Operator& op)
{
    if (!m_units)
        return;
    const auto index = std::uint32_t(&op - m_graph.operators.data());
    if (m_units->isBorder(index))
        leaveUnits();
    m_units->enter(index);
}

void Autograd::leaveUnits()
{
    if (!m_units)
        return;
    m_units->leave();
    reduceGradients();
}

void Autograd::reduceGradients()
{
    for (auto& [tensor, whole] : m_unreduced)
        reduce(tensor, whole);
    m_unreduced.clear();
}

// The first piece stays; later ones are added into it. A reduce-scatter writes through the reduce
// bucket, which exists from the start.
void Autograd::reduce(TensorId tensor, Gradient& whole)
{
    LiveId& kept = m_parameterGradient[tensor];
    const bool isFirst = kept == 0;
    const bool isAddedDirectly = !m_placement.reducesLayers; // main_grad.add_(grad)
    if (isFirst || !isAddedDirectly) {
        const LiveId piece = m_live.allocate(
            m_keptGradient[tensor], isFirst ? Category::Gradients : Category::Temporary,
            m_gradientNames[tensor], m_moduleIds[m_graph.storageOf(tensor).module]);
        if (isFirst)
            kept = piece;
        else
            m_live.release(piece);
    }
    drop(whole);
}

std::vector<BlockId> Autograd::gradients() const
{
    std::vector<BlockId> blocks;
    for (const NamedTensor& parameter : m_graph.parameters) {
        const LiveId live = m_parameterGradient[parameter.tensor];
        blocks.push_back(live ? m_live.block(live) : noBlock);
    }
    return blocks;
}

std::vector<BlockId> Autograd::parameters() const
{
    std::vector<BlockId> blocks;
    for (const NamedTensor& parameter : m_graph.parameters)
        blocks.push_back(m_live.block(m_bound[m_graph.tensors[parameter.tensor].storage]));
    return blocks;
}

void Autograd::forgetGradients()
{
    for (const NamedTensor& parameter : m_graph.parameters)
        m_live.forget(std::exchange(m_parameterGradient[parameter.tensor], 0));
}

} // namespace memscape
