// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/record_pane.h"

#include "app/pages/cards/card.h"
#include "app/pages/curves.h"
#include "app/pictures/common/json_values.h"
#include "app/plots/plot_view.h"

#include <QHBoxLayout>
#include <QVBoxLayout>

namespace memscape {

namespace {

SnapshotFinding findingOf(const Json& json)
{
    SnapshotFinding finding;
    finding.id = words(json, "id");
    for (const FindingLevel level : {FindingLevel::Problem, FindingLevel::Hint, FindingLevel::Note})
        if (words(json, "level") == findingLevelText(level))
            finding.level = level;
    finding.title = words(json, "title");
    finding.evidence = words(json, "evidence");
    finding.remedy = words(json, "remedy");
    for (const Json& group : listOf(json, "groups"))
        finding.groups.push_back(
            {words(group, "label"), whole(group, "bytes", 0, 0x1p53), std::size_t(whole(group, "blocks", 0, 0x1p53))});
    return finding;
}

Numbers holdersOf(const Json& peak)
{
    Numbers numbers;
    numbers.heading = RecordPane::tr("at the peak");
    numbers.columns = {{RecordPane::tr("bytes"), {}, NumbersColumn::Kind::Bytes},
                       {RecordPane::tr("blocks"), {}, NumbersColumn::Kind::Count}};
    for (const char* grouping : {"categories", "modules", "lines"}) {
        for (const Json& row : listOf(peak, grouping))
            numbers.rows.push_back({textOf(row, "label"), -1, {number(row, "bytes", 0), number(row, "blocks", 0)}});
        if (!numbers.rows.empty() && numbers.rows.front().label != QStringLiteral("unknown"))
            break;
        numbers.rows.clear();
    }
    return numbers;
}

} // namespace

RecordPane::RecordPane(QWidget* parent)
    : QWidget(parent)
    , m_plot(new PlotView(this))
    , m_findings(new FindingsList(this))
    , m_figures(new FiguresTable(this))
    , m_holders(new NumbersTable(this))
{
    setObjectName(QStringLiteral("snapshotRecord"));
    m_figures->setAccessibleName(tr("Figures of the record"));
    m_holders->setAccessibleName(tr("Who held the bytes at the peak"));
    auto* left = new QVBoxLayout;
    left->addWidget(m_plot, 3);
    left->addWidget(toneLabel(tr("Findings"), "subtitle", this));
    left->addWidget(m_findings, 2);
    auto* right = new QVBoxLayout;
    right->addWidget(m_figures);
    right->addWidget(toneLabel(tr("Who held the bytes at the peak"), "subtitle", this));
    right->addWidget(m_holders, 1);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(20, 12, 16, 12);
    row->setSpacing(16);
    row->addLayout(left, 3);
    row->addLayout(right, 2);
}

void RecordPane::setRecord(const Record& record, ByteStyle bytes)
{
    static const Outcome nothing;
    const Outcome* const predicted = record.predicted ? &*record.predicted : nullptr;
    const Outcome* const measured = record.measured ? &*record.measured : predicted ? nullptr : &nothing;
    const Outcome& shown = measured ? *measured : *predicted;
    CurveInput input;
    input.predicted = predicted;
    input.measured = measured;
    input.measuredOn = tr("allocated, recorded");
    const std::vector<SeriesGroup> groups = seriesGroups(shown);
    m_plot->setEmptyText(tr("This record has no curves."));
    if (!groups.empty()) {
        m_plot->setAxes(xAxisOf(shown, groups.front(), bytes), yAxisOf(groups.front(), input, bytes));
        m_plot->setTitle(tr("Bytes over events"));
    }
    m_plot->setCurves(groups.empty() ? std::vector<Curve>() : makeCurves(groups.front(), input));
    m_figures->setCompared(measured != nullptr);
    m_figures->setPredicted(predicted != nullptr);
    m_figures->setRows(figureRows(predicted, measured, std::nullopt, true), bytes);
    std::vector<SnapshotFinding> findings;
    for (const Json& finding : listOf(shown.detail, "findings"))
        findings.push_back(findingOf(finding));
    m_findings->setFindings(std::move(findings), bytes);
    m_holders->setNumbers(holdersOf(member(shown.detail, "peak")), bytes);
}

} // namespace memscape
