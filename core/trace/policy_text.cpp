// SPDX-License-Identifier: Apache-2.0
// What a request made an allocator do, in words. Every number is of the act or of the segments before it.
#include "core/trace/policy_replay.h"

#include "core/base/number.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

std::string size(std::int64_t bytes)
{
    return bytesText(double(bytes));
}

struct FreeBefore
{
    std::int64_t bytes = 0, largest = 0;
    std::size_t blocks = 0;
};

/// What was free where the request looked.
FreeBefore freeIn(const std::vector<PolicySegment>& segments, const std::string& pool, std::uint16_t stream)
{
    FreeBefore free;
    for (const PolicySegment& segment : segments) {
        if (!segment.kind.starts_with(pool) || segment.stream != stream)
            continue;
        for (const PolicyBlock& block : segment.blocks) {
            if (block.block != noBlock)
                continue;
            free.bytes += block.size;
            free.largest = std::max(free.largest, block.size);
            ++free.blocks;
        }
    }
    return free;
}

/// Of PyTorch's rules: why the block was split, or not.
std::string splitText(const PolicyAct& act, const AllocatorOptions& options)
{
    const bool isSmall = act.pool == "small pool";
    const std::int64_t least = isSmall || options.expandableSegments ? smallestBlock : smallLimit;
    if (act.rest > 0)
        return fmt::format("{} > {}: split, {} stay free", size(act.rest), size(least), size(act.rest));
    return {};
}

std::string roundingText(const PolicyAct& act, std::int64_t asked)
{
    return act.given > asked ? fmt::format("{} rounded up to {}", size(asked), size(act.given)) : size(act.given);
}

std::vector<std::string> reusedText(const PolicyAct& act, const PolicySetting& setting, std::int64_t asked)
{
    if (setting.isPlanned())
        return {fmt::format("{} where the plan put it", roundingText(act, asked))};
    const bool isFirst = setting.kind == PolicyKind::FirstFit;
    std::vector<std::string> lines{
        fmt::format("{} from the {}: {}", roundingText(act, asked), act.pool, isFirst ? "first fit" : "best fit")};
    if (setting.kind == PolicyKind::Caching && act.given > roundedRequest(asked, setting.options))
        lines = {fmt::format("{} from the {}: best fit", size(roundedRequest(asked, setting.options)), act.pool),
                 fmt::format("{} block, given whole: the rest would be {}, not more than {}", size(act.given),
                             size(act.given - roundedRequest(asked, setting.options)), size(smallLimit))};
    else if (act.rest > 0)
        lines.push_back(setting.kind == PolicyKind::Caching
                            ? fmt::format("{} block, rest {}", size(act.found), splitText(act, setting.options))
                            : fmt::format("{} hole, {} stay free behind it", size(act.found), size(act.rest)));
    else
        lines.push_back("a free block of that size");
    return lines;
}

std::vector<std::string> takenText(const PolicyAct& act, const PolicySetting& setting, std::int64_t asked,
                                   const FreeBefore& free)
{
    std::vector<std::string> lines;
    if (setting.isPlanned())
        return {fmt::format("the whole plan is taken at once: {}", size(act.taken))};
    if (free.blocks > 0)
        lines.push_back(fmt::format("{}: no free block of the {} fits; {} are free in it, the largest piece {}",
                                    roundingText(act, asked), act.pool, size(free.bytes), size(free.largest)));
    else
        lines.push_back(fmt::format("{}: nothing is free in the {}", roundingText(act, asked), act.pool));
    if (act.isRetry)
        lines.push_back(fmt::format("the driver refused: the cache was emptied first, {} in {} pieces",
                                    size(act.returned), act.returns));
    else if (act.returns > 0)
        lines.push_back(fmt::format("{} were given back first, in {} pieces", size(act.returned), act.returns));
    lines.push_back(fmt::format("{} taken from the driver", size(act.taken))
                    + (act.rest > 0 ? fmt::format(": {} of it stay free", size(act.rest)) : std::string()));
    if (setting.kind == PolicyKind::Caching && !setting.options.expandableSegments && act.taken == largeSegment
        && act.given < largeRequest)
        lines.emplace_back("a request of 1 to 10 MiB takes a segment of 20 MiB");
    return lines;
}

std::vector<std::string> freedText(const PolicyAct& act)
{
    if (act.freeAfter == 0)
        return {fmt::format("{} freed and given back to the driver", size(act.given))};
    std::vector<std::string> lines{
        act.merged == 0 ? fmt::format("{} freed; it stays in the {}", size(act.given), act.pool)
                        : fmt::format("{} freed and merged with {} beside it: {} free in one piece", size(act.given),
                                      act.merged == 1 ? "the free block" : "the two free blocks", size(act.freeAfter))};
    if (act.merged == 0 && act.pool.ends_with("pool"))
        lines.emplace_back("its neighbours are alive: nothing to merge with");
    if (act.returned > 0)
        lines.push_back(fmt::format("the free end of {} went back to the driver", size(act.returned)));
    return lines;
}

} // namespace

std::vector<std::string> actText(const RequestTrace& trace, std::size_t request, const PolicyAct& act,
                                 const PolicySetting& setting, const std::vector<PolicySegment>& before)
{
    const RequestedBlock& block = trace.blocks[trace.requests[request].block];
    switch (act.kind) {
    case ActKind::Reused: return reusedText(act, setting, block.bytes);
    case ActKind::Taken: return takenText(act, setting, block.bytes, freeIn(before, act.pool, block.stream));
    case ActKind::Refused:
        return {fmt::format("{}: out of memory", size(block.bytes)),
                "nothing that is free fits, and the driver has no more, also after the cache was emptied"};
    case ActKind::Freed: return freedText(act);
    case ActKind::Deferred:
        return {fmt::format("{} freed, but another stream still uses it", size(act.given)),
                "it can be used again after synchronize"};
    case ActKind::Waited: return {"every stream has finished: what waited is free"};
    case ActKind::Recorded: return {"another stream uses the block too: its free will wait for that"};
    case ActKind::Emptied:
        return act.returned > 0
            ? std::vector<std::string>{fmt::format("{} went back to the driver, in {} pieces", size(act.returned),
                                                   act.returns),
                                       "only what is wholly free: a segment with one living block stays"}
            : std::vector<std::string>{"nothing went back to the driver",
                                       "every reserved piece has a living block in it"};
    }
    return {};
}

} // namespace memscape
