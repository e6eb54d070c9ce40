// SPDX-License-Identifier: Apache-2.0
// LitGPT's networks against LitGPT itself (tests/data/pytorch/litgpt_networks.json): parameters, those that are
// trained, what is kept for backward to the logits and to the loss, to the byte. And what its network is refused for.
#include "core/experiment/experiment.h"
#include "core/network/adapter_targets.h"
#include "core/network/litgpt.h"
#include "core/network/model_config.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "tests/support/devices.h"
#include "tests/support/pytorch_data.h"

#include <QtTest>

using namespace memscape;
using namespace memscape::test;

namespace {

const QJsonObject& recorded()
{
    static const QJsonObject data = pytorchData("litgpt_networks.json");
    return data;
}

ModelDescription litGptOf(const QJsonObject& one)
{
    QJsonObject config = one["config"].toObject();
    for (const auto& [key, value] : {std::pair("vocab_size", 96), std::pair("hidden_size", 64),
                                     std::pair("num_hidden_layers", 2), std::pair("num_attention_heads", 4),
                                     std::pair("intermediate_size", 112), std::pair("max_position_embeddings", 300)})
        config[key] = value;
    config["model_type"] = one["model_type"];
    const auto json = parseJson(QJsonDocument(config).toJson().toStdString());
    auto model = modelFromConfig(JsonReader(*json), "measured");
    if (!model)
        qFatal("%s", model.error().text().c_str());
    auto made = asLitGpt(std::move(*model));
    if (!made)
        qFatal("%s", made.error().text().c_str());
    return std::move(*made);
}

/// B of the sines and cosines, which LitGPT has as buffers.
std::int64_t tablesOf(const ModelDescription& model, const QJsonObject& one)
{
    const auto width = std::int64_t(double(model.headDim) * model.rotaryShare);
    return 2 * recorded()["sequence"].toInteger() * width
        * elementBytes(*dtypeFromText(one["dtype"].toString().toStdString()));
}

BuildOptions optionsOf(const QJsonObject& one, bool hasLoss)
{
    BuildOptions options;
    options.batch = recorded()["batch"].toInteger();
    options.sequence = recorded()["sequence"].toInteger();
    options.loss = hasLoss;
    options.attention = AttentionKernel::Flash;
    options.weights = *dtypeFromText(one["dtype"].toString().toStdString());
    options.rules = EagerRules::onCpu(false, 1);
    const QString parts = one["parts"].toString();
    if (parts.isEmpty())
        return options;
    AdapterOptions adapters;
    adapters.rank = recorded()["rank"].toInteger();
    adapters.dropout = recorded()["dropout"].toDouble();
    for (const QString& part : parts.split(' '))
        adapters.targets.push_back(part.toStdString());
    options.adapters = adapters;
    return options;
}

} // namespace

class TestLitGpt : public QObject
{
    Q_OBJECT

private slots:
    void keepsWhatLitGptKeeps_data()
    {
        QTest::addColumn<QJsonObject>("one");
        for (const QJsonValue& value : recorded()["results"].toArray())
            QTest::addRow("%s %s %s", qPrintable(value["model_type"].toString()), qPrintable(value["dtype"].toString()),
                          qPrintable(value["parts"].toString()))
                << value.toObject();
    }
    void keepsWhatLitGptKeeps()
    {
        QFETCH(QJsonObject, one);
        const ModelDescription model = litGptOf(one);
        for (const bool hasLoss : {false, true}) {
            const auto graph = buildNetwork(model, optionsOf(one, hasLoss));
            QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
            std::int64_t trained = 0;
            for (const NamedTensor& named : graph->parameters)
                trained += named.isTrained ? graph->layoutOf(named.tensor).elements() : 0;
            QCOMPARE(trained, one["trained"].toInteger());
            QCOMPARE(graph->parameterCount(), one["parameters"].toInteger());
            const SavedBytes saved = savedBytes(*graph);
            QCOMPARE(saved.activations + saved.weightCasts - tablesOf(model, one),
                     one[hasLoss ? "loss" : "logits"].toInteger());
        }
    }

    // A head of its own beside the embedding's weight: 256,000 x 2,048 more.
    void headIsNotTied()
    {
        const auto tied = readModel("gemma-2b");
        const auto made = asLitGpt(*tied);
        QVERIFY(made);
        const auto count = [](const ModelDescription& model) {
            return buildNetwork(model, BuildOptions{.sequence = 8})->parameterCount();
        };
        QCOMPARE(count(*made) - count(*tied), 256'000LL * 2048);
    }

    void othersAreRefused_data()
    {
        QTest::addColumn<QStringList>("parameters");
        QTest::addColumn<QString>("place");
        QTest::newRow("no such network") << QStringList{"model=bert-base-uncased"} << "library";
        QTest::newRow("norms of queries") << QStringList{"model=qwen3-0.6b"} << "library";
        QTest::newRow("a loss of others") << QStringList{"loss=liger"} << "loss";
        QTest::newRow("shared matrices") << QStringList{"tensor_parallel=2"} << "tensor_parallel";
        QTest::newRow("DoRA") << QStringList{"adapter=lora", "adapter_variant=dora"} << "adapter_variant";
        QTest::newRow("LoRA-FA") << QStringList{"adapter=lora", "adapter_variant=lora-fa"} << "adapter_variant";
        QTest::newRow("IA3") << QStringList{"adapter=ia3"} << "adapter";
        QTest::newRow("saved modules") << QStringList{"adapter=lora", "modules_to_save=lm_head"} << "modules_to_save";
        QTest::newRow("an unknown part") << QStringList{"adapter=lora", "adapter_targets=queries"} << "adapter_targets";
        QTest::newRow("LoRA of the head") << QStringList{"adapter=lora", "adapter_targets=head"} << "lm_head";
    }
    void othersAreRefused()
    {
        QFETCH(QStringList, parameters);
        QFETCH(QString, place);
        std::vector<std::string> texts{"model=llama-3.2-1b", "library=litgpt", "batch=1", "sequence=16", "advice=none"};
        for (const QString& one : parameters) {
            if (one.startsWith("model="))
                texts[0] = one.toStdString();
            else
                texts.push_back(one.toStdString());
        }
        const Experiment& training = **findExperiment("training-memory");
        const auto resolved = resolve(training.schema(), texts);
        QVERIFY(resolved);
        const auto answer = training.predict(h200(), *resolved);
        QVERIFY(!answer);
        QCOMPARE(QString::fromStdString(answer.error().place), place);
        QVERIFY(!answer.error().hint.empty());
    }
};

QTEST_APPLESS_MAIN(TestLitGpt)
#include "tst_litgpt.moc"
