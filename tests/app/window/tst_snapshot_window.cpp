// SPDX-License-Identifier: GPL-3.0-or-later
// A snapshot comes into the window by every door, is remembered, exported in every format, and leaves as it came.
#include "app/document/pages.h"
#include "app/pages/snapshot/snapshot_page.h"
#include "app/plots/plot_view.h"
#include "app/settings/words.h"
#include "core/base/file.h"
#include "core/device/catalogue.h"
#include "core/report/snapshot_record.h"
#include "core/snapshot/snapshot_reader.h"
#include "tests/support/quiet_window.h"

#include <QDropEvent>
#include <QFileInfo>
#include <QMenu>
#include <QMimeData>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QUndoStack>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

QString exampleSnapshot()
{
    return QString::fromStdString((resourcesFolder() / "records" / "gpt2-tiny.pickle").string());
}

} // namespace

class TestSnapshotWindow : public QObject
{
    Q_OBJECT

    std::unique_ptr<MainWindow> m_window;
    QTemporaryDir m_folder;

    /// The page, while it is shown.
    SnapshotPage* snapshot() const { return qobject_cast<SnapshotPage*>(m_window->tool()); }

    void openExample()
    {
        QVERIFY(m_window->files().openPath(exampleSnapshot()));
        QTRY_VERIFY(snapshot() && snapshot()->isSettled() && snapshot()->shown().device);
    }

private slots:
    void init()
    {
        m_window = shownWindow();
        m_window->settings().clearRecentFiles();
    }
    void cleanup() { m_window.reset(); }

    void itIsOnTheRail()
    {
        m_window->rail().button("snapshot")->click();
        QVERIFY(snapshot() && !m_window->page());
        QVERIFY(m_window->rail().button("snapshot")->isChecked());
        m_window->rail().button("stride")->click();
        QVERIFY(m_window->page() && !snapshot());
    }

    void openedFilesGoToThePageAndIntoTheList()
    {
        openExample();
        QCOMPARE(m_window->settings().recentFiles().front(), exampleSnapshot());
        QMenu recent;
        m_window->files().fillRecent(recent);
        m_window->showPage("stride");
        recent.actions().front()->trigger();
        QTRY_VERIFY(snapshot() && snapshot()->shown().device);
    }

