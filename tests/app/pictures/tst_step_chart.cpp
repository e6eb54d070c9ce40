// SPDX-License-Identifier: GPL-3.0-or-later
// One step, tensor by tensor: lifetimes are those of the trace, the outline of all blocks is the
// allocated memory at any zoom, the nesting of modules is that of the events, and a step of a large
// model is drawn in a frame or two.
#include "app/pictures/training-memory/step_chart.h"
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"
#include "core/experiments/training-memory/training_memory.h"

#include <QTest>

#include <cmath>

using namespace memscape;

namespace {

/// Weights of 100 B; in forward two activations, in backward a temporary and a gradient.
Trace smallStep()
{
    Trace trace;
    const ModuleId first = trace.module("model.layers.0.mlp"), second = trace.module("model.layers.1.mlp");
    trace.allocate(100, Category::Weights, trace.name("weight"), first);
    trace.enter(Phase::Forward);
    const BlockId a = trace.allocate(40, Category::Activations, trace.name("gelu"), first);
    const BlockId b = trace.allocate(60, Category::Activations, trace.name("softmax"), second);
    trace.enter(Phase::Backward);
    const BlockId t = trace.allocate(30, Category::Temporary, trace.name("gelu_backward"), second);
    trace.free(b);
    trace.free(t);
    trace.allocate(20, Category::Gradients, trace.name("weight"), first);
    trace.free(a);
    return trace;
}

StepBlocks stepOf(const char* model, const char* batch)
{
    const Experiment& memory = **findExperiment("training-memory");
    const Parameters parameters = *resolve(
        memory.schema(),
        std::vector<std::string>{std::string("model=") + model, std::string("batch=") + batch, "sequence=512"});
    return stepBlocks(answerTraining(*findDevice("nvidia-h200"), parameters)->simulation.trace);
}

StepView wholeOf(const StepBlocks& step)
{
    return {double(step.first), step.last + 1.0, 0, 1.04 * *std::ranges::max_element(step.totals)};
}

/// The top of the stack in every column, in bytes.
std::vector<double> topsOf(const StepChart& chart)
{
    std::vector<double> tops(chart.events.size(), chart.area.bottom());
    for (const StepShape& shape : chart.shapes) {
        for (std::size_t i = 0; i < shape.high.size(); ++i)
            tops[std::size_t(shape.column) + i] = std::min(tops[std::size_t(shape.column) + i], shape.high[i]);
    }
    for (double& top : tops)
        top = chart.bytesAt(top);
    return tops;
}

} // namespace

class TestStepChart : public QObject
{
    Q_OBJECT

private slots:
    void lifetimesAreThoseOfTheTrace()
    {
        const StepBlocks step = stepBlocks(smallStep());
        QCOMPARE(step.first, 1);
        QCOMPARE(step.last, 7);
        QCOMPARE(step.totals, (std::vector<double>{140, 200, 230, 170, 140, 160, 120}));
        QCOMPARE(step.residents.size(), std::size_t(1));
        QCOMPARE(step.blocks.size(), std::size_t(4));
        const StepBlock& gelu = step.blocks[0];
        QCOMPARE(step.textOf(gelu), QStringLiteral("model.layers.0.mlp · gelu"));
        QCOMPARE(gelu.begin, 1);
        QCOMPARE(gelu.end, 7);
        QVERIFY(gelu.isFreed && gelu.madeIn == Phase::Forward && gelu.freedIn == Phase::Backward);
        QVERIFY(!step.blocks[3].isFreed);
        QCOMPARE(step.blocks[3].end, 8);
        QVERIFY(step.matches(gelu, "GELU") && step.matches(gelu, "layers.0") && step.matches(gelu, "activ"));
        QVERIFY(!step.matches(gelu, "softmax"));
    }

    void modulesNestAsTheyWork()
    {
        const StepBlocks step = stepBlocks(smallStep());
        QStringList spans;
        for (const StepSpan& span : step.spans)
            spans << QStringLiteral("%1 %2 %3-%4").arg(span.row).arg(span.text).arg(span.begin).arg(span.end);
        // "model" is everywhere and gives no information.
        QCOMPARE(spans,
                 (QStringList{"0 forward 1-3", "0 backward 3-8", "1 layers.0 1-2", "1 layers.1 2-3", "1 layers.1 3-6",
                              "1 layers.0 6-8", "2 mlp 1-2", "2 mlp 2-3", "2 mlp 3-6", "2 mlp 6-8"}));
        QCOMPARE(step.rows, 3);
    }

