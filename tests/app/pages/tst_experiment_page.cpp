// SPDX-License-Identifier: GPL-3.0-or-later
// The generic page over every experiment of the registry, in both themes and several sizes: what it shows of a
// prediction, of a device that lacks something, and of none.
#include "app/pages/sheet.h"
#include "app/settings/theme.h"
#include "tests/support/page_fixture.h"

#include <QAbstractButton>
#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSignalSpy>
#include <QSlider>
#include <QTemporaryDir>
#include <QTest>
#include <QUndoStack>

using namespace memscape;

class TestExperimentPage : public QObject
{
    Q_OBJECT

private slots:
    void init() { m_fixture = std::make_unique<PageFixture>(); }

    void everyPageOpens_data()
    {
        QTest::addColumn<QString>("id");
        QTest::addColumn<QString>("theme");
        QTest::addColumn<QSize>("size");
        for (const Experiment* experiment : experiments()) {
            for (const char* theme : {"light", "dark"}) {
                for (const QSize size : {QSize(900, 600), QSize(1280, 800), QSize(1920, 1200)}) {
                    const QString id = QString::fromStdString(experiment->id());
                    QTest::addRow("%s %s %d", qPrintable(id), theme, size.width()) << id << theme << size;
                }
            }
        }
    }
    void everyPageOpens()
    {
        QFETCH(QString, id);
        QFETCH(QString, theme);
        QFETCH(QSize, size);
        applyTheme(*qApp, theme);
        auto page = open(id.toStdString(), "nvidia-h200");
        page->resize(size);
        QTRY_VERIFY(page->upToDate());
        QVERIFY(page->prediction());
        QVERIFY(!page->plot()->view()->curves().empty());
        QVERIFY(!page->inspector()->why()->text().isEmpty());
        QVERIFY(page->inspector()->figures()->figures()->rowCount() > 0);
        const QImage image = page->grab().toImage();
        QCOMPARE(image.size(), size);
        const QColor corner = image.pixelColor(size.width() / 2, size.height() - 3);
        QCOMPARE(corner.lightnessF() > 0.5, theme == "light");
    }

    void lettersFindADevice()
    {
        auto page = open("stride", "nvidia-h200");
        DeviceButton* button = page->header()->device();
        QSignalSpy picked(button, &DeviceButton::picked);
        emit button->menu()->aboutToShow();
        auto* search = button->menu()->findChild<QLineEdit*>("searchDevices");
        QVERIFY(search);
        QTest::keyClicks(search, "a100 80");
        QStringList shown;
        for (const QAction* one : button->menu()->actions())
            if (one->isCheckable() && one->isVisible())
                shown << one->text();
        QCOMPARE(shown, QStringList("NVIDIA A100 80 GB SXM"));
        QTest::keyClick(search, Qt::Key_Return);
        QCOMPARE(picked.size(), 1);
        QCOMPARE(picked.front().front().toString(), QString("nvidia-a100-80gb"));
    }

    void fourFiguresStayInSight()
    {
        auto page = open("checkpoint", "nvidia-h200");
        page->resize(944, 552);
        QTRY_VERIFY(page->upToDate());
        HeadlineStrip* strip = page->inspector()->headlines();
        QVERIFY(strip->isVisible());
        QCOMPARE(strip->texts().size(), 4);
        QCOMPARE(strip->texts().front(), QString("peak: predicted 56 MiB"));
        auto* scroll = page->inspector()->findChild<QScrollArea*>();
        scroll->verticalScrollBar()->setValue(scroll->verticalScrollBar()->maximum());
        QVERIFY(scroll->verticalScrollBar()->value() > 0);
        QVERIFY(!strip->visibleRegion().isEmpty());
        // A click is a question: the row is chosen and its explanation is shown.
        QSignalSpy chosen(strip, &HeadlineStrip::chosen);
        strip->findChildren<QAbstractButton*>().at(2)->click();
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(page->inspector()->figures()->currentKey(), QString("recomputed_forwards"));
    }

