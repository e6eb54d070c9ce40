// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/groups_pane.h"

#include "app/pages/cards/card.h"
#include "app/pages/fields/quiet_widgets.h"
#include "app/pages/snapshot/snapshot_words.h"
#include "app/pictures/training-memory/memory_state.h"
#include "app/plots/part_colours.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>

#include <numeric>

namespace memscape {

struct GroupsPane::Answer
{
    std::vector<FlameItem> items;
    std::vector<SnapshotGroup> groups;
    double bytes = 0;
    std::size_t blocks = 0;
};

namespace {

QString nameOf(SnapshotGrouping grouping)
{
    const std::string_view name = groupingText(grouping);
    return QString::fromUtf8(name.data(), qsizetype(name.size()));
}

} // namespace

Numbers numbersOf(const std::vector<SnapshotGroup>& groups, SnapshotGrouping grouping,
                  const SnapshotCategories& categories)
{
    using Kind = NumbersColumn::Kind;
    Numbers numbers{nameOf(grouping),
                    {{GroupsPane::tr("bytes"), GroupsPane::tr("Sum of the blocks"), Kind::Bytes},
                     {GroupsPane::tr("share"), GroupsPane::tr("Of all blocks here"), Kind::Share},
                     {GroupsPane::tr("blocks"), GroupsPane::tr("How many blocks"), Kind::Count},
                     {GroupsPane::tr("largest"), GroupsPane::tr("The largest block"), Kind::Bytes}},
                    {}};
    const double all = std::accumulate(groups.begin(), groups.end(), 0.0, [](double sum, const SnapshotGroup& group) {
        return sum + double(group.bytes);
    });
    for (const SnapshotGroup& group : groups) {
        NumbersRow row{QString::fromStdString(group.label),
                       -1,
                       {double(group.bytes), all > 0 ? double(group.bytes) / all : 0, double(group.blocks),
                        double(group.largest)}};
        if (group.example != noLifetime)
            row.part = partOf(categories.of(group.example));
        numbers.rows.push_back(std::move(row));
    }
    return numbers;
}

GroupsPane::GroupsPane(Kind kind, QWidget* parent)
    : QWidget(parent)
    , m_kind(kind)
    , m_by(new QuietComboBox(this))
    , m_of(new QuietComboBox(this))
    , m_filter(new QLineEdit(this))
    , m_summary(toneLabel({}, "dim", this))
    , m_flame(kind == Kind::Flame ? new FlameView(this) : nullptr)
    , m_table(kind == Kind::Table ? new NumbersTable(this) : nullptr)
{
    using G = SnapshotGrouping;
    const std::vector<G> groupings = kind == Kind::Flame
        ? std::vector{G::Stack, G::Module}
        : std::vector{G::Module, G::Operator, G::Line, G::Category, G::Phase, G::Step, G::Stack};
    for (const G grouping : groupings)
        m_by->addItem(tr("by %1").arg(nameOf(grouping)), int(grouping));
    m_by->setAccessibleName(tr("Blocks are summed by"));
    m_of->addItem(tr("alive at the moment"));
    m_of->addItem(tr("allocated in the range"));
    m_of->setAccessibleName(tr("Which blocks"));
    m_filter->setPlaceholderText(kind == Kind::Flame ? tr("search") : tr("filter"));
    m_filter->setAccessibleName(kind == Kind::Flame ? tr("Search the flame graph") : tr("Filter the table"));
    m_filter->setClearButtonEnabled(true);
    m_filter->setMaximumWidth(240);
    m_summary->setWordWrap(false);
    m_summary->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    m_summary->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    auto* bar = new QHBoxLayout;
    bar->setSpacing(6);
    for (QWidget* field : {static_cast<QWidget*>(m_by), static_cast<QWidget*>(m_of), static_cast<QWidget*>(m_filter)})
        bar->addWidget(field);
    bar->addWidget(m_summary, 1);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(6);
    column->addLayout(bar);
    column->addWidget(m_flame ? static_cast<QWidget*>(m_flame) : m_table, 1);
    connect(m_by, &QComboBox::activated, this, [this] {
        m_isChosen = true;
        refresh();
    });
    connect(m_of, &QComboBox::activated, this, &GroupsPane::refresh);
    connect(&m_work, &BackgroundWork::failed, this,
            [this](const Error& error) { m_summary->setText(QString::fromStdString(error.text())); });
    if (m_flame) {
        connect(m_flame, &SnapshotView::hoverText, this, &GroupsPane::hoverText);
        connect(m_filter, &QLineEdit::textChanged, m_flame, &FlameView::setWords);
        return;
    }
    m_table->setAccessibleName(tr("Who holds the bytes"));
    connect(m_filter, &QLineEdit::textChanged, m_table, &NumbersTable::setFilter);
    connect(m_table, &NumbersTable::chosen, this, [this](int row) {
        const LifetimeId example = m_groups[std::size_t(row)].example;
        if (m_shown.device && example != noLifetime)
            emit momentWanted(m_shown.device->lifetimes()[example].begin);
    });
}

SnapshotGrouping GroupsPane::grouping() const
{
    return SnapshotGrouping(m_by->currentData().toInt());
}

QString GroupsPane::summary() const
{
    return m_summary->text();
}

void GroupsPane::setShown(const SnapshotShown& shown)
{
    const bool isMoment = m_of->currentIndex() == 0;
    const bool isStale = shown.device != m_shown.device || shown.bytes != m_shown.bytes
        || (isMoment ? shown.moment != m_shown.moment
                     : shown.range.first != m_shown.range.first || shown.range.last != m_shown.range.last);
    m_shown = shown;
    if (m_flame)
        m_flame->setShown(shown);
    if (isStale)
        refresh();
}

void GroupsPane::showEvent(QShowEvent* event)
{
    QWidget::showEvent(event);
    if (m_isStale)
        refresh();
}

void GroupsPane::refresh()
{
    m_isStale = !isVisible();
    if (!m_shown.device)
        return show({});
    if (m_isStale)
        return;
    m_work.start([this, shown = m_shown, by = grouping(), isMoment = m_of->currentIndex() == 0, kind = m_kind] {
        const SnapshotDevice& device = *shown.device;
        const std::vector<LifetimeId> blocks = isMoment
            ? device.lifetimes().aliveAt(shown.moment)
            : allocatedIn(device.lifetimes(), shown.range.first, shown.range.last);
        auto answer = std::make_shared<Answer>();
        answer->blocks = blocks.size();
        for (const LifetimeId block : blocks)
            answer->bytes += double(device.lifetimes()[block].size);
        if (kind == Kind::Table)
            answer->groups = device.groups(blocks, by);
        else if (by == SnapshotGrouping::Module)
            answer->items = moduleItems(device.groups(blocks, by));
        else
            answer->items = stackItems(device.snapshot(), flameTree(device.snapshot(), device.lifetimes(), blocks));
        return [this, answer] { show(*answer); };
    });
}

void GroupsPane::show(const Answer& answer)
{
    m_summary->setText(m_shown.device
                           ? tr("%1 blocks, %2").arg(eventsText(answer.blocks), memoryText(answer.bytes, m_shown.bytes))
                           : QString());
    if (m_flame)
        return m_flame->setItems(answer.items);
    const bool saysNothing = answer.groups.size() == 1 && answer.groups.front().label == "(unknown)";
    if (saysNothing && !m_isChosen && grouping() == SnapshotGrouping::Module) { // recorded without module names
        m_by->setCurrentIndex(m_by->findData(int(SnapshotGrouping::Line)));
        return refresh();
    }
    m_groups = answer.groups;
    if (m_shown.device)
        m_table->setNumbers(numbersOf(m_groups, grouping(), m_shown.device->categories()), m_shown.bytes);
    else
        m_table->setNumbers({}, m_shown.bytes);
}

} // namespace memscape
