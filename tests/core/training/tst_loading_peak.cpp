// SPDX-License-Identifier: Apache-2.0
// Memory while weights are loaded, against what the kernel counted while transformers loaded a model
// (tests/data/pytorch/loading_memory.py), what llama.cpp prints of its buffers, and sums by hand.
#include "core/training/loading_peak.h"

#include "core/network/model_names.h"
#include "core/network/quantized.h"
#include "tests/support/pytorch_data.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

LoadingPeak peakOf(const char* model, const LoadingPlan& plan)
{
    const auto description = readModel(model);
    const auto peak = description ? loadingPeak(*description, plan) : fail(description.error());
    if (!peak)
        qWarning("%s", peak.error().text().c_str());
    return peak.value_or(LoadingPeak());
}

StoredForm formOf(const QJsonValue& text)
{
    return *storedFormFromText(text.toString().toStdString());
}

double mebibytes(std::int64_t bytes)
{
    return double(bytes) / 0x1p20;
}

} // namespace

class TestLoadingPeak : public QObject
{
    Q_OBJECT

private slots:
    /// Beside the tensors a process grows by modules and objects of Python.
    void aProcessGrowsByWhatIsNotMapped()
    {
        constexpr std::int64_t ofPython = 20'000'000;
        const QJsonObject data = pytorchData("loading_memory.json");
        const QJsonArray cases = data["cases"].toArray();
        QVERIFY(cases.size() >= 5);
        for (const QJsonValue& one : cases) {
            LoadingPlan plan;
            plan.way = one["way"] == "state-dict" ? LoadingWay::StateDict : LoadingWay::Host;
            plan.form = formOf(one["form"]);
            plan.file = formOf(one["file"]);
            plan.hasLooseHead = one["head"] == "loaded";
            const LoadingPeak peak = peakOf("smollm2-135m", plan);
            const std::int64_t more = one["host"].toInteger() - peak.host;
            const QByteArray what = QJsonDocument(one.toObject()).toJson();
            QVERIFY2(more >= 0 && more < ofPython, what);
            const std::int64_t pages = one["mapped"].toInteger() - peak.mapped;
            QVERIFY2(pages >= 0 && pages < ofPython, what);
        }
    }

