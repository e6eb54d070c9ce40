// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/records/compare_text.h"
#include "app/pages/records/record_text.h"
#include "app/pages/records/records_list.h"
#include "app/pages/records/records_strip.h"
#include "tests/support/page_fixture.h"

#include <QAbstractItemModelTester>
#include <QContextMenuEvent>
#include <QListView>
#include <QMenu>
#include <QPlainTextEdit>
#include <QSignalSpy>
#include <QTest>
#include <QTimer>
#include <QUndoStack>

#include <numeric>

using namespace memscape;

class TestRecordsModel : public QObject
{
    Q_OBJECT

private slots:
    void whatIsKeptSaysTheDateOfACalibration()
    {
        Device device;
        device.calibration.emplace();
        device.calibration->time = "2026-11-02T17:38:00";
        device.calibration->grade = "A";
        QCOMPARE(basisText(device, TimeText::Date), QString("calibrated 2 Nov 2026 17:38, grade A"));
        device.calibration->time.clear();
        QCOMPARE(basisText(device, TimeText::Date), QString("calibrated, grade A"));
    }

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

    void whatWasNotMeasuredToItsEndSaysSo()
    {
        StudyDocument document;
        RecordsModel model(document, "stride");
        Record stopped = sampleRecord("stride", {});
        stopped.provenance["status"] = "cancelled";
        document.addRecord(stopped);
        QVERIFY(model.index(0).data().toString().contains("stopped"));
        QVERIFY(model.index(0).data(Qt::AccessibleTextRole).toString().contains("stopped"));
        QVERIFY(model.index(0).data(Qt::ToolTipRole).toString().contains("not measured to its end: stopped"));
        document.addRecord(sampleRecord("stride", {}));
        QVERIFY(!model.index(0).data().toString().contains("stopped"));
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
        document.undoStack()->undo(); // deleted together, they come back together
        QCOMPARE(document.records().size(), std::size_t(2));
    }

    void whatComesBackIsSelected()
    {
        StudyDocument document;
        RecordsList list(document, "stride");
        for (const char* stride : {"stride=1", "stride=2", "stride=4"})
            document.addRecord(sampleRecord("stride", {stride}));
        QVERIFY(list.view()->selectionModel()->selectedIndexes().isEmpty()); // new ones are not
        const auto selected = [&] {
            QList<int> records;
            for (const QModelIndex& index : list.view()->selectionModel()->selectedIndexes())
                records << list.model()->recordIndex(index.row());
            std::ranges::sort(records);
            return records;
        };
        document.removeRecords({0, 2});
        list.view()->clearSelection();
        document.undoStack()->undo();
        QCOMPARE(selected(), (QList<int>{0, 2}));
        QCoreApplication::processEvents();
        document.removeRecord(1);
        document.undoStack()->undo();
        QCOMPARE(selected(), QList<int>{1});
        QVERIFY(list.view()->currentIndex() == list.model()->index(list.model()->rowOf(1)));
    }

