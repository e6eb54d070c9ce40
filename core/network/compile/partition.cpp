// SPDX-License-Identifier: Apache-2.0
#include "core/network/compile/partition.h"

#include "core/network/compile/minimum_cut.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <set>
#include <utility>

namespace memscape {

namespace {

class Partitioner
{
public:
    explicit Partitioner(const JointGraph& joint)
        : m_nodes(joint.nodes)
        , m_distance(joint.nodes.size(), farthest)
        , m_isBanned(joint.nodes.size(), 0)
    { }

    std::vector<std::uint8_t> kept()
    {
        findDistances();
        for (JointId id = 0; id < m_nodes.size(); ++id)
            if (m_nodes[id].isInput || (m_nodes[id].isForward && isBannedByItself(id)))
                ban(id);
        banFarApart();
        banLongChains();
        return cut();
    }

private:
    static constexpr int farthest = 1'000'000'000;

    bool isFused(JointId from, JointId to) const
    {
        return m_nodes[to].isConcatenation || (isFusible(from) && isFusible(to));
    }
    bool isFusible(JointId id) const { return m_nodes[id].isFusible && !m_nodes[id].isInput; }

    /// Steps to backward; 0 for what is there.
    void findDistances()
    {
        for (JointId id = JointId(m_nodes.size()); id-- > 0;) {
            const JointNode& node = m_nodes[id];
            if (!node.isForward) {
                m_distance[id] = 0;
                continue;
            }
            if (node.isReadFused || node.isReadWhole)
                m_distance[id] = 1;
            for (const JointId user : node.users)
                m_distance[id] = std::min(m_distance[id], m_distance[user] + 1);
        }
    }

    /// Backward has a kernel that wants it, or a view of it, in memory.
    bool isWholeInBackward(JointId id) const
    {
        if (m_nodes[id].isView)
            return false;
        std::vector<JointId> open{id};
        while (!open.empty()) {
            const JointNode& node = m_nodes[open.back()];
            open.pop_back();
            if (node.isReadWhole)
                return true;
            for (const JointId user : node.users)
                if (m_nodes[user].isView)
                    open.push_back(user);
        }
        return false;
    }

    bool isBannedByItself(JointId id) const
    {
        const JointNode& node = m_nodes[id];
        if (!node.isRecomputable || isWholeInBackward(id))
            return true;
        std::int64_t read = 0;
        for (const JointId input : node.inputs)
            read += m_nodes[input].bytes;
        return node.bytes * 4 < read;
    }

    void ban(JointId id)
    {
        if (!m_nodes[id].isView)
            m_isBanned[id] = 1;
    }

    /// The first that is not in the kernel of what it reads, from `starts` on and not behind `last`.
    JointId firstUnfused(const std::vector<JointId>& starts, JointId last) const
    {
        using Step = std::pair<JointId, bool>; // ids are in program order
        std::set<Step> open;
        for (const JointId start : starts)
            open.insert({start, true});
        while (!open.empty()) {
            const auto [id, isInKernel] = *open.begin();
            open.erase(open.begin());
            if (!isInKernel)
                return id;
            for (const JointId user : m_nodes[id].users)
                if (m_nodes[user].isForward && user <= last)
                    open.insert({user, isFused(id, user)});
        }
        return last;
    }

    void banFarApart()
    {
        for (JointId id = 0; id < m_nodes.size(); ++id) {
            std::vector<JointId> users;
            for (const JointId user : m_nodes[id].users)
                if (m_nodes[user].isForward)
                    users.push_back(user);
            if (!m_nodes[id].isForward || users.size() < 2)
                continue;
            const JointId first = firstUnfused(users, *std::max_element(users.begin(), users.end()));
            for (const JointId user : users)
                if (user > first && isFused(id, user))
                    ban(user);
        }
    }

    void banLongChains()
    {
        constexpr JointId longest = 100;
        std::vector<std::uint8_t> isVisited(m_nodes.size(), 0);
        for (JointId start = 0; start < m_nodes.size(); ++start) {
            if (!m_nodes[start].isForward)
                continue;
            std::priority_queue<JointId, std::vector<JointId>, std::greater<>> open;
            open.push(start);
            while (!open.empty()) {
                const JointId id = open.top();
                open.pop();
                if (isVisited[id])
                    continue;
                isVisited[id] = 1;
                if (id > start + longest && open.empty()) {
                    ban(id);
                    break;
                }
                for (const JointId user : m_nodes[id].users)
                    if (m_nodes[user].isForward && isFused(id, user) && !m_isBanned[user])
                        open.push(user);
            }
        }
    }

    std::int64_t weight(JointId id) const
    {
        const JointNode& node = m_nodes[id];
        if (node.isStatic)
            return 0;
        const double near = std::clamp(m_distance[id], 1, 100);
        const auto bytes = std::int64_t(double(node.bytes) * std::pow(1.1, near));
        bool isMaterialized = node.isInput || node.isOutput || node.isReadWhole;
        for (const JointId user : node.users)
            isMaterialized = isMaterialized || !isFused(id, user);
        return isMaterialized || (node.isReadFused && !node.isFusible) ? bytes : 2 * bytes;
    }

    std::vector<std::uint8_t> cut() const
    {
        const auto source = MinimumCut::Node(2 * m_nodes.size()), sink = source + 1;
        MinimumCut cut(2 * m_nodes.size() + 2);
        for (JointId id = 0; id < m_nodes.size(); ++id) {
            const JointNode& node = m_nodes[id];
            if (node.isReadFused || node.isReadWhole)
                cut.addEdge(2 * id + 1, sink, MinimumCut::unlimited);
            if (m_isBanned[id])
                cut.addEdge(source, 2 * id, MinimumCut::unlimited);
            cut.addEdge(2 * id, 2 * id + 1, weight(id));
            for (const JointId user : node.users)
                cut.addEdge(2 * id + 1, 2 * user, MinimumCut::unlimited);
        }
        const std::vector<std::uint8_t> isBehind = cut.sinkSide(source, sink);
        std::vector<std::uint8_t> kept(m_nodes.size());
        for (JointId id = 0; id < m_nodes.size(); ++id)
            kept[id] = isBehind[2 * id + 1] && !isBehind[2 * id];
        return kept;
    }

    const std::vector<JointNode>& m_nodes;
    std::vector<int> m_distance;
    std::vector<std::uint8_t> m_isBanned;
};

} // namespace

std::vector<std::uint8_t> keptNodes(const JointGraph& joint)
{
    return Partitioner(joint).kept();
}

std::vector<std::vector<JointId>> neededNodes(const JointGraph& joint, const std::vector<std::uint8_t>& kept)
{
    std::vector<std::vector<JointId>> needed(joint.reads.size());
    std::vector<std::uint32_t> visit(joint.nodes.size(), UINT32_MAX);
    for (std::uint32_t op = 0; op < needed.size(); ++op) {
        std::vector<JointId> open = joint.reads[op];
        while (!open.empty()) {
            const JointId id = open.back();
            open.pop_back();
            if (std::exchange(visit[id], op) == op)
                continue;
            const JointNode& node = joint.nodes[id];
            if (kept[id] || node.isInput)
                needed[op].push_back(id);
            else
                open.insert(open.end(), node.inputs.begin(), node.inputs.end());
        }
        std::sort(needed[op].begin(), needed[op].end());
    }
    return needed;
}

} // namespace memscape
