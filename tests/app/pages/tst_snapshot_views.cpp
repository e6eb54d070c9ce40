// SPDX-License-Identifier: GPL-3.0-or-later
// The views of the page Snapshot: timeline, blocks, flame graph, table and comparison, by mouse and by keys; selections
// that can be undone; a finding that leads to its place.
#include "app/pages/fields/quiet_widgets.h"
#include "tests/support/snapshot_bench.h"

#include <QComboBox>
#include <QLineEdit>
#include <QUndoStack>
#include <QWheelEvent>

#include <algorithm>

using namespace memscape;

namespace {

constexpr std::size_t exampleEntries = 1767; ///< of the example, as its writer noted

void turnWheel(QWidget& widget, QPointF at, int delta, Qt::KeyboardModifiers modifiers = {})
{
    QWheelEvent event(at, widget.mapToGlobal(at), {}, {0, delta}, Qt::NoButton, modifiers, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(&widget, &event);
}

void dragOver(QWidget& widget, QPointF from, QPointF to, Qt::MouseButton button = Qt::LeftButton)
{
    const auto send = [&](QEvent::Type type, QPointF at, Qt::MouseButton pressed, Qt::MouseButtons held) {
        QMouseEvent event(type, at, widget.mapToGlobal(at), pressed, held, {});
        QCoreApplication::sendEvent(&widget, &event);
    };
    send(QEvent::MouseButtonPress, from, button, button);
    send(QEvent::MouseMove, (from + to) / 2, Qt::NoButton, button);
    send(QEvent::MouseMove, to, Qt::NoButton, button);
    send(QEvent::MouseButtonRelease, to, button, Qt::NoButton);
}

} // namespace

class TestSnapshotViews : public QObject, private SnapshotBench
{
    Q_OBJECT

private slots:
    void init() { begin(); }
    void cleanup() { end(); }

    void theWheelZoomsAndADoubleClickShowsAll()
    {
        open();
        TimelineView& timeline = *m_page->timeline();
        const TimelineSight whole = timeline.sight();
        const QPointF middle = timeline.chartNow().area.center();
        turnWheel(timeline, middle, 480);
        QVERIFY(timeline.sight().last - timeline.sight().first < whole.last / 2);
        QCOMPARE(timeline.sight().top, whole.top);
        turnWheel(timeline, middle, 240, Qt::ShiftModifier);
        QVERIFY(timeline.sight().top - timeline.sight().bottom < whole.top);
        dragOver(timeline, middle, middle + QPointF(60, 0), Qt::RightButton);
        QVERIFY(timeline.sight() != whole);
        QTest::mouseDClick(&timeline, Qt::LeftButton, {}, middle.toPoint());
        QVERIFY(timeline.sight() == whole);
        QVERIFY(!m_page->shown().isSelected);
        for (int notch = 0; notch < 60; ++notch) // over the outline
            turnWheel(timeline, {middle.x(), timeline.chartNow().area.top() + 2}, 120, Qt::ShiftModifier);
        const TimelineSight near = timeline.sight();
        const std::size_t peak = m_page->shown().device->timeline().peakReserved(near.first, near.last);
        QVERIFY(near.bottom < double(m_page->shown().device->lifetimes().bytesAt(peak).reserved));
        QTest::keyClick(&timeline, Qt::Key_Escape);
        QVERIFY(timeline.sight() == whole);
    }

    void aDragSelectsARangeThatCanBeUndone()
    {
        open();
        TimelineView& timeline = *m_page->timeline();
        const QRectF area = timeline.chartNow().area;
        const std::size_t first = timeline.chartNow().momentAt(area.left() + 100);
        dragOver(timeline, {area.left() + 100, area.center().y()}, {area.left() + 300, area.center().y()});
        QVERIFY(m_page->shown().isSelected);
        QCOMPARE(m_page->shown().range.first, first);
        QTRY_VERIFY(m_page->isSettled());
        const std::size_t peak = m_page->shown().device->timeline().peakAllocated(first, m_page->shown().range.last);
        QCOMPARE(findFigure(m_page->figures(), "peak_allocated")->number(),
                 double(m_page->shown().device->lifetimes().bytesAt(peak).allocated));
        QVERIFY(m_page->inspector()->rangeText().startsWith("of events"));
        m_fixture->document.undoStack()->undo();
        QVERIFY(!m_page->shown().isSelected);
        m_fixture->document.undoStack()->redo();
        QVERIFY(m_page->shown().isSelected);
        QTest::keyClick(&timeline, Qt::Key_Escape);
        QVERIFY(!m_page->shown().isSelected);
    }

