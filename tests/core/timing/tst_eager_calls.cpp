// SPDX-License-Identifier: Apache-2.0
// Calls of a network's layer against what PyTorch took for it: the table of eager_calls.h, whose three numbers a pass
// have to give all networks.
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/timing/eager_calls.h"
#include "core/timing/operator_cost.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

/// Calls of every operator that runs or is a view.
double callsOf(const Graph& graph, EagerPass pass)
{
    double calls = 0;
    for (const Operator& op : graph.operators) {
        const double kernels = (pass == EagerPass::Backward ? backwardCost(graph, op) : forwardCost(graph, op)).kernels;
        calls += eagerCalls(op, pass, kernels);
    }
    return calls;
}

Graph networkOf(const ModelDescription& model, bool trains)
{
    BuildOptions options;
    options.attention = AttentionKernel::Eager;
    options.gradient = trains;
    options.dropout = 0;
    options.sequence = 4;
    return buildNetwork(model, options).value();
}

/// Of one layer: what more layers add. Stage 3 of ResNet-101 has 17 blocks more than ResNet-50's.
double layerCalls(const char* name, EagerPass pass)
{
    const bool trains = pass != EagerPass::WithoutAutograd;
    if (QByteArray(name) == "resnet50")
        return (callsOf(networkOf(*readModel("resnet101"), trains), pass)
                - callsOf(networkOf(*readModel("resnet50"), trains), pass))
            / 17;
    ModelDescription few = *readModel(name), many = few;
    few.layers = 4;
    many.layers = 16;
    return (callsOf(networkOf(many, trains), pass) - callsOf(networkOf(few, trains), pass)) / 12;
}

} // namespace

class TestEagerCalls : public QObject
{
    Q_OBJECT

private slots:
    void aLayerTakesWhatWasMeasured_data()
    {
        QTest::addColumn<QByteArray>("model");
        QTest::addColumn<double>("without"); // µs of one layer
        QTest::addColumn<double>("forward");
        QTest::addColumn<double>("backward");
        QTest::newRow("LLaMA") << QByteArray("llama-2-7b") << 276.0 << 419.0 << 586.0;
        QTest::newRow("ViT") << QByteArray("vit-b-16") << 208.0 << 289.0 << 391.0;
        QTest::newRow("BERT") << QByteArray("bert-base-uncased") << 252.0 << 346.0 << 436.0;
        QTest::newRow("GPT-2") << QByteArray("gpt2") << 227.0 << 325.0 << 382.0;
        QTest::newRow("ResNet") << QByteArray("resnet50") << 114.0 << 145.0 << 126.0;
    }
    void aLayerTakesWhatWasMeasured()
    {
        QFETCH(QByteArray, model);
        QFETCH(double, without);
        QFETCH(double, forward);
        QFETCH(double, backward);
        constexpr double call = 7.41, callWithAutograd = 10.83; // µs, there
        const auto check = [&](EagerPass pass, double each, double measured) {
            const double calls = layerCalls(model, pass);
            QVERIFY2(std::fabs(calls * each / measured - 1) < 0.15,
                     qPrintable(QString("%1: %2 µs of %3").arg(int(pass)).arg(calls * each).arg(measured)));
        };
        check(EagerPass::WithoutAutograd, call, without);
        check(EagerPass::Forward, callWithAutograd, forward);
        check(EagerPass::Backward, callWithAutograd, backward);
    }

    /// Operators with a kernel that a layer of transformers 5.24 called of PyTorch 2.15 in FP32, without its views
    /// (TorchDispatchMode: three layers less two).
    void aLayerHasTheKernelsThatPyTorchCalls_data()
    {
        QTest::addColumn<QByteArray>("model");
        QTest::addColumn<double>("counted");
        QTest::newRow("LLaMA") << QByteArray("llama-2-7b") << 39.0;
        QTest::newRow("BERT") << QByteArray("bert-base-uncased") << 16.0;
        QTest::newRow("GPT-2") << QByteArray("gpt2") << 22.0;
        QTest::newRow("ViT") << QByteArray("vit-b-16") << 16.0;
    }
    void aLayerHasTheKernelsThatPyTorchCalls()
    {
        QFETCH(QByteArray, model);
        QFETCH(double, counted);
        const auto kernelsOf = [&](std::int64_t layers) {
            ModelDescription description = *readModel(model.constData());
            description.layers = layers;
            BuildOptions options;
            options.attention = AttentionKernel::Eager;
            options.gradient = false;
            options.writtenOut.activation = true;
            options.sequence = 4;
            double kernels = 0;
            const Graph graph = buildNetwork(description, options).value();
            for (const Operator& op : graph.operators)
                kernels += forwardCost(graph, op).kernels;
            return kernels;
        };
        QVERIFY(std::fabs(kernelsOf(3) - kernelsOf(2) - counted) <= 1); // GPT-2's mask is another kernel here
    }

    void whatHasNoGradientIsNotCalledBackward()
    {
        Operator view{.kind = OperatorKind::View};
        QCOMPARE(eagerCalls(view, EagerPass::Backward, 0), 0.0);
        view.hasGradient = true;
        QVERIFY(eagerCalls(view, EagerPass::Backward, 0) > eagerCalls(view, EagerPass::Forward, 0));
        QCOMPARE(eagerCalls(Operator{.kind = OperatorKind::AllReduce}, EagerPass::Forward, 1), 0.0);
    }
};

QTEST_GUILESS_MAIN(TestEagerCalls)
#include "tst_eager_calls.moc"
