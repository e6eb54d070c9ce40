// SPDX-License-Identifier: Apache-2.0
// All of an answer: the case, the network as units, the step of one rank; and what its collectives say of themselves.
#include "core/experiments/sharding/sharding.h"

#include <algorithm>

namespace memscape {

double ShardCollective::sentBytes() const
{
    if (kind == CollectiveKind::HostCopy)
        return double(pieceElements * elementBytes) * count;
    return double(ringSteps(kind, ranks)) * double(pieceElements * elementBytes) * count;
}

ShardNccl ncclOf(const ShardCollective& one, const ShardingLink& link)
{
    ShardNccl nccl{{one.what, one.kind, one.payload(), one.count, int(one.ranks), one.stride}, link.rate.bandwidth};
    if (one.ranks <= 4)
        nccl.peer = one.ranks <= 2 ? link.pair : link.four;
    return nccl;
}

std::string_view shardPhaseText(ShardPhase phase)
{
    switch (phase) {
    case ShardPhase::Forward: return "forward";
    case ShardPhase::Backward: return "backward";
    case ShardPhase::Update: break;
    }
    return "update";
}

std::vector<ShardCollective> ShardStep::collectives() const
{
    std::vector<std::pair<double, const ShardCollective*>> begun;
    for (std::size_t lane = 0; lane < tasks.size(); ++lane) {
        for (std::size_t i = 0; i < tasks[lane].size(); ++i) {
            if (tasks[lane][i].collective)
                begun.emplace_back(spans[lane][i].begin, &*tasks[lane][i].collective);
        }
    }
    std::ranges::stable_sort(begun, [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<ShardCollective> all;
    for (const auto& [at, one] : begun)
        all.push_back(*one);
    return all;
}

Result<ShardingAnswer> answerSharding(const Device& device, const Parameters& parameters, PredictionContext& context)
{
    MEMSCAPE_TRY(asked, shardingCase(device, parameters));
    MEMSCAPE_TRY(network, shardedNetwork(device, parameters, asked, context));
    MEMSCAPE_TRY(step, shardStep(device, *network, asked));
    const KeptBytes kept = keptBytes(network->network->parameters, asked.plan());
    return ShardingAnswer{std::move(asked), std::move(network), kept, std::move(step)};
}

} // namespace memscape
