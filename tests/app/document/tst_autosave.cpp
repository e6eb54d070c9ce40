// SPDX-License-Identifier: GPL-3.0-or-later
// Recovery files: never the user's file, gone after a clean end, there after a kill.
#include "app/document/autosave.h"
#include "app/document/study_document.h"
#include "core/base/file.h"
#include "tests/support/sample_study.h"

#include <QDir>
#include <QFile>
#include <QProcess>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QUndoStack>

#include <unistd.h>

using namespace memscape;
using namespace std::chrono_literals;

class TestAutosave : public QObject
{
    Q_OBJECT
    std::unique_ptr<QTemporaryDir> m_folder;
    const Autosave::Times m_quick{20ms, 100ms};

    QString path(const char* name) const { return m_folder->filePath(QLatin1String(name)); }
    QString recovery() const { return path("recovery"); }
    QStringList recoveryFiles() const { return QDir(recovery()).entryList(QDir::Files | QDir::Hidden); }

    /// A child that edits `file` ("-": a new study) and is killed once its recovery file is there.
    void editAndKill(const QString& file) const
    {
        QProcess child;
        child.start(QStringLiteral(STUDY_CHILD), {recovery(), file});
        QTRY_VERIFY_WITH_TIMEOUT(child.canReadLine(), 20000);
        QCOMPARE(child.readLine().trimmed(), QByteArray("saved"));
        child.kill();
        QVERIFY(child.waitForFinished());
    }

private slots:
    void init() { m_folder = std::make_unique<QTemporaryDir>(); }

    void anEditIsSavedAfterAPauseAndGoneAfterTheSave()
    {
        StudyDocument document;
        Autosave autosave(&document, recovery(), m_quick);
        QTest::qWait(60);
        QVERIFY(recoveryFiles().isEmpty()); // nothing to lose yet
        document.setDevice("stride", "draft");
        QTRY_VERIFY(QFile::exists(autosave.path()));
        QVERIFY(document.saveAs(path("saved.memscape")));
        QVERIFY(!QFile::exists(autosave.path()));
        QTest::qWait(60);
        QVERIFY(recoveryFiles().isEmpty());
    }

    void undoingEverythingLeavesNothingToRecover()
    {
        StudyDocument document;
        Autosave autosave(&document, recovery(), m_quick);
        document.setDevice("stride", "x");
        QTRY_VERIFY(QFile::exists(autosave.path()));
        document.undoStack()->undo();
        QVERIFY(!document.isModified());
        QTRY_VERIFY(!QFile::exists(autosave.path()));
    }

    void whileEditingGoesOnItIsSavedFromTimeToTime()
    {
        StudyDocument document;
        Autosave autosave(&document, recovery(), {60s, 150ms});
        QElapsedTimer clock;
        clock.start();
        int edits = 0;
        while (!QFile::exists(autosave.path()) && clock.elapsed() < 10000) {
            document.setDevice("stride", std::to_string(++edits));
            QTest::qWait(5);
        }
        QVERIFY(QFile::exists(autosave.path()));
    }

    void aCleanEndLeavesNothing()
    {
        {
            StudyDocument document;
            Autosave autosave(&document, recovery(), m_quick);
            document.setDevice("stride", "thrown away on purpose");
            QVERIFY(autosave.saveNow());
            QVERIFY(!recoveryFiles().isEmpty());
        }
        QVERIFY(recoveryFiles().isEmpty());
    }

    void theStudyOfALivingProcessIsNotOffered()
    {
        StudyDocument document;
        Autosave autosave(&document, recovery(), m_quick);
        document.setDevice("stride", "alive");
        QVERIFY(autosave.saveNow());
        QVERIFY(recoverableStudies(recovery()).empty());
    }

