// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters in a training step: what it keeps and makes beside frozen, 8-bit and 4-bit weights.
#include "core/network/network.h"
#include "core/training/lora.h"
#include "core/training/simulation.h"

#include <QtTest>

using namespace memscape;

namespace {

ModelDescription model(const char* architecture)
{
    ModelDescription made;
    made.name = "small";
    made.architecture = architecture;
    made.layers = 3;
    made.hidden = 128;
    made.heads = made.kvHeads = 4;
    made.headDim = 32;
    made.ffn = 384;
    made.vocab = 1000;
    made.maxPositions = 64;
    return made;
}

TrainingSetup adapterSetup(bool isQuantized)
{
    TrainingSetup setup;
    setup.build.batch = 2;
    setup.build.sequence = 32;
    setup.build.weights = DType::BFloat16;
    setup.build.adapters = AdapterOptions{4, {}, isQuantized ? BaseForm::NormalFloat4Double : BaseForm::AsWeights};
    setup.step.plan.precision = Precision::Bf16Mixed;
    setup.step.plan.lora = LoraPlan{4};
    return setup;
}

Simulation simulated(const ModelDescription& described, const TrainingSetup& setup)
{
    auto made = simulate(described, setup);
    if (!made)
        qFatal("%s", made.error().text().c_str());
    return std::move(*made);
}

/// How many blocks of exactly these bytes a phase makes in a module.
int countOf(const Trace& trace, Phase phase, const char* module, std::int64_t bytes)
{
    int count = 0;
    for (const Event& event : trace.events())
        count += event.isAllocation() && event.phase == phase && event.bytes == bytes
            && trace.modules()[event.module] == module;
    return count;
}

} // namespace

class TestAdapterStep : public QObject
{
    Q_OBJECT

private slots:
    // bitsandbytes before 0.44 has the input of a 4-bit layer as an attribute of its node. A reentrant checkpoint runs
    // its layer in a backward of its own, whose nodes end with it: attributes of one layer are there at once. Else they
    // all stay for as long as the loss is named.
    void attributesEndWithANestedBackward()
    {
        const auto kept = [](std::int64_t layers, bool isReentrant) {
            ModelDescription described = model("llama");
            described.layers = layers;
            TrainingSetup setup = adapterSetup(true);
            setup.step.checkpointing = {Checkpointing::Layers, 1, isReentrant};
            const std::int64_t without = simulated(described, setup).allocatedBytes();
            setup.build.adapters->keepsInputs = true;
            return simulated(described, setup).allocatedBytes() - without;
        };
        QVERIFY(kept(3, true) > 0);
        QCOMPARE(kept(6, true), kept(3, true));
        QVERIFY(2 * kept(6, false) > 3 * kept(3, false));
    }

    // Adapters in fp32 beside half weights have gradients and moments in fp32 and no master copy; those in the weights'
    // type have what the recipe says.
    void keepsOnlyTheStateOfAdapters_data()
    {
        QTest::addColumn<bool>("isQuantized");
        QTest::addColumn<bool>("isWide");
        QTest::newRow("beside half weights") << false << false;
        QTest::newRow("beside 4 bits") << true << false;
        QTest::newRow("in fp32 beside half weights") << false << true;
        QTest::newRow("in fp32 beside 4 bits") << true << true;
    }
    void keepsOnlyTheStateOfAdapters()
    {
        QFETCH(bool, isQuantized);
        QFETCH(bool, isWide);
        TrainingSetup setup = adapterSetup(isQuantized);
        if (isWide)
            setup.build.adapters->weights = DType::Float32;
        const Simulation made = simulated(model("llama"), setup);
        const std::int64_t trained = trainedCount(made.parameters());
        QCOMPARE(highestBytes(made.trace, Category::Gradients), made.kept.gradients);
        QCOMPARE(highestBytes(made.trace, Category::OptimizerState), made.kept.state);
        QCOMPARE(made.kept.gradients, (isWide ? 4 : 2) * trained);
        QCOMPARE(made.kept.state, 8 * trained);
        QCOMPARE(made.kept.master, isWide ? 0 : 4 * trained);
        QCOMPARE(highestBytes(made.trace, Category::MasterWeights), made.kept.master);
        QCOMPARE(highestBytes(made.trace, Category::Weights), made.kept.weights);
    }

