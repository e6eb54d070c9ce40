// SPDX-License-Identifier: Apache-2.0
// What a compiled network keeps of each operator, carried over to copies of layers: the first, those between, the last.
#pragma once

#include "core/network/compile/joint_graph.h"

namespace memscape {

class KeptParts
{
public:
    KeptParts(const Graph& graph, const CompiledRegions& regions);

    /// A node of operator `op`.
    struct Part
    {
        std::uint32_t op = 0;
        std::size_t place = 0; ///< among the nodes of its operator
    };
    const JointNode& node(const Part& part) const { return m_joint.nodes[m_nodes[m_patterns[part.op]][part.place]]; }

    /// What backward of `op` finds in memory, beside what exists before the step: parts that its region made, and
    /// activations that its region was given. A view lies in its base.
    void needed(std::uint32_t op, std::vector<Part>& parts, std::vector<TensorId>& given) const;

private:
    void findPatterns();
    std::uint32_t realOperator(std::uint32_t op, std::uint32_t from) const;
    TensorId realTensor(std::uint32_t op, TensorId tensor) const;
    bool isAlike(std::uint32_t op, std::uint32_t other) const;

    const Graph& m_graph;
    const CompiledRegions& m_regions;
    std::vector<CopiedOperators> m_loops;
    JointGraph m_joint;
    std::vector<std::vector<JointId>> m_needed;
    std::vector<std::uint32_t> m_patterns;
    std::vector<std::uint32_t> m_rank, m_ranked; ///< how many operators that are no release come before; those
    std::vector<std::vector<JointId>> m_nodes;   ///< by operator
};

} // namespace memscape