    void everyControlHasANameAndTheKeyboardReachesIt()
    {
        auto page = open("stride", "cpu");
        int controls = 0;
        for (QWidget* widget : page->findChildren<QWidget*>()) {
            const bool control = qobject_cast<QAbstractButton*>(widget) || qobject_cast<QSlider*>(widget)
                || qobject_cast<QComboBox*>(widget) || qobject_cast<QLineEdit*>(widget);
            if (!control || widget->isHidden() || widget->objectName().startsWith("qt_"))
                continue;
            if (qobject_cast<QLineEdit*>(widget) && qobject_cast<QComboBox*>(widget->parent()))
                continue;
            ++controls;
            const auto* button = qobject_cast<QAbstractButton*>(widget);
            const bool named = !widget->accessibleName().isEmpty() || (button && !button->text().isEmpty());
            QVERIFY2(named, widget->metaObject()->className());
            QVERIFY2(widget->focusPolicy() & Qt::TabFocus, qPrintable(widget->objectName()));
        }
        QVERIFY(controls > 15);
        QVERIFY(!page->inspector()->accessibleName().isEmpty());
    }

    void withoutMeasurementItSaysHowToGetOne()
    {
        auto page = open("stride", "nvidia-h200");
        QVERIFY2(page->inspector()->noteText().contains("predicted, not measured"),
                 qPrintable(page->inspector()->noteText()));
        QVERIFY(!page->header()->measureButton()->isEnabled());
        QVERIFY(!page->header()->measureButton()->toolTip().isEmpty());
    }

    void whatADeviceLacksIsSaidBeforeItIsAsked()
    {
        auto page = open("bank-conflicts", "cpu");
        QVERIFY(!page->header()->measureButton()->isEnabled());
        QVERIFY2(page->header()->measureButton()->toolTip().contains("no shared memory in banks"),
                 qPrintable(page->header()->measureButton()->toolTip()));
        QVERIFY2(page->inspector()->noteText().contains("no shared memory in banks"),
                 qPrintable(page->inspector()->noteText()));
    }

    void parametersOfOtherDevicesAreLeftOut()
    {
        auto page = open("hierarchy", "cpu");
        QVERIFY(page->inspector()->form()->field("occupancy")->isHidden());
        QVERIFY(page->inspector()->form()->field("width")->isHidden());
        QVERIFY(!page->inspector()->form()->field("threads")->isHidden());
        m_fixture->document.setDevice("hierarchy", "nvidia-h200");
        QTRY_VERIFY(!page->inspector()->form()->field("occupancy")->isHidden());
        QVERIFY(page->inspector()->form()->field("threads")->isHidden());
    }

    void anUnknownDeviceIsAStateNotACrash()
    {
        m_fixture->document.setDevice("stride", "lab-gpu/cuda:0");
        auto page = open("stride", "");
        QTRY_VERIFY(page->upToDate());
        QVERIFY(!page->prediction());
        QVERIFY(page->inspector()->noteText().contains("lab-gpu/cuda:0"));
    }

    void logAxesAreRememberedInTheStudy()
    {
        auto page = open("stride", "nvidia-h200");
        QTRY_VERIFY(page->upToDate());
        emit page->plot()->logChosen(Qt::YAxis, true);
        page->updateNow();
        QCOMPARE(page->plot()->view()->yAxis().log, 10);
        m_fixture->document.undoStack()->undo();
        page->updateNow();
        QCOMPARE(page->plot()->view()->yAxis().log, 0);
    }

    void everyBasisIsDrawnWhenWanted()
    {
        auto page = open("stride", "nvidia-h200");
        const auto names = [&] {
            QStringList found;
            for (const Curve& curve : page->plot()->view()->curves())
                found << curve.name;
            return found;
        };
        QVERIFY(!names().contains("datasheet"));
        m_fixture->settings.setShowBases(true);
        page->updateNow();
        QTRY_VERIFY(page->upToDate());
        QTRY_VERIFY2(names().contains("datasheet"), qPrintable(names().join(',')));
        QVERIFY(names().contains("predicted (catalogue): useful bandwidth"));
        const auto& curves = page->plot()->view()->curves();
        QVERIFY(curves[0].y.front() > curves[1].y.front()); // the sheet knows of no derating
        m_fixture->settings.setShowBases(false);
        page->updateNow();
        QTRY_VERIFY(!names().contains("datasheet"));
    }