    void theMenuComesByKeyboard()
    {
        StudyDocument document;
        RecordsList list(document, "stride");
        document.addRecord(sampleRecord("stride", {"stride=1"}));
        list.show();
        list.activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(&list));
        list.view()->setFocus();
        list.view()->setCurrentIndex(list.model()->index(0));
        int menus = 0;
        const auto closeSoon = [&] {
            QTimer::singleShot(0, &list, [&] {
                if (auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget())) {
                    ++menus;
                    QVERIFY(QRect(list.view()->mapToGlobal(QPoint()), list.view()->size()).contains(menu->pos()));
                    menu->close();
                }
            });
        };
        closeSoon();
        QTest::keyClick(list.view(), Qt::Key_F10, Qt::ShiftModifier);
        QCOMPARE(menus, 1);
        closeSoon();
        QContextMenuEvent event(QContextMenuEvent::Keyboard, {}, {});
        QApplication::sendEvent(list.view(), &event); // the Menu key
        QCOMPARE(menus, 2);
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

    void aChangedRecordKeepsSelectionAndKeyboard()
    {
        StudyDocument document;
        RecordsList list(document, "stride");
        document.addRecord(sampleRecord("stride", {"stride=1"}));
        document.addRecord(sampleRecord("stride", {"stride=2"}));
        list.show();
        list.activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(&list));
        list.view()->setFocus();
        const auto select = [&](std::size_t record) {
            list.view()->setCurrentIndex(list.model()->index(list.model()->rowOf(record)));
        };
        const auto selected = [&] {
            const QModelIndexList rows = list.view()->selectionModel()->selectedIndexes();
            return rows.size() == 1 ? list.model()->recordIndex(rows.front().row()) : -1;
        };
        select(0);
        QVERIFY(list.model()->setData(list.view()->currentIndex(), "quiet run", Qt::EditRole));
        QCOMPARE(selected(), 0);
        QTest::keyClick(list.view(), Qt::Key_P); // moves it to the top
        QVERIFY(document.records()[0].pinned);
        QCOMPARE(selected(), 0);
        QVERIFY(list.view()->hasFocus());
        QTest::keyClick(list.view(), Qt::Key_N);
        auto* note = list.findChild<QPlainTextEdit*>();
        QVERIFY(note->isVisible());
        QTest::keyClicks(note, "machine busy"); // every letter changes the record
        QCOMPARE(document.records()[0].note, "machine busy");
        QVERIFY(note->isVisible() && note->hasFocus());
        document.addRecord(sampleRecord("stride", {"stride=4"}));
        document.removeRecord(1);
        QCOMPARE(selected(), 0);
        document.undoStack()->undo();
        QCOMPARE(selected(), 1); // it is back
        document.undoStack()->undo();
        select(0);
        document.undoStack()->undo(); // the typing is one step
        QCOMPARE(document.records()[0].note, "");
        QCOMPARE(note->toPlainText(), "");
    }

    void comingAndGoingIsToldRowByRow()
    {
        StudyDocument document;
        RecordsModel model(document, "stride");
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        for (const char* stride : {"stride=1", "stride=2", "stride=4"})
            document.addRecord(sampleRecord("stride", {stride}));
        const QPersistentModelIndex second(model.index(model.rowOf(1)));
        document.addRecord(sampleRecord("hierarchy", {}));
        document.setRecordPinned(2, true);
        document.removeRecord(3); // of another experiment
        document.removeRecord(0);
        QVERIFY(second.isValid());
        QCOMPARE(model.recordIndex(second.row()), 0);
        document.removeRecord(0);
        QVERIFY(!second.isValid());
        QCOMPARE(model.rowCount(), 1);
    }

    void recordsOfOneNameAreToldApart()
    {
        Record early = sampleRecord("stride", {}, 1.0);
        Record late = sampleRecord("stride", {}, 2.0);
        late.provenance["time"] = "2026-01-02T03:05:07Z";
        const QString text = compareText(early, late);
        QVERIFY2(text.contains(":05:07") && text.contains(":04:05"), qPrintable(text));
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
        const QDateTime now = QDateTime::fromString(QStringLiteral("2026-05-05T12:00:00Z"), Qt::ISODate);
        QCOMPARE(ageText(now.addSecs(-seconds), now), text);
    }

    void recordsAreNamedByWhatDiffers()
    {
        const auto made = [](const std::vector<std::string>& values, const char* device = "nvidia-h200") {
            return sampleRecord("stride", values, 1.1, device);
        };
        const auto names = [](const std::vector<Record>& records, const std::string& device = "nvidia-h200") {
            std::vector<std::size_t> all(records.size());
            std::iota(all.begin(), all.end(), std::size_t(0));
            QStringList texts;
            for (const RecordLabel& label : recordLabels(records, all, device, ByteStyle::Binary))
                texts << label.what;
            return texts;
        };
        QCOMPARE(names({made({})}), QStringList{""}); // the defaults, nothing beside
        QCOMPARE(names({made({"element=float64"})}), QStringList{"float64 (8 B)"});
        QCOMPARE(names({made({}), made({"element=float64"})}), (QStringList{"float32 (4 B)", "float64 (8 B)"}));
        // What is swept differs by no more than the point from which one looks.
        QCOMPARE(names({made({"stride=4"}), made({"stride=8"})}),
                 (QStringList{"stride 4 elements", "stride 8 elements"}));
        QCOMPARE(names({made({"stride=4"}), made({"stride=8", "element=float64"})}),
                 (QStringList{"float32 (4 B)", "float64 (8 B)"}));
        QCOMPARE(names({made({}), made({}, "nvidia-a100-80gb")}), (QStringList{"H200 SXM", "A100 80 GB SXM"}));
        QCOMPARE(names({made({})}, "nvidia-a100-80gb"), QStringList{"H200 SXM"}); // not the page's
        Record prediction = made({"element=float64"});
        prediction.measured.reset();
        QCOMPARE(names({prediction}), QStringList{"predicted, float64 (8 B)"});
        prediction.name = "lab 2";
        QCOMPARE(names({prediction}), QStringList{"lab 2"});
    }

    void aLabelSaysWhenItWasMade()
    {
        std::vector<Record> records{sampleRecord("stride", {})};
        const QDateTime made = QDateTime::fromString(QStringLiteral("2026-01-02T12:04:05Z"), Qt::ISODate);
        records.front().provenance["time"] = "2026-01-02T12:04:05Z";
        const auto time = [&](const QDateTime& now) {
            return recordLabels(records, {0}, "nvidia-h200", ByteStyle::Binary, now).front().text();
        };
        const QString clock = made.toLocalTime().toString(QStringLiteral("hh:mm"));
        QCOMPARE(time(made.addSecs(60)), clock);
        QVERIFY(time(made.addDays(3)).endsWith(clock) && time(made.addDays(3)) != clock);
    }

    void theStripHoldsAChipForEachRecordNewestLast()
    {
        StudyDocument document;
        RecordsModel model(document, "stride");
        QWidget window;
        RecordsStrip strip(document, &model, &window);
        QVERIFY(strip.isHidden());
        for (const char* element : {"element=float32", "element=float64", "element=float16"})
            document.addRecord(sampleRecord("stride", {element}));
        QVERIFY(!strip.isHidden());
        document.setRecordPinned(2, true); // first in the list, last here all the same
        const QAbstractItemModel& chips = *strip.view()->model();
        QCOMPARE(chips.rowCount(), 3);
        for (int row = 0; row < 3; ++row)
            QCOMPARE(strip.recordOf(chips.index(row, 0)), row);
        QVERIFY(chips.index(1, 0).data(RecordsModel::LabelRole).toString().startsWith("float64"));
        document.removeRecords({0, 1, 2});
        QVERIFY(strip.isHidden());
    }

    void aChipShowsARecordAndItsPinPinsIt()
    {
        StudyDocument document;
        RecordsModel model(document, "stride");
        for (const char* element : {"element=float32", "element=float64"})
            document.addRecord(sampleRecord("stride", {element}));
        QWidget window;
        window.resize(900, 60);
        RecordsStrip strip(document, &model, &window);
        strip.resize(900, 40);
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QSignalSpy chosen(&strip, &RecordsStrip::chosen);
        const QModelIndex second = strip.view()->model()->index(1, 0);
        const QRect chip = strip.view()->visualRect(second);
        QTest::mouseClick(strip.view()->viewport(), Qt::LeftButton, {}, chip.center());
        QCOMPARE(chosen.count(), 1);
        QCOMPARE(chosen[0][0].toInt(), 1);
        QTest::mouseClick(strip.view()->viewport(), Qt::LeftButton, {}, RecordChip::pinOf(chip).center());
        QVERIFY(document.records()[1].pinned);
        QCOMPARE(chosen.count(), 1); // the pin is not the chip
    }

    void theKeyboardDoesAllThatTheMouseDoes()
    {
        StudyDocument document;
        RecordsModel model(document, "stride");
        for (const char* element : {"element=float32", "element=float64"})
            document.addRecord(sampleRecord("stride", {element}));
        RecordsStrip strip(document, &model);
        strip.show();
        strip.activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(&strip));
        QSignalSpy chosen(&strip, &RecordsStrip::chosen);
        QSignalSpy menu(&strip, &RecordsStrip::menuWanted);
        QListView* view = strip.view();
        view->setFocus();
        QCOMPARE(strip.recordOf(view->currentIndex()), 1); // the newest
        QTest::keyClick(view, Qt::Key_Left);
        QTest::keyClick(view, Qt::Key_Return);
        QCOMPARE(chosen.count(), 1);
        QCOMPARE(chosen[0][0].toInt(), 0);
        QTest::keyClick(view, Qt::Key_P);
        QVERIFY(document.records()[0].pinned);
        QTest::keyClick(view, Qt::Key_B);
        QVERIFY(document.records()[0].baseline);
        QTest::keyClick(view, Qt::Key_F10, Qt::ShiftModifier);
        QCOMPARE(menu.count(), 1);
        const QString spoken = view->currentIndex().data(Qt::AccessibleTextRole).toString();
        QVERIFY2(spoken.startsWith("float32") && spoken.endsWith("grade A, pinned, baseline"), qPrintable(spoken));
    }

    void manyChipsScrollToTheNewest()
    {
        StudyDocument document;
        RecordsModel model(document, "stride");
        QWidget window;
        window.resize(500, 60);
        RecordsStrip strip(document, &model, &window);
        strip.resize(500, 40);
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        const Record record = sampleRecord("stride", {});
        for (int i = 0; i < 12; ++i)
            document.addRecord(record);
        const auto isSeen = [&](int row) {
            const QRect chip = strip.view()->visualRect(strip.view()->model()->index(row, 0));
            return strip.view()->viewport()->rect().contains(chip.center());
        };
        QTRY_VERIFY(isSeen(11));
        QVERIFY(!isSeen(0));
        QTest::keyClick(strip.view(), Qt::Key_Home);
        QVERIFY(isSeen(0));
    }

    void theListMakesARecordTheBaseline()
    {
        StudyDocument document;
        RecordsList list(document, "stride");
        for (const char* stride : {"stride=1", "stride=2"})
            document.addRecord(sampleRecord("stride", {stride}));
        list.show();
        list.activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(&list));
        list.view()->setFocus();
        list.view()->setCurrentIndex(list.model()->index(list.model()->rowOf(0)));
        QTest::keyClick(list.view(), Qt::Key_B);
        QVERIFY(document.records()[0].baseline);
        QCOMPARE(list.model()->rowOf(0), 0); // it is drawn, so it stands with the pinned ones
        QTest::keyClick(list.view(), Qt::Key_B);
        QVERIFY(!document.records()[0].baseline);
    }

    void predictionsAreComparedAsPredicted()
    {
        Record here = sampleRecord("stride", {});
        Record there = sampleRecord("stride", {}, 1.1, "nvidia-a100-80gb");
        QVERIFY(!compareText(here, there).contains("Predictions compared"));
        there.measured.reset();
        const QString text = compareText(here, there);
        QVERIFY2(text.startsWith("Predictions compared") && text.contains("is slower than"), qPrintable(text));
        here.predicted.reset();
        QVERIFY2(compareText(here, there).contains("nothing to compare"), qPrintable(compareText(here, there)));
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
