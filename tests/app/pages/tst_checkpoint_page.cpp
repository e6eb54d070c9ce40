// SPDX-License-Identifier: GPL-3.0-or-later
// The page of checkpoint schedules as a person uses it: drag the budget on the plane or its slider, click a
// strategy, see why there is none and take the least that works, open a chain.
#include "app/pages/fields/checkpoint_fields.h"
#include "app/pictures/checkpoint/checkpoint_picture.h"
#include "app/settings/theme.h"
#include "core/checkpoint/chain.h"
#include "tests/support/page_fixture.h"

#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMouseEvent>
#include <QPushButton>
#include <QSlider>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <QUndoStack>

#include <cmath>

using namespace memscape;

namespace {

constexpr auto checkpoint = "checkpoint";

double chainFigure(const ExperimentPage& page, const char* key)
{
    const Figure* found = page.prediction() ? findFigure(page.prediction()->predicted->figures, key) : nullptr;
    return found && found->isNumber() ? found->number() : std::nan("");
}

void mouse(QWidget& canvas, QEvent::Type type, QPointF place, Qt::MouseButtons buttons)
{
    QMouseEvent event(type, place, canvas.mapToGlobal(place), type == QEvent::MouseMove ? Qt::NoButton : Qt::LeftButton,
                      buttons, Qt::NoModifier);
    QApplication::sendEvent(&canvas, &event);
}

QString valueOf(const ExperimentPage& page, const char* key)
{
    const Parameters parameters = page.parameters();
    for (const auto& [name, value] : parameters.values()) {
        if (name == key)
            return QString::fromStdString(valueText(value));
    }
    return {};
}

} // namespace

class TestCheckpointPage : public QObject
{
    Q_OBJECT

    std::unique_ptr<PageFixture> m_fixture;

    std::unique_ptr<ExperimentPage> open(const std::vector<std::string>& values)
    {
        const Experiment& experiment = **findExperiment(checkpoint);
        m_fixture->document.setDevice(checkpoint, "nvidia-t4");
        m_fixture->document.setParameters(checkpoint, *resolve(experiment.schema(), values), {});
        auto page = std::make_unique<ExperimentPage>(experiment, m_fixture->services());
        page->resize(1200, 900);
        page->show();
        settle(*page);
        return page;
    }

    static void settle(ExperimentPage& page) { QTRY_VERIFY_WITH_TIMEOUT(page.upToDate() && page.prediction(), 20000); }

    static CheckpointPicture& picture(ExperimentPage& page)
    {
        return *qobject_cast<CheckpointPicture*>(page.picture());
    }

    /// Where a memory stands on the plane, in pixels of its canvas.
    static double pixelOf(const PlotView& view, const QWidget& canvas, double memory)
    {
        const double unit = canvas.fontInfo().pixelSize() / 13.0, left = 58 * unit, right = canvas.width() - 26 * unit;
        const PlotRange range = view.range();
        return left + (memory - range.xLow) / (range.xHigh - range.xLow) * (right - left);
    }

    static QWidget& canvasOf(PlotView& view) { return *view.findChildren<QWidget*>().front(); }

private slots:
    void init()
    {
        applyTheme(*qApp, QStringLiteral("dark"));
        m_fixture = std::make_unique<PageFixture>();
    }

    void thePlaneShowsEveryStrategy()
    {
        auto page = open({"chain=uniform:6", "budget=5"});
        QStringList keys;
        for (const Curve& curve : page->plot()->view()->curves())
            keys << curve.key;
        QVERIFY(keys.contains(QStringLiteral("front")));
        for (const char* strategy : {"none", "sqrt", "optimal", "exhaustive"}) // short enough for the true optimum
            QVERIFY2(keys.contains(QStringLiteral("strategy.") + QLatin1String(strategy)), strategy);
        for (const Curve& curve : page->plot()->view()->curves()) {
            if (curve.key == QStringLiteral("strategy.none"))
                QCOMPARE(curve.y, std::vector<double>{1.0}); // the measure of the axis
            if (curve.key == QStringLiteral("front"))
                QCOMPARE(curve.y.back(), 1.0);
        }
        QVERIFY(!page->inspector()->claims()->isHidden());
        QCOMPARE(picture(*page).state().length, 6);
        QCOMPARE(picture(*page).state().steps[std::size_t(picture(*page).state().peak)].during,
                 chainFigure(*page, "peak"));
    }