    void aDroppedFileIsOpenedWhateverItsName()
    {
        const QString path = m_folder.filePath("dump.bin");
        QVERIFY(QFile::copy(exampleSnapshot(), path));
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile(path)});
        QDragEnterEvent enter(QPoint(400, 300), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(m_window.get(), &enter);
        QVERIFY(enter.isAccepted());
        QDropEvent event(QPointF(400, 300), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(m_window.get(), &event);
        QTRY_VERIFY(snapshot() && snapshot()->shown().device);
        QCOMPARE(snapshot()->title(), QString("dump.bin"));
    }

    void itsRequestsArePlayedInTheAllocator()
    {
        openExample();
        snapshot()->findChild<QPushButton*>("play")->click();
        QVERIFY(m_window->page() && m_window->page()->experiment().id() == "allocator");
        const auto trace = [&] { return m_window->document().parameters("allocator").text("trace"); };
        QCOMPARE(QString::fromStdString(trace()), exampleSnapshot());
        QCOMPARE(m_window->document().parameters("allocator").text("setting"), std::string("recorded"));
        QTRY_VERIFY(m_window->page()->upToDate() && m_window->page()->prediction());
        m_window->document().undoStack()->undo();
        QVERIFY(QString::fromStdString(trace()) != exampleSnapshot());
        QVERIFY2(snapshot(), "undoing leads back to the page that was left");
        m_window->document().undoStack()->redo();
        QVERIFY(m_window->page() && m_window->page()->experiment().id() == "allocator");
        QCOMPARE(QString::fromStdString(trace()), exampleSnapshot());
    }

    void aFileDroppedOnTheAllocatorIsPlayed()
    {
        m_window->showPage("allocator");
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile(exampleSnapshot())});
        QDragEnterEvent enter(QPoint(400, 300), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(m_window.get(), &enter);
        QDropEvent event(QPointF(400, 300), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(m_window.get(), &event);
        QVERIFY(m_window->page() && !snapshot());
        QCOMPARE(QString::fromStdString(m_window->document().parameters("allocator").text("trace")), exampleSnapshot());
    }

    void aRecordOfOneShowsWhatItHolds()
    {
        auto read = readSnapshot(exampleSnapshot().toStdString());
        const auto device = SnapshotDevice::analyse(std::make_shared<const Snapshot>(std::move(*read)), 0).value();
        const Record record = snapshotRecord(*device, {0, device->lifetimes().events()}, "gpt2-tiny.pickle");
        const QString path = m_folder.filePath("snapshot.json");
        QVERIFY(writeFileAtomically(path.toStdString(), jsonText(recordToJson(record))));
        QVERIFY(m_window->files().openPath(path));
        QVERIFY(snapshot());
        const auto* shown = snapshot()->findChild<RecordPane*>();
        QVERIFY(shown->isVisibleTo(snapshot()));
        QCOMPARE(snapshot()->title(), QString("Record of gpt2-tiny.pickle"));
        QCOMPARE(shown->figures()->figures()->rows().size(), record.measured->figures.size());
        QCOMPARE(shown->findings()->findings().size(), record.measured->detail["findings"].size());
        QCOMPARE(shown->plot()->curves().size(), std::size_t(2));
        QVERIFY(shown->findChild<NumbersTable*>()->model()->rowCount() > 0);
        openExample(); // the snapshot itself takes its place
        QVERIFY(!shown->isVisibleTo(snapshot()));
    }

    void lookingAtAFileIsNoChangeThatWantsSaving()
    {
        openExample();
        QVERIFY(!m_window->document().isModified());
        snapshot()->select(100, 200);
        QVERIFY(m_window->document().isModified());
        m_window->document().undoStack()->undo();
        QVERIFY(!m_window->document().isModified());
    }

    void undoBringsThePageBack()
    {
        openExample();
        m_window->showPage("stride");
        m_window->document().undoStack()->undo();
        QVERIFY(snapshot());
        QTRY_VERIFY(!snapshot()->shown().device);
    }

    void aStudyOpensItAgain()
    {
        openExample();
        const QString study = m_folder.filePath("study.memscape");
        QVERIFY(m_window->document().saveAs(study));
        m_window->document().newStudy();
        QTRY_VERIFY(!snapshot()->shown().device);
        QVERIFY(m_window->files().openPath(study));
        QTRY_VERIFY(snapshot() && snapshot()->shown().device);
    }

    void itIsExportedInEveryFormat()
    {
        openExample();
        snapshot()->select(100, 700);
        QTRY_VERIFY(snapshot()->isSettled());
        QString next;
        m_window->exporter().askName = [&](const QString&, const QString&, const QString&) { return next; };
        const auto written = [&](const char* name, const char* action) {
            next = m_folder.filePath(name);
            m_window->actions().at(action).trigger();
            QElapsedTimer timer;
            timer.start();
            while (m_window->exporter().isBusy() && timer.elapsed() < 20000)
                QTest::qWait(10);
            return QFileInfo(next).size() > 1000;
        };
        for (const char* name : {"plot.png", "plot.svg", "plot.pdf"})
            QVERIFY2(written(name, "file.exportPlot"), name);
        QVERIFY(written("page.png", "file.exportPage"));
        QVERIFY(written("blocks.csv", "file.exportCsv"));
        QVERIFY(written("record.json", "file.exportJson"));
        QVERIFY(written("report.html", "file.exportReport"));
        QVERIFY(written("viz.pickle", "file.exportMemoryViz"));
        const auto again = readSnapshot(pathOf(m_folder.filePath("viz.pickle")));
        QVERIFY(again);
        QCOMPARE(again->events.size(), std::size_t(600));
        const auto record = readRecord(pathOf(m_folder.filePath("record.json")));
        QVERIFY2(record, record ? "" : record.error().text().c_str());
        QCOMPARE(record->experiment, std::string("snapshot"));
        QVERIFY(record->measured && findFigure(record->measured->figures, "peak_reserved"));
    }

    void whatCannotBeWrittenSaysSo()
    {
        openExample();
        m_window->exporter().askName = [](const QString&, const QString&, const QString&) {
            return QStringLiteral("/nowhere/blocks.csv");
        };
        m_window->actions().at("file.exportCsv").trigger();
        QTRY_VERIFY(!m_window->exporter().isBusy());
        QTRY_VERIFY(m_window->banner().texts().join(u' ').contains("Cannot write"));
    }

    void memoryBudgetIsOneClickAway()
    {
        openExample();
        snapshot()->findChild<QPushButton*>("openBudget")->click();
        QVERIFY(m_window->page());
        QCOMPARE(m_window->page()->experiment().id(), std::string("training-memory"));
    }

    void theHelpIsTheChapter()
    {
        openExample();
        m_window->actions().at("help.experiment").trigger();
        const auto dialogs = m_window->findChildren<QDialog*>();
        QVERIFY(!dialogs.isEmpty());
        QCOMPARE(dialogs.back()->windowTitle(), QString("Snapshot"));
    }

    void theWindowMayCloseWhileItOpens()
    {
        m_window->files().openPath(exampleSnapshot());
        m_window->close();
        m_window.reset();
        QTest::qWait(50);
    }

    // A screen of 1920 × 1200 at twice the scale, less a frame and a task bar.
    void itFitsHalfOfACommonScreen()
    {
        openExample();
        for (const char* kind : {"timeline", "blocks", "flame", "table"}) {
            snapshot()->setKind(kind);
            m_window->resize(944, 552);
            QTRY_COMPARE(m_window->size(), QSize(944, 552));
        }
    }

    void tabComesToEverything()
    {
        openExample();
        QVERIFY(QTest::qWaitForWindowActive(m_window.get()));
        snapshot()->timeline()->setFocus();
        std::set<QWidget*> reached;
        for (int i = 0; i < 300; ++i) {
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
            if (!reached.insert(QApplication::focusWidget()).second
                && QApplication::focusWidget() == snapshot()->timeline())
                break;
        }
        for (const char* name : {"openSnapshot", "compare", "export", "byTime", "beside", "figures"}) {
            const auto* widget = snapshot()->findChild<QWidget*>(name);
            if (widget && widget->isVisible() && widget->isEnabled())
                QVERIFY2(reached.contains(const_cast<QWidget*>(widget)), name);
        }
        QVERIFY(reached.contains(snapshot()->inspector()->figures()));
        QVERIFY(reached.contains(snapshot()->strip()));
    }
};

QTEST_MAIN(TestSnapshotWindow)
#include "tst_snapshot_window.moc"
