// SPDX-License-Identifier: GPL-3.0-or-later
// What the page does; its parts are put together in lab_page_build.cpp, what it shows is in lab_page_view.cpp.
#include "app/labs/lab_page.h"

#include "app/labs/author_panel.h"
#include "app/labs/curve_board.h"
#include "app/labs/lab_document.h"
#include "app/labs/lab_list.h"
#include "app/labs/lab_stage.h"
#include "app/labs/step_pane.h"
#include "app/settings/words.h"
#include "core/lab/lab_report_page.h"

#include <QDir>
#include <QFileInfo>
#include <QPushButton>
#include <QStackedWidget>
#include <QTemporaryDir>

#include <algorithm>

namespace memscape {

namespace {

QString noAnswerYet()
{
    return QObject::tr("No answer yet.");
}

bool isShipped(const Lab& lab)
{
    const auto folders = labFolders();
    std::error_code problem;
    return std::ranges::any_of(folders, [&](const std::filesystem::path& one) {
        return std::filesystem::equivalent(one, lab.folder, problem);
    });
}

} // namespace

// Which lab. --------------------------------------------------------------------------------------

bool LabPage::openLab(const QString& idOrFolder)
{
    auto lab = findLab(idOrFolder.toStdString());
    if (!lab) {
        tell(lab.error());
        return false;
    }
    const QString student = m_list->student();
    if (student.isEmpty())
        return false;
    const QString folder = toQString((*lab)->folder.string());
    if (!isShipped(**lab)) {
        m_folders[(*lab)->id] = folder;
        m_services.settings.setLastFolder(QStringLiteral("labs"), QFileInfo(folder).absolutePath());
    }
    const QString path = m_scratch ? m_scratch->filePath(toQString((*lab)->id) + QStringLiteral(".mlab"))
                                   : labAnswersPath((*lab)->id, student);
    return start(std::move(*lab), student, path);
}

bool LabPage::openAnswers(const QString& path)
{
    const auto id = labOfAnswers(path);
    if (!id) {
        tell(id.error());
        return false;
    }
    const auto known = m_folders.find(*id);
    auto lab = findLab(known == m_folders.end() ? *id : known->second.toStdString());
    if (!lab) {
        Error error = lab.error();
        if (error.code == "lab.unknown")
            error.hint = tr("open the folder of that lab first: Open a lab folder…").toStdString();
        tell(error);
        return false;
    }
    m_services.settings.setLastFolder(QStringLiteral("labs"), QFileInfo(path).absolutePath());
    const QString file = QFileInfo(path).absoluteFilePath(), mine = m_services.settings.student().trimmed();
    const auto read = readLabAnswers(*lab, path);
    const QString theirs = read ? toQString(read->attempt.student()) : mine;
    if (theirs.compare(mine, Qt::CaseInsensitive) == 0 || m_scratch)
        return start(std::move(*lab), mine, file);
    return openToRead(std::move(*lab), theirs, file);
}

/// What another student has handed in stays as it is: what is shown is a copy.
bool LabPage::openToRead(std::shared_ptr<const Lab> lab, const QString& student, const QString& file)
{
    auto folder = std::make_unique<QTemporaryDir>();
    const QString copy = folder->filePath(QFileInfo(file).fileName());
    if (!folder->isValid() || !QFile::copy(file, copy)) {
        tell(Error{"file.write", "no copy could be made to read " + file.toStdString()});
        return false;
    }
    if (!start(lab, student, copy))
        return false;
    m_copyToRead = std::move(folder);
    m_session->setCopy();
    refresh();
    const QString before = noticeText(); // of another version, perhaps
    const QString said = tr("Opened to read: %1 stays as %2 left it.").arg(QFileInfo(file).fileName(), student);
    tell(before.isEmpty() ? said : before + u' ' + said, before.isEmpty() ? "dim" : "warning",
         {{tr("Work on it as %1").arg(student), [this, lab, student, file] {
               m_list->name()->setText(student);
               m_services.settings.setStudent(student);
               start(lab, student, file);
           }}});
    return true;
}

bool LabPage::start(std::shared_ptr<const Lab> lab, const QString& student, const QString& path)
{
    if (m_session && m_session->path() == path)
        closeLab(); // its lock is ours
    auto session = LabSession::open(lab, student, path);
    if (!session) {
        const bool isBroken = session.error().code != "document.locked" && session.error().code != "document.newer"
            && !session.error().code.starts_with("file.");
        std::vector<Choice> choices;
        if (isBroken)
            choices.push_back({tr("Begin anew, keep that file"), [this, lab, student, path] {
                                   const auto aside = setBrokenAside(path);
                                   if (!aside)
                                       return tell(aside.error());
                                   if (start(lab, student, path))
                                       tell(tr("The file that could not be read is now %1.").arg(*aside), "dim");
                               }});
        tell(session.error(), std::move(choices));
        return false;
    }
    closeNotice();
    if (m_session)
        m_stage->clear();
    m_session = std::move(*session);
    m_copyToRead.reset(); // of the session before
    m_shownStep.clear();
    m_shownLab = nullptr;
    m_ownView = false;
    connect(m_session.get(), &LabSession::changed, this, &LabPage::refresh);
    connect(m_session.get(), &LabSession::viewChanged, this, &LabPage::refresh);
    connect(m_session.get(), &LabSession::saved, this, &LabPage::refresh);
    if (!m_session->attempt().isOfThisLab())
        tell(tr("These answers were written for another version of this lab. What still fits is kept."), "warning");
    m_stack->setCurrentIndex(1);
    m_edit->setChecked(false);
    refresh();
    m_steps->setFocus();
    emit updated();
    return true;
}

void LabPage::closeLab()
{
    if (!m_session)
        return;
    m_steps->commit();
    setEditing(false);
    m_stage->clear();
    m_session.reset();
    m_copyToRead.reset();
    m_shownStep.clear();
    m_shownLab = nullptr;
    closeNotice();
    m_stack->setCurrentIndex(0);
    m_list->refresh();
    refresh();
    emit updated();
}

void LabPage::open(const QString& path)
{
    if (QFileInfo(path).isDir())
        openLab(path);
    else
        openAnswers(path);
}

void LabPage::showEvent(QShowEvent* event)
{
    ToolPage::showEvent(event);
    if (!m_session)
        m_list->refresh();
}

/// Another page comes, or the window goes.
void LabPage::hideEvent(QHideEvent* event)
{
    if (m_session) {
        m_steps->commit();
        m_session->save();
    }
    ToolPage::hideEvent(event);
}

// What a student does. ----------------------------------------------------------------------------

void LabPage::showStep(const QString& id)
{
    if (!m_session || id.isEmpty())
        return;
    m_steps->commit();
    if (!m_session->mayShow(id.toStdString())) {
        const LabStep* step = m_session->lab().step(id.toStdString());
        return tell(step ? tr("“%1” is not open yet: finish the steps before it first.").arg(toQString(step->title))
                         : tr("The lab has no step “%1”.").arg(id),
                    "warning");
    }
    closeNotice();
    m_ownView = false;
    m_session->show(id.toStdString());
}

void LabPage::answer(const std::string& question, const Json& given)
{
    if (m_session)
        report(m_session->answer(question, given), question);
}

void LabPage::lock()
{
    if (!m_session)
        return;
    m_steps->confirm();
    const auto firstWith = [this](const auto& isIt) -> QuestionField* {
        const auto found = std::ranges::find_if(m_steps->fields(), isIt);
        return found == m_steps->fields().end() ? nullptr : *found;
    };
    const LabAttempt& mine = m_session->attempt();
    const bool mayLock = mine.isOpen(m_session->step().id) && !mine.isLocked(m_session->step().id);
    for (QuestionField* one : m_steps->fields())
        if (mayLock && one->errorText().isEmpty() && !mine.given(*m_session->lab().question(one->key())))
            one->showError(noAnswerYet());
    QuestionField* const unread = firstWith(
        [](const QuestionField* one) { return !one->errorText().isEmpty() && one->errorText() != noAnswerYet(); });
    QuestionField* const empty = firstWith([](const QuestionField* one) { return one->errorText() == noAnswerYet(); });
    if (QuestionField* const first = unread ? unread : empty) {
        m_steps->showError(
            {}, unread ? tr("An answer above cannot be read yet.") : tr("Answer every question, then lock."));
        return m_steps->reveal(*first);
    }
    report(m_session->lock());
}

void LabPage::measure()
{
    const auto& run = m_stage->runs().current();
    if (run)
        m_stage->runs().stop();
    else
        m_stage->measure();
}

void LabPage::playReplay()
{
    if (!m_session)
        return;
    m_ownView = false;
    report(m_session->replay());
}

void LabPage::hint()
{
    if (m_session)
        report(m_session->hint());
}

void LabPage::handIn(const QString& path)
{
    m_steps->commit();
    const auto written = m_session->saveCopy(path);
    if (!written)
        return tell(written.error());
    m_services.settings.setLastFolder(QStringLiteral("labs"), QFileInfo(path).absolutePath());
    QStringList missing;
    for (const LabStep& one : m_session->lab().steps)
        if (!m_session->attempt().isDone(one.id))
            missing << toQString(one.title);
    const QString file = QDir::toNativeSeparators(path);
    if (missing.isEmpty())
        tell(tr("Saved as %1: give this file to your teacher.").arg(file), "good");
    else
        tell(tr("Saved as %1. Not done yet: %2.").arg(file, missing.join(QStringLiteral(", "))), "warning");
}

std::string LabPage::reportHtml()
{
    auto grade = m_session->grade();
    LabGrade none;
    none.lab = m_session->lab().id;
    none.student = m_session->attempt().student();
    if (!grade)
        none.problem = grade.error();
    return labAnswersHtml(m_session->attempt(), grade ? *grade : none, m_session->predictions());
}

void LabPage::exportReport(const QString& path)
{
    m_steps->commit();
    const auto written = writeLabDocument(path, reportHtml());
    if (!written)
        return tell(written.error());
    m_services.settings.setLastFolder(QStringLiteral("labs"), QFileInfo(path).absolutePath());
    tell(tr("The report is %1.").arg(QDir::toNativeSeparators(path)), "good");
}

// What an author does. ----------------------------------------------------------------------------

void LabPage::setEditing(bool on)
{
    if (on && !m_session)
        return;
    const QSignalBlocker quiet(m_edit);
    m_edit->setChecked(on);
    m_author->setVisible(on);
    m_author->watch(on ? toQString(m_session->lab().folder.string()) : QString());
    if (!m_session)
        return;
    m_session->setAuthor(on);
    if (!m_session->mayShow(m_session->step().id))
        m_session->show(m_session->lab().steps.front().id);
    refresh();
}

void LabPage::gradeAttempt()
{
    if (!m_session)
        return;
    m_steps->commit();
    const auto grade = m_session->grade();
    if (!grade)
        return m_author->tell(toQString(grade.error().text()), false);
    m_author->showGrade(*grade);
}

void LabPage::packForStudents(const QString& folder)
{
    const auto packed = packLabForStudents(m_session->lab(), pathOf(folder));
    if (packed)
        m_author->tell(tr("Packed into %1: no solution, no checks. Grade with the whole lab.").arg(folder), true);
    else
        m_author->tell(toQString(packed.error().text()), false);
}

void LabPage::solveStep()
{
    if (!m_session)
        return;
    const LabAttempt& mine = m_session->attempt();
    const auto solved = solvedLab(std::make_shared<const Lab>(m_session->lab()), mine.student());
    if (!solved)
        return tell(solved.error());
    const LabStep step = m_session->step();
    if (!mine.isLocked(step.id))
        for (const LabQuestion& one : solved->lab().step(step.id)->questions)
            if (const Json* given = solved->given(one))
                answer(one.key, *given);
    if (step.kind == LabStepKind::Predict && !mine.isLocked(step.id))
        report(m_session->lock());
    if (step.kind == LabStepKind::Measure && !mine.run(step.id))
        playReplay();
}

// What the window asks. ---------------------------------------------------------------------------

std::string LabPage::deviceId() const
{
    if (m_stage->page())
        return m_stage->page()->deviceId();
    return m_services.devices.idFor({}, {});
}

void LabPage::setDevice(const std::string& id)
{
    m_stage->setDevice(id);
}

void LabPage::showItem(const QString& labOrAnswers)
{
    if (!labOrAnswers.contains(u'/'))
        openLab(labOrAnswers);
    else if (QFileInfo::exists(labOrAnswers))
        openAnswers(labOrAnswers);
}

QString LabPage::item() const
{
    return m_session && !m_session->isCopy() && isShipped(m_session->lab()) ? m_session->path() : QString();
}

bool LabPage::isSettled() const
{
    const bool isStageReady = !m_stage->page() || !m_stage->page()->isVisible() || m_stage->page()->upToDate();
    return !m_list->isBusy() && (!m_session || m_session->isUpToDate()) && !m_author->isBusy() && isStageReady;
}

PageExports LabPage::exports() const
{
    if (!m_session)
        return {};
    PageExports what;
    what.name = toQString(m_session->lab().id);
    what.report = [attempt = m_session->copy()](const QString& path) -> Result<void> {
        LabPredictions predictions;
        auto grade = gradeLab(*attempt, predictions);
        LabGrade none;
        if (!grade)
            none.problem = grade.error();
        return writeLabDocument(path, labAnswersHtml(*attempt, grade ? *grade : none, predictions));
    };
    return what;
}

Result<void> LabPage::apply(const ScreenshotRequest& request)
{
    QString lab, step, student = QStringLiteral("Ada L."), answers;
    bool isDone = false, isEditing = false;
    for (const QString& assignment : request.values) {
        const QString key = assignment.section(u'=', 0, 0), value = assignment.section(u'=', 1);
        if (key == QStringLiteral("lab"))
            lab = value;
        else if (key == QStringLiteral("step"))
            step = value;
        else if (key == QStringLiteral("student"))
            student = value;
        else if (key == QStringLiteral("answers"))
            answers = value;
        else if (key == QStringLiteral("done"))
            isDone = value == QStringLiteral("true");
        else if (key == QStringLiteral("edit"))
            isEditing = value == QStringLiteral("true");
        else
            return fail("usage.extra", "the page Labs knows no \"" + key.toStdString() + "\"",
                        "lab, step, student, answers, done, edit");
    }
    if (lab.isEmpty() && answers.isEmpty())
        return {};
    m_scratch = std::make_unique<QTemporaryDir>();
    m_list->name()->setText(student);
    if (!answers.isEmpty()) { // a copy, so that a picture changes no file
        const QString copy = m_scratch->filePath(QFileInfo(answers).fileName());
        if (!QFile::copy(answers, copy))
            return fail("file.missing", "cannot read " + answers.toStdString());
        answers = copy;
    }
    if (!(answers.isEmpty() ? openLab(lab) : openAnswers(answers)))
        return fail("lab.open", noticeText().toStdString());
    const Lab& opened = m_session->lab();
    if (!step.isEmpty() && !opened.step(step.toStdString()))
        return fail("lab.step", "the lab has no step \"" + step.toStdString() + "\"");
    for (const LabStep& one : std::vector<LabStep>(opened.steps)) {
        showStep(toQString(one.id));
        const bool isLast = one.id == step.toStdString() || step.isEmpty();
        if (!isLast || isDone)
            solveStep();
        if (isLast)
            break;
    }
    if (isEditing)
        setEditing(true);
    return {};
}

} // namespace memscape
