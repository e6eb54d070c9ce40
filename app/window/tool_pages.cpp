// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/tool_pages.h"

#include "app/claims/claims_page.h"
#include "app/labs/lab_page.h"
#include "app/pages/snapshot/snapshot_page.h"

namespace memscape {

namespace {

using Make = ToolPage* (*)(PageServices services, QWidget* parent);

template <typename Page> ToolPage* make(PageServices services, QWidget* parent)
{
    return new Page(services, parent);
}

constexpr std::pair<const char*, Make> makers[] = {
    {snapshotPageId, make<SnapshotPage>}, {labsPageId, make<LabPage>}, {claimsPageId, make<ClaimsPage>}};

} // namespace

ToolPage* makeToolPage(const std::string& id, PageServices services, QWidget* parent)
{
    for (const auto& [page, maker] : makers) {
        if (page == id)
            return maker(services, parent);
    }
    return nullptr;
}

} // namespace memscape
