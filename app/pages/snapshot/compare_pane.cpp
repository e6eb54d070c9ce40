// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/compare_pane.h"

#include "app/pages/cards/card.h"
#include "app/pages/fields/quiet_widgets.h"
#include "app/pages/records/record_text.h"
#include "app/pages/snapshot/snapshot_words.h"
#include "app/settings/words.h"

#include <QComboBox>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>

namespace memscape {

namespace {

enum By { FigureRows, Categories, Lines, Stacks };

/// Bytes only, so that all rows of a column mean the same; counts are beside them.
Numbers numbersOfFigures(const Figures& a, const Figures& b)
{
    using Kind = NumbersColumn::Kind;
    Numbers numbers{ComparePane::tr("figure"),
                    {{ComparePane::tr("this"), {}, Kind::Bytes},
                     {ComparePane::tr("the other"), {}, Kind::Bytes},
                     {ComparePane::tr("change"), ComparePane::tr("From this to the other"), Kind::Change}},
                    {}};
    for (const Figure& figure : a) {
        const Figure* other = findFigure(b, figure.key);
        if (figure.unit != Unit::Byte || !figure.isNumber() || other == nullptr)
            continue;
        numbers.rows.push_back(
            {toQString(figure.label), -1, {figure.number(), other->number(), other->number() - figure.number()}});
    }
    return numbers;
}

} // namespace

Numbers numbersOf(const std::vector<SnapshotDifference>& differences, const QString& heading)
{
    using Kind = NumbersColumn::Kind;
    Numbers numbers{heading,
                    {{ComparePane::tr("change"), ComparePane::tr("From this snapshot to the other"), Kind::Change},
                     {ComparePane::tr("this"), ComparePane::tr("Bytes at the peak of this snapshot"), Kind::Bytes},
                     {ComparePane::tr("the other"), ComparePane::tr("Bytes at the peak of the other"), Kind::Bytes},
                     {ComparePane::tr("blocks"), ComparePane::tr("Of this snapshot"), Kind::Count},
                     {ComparePane::tr("the other’s"), ComparePane::tr("Blocks of the other snapshot"), Kind::Count}},
                    {}};
    for (const SnapshotDifference& one : differences)
        numbers.rows.push_back(
            {toQString(one.label),
             -1,
             {double(one.change()), double(one.bytesA), double(one.bytesB), double(one.blocksA), double(one.blocksB)}});
    return numbers;
}

ComparePane::ComparePane(QWidget* parent)
    : QWidget(parent)
    , m_by(new QuietComboBox(this))
    , m_filter(new QLineEdit(this))
    , m_state(toneLabel({}, "dim", this, true))
    , m_table(new NumbersTable(this))
{
    m_by->addItems({tr("figures"), tr("by category"), tr("by line"), tr("by stack")});
    m_by->setCurrentIndex(Categories);
    m_by->setAccessibleName(tr("What is compared"));
    m_filter->setPlaceholderText(tr("filter"));
    m_filter->setAccessibleName(tr("Filter the differences"));
    m_filter->setClearButtonEnabled(true);
    m_filter->setMaximumWidth(240);
    m_table->setAccessibleName(tr("Differences of two snapshots"));
    auto* other = new QPushButton(tr("Another…"), this);
    auto* close = new QPushButton(tr("End comparison"), this);
    auto* bar = new QHBoxLayout;
    bar->setSpacing(6);
    bar->addWidget(m_by);
    bar->addWidget(m_filter);
    bar->addStretch(1);
    auto* top = new QHBoxLayout;
    top->setSpacing(6);
    top->addWidget(m_state, 1);
    top->addWidget(other);
    top->addWidget(close);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(6);
    column->addLayout(top);
    column->addLayout(bar);
    column->addWidget(m_table, 1);
    connect(m_by, &QComboBox::activated, this, &ComparePane::show);
    connect(m_filter, &QLineEdit::textChanged, m_table, &NumbersTable::setFilter);
    connect(other, &QPushButton::clicked, this, &ComparePane::otherWanted);
    connect(close, &QPushButton::clicked, this, &ComparePane::closeWanted);
    connect(&m_opener, &SnapshotOpener::progress, this, [this](double share, const QString& what) {
        say(tr("Opening %1: %2, %3").arg(QFileInfo(m_path).fileName(), what, toQString(percentText(share))), "dim");
    });
    connect(&m_opener, &SnapshotOpener::failed, this, [this](const Error& error) {
        say(tr("%1 could not be opened: %2").arg(QFileInfo(m_path).fileName(), toQString(withBriefHint(error).text())),
            "bad");
    });
    connect(&m_opener, &SnapshotOpener::opened, this, [this](const OpenedSnapshot& opened) {
        m_other = opened.device;
        compare();
    });
}

void ComparePane::say(const QString& words, const char* tone)
{
    m_state->setText(words);
    setTone(m_state, tone);
}

QString ComparePane::stateText() const
{
    return m_state->text();
}

void ComparePane::setThis(std::shared_ptr<const SnapshotDevice> device, const QString& name, ByteStyle bytes)
{
    const bool isSame = device == m_this && bytes == m_bytes;
    m_this = std::move(device);
    m_name = name;
    m_bytes = bytes;
    if (!isSame)
        compare();
}

void ComparePane::setOther(const QString& path)
{
    if (path == m_path)
        return;
    m_path = path;
    m_other.reset();
    m_comparison.reset();
    m_table->setNumbers({}, m_bytes);
    if (path.isEmpty())
        m_opener.stop();
    else
        m_opener.open(path);
}

void ComparePane::compare()
{
    if (!m_this || !m_other)
        return;
    m_work.start([this, a = m_this, b = m_other]() -> BackgroundWork::Finish {
        auto comparison = std::make_shared<const SnapshotComparison>(compareSnapshots(*a, *b));
        return [this, comparison] {
            m_comparison = comparison;
            show();
        };
    });
}

void ComparePane::show()
{
    if (!m_comparison)
        return;
    say(tr("%1 (this) at its peak, %2, against %3 (the other) at its peak, %4")
            .arg(m_name, momentText(*m_this, m_comparison->momentA), QFileInfo(m_path).fileName(),
                 momentText(*m_other, m_comparison->momentB)),
        "dim");
    switch (m_by->currentIndex()) {
    case FigureRows: return m_table->setNumbers(numbersOfFigures(m_comparison->a, m_comparison->b), m_bytes);
    case Categories: return m_table->setNumbers(numbersOf(m_comparison->categories, tr("category")), m_bytes);
    case Lines: return m_table->setNumbers(numbersOf(m_comparison->lines, tr("line")), m_bytes);
    default: m_table->setNumbers(numbersOf(m_comparison->stacks, tr("stack")), m_bytes);
    }
}

} // namespace memscape
