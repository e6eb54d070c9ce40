// SPDX-License-Identifier: Apache-2.0
// A simulated step under ZeRO and offload, against ZeRO's closed forms (Rajbhandari et al. 2020,
// Table 1) at its quiet moments, and against what full sharding means: one layer's whole weights
// and whole gradients at a time.
#include "core/network/network.h"
#include "core/training/communication.h"
#include "core/training/optimizer_state.h"
#include "core/training/sharding.h"
#include "core/training/simulation.h"
#include "core/training/textbook.h"

#include <QtTest>

#include <map>

using namespace memscape;

namespace {

ModelDescription smallDecoder()
{
    ModelDescription model;
    model.name = "small";
    model.architecture = "llama";
    model.layers = 5;
    model.hidden = 96;
    model.heads = model.kvHeads = 4;
    model.headDim = 24;
    model.ffn = 250;
    model.vocab = 501;
    model.maxPositions = 64;
    return model;
}

TrainingSetup setupOf(int stage, int degree)
{
    TrainingSetup setup;
    setup.build.batch = 2;
    setup.build.sequence = 16;
    setup.build.weights = DType::BFloat16;
    setup.step.plan.precision = Precision::Bf16Mixed;
    setup.step.plan.zeroStage = stage;
    setup.step.plan.dataParallel = degree;
    return setup;
}

Simulation simulated(const TrainingSetup& setup)
{
    auto made = simulate(smallDecoder(), setup);
    if (!made)
        qFatal("%s", made.error().text().c_str());
    return std::move(*made);
}

/// Bytes of each category after the last event of a phase.
std::map<Category, std::int64_t> liveAfter(const Trace& trace, Phase phase)
{
    std::map<Category, std::int64_t> live, found;
    for (const Event& event : trace.events()) {
        live[event.category] += event.change();
        if (event.phase == phase)
            found = live;
    }
    return found;
}

std::int64_t bufferBytes(const Graph& graph)
{
    std::int64_t bytes = 0;
    for (const NamedTensor& buffer : graph.buffers)
        bytes += graph.storageOf(buffer.tensor).bytes;
    return bytes;
}

/// Whole bytes of the weights of one of the equal layers, in bf16.
std::int64_t layerBytes(const Simulation& simulation)
{
    std::int64_t bytes = 0;
    for (const ParameterTensor& parameter : simulation.parameters())
        if (parameter.name.find("layers.0.") != std::string::npos)
            bytes += 2 * parameter.elements;
    return bytes;
}

} // namespace

class TestShardedStep : public QObject
{
    Q_OBJECT

private slots:
    void quietMomentsAreThoseOfZero_data()
    {
        QTest::addColumn<int>("stage");
        QTest::addColumn<int>("degree");
        for (int stage = 0; stage <= 3; ++stage)
            for (const int degree : {1, 2, 7, 64})
                QTest::addRow("stage %d over %d", stage, degree) << stage << degree;
    }
    void quietMomentsAreThoseOfZero()
    {
        QFETCH(int, stage);
        QFETCH(int, degree);
        for (const int batches : {1, 3}) {
            TrainingSetup setup = setupOf(stage, degree);
            setup.step.plan.accumulation = batches;
            const Simulation made = simulated(setup);
            auto live = liveAfter(made.trace, Phase::Backward);
            const std::int64_t weights = live[Category::Weights] - bufferBytes(*made.graph);
            QCOMPARE(weights, made.kept.weights);
            QCOMPARE(live[Category::Gradients], made.kept.gradients);
            QCOMPARE(live[Category::MasterWeights], made.kept.master);
            QCOMPARE(live[Category::OptimizerState], made.kept.state);
            QCOMPARE(live[Category::Temporary], 0);
            const double closed = textbook::zeroBytes(double(elementCount(made.parameters())), degree, stage);
            const double padding = 16.0 * double(made.parameters().size());
            QVERIFY(double(made.kept.device()) >= closed - 0.5);
            QVERIFY(double(made.kept.device()) <= closed + padding);
            live = liveAfter(made.trace, Phase::ZeroGrad);
            QCOMPARE(live[Category::Gradients], 0);
        }
    }