    void theBudgetIsDraggedAlongTheFront()
    {
        auto page = open({"chain=uniform:24", "budget=26"});
        PlotView& view = *page->plot()->view();
        QWidget& canvas = canvasOf(view);
        QTest::qWait(50); // the plot has its ranges once it was drawn
        QUndoStack& history = *m_fixture->document.undoStack();
        const int steps = history.count();
        const double from = pixelOf(view, canvas, 26), to = pixelOf(view, canvas, 9), y = canvas.height() / 2.0;
        mouse(canvas, QEvent::MouseButtonPress, {from, y}, Qt::LeftButton);
        for (int i = 1; i <= 12; ++i) {
            mouse(canvas, QEvent::MouseMove, {from + (to - from) * i / 12, y}, Qt::LeftButton);
            QCoreApplication::processEvents();
        }
        mouse(canvas, QEvent::MouseButtonRelease, {to, y}, Qt::NoButton);
        settle(*page);
        QCOMPARE(history.count(), steps + 1); // one drag, one step back
        const double budget = valueOf(*page, "budget").toDouble();
        QVERIFY2(std::abs(budget - 9) <= 1, qPrintable(valueOf(*page, "budget")));
        QVERIFY(chainFigure(*page, "peak") <= budget);
        QVERIFY(chainFigure(*page, "recomputed_forwards") > 0);
        QCOMPARE(picture(*page).state().budget, budget);
        history.undo();
        settle(*page);
        QCOMPARE(valueOf(*page, "budget"), QStringLiteral("26"));
        history.redo();
        QCOMPARE(valueOf(*page, "budget").toDouble(), budget);
    }

    void theSliderReachesFromTheLeastToEverything()
    {
        auto page = open({"chain=mlp:8x256", "batch=64"});
        auto* field = qobject_cast<BudgetField*>(page->inspector()->form()->field(QStringLiteral("budget")));
        QVERIFY(field);
        auto* slider = field->findChild<QSlider*>(QStringLiteral("slider"));
        slider->setValue(slider->minimum());
        settle(*page);
        QCOMPARE(chainFigure(*page, "feasible"), 1.0);
        QVERIFY(chainFigure(*page, "recomputed_forwards") > 0);
        slider->setValue(slider->maximum());
        settle(*page);
        QCOMPARE(chainFigure(*page, "feasible"), 1.0);
        QCOMPARE(chainFigure(*page, "recomputed_forwards"), 0.0);
        QCOMPARE(field->textAt(0).toDouble(), std::round(field->textAt(0).toDouble())); // whole bytes
        QVERIFY(field->textAt(0).toDouble() < field->textAt(1).toDouble());
    }

    void aPointThatIsClickedIsTheStrategy()
    {
        auto page = open({"chain=uniform:24", "budget=9"});
        PlotView& view = *page->plot()->view();
        QWidget& canvas = canvasOf(view);
        QTest::qWait(50);
        const auto none = std::ranges::find_if(
            view.curves(), [](const Curve& curve) { return curve.key == QStringLiteral("strategy.none"); });
        const double x = pixelOf(view, canvas, none->x.front());
        for (double y = 10; y < canvas.height() && valueOf(*page, "strategy") != QStringLiteral("none"); y += 4) {
            mouse(canvas, QEvent::MouseButtonPress, {x, y}, Qt::LeftButton);
            mouse(canvas, QEvent::MouseButtonRelease, {x, y}, Qt::NoButton);
        }
        QCOMPARE(valueOf(*page, "strategy"), QStringLiteral("none"));
        settle(*page);
        QCOMPARE(chainFigure(*page, "recomputed_forwards"), 0.0);
        QVERIFY(picture(*page).title().contains(QStringLiteral("store everything")));
    }

