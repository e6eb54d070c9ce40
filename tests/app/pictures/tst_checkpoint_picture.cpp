// SPDX-License-Identifier: GPL-3.0-or-later
// The schedule's picture: what is kept agrees with the replay's bytes, nothing touches or leaves the
// picture at any length, cells stand where their time is, and the keyboard walks along it.
#include "app/pictures/checkpoint/checkpoint_picture.h"
#include "app/settings/theme.h"
#include "core/experiment/parameter.h"
#include "tests/support/areas.h"
#include "tests/support/checkpoint_detail.h"
#include "tests/support/mouse.h"

#include <QApplication>
#include <QImage>
#include <QMouseEvent>
#include <QPainter>
#include <QSignalSpy>
#include <QTest>

#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

ScheduleState stateOf(const Chain& chain, const Schedule& schedule, std::int64_t budget)
{
    ScheduleState state = readSchedule(scheduleDetail(chain, schedule, budget));
    state.units.isBytes = chain.units.isBytes;
    state.units.isSeconds = chain.units.isSeconds;
    state.title =
        QStringLiteral("uniform:%1 · optimal for %2").arg(chain.length()).arg(state.units.memory(double(budget)));
    return state;
}

ScheduleState uniformState(int length, std::int64_t budget)
{
    const Chain chain = uniformChain(length);
    return stateOf(chain, optimalSchedule(chain, budget), budget);
}

using Samples = std::vector<std::pair<QString, ScheduleState>>;

const Samples& samples()
{
    static const Samples all{
        {QStringLiteral("uniform-1"), stateOf(uniformChain(1), storeEverything(1), 4)},
        {QStringLiteral("uniform-16-of-8"), uniformState(16, 8)},
        {QStringLiteral("uniform-16-everything"), stateOf(uniformChain(16), storeEverything(16), 19)},
        {QStringLiteral("uniform-16-nothing"), stateOf(uniformChain(16), keepNothing(16), 4)},
        {QStringLiteral("uniform-48-of-14"), uniformState(48, 14)},
        {QStringLiteral("uniform-100-of-20"), uniformState(100, 20)},
        {QStringLiteral("uniform-339-segments"), stateOf(uniformChain(339), segments(339, 18), 45)}};
    return all;
}

} // namespace