    void aClickSetsTheMomentOfAllViews()
    {
        open();
        TimelineView& timeline = *m_page->timeline();
        const QRectF area = timeline.chartNow().area;
        QTest::mouseClick(&timeline, Qt::LeftButton, {}, QPoint(int(area.left()) + 150, int(area.center().y())));
        const std::size_t moment = m_page->shown().moment;
        QCOMPARE(moment, timeline.chartNow().peakAt(int(area.left()) + 150));
        QCOMPARE(m_page->blocks()->shown().moment, moment);
        QCOMPARE(m_page->strip()->shown().moment, moment);
        QCOMPARE(m_page->flame()->flame()->shown().moment, moment);
    }

    void keysMoveTheMoment()
    {
        open();
        TimelineView& timeline = *m_page->timeline();
        QTest::keyClick(&timeline, Qt::Key_Home);
        QCOMPARE(m_page->shown().moment, std::size_t(0));
        QTest::keyClick(&timeline, Qt::Key_Left);
        QCOMPARE(m_page->shown().moment, std::size_t(0));
        QTest::keyClick(&timeline, Qt::Key_Right);
        QCOMPARE(m_page->shown().moment, std::size_t(1));
        QTest::keyClick(&timeline, Qt::Key_End);
        QCOMPARE(m_page->shown().moment, exampleEntries);
        QTest::keyClick(&timeline, Qt::Key_P);
        QCOMPARE(m_page->shown().moment, m_page->shown().peak);
        const TimelineSight whole = timeline.sight();
        QTest::keyClick(&timeline, Qt::Key_Plus);
        QVERIFY(timeline.sight() != whole);
        QTest::keyClick(&timeline, Qt::Key_0);
        QVERIFY(timeline.sight() == whole);
    }

    void blocksAreWalkedWithTheKeyboard()
    {
        open();
        m_page->setKind("blocks");
        BlocksView& blocks = *m_page->blocks();
        QTest::keyClick(&blocks, Qt::Key_Right);
        const QString first = m_page->statusText();
        QVERIFY(!first.isEmpty());
        for (int i = 0; i < 5; ++i)
            QTest::keyClick(&blocks, Qt::Key_Right);
        QVERIFY(blocks.accessibleDescription().contains("before it"));
        const QImage unmarked = blocks.grab().toImage();
        QTest::keyClick(&blocks, Qt::Key_F);
        QVERIFY(blocks.grab().toImage() != unmarked);
        QTest::keyClick(&blocks, Qt::Key_F);
        QCOMPARE(blocks.grab().toImage(), unmarked);
        turnWheel(blocks, {200, 100}, 480);
        QVERIFY(blocks.sight().zoom > 1);
        QTest::mouseDClick(&blocks, Qt::LeftButton, {}, {200, 100});
        QCOMPARE(blocks.sight().zoom, 1.0);
        turnWheel(blocks, {200, 100}, 480);
        QVERIFY(blocks.sight().zoom > 1);
        QTest::keyClick(&blocks, Qt::Key_Escape);
        QCOMPARE(blocks.sight().zoom, 1.0);
    }

    void aClickInTheFlameGraphShowsOneAlone()
    {
        open();
        m_page->setKind("flame");
        QTRY_VERIFY(m_page->isSettled());
        FlameView& flame = *m_page->flame()->flame();
        const auto boxes = flame.boxesNow();
        QVERIFY(boxes.size() > 2);
        QTest::mouseClick(&flame, Qt::LeftButton, {}, boxes[1].rect.center().toPoint());
        QCOMPARE(flame.root(), boxes[1].item);
        QTest::keyClick(&flame, Qt::Key_Backspace);
        QCOMPARE(flame.root(), 0u);
    }

