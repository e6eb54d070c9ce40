// SPDX-License-Identifier: Apache-2.0
// The published caches are those of data/published_tables.json: Insights into DeepSeek-V3 (ISCA 2025), Table 1;
// Kwon et al. 2023 (PagedAttention); the table of Hugging Face's Llama 3.1 article, whose 405B row counted 16 heads.
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"
#include "core/network/model_names.h"
#include "core/training/serving.h"

#include <QtTest>

using namespace memscape;

class TestInferenceMemory : public QObject
{
    Q_OBJECT

private slots:
    void publishedCaches_data();
    void publishedCaches();
    void aSlidingLayerKeepsItsWindow();
    void formsOfWeights();
    void figuresKeepTheContract();
    void theLargestContextAndBatchFit();
    void picturesHaveNoCache();
};

namespace {

const Experiment& inference()
{
    return **findExperiment("inference-memory");
}

Parameters servingWith(const std::vector<std::string>& assignments)
{
    return *resolve(inference().schema(), assignments);
}

double servingValue(const Figures& figures, std::string_view key)
{
    const Figure* figure = findFigure(figures, key);
    return figure ? figure->number() : -1;
}

Figures servingOf(const std::vector<std::string>& assignments)
{
    const auto figures = inference().predictPoint(*findDevice("nvidia-h200"), servingWith(assignments));
    if (!figures)
        qWarning("%s", figures.error().text().c_str());
    return figures ? *figures : Figures{};
}

} // namespace

void TestInferenceMemory::publishedCaches_data()
{
    QTest::addColumn<QString>("model");
    QTest::addColumn<double>("tokens");
    QTest::addColumn<double>("bytes");
    QTest::newRow("Llama 3.1 405B") << "llama-3.1-405b" << 1.0 << 516096.0;
    QTest::newRow("Qwen2.5 72B") << "qwen2.5-72b" << 1.0 << 327680.0;
    QTest::newRow("DeepSeek-V3") << "deepseek-v3" << 1.0 << 70272.0;
    QTest::newRow("OPT 13B") << "opt-13b" << 1.0 << 819200.0;
    QTest::newRow("Llama 2 7B, 4096") << "llama-2-7b" << 4096.0 << 2.0 * 0x1p30;
    QTest::newRow("GPT-2 XL") << "gpt2-xl" << 1.0 << 300.0 * 1024;
    QTest::newRow("Llama 3.1 8B, 16k") << "llama-3.1-8b" << 16000.0 << 1.953125 * 0x1p30;
    QTest::newRow("Llama 3.1 70B, 128k") << "llama-3.1-70b" << 128000.0 << 39.0625 * 0x1p30;
}

void TestInferenceMemory::publishedCaches()
{
    QFETCH(QString, model);
    QFETCH(double, tokens);
    QFETCH(double, bytes);
    const auto description = readModel(model.toStdString());
    QVERIFY2(description, description ? "" : description.error().text().c_str());
    QCOMPARE(double(*cacheBytes(*description, CacheForm::Float16, 1, std::int64_t(tokens), 1)), bytes);
    QCOMPARE(double(*cacheBytes(*description, CacheForm::Float16, 3, std::int64_t(tokens), 1)), 3 * bytes);
    QCOMPARE(double(*cacheBytes(*description, CacheForm::Float8, 1, std::int64_t(tokens), 1)), bytes / 2);
}

void TestInferenceMemory::aSlidingLayerKeepsItsWindow()
{
    ModelDescription model = *readModel("llama-2-7b");
    model.slidingWindow = 1024;
    const auto within = cacheBytes(model, CacheForm::Float16, 1, 1024, 1);
    QCOMPARE(*cacheBytes(model, CacheForm::Float16, 1, 65536, 1), *within);
    model.slidingLayers.assign(std::size_t(model.layers), 0); // every second layer slides
    for (std::size_t i = 0; i < model.slidingLayers.size(); i += 2)
        model.slidingLayers[i] = 1;
    QCOMPARE(*cacheBytes(model, CacheForm::Float16, 1, 2048, 1), *within + *within / 2);
}

void TestInferenceMemory::formsOfWeights()
{
    // One layer of two square matrices would do; a real model has all kinds of tensors.
    const ModelDescription model = *readModel("llama-2-7b");
    const double count = 6738415616; // Hugging Face: meta-llama/Llama-2-7b-hf
    const double linear = 32.0 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008);
    const auto bytes = [&](StoredForm form) { return double(*servedWeights(model, form, 2, 1)); };
    QCOMPARE(bytes(StoredForm::Float32), 4 * count);
    QCOMPARE(bytes(StoredForm::BFloat16), 2 * count);
    const double other = 2 * (count - linear);
    const double rows = 32.0 * (4 * 4096 + 2 * 11008 + 4096), columns = 32.0 * (4 * 4096 + 2 * 4096 + 11008);
    QCOMPARE(bytes(StoredForm::Int8), other + linear + 4 * rows);
    QCOMPARE(bytes(StoredForm::Int4), other + linear / 2 + 2 * linear / 128);
    QCOMPARE(bytes(StoredForm::Awq), other + linear / 2 + 2.5 * linear / 128);
    QCOMPARE(bytes(StoredForm::Gptq), other + linear / 2 + 2.5 * linear / 128 + 4 * columns);
    const double nf4 = bytes(StoredForm::NormalFloat4) - other;
    QVERIFY(std::abs(nf4 / (linear * 4.127 / 8) - 1) < 1e-3); // Dettmers et al. 2023: 4.127 bits
}

void TestInferenceMemory::figuresKeepTheContract()
{
    const Figures figures =
        servingOf({"model=llama-2-7b", "batch=1", "context=4096", "kv_precision=fp16", "weight_precision=fp16"});
    for (const char* key : {"weights", "kv_cache", "activations", "peak_allocated", "largest_context", "largest_batch",
                            "parameter_count"})
        QVERIFY2(findFigure(figures, key), key);
    QCOMPARE(servingValue(figures, "kv_cache"), 2 * 0x1p30);
    QCOMPARE(servingValue(figures, "weights"), 2.0 * 6738415616);
    QCOMPARE(servingValue(figures, "peak_allocated"),
             servingValue(figures, "weights") + servingValue(figures, "kv_cache")
                 + servingValue(figures, "activations"));
}

void TestInferenceMemory::theLargestContextAndBatchFit()
{
    const std::vector<std::string> asked{"model=llama-3.1-8b", "context=8192", "batch=4"};
    const double batch = servingValue(servingOf(asked), "largest_batch");
    QVERIFY(batch > 4);
    const auto fits = [](double sequences, double context) {
        return servingValue(servingOf({"model=llama-3.1-8b", "context=" + std::to_string(std::int64_t(context)),
                                       "batch=" + std::to_string(std::int64_t(sequences))}),
                            "fits");
    };
    QCOMPARE(fits(batch, 8192), 1.0);
    QCOMPARE(fits(batch + 1, 8192), 0.0);
    const double context =
        servingValue(servingOf({"model=llama-3.1-8b", "context=8192", "batch=64"}), "largest_context");
    QVERIFY(context > 1024);
    QCOMPARE(fits(64, context), 1.0);
    QCOMPARE(fits(64, context + 1), 0.0);
}

void TestInferenceMemory::picturesHaveNoCache()
{
    const Figures figures = servingOf({"model=resnet50", "batch=8"});
    QCOMPARE(servingValue(figures, "kv_cache"), 0.0);
    QVERIFY(servingValue(figures, "activations") > 0);
}

QTEST_GUILESS_MAIN(TestInferenceMemory)
#include "tst_inference_memory.moc"