    // "CUDA0 buffer size" and "CPU buffer size", MiB, of llama.cpp with all layers on the GPU: logs of Llama 2 7B
    // (TheBloke's Q4_K_M and Q4_0) and Mistral 7B, issues and repositories of 2024.
    void theLayerOfInputsStaysWithTheHost_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("form");
        QTest::addColumn<double>("device");
        QTest::addColumn<double>("host");
        QTest::newRow("Llama 2 7B, Q4_K_M") << "llama-2-7b"
                                            << "q4_k_m" << 3820.94 << 70.31;
        QTest::newRow("Llama 2 7B, Q4_0") << "llama-2-7b"
                                          << "q4_0" << 3577.56 << 70.31;
        QTest::newRow("Mistral 7B, Q4_K_M") << "mistral-7b"
                                            << "q4_k_m" << 4095.05 << 70.31;
    }
    void theLayerOfInputsStaysWithTheHost()
    {
        QFETCH(QString, model);
        QFETCH(QString, form);
        QFETCH(double, device);
        QFETCH(double, host);
        LoadingPlan plan;
        plan.way = LoadingWay::Mapped;
        plan.form = plan.file = *storedFormFromText(form.toStdString());
        const LoadingPeak peak = peakOf(qPrintable(model), plan);
        QCOMPARE(QString::number(mebibytes(peak.device), 'f', 1), QString::number(device, 'f', 1));
        QCOMPARE(QString::number(mebibytes(peak.mapped - peak.device), 'f', 2), QString::number(host, 'f', 2));
        QCOMPARE(peak.host, 0);
    }
    /// A table that is the head, too, is there twice.
    void aTiedTableIsOnTheDeviceToo()
    {
        LoadingPlan plan;
        plan.way = LoadingWay::Mapped;
        plan.form = plan.file = StoredForm(GgufMixture::Q8_0);
        const LoadingPeak peak = peakOf("llama-3.2-1b", plan);
        QCOMPARE(peak.device, peak.mapped);
    }

    /// By name the last large tensor of Llama 2 7B is up_proj of layer 31; a norm and the attention come behind it.
    void bitsandbytesQuantizesOneAfterTheOther()
    {
        const std::int64_t attention = 4096 * 4096, feedForward = 11008 * 4096, norms = 2 * 2 * 4096;
        LoadingPlan plan;
        plan.form = StoredForm::NormalFloat4;
        plan.file = StoredForm::AsStored;
        const auto all = servedWeights(*readModel("llama-2-7b"), plan.form, 2, 1);
        const LoadingPeak four = peakOf("llama-2-7b", plan);
        QCOMPARE(four.device, *all - 4 * normalFloatBytes(attention, false) - norms + 2 * feedForward);
        QCOMPARE(four.host, 0); // 16 bits in the file
        plan.form = StoredForm::Int8;
        const auto bytes = servedWeights(*readModel("llama-2-7b"), plan.form, 2, 1);
        const LoadingPeak eight = peakOf("llama-2-7b", plan);
        QCOMPARE(eight.device, *bytes - 4 * (attention + 4 * 4096) - norms + 4 * feedForward);
        QCOMPARE(eight.host, 2 * feedForward); // sent back
        plan.file = StoredForm::Int8;          // saved so
        QCOMPARE(peakOf("llama-2-7b", plan).device, *bytes);
    }

    /// Of 2023, transformers' page of long texts: OctoCoder, a StarCoder, load_in_8bit=True, 15.219234466552734 GiB.
    void eightBitsOf2023HaveATransposedCopy()
    {
        LoadingPlan plan;
        plan.form = StoredForm::Int8;
        plan.file = StoredForm::Float16;
        plan.transposesBytes = true;
        plan.transformers = Transformers::Before445;
        QVERIFY(std::abs(double(peakOf("starcoder", plan).device) / 0x1p30 / 15.219234466552734 - 1) < 0.003);
    }

    /// LitGPT prints 8.71 GB for its Falcon 7B in 8 bits (tutorials/quantize.md): all weights, and of its own head a
    /// copy in fp16, the bytes and their transposed copy.
    void lightningQuantizesBesideWhatItMade()
    {
        ModelDescription model = *readModel("falcon-7b");
        model.tied = false;
        LoadingPlan plan;
        plan.way = LoadingWay::InPlace;
        plan.form = StoredForm::Int8;
        plan.form.quantizesHead = true;
        plan.file = StoredForm::BFloat16;
        plan.transposesBytes = true;
        const std::int64_t head = 65024 * 4544, scales = 4 * 65024;
        const auto weights = servedWeights(model, plan.form, 2, 1);
        const auto peak = loadingPeak(model, plan);
        QVERIFY(weights && peak);
        QCOMPARE(peak->device, *weights + 4 * head + scales);
        QVERIFY(std::abs(double(peak->device) / 8.71e9 - 1) < 0.01);
    }

    /// Qwen2.5's page has 0.68 GiB as the peak of a first token of its 0.5B in AWQ, cache and weights are 0.46
    /// (resources/published/qwen2.5-speed.json).
    void aHeadInTheFileIsLoadedBeforeItIsTied()
    {
        LoadingPlan plan;
        plan.form = plan.file = StoredForm::Awq;
        const LoadingPeak without = peakOf("qwen2.5-0.5b", plan);
        plan.hasLooseHead = true;
        const LoadingPeak with = peakOf("qwen2.5-0.5b", plan);
        QCOMPARE(with.device - without.device, 2 * 151936 * 896);
        QCOMPARE(QString::number(double(with.device) / 0x1p30, 'f', 2), QString("0.68"));
        plan.way = LoadingWay::InPlace; // vLLM passes over it
        QVERIFY(peakOf("qwen2.5-0.5b", plan).device < with.device);
    }

    void otherWaysOfThePeak()
    {
        const std::int64_t model = 2 * std::int64_t(6738415616);
        LoadingPlan plan;
        plan.form = StoredForm::BFloat16;
        QCOMPARE(peakOf("llama-2-7b", plan).device, model);
        plan.way = LoadingWay::OnDevice;
        QCOMPARE(peakOf("llama-2-7b", plan).device, 2 * model);
        plan.way = LoadingWay::Host;
        plan.transformers = Transformers::Before450; // every model was made first
        QCOMPARE(peakOf("llama-2-7b", plan).host, model);
        // FP8 is made of 16 bits that are all there, a gate and an up projection beside theirs.
        plan = {};
        plan.way = LoadingWay::InPlace;
        plan.form = StoredForm::Float8;
        QCOMPARE(peakOf("llama-2-7b", plan).device, model + 2 * (11008 * 4096 + 4));
        // The experts of a layer of Mixtral, stacked and joined: gate and up projections once more.
        plan = {};
        const auto all = servedWeights(*readModel("mixtral-8x7b"), plan.form, 2, 1);
        QCOMPARE(peakOf("mixtral-8x7b", plan).device - *all, std::int64_t(2) * 8 * 2 * 14336 * 4096);
    }
};

QTEST_MAIN(TestLoadingPeak)
#include "tst_loading_peak.moc"
