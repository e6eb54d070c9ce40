// SPDX-License-Identifier: Apache-2.0
// Collectives of sequence parallelism in pieces beside their products: short ones hide whole, long ones behind all
// pieces but one, and gradients of what several products read are waited for.
#include "core/device/catalogue.h"
#include "core/network/families/gpt2.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/timing/micro_pipeline.h"
#include "core/timing/reached_step.h"

#include <QtTest>

#include <algorithm>

using namespace memscape;

namespace {

BuildOptions sharedBy(int ranks)
{
    BuildOptions options;
    options.weights = DType::BFloat16;
    options.batch = 2;
    options.sequence = 2048;
    options.attention = AttentionKernel::Flash;
    options.tensorParallel = ranks;
    options.sequenceParallel = ranks > 1;
    return options;
}

Plan planOf(int ranks, bool isInPieces)
{
    Plan plan;
    plan.precision = Precision::Bf16;
    plan.tensorParallel = ranks;
    plan.sequenceParallel = true;
    plan.asyncTensorParallel = isInPieces;
    return plan;
}

} // namespace

class TestMicroPipeline : public QObject
{
    Q_OBJECT

    Device m_h100 = findDevice("nvidia-h100-sxm").value();

    StepTime timeOf(const Graph& graph, const Plan& plan) const
    {
        Trace trace;
        return reachedStepTime(graph, parameterTensors(graph, trace), plan, m_h100, 0).value();
    }

    /// Hidden s where every collective takes so long.
    double hiddenOf(const Graph& graph, const Plan& plan, double each) const
    {
        const DeviceRates rates = deviceRates(m_h100).value();
        const ReachedTiming timing(m_h100, plan, 0);
        StepTime unused;
        const OperatorClock clock(rates, timing.options(), unused);
        const OperatorRuns runs(graph, plan, clock, timing.options());
        return hiddenByPieces(graph, plan, runs, {}, [each](const Collective&) { return each; });
    }

    static int count(const Graph& graph, OperatorKind kind)
    {
        return int(std::count_if(graph.operators.begin(), graph.operators.end(),
                                 [kind](const Operator& op) { return op.kind == kind; }));
    }

private slots:
    /// Two layers of GPT-2: one product reads each gathered tensor, so that both passes hide all but what the embedding
    /// scatters.
    void shortOnesHideWhole()
    {
        const Graph graph = gpt2({1024, 16, 2, 0, 50304, 2048}, sharedBy(4)).value();
        const int gathers = count(graph, OperatorKind::AllGather), scatters = count(graph, OperatorKind::ReduceScatter);
        QVERIFY(gathers >= 4 && scatters >= 4);
        const double each = 1e-9;
        const double hidden = hiddenOf(graph, planOf(4, true), each) / each;
        QVERIFY2(hidden >= 2 * (4 + 4) && hidden <= 2 * (gathers + scatters), qPrintable(QString::number(hidden)));
        QCOMPARE(hiddenOf(graph, planOf(4, false), each), 0.0);
    }

    /// LLaMA: three products read what attention's norm gathers, two what the other's does; their gradients' sums wait.
    void sumsOfGradientsAreWaitedFor()
    {
        const ModelDescription model = readModel("smollm2-1.7b").value();
        const Graph graph = buildNetwork(model, sharedBy(4)).value();
        const double each = 1e-9, layers = double(model.layers);
        const double hidden = hiddenOf(graph, planOf(4, true), each) / each;
        // Forward 2 + 2, backward the gathered gradients of 2 scatters; the head's gather, if there is one, both ways.
        QVERIFY2(hidden >= 6 * layers && hidden <= 6 * layers + 2, qPrintable(QString::number(hidden)));
    }

    /// However long a collective takes: three of four pieces of its products.
    void longOnesHideBehindAllPiecesButOne()
    {
        const Graph graph = gpt2({1024, 16, 2, 0, 50304, 2048}, sharedBy(4)).value();
        const double hidden = hiddenOf(graph, planOf(4, true), 1);
        const StepTime time = timeOf(graph, planOf(4, true));
        QVERIFY(hidden > 0 && hidden < 0.75 * (time.forward + time.backward));
        QCOMPARE(hiddenOf(graph, planOf(4, true), 2), hidden);
    }

    void theStepWaitsForLess()
    {
        const Graph graph = gpt2({4096, 32, 2, 0, 50304, 2048}, sharedBy(8)).value();
        const StepTime waiting = timeOf(graph, planOf(8, false)), hiding = timeOf(graph, planOf(8, true));
        QVERIFY(hiding.exposed < 0.7 * waiting.exposed);
        QCOMPARE(hiding.communication, waiting.communication);
        QCOMPARE(waiting.total - hiding.total, waiting.exposed - hiding.exposed);
    }

    void itCutsSequencesAlone()
    {
        Plan plan = planOf(4, true);
        QVERIFY(checkPlan(plan));
        plan.sequenceParallel = false;
        QCOMPARE(checkPlan(plan).error().place, std::string("async_tensor_parallel"));
    }
};

QTEST_APPLESS_MAIN(TestMicroPipeline)
#include "tst_micro_pipeline.moc"
