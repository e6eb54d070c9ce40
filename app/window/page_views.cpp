// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/page_views.h"

namespace memscape {

void PageViews::restore(ExperimentPage& page) const
{
    page.setZooms(m_session.pageView(m_file, QString::fromStdString(page.pageId())));
}

void PageViews::remember(const ExperimentPage& page)
{
    m_session.setPageView(m_file, QString::fromStdString(page.pageId()), page.zooms());
}

} // namespace memscape