    void theRestIsSummedByCategory()
    {
        const StepBlocks step = stepBlocks(smallStep(), 2);
        QCOMPARE(step.blocks.size(), std::size_t(2)); // 60 and 40
        QCOMPARE(step.rest.size(), std::size_t(2));
        QCOMPARE(step.rest[0].category, Category::Gradients);
        QCOMPARE(step.rest[0].count, 1);
        QCOMPARE(step.rest[0].bytes, (std::vector<double>{0, 0, 0, 0, 0, 20, 20}));
        QCOMPARE(step.rest[1].category, Category::Temporary);
        QCOMPARE(step.rest[1].bytes, (std::vector<double>{0, 0, 30, 30, 0, 0, 0}));
        const StepChart chart = layoutChart(step, wholeOf(step), QRectF(0, 0, 300, 200), {}, ByteStyle::Binary);
        QStringList said;
        for (const StepShape& shape : chart.shapes)
            if (shape.kind == StepShape::Kind::Rest)
                said << shapeText(step, shape, ByteStyle::Binary);
        QCOMPARE(said.size(), 2);
        QVERIFY2(said[0].contains("1 tensor more of gradients") && said[1].contains("temporary"),
                 qPrintable(said.join('\n')));
    }

    void aTraceWithoutAStepIsEmpty()
    {
        Trace trace;
        QVERIFY(stepBlocks(trace).empty());
        trace.allocate(100, Category::Weights);
        const StepBlocks step = stepBlocks(trace);
        QVERIFY(step.empty());
        QVERIFY(layoutChart(step, {}, QRectF(0, 0, 300, 200), {}, ByteStyle::Binary).shapes.empty());
        QVERIFY(layoutFlame(step, {}, QRectF(0, 0, 300, 60), {}).empty());
    }

    void theOutlineIsTheAllocatedMemory_data()
    {
        QTest::addColumn<double>("from");
        QTest::addColumn<double>("to");
        QTest::newRow("all of it") << 0.0 << 1.0;
        QTest::newRow("a tenth") << 0.4 << 0.5;
        QTest::newRow("a few events") << 0.5 << 0.505;
    }
    void theOutlineIsTheAllocatedMemory()
    {
        QFETCH(double, from);
        QFETCH(double, to);
        const StepBlocks step = stepOf("gpt2", "8");
        StepView view = wholeOf(step);
        const double events = view.right - view.left;
        view = {view.left + from * events, view.left + to * events, view.bottom, view.top};
        const StepChart chart = layoutChart(step, view, QRectF(10, 20, 700, 400), {}, ByteStyle::Binary);
        QVERIFY(chart.events.size() > 5);
        const std::vector<double> tops = topsOf(chart);
        for (std::size_t i = 0; i < tops.size(); ++i) {
            const double total = step.totals[std::size_t(chart.events[i] - step.first)];
            QVERIFY(std::abs(tops[i] - total) < 1e-6 * total);
        }
        if (from == 0) // the peak is drawn, however many events share a column
            QVERIFY(std::abs(*std::ranges::max_element(tops) * 1.04 - view.top) < 1e-6 * view.top);
    }

    void zoomingTellsSmallBlocksApart()
    {
        const StepBlocks step = stepOf("gpt2", "8");
        const QRectF area(0, 0, 700, 300);
        const auto groups = [](const StepChart& chart) {
            return std::ranges::count_if(chart.shapes,
                                         [](const StepShape& shape) { return shape.kind == StepShape::Kind::Group; });
        };
        const StepView whole = wholeOf(step);
        const StepChart far = layoutChart(step, whole, area, {}, ByteStyle::Binary);
        QVERIFY(groups(far) > 0);
        const StepView near = zoomed(whole, whole, {whole.right / 2, whole.top / 2}, 0.02, 0.001);
        QVERIFY(groups(layoutChart(step, near, area, {}, ByteStyle::Binary)) < groups(far));
    }

