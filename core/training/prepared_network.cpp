// SPDX-License-Identifier: Apache-2.0
#include "core/training/prepared_network.h"

#include <any>
#include <string>

namespace memscape {

namespace {

std::vector<ModuleId> moduleIds(const Graph& graph, Trace& trace)
{
    std::vector<ModuleId> ids;
    ids.reserve(graph.modules.size());
    for (const std::string& path : graph.paths())
        ids.push_back(trace.module(path));
    return ids;
}

} // namespace

std::shared_ptr<const PreparedNetwork> preparedNetwork(const Graph& graph)
{
    Trace trace;
    auto made = std::make_shared<PreparedNetwork>();
    made->parameters = parameterTensors(graph, trace);
    made->moduleIds = moduleIds(graph, trace);
    made->modules = trace.moduleTable();
    return made;
}

std::shared_ptr<const PreparedNetwork> preparedNetwork(RecordedNetworks& networks, const Graph& graph)
{
    using Kept = std::shared_ptr<const PreparedNetwork>;
    return std::any_cast<Kept>(networks.beside(graph, [&] { return std::any(preparedNetwork(graph)); }));
}

} // namespace memscape