    // ZeRO cuts what is trained into one flat piece for each type.
    void shardsAdaptersAndSavedModules()
    {
        TrainingSetup setup = adapterSetup(false);
        setup.build.adapters->weights = DType::Float32;
        setup.build.adapters->saved = {"lm_head"};
        setup.step.plan.zeroStage = 1;
        setup.step.plan.dataParallel = 4;
        const Simulation made = simulated(model("llama"), setup);
        const std::int64_t head = 1000 * 128, thin = trainedCount(made.parameters()) - head;
        QCOMPARE(made.kept.state, 8 * (head / 4) + 8 * (thin / 4));
        QCOMPARE(made.kept.master, 4 * (head / 4));
        QCOMPARE(highestBytes(made.trace, Category::OptimizerState), made.kept.state);
    }

    // A matrix in 8 bits is half again for the gradient of x alone; its input goes through fp16 and a byte.
    void eightBitsAreDequantizedInBackward()
    {
        const std::int64_t gate = 384 * 128, tokens = 2 * 16;
        const char* const module = "model.layers.1.mlp.gate_proj";
        TrainingSetup setup = adapterSetup(false);
        setup.build.sequence = 16;
        setup.build.adapters->base = BaseForm::Int8;
        const Simulation made = simulated(model("llama"), setup);
        QCOMPARE(countOf(made.trace, Phase::Forward, module, 2 * gate), 0);
        QCOMPARE(countOf(made.trace, Phase::Backward, module, 2 * gate), 1);
        QCOMPARE(countOf(made.trace, Phase::Setup, module, gate + 4 * 384), 1);
        QCOMPARE(countOf(made.trace, Phase::Forward, module, tokens * 128), 1);     // codes of x
        QCOMPARE(countOf(made.trace, Phase::Forward, module, 4 * tokens * 384), 1); // sums in int32
    }

    // The identity through A and B, and the sum with W, are as large as W, and die before the next layer.
    void doraMakesMatricesAsLargeAsItsWeight()
    {
        TrainingSetup setup = adapterSetup(false);
        const Simulation plain = simulated(model("llama"), setup);
        setup.build.adapters->isDecomposed = true;
        const Simulation made = simulated(model("llama"), setup);
        const char* const module = "model.layers.1.mlp.gate_proj";
        const std::int64_t gate = 2 * 384 * 128, identity = 2 * 128 * 128;
        QCOMPARE(countOf(plain.trace, Phase::Forward, module, gate), 0);
        QCOMPARE(countOf(made.trace, Phase::Forward, module, gate), 3); // B A, its multiple, the sum with W
        QCOMPARE(countOf(made.trace, Phase::Forward, module, identity), 1);
        QCOMPARE(made.kept.gradients - plain.kept.gradients, 2 * 3 * (4 * 128 + 2 * 384 + 128));
    }

    // A matrix in 4 bits is half again for its product, and once more for the gradient of x.
    void dequantizesForTheProductAndItsBackward()
    {
        const std::int64_t gate = 2 * 384 * 128;
        const char* const module = "model.layers.1.mlp.gate_proj";
        const Simulation made = simulated(model("llama"), adapterSetup(true));
        QCOMPARE(countOf(made.trace, Phase::Forward, module, gate), 1);
        QCOMPARE(countOf(made.trace, Phase::Backward, module, gate), 1);
        QCOMPARE(countOf(made.trace, Phase::Setup, module, normalFloatBytes(gate / 2)), 1);
        const Simulation half = simulated(model("llama"), adapterSetup(false));
        QCOMPARE(countOf(half.trace, Phase::Forward, module, gate), 0);
        QCOMPARE(countOf(half.trace, Phase::Setup, module, gate), 1);
        QVERIFY(made.trace.peakBytes() < half.trace.peakBytes());
    }

