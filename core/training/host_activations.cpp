// SPDX-License-Identifier: Apache-2.0
#include "core/training/host_activations.h"

#include <algorithm>
#include <set>
#include <utility>

namespace memscape {

namespace {

std::int64_t tensorBytes(const Graph& graph, TensorId tensor)
{
    return graph.layoutOf(tensor).elements() * elementBytes(graph.tensors[tensor].dtype);
}

/// The first product behind the last layer, or what follows that layer where there is none.
std::uint32_t headOf(const Graph& graph)
{
    std::uint32_t end = 0;
    for (const Block& block : graph.blocks)
        if (block.kind == Block::Kind::Layer)
            end = std::max(end, block.last);
    for (std::uint32_t i = end; i < graph.operators.size(); ++i) {
        const OperatorKind kind = graph.operators[i].kind;
        if (isMatrixProduct(kind) || kind == OperatorKind::LigerLoss || kind == OperatorKind::CutLoss)
            return i;
    }
    return end;
}

} // namespace

bool goesToHost(const Graph& graph, TensorId tensor)
{
    constexpr std::int64_t least = 1024;
    const Storage& storage = graph.storageOf(tensor);
    return storage.role == Role::Activation && storage.source != OperatorKind::Fill
        && tensorBytes(graph, tensor) >= least;
}

std::int64_t hostActivationBytes(const Graph& graph, const CheckpointPlan& plan)
{
    if (!plan.sendsToHost)
        return 0;
    std::int64_t bytes = 0;
    const auto add = [&](TensorId tensor) {
        if (goesToHost(graph, tensor))
            bytes += tensorBytes(graph, tensor);
    };
    std::vector<std::uint8_t> isRunAgain(graph.operators.size(), 0);
    for (const Segment& segment : segments(graph, plan)) {
        std::fill(isRunAgain.begin() + segment.first, isRunAgain.begin() + segment.last, 1);
        for (const TensorId tensor : segment.inputs)
            add(tensor);
    }
    std::size_t region = 0; // compiled; it packs a storage once
    std::set<StorageId> packed;
    for (std::uint32_t i = 0; i < headOf(graph); ++i) {
        for (; region < graph.regions.size() && i >= graph.regions[region].last; ++region)
            packed.clear();
        const bool isCompiled = region < graph.regions.size() && i >= graph.regions[region].first;
        for (const TensorId tensor : graph.saved(graph.operators[i]))
            if (!isRunAgain[i] && (!isCompiled || packed.insert(graph.tensors[tensor].storage).second))
                add(tensor);
    }
    return bytes;
}

HostActivations::HostActivations(const Graph& graph, LiveStorages& live)
    : m_live(live)
    , m_head(headOf(graph))
    , m_isSent(graph.operands.size(), 0)
{ }

void HostActivations::send(std::uint32_t key, LiveId packed)
{
    m_isSent.resize(std::max<std::size_t>(m_isSent.size(), key + 1), 0);
    m_isSent[key] = 1;
    m_stash.push_back({key, packed});
    if (m_stash.size() > mostStashed) {
        m_live.release(m_stash.front().live);
        m_stash.pop_front();
    }
}

LiveId HostActivations::bringBack(std::uint32_t key, const std::function<LiveId()>& make)
{
    m_isSent[key] = 0;
    m_hasUnpacked = true;
    const auto stashed =
        std::find_if(m_stash.begin(), m_stash.end(), [key](const Stashed& one) { return one.key == key; });
    const LiveId live = stashed == m_stash.end() ? make() : stashed->live;
    m_live.retain(live);
    if (stashed == m_stash.end())
        m_unpacked.push_back(live);
    return live;
}

void HostActivations::release(std::vector<LiveId>& all)
{
    for (const LiveId live : std::exchange(all, {}))
        m_live.release(live);
}

void HostActivations::ran()
{
    if (!std::exchange(m_hasUnpacked, false))
        return;
    for (const Stashed& one : std::exchange(m_stash, {}))
        m_live.release(one.live);
    release(m_unpackedBefore);
    m_unpackedBefore = std::exchange(m_unpacked, {});
}

void HostActivations::endBackward()
{
    release(m_unpackedBefore);
    release(m_unpacked);
}

} // namespace memscape
