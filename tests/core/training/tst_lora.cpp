// SPDX-License-Identifier: Apache-2.0
// Networks with adapters against PEFT and bitsandbytes themselves (tests/data/pytorch/adapters.json): what is trained,
// what all parameters take, what is kept for backward, to the byte. And the counts that PEFT prints for Llama-2-7B, NF4
// against the 4.127 bits of the QLoRA paper, and the modules that are named wrongly.
#include "core/network/adapter_targets.h"
#include "core/network/model_config.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/training/lora.h"
#include "core/training/simulation.h"
#include "tests/support/pytorch_data.h"

#include <QtTest>

using namespace memscape;

namespace {

const QJsonObject& peftData()
{
    static const QJsonObject data = pytorchData("adapters.json");
    return data;
}

ModelDescription modelOfCase(const QJsonObject& one)
{
    QJsonObject config = one["config"].toObject();
    config["model_type"] = one["model_type"];
    const auto json = parseJson(QJsonDocument(config).toJson().toStdString());
    auto model = modelFromConfig(JsonReader(*json), "measured");
    if (!model)
        qFatal("%s", model.error().text().c_str());
    return *model;
}

std::vector<std::string> namesOf(const QJsonValue& value, const char* standard)
{
    std::vector<std::string> names;
    if (!value.isArray())
        return {value.toString(standard).toStdString()};
    for (const QJsonValue& name : value.toArray())
        names.push_back(name.toString().toStdString());
    return names;
}

AdapterKind kindOf(const QString& text)
{
    static const std::map<QString, AdapterKind> kinds{{"ia3", AdapterKind::Ia3},       {"vera", AdapterKind::Vera},
                                                      {"norms", AdapterKind::Norms},   {"prompt", AdapterKind::Prompt},
                                                      {"prefix", AdapterKind::Prefix}, {"", AdapterKind::LowRank}};
    return kinds.at(text);
}

BaseForm formOf(const QString& text)
{
    if (text == "int8")
        return BaseForm::Int8;
    return text == "nf4"       ? BaseForm::NormalFloat4
        : text == "nf4-double" ? BaseForm::NormalFloat4Double
                               : BaseForm::AsWeights;
}

BuildOptions optionsOfCase(const QJsonObject& one)
{
    BuildOptions options;
    options.batch = peftData()["batch"].toInteger();
    options.sequence = peftData()["sequence"].toInteger();
    options.loss = false;
    if (one["autocast"].toBool()) {
        options.autocast = DType::BFloat16;
        options.rules = EagerRules::onCpu(false, 1); // its autocast has lists of its own
    }
    options.rules.normStatisticsInFloat = false;
    options.rules.dropoutSavesNoise = true;
    const DType dtype = *dtypeFromText(one["dtype"].toString().toStdString());
    options.weights = one["prepared"].toBool() ? DType::Float32 : dtype;
    const QJsonObject lora = one["lora"].toObject();
    AdapterOptions adapters;
    adapters.kind = kindOf(one["kind"].toString());
    adapters.rank = peftData()["rank"].toInteger();
    adapters.virtualTokens = peftData()["virtual"].toInteger();
    adapters.targets = namesOf(lora["target_modules"], "default");
    if (lora.contains("modules_to_save"))
        adapters.saved = namesOf(lora["modules_to_save"], "");
    adapters.dropout = lora["lora_dropout"].toDouble(lora["vera_dropout"].toDouble());
    adapters.isDecomposed = lora["use_dora"].toBool();
    adapters.isDownFrozen = one["lora_fa"].toBool();
    adapters.base = formOf(one["base"].toString());
    if (adapters.isQuantized() && adapters.base != BaseForm::Int8)
        adapters.compute = *dtypeFromText(one["compute"].toString("bfloat16").toStdString());
    if (!one["as_weights"].toBool())
        adapters.weights = DType::Float32;
    options.adapters = adapters;
    return options;
}

Result<Graph> llama7b(const AdapterOptions& adapters)
{
    BuildOptions options;
    options.sequence = 8;
    options.weights = DType::BFloat16;
    options.adapters = adapters;
    return buildNetwork(*readModel("llama-2-7b"), options);
}

std::int64_t trainedElements(const Graph& graph)
{
    std::int64_t sum = 0;
    for (const NamedTensor& named : graph.parameters)
        sum += named.isTrained ? graph.layoutOf(named.tensor).elements() : 0;
    return sum;
}

} // namespace