    void whatIsUnderThePointerIsFound()
    {
        const StepBlocks step = stepBlocks(smallStep());
        const StepChart chart = layoutChart(step, {1, 8, 0, 240}, QRectF(0, 0, 700, 240), {}, ByteStyle::Binary);
        const StepShape* weights = chart.at({350, 200});
        QVERIFY(weights && weights->kind == StepShape::Kind::Residents);
        QVERIFY(shapeText(step, *weights, ByteStyle::Binary).contains("alive the whole step"));
        const StepShape* softmax = chart.at({150, 240 - 170}); // event 2: 100 of weights, 40 of gelu, then 60
        QVERIFY(softmax);
        QCOMPARE(shapeText(step, *softmax, ByteStyle::Binary),
                 QStringLiteral("model.layers.1.mlp · softmax: 60 B of activations, alive for 2 of 7 events (29 %), "
                                "made in forward, freed in backward"));
        QVERIFY(chart.at({650, 10}) == nullptr);
        QVERIFY(chart.at({-5, 100}) == nullptr);
    }

    void labelsStayInTheirBlocks()
    {
        const StepBlocks step = stepOf("gpt2", "8");
        const StepView whole = wholeOf(step);
        for (const StepView& view : {whole, zoomed(whole, whole, {whole.right / 2, whole.top / 2}, 0.05, 0.1)}) {
            const StepChart chart = layoutChart(step, view, QRectF(30, 10, 900, 500), {}, ByteStyle::Binary);
            std::vector<QRectF> labels;
            for (const StepShape& shape : chart.shapes) {
                if (shape.label.isEmpty())
                    continue;
                QVERIFY(chart.area.contains(shape.label));
                QCOMPARE(chart.at(shape.label.center()), &shape);
                for (const QRectF& other : labels)
                    QVERIFY2(!other.intersects(shape.label), qPrintable(shape.text));
                labels.push_back(shape.label);
            }
            QVERIFY(!labels.empty());
        }
    }

    void viewsStayWithinTheStep()
    {
        const StepView whole{100, 1100, 0, 1e9};
        QCOMPARE(zoomed(whole, whole, {300, 5e8}, 2, 2), whole);
        const StepView near = zoomed(whole, whole, {300, 5e8}, 0.1, 0.1);
        QCOMPARE(near.right - near.left, 100.0);
        QCOMPARE((300 - near.left) / 100, 0.2); // it stays under the pointer
        QCOMPARE(panned(near, whole, -100, 100).left, 100.0);
        QCOMPARE(panned(near, whole, 100, 100).top, 1e9);
        StepView closest = whole;
        for (int i = 0; i < 200; ++i)
            closest = zoomed(closest, whole, {1099, 1e9}, 0.5, 0.5);
        QVERIFY(closest.right - closest.left >= 10 && closest.right <= whole.right);
    }

    void zoomingInEndsAtABlock()
    {
        const StepBlocks step = stepBlocks(smallStep());
        const QRectF area(0, 0, 700, 240);
        const StepView whole{1, 8, 0, 240};
        StepView view = whole;
        for (int notch = 0; notch < 60; ++notch)
            view = zoomed(view, whole, layoutChart(step, view, area, {}, ByteStyle::Binary).gripAt({150, 240 - 170}), 1,
                          0.8);
        QCOMPARE(view.top - view.bottom, 1.5 * 60);   // softmax, and room beside it
        QVERIFY(view.bottom < 140 && view.top > 170); // its lower edge is in sight
        const StepGrip above = layoutChart(step, whole, area, {}, ByteStyle::Binary).gripAt({650, 5});
        QVERIFY(std::abs(above.bytes - 120) < 1); // all that is allocated there
    }

    // Wherever a person turns the wheel, blocks stay in sight: over the outline, in it, on a block.
    void theWheelNeverZoomsIntoNothing()
    {
        const StepBlocks step = stepOf("gpt2", "8");
        const QRectF area(0, 0, 700, 300);
        const StepView whole = wholeOf(step);
        for (const QPointF at : {QPointF(650, 10), QPointF(350, 150), QPointF(100, 290), QPointF(5, 5)}) {
            StepView view = whole;
            for (int notch = 0; notch < 60; ++notch) {
                view = withMemory(
                    zoomed(view, whole, layoutChart(step, view, area, {}, ByteStyle::Binary).gripAt(at), 0.8, 0.8),
                    step);
                const StepChart chart = layoutChart(step, view, area, {}, ByteStyle::Binary);
                const std::vector<double> tops = topsOf(chart);
                QVERIFY2(*std::ranges::max_element(tops) > view.bottom, qPrintable(QString::number(notch)));
            }
            QVERIFY(view.right - view.left <= 12.5);
            QVERIFY(view.top - view.bottom < whole.top / 2);
        }
    }
};

QTEST_MAIN(TestStepChart)
#include "tst_step_chart.moc"
