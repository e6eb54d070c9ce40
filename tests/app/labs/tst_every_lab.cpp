// SPDX-License-Identifier: GPL-3.0-or-later
// Every lab that ships, from its first step to its last in the window: what the page says comes with figures, each
// question has a field, the solution's answers and the recorded runs get every point.
#include "tests/app/labs/lab_bench.h"

using namespace memscape;
using namespace memscape::test;

class TestEveryLab : public QObject
{
    Q_OBJECT

private slots:
    void reachesItsLastStep_data()
    {
        QTest::addColumn<QString>("id");
        for (const auto& folder : labFolders())
            QTest::newRow(folder.filename().c_str()) << QString::fromStdString(folder.filename().string());
    }
    void reachesItsLastStep()
    {
        QFETCH(QString, id);
        LabBench bench;
        LabPage& page = bench.page;
        QVERIFY(page.openLab(id));
        const auto lab = findLab(id.toStdString());
        QVERIFY(lab);
        const auto solved = solvedLab(*lab, "Ada L.");
        QVERIFY2(solved, solved ? "" : solved.error().text().c_str());
        for (const LabStep& step : (*lab)->steps) {
            page.showStep(QString::fromStdString(step.id));
            QCOMPARE(page.session()->step().id, step.id);
            QVERIFY(bench.settles());
            QVERIFY2(!page.session()->view().problem,
                     page.session()->view().problem ? page.session()->view().problem->text().c_str() : "");
            const QString text = page.steps()->text();
            QVERIFY(!text.isEmpty());
            QVERIFY2(!text.contains("{{") && !text.contains("not measured yet"), qPrintable(text));
            QCOMPARE(page.steps()->fields().size(), step.questions.size());
            if (step.request)
                QVERIFY(page.labStage()->page());
            if (step.kind == LabStepKind::Predict)
                QVERIFY(!page.labStage()->page());
            for (const LabQuestion& one : step.questions) {
                page.answer(one.key, *solved->given(one));
                QVERIFY2(page.steps()->field(one.key)->errorText().isEmpty(),
                         qPrintable(page.steps()->field(one.key)->errorText()));
            }
            if (step.kind == LabStepKind::Predict)
                page.lock();
            if (step.kind == LabStepKind::Measure)
                page.playReplay();
            QVERIFY(page.session()->attempt().isDone(step.id));
            QVERIFY(bench.settles());
            for (const ResultRow& row : page.session()->view().rows)
                QVERIFY2(!row.you.contains("{{") && !row.predicted.contains("{{"), qPrintable(row.predicted));
            if (step.request) { // live beside the words, with the recorded run
                const ExperimentPage& live = *page.labStage()->page();
                QVERIFY2(live.prediction(), qPrintable(live.inspector()->noteText()));
                QCOMPARE(live.shownRecord()->measured.has_value(), step.kind == LabStepKind::Measure);
            }
        }
        QVERIFY(bench.settles());
        const auto grade = page.session()->grade();
        QVERIFY2(grade, grade ? "" : grade.error().text().c_str());
        QCOMPARE(grade->points, grade->most);
        double shown = 0; // hidden checks come later
        for (const LabCheckResult& one : grade->checks)
            shown += one.hidden ? 0 : one.points;
        QCOMPARE(page.session()->view().points, shown);
        page.closeLab();
        QVERIFY(page.openLab(id)); // as it was left
        QCOMPARE(doneSteps(page.session()->attempt()), (*lab)->steps.size());
        QCOMPARE(page.session()->step().id, (*lab)->steps.back().id);
    }
};

QTEST_MAIN(TestEveryLab)
#include "tst_every_lab.moc"
