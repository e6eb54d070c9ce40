// SPDX-License-Identifier: GPL-3.0-or-later
// How a person left the pages of each study file: the zoom of their plots. Kept in the session, not
// in the study, since looking closer changes nothing that wants saving.
#pragma once

#include "app/document/study_document.h"
#include "app/pages/experiment_page.h"
#include "app/settings/window_session.h"

namespace memscape {

class PageViews
{
public:
    PageViews(WindowSession& session, const StudyDocument& document)
        : m_session(session)
        , m_document(document)
    { }

    /// A page that was just made: as it was left.
    void restore(ExperimentPage& page) const;
    void remember(const ExperimentPage& page);
    /// The study has another name now; what its pages show stays.
    void follow() { m_file = m_document.fileName(); }

private:
    WindowSession& m_session;
    const StudyDocument& m_document;
    QString m_file; ///< of the study that the pages show
};

} // namespace memscape
