// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `batch-size`: what a hand does to it becomes edits, its parts keep clear of each other, and records
// with nothing or nonsense in them are drawn too.
#include "app/pictures/batch-size/batch_picture.h"
#include "app/plots/plot_style.h"
#include "tests/support/picture_case.h"

#include <QFontMetricsF>
#include <QSignalSpy>
#include <QtTest>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

/// A picture of the experiment at these parameters.
struct ShownBatch : PictureCase
{
    BatchPicture picture;

    explicit ShownBatch(const std::vector<std::string>& assignments = {"model=gpt2", "sequence=1024",
                                                                       "precision=bf16-autocast"},
                        const char* on = "nvidia-h200")
        : PictureCase("batch-size", assignments, on)
    {
        picture.resize(740, 440);
        show(picture);
    }
    BatchLayout layout() const { return layoutBatch(picture.state(), QRectF(picture.rect())); }
};

QString edited(const QSignalSpy& spy)
{
    return spy.isEmpty() ? QString() : spy.last().at(0).toString() + "=" + spy.last().at(1).toString();
}

} // namespace

class TestBatchPicture : public QObject
{
    Q_OBJECT

private slots:
    void theBatchIsDraggedAlongMemoryAndThroughput()
    {
        ShownBatch shown;
        QSignalSpy edits(&shown.picture, &Picture::parameterEdited), editing(&shown.picture, &Picture::editing);
        const BatchLayout layout = shown.layout();
        for (const BatchPanel* panel : {&layout.memory, &layout.throughput}) {
            const QPoint at = panel->at(128, panel->y.value(0.5)).toPoint();
            QTest::mousePress(&shown.picture, Qt::LeftButton, {}, at);
            const double batch = edits.last().at(1).toString().toDouble();
            QCOMPARE(edits.last().at(0).toString(), QStringLiteral("batch"));
            QVERIFY2(batch > 115 && batch < 142, qPrintable(edited(edits))); // a pixel is some of them
            QTest::mouseMove(&shown.picture, QPoint(int(panel->area.left()), at.y()));
            QCOMPARE(edited(edits), QStringLiteral("batch=1"));
            QTest::mouseRelease(&shown.picture, Qt::LeftButton, {}, at);
        }
        QCOMPARE(editing.size(), 4);
        QCOMPARE(editing.last().at(0).toBool(), false);
    }

    void aConstantScheduleEndsWhereTheCurveSays()
    {
        ShownBatch shown;
        const BatchState& state = shown.picture.state();
        QVERIFY(state.scheduleSteps > 0);
        QCOMPARE(state.shownScheduleSteps(), std::ceil(state.steps(state.batch * state.perBatch)));
        QVERIFY(std::abs(state.shownScheduleSteps() / state.scheduleSteps - 1) < 0.01);
    }

    void pointsAreChosenByAClick()
    {
        ShownBatch shown;
        QSignalSpy changes(&shown.picture, &Picture::changesWanted);
        const BatchLayout layout = shown.layout();
        const BatchMark& mark = shown.picture.state().curve[2];
        QTest::mouseClick(&shown.picture, Qt::LeftButton, {}, layout.target.at(mark.steps, mark.examples).toPoint());
        QCOMPARE(changes.size(), 1);
        const auto wanted = changes.last().at(0).value<ParameterChanges>();
        QCOMPARE(wanted.front().first, std::string("batch"));
        QCOMPARE(std::stod(wanted.front().second), mark.batch);
        const BatchMark& last = shown.picture.state().front.back();
        QTest::mouseClick(&shown.picture, Qt::LeftButton, {},
                          layout.front.at(last.allocated, last.throughput).toPoint());
        QCOMPARE(changes.size(), 2);
        QCOMPARE(std::stod(changes.last().at(0).value<ParameterChanges>().back().second), last.accumulation);
    }

