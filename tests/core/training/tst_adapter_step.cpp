// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters in recorded networks: what a chain of linear layers packs for backward against
// PyTorch itself (tests/data/pytorch/lora_saved.json), and what a whole step keeps and makes beside
// frozen and 4-bit weights.
#include "core/network/network.h"
#include "core/training/lora.h"
#include "core/training/simulation.h"
#include "tests/support/pytorch_data.h"

#include <QtTest>

using namespace memscape;

namespace {

const QJsonObject& measured()
{
    static const QJsonObject data = pytorchData("lora_saved.json");
    return data;
}

ModelDescription measuredChain()
{
    ModelDescription model;
    model.name = "chain";
    model.family = Family::Mlp;
    model.activation = ActivationKind::Gelu;
    model.biases.feedForward = true;
    for (const QJsonValue& size : measured()["sizes"].toArray())
        model.mlpSizes.push_back(size.toInteger());
    return model;
}

BuildOptions optionsOf(const QJsonObject& one)
{
    BuildOptions options;
    options.batch = measured()["batch"].toInteger();
    options.weights = one["weights"] == "bfloat16" ? DType::BFloat16 : DType::Float32;
    if (one["autocast"].toBool())
        options.autocast = DType::BFloat16;
    options.loss = false;
    options.adapters = AdapterOptions{measured()["rank"].toInteger(), {}, false};
    for (const QJsonValue& target : one["targets"].toArray())
        options.adapters->targets.push_back(target.toString().toStdString());
    return options;
}

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
    setup.build.adapters = AdapterOptions{4, {}, isQuantized};
    setup.step.plan.precision = Precision::Bf16Mixed;
    setup.step.plan.lora = LoraPlan{4, {}, isQuantized};
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
    void packsWhatPyTorchPacks_data()
    {
        QTest::addColumn<QJsonObject>("one");
        const QJsonArray cases = measured()["cases"].toArray();
        QCOMPARE(cases.size(), 12);
        for (const QJsonValue& value : cases) {
            const QJsonObject one = value.toObject();
            QTest::addRow("%s autocast %d, %d targets, first %s", qPrintable(one["weights"].toString()),
                          one["autocast"].toBool(), int(one["targets"].toArray().size()),
                          qPrintable(one["targets"][0].toString()))
                << one;
        }
    }
    void packsWhatPyTorchPacks()
    {
        QFETCH(QJsonObject, one);
        const auto graph = buildNetwork(measuredChain(), optionsOf(one));
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        const SavedBytes saved = savedBytes(*graph);
        QCOMPARE(saved.parameters, one["parameters"].toInteger());
        QCOMPARE(saved.inputs, one["inputs"].toInteger());
        QCOMPARE(saved.activations + saved.weightCasts, one["activations"].toInteger());
        std::int64_t gradients = 0;
        for (const NamedTensor& parameter : graph->parameters)
            gradients += parameter.isTrained ? graph->storageOf(parameter.tensor).bytes : 0;
        QCOMPARE(gradients, one["gradients"].toInteger());
    }

    // The recorded adapters are those that withAdapters() adds to the model's matrices.
    void recordsTheAdaptersOfThePlan_data()
    {
        QTest::addColumn<QString>("architecture");
        for (const char* name : {"llama", "gpt2", "from-scratch", "gpt_neox", "phi3"})
            QTest::newRow(name) << name;
    }
    void recordsTheAdaptersOfThePlan()
    {
        QFETCH(QString, architecture);
        const ModelDescription described = model(qPrintable(architecture));
        TrainingSetup plain = adapterSetup(false), adapted = adapterSetup(false);
        plain.build.adapters.reset();
        plain.step.plan.lora.reset();
        const Simulation whole = simulated(described, plain), thin = simulated(described, adapted);
        const auto wanted = withAdapters(whole.parameters(), *adapted.step.plan.lora);
        QVERIFY(wanted);
        QCOMPARE(elementCount(thin.parameters()), elementCount(*wanted));
        QCOMPARE(trainedCount(thin.parameters()), trainedCount(*wanted));
        for (const ParameterTensor& tensor : thin.parameters())
            QCOMPARE(tensor.isTrained, tensor.name.find("lora_") != std::string::npos);
    }

    void keepsOnlyTheStateOfAdapters()
    {
        for (const bool isQuantized : {false, true}) {
            const Simulation made = simulated(model("llama"), adapterSetup(isQuantized));
            QCOMPARE(highestBytes(made.trace, Category::Gradients), made.kept.gradients);
            QCOMPARE(highestBytes(made.trace, Category::OptimizerState), made.kept.state);
            QCOMPARE(made.kept.gradients, 2 * trainedCount(made.parameters()));
            QCOMPARE(made.kept.state, 8 * trainedCount(made.parameters()));
            QCOMPARE(highestBytes(made.trace, Category::Weights), made.kept.weights);
        }
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
