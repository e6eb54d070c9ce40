// SPDX-License-Identifier: Apache-2.0
// The minimum cut of a directed graph with capacities, by Dinic's algorithm (1970): phases of shortest augmenting
// paths. Of several minimum cuts it takes the one nearest to the sink, as networkx's minimum_cut() does, which PyTorch
// asks.
#pragma once

#include <cstdint>
#include <vector>

namespace memscape {

class MinimumCut
{
public:
    using Node = std::uint32_t;
    static constexpr std::int64_t unlimited = std::int64_t(1) << 60;

    explicit MinimumCut(std::size_t nodes)
        : m_first(nodes, none)
    { }
    void addEdge(Node from, Node to, std::int64_t capacity);
    /// By node: whether it lies on the sink's side of the cut.
    std::vector<std::uint8_t> sinkSide(Node source, Node sink);
    std::int64_t flow() const { return m_flow; } ///< what the cut's edges carry; from sinkSide()

private:
    static constexpr std::uint32_t none = UINT32_MAX;
    struct Edge ///< its reverse lies beside it: index ^ 1
    {
        Node to = 0;
        std::uint32_t next = none;
        std::int64_t left = 0;
    };
    bool findLevels(Node source, Node sink);
    std::int64_t augment(Node source, Node sink);

    std::vector<std::uint32_t> m_first;
    std::vector<Edge> m_edges;
    std::vector<std::uint32_t> m_level, m_next;
    std::int64_t m_flow = 0;
};

} // namespace memscape
