// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/tool_page.h"

namespace memscape {

ToolPage::ToolPage(std::string_view id, QWidget* parent)
    : QWidget(parent)
    , m_info(*findToolPage(id))
{
    setObjectName(QStringLiteral("page"));
    setAttribute(Qt::WA_StyledBackground);
}

Result<void> ToolPage::apply(const ScreenshotRequest& request)
{
    if (request.values.isEmpty())
        return {};
    return fail("usage.extra", "unexpected \"" + request.values.front().toStdString() + "\"",
                "the page " + m_info.title + " takes no KEY=VALUE");
}

} // namespace memscape