    void eachPlotOfAPageKeepsItsZoom()
    {
        auto page = open("hierarchy", "nvidia-h200");
        PlotView* view = page->plot()->view();
        const auto show = [&](const QString& group) {
            emit page->plot()->groupChosen(group);
            page->updateNow();
        };
        view->zoom(0.5, 0.5);
        const PlotRange latency = view->range();
        show("bandwidth");
        QVERIFY(view->following());
        view->zoom(0.3, 1);
        const PlotRange bandwidth = view->range();
        show("latency");
        QCOMPARE(view->range(), latency);
        show("bandwidth");
        QCOMPARE(view->range(), bandwidth);
        const QVariantMap zooms = page->zooms();
        view->resetView();
        QCOMPARE(page->zooms().size(), zooms.size() - 1);
        page->setZooms(zooms);
        page->updateNow();
        QCOMPARE(view->range(), bandwidth);
    }

    void unitsAreNeverMixed()
    {
        m_fixture->settings.setByteStyle(ByteStyle::Decimal);
        auto page = open("hierarchy", "nvidia-h200");
        QVERIFY(page->setText("working_set", "24MiB"));
        page->updateNow();
        const auto* field = page->inspector()->form()->field("working_set");
        QCOMPARE(field->findChild<QLineEdit*>()->text(), "25.17 MB");
        m_fixture->settings.setByteStyle(ByteStyle::Binary);
        page->updateNow();
        QCOMPARE(field->findChild<QLineEdit*>()->text(), "24 MiB");
    }

    void whatCannotBePredictedIsSaidInThePicture_data()
    {
        QTest::addColumn<QString>("id");
        QTest::addColumn<QString>("key");
        QTest::newRow("budget") << "training-memory"
                                << "model";
        QTest::newRow("schedule") << "checkpoint"
                                  << "chain";
    }
    void whatCannotBePredictedIsSaidInThePicture()
    {
        QFETCH(QString, id);
        QFETCH(QString, key);
        auto page = open(id.toStdString(), "nvidia-h200");
        QVERIFY(page->picture()->problem().isEmpty());
        QVERIFY(page->setText(key, "no-such-thing"));
        QTRY_VERIFY(page->upToDate() && !page->prediction());
        QVERIFY(page->picture()->problem().contains("no-such-thing"));
        QVERIFY(page->picture()->summary().contains("no-such-thing"));
        page->resetParameters();
        QTRY_VERIFY(page->upToDate() && page->prediction());
        QVERIFY(page->picture()->problem().isEmpty());
    }

    /// A V100 multiplies no BF16, which is the standard: the note says what it can, and offers no reset
    /// that would lead back here.
    void aDeviceThatCannotDoTheStandardOffersNoReset()
    {
        auto page = open("precision", "nvidia-v100-sxm2");
        QTRY_VERIFY(page->upToDate());
        QVERIFY(!page->prediction());
        QVERIFY2(page->inspector()->noteText().contains("fp16"), qPrintable(page->inspector()->noteText()));
        const auto offers = [&](const QString& words) {
            for (const QPushButton* button : page->inspector()->findChildren<QPushButton*>()) {
                if (button->text() == words && !button->isHidden())
                    return true;
            }
            return false;
        };
        QVERIFY(!offers("Reset parameters"));
        QVERIFY(page->setText("m", "512"));
        QTRY_VERIFY(page->upToDate());
        QVERIFY(offers("Reset parameters")); // other parameters may be at fault too
        QVERIFY(page->setText("format", "fp16"));
        QTRY_VERIFY(page->upToDate() && page->prediction());
    }