    void aKilledProgramsStudyComesBack()
    {
        Study saved;
        saved.title = "Before the kill";
        saved.records = {sample::record("saved")};
        QVERIFY(writeStudy(path("study.memscape").toStdString(), saved));
        const std::string onDisk = readFile(path("study.memscape").toStdString()).value();

        editAndKill(path("study.memscape"));
        QCOMPARE(readFile(path("study.memscape").toStdString()).value(), onDisk);

        std::vector<Error> problems;
        const auto found = recoverableStudies(recovery(), &problems);
        QCOMPARE(found.size(), 1u);
        QVERIFY(problems.empty());
        QCOMPARE(found[0].name, QStringLiteral("Before the kill"));
        QCOMPARE(found[0].fileName, path("study.memscape"));
        QCOMPARE(found[0].records, 2u);
        QVERIFY(qAbs(found[0].time.secsTo(QDateTime::currentDateTimeUtc())) < 120);

        StudyDocument document;
        auto autosave = std::make_unique<Autosave>(&document, recovery(), m_quick);
        QVERIFY(autosave->recover(found[0]));
        QVERIFY(document.isModified());
        QVERIFY(!document.isReadOnly()); // the dead program's lock is stale
        QCOMPARE(document.fileName(), path("study.memscape"));
        QCOMPARE(document.title(), std::string("Before the kill"));
        QCOMPARE(document.records().size(), 2u);
        QVERIFY(!QFile::exists(found[0].path));
        QVERIFY(QFile::exists(autosave->path())); // ours now
        QVERIFY(document.save());
        QVERIFY(recoveryFiles().isEmpty());
    }

    void aRecoveredStudyDoesNotOverwriteLaterChanges()
    {
        StudyDocument saved;
        QVERIFY(saved.saveAs(path("study.memscape")));
        saved.newStudy();
        editAndKill(path("study.memscape"));
        QVERIFY(writeFileAtomically(path("study.memscape").toStdString(), "later work"));

        StudyDocument document;
        Autosave autosave(&document, recovery(), m_quick);
        QVERIFY(autosave.recover(recoverableStudies(recovery()).at(0)));
        QVERIFY(document.changedOnDisk());
        QCOMPARE(document.save().error().code, std::string("document.changed"));
    }

    void aNewStudyIsRecoveredAsOne()
    {
        editAndKill(QStringLiteral("-"));
        const auto found = recoverableStudies(recovery());
        QCOMPARE(found.size(), 1u);
        QVERIFY(found[0].fileName.isEmpty());
        StudyDocument document;
        Autosave autosave(&document, recovery(), m_quick);
        QVERIFY(autosave.recover(found[0]));
        QVERIFY(document.fileName().isEmpty());
        QVERIFY(document.isModified());
    }

    void whatIsDiscardedIsGone()
    {
        editAndKill(QStringLiteral("-"));
        discardRecovery(recoverableStudies(recovery()).at(0));
        QVERIFY(recoveryFiles().isEmpty());
    }

    void brokenRecoveryFilesAreReportedAndLeft()
    {
        QVERIFY(QDir().mkpath(recovery()));
        const auto write = [&](const char* name, std::string_view text) {
            QVERIFY(writeFileAtomically((recovery() + QLatin1Char('/') + QLatin1String(name)).toStdString(), text));
        };
        write("empty.json", "");
        write("foreign.json", "{\"format\": \"memscape-study\"}");
        write("half.json", "{\"format\": \"memscape-recovery\", \"study\": {\"format\"");
        write("no-study.json", "{\"format\": \"memscape-recovery\", \"study\": 7}");
        std::vector<Error> problems;
        QVERIFY(recoverableStudies(recovery(), &problems).empty());
        QCOMPARE(problems.size(), 4u);
        QCOMPARE(recoveryFiles().size(), 4);
    }

    void aFolderThatCannotBeWrittenIsSaidOnce()
    {
        QVERIFY(writeFileAtomically(path("file").toStdString(), "no folder"));
        StudyDocument document;
        Autosave autosave(&document, path("file") + QStringLiteral("/recovery"), m_quick);
        QSignalSpy failed(&autosave, &Autosave::failed);
        document.setDevice("stride", "a");
        QTRY_COMPARE(failed.size(), 1);
        document.setDevice("stride", "b");
        QTest::qWait(100);
        QCOMPARE(failed.size(), 1);
        QCOMPARE(failed[0].at(0).value<Error>().code, std::string("file.permission"));
    }
};

QTEST_GUILESS_MAIN(TestAutosave)
#include "tst_autosave.moc"
