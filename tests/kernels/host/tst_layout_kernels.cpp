// SPDX-License-Identifier: Apache-2.0
// Every version of the copy of a view moves the right elements, a wrong one is caught, and a run measures
// what is predicted.
#include "core/experiments/layout/layout.h"
#include "kernels/host/host_backend.h"
#include "kernels/host/layout/layout_kernels.h"
#include "tests/support/listener.h"

#include <QtTest>

using namespace memscape;
using namespace memscape::host;
using memscape::test::Listener;

namespace {

/// Forgets the last element.
void forgetful(const TensorWalk& walk, const std::byte* storage, std::byte* target)
{
    if (walk.elements > 1)
        copyKernel(4, 1).run(sliceOf(walk, 0, walk.loops.back().count - 1), storage, target);
}

} // namespace

class TestLayoutKernels : public QObject
{
    Q_OBJECT

private slots:
    void everyVersion()
    {
        for (const int item : {1, 2, 4, 8, 16}) {
            const Check reads = checkReadWalk(item);
            QVERIFY2(reads.passed() && reads.compared() > 10, reads.text().c_str());
            for (const CopyKernel& kernel : copyKernels(item)) {
                const Check check = checkCopy(kernel);
                QVERIFY2(check.passed() && check.compared() > 10000, (kernel.name() + check.text()).c_str());
                QVERIFY(!kernel.lesson.empty());
            }
        }
        QCOMPARE(copyKernel(4, 1).version, 1);
        QCOMPARE(copyKernel(4, 0).version, copyKernels(4).back().version);
    }

    void aForgetfulCopyIsCaught()
    {
        CopyKernel wrong = copyKernel(4, 1);
        wrong.run = &forgetful;
        QVERIFY(!checkCopy(wrong).passed());
    }

    /// Parts of a walk, one behind the other, are the walk.
    void slices()
    {
        const TensorView view = applyAll(*freshTensor({6, 5, 7}), *parseViews("permute(2,0,1)"))->back().view;
        const TensorWalk walk = walkOf(view, WalkOrder::LastFastest, 4);
        std::int64_t visit = 0;
        for (std::int64_t begin = 0; begin < walk.loops.back().count; begin += 3) {
            const TensorWalk part = sliceOf(walk, begin, std::min(begin + 3, walk.loops.back().count));
            for (std::int64_t i = 0; i < part.elements; ++i)
                QCOMPARE(part.address(i), walk.address(visit++));
        }
        QCOMPARE(visit, walk.elements);
    }

    void measuresWhatIsPredicted_data()
    {
        QTest::addColumn<QString>("views");
        QTest::newRow("a transposed matrix") << "transpose(0,1)";
        QTest::newRow("contiguous") << "narrow(0,8,64)";
        QTest::newRow("overlapping windows") << "reshape(-1);unfold(0,8,4)";
    }

    void measuresWhatIsPredicted()
    {
        QFETCH(QString, views);
        const auto backend = makeHostBackend();
        const BackendDevice device = backend->devices().at(0);
        const Experiment& layout = **findExperiment("layout");
        const Parameters parameters = *resolve(
            layout.schema(), std::vector<std::string>{"shape=96,130", "reads=1,2", "views=" + views.toStdString()});
        Listener listener;
        const auto run = backend->measure(layout, device, parameters, listener);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const auto predicted = layout.predict(device.device, parameters);
        QVERIFY(predicted);
        for (const Figure& figure : predicted->figures) {
            const Figure* measured = findFigure(run->measurement.figures, figure.key);
            if (figure.key.ends_with("_misses")) { // simulated; measured where the processor counts those of L1
                QVERIFY(!measured || (figure.key == "l1_misses" && !measured->isCounted));
                continue;
            }
            QVERIFY2(measured, figure.key.c_str());
            QCOMPARE(measured->unit, figure.unit);
            if (figure.key.ends_with("_total") || figure.key == "view_time")
                QVERIFY2(measured->number() > 0 && measured->low, figure.key.c_str());
        }
        QCOMPARE(run->measurement.series.size(), predicted->series.size());
        for (std::size_t i = 0; i < predicted->series.size(); ++i)
            QCOMPARE(run->measurement.series[i].x.values, predicted->series[i].x.values);
    }

    void nothingToMeasure()
    {
        const auto backend = makeHostBackend();
        const Experiment& layout = **findExperiment("layout");
        Listener listener;
        const auto run = backend->measure(layout, backend->devices().at(0),
                                          *resolve(layout.schema(), std::vector<std::string>{"shape=0,4"}), listener);
        QVERIFY(!run);
        QCOMPARE(run.error().code, std::string("run.skipped"));
    }
};

QTEST_APPLESS_MAIN(TestLayoutKernels)
#include "tst_layout_kernels.moc"
