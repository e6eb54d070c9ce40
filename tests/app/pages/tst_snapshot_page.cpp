// SPDX-License-Identifier: GPL-3.0-or-later
// The page Snapshot opens files: steps of the history, stopped or overtaken on the way, broken or missing; and what
// stands beside them, and how the whole looks.
#include "app/pages/snapshot/preview_curve.h"
#include "core/device/catalogue.h"
#include "core/experiments/training-memory/memory_history.h"
#include "tests/support/snapshot_bench.h"

#include <QClipboard>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QToolButton>
#include <QUndoStack>

#include <algorithm>

using namespace memscape;

class TestSnapshotPage : public QObject, private SnapshotBench
{
    Q_OBJECT

private slots:
    void init() { begin(); }
    void cleanup() { end(); }

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
