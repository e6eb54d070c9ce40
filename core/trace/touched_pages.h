// SPDX-License-Identifier: Apache-2.0
// First touch: a system gives a range of addresses at once and its pages of 4 KiB one by one, when each is written for
// the first time (a page fault). A page that was written stays with the program until its range goes back.
//
// Left out: huge pages, and pages that the system takes away again.
#pragma once

#include "core/trace/memory_policy.h"

#include <map>

namespace memscape {

inline constexpr std::int64_t hostPage = 4096; ///< B

struct PageCounts
{
    std::int64_t faults = 0;  ///< pages that were touched for the first time, again after their range went back
    std::int64_t highest = 0; ///< the most pages that were there at once
};

enum class FirstTouch {
    Lazy,  ///< a block is written when it is made: pages come then
    Eager, ///< a range comes with all of its pages
    None   ///< nothing is ever written
};

/// Ranges of pages that are there. Addresses are those of the policy.
class TouchedPages
{
public:
    void touch(std::uint64_t address, std::int64_t bytes);
    /// What lies outside of the segments is gone.
    void keepOnly(const std::vector<PolicySegment>& segments);
    void forget(std::uint64_t address, std::int64_t bytes);
    const PageCounts& counts() const { return m_counts; }

private:
    void count(std::int64_t pages);

    std::map<std::uint64_t, std::uint64_t> m_ranges; ///< first page -> page behind the last
    std::int64_t m_pages = 0;
    PageCounts m_counts;
};

/// Of a whole replay in which each block is written over its asked-for size. Errors: those of makePolicy().
Result<PageCounts> pagesOf(const RequestTrace& trace, const PolicySetting& setting, FirstTouch touch);

} // namespace memscape
