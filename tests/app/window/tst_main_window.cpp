// SPDX-License-Identifier: GPL-3.0-or-later
// The whole window, offscreen: pages, panels, palette, titles, layouts of other versions, closing.
#include "app/document/pages.h"
#include "app/pages/fields/parameter_section.h"
#include "app/pages/snapshot/snapshot_page.h"
#include "app/settings/theme.h"
#include "app/window/help_dialog.h"
#include "tests/support/quiet_window.h"

#include <QClipboard>
#include <QDropEvent>
#include <QFile>
#include <QLabel>
#include <QMimeData>
#include <QPushButton>
#include <QScopeGuard>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>

using namespace memscape;

class TestMainWindow : public QObject
{
    Q_OBJECT

private slots:
    void itOpensOnTheFirstExperiment()
    {
        MainWindow window(quietWindow());
        window.restore(false);
        QVERIFY(window.page());
        QCOMPARE(window.page()->experiment().id(), experiments().front()->id());
        QVERIFY(window.windowTitle().contains("Memscape"));
    }

    void theFirstStepsStandAboveThePage()
    {
        MainWindow window(quietWindow());
        window.settings().setFirstSteps(0);
        window.resize(1280, 800);
        window.restore(false);
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        auto* row = window.findChild<FirstSteps*>();
        QVERIFY(row);
        QTRY_VERIFY2(row->height() > 20, qPrintable(QString::number(row->height())));
        for (QToolButton* chip : row->findChildren<QToolButton*>())
            QVERIFY(chip->isVisible());
        QVERIFY(row->geometry().bottom() < window.page()->mapTo(&window, QPoint()).y());
        window.resize(944, 552); // no room: left out, not squeezed
        QTRY_VERIFY(!row->findChild<QToolButton*>()->isVisible());
        window.resize(1280, 800);
        QTRY_VERIFY(row->findChild<QToolButton*>()->isVisible());
    }

    // Every page, whole: a screen of 1920 × 1200 at twice the scale, less a frame and a task bar.
    void everyPageFitsHalfOfACommonScreen()
    {
        MainWindow window(quietWindow());
        window.show();
        for (const PageInfo& page : pagesOf(experiments())) {
            const QString id = QString::fromStdString(page.id);
            QVERIFY(window.showPage(id));
            const auto least = [&window] { return window.minimumSizeHint(); }; // settles when the page is laid out
            QTRY_VERIFY2(least().width() <= 944 && least().height() <= 552,
                         qPrintable(QStringLiteral("%1: %2 × %3").arg(id).arg(least().width()).arg(least().height())));
        }
        window.resize(944, 552);
        QCoreApplication::processEvents();
        QCOMPARE(window.size(), QSize(944, 552));
        const auto* card = window.findChild<QWidget*>("deviceCard");
        QVERIFY(window.rect().contains(QRect(card->mapTo(&window, QPoint()), card->size())));
        const Inspector* inspector = window.page()->inspector();
        QVERIFY(window.rect().contains(QRect(inspector->mapTo(&window, QPoint()), inspector->size())));
    }

    void aMessageStaysOnTopWhenThePageChanges()
    {
        MainWindow window(quietWindow());
        window.show();
        window.banner().put({BannerKind::Warning, "A study can be recovered"});
        for (const char* id : {"transfer", "snapshot", "stride", "transfer"}) {
            QVERIFY(window.showPage(id));
            QCoreApplication::processEvents();
            const QWidget* there = window.banner().parentWidget()->childAt(window.banner().geometry().center());
            QVERIFY2(there == &window.banner() || window.banner().isAncestorOf(there), id);
        }
    }

