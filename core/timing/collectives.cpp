// SPDX-License-Identifier: Apache-2.0
#include "core/timing/collectives.h"

#include <bit>
#include <limits>

namespace memscape {

double ringSeconds(CollectiveKind kind, double payload, std::int64_t ranks, const RankLink& link)
{
    return double(ringSteps(kind, ranks)) * (link.latency + payload / double(ranks) / link.bandwidth);
}

double treeSeconds(CollectiveKind kind, double payload, std::int64_t ranks, const RankLink& link)
{
    if (ranks <= 1)
        return 0;
    const double depth = double(std::bit_width(std::uint64_t(ranks - 1))); // ⌈log₂ N⌉
    switch (kind) {
    case CollectiveKind::AllReduce: return 2 * (depth * link.latency + payload / link.bandwidth);
    case CollectiveKind::Broadcast: return depth * link.latency + payload / link.bandwidth;
    default: return std::numeric_limits<double>::infinity();
    }
}

CollectiveAlgorithm quickestAlgorithm(CollectiveKind kind, double payload, std::int64_t ranks, const RankLink& link)
{
    return treeSeconds(kind, payload, ranks, link) < ringSeconds(kind, payload, ranks, link)
        ? CollectiveAlgorithm::Tree
        : CollectiveAlgorithm::Ring;
}

} // namespace memscape