    void schedulesAtOnePlaceAreNamedByAMenu()
    {
        auto page = open({"chain=uniform:24", "budget=9"});
        PlotView& view = *page->plot()->view();
        QStringList together; // of the points, those that share a place with another
        for (const Curve& curve : view.curves()) {
            for (const Curve& other : view.curves()) {
                if (curve.x.size() == 1 && other.x.size() == 1 && &curve != &other && curve.x == other.x
                    && curve.y == other.y && !together.contains(curve.key))
                    together << curve.key;
            }
        }
        QVERIFY(together.size() > 1);
        emit view.pointsClicked(together.mid(0, 2), canvasOf(view).mapToGlobal(QPoint(20, 20)));
        auto* menu = page->findChild<QMenu*>();
        QVERIFY(menu);
        QCOMPARE(menu->actions().size(), 2);
        menu->actions().last()->trigger();
        QCOMPARE(QStringLiteral("strategy.") + valueOf(*page, "strategy"), together[1]);
    }

    void theCursorOfThePictureIsOnTheCurve()
    {
        auto page = open({"chain=mlp:8x256", "batch=64"});
        page->plot()->groupChosen(QStringLiteral("memory"));
        settle(*page);
        PlotView& view = *page->plot()->view();
        CheckpointPicture& schedule = picture(*page);
        for (const int step : {0, 3, int(schedule.state().steps.size()) - 1}) {
            schedule.setCursor(step);
            QCOMPARE(view.markers().size(), std::size_t(1));
            const ScheduleStep& at = schedule.state().steps[std::size_t(step)];
            QVERIFY(view.markers()[0].x >= at.begin && view.markers()[0].x <= at.end);
        }
        emit view.markerDragged(view.markers()[0].key, schedule.state().steps[3].begin * 1.0000001);
        QCOMPARE(schedule.cursor(), 3);
        QCOMPARE(valueOf(*page, "budget"), QString()); // moving through time changes no parameter
    }

    void theBatchSaysWhatItIs()
    {
        auto page = open({"chain=mlp:8x256"});
        auto* value =
            page->inspector()->form()->field(QStringLiteral("batch"))->findChild<QLineEdit*>(QStringLiteral("value"));
        QCOMPARE(value->text(), QStringLiteral("512"));
        QVERIFY(page->setText(QStringLiteral("chain"), QStringLiteral("model:gpt2")));
        settle(*page);
        QCOMPARE(value->text(), QStringLiteral("8"));
        QVERIFY(page->setText(QStringLiteral("batch"), QStringLiteral("3")));
        settle(*page);
        QCOMPARE(value->text(), QStringLiteral("3"));
    }

    void buttonsChooseTheStrategy()
    {
        auto page = open({"chain=uniform:24", "budget=12"});
        auto* field = page->inspector()->form()->field(QStringLiteral("strategy"));
        const auto button = [&](const char* key) {
            return field->findChild<QToolButton*>(QStringLiteral("strategy.") + QLatin1String(key));
        };
        QVERIFY(button("optimal")->isChecked());
        QVERIFY(!button("optimal")->toolTip().isEmpty());
        button("every")->click();
        settle(*page);
        QVERIFY(valueOf(*page, "strategy").startsWith(QStringLiteral("every:")));
        auto* count = field->findChild<QSpinBox*>();
        QVERIFY(!count->isHidden());
        count->setValue(5);
        settle(*page);
        QCOMPARE(valueOf(*page, "strategy"), QStringLiteral("every:5"));
        // Too long for a search through everything.
        button("exhaustive")->click();
        QTRY_VERIFY_WITH_TIMEOUT(page->upToDate(), 20000);
        QVERIFY(!page->prediction());
        QVERIFY(page->inspector()->noteText().contains(QStringLiteral("at most 7 stages")));
        button("optimal")->click();
        settle(*page);
        QCOMPARE(chainFigure(*page, "feasible"), 1.0);
    }

    void noButtonIsCutWhereThereIsLittleRoom()
    {
        auto page = open({"chain=uniform:24", "budget=12"});
        auto* field = page->inspector()->form()->field(QStringLiteral("strategy"));
        for (const int width : {944, 1280, 1920, 944}) {
            page->resize(width, 552);
            settle(*page);
            for (const QToolButton* button : field->findChildren<QToolButton*>())
                QVERIFY2(button->width() >= button->sizeHint().width(),
                         qPrintable(QStringLiteral("%1 at %2: %3 < %4")
                                        .arg(button->text())
                                        .arg(width)
                                        .arg(button->width())
                                        .arg(button->sizeHint().width())));
        }
    }