    void pagesWithoutAnExperimentAreHostedAlike()
    {
        MainWindow window(quietWindow());
        window.restore(false);
        window.show();
        for (const PageInfo& page : toolPages()) {
            const QString id = QString::fromStdString(page.id);
            QVERIFY2(window.rail().button(id), qPrintable(id));
            window.actions().at("page." + id).trigger();
            QVERIFY2(window.tool() && !window.page(), qPrintable(id));
            QCOMPARE(window.tool()->info().id, page.id);
            QVERIFY(window.rail().button(id)->isChecked());
            QVERIFY(window.tool()->stage());
            QVERIFY2(!window.tool()->deviceId().empty(), qPrintable(id));
            QVERIFY2(!helpChapter(QString::fromStdString(page.chapter)).isEmpty(), page.chapter.c_str());
            window.document().newStudy();
            QCOMPARE(window.document().page(), page.id);
            QCoreApplication::processEvents();
            const QSize least = window.minimumSizeHint();
            QVERIFY2(least.width() <= 944 && least.height() <= 552,
                     qPrintable(QStringLiteral("%1: %2 × %3").arg(id).arg(least.width()).arg(least.height())));
        }
        QVERIFY(window.showPage("stride"));
        QVERIFY(window.page() && !window.tool());
    }

    // With larger text the rail and the inspector are wider: their words were cut at both edges.
    void largerTextIsNotCut()
    {
        MainWindow window(quietWindow());
        window.resize(1280, 800);
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QVERIFY(window.showPage("inference-memory"));
        const int before = window.page()->inspector()->width();
        for (int i = 0; i < 2; ++i)
            window.actions().at("view.zoomIn").trigger();
        QTRY_VERIFY(window.page()->inspector()->width() > before);
        QTRY_VERIFY(window.page()->upToDate());
        for (const QLabel* label : window.rail().findChildren<QLabel*>())
            QVERIFY2(label->mapTo(&window.rail(), QPoint()).x() >= 0, qPrintable(label->text()));
        for (const QPushButton* button : window.rail().findChildren<QPushButton*>()) {
            const QRect place(button->mapTo(&window.rail(), QPoint()), button->size());
            QVERIFY2(place.left() >= 0 && place.right() < window.rail().width(), qPrintable(button->text()));
        }
        const Inspector* inspector = window.page()->inspector();
        for (const ParameterField* field : inspector->findChildren<ParameterField*>())
            QVERIFY2(field->mapTo(inspector, QPoint(field->width(), 0)).x() <= inspector->width(),
                     qPrintable(field->accessibleName()));
        window.actions().at("view.zoomReset").trigger();
        QTRY_COMPARE(window.page()->inspector()->width(), before);
    }

    void theNarrowestWindowCutsNoField()
    {
        MainWindow window(quietWindow());
        QVERIFY(window.showPage("training-memory"));
        window.resize(window.minimumSizeHint());
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QTRY_VERIFY(window.page()->upToDate());
        const Inspector* inspector = window.page()->inspector();
        for (ParameterSection* section : inspector->findChildren<ParameterSection*>())
            section->setOpen(true);
        QTRY_VERIFY(inspector->form()->field("adapter")->isVisible());
        QTest::qWait(50);
        for (const ParameterField* field : inspector->findChildren<ParameterField*>())
            QVERIFY2(field->mapTo(inspector, QPoint(field->width(), 0)).x() <= inspector->width(),
                     qPrintable(field->objectName()));
    }

    void pagesAreMadeWhenWanted()
    {
        MainWindow window(quietWindow());
        QCOMPARE(window.findChildren<ExperimentPage*>().size(), 0);
        QVERIFY(window.showPage("stride"));
        QCOMPARE(window.findChildren<ExperimentPage*>().size(), 1);
        QVERIFY(!window.showPage("no-such-page"));
        QCOMPARE(window.page()->experiment().id(), "stride");
        QVERIFY(window.rail().button("stride")->isChecked());
    }

