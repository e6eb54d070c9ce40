// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/labs/lab_list.h"

#include "app/labs/lab_store.h"
#include "app/labs/step_view.h"
#include "app/pages/cards/card.h"
#include "app/pictures/common/json_values.h"
#include "app/settings/scroll_column.h"
#include "app/settings/words.h"
#include "core/base/file.h"
#include "core/base/json.h"

#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

namespace memscape {

namespace {

/// "45 min · 20 points · intro · needs a GPU, or its recorded run".
QString factsOf(const Lab& lab)
{
    QStringList facts{tr("%1 min").arg(lab.minutes), tr("%1 points").arg(toQString(numberText(lab.points))),
                      toQString(lab.level)};
    facts << (lab.needsGpu ? tr("needs a GPU, or its recorded run") : tr("needs no GPU"));
    return facts.join(QStringLiteral(" · "));
}

} // namespace

std::vector<LabName> labNames()
{
    std::vector<LabName> names;
    for (const auto& folder : labFolders()) {
        const auto text = readFile(folder / "lab.json");
        const auto json = text ? parseJson(*text) : Result<Json>(Json::object());
        if (json && json->contains("title"))
            names.push_back({toQString(folder.filename().string()), textOf(*json, "title"), textOf(*json, "summary")});
    }
    return names;
}

std::vector<LabEntry> labEntries(const QString& student)
{
    std::vector<LabEntry> entries;
    for (const auto& folder : labFolders()) {
        LabEntry entry;
        auto lab = readLab(folder);
        if (!lab) {
            entry.title = toQString(folder.filename().string());
            entry.problem = lab.error();
            entries.push_back(std::move(entry));
            continue;
        }
        entry.lab = *lab;
        entry.title = toQString((*lab)->title);
        entry.facts = factsOf(**lab);
        entry.summary = toQString((*lab)->summary);
        const QString path = labAnswersPath((*lab)->id, student);
        if (!student.isEmpty() && QFileInfo::exists(path)) {
            const auto answers = readLabAnswers(*lab, path);
            if (answers)
                entry.progress = progressText(answers->attempt);
            else
                entry.problem = answers.error();
        }
        entries.push_back(std::move(entry));
    }
    return entries;
}

LabList::LabList(Settings& settings, QWidget* parent)
    : QWidget(parent)
    , m_settings(settings)
    , m_name(new QLineEdit(settings.student(), this))
    , m_nameError(toneLabel({}, "bad", this))
    , m_problem(toneLabel({}, "bad", this, true))
    , m_folder(new QPushButton(tr("Open a lab &folder…"), this))
    , m_answers(new QPushButton(tr("Open &answers…"), this))
{
    m_name->setObjectName(QStringLiteral("student"));
    m_name->setPlaceholderText(tr("Ada L."));
    m_name->setMaxLength(120);
    m_name->setMaximumWidth(320);
    m_name->setAccessibleName(tr("Your name"));
    m_name->setToolTip(tr("Your numbers in a lab come from your name: write it the same way each time"));
    m_folder->setObjectName(QStringLiteral("openLabFolder"));
    m_folder->setToolTip(tr("A folder with a lab.json, yours or your teacher's"));
    m_answers->setObjectName(QStringLiteral("openAnswers"));
    m_answers->setToolTip(tr("A *.mlab file, to go on with it or to grade it"));
    m_problem->setObjectName(QStringLiteral("labProblem"));
    m_nameError->hide();
    m_problem->hide();
    auto* who = toneLabel(tr("Your &name"), "strong", this);
    who->setBuddy(m_name);
    auto* row = new QHBoxLayout;
    row->addWidget(who);
    row->addWidget(m_name, 1);
    row->addWidget(m_nameError, 3);
    row->addStretch(1);
    row->addWidget(m_folder);
    row->addWidget(m_answers);

    auto* content = new QWidget;
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(20, 14, 20, 20);
    column->setSpacing(10);
    column->addLayout(row);
    column->addWidget(toneLabel(tr("In a lab you say first what will happen, lock it, then measure, and explain the "
                                   "difference. Your answers are saved as you go."),
                                "dim", this));
    column->addWidget(m_problem);
    m_cards = new QVBoxLayout;
    m_cards->setSpacing(8);
    column->addLayout(m_cards);
    column->addStretch(1);
    auto* scroll = new QScrollArea(this);
    scrollColumn(scroll, content);
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(0, 0, 0, 0);
    outer->addWidget(scroll);
    connect(m_name, &QLineEdit::editingFinished, this, [this] {
        if (m_name->text().trimmed() == m_settings.student())
            return;
        m_settings.setStudent(m_name->text());
        m_nameError->hide();
        refresh(); // another student is elsewhere
    });
    connect(m_folder, &QPushButton::clicked, this, &LabList::folderWanted);
    connect(m_answers, &QPushButton::clicked, this, &LabList::answersWanted);
}

QString LabList::student()
{
    m_settings.setStudent(m_name->text());
    const bool isMissing = m_settings.student().isEmpty();
    m_nameError->setText(tr("Write your name first: your numbers come from it."));
    m_nameError->setVisible(isMissing);
    if (isMissing)
        m_name->setFocus();
    return m_settings.student();
}

void LabList::showProblem(const Error& error)
{
    m_problem->setText(toQString(error.text()));
    m_problem->show();
}

void LabList::refresh()
{
    m_problem->hide();
    m_work.start([this, student = m_settings.student()]() -> BackgroundWork::Finish {
        auto entries = std::make_shared<std::vector<LabEntry>>(labEntries(student));
        return [this, entries] {
            m_entries = std::move(*entries);
            fill();
        };
    });
}

void LabList::fill()
{
    clearLayout(m_cards);
    for (const LabEntry& entry : m_entries) {
        auto* card = new Card(this);
        auto* words = new QVBoxLayout;
        words->setSpacing(2);
        words->addWidget(toneLabel(entry.title, "strong", card));
        if (!entry.summary.isEmpty())
            words->addWidget(toneLabel(entry.summary, "dim", card));
        if (!entry.facts.isEmpty())
            words->addWidget(toneLabel(entry.facts, "faint", card));
        if (entry.problem)
            words->addWidget(toneLabel(toQString(entry.problem->text()), "bad", card, true));
        auto* row = new QHBoxLayout;
        row->addLayout(words, 1);
        if (!entry.progress.isEmpty())
            row->addWidget(toneLabel(entry.progress, "good", card));
        if (entry.lab) {
            const QString id = toQString(entry.lab->id);
            auto* start = new QPushButton(entry.progress.isEmpty() ? tr("Start") : tr("Continue"), card);
            start->setObjectName(QStringLiteral("start.") + id);
            start->setAutoDefault(false);
            start->setAccessibleName(QStringLiteral("%1: %2").arg(start->text(), entry.title));
            connect(start, &QPushButton::clicked, this, [this, id] { emit labWanted(id); });
            row->addWidget(start, 0, Qt::AlignVCenter);
        }
        card->column()->addLayout(row);
        m_cards->addWidget(card);
    }
}

QPushButton* LabList::button(const QString& lab) const
{
    return findChild<QPushButton*>(QStringLiteral("start.") + lab);
}

} // namespace memscape
