// SPDX-License-Identifier: Apache-2.0
// The order of a backward pass (torch/csrc/autograd/engine.cpp): which node runs when, what it is given,
// when that and what it had packed die, how gradients of one tensor meet, and what checkpointing runs
// again. What each node allocates is in backward_rules.cpp, what parameters keep in
// parameter_gradients.cpp.
#include "core/training/autograd.h"

#include "core/training/fsdp_units.h"
#include "core/training/host_activations.h"

#include <algorithm>
#include <utility>

namespace memscape {

void Autograd::backward()
{
    const TensorId root = m_graph.loss != noTensor ? m_graph.loss : m_graph.output;
    runBackwardFrom(root, "ones_like", 0, std::uint32_t(m_graph.operators.size()));
}

void Autograd::backward(std::uint32_t chunk, std::uint32_t microBatch)
{
    const PipelineChunk& own = m_graph.chunks[chunk];
    auto pass = m_inFlight.extract({chunk, microBatch});
    exchange(pass.mapped());
    if (own.sent == noTensor)
        runBackwardFrom(m_graph.loss != noTensor ? m_graph.loss : m_graph.output, "ones_like", own.first, own.last);
    else
        runBackwardFrom(own.sent, "received gradient", own.first, own.last);
    if (own.received != noTensor) {
        unname(own.received);
        if (const LiveId sent = std::exchange(m_parameterGradient[own.received], 0))
            m_live.release(sent);
    }
    dropResults();
    exchange(pass.mapped());
    m_idle[chunk].push_back(std::move(pass.mapped()));
}

void Autograd::runBackwardFrom(TensorId root, std::string_view given, std::uint32_t first, std::uint32_t last)
{
    if (root == noTensor || !wants(root))
        return;
    m_pending = m_uses;
    if (m_units)
        m_units->beginBackward();
    m_name = m_trace.name(std::string(given));
    m_module = 0;
    Gradient ones = fresh(layoutOf(root), m_graph.tensors[root].dtype);
    deliver(root, alias(ones));
    std::uint32_t end = last;
    for (auto segment = m_segments.rbegin(); segment != m_segments.rend(); ++segment) {
        if (segment->first < first || segment->first >= last)
            continue; // of another chunk
        runBackward(segment->last, end);
        runSegmentBackward(*segment);
        end = segment->first;
    }
    runBackward(first, end);
    if (m_host)
        m_host->endBackward();
    leaveUnit();
    endReductions();
    for (const LiveId live : std::exchange(m_hooked, {}))
        m_live.release(live);
    drop(ones);
}

void Autograd::runBackward(std::uint32_t first, std::uint32_t last)
{
    for (std::uint32_t i = last; i-- > first;) {
        enterRegion(i);
        if (m_graph.operators[i].hasGradient) {
            enterUnit(m_graph.operators[i]);
            if (m_host && !m_isInRegion)
                bringBack(m_graph.operators[i]);
            runNode(m_graph.operators[i]);
            for (const LiveId held : std::exchange(m_held, {})) // the first kernel does not write over what it is given
                m_live.release(held);
            if (m_host && !m_isInRegion)
                m_host->ran();
            if (m_units)
                m_units->ran();
        }
        leaveRegion(i);
    }
}

void Autograd::enterRegion(std::uint32_t op)
{
    if (m_isInRegion || m_regionOf.empty() || m_regionOf[op] == noRegion)
        return;
    m_isInRegion = true;
    if (m_host)
        bringBackRegion(m_regionOf[op]);
    const std::vector<TensorId>& results = m_graph.regions[m_regionOf[op]].results;
    const bool isGiven = std::any_of(results.begin(), results.end(), [this](TensorId one) { return m_slot[one] != 0; });
    for (const TensorId result : results) {
        if (m_slot[result]) {
            m_held.push_back(m_gradients[m_slot[result]].live);
            m_live.retain(m_held.back());
        } else if (isGiven && wants(result)) { // logits that are returned beside the loss
            m_module = 0;
            m_name = m_trace.name("zeros for a gradient");
            deliver(result, fresh(layoutOf(result), m_graph.tensors[result].dtype));
        }
    }
}

void Autograd::leaveRegion(std::uint32_t op)
{
    if (!m_isInRegion || m_graph.regions[m_regionOf[op]].first != op)
        return;
    m_isInRegion = false;
    if (m_host)
        m_host->ran();
    for (auto& [tensor, gradient] : std::exchange(m_unadded, {}))
        accumulateIntoParameter(tensor, gradient);
    updateReady();
}

void Autograd::runSegmentBackward(const Segment& segment)
{
    const std::size_t attributes = m_attributes.size();
    Gradient held; // a nested backward's caller keeps the gradient of the segment's result
    const std::uint32_t trigger = replaysAll() ? segment.last - 1 : segment.trigger;
    if (m_isReentrant && m_slot[segment.output])
        held = alias(m_gradients[m_slot[segment.output]]);
    runBackward(trigger + 1, segment.last);
    replay(segment);
    m_ownsUnpacked = !m_isReentrant && !m_rules.isBefore2;
    const std::uint32_t last = lastHolder(segment);
    runBackward(last + 1, trigger + 1);
    if (isCompiled() && !m_isReentrant)
        releaseInputs(segment);
    else
        m_dying = m_isReentrant ? nullptr : &segment;
    runBackward(segment.first, last + 1);
    m_ownsUnpacked = false;
    for (TensorId tensor = segment.firstTensor; tensor < segment.lastTensor; ++tensor)
        unname(tensor); // the replayed result, where it was kept
    if (held.live)
        drop(held);
    if (m_isReentrant)
        endNested(segment, attributes);
    else if (m_dying)
        releaseInputs(segment);
}

/// A nested backward returns: its nodes end, and what they have as attributes. The segment's inputs do too, unless a
/// hook keeps them.
void Autograd::endNested(const Segment& segment, std::size_t attributes)
{
    while (m_attributes.size() > attributes) {
        m_live.release(m_attributes.back());
        m_attributes.pop_back();
    }
    if (m_placement.fsdp && m_placement.fsdp->hooksInputs)
        hookInputs(segment);
    releaseInputs(segment);
}

void Autograd::hookInputs(const Segment& segment)
{
    const std::size_t first = m_firstInput[std::size_t(&segment - m_segments.data())];
    for (std::size_t i = 0; i < segment.inputs.size(); ++i) {
        const TensorId input = segment.inputs[i];
        if (!wants(input) || !m_slot[input])
            continue;
        for (const LiveId live : {m_segmentInputs[first + i], m_gradients[m_slot[input]].live}) {
            m_live.retain(live);
            m_hooked.push_back(live);
        }
    }
}

void Autograd::releaseInputs(const Segment& segment)
{
    m_dying = nullptr;
    const std::size_t index = std::size_t(&segment - m_segments.data());
    const std::size_t first = m_firstInput[index], kept = first + keptFrom(segment);
    for (std::size_t i = first; i < kept; ++i)
        m_live.release(m_segmentInputs[i]);
    for (; m_nextKept < kept + segment.results; ++m_nextKept) // of operators that the replay did not come to
        m_live.release(m_segmentInputs[m_nextKept]);
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
    const LiveId generator = m_keepsGenerator ? generatorState() : 0;
    if (m_host)
        bringBackInputs(segment);
    if (m_fsdp) {
        enterUnit(m_graph.operators[replaysAll() ? segment.last - 1 : segment.trigger]);
        m_fsdp->beginReplay();
    }
    m_isReplaying = true;
    m_nextKept = m_firstInput[std::size_t(&segment - m_segments.data())] + keptFrom(segment);
    const bool isWhole = replaysAll() || m_rules.isBefore2;
    const std::uint32_t end = isWhole ? segment.last : segment.trigger;
    for (std::uint32_t i = segment.first; i < end; ++i) {
        const Operator& op = m_graph.operators[i];
        const bool isOutside = op.kind == OperatorKind::Release && m_graph.operands[op.first] < segment.firstTensor;
        m_takesKept = isKept(segment, i);
        if (!isOutside)
            run(op, true);
    }
    m_takesKept = isKept(segment, segment.trigger);
    if (!isWhole && m_graph.operators[segment.trigger].saved > 0)
        replayLast(m_graph.operators[segment.trigger]);
    m_isReplaying = m_takesKept = false;
    for (TensorId tensor = segment.firstTensor; tensor < segment.lastTensor; ++tensor)
        if (!m_isReentrant || tensor != segment.output)
            unname(tensor);
    for (const LiveId number : std::exchange(m_replayed, {}))
        m_live.release(number);
    if (generator)
        m_live.release(generator);
}

/// The replay stops when the last tensor is packed, and inputs are packed before the kernel runs.
void Autograd::replayLast(const Operator& op)
{
    const auto outputs = m_graph.outputs(op);
    m_isCut = m_rules.isOnCpu && op.kind == OperatorKind::Dropout; // a product with noise, which is packed before it
    if (m_isCut) {
        run(op, true);
        m_isCut = false;
        return;
    }
    for (const TensorId saved : m_graph.saved(op)) {
        if (std::find(outputs.begin(), outputs.end(), saved) != outputs.end())
            return run(op, true);
    }
    pack(op);
}

void Autograd::dropSaved(const Operator& op)
{
    const std::uint32_t first = op.first + op.inputs + op.outputs;
    const bool staysWithNode = op.keepsAsAttribute && m_loss;
    for (std::uint32_t i = first; i < first + op.saved; ++i) {
        const LiveId saved = std::exchange(m_saved[i], 0);
        if (saved && staysWithNode)
            m_attributes.push_back(saved);
        else if (saved)
            m_live.release(saved);
    }
}

void Autograd::runNode(const Operator& op)
{
    m_module = m_moduleIds[op.module];
    m_name = m_backwardNames[std::size_t(op.kind)];
    const auto inputs = m_graph.inputs(op);
    if (op.kind == OperatorKind::Split)
        return splitBackward(op);
    if (op.kind == OperatorKind::Fused)
        return fusedBackward(op);
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
    const auto give = [&](std::size_t i) {
        if (m_results[i].live)
            deliver(inputs[i], m_results[i]);
    };
    if (m_update && isMatrixProduct(op.kind) && inputs.size() == 3) {
        // addmm(bias, input, weight.t()): the weight waits for its transposition, an input that was flattened longer.
        const bool isFlattened = layoutOf(inputs[0]).rank() > 2;
        if (!isFlattened)
            give(0);
        give(2);
        give(1);
        updateReady();
        if (isFlattened)
            give(0);
        return;
    }
    for (std::size_t i = 0; i < inputs.size(); ++i)
        give(i);
    updateReady();
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
    updateReady();
}

/// One kernel reads the gradients of all results and writes those of all inputs, over a gradient of the same size
/// where that is read for the last time.
void Autograd::fusedBackward(const Operator& op)
{
    for (const TensorId output : m_graph.outputs(op))
        if (m_slot[output])
            m_given.push_back(taken(output));
    if (m_given.empty())
        return dropSaved(op);
    const auto inputs = m_graph.inputs(op);
    const std::vector<std::uint8_t>& sameAs = m_graph.fused[std::size_t(op.attribute)];
    const auto bytesOf = [](const Gradient& one) { return one.layout.elements() * elementBytes(one.dtype); };
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        Gradient& result = m_results[i];
        result.live = 0;
        if (!wants(inputs[i]))
            continue;
        const DType dtype = m_graph.tensors[inputs[i]].dtype;
        if (sameAs[i] != i && m_results[sameAs[i]].live) {
            result = alias(m_results[sameAs[i]]);
            continue;
        }
        const Gradient asked{0, dtype, layoutOf(inputs[i])};
        const auto reused = std::find_if(m_given.begin(), m_given.end(), [&](const Gradient& one) {
            return one.live && !m_isLeaf[inputs[i]] && m_live.references(one.live) == 1
                && bytesOf(one) == bytesOf(asked);
        });
        result = reused != m_given.end() ? alias(*reused) : freshFor(inputs[i], asked.layout, dtype);
        result.layout = asked.layout;
        result.dtype = dtype;
    }
    for (Gradient& one : m_given)
        drop(one);
    m_given.clear();
    dropSaved(op);
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (m_results[i].live)
            deliver(inputs[i], m_results[i]);
    updateReady();
}

void Autograd::validate(TensorId tensor, Gradient& gradient)
{
    const Tensor& wanted = m_graph.tensors[tensor];
    const Shape& shape = layoutOf(tensor).shape;
    if (!(gradient.layout.shape == shape)) {
        Gradient summed = freshFor(tensor, Layout(shape), gradient.dtype);
        drop(gradient);
        gradient = summed;
    }
    if (gradient.dtype != wanted.dtype) {
        const Layout* const like = &gradient.layout;
        Gradient converted = freshFor(tensor, elementwiseLayout(gradient.layout.shape, {&like, 1}), wanted.dtype);
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
    const bool inPlace =
        m_rules.accumulatesInPlace && m_live.references(sum.live) == 1 && !sum.isView && sum.layout.isDense();
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

} // namespace memscape
