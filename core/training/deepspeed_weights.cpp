// SPDX-License-Identifier: Apache-2.0
#include "core/training/deepspeed_weights.h"

#include "core/training/fsdp_units.h"
#include "core/training/sharding.h"

#include <algorithm>
#include <utility>

namespace memscape {

DeepSpeedWeights::DeepSpeedWeights(const Graph& graph, const DeepSpeedRules& rules,
                                   std::span<const std::int64_t> gathered, Trace& trace,
                                   std::span<const ModuleId> modules, std::span<const Segment> segments)
    : m_trace(trace)
    , m_lead(trace)
    , m_name(trace.name("gathered weights"))
    , m_bufferName(trace.name("all-gather output"))
    , m_sizes(rules.sizes)
    , m_devices(rules.devices)
    , m_usedBy(graph.operators.size())
    , m_forward(graph.operators.size(), noStep)
    , m_backward(graph.operators.size(), noStep)
    , m_saves(graph.operators.size(), 0)
    , m_saved(graph.operators.size())
{
    constexpr std::uint32_t none = UINT32_MAX;
    std::vector<std::uint32_t> ofStorage(graph.storages.size(), none);
    for (std::size_t i = 0; i < gathered.size(); ++i) {
        const TensorId tensor = graph.parameters[i].tensor;
        ofStorage[graph.tensors[tensor].storage] = std::uint32_t(i);
        m_parameters.push_back({gathered[i], rules.elements[i], modules[graph.storageOf(tensor).module]});
    }
    const auto count = std::uint32_t(graph.operators.size());
    for (std::uint32_t i = 0; i < count; ++i) {
        if (graph.operators[i].kind == OperatorKind::Release)
            continue;
        for (const TensorId tensor : graph.inputs(graph.operators[i])) {
            const std::uint32_t parameter = ofStorage[graph.tensors[tensor].storage];
            if (parameter != none && m_parameters[parameter].bytes > 0)
                m_usedBy[i].push_back(parameter);
        }
        if (graph.operators[i].kind == OperatorKind::Dequantize && !m_usedBy[i].empty())
            for (const TensorId whole : graph.outputs(graph.operators[i])) // of the same module, in backward too
                ofStorage[graph.tensors[whole].storage] = m_usedBy[i].front();
        m_forward[i] = addStep(m_usedBy[i]);
    }
    for (std::uint32_t i = count; i-- > 0;)
        if (graph.operators[i].hasGradient)
            m_backward[i] = addStep(m_usedBy[i]);
    for (std::uint32_t i = 0; i < count; ++i)
        m_isProduct.push_back(isMatrixProduct(graph.operators[i].kind));
    for (std::uint32_t i = 0; i < count; ++i)
        m_waits.push_back(rules.waitsInAttention && isAttentionKernel(graph.operators[i].kind));
    for (std::uint32_t i = 0; rules.keepsGathered && i < count; ++i)
        m_saves[i] = graph.operators[i].hasGradient && m_isProduct[i];
    for (const Segment& segment : segments)
        std::fill(m_saves.begin() + segment.first, m_saves.begin() + segment.last, 0);
    std::vector<std::uint32_t> next(m_parameters.size(), noStep);
    for (auto use = m_uses.rbegin(); use != m_uses.rend(); ++use)
        use->next = std::exchange(next[use->parameter], use->step);
}

std::uint32_t DeepSpeedWeights::addStep(std::span<const std::uint32_t> used)
{
    if (used.empty())
        return noStep;
    const auto index = std::uint32_t(m_steps.size()), first = std::uint32_t(m_uses.size());
    m_steps.push_back({first, first + std::uint32_t(used.size()), m_traversed});
    for (const std::uint32_t parameter : used) {
        m_uses.push_back({parameter, index});
        m_traversed += m_parameters[parameter].elements;
    }
    return index;
}

void DeepSpeedWeights::beginForward()
{
    m_isForward = true;
    m_queue = 0;
    for (Parameter& parameter : m_parameters)
        parameter.queued = 0;
}

void DeepSpeedWeights::enter(std::uint32_t op, bool isReplay)
{
    if (m_waits[op] && (m_isForward || isReplay))
        m_lead.wait();
    m_op = op;
    m_isReplay = isReplay;
    m_step = isReplay ? noStep : (m_isForward ? m_forward : m_backward)[op];
    std::vector<std::uint32_t> lacking;
    for (const std::uint32_t parameter : m_usedBy[op])
        if (!m_parameters[parameter].isHere())
            lacking.push_back(parameter);
    gather(lacking);
    for (const std::uint32_t parameter : m_usedBy[op])
        await(parameter);
    m_lead.launch(!m_usedBy[op].empty());
    if (m_step != noStep)
        prefetch();
}

void DeepSpeedWeights::prefetch()
{
    const auto pass = [this] {
        const Use& use = m_uses[m_queue++];
        m_parameters[use.parameter].queued = use.step + 1;
        return use.parameter;
    };
    while (m_queue < m_steps[m_step].last)
        pass();
    const std::int64_t most = std::min(m_sizes.mostLive - m_live, m_sizes.prefetchBucket);
    std::vector<std::uint32_t> next;
    for (std::int64_t elements = 0; m_queue < m_uses.size() && elements < most;) {
        const std::uint32_t parameter = pass();
        if (m_parameters[parameter].isHere() || std::find(next.begin(), next.end(), parameter) != next.end())
            continue;
        next.push_back(parameter);
        elements += m_parameters[parameter].elements;
    }
    gather(next);
}

/// As the ranks send it.
std::int64_t DeepSpeedWeights::paddedBytes(const Parameter& parameter) const
{
    if (parameter.elements == 0 || parameter.bytes % parameter.elements != 0) // packed
        return parameter.bytes;
    return parameter.bytes / parameter.elements * piece(parameter.elements, m_devices) * m_devices;
}

void DeepSpeedWeights::allocate(std::uint32_t index, std::int64_t bytes)
{
    Parameter& parameter = m_parameters[index];
    parameter.block = m_trace.allocate(bytes, Category::Communication, m_name, parameter.module, FsdpStreams::gather);
}

void DeepSpeedWeights::gather(const std::vector<std::uint32_t>& parameters)
{
    for (const std::uint32_t index : parameters)
        m_live += m_parameters[index].elements;
    if (parameters.size() == 1)
        return allocate(parameters.front(), paddedBytes(m_parameters[parameters.front()]));
    if (parameters.empty())
        return;
    std::int64_t bytes = 0;
    for (const std::uint32_t index : parameters) {
        m_parameters[index].gather = std::uint32_t(m_gathers.size());
        bytes += paddedBytes(m_parameters[index]);
    }
    const BlockId buffer = m_trace.allocate(bytes, Category::Communication, m_bufferName,
                                            m_parameters[parameters.front()].module, FsdpStreams::gather);
    m_gathers.push_back({parameters, buffer, std::uint32_t(parameters.size()), false});
}

/// Its module is about to run.
void DeepSpeedWeights::await(std::uint32_t index)
{
    if (m_parameters[index].gather == noStep)
        return;
    Gather& own = m_gathers[std::exchange(m_parameters[index].gather, noStep)];
    if (!std::exchange(own.isCopied, true))
        for (const std::uint32_t one : own.parameters)
            allocate(one, m_parameters[one].bytes);
    if (--own.waiting == 0)
        m_trace.free(std::exchange(own.buffer, noBlock));
}

void DeepSpeedWeights::ran()
{
    m_lead.launch(m_isProduct[m_op] && !m_isForward && !m_isReplay ? 2 : 1);
    if (m_step == noStep)
        return;
    const Step& step = m_steps[m_step];
    const std::int64_t behind = m_step + 1 < m_steps.size() ? m_steps[m_step + 1].before : m_traversed;
    for (std::uint32_t i = step.first; i < step.last; ++i) {
        const Use& use = m_uses[i];
        const bool isUsedSoon = use.next != noStep && m_steps[use.next].before - behind < m_sizes.reuseDistance;
        if (!isUsedSoon && m_parameters[use.parameter].queued <= m_step + 1)
            giveBack(use.parameter);
    }
    if (!m_isForward)
        endSaved(m_op);
    m_step = noStep;
}

void DeepSpeedWeights::giveBack(std::uint32_t index)
{
    Parameter& parameter = m_parameters[index];
    if (parameter.block == noBlock)
        return;
    const BlockId block = std::exchange(parameter.block, noBlock);
    if (m_isForward && m_step != noStep && m_saves[m_op])
        m_saved[m_op].push_back(block);
    else
        give(block);
    m_live -= parameter.elements;
}

void DeepSpeedWeights::give(BlockId block)
{
    m_lead.freeBehind(block);
    m_lead.launch(1);
}

void DeepSpeedWeights::endSaved(std::uint32_t op)
{
    for (const BlockId block : std::exchange(m_saved[op], {}))
        give(block);
}

void DeepSpeedWeights::endBackward()
{
    for (std::uint32_t i = 0; i < m_parameters.size(); ++i) {
        await(i);
        giveBack(i);
    }
    m_gathers.clear();
    for (std::uint32_t op = 0; op < m_saved.size(); ++op)
        endSaved(op);
    m_lead.wait();
}

} // namespace memscape
