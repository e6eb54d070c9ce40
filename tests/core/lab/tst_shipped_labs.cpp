// SPDX-License-Identifier: Apache-2.0
// Every lab that ships: it is sound, and its full, zero and typical wrong answers get what tests/data/labs/<id>/*.json
// says. Written anew with MEMSCAPE_WRITE_EXPECTED=1 after a change that was looked at.
#include "core/base/file.h"
#include "core/lab/lab_authoring.h"
#include "core/lab/lab_report.h"

#include <QDir>
#include <QtTest>

using namespace memscape;

class TestShippedLabs : public QObject
{
    Q_OBJECT

private slots:
    void areSound_data()
    {
        QTest::addColumn<QString>("folder");
        QVERIFY(!labFolders().empty());
        for (const auto& folder : labFolders())
            QTest::newRow(folder.filename().c_str()) << QString::fromStdString(folder.string());
    }
    void areSound()
    {
        QFETCH(QString, folder);
        const auto lab = readLab(folder.toStdString());
        QVERIFY2(lab, lab ? "" : lab.error().text().c_str());
        QCOMPARE(QDir(folder).dirName(), QString::fromStdString((*lab)->id));
        QStringList said;
        for (const Error& one : checkLab(*lab))
            said.append(QString::fromStdString(one.text()));
        QVERIFY2(said.isEmpty(), qPrintable(said.join('\n')));
        QVERIFY((*lab)->minutes >= 30 && (*lab)->minutes <= 60);
        QVERIFY(!(*lab)->summary.empty());
    }

    void gradesAreAsExpected_data()
    {
        QTest::addColumn<QString>("lab");
        QTest::addColumn<QString>("answers");
        for (const auto& folder : labFolders())
            for (const char* answers : {"full", "zero", "wrong"})
                QTest::addRow("%s %s", folder.filename().c_str(), answers)
                    << QString::fromStdString(folder.string()) << QString(answers);
    }
    void gradesAreAsExpected()
    {
        QFETCH(QString, lab);
        QFETCH(QString, answers);
        const auto read = readLab(lab.toStdString());
        QVERIFY2(read, read ? "" : read.error().text().c_str());
        const std::string base = TEST_DATA "/labs/" + (*read)->id + "/" + answers.toStdString();
        const auto text = readFile(base + ".mlab");
        QVERIFY2(text, text ? "" : text.error().text().c_str());
        const auto attempt = LabAttempt::parse(*read, *text);
        QVERIFY2(attempt, attempt ? "" : attempt.error().text().c_str());
        QVERIFY2(attempt->isOfThisLab(), "the lab was changed: make its answers anew");
        LabPredictions predictions;
        const auto grade = gradeLab(*attempt, predictions);
        QVERIFY2(grade, grade ? "" : grade.error().text().c_str());
        if (answers == "full")
            QCOMPARE(grade->points, grade->most);
        else if (answers == "zero")
            QCOMPARE(grade->points, 0.0);
        else
            QVERIFY(grade->points > 0 && grade->points < grade->most);
        const std::string is = gradesReport(GradeFormat::Json, **read, {*grade}, true);
        if (qEnvironmentVariableIsSet("MEMSCAPE_WRITE_EXPECTED"))
            QVERIFY(writeFileAtomically(base + ".json", is));
        QCOMPARE(QString::fromStdString(is), QString::fromStdString(readFile(base + ".json").value_or("")));
    }
};

QTEST_GUILESS_MAIN(TestShippedLabs)
#include "tst_shipped_labs.moc"
