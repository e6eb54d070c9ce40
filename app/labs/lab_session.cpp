// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/labs/lab_session.h"

#include "app/settings/words.h"

#include <QDir>
#include <QFileInfo>
#include <QLockFile>

namespace memscape {

namespace {

constexpr int soon = 300; ///< ms between a change and its writing

/// Another window's lock is an error; a folder that cannot hold one locks nothing.
Result<std::unique_ptr<QLockFile>> lockedAnswers(const QString& path)
{
    const QFileInfo info(path);
    QDir().mkpath(info.absolutePath());
    auto lock = std::make_unique<QLockFile>(info.absolutePath() + QStringLiteral("/.") + info.fileName()
                                            + QStringLiteral(".lock"));
    lock->setStaleLockTime(0);
    if (lock->tryLock(0))
        return lock;
    if (lock->error() != QLockFile::LockFailedError)
        return std::unique_ptr<QLockFile>();
    qint64 process = 0;
    QString host, program;
    lock->getLockInfo(&process, &host, &program);
    return fail("document.locked",
                tr("%1 is open in another window (%2, process %3 on %4)")
                    .arg(info.fileName(), program)
                    .arg(process)
                    .arg(host)
                    .toStdString(),
                tr("close it there").toStdString(), path.toStdString());
}

} // namespace

Result<std::unique_ptr<LabSession>> LabSession::open(std::shared_ptr<const Lab> lab, const QString& student,
                                                     const QString& path)
{
    MEMSCAPE_TRY(lock, lockedAnswers(path));
    LabAnswersFile file{LabAttempt(lab, student.trimmed().toStdString()), {}};
    if (QFileInfo::exists(path))
        MEMSCAPE_SET(file, readLabAnswers(std::move(lab), path));
    return std::unique_ptr<LabSession>(new LabSession(std::move(file), path, std::move(lock)));
}

LabSession::LabSession(LabAnswersFile file, const QString& path, std::unique_ptr<QLockFile> lock)
    : m_attempt(std::move(file.attempt))
    , m_path(path)
    , m_lock(std::move(lock))
    , m_step(m_attempt->isOpen(file.at) ? file.at : lab().steps.front().id)
{
    m_soon.setSingleShot(true);
    m_soon.setInterval(soon);
    connect(&m_soon, &QTimer::timeout, this, &LabSession::save);
    refresh();
}

LabSession::~LabSession()
{
    save();
}

const LabStep& LabSession::step() const
{
    return *lab().step(m_step);
}

bool LabSession::mayShow(const std::string& step) const
{
    return lab().step(step) && (m_isAuthor || m_attempt->isOpen(step));
}

void LabSession::show(const std::string& step)
{
    if (step == m_step || !mayShow(step))
        return;
    m_step = step;
    static_cast<void>(keep({}, When::Soon));
}

Result<void> LabSession::keep(Result<void> result, When when)
{
    if (!result)
        return result;
    m_isDirty = true;
    if (when == When::Now)
        save();
    else
        m_soon.start();
    refresh();
    emit changed();
    return result;
}

Result<void> LabSession::answer(const std::string& question, const Json& given)
{
    const LabQuestion* asked = lab().question(question);
    const Json* before = asked ? m_attempt->given(*asked) : nullptr;
    if (before && *before == given)
        return {};
    return keep(m_attempt->answer(m_step, question, given), When::Soon);
}

Result<void> LabSession::lock()
{
    return keep(m_attempt->lock(m_step), When::Now);
}

Result<void> LabSession::attach(const std::string& step, Record record)
{
    return keep(m_attempt->attach(step, std::move(record)), When::Now);
}

Result<void> LabSession::replay()
{
    return keep(m_attempt->replay(m_step), When::Now);
}

Result<void> LabSession::hint()
{
    const auto hint = m_attempt->hint(m_step);
    return keep(hint ? Result<void>() : fail(hint.error()), When::Now);
}

Result<LabGrade> LabSession::grade()
{
    return gradeLab(*m_attempt, *m_predictions);
}

Result<void> LabSession::takeLab(std::shared_ptr<const Lab> lab)
{
    MEMSCAPE_SET(m_attempt, LabAttempt::parse(lab, jsonText(m_attempt->toJson())));
    m_predictions = std::make_shared<LabPredictions>();
    if (!lab->step(m_step))
        m_step = lab->steps.front().id;
    refresh();
    emit changed();
    return {};
}

Result<void> LabSession::saveCopy(const QString& path) const
{
    return writeLabAnswers(path, *m_attempt, m_step);
}

void LabSession::save()
{
    m_soon.stop();
    if (!m_isDirty)
        return;
    const auto written = writeLabAnswers(m_path, *m_attempt, m_step);
    m_isDirty = !written; // the next change tries again
    m_saveProblem = written ? std::optional<Error>() : written.error();
    emit saved();
}

void LabSession::refresh()
{
    m_copy = std::make_shared<const LabAttempt>(*m_attempt);
    m_work.start([this, attempt = m_copy, predictions = m_predictions, id = m_step]() -> BackgroundWork::Finish {
        auto view = std::make_shared<LabStepView>(viewOfStep(*attempt, *attempt->lab().step(id), *predictions));
        return [this, view] {
            m_view = std::move(*view);
            emit viewChanged();
        };
    });
}

} // namespace memscape
