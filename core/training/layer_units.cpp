// SPDX-License-Identifier: Apache-2.0
#include "core/training/layer_units.h"

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

/// The innermost module that both lie in. Parents come before their children.
ModuleIndex commonModule(const Graph& graph, ModuleIndex a, ModuleIndex b)
{
    while (a != b) {
        if (a < b)
            std::swap(a, b);
        a = graph.modules[a].parent;
    }
    return a;
}

} // namespace

LayerMap::LayerMap(const Graph& graph, std::span<const ModuleId> modules)
    : unitOf(graph.operators.size(), 0)
    , moduleOf(1, 0)
{
    for (const Block& block : graph.blocks) {
        if (block.kind != Block::Kind::Layer)
            continue;
        std::fill(unitOf.begin() + block.first, unitOf.begin() + block.last, std::uint32_t(moduleOf.size()));
        ModuleIndex module = block.last > block.first ? graph.operators[block.first].module : 0;
        for (std::uint32_t i = block.first; i < block.last; ++i)
            if (graph.operators[i].kind != OperatorKind::Release)
                module = commonModule(graph, module, graph.operators[i].module);
        moduleOf.push_back(modules[module]);
    }
}

LayerUnits::LayerUnits(const Graph& graph, std::span<const std::int64_t> gathered, Trace& trace,
                       std::span<const ModuleId> modules)
    : m_graph(graph)
    , m_trace(trace)
    , m_name(trace.name("gathered weights"))
    , m_bytes(graph.storages.size(), 0)
    , m_seen(graph.storages.size(), 0)
    , m_layers(graph, modules)
    , m_unitBytes(1, 0)
{
    for (std::size_t i = 0; i < gathered.size(); ++i)
        m_bytes[graph.tensors[graph.parameters[i].tensor].storage] = gathered[i];
    for (const Block& block : graph.blocks)
        if (block.kind == Block::Kind::Layer)
            m_unitBytes.push_back(weightsOf(block.first, block.last));
}

std::int64_t LayerUnits::weightsOf(std::uint32_t first, std::uint32_t last)
{
    std::int64_t bytes = 0;
    ++m_sum;
    for (std::uint32_t i = first; i < last; ++i) {
        for (const TensorId tensor : m_graph.inputs(m_graph.operators[i])) {
            const StorageId storage = m_graph.tensors[tensor].storage;
            if (std::exchange(m_seen[storage], m_sum) != m_sum)
                bytes += m_bytes[storage];
        }
    }
    return bytes;
}

void LayerUnits::enter(std::uint32_t op, bool)
{
    if (isBorder(op)) {
        leave();
        m_current = m_layers.unitOf[op];
        m_whole =
            m_trace.allocate(m_unitBytes[m_current], Category::Communication, m_name, m_layers.moduleOf[m_current]);
    }
    if (m_current == 0)
        m_own = m_trace.allocate(weightsOf(op, op + 1), Category::Communication, m_name, 0);
}

void LayerUnits::ran()
{
    m_trace.free(std::exchange(m_own, noBlock));
}

void LayerUnits::leave()
{
    m_trace.free(std::exchange(m_whole, noBlock));
    m_current = 0;
}

} // namespace memscape
