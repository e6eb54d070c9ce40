// SPDX-License-Identifier: GPL-3.0-or-later
// Autosave into a recovery file of our own, never over the user's file: two seconds after the last
// edit and at least every thirty while editing goes on, written atomically off the GUI thread,
// removed on a clean save or close. A kill leaves it; at the next start recoverableStudies() finds
// the ones whose process is gone.
#pragma once

#include "core/base/result.h"
#include "core/experiment/record.h"

#include <QDateTime>
#include <QObject>
#include <QThreadPool>
#include <QTimer>

#include <chrono>
#include <memory>
#include <vector>

class QLockFile;

namespace memscape {

class StudyDocument;

/// A study that a Memscape which is gone left behind.
struct RecoverableStudy
{
    QString path;     ///< of the recovery file
    QString fileName; ///< of the study; empty when it was never saved
    QString name;     ///< for the list: title, file name or "Untitled study"
    QDateTime time;   ///< of the last autosave
    std::size_t records = 0;
};

/// $XDG_DATA_HOME/memscape/recovery.
QString recoveryFolder();

/// Newest first. Unreadable recovery files are left where they are and reported in `problems`.
std::vector<RecoverableStudy> recoverableStudies(const QString& folder = recoveryFolder(),
                                                 std::vector<Error>* problems = nullptr);
/// Throw one away.
void discardRecovery(const RecoverableStudy& study);

class Autosave : public QObject
{
    Q_OBJECT
public:
    struct Times
    {
        std::chrono::milliseconds idle{2000};
        std::chrono::milliseconds atMost{30000};
    };

    /// Watches the document, which must outlive it.
    explicit Autosave(StudyDocument* document, const QString& folder = recoveryFolder());
    Autosave(StudyDocument* document, const QString& folder, Times times);
    /// A clean end: the recovery file goes.
    ~Autosave() override;

    /// Open a recovered study in the document and take its recovery file over.
    /// Errors: file.*, json.*, document.*.
    Result<void> recover(const RecoverableStudy& study);
    /// Write now and wait: for session end and for tests. Does nothing when unmodified.
    Result<void> saveNow();
    QString path() const { return m_path; }

signals:
    /// The recovery file could not be written (disk full…): once per failure, for a banner.
    void failed(const memscape::Error& error);

private:
    void schedule();
    void start();
    void report(const Result<void>& result);
    Result<void> holdLock();
    void remove();
    Json header() const;

    StudyDocument* m_document;
    QString m_folder, m_path;
    std::unique_ptr<QLockFile> m_lock;
    QTimer m_idle, m_atMost;
    QThreadPool m_thread;    // of one thread: writes keep their order
    bool m_reported = false; // the failure that lasts
};

} // namespace memscape