    // Of 3 layers with adapters on every linear layer, in bf16: the norm's results in front of q, k, v and of gate, up,
    // attention's output and the gated activation go into MatMul4Bit. A dropout before A leaves the node as their only
    // holder, but for attention's output; the first norm's result, behind frozen embeddings alone, needs no gradient.
    void oldBitsandbytesKeepsInputsAsLongAsTheLoss()
    {
        const std::int64_t tokens = 2 * 32, norm = 2 * tokens * 128, gated = 2 * tokens * 384;
        TrainingSetup setup = adapterSetup(true);
        setup.build.attention = AttentionKernel::Flash;
        setup.build.adapters->dropout = 0.05;
        const auto liveBehindBackward = [&](int microBatches) {
            setup.step.plan.accumulation = microBatches;
            const Simulation made = simulated(model("llama"), setup);
            std::int64_t live = 0;
            for (const Event& event : made.trace.events())
                if (event.category == Category::Activations && event.phase <= Phase::Backward)
                    live += event.change();
            return live;
        };
        const auto atEndOfForward = [&] {
            setup.step.plan.accumulation = 1;
            const Simulation made = simulated(model("llama"), setup);
            std::int64_t live = 0;
            for (const Event& event : made.trace.events())
                if (event.category == Category::Activations && event.phase <= Phase::Forward)
                    live += event.change();
            return live;
        };
        const std::int64_t newer = atEndOfForward(), newerBehind = liveBehindBackward(1);
        setup.build.adapters->keepsInputs = true;
        QCOMPARE(atEndOfForward() - newer, 2 * norm + 3 * norm + 3 * gated);
        const std::int64_t nodes = 2 * norm + 3 * norm + 3 * norm + 3 * gated; // attention's outputs, too
        QCOMPARE(liveBehindBackward(1) - newerBehind, nodes);
        QCOMPARE(liveBehindBackward(3) - newerBehind, nodes); // those of one micro-batch
        setup.step.checkpointing = {Checkpointing::Layers};
        setup.build.adapters->keepsInputs = false;
        const std::int64_t checkpointed = atEndOfForward();
        setup.build.adapters->keepsInputs = true;
        QCOMPARE(atEndOfForward() - checkpointed, nodes); // its hooks don't see them
        QCOMPARE(liveBehindBackward(1) - newerBehind, nodes);
        setup.step.checkpointing.isReentrant = true;
        QCOMPARE(atEndOfForward(), checkpointed);
    }

    void theHeadIsQuantizedWhereAsked()
    {
        TrainingSetup setup = adapterSetup(true);
        const Simulation as = simulated(model("llama"), setup);
        setup.build.adapters->quantizesHead = true;
        const Simulation quantized = simulated(model("llama"), setup);
        QCOMPARE(as.kept.weights - quantized.kept.weights, 2 * 1000 * 128 - normalFloatBytes(1000 * 128));
    }

    void refusesWhatCannotBeAdapted()
    {
        TrainingSetup setup = adapterSetup(false);
        setup.build.adapters->targets = {"no_such_layer"};
        QCOMPARE(simulate(model("llama"), setup).error().code, std::string("plan.lora"));
        setup = adapterSetup(false);
        setup.build.adapters->rank = 129;
        QCOMPARE(simulate(model("llama"), setup).error().code, std::string("plan.range"));
    }

    // Transformer Engine packs its input in one byte where a bf16 product packs two.
    void fp8ProductsPackOneByte()
    {
        BuildOptions options;
        options.batch = 1;
        options.sequence = 64;
        options.weights = DType::BFloat16;
        options.loss = false;
        options.attention = AttentionKernel::Flash;
        const auto savedIn = [&](bool isFp8) {
            options.isProductInFp8 = isFp8;
            const auto graph = buildNetwork(model("llama"), options);
            return graph ? savedBytes(*graph).activations : -1;
        };
        // Of each layer: the inputs of q, k, v and of gate, up, and of o and down, 2 bytes an
        // element. The output of attention and its norms' products are packed by others, too: they
        // stay, beside their copies. gate(x) · up(x) and the norms' results become one byte.
        const std::int64_t tokens = 64, hidden = 128, ffn = 384;
        const std::int64_t halfOnly = 2 * 2 * tokens * hidden + 2 * tokens * ffn;
        const std::int64_t copies = 6 * tokens * hidden + tokens * ffn; // q k v o gate up, down
        QCOMPARE(savedIn(true) - savedIn(false), 3 * (copies - halfOnly));
    }
};

QTEST_APPLESS_MAIN(TestAdapterStep)
#include "tst_adapter_step.moc"
