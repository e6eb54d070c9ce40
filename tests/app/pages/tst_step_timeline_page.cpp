// SPDX-License-Identifier: GPL-3.0-or-later
// The step timeline as a person uses it: walk along it, zoom and come back, look at one module, search its tensors.
#include "app/pages/memory_extension.h"
#include "app/pictures/training-memory/moment_picture.h"
#include "app/settings/theme.h"
#include "tests/support/page_fixture.h"

#include <QApplication>
#include <QLineEdit>
#include <QTest>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

using namespace memscape;

namespace {

const MemoryExtension& memoryOf(const ExperimentPage& page)
{
    return *qobject_cast<MemoryExtension*>(page.extension());
}

} // namespace

class TestStepTimelinePage : public QObject
{
    Q_OBJECT

    std::unique_ptr<PageFixture> m_fixture;

    /// A page of GPT-2's step: "step-timeline", or Memory budget.
    std::unique_ptr<ExperimentPage> open(const std::string& id) { return m_fixture->openStepOfGpt2(id, "4"); }

private slots:
    void init()
    {
        applyTheme(*qApp, QStringLiteral("dark"));
        m_fixture = std::make_unique<PageFixture>();
    }

    void theCursorWalksAlongTheStep()
    {
        auto page = open("step-timeline");
        auto& picture = *qobject_cast<MomentPicture*>(page->picture());
        QTRY_VERIFY(page->upToDate() && picture.state().moment.event >= 0);
        QVERIFY(picture.state().isPeak);
        const int peak = picture.state().moment.event;
        const double atPeak = picture.state().moment.allocated;
        picture.setFocus();
        QTest::keyClick(&picture, Qt::Key_Right);
        QTRY_COMPARE(picture.state().moment.event, peak + 1);
        QVERIFY(picture.state().moment.allocated <= atPeak);
        QTest::keyClick(&picture, Qt::Key_End);
        QTRY_COMPARE(picture.state().moment.event, int(memoryOf(*page).timeline().event.back()));
        QTest::keyClick(page->plot()->view(),
                        Qt::Key_Home); // with the keyboard in the curves as well
        QTRY_COMPARE(picture.state().moment.event, int(memoryOf(*page).timeline().event.front()));
        double sum = 0;
        for (const LiveTensor& tensor : picture.state().moment.live)
            sum += tensor.bytes;
        QCOMPARE(sum + picture.state().moment.restBytes, picture.state().moment.allocated);
        QTest::keyClick(&picture, Qt::Key_P);
        QCOMPARE(memoryOf(*page).cursor(), peak);
        QTRY_VERIFY(picture.state().isPeak);
    }

    // What Memory budget has as areas of categories is shown tensor by tensor here, and once.
    void theStepTimelineIsNoSecondMemoryBudget()
    {
        auto budgetPage = open({});
        auto page = open("step-timeline");
        auto& picture = *qobject_cast<MomentPicture*>(page->picture());
        QTRY_VERIFY(page->upToDate() && picture.state().step);
        QVERIFY(!budgetPage->plot()->isFolded());
        QVERIFY(page->plot()->isFolded());
        const StepBlocks& step = *picture.state().step;
        const double highest = *std::ranges::max_element(step.totals);
        QCOMPARE(highest, picture.state().moment.allocated);                     // the cursor is at the peak
        QCOMPARE(step.first - 1, int(memoryOf(*page).timeline().event.front())); // what stood before it
        QVERIFY(step.blocks.size() > 100);
        QVERIFY(step.rows >= 3); // phases, layers, their parts
    }

