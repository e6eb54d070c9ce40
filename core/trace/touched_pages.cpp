// SPDX-License-Identifier: Apache-2.0
#include "core/trace/touched_pages.h"

#include "core/base/cancellation.h"
#include "core/base/rounding.h"

#include <algorithm>

namespace memscape {

void TouchedPages::count(std::int64_t pages)
{
    m_pages += pages;
    m_counts.faults += std::max<std::int64_t>(0, pages);
    m_counts.highest = std::max(m_counts.highest, m_pages);
}

void TouchedPages::touch(std::uint64_t address, std::int64_t bytes)
{
    std::uint64_t begin = address / hostPage, end = (address + std::uint64_t(bytes) - 1) / hostPage + 1;
    std::int64_t known = 0;
    auto at = m_ranges.upper_bound(begin);
    if (at != m_ranges.begin() && std::prev(at)->second >= begin)
        --at;
    const std::uint64_t first = begin, last = end;
    while (at != m_ranges.end() && at->first <= end) {
        known += std::int64_t(std::min(at->second, last)) - std::int64_t(std::max(at->first, first));
        begin = std::min(begin, at->first);
        end = std::max(end, at->second);
        at = m_ranges.erase(at);
    }
    m_ranges[begin] = end;
    count(std::int64_t(last - first) - known);
}

/// Whole pages: one that is partly in use stays.
void TouchedPages::forget(std::uint64_t address, std::int64_t bytes)
{
    const std::uint64_t begin = quotientUp(address, hostPage), end = (address + std::uint64_t(bytes)) / hostPage;
    if (begin >= end)
        return;
    auto at = m_ranges.upper_bound(begin);
    if (at != m_ranges.begin() && std::prev(at)->second > begin)
        --at;
    while (at != m_ranges.end() && at->first < end) {
        const auto [from, to] = *at;
        at = m_ranges.erase(at);
        if (from < begin)
            m_ranges[from] = begin;
        if (to > end)
            m_ranges[end] = to;
        count(-std::int64_t(std::min(to, end) - std::max(from, begin)));
    }
}

void TouchedPages::keepOnly(const std::vector<PolicySegment>& segments)
{
    if (m_ranges.empty())
        return;
    std::uint64_t at = m_ranges.begin()->first * hostPage;
    const std::uint64_t end = std::prev(m_ranges.end())->second * hostPage;
    for (const PolicySegment& segment : segments) {
        if (segment.address > at)
            forget(at, std::int64_t(segment.address - at));
        at = std::max(at, segment.address + std::uint64_t(segment.size));
    }
    if (end > at)
        forget(at, std::int64_t(end - at));
}

Result<PageCounts> pagesOf(const RequestTrace& trace, const PolicySetting& setting, FirstTouch touch)
{
    MEMSCAPE_TRY(policy, makePolicy(setting, trace));
    TouchedPages pages;
    if (touch == FirstTouch::None)
        return pages.counts();
    for (std::size_t i = 0; i < trace.requests.size(); ++i) {
        if (i % 4096 == 0)
            MEMSCAPE_CHECK(checkWanted());
        const RequestedBlock& block = trace.blocks[trace.requests[i].block];
        const PolicyAct act = policy->play(trace.requests[i], block);
        if (act.kind == ActKind::Refused)
            break;
        if (act.kind == ActKind::Freed && act.freeAfter == 0)
            pages.forget(act.address, act.given); // its own mapping
        else if (act.returned > 0)
            pages.keepOnly(policy->segments());
        if (touch == FirstTouch::Eager && act.taken > 0)
            for (const PolicySegment& segment : policy->segments())
                pages.touch(segment.address, segment.size);
        if (touch == FirstTouch::Lazy && trace.requests[i].kind == RequestKind::Allocate)
            pages.touch(act.address, block.bytes);
    }
    return pages.counts();
}

} // namespace memscape