    void keysMoveTheBatch()
    {
        ShownBatch shown;
        QSignalSpy edits(&shown.picture, &Picture::parameterEdited);
        QTest::keyClick(&shown.picture, Qt::Key_Right);
        QCOMPARE(edited(edits), QStringLiteral("batch=64"));
        QTest::keyClick(&shown.picture, Qt::Key_Left, Qt::ShiftModifier);
        QCOMPARE(edited(edits), QStringLiteral("batch=31"));
        QTest::keyClick(&shown.picture, Qt::Key_End);
        QCOMPARE(edited(edits), QStringLiteral("batch=%1").arg(shown.prediction.detail["largest"].get<int>()));
        QTest::keyClick(&shown.picture, Qt::Key_Home);
        QCOMPARE(edited(edits), QStringLiteral("batch=1"));
        if (const int sweet = shown.prediction.detail["sweet_spot"]["batch"].get<int>(); sweet != 32) {
            QTest::keyClick(&shown.picture, Qt::Key_Return);
            QCOMPARE(edited(edits), QStringLiteral("batch=%1").arg(sweet));
        }
    }

    void theSweetSpotsLineTakesIt()
    {
        ShownBatch shown({"model=gpt2", "sequence=1024", "precision=bf16-autocast", "batch=1"});
        QSignalSpy edits(&shown.picture, &Picture::parameterEdited);
        QTest::mouseClick(&shown.picture, Qt::LeftButton, {}, shown.layout().reason.center().toPoint());
        QCOMPARE(edited(edits),
                 QStringLiteral("batch=%1").arg(shown.prediction.detail["sweet_spot"]["batch"].get<int>()));
    }

    void theSchedulePlaysToItsEnd()
    {
        ShownBatch shown({"schedule=adaptive"});
        setMotionAllowed(true);
        QCOMPARE(shown.picture.moment(), 1.0);
        QTest::keyClick(&shown.picture, Qt::Key_Space);
        QVERIFY(shown.picture.isPlaying());
        QVERIFY(shown.picture.moment() < 0.5);
        QTRY_VERIFY(shown.picture.moment() > 0);
        QTest::keyClick(&shown.picture, Qt::Key_Space);
        QVERIFY(!shown.picture.isPlaying());
        const BatchLayout layout = shown.layout();
        QTest::mouseClick(&shown.picture, Qt::LeftButton, {},
                          QPointF(layout.schedule.area.center().x(), layout.schedule.area.center().y()).toPoint());
        QVERIFY(std::abs(shown.picture.moment() - 0.5) < 0.01);
        setMotionAllowed(false);
        QTest::keyClick(&shown.picture, Qt::Key_Space); // a step at a time
        QVERIFY(!shown.picture.isPlaying() && shown.picture.moment() > 0.55);
        setMotionAllowed(true);
    }

    void partsKeepClear_data()
    {
        QTest::addColumn<QSize>("size");
        QTest::newRow("smallest") << BatchPicture().minimumSizeHint();
        QTest::newRow("of a window of 1280 pixels") << QSize(740, 440);
        QTest::newRow("large") << QSize(1300, 700);
    }