    void aClickMovesTheCursorAndTheWheelZooms()
    {
        auto page = open("step-timeline");
        auto& picture = *qobject_cast<MomentPicture*>(page->picture());
        QTRY_VERIFY(page->upToDate() && picture.state().step);
        const StepView whole = picture.state().whole();
        QCOMPARE(picture.view(), whole);
        const QRectF area = picture.chartNow().area;
        const QPoint at(int(area.left() + 0.7 * area.width()), int(area.center().y()));
        const int event = int(std::floor(picture.chartNow().eventAt(at.x())));
        QTest::mouseClick(&picture, Qt::LeftButton, {}, at);
        QTRY_COMPARE(picture.state().moment.event, event);
        QWheelEvent wheel(QPointF(at), picture.mapToGlobal(QPointF(at)), {}, {0, 360}, {}, {}, Qt::NoScrollPhase,
                          false);
        QApplication::sendEvent(&picture, &wheel);
        QVERIFY(picture.view().right - picture.view().left < 0.6 * (whole.right - whole.left));
        QVERIFY(std::abs(picture.chartNow().eventAt(at.x()) - (event + 0.5))
                < 0.02 * (whole.right - whole.left)); // it stays under the pointer
        const StepView near = picture.view();
        QTest::mousePress(&picture, Qt::LeftButton, {}, at);
        QTest::mouseMove(&picture, at + QPoint(80, 0));
        QTest::mouseRelease(&picture, Qt::LeftButton, {}, at + QPoint(80, 0));
        QVERIFY(picture.view().left < near.left);
        QTest::qWait(10);
        QCOMPARE(picture.state().moment.event, event); // a drag is no click
        QTest::keyClick(&picture, Qt::Key_0);
        QCOMPARE(picture.view(), whole);
        QTest::keyClick(&picture, Qt::Key_Plus);
        QVERIFY(picture.view() != whole);
        QTest::keyClick(&picture, Qt::Key_Escape);
        QCOMPARE(picture.view(), whole);
        QTest::keyClick(&picture, Qt::Key_Plus);
        QVERIFY(picture.view() != whole);
        QVERIFY(page->setText("optimizer", "sgd")); // another step: the view is of that one
        QTRY_VERIFY(page->upToDate() && picture.state().whole() != whole);
        QTRY_COMPARE(picture.view(), picture.state().whole());
    }

    void aModuleIsShownAlone()
    {
        auto page = open("step-timeline");
        auto& picture = *qobject_cast<MomentPicture*>(page->picture());
        QTRY_VERIFY(page->upToDate() && picture.state().step);
        picture.grab();
        const QRectF flame = picture.layoutNow().flame;
        const auto boxes = layoutFlame(*picture.state().step, picture.view(), flame, {});
        const auto backward = std::ranges::find(boxes, "backward", &FlameBox::text);
        QVERIFY(backward != boxes.end());
        const StepSpan& span = picture.state().step->spans[std::size_t(backward->span)];
        QTest::mouseClick(&picture, Qt::LeftButton, {}, backward->rect.center().toPoint());
        QVERIFY(picture.view().left < span.begin && picture.view().right > span.end);
        QVERIFY(picture.view().right - picture.view().left < 1.1 * (span.end - span.begin));
    }

    void theSearchKeepsWhatItFinds()
    {
        auto page = open("step-timeline");
        auto& picture = *qobject_cast<MomentPicture*>(page->picture());
        QTRY_VERIFY(page->upToDate() && picture.state().step);
        picture.setFocus();
        auto* search = picture.findChild<QLineEdit*>("searchTensors");
        QTest::keyClick(&picture, Qt::Key_Slash);
        QCOMPARE(picture.focusWidget(), static_cast<QWidget*>(search));
        QTest::keyClicks(search, "softmax"); // a T4 has no kernel of attention in bf16
        const StepChart& chart = picture.chartNow();
        QVERIFY(chart.matches >= 12); // one a layer of GPT-2
        QVERIFY(chart.matchedBytes > 0 && chart.matchedBytes < picture.state().moment.allocated);
        const auto lit = std::ranges::count_if(chart.shapes, [](const StepShape& shape) { return shape.isMatch; });
        QVERIFY(lit > 0 && lit < std::ptrdiff_t(chart.shapes.size()));
        QVERIFY(picture.layoutNow().foundText.startsWith(QString::number(chart.matches)));
        QTest::keyClick(search, Qt::Key_Escape);
        QVERIFY(picture.state().words.isEmpty());
        QVERIFY(picture.hasFocus());
    }

    void measuredMemoryLiesOverTheBlocks()
    {
        auto page = open("step-timeline");
        auto& picture = *qobject_cast<MomentPicture*>(page->picture());
        QTRY_VERIFY(page->upToDate() && picture.state().step);
        const QImage before = picture.grab().toImage();
        Record record = *page->prediction();
        record.measured = record.predicted;
        m_fixture->document.addRecord(record);
        QTRY_VERIFY(page->upToDate() && picture.grab().toImage() != before);
        int orange = 0;
        const QImage image = picture.grab().toImage();
        for (int y = 0; y < image.height(); ++y) {
            for (int x = 0; x < image.width(); ++x)
                orange += image.pixelColor(x, y) == currentTheme().measured;
        }
        QVERIFY(orange > 100);
    }
};

QTEST_MAIN(TestStepTimelinePage)
#include "tst_step_timeline_page.moc"
