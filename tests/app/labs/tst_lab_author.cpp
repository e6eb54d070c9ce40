// SPDX-License-Identifier: GPL-3.0-or-later
// An author with the lab's folder open in an editor: each save is shown, what is wrong is named with file and key,
// the attempt is graded whole, and the pack for students holds no answers.
#include "tests/app/labs/lab_bench.h"
#include "tests/core/lab/lab_folder.h"

#include <QTemporaryDir>

using namespace memscape;
using namespace memscape::test;

class TestLabAuthor : public QObject
{
    Q_OBJECT

    std::unique_ptr<LabBench> m_bench;
    std::unique_ptr<LabFolder> m_lab;
    LabPage& page() { return m_bench->page; }

private slots:
    void init()
    {
        m_bench = std::make_unique<LabBench>();
        m_lab = std::make_unique<LabFolder>();
        QVERIFY(m_lab->read());
        QVERIFY(page().openLab(QString::fromStdString(m_lab->path().string())));
        page().setEditing(true);
        QVERIFY(m_bench->settles());
    }
    void cleanup() { m_bench.reset(); }

    void aSoundLabIsCalledSound()
    {
        QVERIFY2(page().author()->problems().isEmpty(), qPrintable(page().author()->problems().join('\n')));
        QVERIFY(page().author()->statusText().contains("sound"));
    }

    void aSavedTextIsShown()
    {
        const std::string file = page().session()->step().file;
        m_lab->write(file, "# Title\n\nWords that were not there before.\n");
        QTRY_VERIFY_WITH_TIMEOUT(page().steps()->text().contains("not there before"), 20'000);
    }

    void aBrokenLabIsNamedAndThePageStays()
    {
        const QString before = page().steps()->text();
        m_lab->json["steps"][0]["kind"] = "sing";
        m_lab->write("lab.json", jsonText(m_lab->json));
        QTRY_VERIFY_WITH_TIMEOUT(page().author()->problems().join('\n').contains("steps[0].kind"), 20'000);
        QVERIFY(page().session());
        QCOMPARE(page().steps()->text(), before);
        m_lab->json["steps"][0]["kind"] = "read"; // mended: an editor that replaces the file
        m_lab->write("lab.json", jsonText(m_lab->json));
        QTRY_VERIFY_WITH_TIMEOUT(page().author()->problems().isEmpty() && !page().author()->isBusy(), 20'000);
    }

    void theWholeGradeIsShown()
    {
        for (const LabStep& one : std::vector<LabStep>(page().session()->lab().steps)) {
            page().showStep(QString::fromStdString(one.id));
            page().solveStep();
        }
        page().gradeAttempt();
        const QStringList lines = page().author()->grade()->texts();
        QVERIFY(lines.size() > 1);
        const QString most = toQString(numberText(page().session()->grade()->most));
        QVERIFY2(lines.back().contains(QString("%1 of %1").arg(most)), qPrintable(lines.join('\n')));
    }

    void thePackHoldsNoAnswers()
    {
        QTemporaryDir folder;
        const QString pack = folder.filePath("small-lab");
        page().packForStudents(pack);
        QVERIFY(QFileInfo::exists(pack + "/lab.json"));
        QVERIFY(!QFileInfo::exists(pack + "/solution.json"));
        page().packForStudents(pack); // it is there
        QVERIFY(page().author()->statusText().contains("small-lab"));
        page().setEditing(false);
        QVERIFY(page().openLab(pack)); // and opens, without points
        QVERIFY(m_bench->settles());
        QVERIFY2(page().subtitle().contains("given when you hand in"), qPrintable(page().subtitle()));
        QVERIFY(page().results()->texts().isEmpty());
    }
};

QTEST_MAIN(TestLabAuthor)
#include "tst_lab_author.moc"
