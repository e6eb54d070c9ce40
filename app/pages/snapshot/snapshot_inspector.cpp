// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/snapshot_inspector.h"

#include "app/pages/snapshot/snapshot_words.h"
#include "app/pictures/training-memory/memory_state.h"
#include "app/plots/part_colours.h"
#include "app/settings/scroll_column.h"

#include <QHBoxLayout>
#include <QPushButton>
#include <QScrollArea>

#include <algorithm>

namespace memscape {

namespace {

constexpr auto unknownLabel = "(unknown)";

/// How much of the bytes a grouping names.
double knownShare(const std::vector<SnapshotGroup>& groups)
{
    double all = 0, known = 0;
    for (const SnapshotGroup& group : groups) {
        all += double(group.bytes);
        if (group.label != unknownLabel)
            known += double(group.bytes);
    }
    return all > 0 ? known / all : 0;
}

} // namespace

std::vector<AliveRow> largestAlive(const SnapshotDevice& device, const EventRange& range, std::size_t most)
{
    const std::size_t peak = device.timeline().peakAllocated(range.first, range.last);
    const std::vector<LifetimeId> blocks = device.lifetimes().aliveAt(peak);
    std::vector<SnapshotGroup> groups;
    double best = 0;
    for (const SnapshotGrouping grouping :
         {SnapshotGrouping::Module, SnapshotGrouping::Line, SnapshotGrouping::Operator, SnapshotGrouping::Category}) {
        auto next = device.groups(blocks, grouping);
        if (const double share = knownShare(next); share > best + 0.2 || groups.empty()) {
            best = share;
            groups = std::move(next);
        }
    }
    std::vector<AliveRow> rows;
    AliveRow rest{SnapshotInspector::tr("others"), partIndex("unknown"), 0, 0};
    for (const SnapshotGroup& group : groups) {
        if (rows.size() + 1 >= most && groups.size() > most) {
            rest.bytes += double(group.bytes);
            rest.blocks += group.blocks;
            continue;
        }
        const int part =
            group.example == noLifetime ? partIndex("unknown") : partOf(device.categories().of(group.example));
        rows.push_back({QString::fromStdString(group.label), part, double(group.bytes), group.blocks});
    }
    if (rest.blocks > 0)
        rows.push_back(rest);
    return rows;
}

SnapshotInspector::SnapshotInspector(PageServices services, QWidget* parent)
    : QFrame(parent)
    , m_figures(new FiguresTable(this))
    , m_range(toneLabel({}, "faint", this))
    , m_whole(new QPushButton(tr("whole trace"), this))
    , m_alive(new QVBoxLayout)
    , m_why(new WhyCard(this))
    , m_beside(new BesidePanel(services, this))
    , m_scroll(new QScrollArea(this))
{
    setObjectName(QStringLiteral("inspector"));
    setAccessibleName(tr("Inspector"));
    auto* content = new QWidget;
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(16, 14, 16, 10);
    column->setSpacing(8);
    m_whole->setObjectName(QStringLiteral("wholeTrace"));
    m_whole->setProperty("role", "flat");
    m_whole->setToolTip(tr("Gives up the selected range (Esc on the timeline)"));
    auto* line = new QHBoxLayout;
    line->addWidget(m_range, 1);
    line->addWidget(m_whole);
    column->addWidget(m_figures);
    column->addLayout(line);
    column->addSpacing(4);
    column->addWidget(toneLabel(tr("Largest alive in the selection"), "subtitle", this));
    m_alive->setSpacing(4);
    column->addLayout(m_alive);
    column->addSpacing(4);
    column->addWidget(m_why);
    column->addWidget(m_beside);
    column->addStretch(1);
    scrollColumn(m_scroll, content);
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(0, 0, 0, 0);
    outer->addWidget(m_scroll);
    connect(m_figures, &FiguresTable::currentKeyChanged, this, &SnapshotInspector::explain);
    connect(m_whole, &QPushButton::clicked, this, &SnapshotInspector::wholeWanted);
}

void SnapshotInspector::setFigures(const Figures& figures, bool isPredicted, const Outcome* beside, ByteStyle bytes)
{
    m_bytes = bytes;
    Outcome own;
    own.figures = figures;
    std::vector<FigureRow> rows;
    if (isPredicted) {
        rows = figureRows(&own, nullptr, std::nullopt, true);
        if (beside != nullptr)
            addBaseline(rows, beside, nullptr, std::nullopt, true);
    } else {
        rows = figureRows(nullptr, &own, std::nullopt, true);
        for (FigureRow& row : rows) {
            if (const Figure* other = beside ? findFigure(beside->figures, row.measured->key) : nullptr)
                row.predicted = *other;
            compareInto(row);
        }
    }
    m_figures->setCompared(!isPredicted);
    m_figures->setPredicted(isPredicted || beside != nullptr);
    m_figures->setRows(std::move(rows), bytes);
    explain();
}

void SnapshotInspector::explain()
{
    const QString key = m_figures->currentKey();
    const auto& rows = m_figures->figures()->rows();
    const auto row = std::ranges::find(rows, key, &FigureRow::key);
    const Figure* figure = row == rows.end() ? nullptr : row->measured ? &*row->measured : &*row->predicted;
    m_why->setFigure(figure, m_bytes);
}

void SnapshotInspector::setAlive(const std::vector<AliveRow>& rows, ByteStyle bytes)
{
    clearLayout(m_alive);
    const Theme& theme = currentTheme();
    for (const AliveRow& row : rows) {
        auto* line = new QHBoxLayout;
        auto* swatch =
            new QLabel(QStringLiteral("<span style='color:%1'>■</span>").arg(partColour(theme, row.part).name()), this);
        auto* name = new ElidedLabel(row.name, "dim", this);
        const QString size = memoryText(row.bytes, bytes);
        name->setToolTip(tr("%1: %2 in %3 blocks").arg(row.name, size, eventsText(row.blocks)));
        name->setAccessibleName(name->toolTip());
        auto* bytesLabel = toneLabel(size, "strong", this);
        bytesLabel->setWordWrap(false);
        line->addWidget(swatch);
        line->addWidget(name, 1);
        line->addWidget(bytesLabel);
        m_alive->addLayout(line);
    }
}

void SnapshotInspector::setRange(const QString& words, bool isSelected)
{
    m_range->setText(words);
    m_whole->setVisible(isSelected);
}

} // namespace memscape
