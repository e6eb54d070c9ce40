// SPDX-License-Identifier: GPL-3.0-or-later
// The page Snapshot as a person uses it: open a file, look at it from all sides, select, undo, compare, put a
// prediction beside it; and what it says of files that are broken, missing, or stopped on the way.
#include "app/pages/snapshot/preview_curve.h"
#include "app/pages/snapshot/snapshot_page.h"
#include "app/settings/theme.h"
#include "core/device/catalogue.h"
#include "core/experiments/training-memory/memory_history.h"
#include "core/snapshot/pickle_writer.h"
#include "tests/support/page_fixture.h"

#include <QClipboard>
#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <QUndoStack>
#include <QWheelEvent>

#include <algorithm>

using namespace memscape;

namespace {

constexpr std::size_t exampleEntries = 1767; ///< of the example, as its writer noted

QString exampleFile()
{
    return QString::fromStdString((resourcesFolder() / "records" / "gpt2-tiny.pickle").string());
}

QByteArray exampleBytes()
{
    QFile file(exampleFile());
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

/// A trace of 200,000 pairs of an allocation and its free, over one block that stays.
QByteArray largeBytes()
{
    QByteArray bytes;
    PickleWriter out([&](std::string_view piece) {
        bytes.append(piece.data(), qsizetype(piece.size()));
        return true;
    });
    const auto event = [&](const char* action, std::int64_t address, std::int64_t size) {
        out.beginDictionary();
        out.key("action");
        out.text(action);
        out.key("addr");
        out.integer(address);
        out.key("size");
        out.integer(size);
        out.endDictionary();
    };
    out.beginDictionary();
    out.key("device_traces");
    out.beginList();
    out.beginList();
    event("alloc", 1 << 20, 5 << 20);
    for (int i = 0; i < 200'000; ++i) {
        event("alloc", 1 << 24, 1 << 20);
        event("free_completed", 1 << 24, 1 << 20);
    }
    out.endList();
    out.endList();
    out.key("segments");
    out.beginList();
    out.endList();
    out.endDictionary();
    return out.finish() ? bytes : QByteArray();
}

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

class TestSnapshotPage : public QObject
{
    Q_OBJECT

    std::unique_ptr<PageFixture> m_fixture;
    std::unique_ptr<SnapshotPage> m_page;

    void open(const QString& path = exampleFile())
    {
        m_page->open(path);
        QTRY_VERIFY(m_page->isSettled());
    }
    QString written(const QString& name, const QByteArray& content)
    {
        const QString path = m_folder.filePath(name);
        QFile file(path);
        if (file.open(QIODevice::WriteOnly))
            file.write(content);
        return path;
    }
    QTemporaryDir m_folder;

private slots:
    void init()
    {
        applyTheme(*qApp, QStringLiteral("dark"));
        m_fixture = std::make_unique<PageFixture>();
        m_page = std::make_unique<SnapshotPage>(m_fixture->services());
        m_page->resize(1280, 900);
        m_page->show();
    }
    void cleanup()
    {
        m_page.reset();
        m_fixture.reset();
    }

    void anEmptyPageSaysHowToRecord()
    {
        QVERIFY(m_page->start()->isVisible());
        QVERIFY(m_page->start()->text().contains("three lines"));
        QSignalSpy wanted(m_page.get(), &SnapshotPage::openWanted);
        m_page->start()->findChild<QPushButton*>("openSnapshot")->click();
        QCOMPARE(wanted.size(), 1);
        QVERIFY(!m_page->findChild<QPushButton*>("compare")->isEnabled());
    }

    void aFileIsShownFromAllSides()
    {
        open();
        QVERIFY(m_page->shown().device);
        QCOMPARE(m_page->title(), QString("gpt2-tiny.pickle"));
        QVERIFY2(m_page->facts().startsWith("106 kB · 1767 events · PyTorch 2.1 or newer · opened in "),
                 qPrintable(m_page->facts()));
        const Figure* peak = findFigure(m_page->figures(), "peak_allocated");
        QVERIFY(peak);
        const SnapshotBytes atPeak = m_page->shown().device->lifetimes().bytesAt(m_page->shown().peak);
        QCOMPARE(peak->number(), double(atPeak.allocated));
        const auto labels = m_page->inspector()->findChildren<QLabel*>();
        QVERIFY(std::ranges::any_of(
            labels, [](const QLabel* label) { return label->accessibleName().contains(" blocks"); })); // what is alive
        for (const char* kind : {"blocks", "flame", "table", "timeline"}) {
            m_page->findChild<QToolButton*>(QStringLiteral("view.") + kind)->click();
            QTRY_VERIFY(m_page->isSettled());
            QCOMPARE(m_page->kind(), QString(kind));
            QVERIFY(m_page->stage()->isVisible());
        }
        QVERIFY(!m_page->flame()->flame()->items().empty());
        QVERIFY(m_page->table()->table()->numbers()->rowCount() > 0);
    }

    /// Of a file of some MiB: first a curve of what is read, then how far rebuilding is, then the page; or a stop.
    void theFirstPictureStandsWhileAFileOpens()
    {
        const QString path = written("large.pickle", largeBytes());
        open(path);
        QVERIFY(m_page->shown().device);
        QVERIFY(!m_page->start()->preview()->isEmpty());
        QVERIFY(m_page->start()->preview()->share() > 0);
        SnapshotOpener opener;
        QSignalSpy stopped(&opener, &SnapshotOpener::stopped), opened(&opener, &SnapshotOpener::opened);
        std::vector<double> shares;
        QStringList parts;
        bool stops = false;
        connect(&opener, &SnapshotOpener::progress, this, [&](double share, const QString& part) {
            shares.push_back(share);
            parts << part;
            if (stops && part != "reading")
                opener.stop();
        });
        opener.open(path);
        QTRY_COMPARE(opened.size(), 1);
        QVERIFY(std::ranges::is_sorted(shares));
        QCOMPARE(parts.first(), QString("reading"));
        QCOMPARE(parts.last(), QString("rebuilding every moment"));
        stops = true;
        opener.open(path);
        QTRY_COMPARE(stopped.size(), 1);
        QTest::qWait(50);
        QCOMPARE(opened.size(), 1);
        QVERIFY(!opener.isBusy());
    }

    void openingIsAStepOfTheHistory()
    {
        open();
        const QString second = written("second.pickle", exampleBytes());
        open(second);
        QCOMPARE(m_page->title(), QString("second.pickle"));
        m_fixture->document.undoStack()->undo();
        QTRY_VERIFY(m_page->isSettled());
        QCOMPARE(m_page->title(), QString("gpt2-tiny.pickle"));
        m_fixture->document.undoStack()->undo();
        QTRY_VERIFY(m_page->start()->isVisible());
        QVERIFY(!m_page->shown().device);
        m_fixture->document.undoStack()->redo();
        QTRY_VERIFY(m_page->shown().device != nullptr);
    }

    void aStudyRemembersFileViewAndRange()
    {
        open();
        m_page->setKind("blocks");
        m_page->select(200, 900);
        const QString study = m_folder.filePath("run.memscape");
        QVERIFY(m_fixture->document.saveAs(study));
        m_page.reset();
        m_fixture = std::make_unique<PageFixture>();
        QVERIFY(m_fixture->document.open(study));
        m_page = std::make_unique<SnapshotPage>(m_fixture->services());
        m_page->resize(1280, 900);
        m_page->show();
        QTRY_VERIFY(m_page->isSettled());
        QCOMPARE(m_page->file(), exampleFile());
        QCOMPARE(m_page->kind(), QString("blocks"));
        QCOMPARE(m_page->shown().range.first, std::size_t(200));
        QCOMPARE(m_page->shown().range.last, std::size_t(900));
        QVERIFY(m_fixture->document.openingNotes().empty());
        QVERIFY(!m_fixture->document.isModified());
    }

    void whatIsNoSnapshotSaysWhy_data()
    {
        QTest::addColumn<QByteArray>("content");
        const QByteArray whole = exampleBytes();
        QTest::newRow("empty") << QByteArray();
        QTest::newRow("a text") << QByteArray("hello");
        QTest::newRow("truncated") << whole.left(whole.size() / 2);
        QTest::newRow("hostile") << QByteArray("\x80\x04"
                                               "cos\nsystem\n(S'true'\ntR.",
                                               26);
        QTest::newRow("a pickle of nothing") << QByteArray("\x80\x04N.", 4);
    }
    void whatIsNoSnapshotSaysWhy()
    {
        QFETCH(QByteArray, content);
        open();
        open(written("broken.pickle", content));
        QVERIFY(m_page->problem());
        QVERIFY(m_page->start()->isVisible());
        QVERIFY2(m_page->start()->text().startsWith("broken.pickle could not be opened"),
                 qPrintable(m_page->start()->text()));
        m_page->start()->findChild<QPushButton*>("copyDetails")->click();
        const QString copied = QGuiApplication::clipboard()->text();
        QVERIFY(copied.contains(QString::fromStdString(m_page->problem()->code)));
        m_fixture->document.undoStack()->undo(); // the file before is a step away
        QTRY_VERIFY(m_page->shown().device != nullptr);
    }

    void aFileThatIsGoneSaysSo()
    {
        const QString path = written("gone.pickle", exampleBytes());
        QVERIFY(QFile::remove(path));
        open(path);
        QVERIFY(m_page->problem());
        QCOMPARE(m_page->problem()->code, std::string("file.missing"));
        written("gone.pickle", exampleBytes());
        const auto buttons = m_page->start()->findChildren<QPushButton*>();
        const auto again =
            std::ranges::find_if(buttons, [](const QPushButton* button) { return button->text() == "Try again"; });
        QVERIFY(again != buttons.end());
        (*again)->click();
        QTRY_VERIFY(m_page->shown().device != nullptr);
    }

    void openingCanBeStopped()
    {
        m_page->open(exampleFile());
        emit m_page->start()->stopWanted();
        QTRY_VERIFY(m_page->isSettled());
        QVERIFY(!m_page->shown().device);
        QVERIFY(m_page->start()->text().contains("stopped"));
    }

    void thePageMayCloseWhileItOpens()
    {
        m_page->open(exampleFile());
        m_page.reset();
        QTest::qWait(50);
    }

    void nothingIsSaidOfTheLastFileWhileAnotherOpens()
    {
        open();
        QVERIFY(m_page->facts().contains("opened in"));
        m_page->open(written("next.pickle", exampleBytes()));
        QCOMPARE(m_page->title(), QString("next.pickle"));
        QVERIFY2(!m_page->facts().contains("opened in"), qPrintable(m_page->facts()));
        QTRY_VERIFY(m_page->isSettled() && m_page->facts().contains("opened in"));
    }

    void escStopsAnOpening()
    {
        StartPane pane;
        QSignalSpy stopped(&pane, &StartPane::stopWanted);
        pane.show();
        QVERIFY(QTest::qWaitForWindowActive(&pane));
        QTest::keyClick(&pane, Qt::Key_Escape);
        QCOMPARE(stopped.size(), 0); // nothing is being opened
        pane.showProgress(exampleFile(), 0.5, "reading");
        QTest::keyClick(&pane, Qt::Key_Escape);
        QTRY_COMPARE(stopped.size(), 1);
    }

    void theNewestFileWins()
    {
        const QString second = written("newest.pickle", exampleBytes());
        m_page->open(exampleFile());
        m_page->open(second);
        QTRY_VERIFY(m_page->isSettled());
        QCOMPARE(m_page->opened().path, second);
    }

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
    void aPredictedStepIsNotCalledMeasured()
    {
        const Parameters parameters = *resolve((*findExperiment("training-memory"))->schema(),
                                               std::vector<std::string>{"model=gpt2", "batch=1", "sequence=128"});
        const auto file = memoryHistory(*findDevice("nvidia-h200"), parameters);
        QVERIFY(file);
        m_page->open(written("predicted.pickle", QByteArray::fromStdString(*file)));
        QTRY_VERIFY(m_page->isSettled() && !m_page->figures().empty());
        QVERIFY2(m_page->facts().contains("predicted") && !m_page->facts().contains("PyTorch"),
                 qPrintable(m_page->facts()));
        const FiguresTable& table = *m_page->inspector()->figures();
        QVERIFY(table.isColumnHidden(FiguresModel::MeasuredColumn));
        QVERIFY(!table.isColumnHidden(FiguresModel::PredictedColumn));
        for (const FigureRow& row : table.figures()->rows())
            QVERIFY2(row.predicted && !row.measured, qPrintable(row.key));
        QVERIFY(!m_page->findChild<QToolButton*>("byTime")->isVisible()); // its times count events
        QVERIFY(m_page->timeline()->chartNow().steps.empty());            // it is one
        const QString json = m_folder.filePath("predicted.json");
        QVERIFY(m_page->exports().json(json));
        const auto record = readRecord(json.toStdString());
        QVERIFY(record && record->predicted && !record->measured);
        open(); // a run again
        QVERIFY(!table.isColumnHidden(FiguresModel::MeasuredColumn));
    }

    void aPredictionStandsBesideIt()
    {
        m_fixture->document.setDevice("training-memory", "nvidia-t4");
        open();
        QVERIFY(m_page->inspector()->beside()->step().empty());
        m_page->findChild<QToolButton*>("beside")->click();
        QTRY_VERIFY(!m_page->inspector()->beside()->step().empty());
        QTRY_VERIFY(m_page->isSettled());
        const auto& rows = m_page->inspector()->figures()->figures()->rows();
        const auto row = std::ranges::find(rows, "peak_allocated", &FigureRow::key);
        QVERIFY(row != rows.end() && row->predicted && row->measured && std::isfinite(row->error));
        QStringList wanted;
        connect(m_page.get(), &SnapshotPage::pageWanted, this, [&](const PageVisit& visit) { wanted << visit.page; });
        m_page->findChild<QPushButton*>("openBudget")->click();
        QCOMPARE(wanted, QStringList("training-memory"));
        m_fixture->document.undoStack()->undo();
        QVERIFY(m_page->inspector()->beside()->step().empty());
    }

    void everythingHasANameForTheScreenReader()
    {
        open();
        for (QWidget* widget : m_page->findChildren<QWidget*>()) {
            if (!(widget->focusPolicy() & Qt::TabFocus) || !widget->isVisible())
                continue;
            const auto* button = qobject_cast<QAbstractButton*>(widget);
            const bool isNamed = !widget->accessibleName().isEmpty() || (button && !button->text().isEmpty());
            const bool isPart = widget->parentWidget() && !widget->parentWidget()->accessibleName().isEmpty();
            QVERIFY2(isNamed || isPart, qPrintable(widget->objectName() + u' ' + widget->metaObject()->className()));
        }
    }

    void itDrawsInEverySizeAndTheme_data()
    {
        QTest::addColumn<QString>("theme");
        QTest::addColumn<QSize>("size");
        for (const char* theme : {"light", "dark"}) {
            for (const QSize size : {QSize(741, 440), QSize(1280, 800), QSize(1920, 1200)})
                QTest::addRow("%s %d", theme, size.width()) << QString(theme) << size;
        }
    }
    void itDrawsInEverySizeAndTheme()
    {
        QFETCH(QString, theme);
        QFETCH(QSize, size);
        applyTheme(*qApp, theme);
        m_page->resize(size);
        open();
        for (const char* kind : {"timeline", "blocks", "flame", "table"}) {
            m_page->setKind(kind);
            QTRY_VERIFY(m_page->isSettled());
            const QImage image = m_page->grab().toImage();
            QCOMPARE(image.size(), size);
            QCOMPARE(image.pixelColor(size.width() / 3, size.height() - 2).lightnessF() > 0.5, theme == "light");
        }
    }
};

QTEST_MAIN(TestSnapshotPage)
#include "tst_snapshot_page.moc"
