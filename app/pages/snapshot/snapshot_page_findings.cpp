// SPDX-License-Identifier: GPL-3.0-or-later
// What is computed of an open snapshot beside the window's thread: the figures of its range, its findings and what the
// predicted step would offer against a refused request.
#include "app/pages/snapshot/snapshot_page.h"

#include "app/pages/snapshot/snapshot_words.h"
#include "app/settings/words.h"
#include "core/experiments/memory/memory_advice.h"

#include <QTimer>

#include <algorithm>

namespace memscape {

void SnapshotPage::askFigures()
{
    m_figuresWork.start([this, device = m_opened.device, range = m_shown.range]() -> BackgroundWork::Finish {
        auto figures = snapshotFigures(*device, range);
        auto alive = largestAlive(*device, range);
        return [this, figures = std::move(figures), alive = std::move(alive)] {
            m_figures = figures;
            m_inspector->setAlive(alive, m_services.settings.byteStyle());
            showBeside();
            emit updated();
        };
    });
}

void SnapshotPage::askFindings()
{
    m_findingsWork.start([this, device = m_opened.device]() -> BackgroundWork::Finish {
        auto findings = findingsOf(*device, 0, device->lifetimes().events());
        return [this, findings = std::move(findings)] {
            m_found = findings;
            showFindings();
            askFixes();
        };
    });
}

void SnapshotPage::showFindings()
{
    std::vector<SnapshotFinding> findings = m_found;
    if (m_opened.device)
        offerFixes(findings, m_fixes, m_fixedPlan.toStdString(), refusedPhase(*m_opened.device, findings));
    m_findings->setFindings(std::move(findings), m_services.settings.byteStyle());
    QTimer::singleShot(0, this, &SnapshotPage::fitBelow); // new cards have no height before
    emit updated();
}

/// Of the prediction beside, in the phase in which memory ran out.
void SnapshotPage::askFixes()
{
    const BesidePanel* beside = m_inspector->beside();
    const bool isRefused = std::ranges::find(m_found, "out-of-memory", &SnapshotFinding::id) != m_found.end();
    const auto* record = beside->prediction();
    if (!isRefused || !m_opened.device || record == nullptr) {
        m_fixesWork.cancel();
        if (!std::exchange(m_fixes, {}).empty())
            showFindings();
        return;
    }
    const auto phase = refusedPhase(*m_opened.device, m_found);
    m_fixesWork.start([this, device = record->device, parameters = beside->parameters(),
                       phase]() -> BackgroundWork::Finish {
        std::vector<SnapshotFix> fixes;
        for (const LeverOutcome& one : leversAt(device, parameters, phase).value_or(std::vector<LeverOutcome>()))
            fixes.push_back({one.lever.label, phase ? one.phaseSaving[std::size_t(*phase)] : one.saving});
        return [this, fixes = std::move(fixes),
                plan = tr("%1, batch %2").arg(toQString(parameters.text("model"))).arg(parameters.integer("batch"))] {
            m_fixes = fixes;
            m_fixedPlan = plan;
            showFindings();
        };
    });
}

/// Its events are selected and in sight, the moment is their peak.
void SnapshotPage::goTo(const SnapshotFinding& finding)
{
    const std::size_t events = m_opened.device->lifetimes().events();
    const std::size_t last = std::min(std::max(finding.lastEvent, finding.firstEvent), events);
    const std::size_t first = std::min(finding.firstEvent, last);
    setKind(m_kindKeys.front());
    if (first < last) {
        select(first, last);
        m_timeline->look(first, last);
    }
    moveTo(finding.id == "out-of-memory" ? first : m_opened.device->timeline().peakAllocated(first, last));
    m_timeline->setFocus(Qt::OtherFocusReason);
}

bool SnapshotPage::isSettled() const
{
    return !m_isStale && !m_opener.isBusy() && !m_figuresWork.isBusy() && !m_findingsWork.isBusy()
        && !m_fixesWork.isBusy() && !m_compare->isBusy() && !m_inspector->beside()->isBusy()
        && !(m_flame->isVisible() && m_flame->isBusy()) && !(m_table->isVisible() && m_table->isBusy());
}

} // namespace memscape
