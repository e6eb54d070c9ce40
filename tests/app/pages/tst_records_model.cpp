// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/compare_text.h"
#include "app/pages/record_text.h"
#include "app/pages/records_list.h"
#include "tests/support/page_fixture.h"

#include <QAbstractItemModelTester>
#include <QListView>
#include <QTest>
#include <QUndoStack>

using namespace memscape;

class TestRecordsModel : public QObject
{
    Q_OBJECT

private slots:
    void newestFirstPinnedBeforeAll()
    {
        StudyDocument document;
        RecordsModel model(document, "stride");
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        for (const char* stride : {"stride=1", "stride=2", "stride=4"})
            document.addRecord(sampleRecord("stride", {stride}));
        document.addRecord(sampleRecord("hierarchy", {}));
        QCOMPARE(model.rowCount(), 3); // of this experiment only
        QCOMPARE(model.recordIndex(0), 2);
        document.setRecordPinned(0, true);
        QCOMPARE(model.recordIndex(0), 0);
        QVERIFY(model.index(0).data(RecordsModel::PinnedRole).toBool());
        document.undoStack()->undo();
        QCOMPARE(model.recordIndex(0), 2);
        QCOMPARE(model.recordIndex(99), -1);
    }

    void renamingIsOneStep()
    {
        StudyDocument document;
        document.addRecord(sampleRecord("stride", {}));
        RecordsModel model(document, "stride");
        const QString before = model.index(0).data().toString();
        QVERIFY(model.setData(model.index(0), "  lab 2, before ", Qt::EditRole));
        QCOMPARE(model.index(0).data().toString(), "lab 2, before");
        QVERIFY(!model.setData(model.index(0), "   ", Qt::EditRole)); // no empty names
        document.undoStack()->undo();
        QCOMPARE(model.index(0).data().toString(), before);
    }

    void deletingIsUndone()
    {
        StudyDocument document;
        RecordsList list(document, "stride");
        document.addRecord(sampleRecord("stride", {"stride=1"}));
        document.addRecord(sampleRecord("stride", {"stride=2"}));
        list.show();
        QVERIFY(QTest::qWaitForWindowExposed(&list));
        list.view()->setFocus();
        list.view()->selectAll();
        QTest::keyClick(list.view(), Qt::Key_Delete);
        QCOMPARE(document.records().size(), std::size_t(0));
        while (document.records().size() < 2 && document.undoStack()->canUndo())
            document.undoStack()->undo();
        QCOMPARE(document.records().size(), std::size_t(2));
    }

    void twoSelectedAreCompared()
    {
        StudyDocument document;
        RecordsList list(document, "stride");
        document.addRecord(sampleRecord("stride", {}, 1.0));
        document.addRecord(sampleRecord("stride", {}, 2.0));
        list.view()->selectAll();
        QVERIFY2(list.comparisonText().contains("faster"), qPrintable(list.comparisonText()));
        QVERIFY(compareText(document.records()[1], document.records()[0]).contains("slower"));
        QVERIFY(compareText(document.records()[0], document.records()[0]).contains("same within noise"));
    }

    void ages_data()
    {
        QTest::addColumn<int>("seconds");
        QTest::addColumn<QString>("text");
        QTest::newRow("now") << 5 << "now";
        QTest::newRow("minutes") << 180 << "3 min ago";
        QTest::newRow("from the future") << -50 << "now";
    }
    void ages()
    {
        QFETCH(int, seconds);
        QFETCH(QString, text);
        const QDateTime now(QDate(2026, 5, 5), QTime(12, 0), Qt::UTC);
        QCOMPARE(ageText(now.addSecs(-seconds), now), text);
    }

    void noTimeNoAge() { QCOMPARE(ageText({}), QString()); }

    void aRecordAnswersOnlyItsOwnQuestion()
    {
        const Record record = sampleRecord("stride", {"stride=4"});
        const Experiment& stride = **findExperiment("stride");
        const auto answered = [&](const std::vector<std::string>& values, const char* device) {
            return answers(record, "stride", device, *resolve(stride.schema(), values));
        };
        QVERIFY(answered({"stride=4"}, "nvidia-h200"));
        QVERIFY(answered({"stride=8"}, "nvidia-h200")); // the swept parameter may move
        QVERIFY(!answered({"element=float64"}, "nvidia-h200"));
        QVERIFY(!answered({"stride=4"}, "nvidia-a100-80gb"));
        QCOMPARE(differenceText(stride.schema(), *resolve(stride.schema(), std::vector<std::string>{"element=float64"}),
                                record.parameters, "stride"),
                 "element float64 (8 B)");
    }
};

QTEST_MAIN(TestRecordsModel)
#include "tst_records_model.moc"
