// SPDX-License-Identifier: Apache-2.0
// The pace of products is that of the graph's largest product, and of none where there is none.
#include "kernels/host/placement/product_pace.h"

#include "tests/support/devices.h"
#include "tests/support/host_fakes.h"

#include <QtTest>

using namespace memscape;
using namespace memscape::host;

namespace {

/// Every operator takes a millisecond.
class EvenSeconds final : public StepSeconds
{
public:
    double compute(const GraphNode&, Way) const override { return 1e-3; }
    double backward(const GraphNode&) const override { return 1e-3; }
    double update(const GraphNode&) const override { return 1e-3; }
    double copy(double, Lane) const override { return 1e-3; }
};

PlacementCase caseOf(const char* graph)
{
    PlacementCase asked;
    asked.graph = parseGraph(graph, 4).value();
    return asked;
}

} // namespace

class TestProductPace : public QObject
{
    Q_OBJECT

private slots:
    void theLargestProductIsSampled()
    {
        const Device device = test::twoCores("host");
        test::Listener listener;
        HostSession session(device, listener, test::steadyMachine({2e-3}));
        auto pace =
            ProductPace::prepare(session, productKernels().front(),
                                 caseOf("x: input 8 16; a: matmul 8 32 16 <- x; b: matmul 8 4 32 <- a"), EvenSeconds());
        QVERIFY(pace);
        QVERIFY((*pace)->take());
        const WorkSamples& samples = (*pace)->samples();
        QCOMPARE(samples.label, std::string("products of 8 × 32 × 16"));
        QCOMPARE(samples.predicted, 1e-3);
        QVERIFY(samples.seconds.size() >= 5);
        for (const double one : samples.seconds)
            QVERIFY(one > 0);
    }

    void aGraphWithoutProductsHasNone()
    {
        const Device device = test::twoCores("host");
        test::Listener listener;
        HostSession session(device, listener, test::steadyMachine({2e-3}));
        auto pace = ProductPace::prepare(session, productKernels().front(), caseOf("x: input 8 16; a: relu <- x"),
                                         EvenSeconds());
        QVERIFY(pace);
        QVERIFY((*pace)->take());
        QVERIFY((*pace)->samples().seconds.empty());
    }

    void itStopsWithTheRun()
    {
        const Device device = test::twoCores("host");
        test::Listener listener;
        HostSession session(device, listener, test::steadyMachine({2e-3}));
        auto pace = ProductPace::prepare(session, productKernels().front(),
                                         caseOf("x: input 8 16; a: matmul 8 32 16 <- x"), EvenSeconds());
        QVERIFY(pace);
        listener.stop = true;
        const auto taken = (*pace)->take();
        QVERIFY(!taken);
        QCOMPARE(taken.error().code, std::string("run.cancelled"));
    }
};

QTEST_GUILESS_MAIN(TestProductPace)
#include "tst_product_pace.moc"
