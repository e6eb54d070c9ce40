// SPDX-License-Identifier: Apache-2.0
#include "core/trace/policy_replay.h"

#include "core/base/cancellation.h"

#include <algorithm>

namespace memscape {

namespace {

void raise(PolicyCounts& peak, const PolicyCounts& now)
{
    for (std::int64_t PolicyCounts::*const count :
         {&PolicyCounts::requested, &PolicyCounts::allocated, &PolicyCounts::reserved, &PolicyCounts::segments})
        peak.*count = std::max(peak.*count, now.*count);
}

/// `now` is after an act that took memory.
ReservedPeak peakAt(std::size_t request, const PolicyCounts& now, const PolicyAct& act, std::int64_t bytes)
{
    ReservedPeak peak{request, now.reserved, act.taken, 0, 0};
    if (act.kind == ActKind::Found) { // taken before the recording: for what is not known
        peak.rounding = now.allocated - now.requested;
        return peak;
    }
    const std::int64_t before = now.reserved - act.taken;
    const std::int64_t allocated = now.allocated - act.given;
    peak.rounding = allocated - (now.requested - bytes);
    peak.free = std::max<std::int64_t>(0, before - allocated);
    return peak;
}

} // namespace

Result<PolicyReplay> replayRequests(const RequestTrace& trace, const PolicySetting& setting, ReplayKeeps keeps)
{
    MEMSCAPE_TRY(policy, makePolicy(setting, trace));
    PolicyReplay replay;
    if (keeps == ReplayKeeps::EveryRequest) {
        replay.allocated.reserve(trace.requests.size());
        replay.reserved.reserve(trace.requests.size());
    }
    for (; replay.played < trace.requests.size(); ++replay.played) {
        if (replay.played % 4096 == 0)
            MEMSCAPE_CHECK(checkWanted());
        const Request& request = trace.requests[replay.played];
        const RequestedBlock& block = trace.blocks[request.block];
        const PolicyCounts before = policy->counts();
        const PolicyAct act = policy->play(request, block);
        if (act.kind == ActKind::Refused) {
            replay.refusal = PolicyRefusal{replay.played, block.bytes, before};
            break;
        }
        const PolicyCounts now = policy->counts();
        if (now.reserved > replay.peak.reserved)
            replay.reservedPeak = peakAt(replay.played, now, act, block.bytes);
        else if (setting.isPlanned() && now.allocated > replay.peak.allocated)
            replay.reservedPeak.request = replay.played;
        raise(replay.peak, now);
        if (keeps == ReplayKeeps::EveryRequest) {
            replay.allocated.push_back(now.allocated);
            replay.reserved.push_back(now.reserved);
        }
    }
    if (setting.isPlanned()) { // all of it was taken at once: what the plan never uses
        replay.reservedPeak.free = replay.peak.reserved - replay.peak.allocated;
        replay.reservedPeak.rounding = replay.peak.allocated - replay.peak.requested;
    }
    replay.end = policy->counts();
    replay.totals = policy->totals();
    return replay;
}

} // namespace memscape