    /// The picture of these is a plot: the curves below would say it twice.
    void aPictureThatIsThePlotStandsAlone_data()
    {
        QTest::addColumn<QString>("id");
        for (const char* id : {"roofline", "batch-size"})
            QTest::newRow(id) << id;
    }
    void aPictureThatIsThePlotStandsAlone()
    {
        QFETCH(QString, id);
        auto page = open(id.toStdString(), "nvidia-h200");
        page->resize(1280, 800);
        QTRY_VERIFY(page->upToDate());
        QVERIFY(page->plot()->isFolded());
        QCOMPARE(page->stage(), static_cast<QWidget*>(page->picture()));
        QTRY_VERIFY(page->picture()->height() > 600); // it has the room
        QVERIFY(sheetOf(*page).plot == nullptr);
        emit page->plot()->foldChosen(false);
        QTRY_VERIFY(!page->plot()->isFolded());
        QTRY_VERIFY(page->plot()->view()->height() > 150);
        QVERIFY(page->picture()->height() > 200);
        QVERIFY(sheetOf(*page).plot != nullptr);
        emit page->plot()->foldChosen(true);
        QTRY_VERIFY(page->plot()->isFolded());
        page->picture()->hide(); // something must be left
        QTRY_VERIFY(!page->plot()->isFolded());
        page->picture()->show();
        QTRY_VERIFY(page->plot()->isFolded());
    }

    /// Twenty figures must not leave the picture a strip, nor the last of them below the page.
    void anExportedPageHasRoomForAllItsParts()
    {
        auto page = open("sharding", "nvidia-h200");
        QTRY_VERIFY(page->upToDate());
        Sheet sheet = sheetOf(*page);
        QVERIFY(sheet.figures.size() >= 15);
        double height = 0;
        sheet.picture = [&](QPainter&, const QRectF& rect, const Theme&) { height = rect.height(); };
        const QSize size = roomFor(sheet, {800, 1000});
        QVERIFY(size.height() > 1000);
        QVERIFY(!sheetImage(sheet, size, 1, lightTheme()).isNull());
        QVERIFY(height >= sheet.pictureHeight);
        sheet.figures.resize(2);
        QCOMPARE(roomFor(sheet, {800, 1000}), QSize(800, 1000)); // what is asked for, where that is enough
    }

    /// A figure with a band has two lines in the table, and one row on the sheet.
    void anExportedPageWritesABandBesideItsFigure()
    {
        auto page = open("training-memory", "nvidia-t4");
        QTRY_VERIFY(page->upToDate());
        QTemporaryDir folder;
        const QString path = folder.filePath("page.svg");
        const Sheet sheet = sheetOf(*page);
        QVERIFY(writeSheet(path, sheet, roomFor(sheet, {1000, 1000}), 1, lightTheme()));
        QFile file(path);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QString svg = QString::fromUtf8(file.readAll());
        QVERIFY(svg.contains(QString::fromUtf8("peak allocated · ")));
    }

    // PyTorch's documentation: FlashAttention takes 16 bits and compute capability 8.0, which a T4 (7.5) has not.
    void attentionSaysWhichKernelPyTorchTakes()
    {
        for (const char* id : {"training-memory", "batch-size", "sharding", "checkpoint"}) {
            auto page = open(id, "nvidia-a100-80gb");
            QVERIFY(id == std::string("checkpoint") ? page->setText("chain", "model:gpt2")
                                                    : page->setText("model", "gpt2"));
            QVERIFY(page->setText("precision", "fp16-autocast"));
            const auto* note = page->inspector()->form()->field("attention")->findChild<QLabel*>("note");
            QTRY_VERIFY2(note->text().startsWith("FlashAttention"), id);
            QVERIFY(!note->isHidden());
            m_fixture->document.setDevice(id, "nvidia-t4");
            QTRY_VERIFY2(note->text().startsWith("memory-efficient"), id);
            QVERIFY(page->setText("attention", "eager"));
            QTRY_VERIFY2(note->isHidden(), id);
        }
    }

    // A chain of layers of its own has neither tokens nor attention; a budget that is left open has no value.
    void anExportedPageNamesWhatItsPredictionDependsOn()
    {
        auto page = open("checkpoint", "nvidia-h200");
        QTRY_VERIFY(page->upToDate());
        const QString said = sheetOf(*page).subtitle;
        QVERIFY2(said.contains("chain ") && said.contains("strategy "), qPrintable(said));
        for (const char* idle : {"sequence", "precision", "attention", "budget"})
            QVERIFY2(!said.contains(QLatin1String(idle)), qPrintable(said));
    }

private:
    std::unique_ptr<ExperimentPage> open(const std::string& id, const std::string& device)
    {
        return m_fixture->open(id, device);
    }

    std::unique_ptr<PageFixture> m_fixture;
};

QTEST_MAIN(TestExperimentPage)
#include "tst_experiment_page.moc"
