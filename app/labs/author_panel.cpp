// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/labs/author_panel.h"

#include "app/labs/result_table.h"
#include "app/pages/cards/card.h"
#include "app/settings/words.h"

#include <QDirIterator>
#include <QFileSystemWatcher>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QScrollArea>
#include <QStackedWidget>
#include <QVBoxLayout>

namespace memscape {

namespace {

constexpr int restAfterSave = 200; ///< ms
constexpr int mostFiles = 200;     ///< of a folder that are watched

} // namespace

AuthorPanel::AuthorPanel(QWidget* parent)
    : QFrame(parent)
    , m_watcher(new QFileSystemWatcher(this))
    , m_status(toneLabel({}, "strong", this))
    , m_gradeButton(new QPushButton(tr("&Grade this attempt"), this))
    , m_packButton(new QPushButton(tr("Student &pack…"), this))
    , m_solveButton(new QPushButton(tr("&Solve this step"), this))
    , m_problems(new QListWidget(this))
    , m_grade(new ResultTable(this))
    , m_stack(new QStackedWidget(this))
{
    setObjectName(QStringLiteral("authorPanel"));
    m_gradeButton->setObjectName(QStringLiteral("gradeAttempt"));
    m_gradeButton->setToolTip(tr("Every check with its expected value, hidden ones too"));
    m_packButton->setObjectName(QStringLiteral("studentPack"));
    m_packButton->setToolTip(tr("A copy without solution and checks, to hand out"));
    m_solveButton->setObjectName(QStringLiteral("solveStep"));
    m_solveButton->setToolTip(tr("Puts the answers of solution.json into this step"));
    m_problems->setAccessibleName(tr("What is wrong with the lab"));
    m_problems->setWordWrap(true);
    auto* row = new QHBoxLayout;
    row->addWidget(m_status, 1);
    for (QPushButton* one : {m_solveButton, m_gradeButton, m_packButton}) {
        one->setAutoDefault(false);
        row->addWidget(one);
    }
    auto* scroll = new QScrollArea(this);
    scroll->setWidget(m_grade);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    m_stack->addWidget(m_problems);
    m_stack->addWidget(scroll);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(16, 8, 16, 8);
    column->addLayout(row);
    column->addWidget(m_stack, 1);
    m_rest.setSingleShot(true);
    m_rest.setInterval(restAfterSave);
    connect(&m_rest, &QTimer::timeout, this, &AuthorPanel::check);
    connect(m_watcher, &QFileSystemWatcher::fileChanged, this, [this] { m_rest.start(); });
    connect(m_watcher, &QFileSystemWatcher::directoryChanged, this, [this] { m_rest.start(); });
    connect(m_gradeButton, &QPushButton::clicked, this, &AuthorPanel::gradeWanted);
    connect(m_packButton, &QPushButton::clicked, this, &AuthorPanel::packWanted);
    connect(m_solveButton, &QPushButton::clicked, this, &AuthorPanel::solutionWanted);
}

void AuthorPanel::watch(const QString& folder)
{
    m_folder = folder;
    m_rest.stop();
    m_work.cancel();
    follow();
    if (!folder.isEmpty())
        check();
}

/// Files too: an editor that writes in place leaves the folder as it was; one that renames brings another file.
void AuthorPanel::follow()
{
    const QStringList watched = m_watcher->files() + m_watcher->directories();
    if (!watched.isEmpty())
        m_watcher->removePaths(watched);
    if (m_folder.isEmpty())
        return;
    QStringList paths{m_folder};
    QDirIterator at(m_folder, QDir::AllEntries | QDir::NoDotAndDotDot | QDir::NoSymLinks, QDirIterator::Subdirectories);
    while (at.hasNext() && paths.size() < mostFiles)
        paths << at.next();
    m_watcher->addPaths(paths);
}

void AuthorPanel::check()
{
    follow();
    tell(tr("checking…"), true);
    m_work.start([this, folder = m_folder]() -> BackgroundWork::Finish {
        auto lab = readLab(pathOf(folder));
        if (!lab)
            return [this, error = lab.error()] { showProblems({error}); };
        const std::vector<Error> problems = checkLab(*lab);
        return [this, lab = *lab, problems] {
            showProblems(problems);
            emit labRead(lab);
        };
    });
}

void AuthorPanel::showProblems(const std::vector<Error>& problems)
{
    m_problems->clear();
    for (const Error& one : problems)
        m_problems->addItem(toQString(one.text()));
    m_stack->setCurrentIndex(0);
    if (problems.empty())
        tell(tr("The lab is sound: its solution gets every point, an empty answer none."), true);
    else
        tell(problems.size() == 1 ? tr("1 problem") : tr("%1 problems").arg(problems.size()), false);
}

void AuthorPanel::showGrade(const LabGrade& grade)
{
    m_grade->display(grade);
    m_stack->setCurrentIndex(1);
}

void AuthorPanel::tell(const QString& text, bool isGood)
{
    m_status->setText(text);
    setTone(m_status, isGood ? "dim" : "bad");
}

QStringList AuthorPanel::problems() const
{
    QStringList texts;
    for (int i = 0; i < m_problems->count(); ++i)
        texts << m_problems->item(i)->text();
    return texts;
}

QString AuthorPanel::statusText() const
{
    return m_status->text();
}

} // namespace memscape