    // Full sharding: a layer is whole alone, forward and backward, and so are its gradients.
    void oneLayerIsWholeAtATime_data()
    {
        QTest::addColumn<int>("checkpointing");
        QTest::addColumn<int>("gathers");
        QTest::newRow("kept") << int(Checkpointing::None) << 2;
        QTest::newRow("each layer again") << int(Checkpointing::Layers) << 2;
        // √5 ≈ 2 layers a segment: the earlier one of each pair is gathered for its recomputation
        QTest::newRow("groups again") << int(Checkpointing::SquareRoot) << 3;
    }
    void oneLayerIsWholeAtATime()
    {
        QFETCH(int, checkpointing);
        QFETCH(int, gathers);
        TrainingSetup setup = setupOf(3, 8);
        setup.step.checkpointing.kind = Checkpointing(checkpointing);
        const Simulation made = simulated(setup);
        const std::int64_t layer = layerBytes(made), head = 2 * 501 * 96;
        const std::int64_t bucket = reduceBufferBytes(made.parameters(), setup.step.plan);
        QCOMPARE(highestBytes(made.trace, Category::Communication), bucket + std::max(layer, head));
        int count = 0;
        for (const Event& event : made.trace.events())
            count +=
                event.isAllocation() && event.bytes == layer && made.trace.modules()[event.module] == "model.layers.0";
        QCOMPARE(count, gathers);
        std::int64_t held = 0, highest = 0;
        for (const Event& event : made.trace.events()) {
            if (event.category != Category::Communication || event.bytes == bucket)
                continue;
            held += event.change();
            highest = std::max(highest, held);
        }
        QCOMPARE(highest, std::max(layer, head));
        QCOMPARE(held, 0);
    }

    // 4 and 2 bytes a parameter: half gradients added into an fp32 sum, which is what stays.
    void gradientsMayBeSummedInFloat()
    {
        for (const int stage : {0, 1, 2, 3}) {
            TrainingSetup setup = setupOf(stage, 4);
            setup.step.plan.fp32Gradients = true;
            setup.step.plan.accumulation = 2;
            const Simulation made = simulated(setup);
            QCOMPARE(liveAfter(made.trace, Phase::Backward)[Category::Gradients], made.kept.gradients);
            TrainingSetup half = setup;
            half.step.plan.fp32Gradients = false;
            QCOMPARE(made.kept.gradients, 2 * simulated(half).kept.gradients);
        }
    }

    void theHostKeepsWhatIsOffloaded()
    {
        for (const bool clips : {false, true}) {
            TrainingSetup setup = setupOf(0, 1);
            setup.step.plan.offload = Offload::Optimizer;
            setup.step.plan.clipsGradients = clips;
            const Simulation made = simulated(setup);
            QCOMPARE(highestBytes(made.trace, Category::MasterWeights), 0);
            QCOMPARE(highestBytes(made.trace, Category::OptimizerState), 0);
            for (const Event& event : made.trace.events())
                QVERIFY(event.phase != Phase::Optimizer);
            QCOMPARE(made.kept.host, 12 * elementCount(made.parameters()));
        }
    }

    void weightsOnTheHostAreFetchedLayerByLayer()
    {
        TrainingSetup setup = setupOf(3, 1);
        setup.step.plan.offload = Offload::Parameters;
        const Simulation made = simulated(setup);
        QCOMPARE(highestBytes(made.trace, Category::Weights), bufferBytes(*made.graph));
        QCOMPARE(highestBytes(made.trace, Category::Communication),
                 std::max<std::int64_t>(layerBytes(made), 2 * 501 * 96));
        QCOMPARE(made.kept.host, 16 * elementCount(made.parameters()));
        QCOMPARE(liveAfter(made.trace, Phase::Backward)[Category::Gradients], 0);
    }

    // Ren et al. 2021, section 3: the device keeps the 16-bit weights, 2 Ψ; gradients leave it layer by layer.
    void zeroOffloadStreamsTheGradients()
    {
        TrainingSetup setup = setupOf(0, 1);
        setup.step.plan.offload = Offload::Optimizer;
        const Simulation kept = simulated(setup);
        setup.step.plan.offload = Offload::Gradients;
        for (const int accumulation : {1, 3}) {
            setup.step.plan.accumulation = accumulation;
            const Simulation streamed = simulated(setup);
            const std::int64_t elements = elementCount(streamed.parameters());
            QCOMPARE(streamed.kept.device(), 2 * elements);
            QCOMPARE(streamed.kept.host, 14 * elements);
            QCOMPARE(liveAfter(streamed.trace, Phase::Backward)[Category::Gradients], 0);
            QVERIFY(streamed.trace.peakBytes() < kept.trace.peakBytes());
            QCOMPARE(sentBytes(offloadCommunication(streamed.parameters(), setup.step.plan)),
                     2.0 * double(elements) * (accumulation + 1));
        }
    }

    // What is cut further is never larger.
    void stagesNest()
    {
        std::int64_t before = INT64_MAX;
        for (int stage = 0; stage <= 3; ++stage) {
            const Simulation made = simulated(setupOf(stage, 8));
            QVERIFY2(made.trace.peakBytes() < before, qPrintable(QString::number(stage)));
            before = made.trace.peakBytes();
        }
    }
};

QTEST_APPLESS_MAIN(TestShardedStep)
#include "tst_sharded_step.moc"
