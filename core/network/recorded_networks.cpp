// SPDX-License-Identifier: Apache-2.0
#include "core/network/recorded_networks.h"

#include "core/network/pipeline_part.h"

#include <algorithm>

namespace memscape {

namespace {

/// B that networks are kept in; the newest is kept however large it is.
constexpr std::size_t keptLimit = std::size_t(32) << 20;

std::size_t sizeOf(const Graph& graph)
{
    return graph.operators.size() * sizeof(Operator) + graph.operands.size() * sizeof(TensorId)
        + graph.tensors.size() * sizeof(Tensor) + graph.storages.size() * sizeof(Storage);
}

} // namespace

RecordedNetworks::RecordedNetworks(ModelDescription model)
    : m_model(std::move(model))
{ }

Result<std::shared_ptr<const Graph>> RecordedNetworks::network(const BuildOptions& options)
{
    const std::lock_guard lock(m_mutex);
    return found(options);
}

/// Ranks of a pipeline are parts of one network, which is recorded once.
Result<Graph> RecordedNetworks::made(const BuildOptions& options)
{
    if (options.pipeline.ranks == 1)
        return buildNetwork(m_model, options);
    BuildOptions all = options;
    all.pipeline = {};
    MEMSCAPE_TRY(whole, found(all));
    return pipelinePart(*whole, options.pipeline);
}

Result<std::shared_ptr<const Graph>> RecordedNetworks::found(const BuildOptions& options)
{
    const auto known =
        std::find_if(m_kept.begin(), m_kept.end(), [&](const Kept& kept) { return kept.options == options; });
    if (known != m_kept.end()) {
        auto used = std::move(*known);
        m_kept.erase(known);
        m_kept.push_front(std::move(used));
        return m_kept.front().graph;
    }
    MEMSCAPE_TRY(graph, made(options));
    m_operators += graph.recordedOperators();
    m_kept.push_front({options, std::make_shared<const Graph>(std::move(graph))});
    std::size_t bytes = 0, count = 0;
    while (count < m_kept.size() && (count == 0 || bytes + sizeOf(*m_kept[count].graph) <= keptLimit))
        bytes += sizeOf(*m_kept[count++].graph);
    m_kept.erase(m_kept.begin() + std::ptrdiff_t(count), m_kept.end());
    return m_kept.front().graph;
}

std::any RecordedNetworks::beside(const Graph& graph, const std::function<std::any()>& make)
{
    const std::lock_guard lock(m_mutex);
    const auto known =
        std::find_if(m_kept.begin(), m_kept.end(), [&](const Kept& kept) { return kept.graph.get() == &graph; });
    if (known == m_kept.end())
        return make();
    if (!known->beside.has_value())
        known->beside = make();
    return known->beside;
}

} // namespace memscape
