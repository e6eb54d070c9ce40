// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of the page and what they report.
#include "app/pages/snapshot/snapshot_page.h"

#include "app/pages/cards/card.h"
#include "app/pages/fields/quiet_widgets.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"
#include "core/device/catalogue.h"

#include <QButtonGroup>
#include <QComboBox>
#include <QHBoxLayout>
#include <QMenu>
#include <QPushButton>
#include <QSplitter>
#include <QStackedWidget>
#include <QToolButton>

namespace memscape {

SnapshotPage::SnapshotPage(PageServices services, QWidget* parent)
    : ToolPage(snapshotPageId, parent)
    , m_services(services)
    , m_start(new StartPane(this))
    , m_recordPane(new RecordPane(this))
    , m_timeline(new TimelineView(this))
    , m_blocks(new BlocksView(this))
    , m_strip(new BlocksView(this))
    , m_flame(new GroupsPane(GroupsPane::Kind::Flame, this))
    , m_table(new GroupsPane(GroupsPane::Kind::Table, this))
    , m_compare(new ComparePane(this))
    , m_findings(new FindingsList(this))
    , m_inspector(new SnapshotInspector(services, this))
{
    m_patience.setSingleShot(true);
    m_patience.setInterval(120);
    build();
    connectAll();
    connectViews();
    showHeader();
    showKind();
}

SnapshotPage::~SnapshotPage() = default;

void SnapshotPage::build()
{
    m_stack = new QStackedWidget(this);
    m_splitter = new QSplitter(Qt::Horizontal, this);
    m_splitter->setObjectName(QStringLiteral("splitter"));
    m_centre = new QSplitter(Qt::Vertical, this);
    m_centre->setObjectName(QStringLiteral("centre"));
    m_centre->setChildrenCollapsible(false);
    m_centre->addWidget(buildViews());
    m_below = buildBelow();
    m_centre->addWidget(m_below);
    m_centre->setStretchFactor(0, 1);
    m_centre->setStretchFactor(1, 1);
    m_splitter->addWidget(m_centre);
    m_splitter->addWidget(m_inspector);
    m_splitter->setStretchFactor(0, 1);
    m_splitter->setStretchFactor(1, 0);
    m_splitter->setChildrenCollapsible(false);
    m_stack->addWidget(m_start);
    m_stack->addWidget(m_splitter);
    m_stack->addWidget(m_recordPane);
    fitInspector();
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(buildHeader());
    column->addWidget(m_stack, 1);
}

void SnapshotPage::fitStrip()
{
    m_strip->setFixedHeight(int(78 * plotUnit())); // three rows
    m_findings->setMinimumHeight(int(24 * plotUnit()));
}

/// As wide as its words need at this text size.
void SnapshotPage::fitInspector()
{
    const double unit = plotUnit();
    if (std::exchange(m_textUnit, unit) == unit)
        return;
    m_inspector->setMinimumWidth(int(240 * unit));
    m_splitter->setSizes({1000, int(340 * unit)});
}

QWidget* SnapshotPage::buildHeader()
{
    auto* header = new QFrame(this);
    header->setObjectName(QStringLiteral("header"));
    m_title = new ElidedLabel({}, "title", header);
    m_title->setObjectName(QStringLiteral("snapshotTitle"));
    m_facts = toneLabel({}, "dim", header);
    m_facts->setObjectName(QStringLiteral("facts"));
    m_notes = toneLabel({}, "warning", header, true);
    m_notes->setObjectName(QStringLiteral("notes"));
    m_notes->hide();
    m_devices = new QuietComboBox(header);
    m_devices->setAccessibleName(tr("Device within the snapshot"));
    m_devices->setToolTip(tr("The snapshot holds several devices: which one is shown"));
    m_devices->hide();
    m_openButton = new QPushButton(tr("Open…"), header);
    m_openButton->setToolTip(tr("Open a snapshot or a run file (Ctrl+O); or drop it on the window"));
    m_playButton = new QPushButton(tr("Play in Allocator"), header);
    m_playButton->setObjectName(QStringLiteral("play"));
    m_playButton->setToolTip(
        tr("Play these requests through PyTorch's allocator with other settings, and through others"));
    m_compareButton = new QPushButton(tr("Compare…"), header);
    m_compareButton->setObjectName(QStringLiteral("compare"));
    m_compareButton->setProperty("role", "primary");
    m_compareButton->setToolTip(tr("Put a second snapshot beside this one"));
    m_export = new QPushButton(tr("Export"), header);
    m_export->setObjectName(QStringLiteral("export"));
    m_export->setToolTip(tr("Save or copy the picture, the blocks, the figures, or a file for memory_viz"));
    auto* words = new QVBoxLayout;
    words->setSpacing(2);
    for (QLabel* line : {m_title, m_facts, m_notes})
        words->addWidget(line);
    auto* row = new QHBoxLayout(header);
    row->setContentsMargins(20, 12, 20, 12);
    row->setSpacing(8);
    row->addLayout(words, 1);
    for (QWidget* control :
         {static_cast<QWidget*>(m_devices), static_cast<QWidget*>(m_openButton), static_cast<QWidget*>(m_playButton),
          static_cast<QWidget*>(m_compareButton), static_cast<QWidget*>(m_export)})
        row->addWidget(control, 0, Qt::AlignVCenter);
    return header;
}

void SnapshotPage::addKind(const QString& key, const QString& text, const QString& tip, QWidget* view)
{
    auto* chip = new QToolButton(this);
    chip->setObjectName(QStringLiteral("view.") + key);
    chip->setText(text);
    chip->setToolTip(tip);
    chip->setAccessibleName(tip);
    chip->setCheckable(true);
    chip->setFocusPolicy(Qt::StrongFocus);
    chip->setProperty("role", "chip");
    m_kinds->addButton(chip, int(m_kindKeys.size()));
    m_kindKeys << key;
    m_views->addWidget(view);
}

QWidget* SnapshotPage::buildViews()
{
    auto* area = new QWidget(this);
    m_heading = new ElidedLabel({}, "subtitle", area);
    m_heading->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    m_kinds = new QButtonGroup(this);
    m_views = new QStackedWidget(area);
    addKind(QStringLiteral("timeline"), tr("timeline"), tr("Allocated and reserved bytes over the events"), m_timeline);
    addKind(QStringLiteral("blocks"), tr("blocks"), tr("Segments and blocks as the allocator laid them"), m_blocks);
    addKind(QStringLiteral("flame"), tr("flame"), tr("Bytes by stack or by module"), m_flame);
    addKind(QStringLiteral("table"), tr("table"), tr("Bytes by module, operator, line or category"), m_table);
    addKind(QStringLiteral("compare"), tr("difference"), tr("Against another snapshot"), m_compare);
    m_kinds->buttons().back()->hide(); // until there is another snapshot
    m_byTime = new QToolButton(area);
    m_byTime->setObjectName(QStringLiteral("byTime"));
    m_byTime->setText(tr("in time"));
    m_byTime->setToolTip(tr("Across even in time instead of in events"));
    m_byTime->setAccessibleName(m_byTime->toolTip());
    m_byTime->setCheckable(true);
    m_byTime->setFocusPolicy(Qt::StrongFocus);
    m_byTime->setProperty("role", "chip");
    m_status = new QLabel(area);
    m_status->setObjectName(QStringLiteral("statusLine"));
    m_status->setTextFormat(Qt::PlainText);
    m_status->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    m_status->setAccessibleName(tr("What lies under the pointer"));
    auto* row = new QHBoxLayout;
    row->setSpacing(6);
    row->addWidget(m_heading);
    row->addSpacing(10);
    for (QAbstractButton* chip : m_kinds->buttons())
        row->addWidget(chip);
    row->addStretch(1);
    row->addWidget(m_byTime);
    auto* column = new QVBoxLayout(area);
    column->setContentsMargins(20, 10, 16, 4);
    column->setSpacing(6);
    column->addLayout(row);
    column->addWidget(m_views, 1);
    column->addWidget(m_status);
    return area;
}

QWidget* SnapshotPage::buildBelow()
{
    auto* below = new QWidget(this);
    auto* title = toneLabel(tr("Findings"), "subtitle", below);
    m_stripTitle = new ElidedLabel({}, "strong", below);
    fitStrip();
    auto* column = new QVBoxLayout(below);
    column->setContentsMargins(20, 8, 10, 8);
    column->setSpacing(6);
    column->addWidget(title);
    column->addWidget(m_findings, 1);
    column->addWidget(m_stripTitle);
    column->addWidget(m_strip);
    return below;
}

void SnapshotPage::setExportMenu(QMenu* menu)
{
    m_export->setMenu(menu);
}

void SnapshotPage::connectAll()
{
    connect(&m_services.document, &StudyDocument::changed, this, &SnapshotPage::documentChanged);
    connect(&m_services.settings, &Settings::changed, this, [this](Settings::Key key) {
        if (key != Settings::Key::ByteStyle || !m_opened.device)
            return;
        showAll();
        askFindings();
    });
    connect(&m_patience, &QTimer::timeout, this, [this] {
        if (!m_opener.isBusy())
            return;
        showHeader();
        showStart();
    });
    connect(&m_opener, &SnapshotOpener::opened, this, &SnapshotPage::take);
    connect(&m_opener, &SnapshotOpener::progress, this, [this](double share, const QString& what) {
        if (!m_patience.isActive())
            m_start->showProgress(m_opener.path(), share, what);
    });
    connect(&m_opener, &SnapshotOpener::preview, m_start, &StartPane::showPreview);
    connect(&m_opener, &SnapshotOpener::failed, this, [this](const Error& error) {
        m_problem = error;
        drop();
    });
    connect(&m_opener, &SnapshotOpener::stopped, this, [this] {
        m_isStopped = true;
        drop();
    });
    connect(m_start, &StartPane::openWanted, this, [this] { emit openWanted({}); });
    connect(m_start, &StartPane::exampleWanted, this,
            [this] { emit openWanted(toQString((resourcesFolder() / "records" / "gpt2-tiny.pickle").string())); });
    connect(m_start, &StartPane::stopWanted, &m_opener, &SnapshotOpener::stop);
    connect(m_start, &StartPane::againWanted, this, [this] { open(file()); });
    connect(m_openButton, &QPushButton::clicked, this, [this] { emit openWanted({}); });
    connect(m_playButton, &QPushButton::clicked, this, [this] { emit pageWanted(playSnapshot(file())); });
    connect(m_compareButton, &QPushButton::clicked, this, &SnapshotPage::askComparison);
    connect(m_devices, &QComboBox::activated, this,
            [this](int index) { set("device", Json(m_devices->itemData(index).toUInt())); });
    connect(m_kinds, &QButtonGroup::idClicked, this, [this](int id) { setKind(m_kindKeys.at(id)); });
    connect(m_byTime, &QToolButton::clicked, this, [this](bool on) { set("time", on ? Json(true) : Json()); });
    connect(m_compare, &ComparePane::otherWanted, this, &SnapshotPage::askComparison);
    connect(m_compare, &ComparePane::closeWanted, this, [this] { compareWith({}); });
    connect(m_centre, &QSplitter::splitterMoved, this, [this] { m_isParted = true; });
    connect(m_inspector, &SnapshotInspector::wholeWanted, this,
            [this] { select(0, m_opened.device ? m_opened.device->lifetimes().events() : 0); });
    connect(m_inspector->beside(), &BesidePanel::chosen, this,
            [this](bool on) { set("beside", on ? Json(true) : Json()); });
    connect(m_inspector->beside(), &BesidePanel::changed, this, [this] {
        showBeside();
        askFixes();
    });
    connect(m_inspector->beside(), &BesidePanel::openWanted, this,
            [this] { emit pageWanted({QStringLiteral("training-memory")}); });
}

void SnapshotPage::askComparison()
{
    if (const QString path = askFile(); !path.isEmpty())
        compareWith(path);
}

void SnapshotPage::connectViews()
{
    for (SnapshotView* view : {static_cast<SnapshotView*>(m_timeline), static_cast<SnapshotView*>(m_blocks),
                               static_cast<SnapshotView*>(m_strip)}) {
        connect(view, &SnapshotView::momentWanted, this, &SnapshotPage::moveTo);
        connect(view, &SnapshotView::rangeWanted, this, &SnapshotPage::select);
        connect(view, &SnapshotView::hoverText, this, &SnapshotPage::showStatus);
    }
    for (GroupsPane* pane : {m_flame, m_table}) {
        connect(pane, &GroupsPane::momentWanted, this, &SnapshotPage::moveTo);
        connect(pane, &GroupsPane::hoverText, this, &SnapshotPage::showStatus);
    }
    connect(m_findings, &FindingsList::chosen, this, [this](int index) {
        if (index >= 0 && index < int(m_findings->findings().size()))
            goTo(m_findings->findings()[std::size_t(index)]);
    });
}

} // namespace memscape
