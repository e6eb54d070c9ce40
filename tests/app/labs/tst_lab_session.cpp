// SPDX-License-Identifier: GPL-3.0-or-later
// Answers as files: written while one works, there again after any end of the program, and never lost to a file that
// is broken, locked, of another version, or in a folder that cannot be written.
#include "app/labs/lab_session.h"
#include "app/settings/words.h"
#include "core/base/cancellation.h"
#include "core/base/file.h"
#include "tests/core/lab/lab_folder.h"
#include "tests/support/waiting.h"

#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

using namespace memscape;

class TestLabSession : public QObject
{
    Q_OBJECT

    QTemporaryDir m_folder;
    QString m_path;

    std::unique_ptr<LabSession> open(std::shared_ptr<const Lab> lab)
    {
        auto session = LabSession::open(std::move(lab), "Ada L.", m_path);
        return session ? std::move(*session) : nullptr;
    }

private slots:
    void init()
    {
        static int number = 0;
        m_path = m_folder.filePath(QString("%1/a.mlab").arg(++number));
    }

    void studentsHaveFoldersOfTheirOwn()
    {
        QCOMPARE(labAnswersPath("x", " ada "), labAnswersPath("x", "Ada"));
        QVERIFY(labAnswersPath("x", "Ada L.") != labAnswersPath("x", "Ada L-"));
        QVERIFY(labAnswersPath("x", "../../etc").startsWith(labAnswersFolder()));
        QVERIFY(!labAnswersPath("x", "../../etc").contains(".."));
        QVERIFY(labAnswersPath("x", "王小明").contains("王小明"));
        QVERIFY(labAnswersPath("x", "").startsWith(labAnswersFolder()));
    }

    void anAnswerIsOnDiskSoonAndALockAtOnce()
    {
        const auto lab = readLab(labFolders().front());
        QVERIFY(lab);
        auto session = open(*lab);
        QVERIFY(session);
        QVERIFY(!QFile::exists(m_path)); // looking at a lab begins nothing
        session->show("guess");
        QVERIFY(session->answer("ratio", Json("80")));
        QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(m_path), test::notStuck);
        QVERIFY(session->answer("steps", Json("4")));
        QVERIFY(session->answer("drawn", Json::array({"1 ns", "4 ns", "12 ns", "100 ns"})));
        QVERIFY(session->lock());
        // As a program finds it that starts after this one was killed.
        const auto found = readLabAnswers(*lab, m_path);
        QVERIFY2(found, found ? "" : found.error().text().c_str());
        QVERIFY(found->attempt.isLocked("guess"));
        QCOMPARE(found->at, std::string("guess"));
        QCOMPARE(*found->attempt.given(*(*lab)->question("steps")), Json("4"));
    }

    void oneComesBackToTheStepThatWasShown()
    {
        const auto lab = readLab(labFolders().front());
        auto session = open(*lab);
        session->show("guess");
        QVERIFY(session->answer("ratio", Json("80")));
        session.reset();
        session = open(*lab);
        QCOMPARE(session->step().id, std::string("guess"));
        QTRY_COMPARE(session->view().step, std::string("guess"));
        QVERIFY(!session->mayShow("run"));
        session->show("run"); // not open: stays
        QCOMPARE(session->step().id, std::string("guess"));
    }

    void aFileThatCannotBeReadIsKept()
    {
        const auto lab = readLab(labFolders().front());
        QVERIFY(writeLabAnswers(m_path, LabAttempt(*lab, "Ada"), "guess"));
        const std::string whole = *readFile(pathOf(m_path));
        for (const std::string& broken :
             {whole.substr(0, whole.size() / 2), std::string("{}"), std::string(),
              std::string(R"({"format": "memscape-answers", "version": 1, "lab": "stride"})"),
              std::string(R"({"format": "memscape-answers", "version": 99, "lab": "cache-size"})")}) {
            QVERIFY(writeFileAtomically(pathOf(m_path), broken));
            const auto session = LabSession::open(*lab, "Ada", m_path);
            QVERIFY(!session);
            QVERIFY2(QString::fromStdString(session.error().place).contains("a.mlab"), session.error().text().c_str());
            QCOMPARE(*readFile(pathOf(m_path)), broken);
        }
        const auto aside = setBrokenAside(m_path);
        QVERIFY(aside);
        QVERIFY(QFile::exists(*aside) && !QFile::exists(m_path));
        QVERIFY(open(*lab));
    }

    void twoWindowsDoNotShareAFile()
    {
        const auto lab = readLab(labFolders().front());
        const auto first = open(*lab);
        const auto second = LabSession::open(*lab, "Ada", m_path);
        QVERIFY(!second);
        QCOMPARE(second.error().code, std::string("document.locked"));
    }

    void aFolderThatCannotBeWrittenIsSaidAndAnswersStay()
    {
        QVERIFY(writeFileAtomically(pathOf(m_folder.filePath("file")), "no folder"));
        m_path = m_folder.filePath("file/a.mlab");
        auto session = open(*readLab(labFolders().front()));
        QVERIFY(session);
        session->show("guess");
        QVERIFY(session->answer("ratio", Json("80")));
        QTRY_VERIFY_WITH_TIMEOUT(session->saveProblem(), test::notStuck);
        QVERIFY(session->attempt().given(*session->lab().question("ratio")));
        QVERIFY(session->saveCopy(m_folder.filePath("elsewhere.mlab")));
    }

    void whatFitsOfAnotherVersionIsKept()
    {
        test::LabFolder folder;
        auto lab = folder.read();
        QVERIFY2(lab, lab ? "" : lab.error().text().c_str());
        std::string step, question;
        for (const LabStep& one : (*lab)->steps)
            for (const LabQuestion& asked : one.questions)
                if (asked.kind == LabQuestionKind::Number && question.empty()) {
                    step = one.id;
                    question = asked.key;
                }
        auto session = open(*lab);
        session->show(step);
        QVERIFY(session->answer(question, Json("12")));
        session.reset();
        folder.json["title"] = "Another title";
        lab = folder.read();
        QVERIFY(lab);
        session = open(*lab);
        QVERIFY(!session->attempt().isOfThisLab());
        QCOMPARE(*session->attempt().given(*(*lab)->question(question)), Json("12"));
        QCOMPARE(session->step().id, step);
    }

    void aPredictionThatWasStoppedIsMadeAgain()
    {
        const auto lab = readLab(labFolders().front());
        LabPredictions predictions;
        const LabAttempt attempt(*lab, "Ada");
        {
            const std::atomic<bool> isStopped = true;
            const CancelScope scope(isStopped);
            static_cast<void>(LabContext(attempt, predictions).predicted("zen"));
        }
        const auto made = LabContext(attempt, predictions).predicted("zen");
        QVERIFY2(made, made ? "" : made.error().text().c_str());
    }

    void refusedAnswersAreNotKept()
    {
        auto session = open(*readLab(labFolders().front()));
        session->show("guess");
        QSignalSpy changed(session.get(), &LabSession::changed);
        const auto comma = session->answer("ratio", Json("1,5"));
        QVERIFY(!comma);
        QVERIFY(QString::fromStdString(comma.error().text()).contains("point as decimal sign"));
        QVERIFY(!session->answer("ratio", Json("nan")));
        QVERIFY(!session->answer("drawn", Json::array({"1 ns"})));
        QVERIFY(!session->lock());
        QCOMPARE(changed.size(), 0);
    }
};

QTEST_MAIN(TestLabSession)
#include "tst_lab_session.moc"
