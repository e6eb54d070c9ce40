// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/labs/result_table.h"

#include "app/pages/cards/card.h"
#include "app/settings/theme.h"
#include "app/settings/words.h"

#include <QGridLayout>
#include <QLabel>

namespace memscape {

namespace {

const char* toneOf(LabVerdict verdict)
{
    return verdict == LabVerdict::Passed ? "good" : verdict == LabVerdict::Failed ? "bad" : "dim";
}

} // namespace

ResultTable::ResultTable(QWidget* parent)
    : QWidget(parent)
    , m_grid(new QGridLayout(this))
{
    m_grid->setContentsMargins(20, 10, 20, 12);
    m_grid->setHorizontalSpacing(18);
    m_grid->setVerticalSpacing(5);
    setAccessibleName(tr("Results"));
}

void ResultTable::clear()
{
    clearLayout(m_grid);
    m_texts.clear();
    m_row = 0;
}

void ResultTable::add(const QStringList& cells, const std::vector<const char*>& tones, const QString& note)
{
    for (int i = 0; i < cells.size(); ++i) {
        QLabel* label = toneLabel(cells[i], tones[std::size_t(i)], this, true);
        m_grid->addWidget(label, m_row, i, Qt::AlignTop);
        m_grid->setColumnStretch(i, i == 0 ? 2 : 3);
        label->show();
    }
    ++m_row;
    if (!note.isEmpty()) {
        auto* label = new QLabel(note, this);
        label->setTextFormat(Qt::MarkdownText);
        label->setWordWrap(true);
        label->setProperty("tone", "dim");
        m_grid->addWidget(label, m_row++, 1, 1, int(cells.size()) - 1);
        label->show();
    }
    m_texts << cells.join(QStringLiteral(" | "));
}

void ResultTable::display(const std::vector<ResultRow>& rows)
{
    clear();
    const std::vector<const char*> head{"section", "section", "section", "section", "section"};
    add({tr("RESULT"), tr("YOU"), tr("PREDICTED"), tr("MEASURED"), tr("POINTS")}, head, {});
    m_texts.clear();
    for (const ResultRow& row : rows)
        add({row.what, row.you, row.predicted, row.measured, row.points},
            {"strong", "dim", "predicted", "measured", row.isHidden ? "faint" : toneOf(row.verdict)}, row.why);
}

void ResultTable::display(const LabGrade& grade)
{
    clear();
    const std::vector<const char*> head{"section", "section", "section", "section"};
    add({tr("CHECK"), tr("ANSWER"), tr("EXPECTED"), tr("POINTS")}, head, {});
    m_texts.clear();
    for (const LabCheckResult& one : grade.checks)
        add({toQString(one.id) + (one.hidden ? tr(" (hidden)") : QString()), toQString(one.actual),
             toQString(one.expected), pointsText(one.points, one.most)},
            {"strong", "dim", "predicted", toneOf(one.verdict)},
            one.verdict == LabVerdict::Passed ? QString() : toQString(one.message));
    for (const LabStepResult& one : grade.steps)
        if (one.hintCost > 0)
            add({tr("hints of %1").arg(toQString(one.id)),
                 {},
                 {},
                 QStringLiteral("−") + toQString(numberText(one.hintCost))},
                {"strong", "dim", "dim", "bad"}, {});
    for (const LabTextAnswer& one : grade.texts)
        add({toQString(one.question), one.text.empty() ? tr("no answer") : toQString(one.text), tr("a person reads it"),
             tr("up to %1").arg(toQString(numberText(one.most)))},
            {"strong", "dim", "dim", "dim"}, {});
    for (const std::string& one : grade.flags)
        add({tr("look at"), toQString(one), {}, {}}, {"warning", "warning", "dim", "dim"}, {});
    add({tr("all"), {}, {}, pointsText(grade.points, grade.most)}, {"strong", "dim", "dim", "strong"}, {});
}

QStringList ResultTable::texts() const
{
    return m_texts;
}

} // namespace memscape