    void tooLittleSaysWhatWouldDo()
    {
        auto page = open({"chain=uniform:24", "budget=2"});
        QVERIFY(picture(*page).state().empty());
        QCOMPARE(chainFigure(*page, "feasible"), 0.0);
        const double least = chainFigure(*page, "lower_bound_memory");
        QVERIFY(page->inspector()->noteText().contains(QString::number(least)));
        QPushButton* repair = page->inspector()->findChild<QPushButton*>(QStringLiteral("noteAction"));
        QVERIFY(!repair->isHidden());
        repair->click();
        settle(*page);
        QCOMPARE(chainFigure(*page, "feasible"), 1.0);
        QCOMPARE(chainFigure(*page, "peak"), least);
    }

    void chainsComeFromFiles()
    {
        QTemporaryDir folder;
        const QString good = folder.filePath(QStringLiteral("chain.json")),
                      bad = folder.filePath(QStringLiteral("bad.json"));
        const auto write = [](const QString& path, const Json& json) {
            QFile file(path);
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(QByteArray::fromStdString(json.dump()));
        };
        Json chain = chainToJson(uniformChain(5, 3, 4));
        write(good, chain);
        chain["forward"].erase(0);
        write(bad, chain);
        auto page = open({"chain=uniform:3"});
        auto* field = qobject_cast<ChainField*>(page->inspector()->form()->field(QStringLiteral("chain")));
        QVERIFY(field);
        field->askFile = [&] { return good; };
        field->findChild<QToolButton*>(QStringLiteral("openChain"))->click();
        settle(*page);
        QCOMPARE(valueOf(*page, "chain"), good);
        QCOMPARE(picture(*page).state().length, 5);
        field->askFile = [] { return QString(); }; // thought better of it
        field->findChild<QToolButton*>(QStringLiteral("openChain"))->click();
        QCOMPARE(valueOf(*page, "chain"), good);
        field->propose(bad);
        QTRY_VERIFY(page->upToDate() && page->prediction() == nullptr);
        QVERIFY(picture(*page).state().empty());
        QVERIFY(!page->inspector()->noteText().isEmpty());
        field->propose(good);
        settle(*page);
        QCOMPARE(picture(*page).state().length, 5);
    }

    void measuredSchedulesBecomeRings()
    {
        auto page = open({"chain=uniform:24", "budget=9"});
        Record record = sampleRecord(checkpoint, {"chain=uniform:24", "budget=12", "strategy=sqrt"}, 1.1, "nvidia-t4");
        m_fixture->document.addRecord(record);
        m_fixture->document.addRecord(
            sampleRecord(checkpoint, {"chain=uniform:23", "budget=12"}, 1.1, "nvidia-t4")); // another chain
        settle(*page);
        page->updateNow();
        int rings = 0;
        for (const Curve& curve : page->plot()->view()->curves()) {
            if (curve.role != CurveRole::MeasuredVariant)
                continue;
            ++rings;
            QCOMPARE(curve.x.front(), findFigure(record.measured->figures, "peak")->number());
        }
        QCOMPARE(rings, 1);
    }

    void onlyWhatTheChainHasIsAsked()
    {
        auto page = open({"chain=uniform:24", "budget=9"});
        const auto shown = [&](const char* key) {
            return !page->inspector()->form()->field(QString::fromLatin1(key))->isHidden();
        };
        QVERIFY(!shown("batch") && !shown("sequence") && !shown("last_segment"));
        QVERIFY(page->setText(QStringLiteral("chain"), QStringLiteral("mlp:4x64")));
        QVERIFY(page->setText(QStringLiteral("budget"), QString()));
        QVERIFY(page->setText(QStringLiteral("strategy"), QStringLiteral("sqrt")));
        settle(*page);
        QVERIFY(shown("batch") && !shown("sequence") && !shown("last_segment"));
        QVERIFY(page->setText(QStringLiteral("strategy"), QStringLiteral("every:2")));
        settle(*page);
        QVERIFY(shown("last_segment"));
    }
};

QTEST_MAIN(TestCheckpointPage)
#include "tst_checkpoint_page.moc"
