// SPDX-License-Identifier: Apache-2.0
// Requests played through an allocator, one by one or all of them: peaks, what was reserved over time, and why reserved
// was more than allocated when it was highest.
//
// What cannot be used: at the request that made reserved grow to its peak, all that was reserved before it and not in
// the program's hands was of no use to that request: free pieces that are too small or in another pool, and what blocks
// were rounded up by. That is fragmentation; "(reserved − allocated) / reserved" is not: it also counts free memory
// that the next request gets.
#pragma once

#include "core/trace/memory_policy.h"

#include <optional>

namespace memscape {

/// The request that the driver refused; nothing is played after it.
struct PolicyRefusal
{
    std::size_t request = 0;
    std::int64_t bytes = 0; ///< asked for by the program
    PolicyCounts before;
};

/// Where reserved was highest for the first time; of a plan, which takes all at once, where most of it was in use, and
/// what it never uses.
struct ReservedPeak
{
    std::size_t request = 0;   ///< that made it
    std::int64_t reserved = 0; ///< B
    std::int64_t taken = 0;    ///< B of them for this request
    std::int64_t free = 0;     ///< B that were reserved and free, and could not serve it
    std::int64_t rounding = 0; ///< B that blocks had been rounded up by
    std::int64_t unusable() const { return free + rounding; }
    double share() const { return reserved > 0 ? double(unusable()) / double(reserved) : 0; }
};

struct PolicyReplay
{
    PolicyCounts peak; ///< each of its own moment
    PolicyCounts end;
    PolicyTotals totals;
    ReservedPeak reservedPeak;
    std::optional<PolicyRefusal> refusal;
    std::size_t played = 0;                        ///< requests, without the refused one
    std::vector<std::int64_t> allocated, reserved; ///< B after each of them, when asked for
};

enum class ReplayKeeps { Totals, EveryRequest };

/// Errors: those of makePolicy(), predict.cancelled.
Result<PolicyReplay> replayRequests(const RequestTrace& trace, const PolicySetting& setting,
                                    ReplayKeeps keeps = ReplayKeeps::Totals);

/// "96 MiB"
std::string sizeText(std::int64_t bytes);

/// What a request did and why, in a practitioner's words, a sentence or two a line. `before`: the segments before it.
std::vector<std::string> actText(const RequestTrace& trace, std::size_t request, const PolicyAct& act,
                                 const PolicySetting& setting, const std::vector<PolicySegment>& before);

} // namespace memscape
