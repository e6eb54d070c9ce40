// SPDX-License-Identifier: Apache-2.0
// What autograd sends to the host's memory and when it comes back (host_activations.h).
#include "core/training/autograd.h"
#include "core/training/host_activations.h"

#include <map>
#include <utility>

namespace memscape {

bool Autograd::sendsToHost(const Operator& op) const
{
    const auto index = std::uint32_t(&op - m_graph.operators.data());
    return m_host && !m_isReplaying && !op.keepsAsAttribute && m_host->isBeforeHead(index);
}

LiveId Autograd::broughtBack(TensorId tensor)
{
    const std::int64_t bytes = layoutOf(tensor).elements() * elementBytes(m_graph.tensors[tensor].dtype);
    return m_live.allocate(bytes, Category::Activations, m_trace.name("activation from the host"), m_module);
}

void Autograd::bringBack(const Operator& op)
{
    m_module = m_moduleIds[op.module];
    const std::uint32_t first = op.first + op.inputs + op.outputs;
    for (std::uint32_t i = first; i < first + op.saved; ++i)
        if (m_host->hasSent(i))
            m_saved[i] = m_host->bringBack(i, [&] { return broughtBack(m_graph.operands[i]); });
}

/// A compiled function packs a tensor once, however many of its kernels keep it.
void Autograd::sendRegion(std::uint32_t region)
{
    std::map<StorageId, std::uint32_t> sent;
    for (std::uint32_t k = m_graph.regions[region].first; k < m_graph.regions[region].last; ++k) {
        const Operator& op = m_graph.operators[k];
        const std::uint32_t first = op.first + op.inputs + op.outputs;
        for (std::uint32_t i = first; i < first + op.saved; ++i) {
            const TensorId tensor = m_graph.operands[i];
            if (!m_saved[i] || !sendsToHost(op) || !goesToHost(m_graph, tensor))
                continue;
            const LiveId packed = std::exchange(m_saved[i], 0);
            if (sent.emplace(m_graph.tensors[tensor].storage, i).second)
                m_host->send(i, packed);
            else
                m_live.release(packed);
        }
    }
}

void Autograd::bringBackRegion(std::uint32_t region)
{
    std::map<StorageId, LiveId> back;
    for (std::uint32_t k = m_graph.regions[region].first; k < m_graph.regions[region].last; ++k)
        bringBack(m_graph.operators[k]);
    for (std::uint32_t k = m_graph.regions[region].first; k < m_graph.regions[region].last; ++k) {
        const Operator& op = m_graph.operators[k];
        const std::uint32_t first = op.first + op.inputs + op.outputs;
        for (std::uint32_t i = first; i < first + op.saved; ++i) {
            LiveId& known = back[m_graph.tensors[m_graph.operands[i]].storage];
            if (m_saved[i]) {
                known = m_saved[i];
            } else if (known) {
                m_saved[i] = known;
                m_live.retain(known);
            }
        }
    }
}

/// Keys of segments lie behind those of operands.
void Autograd::sendInputs(const Segment& segment)
{
    const LiveId first = m_firstInput[std::size_t(&segment - m_segments.data())];
    for (std::size_t k = 0; k < segment.inputs.size(); ++k)
        if (goesToHost(m_graph, segment.inputs[k]))
            m_host->send(std::uint32_t(m_graph.operands.size() + first + k),
                         std::exchange(m_segmentInputs[first + k], 0));
}

void Autograd::bringBackInputs(const Segment& segment)
{
    const LiveId first = m_firstInput[std::size_t(&segment - m_segments.data())];
    for (std::size_t k = 0; k < segment.inputs.size(); ++k) {
        const auto key = std::uint32_t(m_graph.operands.size() + first + k);
        if (!m_host->hasSent(key))
            continue;
        const TensorId tensor = segment.inputs[k];
        const LiveId live = m_host->bringBack(key, [&] { return broughtBack(tensor); });
        m_segmentInputs[first + k] = live;
        m_bound[m_graph.tensors[tensor].storage] = live; // the layer runs again on the copy
    }
    m_host->ran();
}

} // namespace memscape
