// SPDX-License-Identifier: Apache-2.0
#include "core/network/compile/minimum_cut.h"

#include <algorithm>

namespace memscape {

void MinimumCut::addEdge(Node from, Node to, std::int64_t capacity)
{
    m_edges.push_back({to, m_first[from], capacity});
    m_first[from] = std::uint32_t(m_edges.size() - 1);
    m_edges.push_back({from, m_first[to], 0});
    m_first[to] = std::uint32_t(m_edges.size() - 1);
}

bool MinimumCut::findLevels(Node source, Node sink)
{
    m_level.assign(m_first.size(), none);
    std::vector<Node> queue{source};
    m_level[source] = 0;
    for (std::size_t i = 0; i < queue.size(); ++i) {
        for (std::uint32_t e = m_first[queue[i]]; e != none; e = m_edges[e].next) {
            const Edge& edge = m_edges[e];
            if (edge.left > 0 && m_level[edge.to] == none) {
                m_level[edge.to] = m_level[queue[i]] + 1;
                queue.push_back(edge.to);
            }
        }
    }
    return m_level[sink] != none;
}

/// One path from source to sink along rising levels, filled; what it carries, 0 where none is left.
std::int64_t MinimumCut::augment(Node source, Node sink)
{
    std::vector<std::uint32_t> path;
    Node node = source;
    while (node != sink) {
        std::uint32_t& e = m_next[node];
        while (e != none && (m_edges[e].left <= 0 || m_level[m_edges[e].to] != m_level[node] + 1))
            e = m_edges[e].next;
        if (e != none) {
            path.push_back(e);
            node = m_edges[e].to;
        } else if (path.empty()) {
            return 0;
        } else { // a dead end: the edge that led here is done with
            const std::uint32_t back = path.back();
            path.pop_back();
            node = m_edges[back ^ 1].to;
            m_next[node] = m_edges[back].next;
        }
    }
    std::int64_t amount = unlimited;
    for (const std::uint32_t e : path)
        amount = std::min(amount, m_edges[e].left);
    for (const std::uint32_t e : path) {
        m_edges[e].left -= amount;
        m_edges[e ^ 1].left += amount;
    }
    return amount;
}

std::vector<std::uint8_t> MinimumCut::sinkSide(Node source, Node sink)
{
    while (findLevels(source, sink)) {
        m_next = m_first;
        while (const std::int64_t amount = augment(source, sink))
            m_flow += amount;
    }
    std::vector<std::uint8_t> reaches(m_first.size(), 0);
    std::vector<Node> queue{sink};
    reaches[sink] = 1;
    for (std::size_t i = 0; i < queue.size(); ++i) {
        for (std::uint32_t e = m_first[queue[i]]; e != none; e = m_edges[e].next) {
            const Node from = m_edges[e].to;
            if (m_edges[e ^ 1].left > 0 && !reaches[from]) {
                reaches[from] = 1;
                queue.push_back(from);
            }
        }
    }
    return reaches;
}

} // namespace memscape