class TestCheckpointPicture : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase() { applyTheme(*qApp, QStringLiteral("dark")); }

    /// What the bars say is there, and the gradients, add up to what the replay counted as resident.
    void keptBytesAreTheReplays()
    {
        const Chain chain = uniformChain(24, 3, 7);
        const Schedule schedule = optimalSchedule(chain, 70);
        const ScheduleState state = stateOf(chain, schedule, 70);
        const std::vector<KeptSpan> spans = keptSpans(state.steps, state.length);
        bool gradient = false;
        for (std::size_t k = 0; k + 1 < state.steps.size(); ++k) {
            gradient |= state.steps[k].operation.kind == OperationKind::Loss;
            double resident = gradient ? 3 : 0;
            bool working = true; // a value on its way to the next forward has no bar
            for (const KeptSpan& span : spans) {
                const bool there = span.made <= int(k) && int(k) < span.freed;
                resident += there ? (span.isSaved ? 7 : 3) : 0;
                working &= !(there && !span.isSaved && span.made == int(k));
            }
            const OperationKind kind = state.steps[k].operation.kind;
            const bool moves = kind == OperationKind::ForwardDrop || kind == OperationKind::ForwardKeep;
            QCOMPARE(resident + (moves && working ? 3 : 0), state.steps[k].after);
        }
    }

    void barsOfAHandWrittenSchedule()
    {
        // Two stages; x_1 is kept, stage 1 saved first, then stage 0 again.
        const Schedule schedule{{OperationKind::ForwardKeep, 0, 0}, {OperationKind::ForwardSave, 1, 0},
                                {OperationKind::Loss, 2, 0},        {OperationKind::Backward, 1, 0},
                                {OperationKind::ForwardSave, 0, 0}, {OperationKind::Backward, 0, 0}};
        const ScheduleState state = stateOf(uniformChain(2), schedule, 10);
        const std::vector<KeptSpan> expected{{1, true, 1, 3}, {1, false, 0, 3}, {0, true, 4, 5}, {0, false, -1, 5}};
        QCOMPARE(state.kept.size(), expected.size());
        for (const KeptSpan& span : expected)
            QVERIFY(std::ranges::find(state.kept, span) != state.kept.end());
        QCOMPARE(state.keptCount, (std::vector<int>{1, 2, 3, 3, 1, 2}));
        QCOMPARE(state.name(4), QStringLiteral("recompute 1"));
        QCOMPARE(state.name(2), QStringLiteral("loss"));
        QVERIFY(state.words(4).startsWith(QStringLiteral("recompute 1: ")));
        QVERIFY(state.words(4).endsWith(QStringLiteral(", 1 value kept")));
    }

    void nothingTouches_data()
    {
        QTest::addColumn<QSizeF>("size");
        for (const QSizeF& size :
             {QSizeF(460, 210), QSizeF(560, 300), QSizeF(740, 360), QSizeF(840, 420), QSizeF(1300, 600)})
            QTest::addRow("%gx%g", size.width(), size.height()) << size;
    }
    void nothingTouches()
    {
        QFETCH(QSizeF, size);
        const QRectF area(QPointF(5, 9), size);
        for (const auto& [name, state] : samples()) {
            for (const ScheduleAxis axis : {ScheduleAxis::Rows, ScheduleAxis::Time}) {
                const ScheduleLayout layout = layoutSchedule(state, axis, state.words(state.peak), area);
                for (const QRectF& piece : layout.pieces())
                    QVERIFY2(area.adjusted(-0.5, -0.5, 0.5, 0.5).contains(piece), qPrintable(name));
                QVERIFY2(test::areApart(layout.pieces()), qPrintable(name));
                QVERIFY(!layout.columns.empty());
                QVERIFY(layout.legend.size() >= 3);
            }
        }
    }

    void cellsStandInTheirColumnAndTime()
    {
        const ScheduleState state = uniformState(16, 8);
        for (const ScheduleAxis axis : {ScheduleAxis::Rows, ScheduleAxis::Time}) {
            const ScheduleLayout layout = layoutSchedule(state, axis, {}, QRectF(0, 0, 800, 400));
            double bottom = layout.cells.top();
            for (int k = 0; k < int(state.steps.size()); ++k) {
                const QRectF cell = layout.cell(state, k);
                QVERIFY(std::abs(cell.top() - bottom) < 1e-6);
                bottom = cell.bottom();
                if (cell.height() == 0)
                    continue; // the loss takes no time here
                QVERIFY(layout.cells.adjusted(-0.1, -0.1, 0.1, 0.1).contains(cell));
                QCOMPARE(layout.stepAt(cell.center().y()), k);
                const ChainOperation operation = state.steps[std::size_t(k)].operation;
                if (operation.kind != OperationKind::Loss)
                    QCOMPARE(int((cell.center().x() - layout.cells.left()) / layout.columnWidth), int(operation.stage));
            }
            QVERIFY(std::abs(bottom - layout.cells.bottom()) < 1e-6);
            QVERIFY(layout.memoryX(state.highest) < layout.memory.right());
        }
        // A backward takes twice as long as a forward here.
        const ScheduleLayout times = layoutSchedule(state, ScheduleAxis::Time, {}, QRectF(0, 0, 800, 400));
        const auto backward = std::ranges::find_if(
            state.steps, [](const ScheduleStep& step) { return step.operation.kind == OperationKind::Backward; });
        const double ratio =
            times.cell(state, int(backward - state.steps.begin())).height() / times.cell(state, 0).height();
        QVERIFY(std::abs(ratio - 2) < 1e-6);
    }

    void theKeyboardWalks()
    {
        CheckpointPicture picture;
        picture.resize(800, 400);
        picture.setSchedule(uniformState(16, 8));
        QCOMPARE(picture.cursor(), picture.state().peak); // where it matters most, until the user looks elsewhere
        const int last = int(picture.state().steps.size()) - 1;
        QTest::keyClick(&picture, Qt::Key_Home);
        QCOMPARE(picture.cursor(), 0);
        QVERIFY(picture.cursorText().startsWith(QStringLiteral("forward 1: ")));
        QCOMPARE(picture.accessibleDescription(), picture.cursorText());
        QTest::keyClick(&picture, Qt::Key_Left);
        QCOMPARE(picture.cursor(), 0);
        QTest::keyClick(&picture, Qt::Key_Down);
        QTest::keyClick(&picture, Qt::Key_Right);
        QCOMPARE(picture.cursor(), 2);
        QTest::keyClick(&picture, Qt::Key_Right, Qt::ShiftModifier);
        QCOMPARE(picture.cursor(), 12);
        QTest::keyClick(&picture, Qt::Key_End);
        QCOMPARE(picture.cursor(), last);
        QVERIFY(picture.cursorText().startsWith(QStringLiteral("backward 1: ")));
        QTest::keyClick(&picture, Qt::Key_P);
        QCOMPARE(picture.cursor(), picture.state().peak);
        QTest::keyClick(&picture, Qt::Key_T);
        QCOMPARE(picture.axis(), ScheduleAxis::Time);
        QCOMPARE(picture.cursor(), picture.state().peak);
        QVERIFY(!picture.accessibleName().isEmpty());
        QVERIFY(picture.summary().contains(QStringLiteral("16 stages")));
    }

    void draggingScrubs()
    {
        CheckpointPicture picture;
        picture.resize(800, 400);
        picture.setSchedule(uniformState(16, 8));
        QSignalSpy moved(&picture, &CheckpointPicture::cursorMoved);
        const ScheduleLayout layout = picture.layoutNow();
        mouse(picture, QEvent::MouseButtonPress, {layout.cells.center().x(), layout.stepMiddle(3)}, Qt::LeftButton);
        QCOMPARE(picture.cursor(), 3);
        mouse(picture, QEvent::MouseMove, {layout.memory.center().x(), layout.stepMiddle(30)}, Qt::LeftButton);
        QCOMPARE(picture.cursor(), 30);
        mouse(picture, QEvent::MouseMove, {layout.memory.center().x(), 5000}, Qt::LeftButton);
        QCOMPARE(picture.cursor(), int(picture.state().steps.size()) - 1);
        mouse(picture, QEvent::MouseButtonRelease, {layout.memory.center().x(), 5000}, Qt::NoButton);
        mouse(picture, QEvent::MouseMove, {layout.memory.center().x(), layout.stepMiddle(2)}, Qt::NoButton);
        QCOMPARE(picture.cursor(), int(picture.state().steps.size()) - 1); // hovering is not dragging
        QCOMPARE(moved.count(), 3);
        mouse(picture, QEvent::MouseButtonPress, layout.axisButton.center(), Qt::LeftButton);
        QCOMPARE(picture.axis(), ScheduleAxis::Time);
    }

    void playingEnds()
    {
        CheckpointPicture picture;
        picture.resize(800, 400);
        picture.setSchedule(uniformState(2, 9));
        picture.show();
        QTest::keyClick(&picture, Qt::Key_End);
        QTest::keyClick(&picture, Qt::Key_Space); // from the end it starts again
        QVERIFY(picture.isPlaying());
        QCOMPARE(picture.cursor(), 0);
        QTRY_VERIFY(picture.cursor() > 0);
        QTRY_VERIFY(!picture.isPlaying());
        QCOMPARE(picture.cursor(), int(picture.state().steps.size()) - 1);
        QTest::keyClick(&picture, Qt::Key_Space);
        QTest::keyClick(&picture, Qt::Key_Space);
        QVERIFY(!picture.isPlaying());
        QTest::keyClick(&picture, Qt::Key_Space);
        picture.hide(); // it is not seen: it rests
        QVERIFY(!picture.isPlaying());
    }

    void strangeDetailsDoNoHarm()
    {
        const Json good = scheduleDetail(uniformChain(4), storeEverything(4), 9);
        std::vector<Json> strange{Json(), Json("text"), Json::array({1, 2}), Json::object(), good, good, good, good};
        strange[4]["schedule"][1]["operation"] = "sleep";
        strange[5]["schedule"][2]["stage"] = 1e18;
        strange[6]["schedule"][0]["during"] = nullptr;
        strange[7]["chain"] = {{"length", -3}, {"stages", Json::array({1, nullptr})}};
        for (std::size_t i = 0; i < strange.size(); ++i) {
            const ScheduleState state = readSchedule(strange[i]);
            QCOMPARE(state.empty(), i != 6 && i != 7);
            const ScheduleLayout layout = layoutSchedule(state, ScheduleAxis::Time, {}, QRectF(0, 0, 600, 300));
            QCOMPARE(layout.stepAt(100) < 0, state.empty());
        }
        CheckpointPicture picture;
        picture.resize(600, 300);
        for (const int key : {Qt::Key_Space, Qt::Key_Right, Qt::Key_End, Qt::Key_P, Qt::Key_T})
            QTest::keyClick(&picture, Qt::Key(key));
        QCOMPARE(picture.cursor(), -1);
        QVERIFY(!picture.isPlaying());
        picture.grab();
    }

    /// A machine's clock is not the prediction's: each measured point stays with its operation.
    void measuredPointsFollowTheirOperations()
    {
        const ScheduleState predicted = uniformState(16, 8);
        Outcome measured;
        measured.detail = scheduleDetail(uniformChain(16), optimalSchedule(uniformChain(16), 8), 8);
        Series memory;
        memory.key = "memory";
        double time = 0;
        for (std::size_t k = 0; k < predicted.steps.size(); ++k) {
            Json& step = measured.detail["schedule"][k];
            const double takes = 0.01 * double(1 + k % 5);
            step["begin"] = time;
            step["end"] = time + takes;
            memory.x.values.push_back(time + takes / 2);
            memory.y.push_back(predicted.steps[k].during);
            time += takes;
        }
        measured.series = {memory};
        std::vector<MeasuredPoint> points = measuredPoints(measured, predicted);
        QCOMPARE(points.size(), predicted.steps.size());
        for (std::size_t k = 0; k < points.size(); ++k)
            QVERIFY(std::abs(points[k].step - (double(k) + 0.5)) < 1e-6);
        // Of a record without operations: by the share of the whole.
        measured.detail = Json::object();
        points = measuredPoints(measured, predicted);
        QVERIFY(!points.empty());
        for (std::size_t k = 1; k < points.size(); ++k)
            QVERIFY(points[k].step >= points[k - 1].step && points[k].step <= double(predicted.steps.size()));
    }

    void picturesToLookAt()
    {
        for (const auto& [name, state] : samples()) {
            for (const Theme* theme : {&darkTheme(), &lightTheme()}) {
                CheckpointPicture picture;
                picture.setSchedule(state);
                const QSize size(800, 420);
                QImage image(size * 2, QImage::Format_ARGB32_Premultiplied);
                QPainter painter(&image);
                painter.scale(2, 2);
                picture.paintTo(painter, QRectF(QPointF(0, 0), QSizeF(size)), *theme);
                painter.end();
                QVERIFY(image.save(QStringLiteral(SAMPLES "/checkpoint-%1-%2.png").arg(name, theme->name)));
            }
        }
    }
};

QTEST_MAIN(TestCheckpointPicture)
#include "tst_checkpoint_picture.moc"