    void aNetworkDroppedOnTheWindowIsTheModelOfItsPage()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath("config.json");
        const auto drop = [&](QMainWindow& window, const char* content) {
            QFile file(path);
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(content);
            file.close();
            QMimeData data;
            data.setUrls({QUrl::fromLocalFile(path)});
            QDragEnterEvent enter(QPoint(400, 300), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
            QApplication::sendEvent(&window, &enter);
            QVERIFY(enter.isAccepted());
            QDropEvent event(QPointF(400, 300), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
            QApplication::sendEvent(&window, &event);
        };
        MainWindow window(quietWindow());
        window.restore(false);
        drop(window, R"({"model_type":"gpt2","n_embd":64,"n_layer":2,"n_head":4,"n_positions":128,"vocab_size":1000})");
        QVERIFY(window.page());
        QCOMPARE(window.page()->experiment().id(), std::string("training-memory"));
        QCOMPARE(QString::fromStdString(window.page()->parameters().text("model")), path);
        window.document().undoStack()->undo();
        const Parameters before = window.page()->parameters();
        for (const char* broken : {"{\"model_type\":\"gpt2\",\"n_embd\":-1}", "not json at all", "\xff\xfe"}) {
            drop(window, broken);
            QVERIFY(!window.page()->inspector()->form()->field("model")->errorText().isEmpty());
            QCOMPARE(window.page()->parameters(), before);
        }
    }

    void undoStaysOnAFurtherPageOfTheExperiment()
    {
        MainWindow window(quietWindow());
        window.restore(false);
        QVERIFY(window.showPage("step-timeline"));
        QVERIFY(window.rail().button("step-timeline")->isChecked());
        QVERIFY(window.page()->setText("batch", "3"));
        window.document().undoStack()->undo();
        QCOMPARE(window.page()->pageId(), "step-timeline");
        QVERIFY(window.showPage("training-memory"));
        QVERIFY(window.page()->pageId() != "step-timeline");
    }

    void everyRailButtonAndActionShowsItsPage()
    {
        MainWindow window(quietWindow());
        for (const Experiment* experiment : experiments()) {
            const QString id = QString::fromStdString(experiment->id());
            window.rail().button(id)->click();
            QCOMPARE(window.page()->experiment().id(), experiment->id());
        }
        window.actions().at("page.hierarchy").trigger();
        QCOMPARE(window.page()->experiment().id(), "hierarchy");
    }

    void theTitleShowsWhatIsUnsaved()
    {
        MainWindow window(quietWindow());
        window.showPage("stride");
        QVERIFY(!window.isWindowModified());
        QVERIFY(window.page()->setText("stride", "8"));
        QVERIFY(window.isWindowModified());
        QVERIFY(window.actions().at("edit.undo").isEnabled());
        window.actions().at("edit.undo").trigger();
        QVERIFY(!window.isWindowModified());
        QVERIFY(window.actions().at("edit.redo").isEnabled());
    }

    void panelsCanBeHiddenAndAreNeverLost()
    {
        MainWindow window(quietWindow());
        window.showPage("stride");
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        for (const char* id : {"view.rail", "view.inspector", "view.picture"})
            window.actions().at(QString::fromLatin1(id)).setChecked(false);
        QVERIFY(window.rail().isHidden());
        QVERIFY(window.page()->inspector()->isHidden());
        window.restoreDefaultLayout();
        QVERIFY(!window.rail().isHidden());
        QVERIFY(!window.page()->inspector()->isHidden());
        QTest::keyClick(&window, Qt::Key_F9);
        QVERIFY(window.page()->inspector()->isHidden());
        QTest::keyClick(&window, Qt::Key_F9);
        QVERIFY(!window.page()->inspector()->isHidden());
    }

    void aLayoutOfAnotherVersionGivesTheDefaults()
    {
        MainWindow window(quietWindow());
        const QByteArray state = window.saveState(WindowSession::layoutVersion + 7);
        QVERIFY(!window.restoreState(state, WindowSession::layoutVersion));
        window.restore(false); // with whatever the session holds
        QVERIFY(window.page());
    }

    void thePaletteFindsEverything()
    {
        MainWindow window(quietWindow());
        window.showPage("hierarchy");
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QTest::keyClick(&window, Qt::Key_K, Qt::ControlModifier);
        QVERIFY(window.palette().isVisible());
        QTest::keyClicks(window.palette().input(), "access pat");
        QVERIFY(window.palette().listed().first().contains("Access patterns"));
        QTest::keyClick(window.palette().input(), Qt::Key_Return);
        QVERIFY(!window.palette().isVisible());
        QCOMPARE(window.page()->experiment().id(), "stride");
        window.openPalette();
        QTest::keyClicks(window.palette().input(), "device h200");
        QTest::keyClick(window.palette().input(), Qt::Key_Return);
        QCOMPARE(window.page()->deviceId(), "nvidia-h200");
        window.openPalette();
        QTest::keyClick(window.palette().input(), Qt::Key_Escape);
        QVERIFY(!window.palette().isVisible());
    }

    void aDisabledActionIsNotInThePalette()
    {
        MainWindow window(quietWindow());
        window.showPage("stride");
        window.openPalette();
        for (const QString& text : window.palette().listed())
            QVERIFY(text != "Stop");
    }

    void themesApplyAtOnce()
    {
        MainWindow window(quietWindow());
        window.showPage("stride");
        window.actions().at("view.themeLight").trigger();
        QVERIFY(!currentTheme().dark);
        window.actions().at("view.themeDark").trigger();
        QVERIFY(currentTheme().dark);
        const double before = qApp->font().pointSizeF();
        window.actions().at("view.zoomIn").trigger();
        QVERIFY(qApp->font().pointSizeF() > before);
        window.actions().at("view.zoomReset").trigger();
        QCOMPARE(qApp->font().pointSizeF(), before);
    }

    void aProcessorOpensTheMemoryBudgetWithAModelThatItHolds()
    {
        MainWindow window(quietWindow());
        const std::string id = "training-memory";
        window.document().setDevice(id, "cpu");
        QVERIFY(window.showPage("training-memory"));
        QCOMPARE(window.document().parameters(id).text("model"), std::string("gpt2"));
        QCOMPARE(window.document().parameters(id).integer("sequence"), 1024);
        window.document().setParameter(id, "batch", 2.0);
        window.page()->resetParameters();
        QCOMPARE(window.document().parameters(id).text("model"), std::string("gpt2"));
        QCOMPARE(window.document().parameters(id).integer("batch"), 8);
    }

    void theSettingIsCopiedAsCode()
    {
        MainWindow window(quietWindow());
        window.show();
        QVERIFY(window.showPage("training-memory"));
        QAction& lines = window.actions().at(QStringLiteral("edit.copyPytorch"));
        QVERIFY(lines.isEnabled());
        lines.trigger();
        QVERIFY(QGuiApplication::clipboard()->text().contains("import torch\n"));
        QCOMPARE(window.banner().texts().size(), 1);
        QVERIFY(window.showPage("stride"));
        QVERIFY(!lines.isEnabled()); // nothing to say of it
    }

    /// A machine that is planned for is meant on every page; the processor at hand only where it was chosen.
    void theOtherPagesFollowTheDevice()
    {
        MainWindow window(quietWindow());
        window.show();
        QVERIFY(window.showPage("stride"));
        window.document().setDevice("stride", "cpu");
        QVERIFY(window.showPage("training-memory"));
        window.document().setDevice("training-memory", "nvidia-t4");
        QVERIFY(window.showPage("inference-memory"));
        QCOMPARE(window.page()->deviceId(), std::string("nvidia-t4"));
        QTRY_VERIFY(window.page()->upToDate() && window.page()->prediction());
        QCOMPARE(window.page()->prediction()->device.id, std::string("nvidia-t4"));
        QVERIFY(window.showPage("stride"));
        QCOMPARE(window.page()->deviceId(), std::string("cpu"));
        window.document().undoStack()->undo();
        QVERIFY(window.showPage("inference-memory"));
        QVERIFY(window.page()->deviceId() != "nvidia-t4");
    }

    /// "how large a batch?" asks it of the same device.
    void aPictureThatLeadsToAPageTakesItsDeviceAlong()
    {
        MainWindow window(quietWindow());
        window.show();
        window.document().setDevice("batch-size", "cpu");
        window.document().setDevice("training-memory", "nvidia-t4");
        QVERIFY(window.showPage("training-memory"));
        emit window.page()->picture()->experimentWanted("batch-size", {{"model", "gpt2"}}, "Batch size of this model");
        QCOMPARE(window.page()->experiment().id(), std::string("batch-size"));
        QCOMPARE(window.page()->deviceId(), std::string("nvidia-t4"));
        QCOMPARE(window.page()->parameters().text("model"), std::string("gpt2"));
    }

    /// The step of a GPU as a snapshot, which the window opens as it opens PyTorch's own.
    void theStepIsExportedForMemoryViz()
    {
        QTemporaryDir folder;
        MainWindow window(quietWindow());
        window.show();
        QVERIFY(window.showPage("training-memory"));
        QAction& exported = window.actions().at(QStringLiteral("file.exportMemoryViz"));
        QVERIFY(!exported.isEnabled()); // PyTorch records no processor
        window.document().setDevice("training-memory", "nvidia-t4");
        QVERIFY(window.page()->setTexts({{"model", "gpt2"}, {"batch", "1"}, {"sequence", "64"}}, "small"));
        QTRY_VERIFY(window.page()->upToDate() && window.page()->prediction() && exported.isEnabled());
        const QString file = folder.filePath("step.pickle");
        window.exporter().askName = [&](const QString&, const QString& suggested, const QString&) {
            return suggested.endsWith(".pickle") ? file : QString();
        };
        exported.trigger();
        QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(file), 20'000);
        QVERIFY(window.files().openPath(file));
        const auto opened = [&] { return qobject_cast<SnapshotPage*>(window.tool()); };
        QTRY_VERIFY_WITH_TIMEOUT(opened() && opened()->shown().device, 20'000);
        QVERIFY(window.showPage("stride"));
        QVERIFY(!exported.isEnabled());
    }

    void zoomIsRememberedWithTheStudy()
    {
        QTemporaryDir folder;
        const QByteArray home = qgetenv("XDG_STATE_HOME");
        qputenv("XDG_STATE_HOME", folder.path().toUtf8()); // a session of its own
        const auto back = qScopeGuard([&] { qputenv("XDG_STATE_HOME", home); });
        WindowOptions options = quietWindow();
        options.remember = true;
        PlotRange range;
        {
            MainWindow window(options);
            openQuietly(window);
            QVERIFY(window.document().saveAs(folder.filePath("a.memscape")));
            window.page()->plot()->view()->zoom(0.5, 0.5);
            range = window.page()->plot()->view()->range();
            window.files().newStudy();
            QTRY_VERIFY(window.page()->upToDate());
            QVERIFY(window.page()->plot()->view()->following()); // another study, not zoomed
            QVERIFY(window.files().openPath(folder.filePath("a.memscape")));
            window.page()->updateNow();
            QTRY_COMPARE(window.page()->plot()->view()->range(), range);
            QVERIFY(window.close());
        }
        MainWindow again(options);
        again.restore(true);
        again.page()->updateNow();
        QTRY_COMPARE(again.page()->plot()->view()->range(), range); // comes with the prediction
    }

    void closingAsksOnlyWhenSomethingWouldBeLost()
    {
        MainWindow window(quietWindow());
        window.showPage("stride");
        int asked = 0;
        window.files().askSave = [&] {
            ++asked;
            return SaveAnswer::Cancel;
        };
        QVERIFY(window.close());
        QCOMPARE(asked, 0);
        window.show();
        QVERIFY(window.page()->setText("stride", "8"));
        QVERIFY(!window.close());
        QCOMPARE(asked, 1);
    }

private:
    static void openQuietly(MainWindow& window)
    {
        window.showPage("stride");
        window.document().setDevice("stride", "nvidia-h200");
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QTRY_VERIFY(window.page()->upToDate());
    }
};

QTEST_MAIN(TestMainWindow)
#include "tst_main_window.moc"
