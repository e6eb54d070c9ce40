// SPDX-License-Identifier: GPL-3.0-or-later
// Makes the pages without an experiment, by the ids of toolPages() (document/pages.h).
#pragma once

#include "app/pages/tool_page.h"

namespace memscape {

/// Null when there is none of that id.
ToolPage* makeToolPage(const std::string& id, PageServices services, QWidget* parent);

} // namespace memscape
