// SPDX-License-Identifier: Apache-2.0
#include "core/network/compile/kept_parts.h"

#include "core/network/compile/partition.h"

#include <algorithm>

namespace memscape {

KeptParts::KeptParts(const Graph& graph, const CompiledRegions& regions)
    : m_graph(graph)
    , m_regions(regions)
    , m_loops(outerLoops(graph))
    , m_joint(jointGraph(graph, regions))
    , m_needed(neededNodes(m_joint, keptNodes(m_joint)))
    , m_patterns(originals(graph, m_loops))
    , m_nodes(graph.operators.size())
{
    findPatterns();
    for (std::uint32_t i = 0; i < graph.operators.size(); ++i) {
        m_rank.push_back(std::uint32_t(m_ranked.size()));
        if (graph.operators[i].kind != OperatorKind::Release)
            m_ranked.push_back(i);
    }
    m_rank.push_back(std::uint32_t(m_ranked.size()));
    for (JointId id = 0; id < m_joint.nodes.size(); ++id)
        if (!m_joint.nodes[id].isInput)
            m_nodes[m_joint.nodes[id].op].push_back(id);
}

void KeptParts::needed(std::uint32_t op, std::vector<Part>& parts, std::vector<TensorId>& given) const
{
    for (JointId id : m_needed[m_patterns[op]]) {
        while (m_joint.nodes[id].isView)
            id = m_joint.nodes[id].inputs[0];
        const JointNode& node = m_joint.nodes[id];
        if (node.isInput) {
            if (m_graph.storageOf(node.tensor).role == Role::Activation)
                given.push_back(realTensor(op, node.tensor));
            continue;
        }
        const auto& nodes = m_nodes[node.op];
        const auto place = std::size_t(std::find(nodes.begin(), nodes.end(), id) - nodes.begin());
        parts.push_back({realOperator(op, node.op), place});
    }
}

/// The operator whose fate an operator shares. Of a loop over layers three iterations were recorded and the third
/// copied: the last copy ends as the third does, those before it and the third itself are as the second.
void KeptParts::findPatterns()
{
    for (const CopiedOperators& loop : m_loops)
        for (std::uint32_t i = loop.first - loop.period; i < loop.last - loop.period; ++i)
            m_patterns[i] -= loop.period;
}

/// What `from` of the pattern is for `op`: in its own iteration or one before; behind a loop in the last one.
/// Iterations are compared from their end, releases apart: the first may begin with more, and drop names elsewhere.
std::uint32_t KeptParts::realOperator(std::uint32_t op, std::uint32_t from) const
{
    const std::uint32_t shift = op - m_patterns[op];
    for (const CopiedOperators& loop : m_loops) {
        const std::uint32_t begin = loop.first - 3 * loop.period;
        if (shift == 0 || op < begin || op >= loop.last || from < begin || from >= loop.last)
            continue;
        const std::uint32_t end = from + loop.period - (from - begin) % loop.period;
        const std::uint32_t rank = m_rank[end + shift] - (m_rank[end] - m_rank[from]);
        if (isAlike(m_ranked[rank], from))
            return m_ranked[rank];
    }
    for (const CopiedOperators& loop : m_loops)
        if (from >= loop.first - loop.period && from < loop.first && op >= loop.last)
            return from + (loop.last - loop.first);
    return from;
}

TensorId KeptParts::realTensor(std::uint32_t op, TensorId tensor) const
{
    const std::uint32_t maker = m_regions.makerOf[tensor];
    if (maker == CompiledRegions::none)
        return tensor;
    const auto outputs = m_graph.outputs(m_graph.operators[maker]);
    const auto place = std::find(outputs.begin(), outputs.end(), tensor) - outputs.begin();
    return m_graph.outputs(m_graph.operators[realOperator(op, maker)])[std::size_t(place)];
}

/// What only the first iteration makes, a mask, has nothing like it behind a period.
bool KeptParts::isAlike(std::uint32_t op, std::uint32_t other) const
{
    return m_graph.operators[op].kind == m_graph.operators[other].kind
        && m_nodes[m_patterns[op]].size() == m_nodes[other].size();
}

} // namespace memscape
