// SPDX-License-Identifier: Apache-2.0
// Quantized weights against the bytes that bitsandbytes, AutoAWQ, AutoGPTQ and PyTorch itself hold for
// a linear layer (tests/data/pytorch/quantized_bytes.py), and against the sizes that llama.cpp prints for its mixtures.
#include "core/training/serving.h"

#include "core/network/model_names.h"
#include "core/training/vllm_profile.h"
#include "tests/support/pytorch_data.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

class TestServing : public QObject
{
    Q_OBJECT

private slots:
    void matricesTakeWhatTheLibrariesHold_data()
    {
        QTest::addColumn<QString>("form");
        for (const char* form : {"nf4", "nf4-double", "int8", "awq", "gptq", "fp8"})
            QTest::newRow(form) << form;
    }
    void matricesTakeWhatTheLibrariesHold()
    {
        QFETCH(QString, form);
        const QJsonArray cases = pytorchData("quantized_bytes.json")["cases"].toArray();
        QVERIFY(cases.size() >= 7);
        for (const QJsonValue& one : cases)
            QCOMPARE(
                matrixBytes(one["out"].toInteger(), one["in"].toInteger(), *storedFormFromText(form.toStdString()), 2),
                one[form].toInteger());
    }

    // GB of the files that model cards of 2023 name: TheBloke's Llama-2-7b-Chat-, MythoMax-L2-13B-,
    // Mistral-7B-Claude-Chat-, TinyLlama-1.1B-Chat-v1.0- and Mixtral-8x7B-Instruct-v0.1-GPTQ.
    void groupsTakeWhatPublishedFilesTake_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("form");
        QTest::addColumn<int>("group");
        QTest::addColumn<double>("gigabytes");
        const auto row = [](const char* model, const char* form, int group, double gigabytes) {
            QTest::addRow("%s, %s, %d", model, form, group) << model << form << group << gigabytes;
        };
        row("llama-2-7b", "gptq", 32, 4.28);
        row("llama-2-7b", "gptq", 64, 4.02);
        row("llama-2-7b", "gptq", 128, 3.90);
        row("llama-2-13b", "gptq", 32, 8.00);
        row("llama-2-13b", "gptq", 64, 7.51);
        row("llama-2-13b", "gptq", 128, 7.26);
        row("llama-2-13b", "gptq-8bit", 0, 13.36);
        row("mistral-7b", "gptq", 32, 4.57);
        row("mistral-7b", "gptq", 64, 4.29);
        row("mistral-7b", "gptq", 128, 4.16);
        row("mistral-7b", "gptq-8bit", 32, 8.17);
        row("mistral-7b", "gptq-8bit", 128, 7.68);
        row("mistral-7b", "gptq-8bit", 0, 7.52);
        row("tinyllama-1.1b", "gptq", 32, 0.82);
        row("tinyllama-1.1b", "gptq", 64, 0.79);
        row("tinyllama-1.1b", "gptq", 128, 0.77);
        row("mixtral-8x7b", "gptq", 32, 27.42);
        row("mixtral-8x7b", "gptq", 128, 24.70);
        row("mixtral-8x7b", "gptq", 0, 23.81);
    }
    void groupsTakeWhatPublishedFilesTake()
    {
        QFETCH(QString, model);
        QFETCH(QString, form);
        QFETCH(int, group);
        QFETCH(double, gigabytes);
        const auto described = readModel(model.toStdString());
        QVERIFY(described);
        StoredForm stored = *storedFormFromText(form.toStdString());
        stored.group = group;
        const double bytes = double(*servedWeights(*described, stored, 2, 1));
        QVERIFY2(std::abs(bytes / 1e9 - gigabytes) < 0.01 + 1e-3 * gigabytes, qPrintable(QString::number(bytes)));
    }

    // Bits a weight of Llama 3.1 8B, in four digits: llama.cpp, tools/quantize/README.md (commit 311c2c9).
    void mixturesAreLlamaCppsOwn_data()
    {
        QTest::addColumn<QString>("mixture");
        QTest::addColumn<QString>("bits");
        const auto row = [](const char* mixture, const char* bits) { QTest::newRow(mixture) << mixture << bits; };
        row("iq4_xs", "4.4597");
        row("q2_k", "3.1593");
        row("q3_k_s", "3.6429");
        row("q3_k_l", "4.2979");
        row("q4_k_s", "4.6672");
        row("q4_k_m", "4.8944");
        row("q5_k_s", "5.5704");
        row("q5_k_m", "5.7036");
        row("q6_k", "6.5633");
        row("q8_0", "8.5008");
    }
    void mixturesAreLlamaCppsOwn()
    {
        QFETCH(QString, mixture);
        QFETCH(QString, bits);
        const auto model = readModel("llama-3.1-8b");
        QVERIFY(model);
        const auto bytes = servedWeights(*model, *storedFormFromText(mixture.toStdString()), 2, 1);
        QVERIFY(bytes);
        QCOMPARE(QString::number(8 * double(*bytes) / double(inventory(*model)->total), 'f', 4), bits);
    }

    void mixturesOfOtherModels()
    {
        const auto bytes = [](const char* name, const char* mixture, std::int64_t parallel = 1) {
            return *servedWeights(*readModel(name), *storedFormFromText(mixture), 2, parallel);
        };
        // The same document: 4.9 and 43.1 GB of Llama 3.1 in Q4_K_M, header and vocabulary (a few MB) included.
        const auto gigabytes = [](std::int64_t count) { return QString::number(double(count) / 1e9, 'f', 1); };
        QCOMPARE(gigabytes(bytes("llama-3.1-8b", "q4_k_m")), QString("4.9"));
        QVERIFY(std::abs(double(bytes("llama-3.1-70b", "q4_k_m")) / 43.1e9 - 1) < 0.015);
        // Tied: the embedding is the output, and gets its type.
        QVERIFY(bytes("llama-3.2-1b", "q4_0") > bytes("llama-3.2-1b", "q8_0") / 2);
        // GPT-2's rows of 768 are three blocks of 256; a norm and a bias stay in fp32.
        QVERIFY(bytes("gpt2", "q8_0") > std::int64_t(124439808));
        QVERIFY(bytes("llama-3.1-8b", "q4_k_m", 2) > bytes("llama-3.1-8b", "q4_k_m") / 2);
        QVERIFY(!storedFormFromText("q4_k_x"));
    }

    void aModelIsItsMatricesAndTheRest()
    {
        // One layer of LLaMA: four matrices of 128 × 128, three of 256 × 128; embedding, head and
        // norms stay in bf16.
        ModelDescription model;
        model.family = Family::Decoder;
        model.architecture = "llama";
        model.layers = 1;
        model.hidden = 128;
        model.heads = model.kvHeads = 4;
        model.headDim = 32;
        model.ffn = 256;
        model.vocab = 1000;
        model.gated = true;
        model.norm = NormKind::RmsNorm;
        model.positions = PositionKind::Rotary;
        model.biases = {};
        model.tied = false;
        const auto bytes = [&](StoredForm form) { return servedWeights(model, form, 2, 1).value(); };
        const auto layer = [](StoredForm form) {
            return 4 * matrixBytes(128, 128, form, 2) + 2 * matrixBytes(256, 128, form, 2)
                + matrixBytes(128, 256, form, 2);
        };
        const std::int64_t rest = bytes(StoredForm::BFloat16) - layer(StoredForm::BFloat16);
        QCOMPARE(rest, std::int64_t(2 * (2 * 1000 * 128 + 3 * 128)));
        for (const StoredForm form : {StoredForm::NormalFloat4, StoredForm::NormalFloat4Double, StoredForm::Awq,
                                      StoredForm::Gptq, StoredForm::Int8, StoredForm::Float8})
            QCOMPARE(bytes(form), rest + layer(form));
        StoredForm whole = StoredForm::NormalFloat4Double; // the head, too; a looked-up table is no linear layer
        whole.quantizesHead = true;
        QCOMPARE(bytes(whole), rest + layer(whole) - 2 * 1000 * 128 + matrixBytes(1000, 128, whole, 2));
    }

    // "total_size" of openai/gpt-oss-20b, model.safetensors.index.json.
    void publishedExpertsStayInMxfp4()
    {
        const auto model = readModel("gpt-oss-20b");
        QCOMPARE(*servedWeights(*model, StoredForm::AsStored, 2, 1), std::int64_t(13761264768));
        QVERIFY(*servedWeights(*model, StoredForm::BFloat16, 2, 1) > std::int64_t(41e9));
    }

    // Peak activation memory that vLLM prints on an H100, GiB: llm-d/llm-d-benchmark,
    // config_explorer/empirical-vllm-memory-results.md.
    void vllmsStartIsItsSampler_data()
    {
        QTest::addColumn<double>("printed");
        QTest::newRow("llama-3.1-8b") << 4.76;
        QTest::newRow("qwen3-0.6b") << 5.56;
        QTest::newRow("qwen3-32b") << 5.64;
        QTest::newRow("gpt-oss-20b") << 7.38;
    }
    void vllmsStartIsItsSampler()
    {
        QFETCH(double, printed);
        const auto model = readModel(QTest::currentDataTag());
        const VllmProfile onH100 = vllmProfile(true, std::int64_t(79) << 30, false, 16000);
        const double start = double(samplerBytes(*model, onH100, 2)) / 0x1p30;
        QVERIFY2(start < printed && start > 0.98 * printed, qPrintable(QString::number(start)));
        const VllmProfile onA100 = vllmProfile(true, std::int64_t(79) << 30, true, 16000);
        QVERIFY(samplerBytes(*model, onA100, 2) < samplerBytes(*model, onH100, 2) / 3);
    }

    // vllm/engine/arg_utils.py and vllm/config.py of 0.6 to 0.8: chunked prefill for more than 32K tokens.
    void vllmBefore09ProfilesALongContextInChunks()
    {
        const auto tokens = [](std::int64_t context) { return vllmProfile(false, 0, false, context).tokens; };
        QCOMPARE(tokens(1024), 2048);
        QCOMPARE(tokens(32768), 32768);
        QCOMPARE(tokens(32769), 2048);
    }

    void aStateDoesNotGrowWithTheContext()
    {
        const auto mamba = readModel("mamba-130m");
        const auto state = [&](std::int64_t batch, std::int64_t context) {
            return *cacheBytes(*mamba, CacheForm::Float16, {batch, context});
        };
        QCOMPARE(state(1, 1), std::int64_t(24 * 1536 * (16 + 4) * 2)); // layers × channels × (state + kernel) × B
        QCOMPARE(state(1, 1 << 20), state(1, 1));
        QCOMPARE(state(8, 1), 8 * state(1, 1));
    }

    void whisperKeepsTheRecording()
    {
        const auto cache = cacheBytes(*readModel("whisper-tiny"), CacheForm::Float16, {1, 10});
        QCOMPARE(*cache, std::int64_t(4 * (10 + 1500) * 2 * 6 * 64 * 2)); // 4 layers, 6 heads of 64
    }

    void aTokenReadsNoEncoder()
    {
        const auto model = readModel("whisper-tiny");
        const auto whole = servedWeights(*model, StoredForm::Float16, 2, 1);
        const auto read = weightsReadByStep(*model, StoredForm::Float16, 2, 1, 1);
        // conv1 and conv2, positions, 4 layers of attention and feed-forward, the last norm
        const double h = 384, layer = 4 * h * h + 8 * h * h + 3 * h + 5 * h + 4 * h;
        const double encoder = 2 * (3 * 80 * h + h + 3 * h * h + h + 1500 * h + 4 * layer + 2 * h);
        const double positions = 2 * 447 * h; // of the decoder's, one row is read
        QCOMPARE(read->bytes(), double(*whole) - encoder - positions);
    }
};

QTEST_GUILESS_MAIN(TestServing)
#include "tst_serving.moc"
