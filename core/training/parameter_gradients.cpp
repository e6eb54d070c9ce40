// SPDX-License-Identifier: Apache-2.0
// What becomes of a parameter's gradient: `.grad`, or the piece of it that one device keeps after the
// reduction (placement.h), layer by layer.
#include "core/training/autograd.h"

#include <utility>

namespace memscape {

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
    if (!kept) {
        kept = freshFor(tensor, Layout(gradient.layout.shape), gradient.dtype).live;
        const std::int64_t tile = m_rules.isOnCpu ? transposingTile(gradient.layout, gradient.dtype) : 0;
        if (tile > 0)
            m_live.release(scratch(tile));
    }
    drop(gradient);
}

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
        const LiveId piece =
            m_live.allocate(m_keptGradient[tensor], isFirst ? Category::Gradients : Category::Temporary,
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

void Autograd::findGradients()
{
    for (const NamedTensor& parameter : m_graph.parameters) {
        const TensorId tensor = parameter.tensor;
        if (!m_graph.tensors[tensor].needsGradient || m_uses[tensor] == 0)
            continue;
        const std::int64_t whole = m_graph.layoutOf(tensor).elements() * elementBytes(m_graph.tensors[tensor].dtype);
        m_parameterGradient[tensor] =
            m_live.allocate(isReduced(tensor) ? m_keptGradient[tensor] : whole, Category::Gradients,
                            m_gradientNames[tensor], m_moduleIds[m_graph.storageOf(tensor).module]);
    }
}

void Autograd::forgetGradients()
{
    for (const NamedTensor& parameter : m_graph.parameters)
        m_live.forget(std::exchange(m_parameterGradient[parameter.tensor], 0));
}

} // namespace memscape
