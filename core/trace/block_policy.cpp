// SPDX-License-Identifier: Apache-2.0
#include "core/trace/block_policy.h"

namespace memscape {

PolicyAct BlockPolicy::play(const Request& request, const RequestedBlock& block)
{
    PolicyAct act;
    switch (request.kind) {
    case RequestKind::Allocate:
        act = allocate(request.block, block.bytes);
        if (act.kind != ActKind::Refused) {
            m_held[request.block] = {act.address, block.bytes, act.given, false};
            m_counts.requested += block.bytes;
            m_counts.allocated += act.given;
        }
        return act;
    case RequestKind::Free: {
        Held& held = m_held[request.block];
        m_counts.requested -= held.requested;
        m_counts.allocated -= held.given;
        if (m_recorded.count(request.block) == 0)
            return freed(request.block);
        held.isPending = true;
        m_pending.push_back(request.block);
        act.kind = ActKind::Deferred;
        act.address = held.address;
        act.given = held.given;
        return act;
    }
    case RequestKind::Record:
        m_recorded.insert(request.block);
        act.kind = ActKind::Recorded;
        return act;
    case RequestKind::Synchronize:
    case RequestKind::EmptyCache: // which synchronizes first
        for (const BlockId pending : completedBy(request, m_pending))
            static_cast<void>(freed(pending));
        if (request.kind == RequestKind::EmptyCache) {
            act = emptyCache();
            act.kind = ActKind::Emptied;
        }
        return act; // Waited
    }
    return act;
}

PolicyAct BlockPolicy::freed(BlockId id)
{
    PolicyAct act = free(id);
    act.kind = ActKind::Freed;
    act.address = m_held[id].address;
    act.given = m_held[id].given;
    m_held.erase(id);
    return act;
}

void BlockPolicy::take(std::int64_t bytes, PolicyAct& act)
{
    ++m_totals.takes;
    m_totals.takenBytes += bytes;
    m_counts.reserved += bytes;
    act.taken += bytes;
}

void BlockPolicy::giveBack(std::int64_t bytes, PolicyAct& act)
{
    ++m_totals.returns;
    ++act.returns;
    m_totals.returnedBytes += bytes;
    m_counts.reserved -= bytes;
    act.returned += bytes;
}

} // namespace memscape