class TestLora : public QObject
{
    Q_OBJECT

private slots:
    void keepsWhatPeftKeeps_data()
    {
        QTest::addColumn<QJsonObject>("one");
        const QJsonArray results = peftData()["results"].toArray();
        QCOMPARE(results.size(), 62);
        for (int i = 0; i < results.size(); ++i) {
            const QJsonObject one = results[i].toObject();
            QTest::addRow("%d %s %s %s autocast %d %s %s%s", i, qPrintable(one["kind"].toString("lora")),
                          qPrintable(one["model_type"].toString()), qPrintable(one["dtype"].toString()),
                          one["autocast"].toBool(),
                          QJsonDocument(one["lora"].toObject()).toJson(QJsonDocument::Compact).constData(),
                          qPrintable(one["base"].toString()), one["prepared"].toBool() ? " prepared" : "")
                << one;
        }
    }
    void keepsWhatPeftKeeps()
    {
        QFETCH(QJsonObject, one);
        const auto graph = buildNetwork(modelOfCase(one), optionsOfCase(one));
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        QCOMPARE(trainedElements(*graph), one["trained"].toInteger());
        QCOMPARE(graph->parameterBytes(), one["stored"].toInteger());
        std::int64_t gradients = 0;
        for (const NamedTensor& named : graph->parameters)
            gradients += named.isTrained ? graph->storageOf(named.tensor).bytes : 0;
        QCOMPARE(gradients, one["gradients"].toInteger());
        const SavedBytes saved = savedBytes(*graph);
        QCOMPARE(saved.activations + saved.weightCasts, one["activations"].toInteger() + one["kept"].toInteger());
        QCOMPARE(saved.buffers, one["buffers"].toInteger());
        QCOMPARE(saved.inputs, one["inputs"].toInteger());
        // What bitsandbytes keeps passes by the hooks; a recorded embedding packs its table, as that of PyTorch 1.13
        // did.
        const bool looksUp =
            one["kind"] == "prompt" || one["kind"] == "prefix" || one["lora"].toObject().contains("modules_to_save");
        if (one["base"].toString().isEmpty() && !looksUp)
            QCOMPARE(saved.parameters, one["parameters"].toInteger());
    }

