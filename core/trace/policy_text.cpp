// SPDX-License-Identifier: Apache-2.0
// What a request made an allocator do, in words. Every number is of the act or of the segments before it.
#include "core/trace/policy_replay.h"

#include "core/base/number.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

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

/// Of PyTorch's rules: why the block was split.
std::string splitText(const PolicyAct& act, const AllocatorOptions& options)
{
    const bool isSmall = act.pool == "small pool";
    const std::int64_t least = isSmall || options.expandableSegments ? smallestBlock : smallLimit;
    return fmt::format("{} > {}: split, {} stay free", sizeText(act.rest), sizeText(least), sizeText(act.rest));
}

/// Of a request: "96 MiB", "100 B rounded up to 512 B".
std::string roundingText(const PolicyAct& act, const PolicySetting& setting, std::int64_t asked)
{
    const bool isCaching = setting.kind == PolicyKind::Caching;
    const std::int64_t rounded = isCaching ? roundedRequest(asked, setting.options) : act.given;
    const std::string from = sizeText(asked), to = sizeText(rounded);
    return from != to ? fmt::format("{} rounded up to {}", from, to) : from;
}

/// PyTorch gave the block whole, though it is larger: why; empty where it did not.
std::string wholeText(const PolicyAct& act, const PolicySetting& setting, std::int64_t asked)
{
    const std::int64_t rounded = roundedRequest(asked, setting.options);
    if (setting.kind != PolicyKind::Caching || act.given <= rounded)
        return {};
    const bool isOversize = setting.options.maxSplit && rounded >= *setting.options.maxSplit;
    const std::string rest = isOversize
        ? "blocks of max_split_size and more are not split"
        : fmt::format("the rest of {} is not more than {}", sizeText(act.given - rounded), sizeText(smallLimit));
    return fmt::format("the block of {} is given whole: {}", sizeText(act.given), rest);
}

std::vector<std::string> reusedText(const PolicyAct& act, const PolicySetting& setting, std::int64_t asked)
{
    const std::string request = roundingText(act, setting, asked);
    if (setting.isPlanned())
        return {fmt::format("{} where the plan put it", request)};
    if (setting.kind == PolicyKind::PowersOfTwo)
        return {fmt::format("{} from the {}", request, act.pool)};
    const bool isFirst = setting.kind == PolicyKind::FirstFit;
    std::vector<std::string> lines{
        fmt::format("{} from the {}: {}", request, act.pool, isFirst ? "first fit" : "best fit")};
    if (const std::string whole = wholeText(act, setting, asked); !whole.empty())
        lines.push_back(whole);
    else if (act.rest == 0)
        lines.emplace_back("a free block of that size");
    else if (setting.kind == PolicyKind::Caching)
        lines.push_back(fmt::format("{} block, rest {}", sizeText(act.found), splitText(act, setting.options)));
    else
        lines.push_back(fmt::format("{} hole, {} stay free behind it", sizeText(act.found), sizeText(act.rest)));
    return lines;
}

std::vector<std::string> takenText(const PolicyAct& act, const PolicySetting& setting, std::int64_t asked,
                                   const FreeBefore& free)
{
    if (setting.isPlanned())
        return {fmt::format("the whole plan is taken at once: {}", sizeText(act.taken))};
    const std::string request = roundingText(act, setting, asked);
    std::vector<std::string> lines;
    if (free.blocks > 0)
        lines.push_back(fmt::format("{}: no free block of the {} fits; {} are free in it, the largest piece {}",
                                    request, act.pool, sizeText(free.bytes), sizeText(free.largest)));
    else
        lines.push_back(fmt::format("{}: nothing is free in the {}", request, act.pool));
    if (act.isRetry)
        lines.push_back(fmt::format("the driver refused: the cache was emptied first, {} in {} pieces",
                                    sizeText(act.returned), act.returns));
    else if (act.returns > 0)
        lines.push_back(fmt::format("{} were given back first, in {} pieces", sizeText(act.returned), act.returns));
    lines.push_back(fmt::format("{} taken from the driver", sizeText(act.taken))
                    + (act.rest > 0 ? fmt::format(": {} of it stay free", sizeText(act.rest)) : std::string()));
    if (const std::string whole = wholeText(act, setting, asked); !whole.empty())
        lines.push_back(whole);
    if (setting.kind == PolicyKind::Caching && !setting.options.expandableSegments && act.taken == largeSegment
        && act.given < largeRequest)
        lines.emplace_back("a request of 1 to 10 MiB takes a segment of 20 MiB");
    return lines;
}

std::vector<std::string> freedText(const PolicyAct& act)
{
    if (act.freeAfter == 0)
        return {fmt::format("{} freed and given back to the driver", sizeText(act.given))};
    std::vector<std::string> lines{
        act.merged == 0
            ? fmt::format("{} freed; it stays in the {}", sizeText(act.given), act.pool)
            : fmt::format("{} freed and merged with {} beside it: {} free in one piece", sizeText(act.given),
                          act.merged == 1 ? "the free block" : "the two free blocks", sizeText(act.freeAfter))};
    if (act.merged == 0 && act.pool.ends_with("pool"))
        lines.emplace_back("its neighbours are alive: nothing to merge with");
    if (act.returned > 0)
        lines.push_back(fmt::format("the free end of {} went back to the driver", sizeText(act.returned)));
    return lines;
}

} // namespace

std::string sizeText(std::int64_t bytes)
{
    return bytesText(double(bytes));
}

std::vector<std::string> actText(const RequestTrace& trace, std::size_t request, const PolicyAct& act,
                                 const PolicySetting& setting, const std::vector<PolicySegment>& before)
{
    const RequestedBlock& block = trace.blocks[trace.requests[request].block];
    switch (act.kind) {
    case ActKind::Reused: return reusedText(act, setting, block.bytes);
    case ActKind::Taken: return takenText(act, setting, block.bytes, freeIn(before, act.pool, block.stream));
    case ActKind::Refused:
        return {fmt::format("{}: out of memory", sizeText(block.bytes)),
                "nothing that is free fits, and the driver has no more, also after the cache was emptied"};
    case ActKind::Freed: return freedText(act);
    case ActKind::Deferred:
        return {fmt::format("{} freed, but another stream still uses it", sizeText(act.given)),
                "it can be used again after synchronize"};
    case ActKind::Waited: return {"every stream has finished: what waited is free"};
    case ActKind::Found: return {fmt::format("{}: there when the recording began", sizeText(block.bytes))};
    case ActKind::Recorded: return {"another stream uses the block too: its free will wait for that"};
    case ActKind::Emptied:
        return act.returned > 0
            ? std::vector<std::string>{fmt::format("{} went back to the driver, in {} pieces", sizeText(act.returned),
                                                   act.returns),
                                       "only what is wholly free: a segment with one living block stays"}
            : std::vector<std::string>{"nothing went back to the driver",
                                       "every reserved piece has a living block in it"};
    }
    return {};
}

} // namespace memscape
