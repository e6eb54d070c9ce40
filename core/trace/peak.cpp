// SPDX-License-Identifier: Apache-2.0
#include "core/trace/peak.h"

#include <algorithm>

namespace memscape {

namespace {

/// The highest moment among the events that `counts` accepts.
template <typename Counts> std::optional<Moment> highest(const Trace& trace, Counts counts)
{
    std::optional<std::size_t> best;
    std::int64_t bytes = 0, most = 0;
    const auto& events = trace.events();
    for (std::size_t i = 0; i < events.size(); ++i) {
        bytes += events[i].change();
        if (counts(events[i]) && (!best || bytes > most)) {
            best = i;
            most = bytes;
        }
    }
    if (!best)
        return std::nullopt;
    Moment moment{trace.momentOf(*best), most, {}, events[*best].phase, events[*best].microBatch};
    for (std::size_t i = 0; i <= *best; ++i)
        moment.categories[std::size_t(events[i].category)] += events[i].change();
    return moment;
}

} // namespace

std::string moduleKind(std::string_view path)
{
    std::string text;
    for (std::size_t begin = 0; begin <= path.size();) {
        const std::size_t end = std::min(path.find('.', begin), path.size());
        const std::string_view part = path.substr(begin, end - begin);
        const bool isNumber = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
        text += begin == 0 ? "" : ".";
        text += isNumber ? std::string_view("*") : part;
        begin = end + 1;
    }
    return text;
}

std::optional<Moment> peakOf(const Trace& trace)
{
    return highest(trace, [](const Event&) { return true; });
}

std::optional<Moment> peakOf(const Trace& trace, Phase phase)
{
    return highest(trace, [phase](const Event& event) { return event.phase == phase; });
}

std::vector<BlockId> liveAt(const Trace& trace, std::size_t moment)
{
    const auto& events = trace.events();
    std::vector<bool> isLive(trace.blockCount() + 1);
    const std::size_t last = std::min(trace.storedAt(moment), events.size() - 1);
    for (std::size_t i = 0; i < events.size() && i <= last; ++i)
        isLive[events[i].block] = events[i].isAllocation();
    std::vector<BlockId> blocks;
    for (BlockId block = 1; block < isLive.size(); ++block)
        if (isLive[block])
            blocks.push_back(block);
    return blocks;
}

} // namespace memscape
