// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/pages.h"

#include <algorithm>
#include <array>

namespace memscape {

namespace {

struct Further
{
    std::string_view id, title, question, experiment;
};

constexpr std::array<Further, 1> furtherPages{
    {{"step-timeline", "Step timeline", "Which tensors are alive at each moment of a training step?",
      "training-memory"}}};

} // namespace

std::vector<PageInfo> pagesOf(const std::vector<const Experiment*>& experiments)
{
    std::vector<PageInfo> pages;
    for (const Experiment* experiment : experiments) {
        const std::string id = experiment->id();
        pages.push_back({id, experiment->title(), experiment->question(), id, experiment->group(), {}});
        for (const Further& page : furtherPages) {
            if (page.experiment == id)
                pages.push_back({std::string(page.id),
                                 std::string(page.title),
                                 std::string(page.question),
                                 id,
                                 experiment->group(),
                                 {}});
        }
    }
    return pages;
}

const std::vector<PageInfo>& toolPages()
{
    static const std::vector<PageInfo> pages{
        {snapshotPageId,
         "Snapshot",
         "Where did the memory of a recorded run go, and why was it not enough?",
         {},
         "training",
         "snapshot"},
        {labsPageId, "Labs", "What will happen, what does happen, and why is there a difference?", {}, "learn", "labs"},
        {claimsPageId,
         "Claims",
         "What do course notes claim of memory and time, and is it so?",
         {},
         "learn",
         "claims"}};
    return pages;
}

const PageInfo* findToolPage(std::string_view id)
{
    const std::vector<PageInfo>& pages = toolPages();
    const auto found = std::ranges::find(pages, id, &PageInfo::id);
    return found == pages.end() ? nullptr : &*found;
}

std::vector<PageInfo> allPages(const std::vector<const Experiment*>& experiments)
{
    std::vector<PageInfo> pages = pagesOf(experiments);
    pages.insert(pages.end(), toolPages().begin(), toolPages().end());
    return pages;
}

PageInfo pageOf(const Experiment& experiment, std::string_view page)
{
    const std::vector<PageInfo> pages = pagesOf({&experiment});
    const auto found = std::ranges::find(pages, page, &PageInfo::id);
    return found == pages.end() ? pages.front() : *found;
}

std::string experimentOfPage(std::string_view page)
{
    for (const Further& further : furtherPages) {
        if (further.id == page)
            return std::string(further.experiment);
    }
    return std::string(page);
}

} // namespace memscape
