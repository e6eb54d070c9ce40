// SPDX-License-Identifier: GPL-3.0-or-later
// A lab that a student works on: the attempt, its file, and what the page shows of the present step. Every change is
// written to the file within a third of a second, a locked prediction, a run and a hint at once, so that what ends the
// program loses the line being typed at most. What is shown is computed beside the window's thread; until the new view
// is there the old one stays.
#pragma once

#include "app/labs/lab_store.h"
#include "app/labs/step_view.h"
#include "app/pages/background_work.h"

#include <QObject>
#include <QTimer>

#include <memory>

class QLockFile;

namespace memscape {

class LabSession : public QObject
{
    Q_OBJECT

public:
    /// The answers in that file, or new ones where there is none; nothing is written yet.
    /// Errors: those of readLabAnswers(); document.locked (another window works on the file).
    static Result<std::unique_ptr<LabSession>> open(std::shared_ptr<const Lab> lab, const QString& student,
                                                    const QString& path);
    /// Saves.
    ~LabSession() override;

    const Lab& lab() const { return m_attempt->lab(); }
    const LabAttempt& attempt() const { return *m_attempt; }
    /// The same as a copy that stays as it is, for other threads.
    const std::shared_ptr<const LabAttempt>& copy() const { return m_copy; }
    QString path() const { return m_path; }
    /// The file is a copy of another student's answers, to be read and thrown away.
    bool isCopy() const { return m_isCopy; }
    void setCopy() { m_isCopy = true; }
    const LabStep& step() const;
    LabPredictions& predictions() { return *m_predictions; }
    /// Of step(); the one before while the next is computed.
    const LabStepView& view() const { return m_view; }
    bool isUpToDate() const { return !m_work.isBusy(); }
    const std::optional<Error>& saveProblem() const { return m_saveProblem; }

    /// An author sees every step, a student those that are open: a later text may tell an earlier answer.
    bool mayShow(const std::string& step) const;
    void setAuthor(bool isAuthor) { m_isAuthor = isAuthor; }
    void show(const std::string& step);
    /// Errors: those of LabAttempt.
    Result<void> answer(const std::string& question, const Json& given);
    Result<void> lock();
    Result<void> attach(const std::string& step, Record record);
    Result<void> replay();
    Result<void> hint();
    /// Errors: those of gradeLab(). Runs on the caller's thread.
    Result<LabGrade> grade();
    /// The lab as it is now, while its author writes it: what still fits is kept.
    Result<void> takeLab(std::shared_ptr<const Lab> lab);
    /// A copy for handing in. Errors: file.*.
    Result<void> saveCopy(const QString& path) const;
    /// Writes now, when something changed.
    void save();

signals:
    void changed(); ///< an answer, a run, a hint or the shown step
    void viewChanged();
    void saved(); ///< or saveProblem() says why not

private:
    LabSession(LabAnswersFile file, const QString& path, std::unique_ptr<QLockFile> lock);
    enum class When { Soon, Now };
    Result<void> keep(Result<void> result, When when);
    void refresh();

    std::optional<LabAttempt> m_attempt; ///< never empty
    std::shared_ptr<const LabAttempt> m_copy;
    std::shared_ptr<LabPredictions> m_predictions = std::make_shared<LabPredictions>();
    QString m_path;
    std::unique_ptr<QLockFile> m_lock;
    std::string m_step;
    LabStepView m_view;
    bool m_isDirty = false, m_isAuthor = false, m_isCopy = false;
    std::optional<Error> m_saveProblem;
    QTimer m_soon;
    BackgroundWork m_work;
};

} // namespace memscape
