// SPDX-License-Identifier: GPL-3.0-or-later
// The generic page over every experiment of the registry, in both themes and several sizes; edits,
// undo, states without measurement, with one, and with one that does not belong.
#include "app/pages/fields/parameter_section.h"
#include "app/pages/sheet.h"
#include "app/settings/theme.h"
#include "tests/support/page_fixture.h"

#include <QAbstractButton>
#include <QComboBox>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSignalSpy>
#include <QSlider>
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

    void headlinesTellWhatWasMeasured()
    {
        m_fixture->document.addRecord(sampleRecord("stride", {}, 2));
        auto page = open("stride", "nvidia-h200");
        QTRY_VERIFY(page->upToDate());
        const QString bandwidth = page->inspector()->headlines()->texts().at(1);
        QVERIFY2(bandwidth.startsWith("useful bandwidth: predicted 1.11 TB/s, measured 2.21 TB/s"),
                 qPrintable(bandwidth));
    }

    void aSectionRemembersThatItWasUnfolded()
    {
        const auto details = [](ExperimentPage& page) { return page.inspector()->form()->sections().back(); };
        auto page = open("training-memory", "nvidia-h200");
        QCOMPARE(page->inspector()->form()->sections().size(), std::size_t(4));
        QVERIFY(!details(*page)->isOpen());
        details(*page)->header()->click();
        page.reset();
        page = open("training-memory", "nvidia-h200");
        QVERIFY(details(*page)->isOpen());
        details(*page)->header()->click();
        page.reset();
        QVERIFY(!details(*open("training-memory", "nvidia-h200"))->isOpen());
    }

    void aFoldedSectionTellsWhatWasChangedInIt()
    {
        auto page = open("training-memory", "nvidia-h200");
        QVERIFY(page->setText("zero", "2"));
        QTRY_VERIFY(page->upToDate());
        const ParameterSection* parallelism = page->inspector()->form()->sections().at(1);
        QCOMPARE(parallelism->title(), QString("Parallelism and offload"));
        QCOMPARE(parallelism->changedText(), QString("ZeRO stage 2"));
        QVERIFY(page->setText("model", "mlp:784,512,10")); // without tokens
        QVERIFY(page->setText("sequence", "512"));
        QTRY_VERIFY(page->upToDate());
        QVERIFY(page->inspector()->form()->field("sequence")->isHidden());
        QCOMPARE(page->inspector()->form()->idleText(), QString("Set, but without effect here: sequence 512 tokens"));
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

    void textSetsValuesSweepsAndRefusesTheRest()
    {
        auto page = open("stride", "nvidia-h200");
        QVERIFY(page->setText("stride", "8"));
        QCOMPARE(page->parameters().number("stride"), 8.0);
        QVERIFY(page->setText("stride", "1:16:x2"));
        QCOMPARE(page->parameters().sweep()->values.size(), std::size_t(5));
        QVERIFY(page->setText("stride", "3")); // ends the sweep
        QVERIFY(!page->parameters().sweep());
        QVERIFY(!page->setText("stride", "many"));
        QVERIFY(!page->setText("no such", "1"));
        QCOMPARE(page->parameters().number("stride"), 3.0);
    }

    void undoRestoresEverything()
    {
        auto page = open("stride", "nvidia-h200");
        const Parameters before = page->parameters();
        QVERIFY(page->setText("stride", "8"));
        QVERIFY(page->setText("element", "float64"));
        QVERIFY(page->setText("stride", "1,2,4"));
        page->resetParameters();
        QCOMPARE(page->parameters(), before);
        while (m_fixture->document.undoStack()->canUndo())
            m_fixture->document.undoStack()->undo();
        QCOMPARE(page->parameters(), before);
        QVERIFY(m_fixture->document.device("stride").empty());
    }

    void aDragIsOneStep()
    {
        auto page = open("stride", "nvidia-h200");
        const int before = m_fixture->document.undoStack()->index();
        auto* slider = page->inspector()->form()->field("stride")->findChild<QSlider*>();
        slider->setSliderDown(true);
        for (int i = 0; i < 10; ++i)
            slider->setValue(slider->value() + 1);
        slider->setSliderDown(false);
        QCOMPARE(m_fixture->document.undoStack()->index(), before + 1);
    }

    void manyChangesAreOnePrediction()
    {
        auto page = open("stride", "nvidia-h200");
        QTRY_VERIFY(page->upToDate());
        QTest::qWait(50);
        QSignalSpy updated(page.get(), &ExperimentPage::updated);
        const int replots = page->plot()->view()->replotCount();
        for (int i = 1; i <= 200; ++i)
            QVERIFY(page->setText("stride", QString::number(1 + i % 128)));
        QTRY_VERIFY(page->upToDate());
        QTest::qWait(50);
        QVERIFY2(updated.size() <= 3, qPrintable(QString::number(updated.size())));
        QVERIFY(page->plot()->view()->replotCount() - replots <= 3);
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

    void aMeasurementIsComparedAndItsErrorShown()
    {
        m_fixture->document.addRecord(sampleRecord("stride", {"stride=4"}, 1.25));
        auto page = open("stride", "nvidia-h200");
        QVERIFY(page->setText("stride", "4"));
        QTRY_VERIFY(page->upToDate());
        const auto& rows = page->inspector()->figures()->figures()->rows();
        const auto row = std::find_if(rows.begin(), rows.end(), [](const FigureRow& one) {
            return one.key == QLatin1String("useful_bandwidth");
        });
        QVERIFY(row != rows.end() && row->measured);
        QVERIFY(std::abs(row->error + 0.2) < 1e-9); // 1 / 1.25 − 1
        QVERIFY(page->shownRecord()->measured);
    }

    void claimsAreJudgedByTheMeasurementOnceThereIsOne()
    {
        auto page = open("stride", "nvidia-h200");
        const auto verdicts = [&page] {
            page->updateNow();
            QStringList lines;
            for (const QLabel* label : page->inspector()->claims()->findChildren<QLabel*>())
                lines << label->text();
            return lines.join(u'\n');
        };
        QVERIFY2(verdicts().contains(QLatin1String(", predicted ")), qPrintable(verdicts()));
        m_fixture->document.addRecord(sampleRecord("stride", {}, 1.25));
        QVERIFY2(verdicts().contains(QLatin1String(", measured ")), qPrintable(verdicts()));
        QVERIFY(page->setText("stride", "8")); // the measurement is of another stride
        QTRY_VERIFY(page->upToDate());
        QVERIFY2(verdicts().contains(QLatin1String(", predicted ")), qPrintable(verdicts()));
    }

    void aMeasurementWithOtherParametersIsNotCompared()
    {
        m_fixture->document.addRecord(sampleRecord("stride", {"element=float64"}));
        auto page = open("stride", "nvidia-h200");
        QTRY_VERIFY(page->upToDate());
        QVERIFY(!page->inspector()->figures()->figures()->rows().front().measured);
        QVERIFY2(page->inspector()->noteText().contains("float64"), qPrintable(page->inspector()->noteText()));
        page->inspector()->findChild<QPushButton*>("noteAction")->click(); // use these settings
        QTRY_VERIFY(page->upToDate());
        QCOMPARE(page->parameters().choice("element"), "float64");
        QVERIFY(page->inspector()->figures()->figures()->rows().front().measured);
    }

    void pinnedRecordsAreDrawnBeside()
    {
        m_fixture->document.addRecord(sampleRecord("stride", {}, 1.5));
        m_fixture->document.addRecord(sampleRecord("stride", {}));
        auto page = open("stride", "nvidia-h200");
        const auto pinned = [&] {
            page->updateNow();
            const auto& curves = page->plot()->view()->curves();
            return std::count_if(curves.begin(), curves.end(),
                                 [](const Curve& curve) { return curve.role == CurveRole::Pinned; });
        };
        QCOMPARE(pinned(), 0);
        m_fixture->document.setRecordPinned(0, true);
        QCOMPARE(pinned(), 1);
        QCOMPARE(page->exportRecords().size(), std::size_t(2));
    }

    void theBaselineStandsInFiguresAndCurves()
    {
        StudyDocument& document = m_fixture->document;
        document.addRecord(sampleRecord("stride", {}, 1.5));
        document.addRecord(sampleRecord("stride", {}, 1.2));
        auto page = open("stride", "nvidia-h200");
        const FiguresTable& table = *page->inspector()->figures();
        QVERIFY(table.isColumnHidden(FiguresModel::BaselineColumn));
        document.setBaseline(0, true);
        page->updateNow();
        QVERIFY(!table.isColumnHidden(FiguresModel::BaselineColumn));
        QTRY_VERIFY(table.horizontalHeader()->length() <= table.viewport()->width()); // nothing is cut
        const FigureRow& row = table.figures()->rows().front();
        QVERIFY(row.isMeasuredAgainst);
        QVERIFY(std::abs(row.difference + 0.2) < 1e-9); // 1.2 against 1.5
        const auto& curves = page->plot()->view()->curves();
        QVERIFY(std::any_of(curves.begin(), curves.end(), [](const Curve& curve) {
            return curve.role == CurveRole::Pinned && curve.name.endsWith("(baseline)");
        }));
        document.undoStack()->undo();
        page->updateNow();
        QVERIFY(table.isColumnHidden(FiguresModel::BaselineColumn));
    }

    void predictionsOfTwoDevicesStandOnOnePlot()
    {
        auto page = open("stride", "nvidia-h200");
        page->pinPrediction();
        const StudyDocument& document = m_fixture->document;
        QCOMPARE(document.records().size(), std::size_t(1));
        QVERIFY(document.records()[0].pinned && !document.records()[0].measured);
        QCOMPARE(document.undoStack()->undoText(), QString("Pin this prediction"));
        QVERIFY(!page->strip()->isHidden());
        m_fixture->document.setDevice("stride", "nvidia-a100-80gb");
        page->updateNow();
        QTRY_VERIFY(page->upToDate() && page->prediction()->device.id == "nvidia-a100-80gb");
        page->updateNow();
        QStringList names;
        for (const Curve& curve : page->plot()->view()->curves())
            names << curve.name;
        const QString all = names.join(u';');
        QVERIFY2(names.front().startsWith("predicted, H200"), qPrintable(all));
        QVERIFY2(all.contains("predicted (A100"), qPrintable(all));
        m_fixture->document.setBaseline(0, true); // predicted against predicted
        page->updateNow();
        const auto& rows = page->inspector()->figures()->figures()->rows();
        QVERIFY(std::none_of(rows.begin(), rows.end(), [](const auto& row) { return row.isMeasuredAgainst; }));
        const auto bandwidth = std::find_if(rows.begin(), rows.end(),
                                            [](const auto& row) { return row.predicted->unit == Unit::BytePerSecond; });
        QVERIFY(bandwidth != rows.end() && bandwidth->baseline);
        QVERIFY2(bandwidth->difference < -0.3, qPrintable(QString::number(bandwidth->difference))); // A100 against H200
        emit page->strip()->chosen(0); // what only predicts is put on the page
        QCOMPARE(page->deviceId(), std::string("nvidia-h200"));
    }

    void anUnknownDeviceIsAStateNotACrash()
    {
        m_fixture->document.setDevice("stride", "lab-gpu/cuda:0");
        auto page = open("stride", "");
        QTRY_VERIFY(page->upToDate());
        QVERIFY(!page->prediction());
        QVERIFY(page->inspector()->noteText().contains("lab-gpu/cuda:0"));
    }

    void theMarkerSetsTheParameter()
    {
        auto page = open("stride", "nvidia-h200");
        QTRY_VERIFY(page->upToDate());
        emit page->plot()->view()->markerDragged("stride", 15.7);
        emit page->plot()->view()->markerReleased("stride", 15.7);
        QCOMPARE(page->parameters().number("stride"), 16.0);
        emit page->plot()->view()->markerDragged("stride", -5);
        QCOMPARE(page->parameters().number("stride"), 0.0);
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
        QVERIFY(!names().contains("datasheet"));
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

    void noLabelOfTheFiguresIsCut()
    {
        m_fixture->document.addRecord(sampleRecord("stride", {}));
        auto page = open("stride", "nvidia-h200");
        page->resize(1000, 800);
        QTRY_VERIFY(page->upToDate());
        const FiguresTable& table = *page->inspector()->figures();
        const QFontMetrics metrics(relativeFont(0.92));
        for (int row = 0; row < table.model()->rowCount(); ++row) {
            const QString label = table.model()->index(row, 0).data().toString();
            const QRect room(0, 0, table.columnWidth(0) - 6, 1000);
            const QSize needed = metrics.boundingRect(room, Qt::TextWordWrap, label).size();
            QVERIFY2(needed.height() <= table.rowHeight(row), qPrintable(label));
            QVERIFY2(needed.width() <= room.width(), qPrintable(label));
        }
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

    void pinnedRecordsBringTheCurvesBack()
    {
        auto page = open("batch-size", "nvidia-h200");
        QTRY_VERIFY(page->upToDate() && page->plot()->isFolded());
        Record record = sampleRecord("batch-size", {"optimizer=adamw"});
        record.pinned = true;
        m_fixture->document.addRecord(record);
        QTRY_VERIFY(!page->plot()->isFolded());
    }

    void aLongPredictionIsStoppedByEscape()
    {
        auto page = open("checkpoint", "nvidia-h200");
        page->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(page.get()));
        const Record* before = page->prediction();
        QVERIFY(before);
        QVERIFY(page->setText("chain", "mlp:150x4096"));
        QVERIFY(page->setText("slots", "300:499:1")); // solved two hundred times: many seconds
        QTRY_VERIFY_WITH_TIMEOUT(page->plot()->statusText().contains("Esc"), 10000);
        QCOMPARE(page->prediction(), before); // the old answer stays meanwhile
        QTest::keyClick(page.get(), Qt::Key_Escape);
        QTRY_VERIFY_WITH_TIMEOUT(page->upToDate(), 5000);
        QCOMPARE(page->prediction(), before);
        QVERIFY2(page->inspector()->noteText().contains("stopped"), qPrintable(page->inspector()->noteText()));
        QVERIFY(!page->plot()->statusText().contains("Esc"));
        page->resetParameters();
        QTRY_VERIFY(page->upToDate() && !page->inspector()->noteText().contains("stopped"));
    }

    void changeToRepaintIsFast()
    {
        auto page = open("hierarchy", "cpu");
        page->resize(1280, 800);
        QTRY_VERIFY(page->upToDate());
        int i = 0;
        QBENCHMARK
        {
            static_cast<void>(page->setText("working_set", QString::number(65536 + 4096 * ++i)));
            page->updateNow();
        }
    }

private:
    std::unique_ptr<ExperimentPage> open(const std::string& id, const std::string& device)
    {
        if (!device.empty())
            m_fixture->document.setDevice(id, device);
        auto page = std::make_unique<ExperimentPage>(**findExperiment(id), m_fixture->services());
        page->resize(1280, 800);
        page->show();
        if (!QTest::qWaitForWindowExposed(page.get()))
            qWarning("the page was not exposed");
        page->updateNow();
        QTest::qWait(1);
        for (int i = 0; i < 200 && !page->upToDate(); ++i)
            QTest::qWait(10);
        return page;
    }

    std::unique_ptr<PageFixture> m_fixture;
};

QTEST_MAIN(TestExperimentPage)
#include "tst_experiment_page.moc"
