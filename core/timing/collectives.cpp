// SPDX-License-Identifier: Apache-2.0
#include "core/timing/collectives.h"

#include <algorithm>

namespace memscape {

bool leavesMachine(const Collective& one, const Machines& machines)
{
    return machines.ranks > 0 && std::int64_t(one.stride) * (one.degree - 1) >= machines.ranks;
}

double exchangeSeconds(const Collective& one, double peer, const Machines& machines)
{
    const double sent = one.sentBytes();
    if (sent == 0)
        return 0;
    if (!leavesMachine(one, machines))
        return sent / peer;
    const int inside = std::clamp((machines.ranks + one.stride - 1) / one.stride, 1, one.degree);
    switch (one.kind) {
    case CollectiveKind::Ring:
    case CollectiveKind::Send: return sent / machines.network;
    case CollectiveKind::AllToAll: {
        const double away = sent * double(one.degree - inside) / double(one.degree - 1);
        return std::max(away / machines.network, inside > 1 ? (sent - away) / peer : 0);
    }
    default: {
        const double through = inside * machines.network;
        return sent / (inside > 1 ? std::min(peer, through) : through);
    }
    }
}

double ringSeconds(CollectiveKind kind, double payload, std::int64_t ranks, const RankLink& link)
{
    return double(ringSteps(kind, ranks)) * (link.latency + payload / double(ranks) / link.bandwidth);
}

} // namespace memscape
