// SPDX-License-Identifier: Apache-2.0
// What the course notes say about allocators, with the numbers of this trace beside it. Every number is of a replay (or
// of the measurement, where there is one), and every verdict is drawn from them.
#include "core/claims/claim_quotes.h"
#include "core/experiments/allocator/allocator.h"
#include "core/experiments/common/judged_number.h"

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr double leastDifference = 0.02; ///< shares below it are no difference worth a word

const PolicyReplay* replayOf(const AllocatorAnswer& answer, std::string_view key)
{
    for (const Elsewhere& other : answer.elsewhere)
        if (other.setting.key == key && other.replay && !other.replay->refusal)
            return &*other.replay;
    return nullptr;
}

Claim notesFragmentation(const AllocatorAnswer& answer, const Measurement& measured)
{
    const PolicyCounts& end = answer.replay.end;
    const double predicted = end.reserved > 0 ? double(end.reserved - end.allocated) / double(end.reserved) : 0;
    const JudgedNumber notes = judgedNumber(measured, "notes_fragmentation", predicted);
    const JudgedNumber lost = judgedNumber(measured, "unusable", answer.replay.reservedPeak.share());
    const bool isHigh = notes.value > 0.2, isLost = lost.value > 0.2;
    return quotedClaim(
        "notes-fragmentation",
        isHigh && !isLost ? "does not hold here: most of it is a cache that the next step uses"
            : isHigh      ? "holds here"
            : isLost      ? "does not hold here: it is missed, behind the last request nothing shows it"
                          : "holds here: both are low",
        fmt::format("behind the last request it reads {} ({}); at the peak {} of reserved could not be used",
                    percentText(notes.value, 3), notes.side(), percentText(lost.value, 3)));
}

Claim roundingAlone(const AllocatorAnswer& answer)
{
    const PolicyReplay& replay = answer.replay;
    const auto reserved = double(replay.peak.reserved);
    const double rounding = reserved > 0 ? double(replay.peak.allocated - replay.peak.requested) / reserved : 0;
    const double pieces = reserved > 0 ? double(replay.reservedPeak.free) / reserved : 0;
    return quotedClaim("fragment-ratio",
                       pieces > leastDifference && pieces > rounding
                           ? "does not hold here: it sees rounding alone, not the free pieces that fit nothing"
                           : "holds here: hardly anything is lost beside rounding",
                       fmt::format("rounding {} of reserved, free pieces that did not fit {}", percentText(rounding, 3),
                                   percentText(pieces, 3)));
}

/// Of a host whose blocks are written when they are made.
Claim lazyAllocation(const AllocatorAnswer& answer, const Measurement& measured)
{
    const auto reserved = double(answer.replay.peak.reserved);
    const JudgedNumber resident = judgedNumber(measured, "resident", double(answer.pages->highest * hostPage));
    return quotedClaim("lazy-allocation",
                       resident.value < (1 - leastDifference) * reserved
                           ? "holds here: part of what is reserved is never written"
                           : "makes no difference here: all that is reserved is written",
                       fmt::format("{} resident ({}) of {} reserved", bytesText(resident.value), resident.side(),
                                   bytesText(reserved)));
}

Claim poolsFragmentLess(const PolicyReplay& pool, const PolicyReplay& heap)
{
    const double more = double(pool.peak.reserved) / double(heap.peak.reserved) - 1;
    return quotedClaim("pools-fragment-less",
                       more > leastDifference ? "does not hold here: the caching pool reserves more than a plain heap"
                           : more < -leastDifference ? "holds here"
                                                     : "makes no difference here",
                       fmt::format("the same requests: PyTorch's pool reserves {}, best fit in one arena {}",
                                   sizeText(pool.peak.reserved), sizeText(heap.peak.reserved)));
}

Claim poolsCallLess(const AllocatorAnswer& answer, const PolicyReplay& pool)
{
    const auto requests =
        std::int64_t(answer.asked.trace->count(RequestKind::Allocate) + answer.asked.trace->count(RequestKind::Free));
    const std::int64_t calls = pool.totals.takes + pool.totals.returns;
    return quotedClaim(
        "pools-call-less",
        calls * 2 <= requests ? "holds here: most requests never reach the driver"
                              : "does not hold here: too few requests find a block that was used before",
        fmt::format("{} calls of the driver for {} requests", countText(double(calls)), countText(double(requests))));
}

Claim largestFirst(const AllocatorAnswer& answer, const PolicyReplay& planned)
{
    const double above = double(planned.peak.reserved) / double(answer.asked.peakLive) - 1;
    return quotedClaim("largest-first",
                       above <= leastDifference ? "holds here: as good as perfect"
                                                : "holds when a plan is possible, and stays above the bound here",
                       fmt::format("largest first {}, {} above the bound of {}", sizeText(planned.peak.reserved),
                                   percentText(above, 2), sizeText(answer.asked.peakLive)));
}

Claim colouring(const PolicyReplay& coloured, const PolicyReplay& planned)
{
    const double more = double(coloured.peak.reserved) / double(planned.peak.reserved) - 1;
    return quotedClaim("graph-colouring",
                       more > leastDifference ? "does not hold here: colours share whole buffers, offsets pack closer"
                                              : "holds here: sizes are alike",
                       fmt::format("buffers by colour {}, offsets largest first {}", sizeText(coloured.peak.reserved),
                                   sizeText(planned.peak.reserved)));
}

Claim reuse(const AllocatorAnswer& answer)
{
    double all = 0;
    for (const RequestedBlock& block : answer.asked.trace->blocks)
        all += double(block.bytes);
    const auto peak = double(answer.asked.peakLive);
    return quotedClaim(
        "pool-reuse", peak < (1 - leastDifference) * all ? "holds here" : "does not hold here: all blocks live at once",
        fmt::format("all blocks together {}, at most {} at once", bytesText(all), bytesText(peak)));
}

} // namespace

std::vector<Claim> allocatorClaims(const AllocatorAnswer& answer, const Measurement& measured)
{
    std::vector<Claim> claims{notesFragmentation(answer, measured), roundingAlone(answer)};
    if (answer.pages && answer.asked.touch == FirstTouch::Lazy)
        claims.push_back(lazyAllocation(answer, measured));
    const PolicyReplay* const pool = replayOf(answer, "default");
    const PolicyReplay* const heap = replayOf(answer, "best-fit");
    const PolicyReplay* const planned = replayOf(answer, "largest-first");
    const PolicyReplay* const coloured = replayOf(answer, "lifetime-colouring");
    if (pool && heap)
        claims.push_back(poolsFragmentLess(*pool, *heap));
    if (pool)
        claims.push_back(poolsCallLess(answer, *pool));
    claims.push_back(reuse(answer));
    if (planned)
        claims.push_back(largestFirst(answer, *planned));
    if (planned && coloured)
        claims.push_back(colouring(*coloured, *planned));
    return claims;
}

} // namespace memscape