    void partsKeepClear()
    {
        QFETCH(QSize, size);
        const ShownBatch shown;
        const QRectF rect(QPointF(), size);
        const BatchLayout layout = layoutBatch(shown.picture.state(), rect);
        std::vector<QRectF> parts{layout.title,        layout.memory.frame, layout.throughput.frame,
                                  layout.target.frame, layout.front.frame,  layout.reason};
        if (layout.hasSchedule)
            parts.push_back(layout.schedule.frame);
        QCOMPARE(layout.hasSchedule, size.height() > 400);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            QVERIFY(rect.contains(parts[i]));
            for (std::size_t j = 0; j < i; ++j)
                QVERIFY2(!parts[i].intersects(parts[j]), qPrintable(QString("%1 %2").arg(i).arg(j)));
        }
        std::vector<const BatchPanel*> panels{&layout.memory, &layout.throughput, &layout.target, &layout.front};
        if (layout.hasSchedule)
            panels.push_back(&layout.schedule);
        for (const BatchPanel* panel : panels) {
            QVERIFY(panel->frame.contains(panel->area));
            QVERIFY(panel->area.height() > 20 && panel->area.width() > 100);
        }
        if (!layout.hasSchedule)
            return;
        QVERIFY(!layout.schedule.area.intersects(layout.scheduleText));
        QVERIFY(layout.schedule.frame.contains(layout.scheduleText));
    }

    /// Three lines at most, and all of what is said is inside.
    void theReasonIsNotCut()
    {
        BatchState state;
        state.sweetSpot = 128;
        state.sweetReason = QStringLiteral(
            "reaches the target soonest, in 4.06 ms; batch 64 takes 0.6 % more (86 % of the throughput, 86 % of the "
            "examples); batch 256 takes 17 % more (109 % of the throughput, 128 % of the examples)");
        for (const QSizeF size : {QSizeF(330, 276), QSizeF(424, 410), QSizeF(756, 660), QSizeF(1396, 1060)}) {
            const BatchLayout layout = layoutBatch(state, QRectF(QPointF(0, 0), size));
            const QFontMetricsF metrics(plotFont(0.82));
            const double width = layout.reason.width() - 20 * plotUnit();
            const QRectF needed = metrics.boundingRect(QRectF(0, 0, width, 1e4), Qt::TextWordWrap, layout.reasonText);
            QVERIFY2(needed.height() <= layout.reason.height(), qPrintable(layout.reasonText));
            QVERIFY(layout.reason.bottom() <= size.height());
            QVERIFY(layout.reasonText.endsWith(u')') || layout.reasonText.endsWith(QChar(0x2026)));
        }
    }

    void ticksAreRoundAndFew()
    {
        const BatchAxis decades{3, 3e6, true}, narrow{2e6, 8e6, true}, bytes{1e5, 1e11, true}, straight{0, 230, false};
        for (const BatchAxis& axis : {decades, narrow, straight}) {
            const auto ticks = axis.ticks(5);
            QVERIFY(ticks.size() >= 2 && ticks.size() <= 6);
            for (const double tick : ticks) {
                QVERIFY(tick >= axis.low && tick <= axis.high);
                const double first = tick > 0 ? tick / std::pow(10, std::floor(std::log10(tick) + 1e-9)) : 1;
                QVERIFY(std::abs(first - std::round(first)) < 1e-6 || std::abs(first - 1.5) < 1e-6);
            }
        }
        for (const double tick : bytes.ticks(4, 2))
            QCOMPARE(std::log2(tick), std::round(std::log2(tick)));
        QVERIFY(std::abs(decades.value(decades.share(777)) - 777) < 1e-6);
    }

    void measuredPointsAreRead()
    {
        ShownBatch shown({"batch=1,32,1024"}, "nvidia-h200");
        Measurement measured;
        measured.figures.push_back({"noise_scale", "noise scale", Unit::One, 700.0, {}, {}, {}});
        for (const char* key : {"throughput", "examples_to_target", "memory"}) {
            Series series;
            series.key = key;
            series.x.key = "batch";
            series.x.values = {1, 32, 1024};
            series.y = {10, 300, std::numeric_limits<double>::quiet_NaN()};
            measured.series.push_back(series);
        }
        shown.show(shown.picture, &measured);
        QCOMPARE(shown.picture.state().measured.size(), std::size_t(3));
        QCOMPARE(shown.picture.state().measured[1].throughput, 300.0);
        QCOMPARE(shown.picture.state().measured[1].memory, 300.0);
        QCOMPARE(shown.picture.state().measuredNoise, 700.0);
    }

    void nothingAndNonsenseAreDrawn_data()
    {
        QTest::addColumn<QString>("detail");
        QTest::newRow("nothing") << "{}";
        QTest::newRow("no object") << "[1, 2]";
        QTest::newRow("other kinds")
            << R"({"curve": 7, "noise": [], "schedule": "x", "pareto": {"a": 1}, "largest": "many"})";
        QTest::newRow("numbers that cannot be")
            << R"({"curve": [{"batch": -4, "device_total": 1e300}, {"batch": 8, "device_total": 1e9, "throughput": null},
            {"batch": 1e300, "device_total": 1e300}], "schedule": {"step": [0, -1], "batch": [0, null]}, "pareto": [{"peak_allocated": -1}]})";
    }

    void nothingAndNonsenseAreDrawn()
    {
        QFETCH(QString, detail);
        ShownBatch shown;
        Prediction odd;
        odd.detail = Json::parse(detail.toStdString());
        shown.picture.setState({*shown.experiment, shown.device, shown.parameters, &odd});
        exported(shown.picture, {740, 440}, lightTheme());
        shown.picture.setState({*shown.experiment, shown.device, shown.parameters});
        exported(shown.picture, {740, 440}, darkTheme());
        QTest::mouseClick(&shown.picture, Qt::LeftButton, {}, QPoint(200, 150));
        QTest::keyClick(&shown.picture, Qt::Key_Space);
        QVERIFY(!shown.picture.summary().isEmpty());
    }
};

QTEST_MAIN(TestBatchPicture)
#include "tst_batch_picture.moc"