    void theTableIsFilteredAndCopied()
    {
        open();
        m_page->setKind("table");
        QTRY_VERIFY(m_page->isSettled());
        GroupsPane& pane = *m_page->table();
        pane.by()->setCurrentIndex(pane.by()->findData(int(SnapshotGrouping::Category)));
        emit pane.by()->activated(pane.by()->currentIndex());
        QTRY_VERIFY(m_page->isSettled());
        const int all = pane.table()->model()->rowCount();
        QVERIFY(all > 0);
        pane.filter()->setText("no such name");
        QCOMPARE(pane.table()->model()->rowCount(), 0);
        pane.filter()->clear();
        QCOMPARE(pane.table()->model()->rowCount(), all);
        QVERIFY(m_page->data().startsWith("category\tbytes\tshare\tblocks\tlargest\n"));
    }

    void aTableOfBlocksWithoutModulesIsByLine()
    {
        open(written("large.pickle", largeBytes())); // its blocks have no names at all
        m_page->setKind("table");
        QTRY_VERIFY(m_page->isSettled());
        const GroupsPane& pane = *m_page->table();
        QCOMPARE(pane.by()->currentData().toInt(), int(SnapshotGrouping::Line));
        pane.by()->setCurrentIndex(pane.by()->findData(int(SnapshotGrouping::Module)));
        emit pane.by()->activated(pane.by()->currentIndex()); // what is asked for by hand stays
        QTRY_VERIFY(m_page->isSettled());
        QCOMPARE(pane.by()->currentData().toInt(), int(SnapshotGrouping::Module));
    }

    void whatCanBeUnfoldedShowsAnArrow()
    {
        for (const QComboBox* box : m_page->findChildren<QComboBox*>())
            QVERIFY2(dynamic_cast<const QuietComboBox*>(box), qPrintable(box->accessibleName()));
    }

    void aSnapshotEqualsItself()
    {
        open();
        m_page->compareWith(exampleFile());
        QTRY_VERIFY(m_page->comparison()->comparison() != nullptr);
        QCOMPARE(m_page->kind(), QString("compare"));
        for (const NumbersRow& row : m_page->comparison()->table()->numbers()->numbers().rows)
            QCOMPARE(row.values.front(), 0.0);
        m_fixture->document.undoStack()->undo();
        QCOMPARE(m_page->kind(), QString("timeline"));
        QVERIFY(m_page->comparison()->other().isEmpty());
    }

    void aBrokenSecondFileLeavesTheFirst()
    {
        open();
        m_page->compareWith(written("broken.pickle", "hello"));
        QTRY_VERIFY(m_page->comparison()->stateText().contains("could not be opened"));
        QVERIFY(m_page->shown().device);
    }

    void aFindingLeadsToItsPlace()
    {
        open(QStringLiteral(TEST_DATA "/snapshots/random_oom_pending.p4.pickle"));
        const auto& findings = m_page->findings()->findings();
        const auto failed = std::ranges::find(findings, "out-of-memory", &SnapshotFinding::id);
        QVERIFY(failed != findings.end());
        m_page->setKind("table");
        auto* card = m_page->findings()->findChild<QWidget*>("finding.out-of-memory");
        QVERIFY(card && card->accessibleName().contains("Out of memory"));
        QTest::keyClick(card, Qt::Key_Return);
        QCOMPARE(m_page->kind(), QString("timeline"));
        QCOMPARE(m_page->shown().moment, failed->firstEvent);
        QVERIFY(m_page->timeline()->sight().first <= failed->firstEvent);
        QVERIFY(m_page->timeline()->sight().last >= failed->firstEvent);
    }

    // What `predict --as memory_viz` writes was never run.
};

QTEST_MAIN(TestSnapshotViews)
#include "tst_snapshot_views.moc"