    void countsOfPeft_data()
    {
        QTest::addColumn<QStringList>("targets");
        QTest::addColumn<int>("rank");
        QTest::addColumn<qint64>("trained");
        QTest::newRow("q, v, rank 8") << QStringList{"q_proj", "v_proj"} << 8 << qint64(4'194'304);
        QTest::newRow("the default, rank 16") << QStringList{"default"} << 16 << qint64(8'388'608);
        QTest::newRow("all linear, rank 16") << QStringList{"all-linear"} << 16 << qint64(39'976'960);
        QTest::newRow("attention, rank 16") << QStringList{"attention"} << 16 << qint64(16'777'216);
    }
    void countsOfPeft()
    {
        QFETCH(QStringList, targets);
        QFETCH(int, rank);
        QFETCH(qint64, trained);
        AdapterOptions adapters;
        adapters.rank = rank;
        for (const QString& target : targets)
            adapters.targets.push_back(target.toStdString());
        const auto graph = llama7b(adapters);
        QVERIFY(graph);
        QCOMPARE(trainedElements(*graph), trained);
        QCOMPARE(graph->parameterCount(), 6'738'415'616 + trained);
    }

    void namesOfAdapters()
    {
        const auto graph = llama7b({.rank = 4, .targets = {"self_attn.v_proj"}});
        QVERIFY(graph);
        Trace trace;
        const auto parameters = parameterTensors(*graph, trace);
        const auto at = std::find_if(parameters.begin(), parameters.end(), [](const auto& p) { return p.isTrained; });
        QCOMPARE(at->name, std::string("model.layers.0.self_attn.v_proj.lora_A.weight"));
        QCOMPARE(at->shape, (ParameterTensor::Sizes{4, 4096}));
        QCOMPARE(at[1].name, std::string("model.layers.0.self_attn.v_proj.lora_B.weight"));
    }

    void errorsNameWhatTheNetworkHas()
    {
        const auto wrongLayer = llama7b({.rank = 4, .targets = {"q_proj", "query"}});
        QVERIFY(!wrongLayer);
        QCOMPARE(wrongLayer.error().code, std::string("plan.lora"));
        QCOMPARE(wrongLayer.error().place, std::string("adapter_targets"));
        QVERIFY(wrongLayer.error().message.find("\"query\"") != std::string::npos);
        QVERIFY(wrongLayer.error().hint.find("q_proj, k_proj, v_proj, o_proj, gate_proj") != std::string::npos);
        const auto wrongModule = llama7b({.rank = 4, .targets = {}, .saved = {"embeddings"}});
        QVERIFY(!wrongModule);
        QCOMPARE(wrongModule.error().place, std::string("modules_to_save"));
        QVERIFY(wrongModule.error().hint.find("embed_tokens") != std::string::npos);
        QCOMPARE(llama7b({.rank = 4097, .targets = {}}).error().code, std::string("plan.range"));
    }

    // transformers calls the layers of GPT-2 otherwise than nanoGPT's code does.
    void namesOfTransformersStandForThoseOfGpt2()
    {
        BuildOptions options;
        options.sequence = 8;
        const auto trained = [&](std::vector<std::string> targets) {
            options.adapters = AdapterOptions{8, std::move(targets)};
            const auto graph = buildNetwork(*readModel("gpt2"), options);
            return graph ? trainedElements(*graph) : -1;
        };
        QCOMPARE(trained({"default"}), 294'912); // what PEFT prints for gpt2 with r=8
        QCOMPARE(trained({"c_attn", "c_proj", "c_fc"}), 1'179'648);
    }

    void normalFloatTakes4127BitsPerElement()
    {
        const double bits = 8.0 * double(normalFloatBytes(4096 * 4096)) / (4096 * 4096);
        QVERIFY2(std::abs(bits - 4.12695) < 0.001, qPrintable(QString::number(bits, 'f', 5)));
        // one element: half a byte, one scale, its scale, offset and codes
        QCOMPARE(normalFloatBytes(1), 1 + 1 + 4 + 4 + 64 + 1024);
        QCOMPARE(8.0 * double(normalFloatBytes(4096 * 4096, false) - 64) / (4096 * 4096), 4.5);
    }

    void aBaseInGptqIsMadeWholeAndKept()
    {
        AdapterOptions adapters;
        adapters.base = BaseForm::Gptq;
        const auto graph = llama7b(adapters);
        QVERIFY(graph);
        const QJsonArray cases = pytorchData("gptq_linear.json")["cases"].toArray();
        QVERIFY(!cases.isEmpty());
        std::vector<const Operator*> kernels;
        for (const Operator& op : graph->operators)
            if (op.kind != OperatorKind::Release)
                kernels.push_back(&op);
        const auto bytesEach = [&](TensorId tensor) { return elementBytes(graph->tensors[tensor].dtype); };
        std::size_t layers = 0;
        for (std::size_t i = 0; i < kernels.size(); ++i) {
            if (kernels[i]->kind != OperatorKind::Dequantize)
                continue;
            ++layers;
            for (const auto& value : cases) { // bytes an element of what forward makes, and of what backward has
                const QJsonObject one = value.toObject();
                const std::int64_t elements = one["out"].toInteger() * one["in"].toInteger();
                std::size_t next = i;
                for (const auto& made : one["made"].toArray())
                    QCOMPARE(bytesEach(graph->outputs(*kernels[next++])[0]), made.toInteger() / elements);
                const Operator& product = *kernels[next];
                QVERIFY(isMatrixProduct(product.kind));
                if (graph->saved(product).empty()) // the first layer's input has no gradient
                    continue;
                QCOMPARE(graph->saved(product).size(), std::size_t(one["saved"].toArray().size()));
                QCOMPARE(bytesEach(graph->saved(product)[0]), one["saved"][0].toInteger() / elements);
            }
        }
        QCOMPARE(layers, std::size_t(7 * 32));
    }

    void aQuantizedBaseKeepsEmbeddingsAndNorms()
    {
        TrainingSetup setup;
        setup.build.sequence = 8;
        setup.build.weights = DType::BFloat16;
        setup.build.adapters = AdapterOptions{16, {}, BaseForm::NormalFloat4Double};
        setup.step.plan.precision = Precision::Bf16;
        setup.step.plan.lora = LoraPlan{16};
        const auto made = simulate(*readModel("llama-2-7b"), setup);
        QVERIFY(made);
        const double gigabytes = double(made->kept.weights) / 1e9;
        // 6.476e9 elements in NF4 are 3.341 GB, 2 x 131,072,000 and the norms in bf16 0.525 GB,
        // adapters 0.080 GB
        QVERIFY2(std::abs(gigabytes - 3.945) < 0.002, qPrintable(QString::number(gigabytes)));
        QCOMPARE(made->kept.gradients, 2 * 39'976'960);
        QCOMPARE(made->kept.state, 2 * 2 * 39'976'960);
    }
};

QTEST_APPLESS_MAIN(TestLora)
#include "tst_lora.moc"
