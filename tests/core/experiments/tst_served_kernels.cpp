// SPDX-License-Identifier: Apache-2.0
// How libraries join kernels of a prompt and of a token, against what their users and authors measured.
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"
#include "tests/support/asked_experiment.h"

#include <QtTest>

#include <cmath>
#include <string>
#include <vector>

using namespace memscape;
using namespace memscape::test;

namespace {

double servedFigure(const char* device, const std::vector<std::string>& texts, const char* key)
{
    const Experiment& inference = **findExperiment("inference-memory");
    const auto parameters = resolve(inference.schema(), texts);
    const auto figures = inference.predictPoint(*findDevice(device), *parameters);
    const Figure* const figure = figures ? findFigure(*figures, key) : nullptr;
    return figure ? figure->number() : memscape::nan;
}

/// What the why of a token says of its collectives.
std::string saidOfCollectives(const std::vector<std::string>& texts)
{
    const Experiment& inference = **findExperiment("inference-memory");
    const auto figures =
        inference.predictPoint(*findDevice("nvidia-h100-sxm"), *resolve(inference.schema(), texts)).value();
    std::string said;
    for (const Term& term : findFigure(figures, "token_time")->why->terms)
        if (term.symbol.starts_with("activations"))
            said += term.meaning + "; ";
    return said;
}

} // namespace

class TestServedKernels : public QObject
{
    Q_OBJECT

private slots:
    // ggml-org/llama.cpp, pull request 15525 (August 2025): DeepSeek V2 Lite in Q4_0 on an RTX 3090, by tokens at once.
    // All experts are one kernel, whose tiles have 128 rows though an expert of 64 has 6 to 24.
    void expertsOfAPromptAreOneKernelOfWideTiles()
    {
        const auto prompt = [](int tokens) {
            return servedFigure("nvidia-rtx-3090",
                                {"model=deepseek-v2-lite", "library=llama.cpp", "weight_precision=q4_0",
                                 "precision=fp16", "kv_precision=fp16", "batch=1", "sequence=" + std::to_string(tokens),
                                 "context=256", "logits=last"},
                                "prefill_time");
        };
        QVERIFY2(prompt(64) > 0.5 * 64 / 1802.95, qPrintable(QString::number(prompt(64))));
        QVERIFY2(std::fabs(prompt(256) * 3628.64 / 256 - 1) < 0.5, qPrintable(QString::number(prompt(256))));
        QVERIFY(prompt(128) > prompt(64));
    }

    // XiongjieDai/GPU-Benchmarks-on-LLM-Inference @00dd2bd: Llama 3 8B in F16 on an RTX 3090, 47.40 tokens/s of answers
    // of 512 and 42.62 of 8192, without flash attention: what a longer context costs more.
    void llamaCppReadsKeysForEachQueryHead()
    {
        const auto token = [](int context, const char* attention) {
            return servedFigure("nvidia-rtx-3090",
                                {"model=llama-3-8b", "library=llama.cpp-2023", "weight_precision=fp16",
                                 "precision=fp16", "kv_precision=fp16", "batch=1", "sequence=1",
                                 "context=" + std::to_string(context), attention},
                                "token_time");
        };
        const double published = 1 / 42.62 - 1 / 47.40;
        const double written = token(4096, "attention=eager") - token(256, "attention=eager");
        QVERIFY2(std::fabs(written / published - 1) < 0.2, qPrintable(QString::number(written)));
        QVERIFY(token(4096, "attention=flash") - token(256, "attention=flash") < 0.4 * published);
    }

    // NVIDIA/TensorRT, demo/BERT/README.md @007c347: average latencies in FP16.
    void tensorRtRunsActivationsWithinProducts_data()
    {
        QTest::addColumn<QString>("device");
        QTest::addColumn<QString>("model");
        QTest::addColumn<int>("batch");
        QTest::addColumn<int>("sequence");
        QTest::addColumn<double>("milliseconds");
        QTest::newRow("base, 1 × 128") << "nvidia-a100-40gb"
                                       << "bert-base-uncased" << 1 << 128 << 0.67;
        QTest::newRow("base, 128 × 128") << "nvidia-a100-40gb"
                                         << "bert-base-uncased" << 128 << 128 << 16.14;
        QTest::newRow("large, 1 × 384") << "nvidia-a100-40gb"
                                        << "bert-large-uncased" << 1 << 384 << 3.12;
        QTest::newRow("large, 8 × 384") << "nvidia-a100-40gb"
                                        << "bert-large-uncased" << 8 << 384 << 11.53;
        QTest::newRow("base on a T4, 128 × 128") << "nvidia-t4"
                                                 << "bert-base-uncased" << 128 << 128 << 144.20;
    }
    void tensorRtRunsActivationsWithinProducts()
    {
        QFETCH(QString, device);
        QFETCH(QString, model);
        QFETCH(int, batch);
        QFETCH(int, sequence);
        QFETCH(double, milliseconds);
        const std::string tokens = std::to_string(sequence);
        const auto prompt = [&](const char* library) {
            return servedFigure(device.toUtf8(),
                                {"model=" + model.toStdString(), "batch=" + std::to_string(batch), "sequence=" + tokens,
                                 "context=" + tokens, "weight_precision=fp16", "precision=fp16", "attention=efficient",
                                 library},
                                "prefill_time");
        };
        QVERIFY(isWithin(prompt("library=tensorrt"), milliseconds / 1000, 0.15));
        QVERIFY(prompt("library=engine") > 1.05 * prompt("library=tensorrt"));
    }

    // DeepSeek-R1 in FP8 on 8 H200 (NVIDIA/TensorRT-LLM, issue 5929): 165 ms until the first token behind 1,600; a
    // kernel for each of 256 experts in 58 layers would take 0.7 s.
    void expertsOfAPromptRunTogether()
    {
        QVERIFY(isWithin(servedFigure("nvidia-h200",
                                      {"model=deepseek-v3", "weight_precision=fp8", "batch=1", "sequence=1600",
                                       "context=1600", "tensor_parallel=8", "logits=last"},
                                      "prefill_time"),
                         0.16463, 0.15));
        const auto prompt = [](const char* tokens) {
            return servedFigure("nvidia-h100-sxm",
                                {"model=qwen3-30b-a3b", "batch=1", std::string("sequence=") + tokens, "context=4096"},
                                "prefill_time");
        };
        QVERIFY(prompt("1") < 0.4 * prompt("64")); // 8 of 128 experts, and nearly all of them
    }

    // ggml-org/llama.cpp, pull requests 15131 and 15802: tokens/s of so many at once.
    void aShortPromptReadsWeightsAsTheyAreStored()
    {
        const auto rate = [](const char* device, const char* weights, int tokens) {
            const std::string count = std::to_string(tokens);
            return tokens
                / servedFigure(device,
                               {"model=llama-3-8b", "library=llama.cpp", "batch=1", weights, "sequence=" + count,
                                "context=256"},
                               "prefill_time");
        };
        QVERIFY(isWithin(rate("nvidia-rtx-3090", "weight_precision=fp16", 8), 423.63, 0.12));
        QVERIFY(isWithin(rate("nvidia-rtx-3090", "weight_precision=fp16", 16), 764.17, 0.1));
        QVERIFY(isWithin(rate("nvidia-rtx-3090", "weight_precision=q4_0", 2), 279.89, 0.15));
        QVERIFY(isWithin(rate("nvidia-rtx-3090", "weight_precision=q4_0", 4), 470.48, 0.15));
        // Of 5 to 8 rows its blocks have two warps instead of four, which is not modelled.
        QVERIFY(isWithin(rate("nvidia-rtx-3090", "weight_precision=q4_0", 8), 583.77, 0.35));
        QVERIFY(isWithin(rate("nvidia-rtx-4090", "weight_precision=q4_0", 16), 1930.5, 0.1));
    }

    // The same pull requests, -ub 1; gpt-oss reads 4 of 32 experts by one kernel (pavlokhmel.com, 13 GPUs, June 2026).
    void aTokenOfLlamaCppIsAGraph()
    {
        const auto token = [](const char* device, std::vector<std::string> texts) {
            texts.insert(texts.end(), {"library=llama.cpp", "batch=1", "sequence=1"});
            return servedFigure(device, texts, "token_time");
        };
        const std::vector<std::string> llama{"model=llama-3-8b", "weight_precision=q4_0", "context=256"};
        QVERIFY(isWithin(token("nvidia-rtx-3090", llama), 1 / 156.56, 0.1));
        QVERIFY(isWithin(token("nvidia-h100-sxm", {"model=gpt-oss-20b", "context=512"}), 1 / 286.0, 0.15));
        std::vector<std::string> before = llama;
        before.emplace_back("library=llama.cpp-2023");
        const double launched = servedFigure("nvidia-rtx-3090", before, "token_time");
        QVERIFY(launched > token("nvidia-rtx-3090", llama) + 1e-3);
    }

    // mit-han-lab/llm-awq, tinychat/README.md @048e19e: Falcon 7B behind a prompt of 4 tokens, its host in each layer
    // waiting twice for the device. Without its waits it would take two thirds.
    // vLLM's custom_all_reduce.py: up to 8 MiB by its own kernel; 4,096 hidden values of 2 B are 8 KiB a sequence. Two
    // in each of 32 layers, and one behind the embedding, whose vocabulary is shared.
    void whoReducesIsSaid()
    {
        const auto said = [](const char* batch) {
            return saidOfCollectives({"model=llama-2-7b", "library=vllm", "tensor_parallel=4", batch, "context=64"});
        };
        QVERIFY2(said("batch=1").find("65 × 8 KiB among 4: the engine's own kernel, ") == 0, said("batch=1").c_str());
        QVERIFY2(said("batch=2048").find("65 × 16 MiB among 4: NCCL's ") == 0, said("batch=2048").c_str());
        QCOMPARE(saidOfCollectives({"model=llama-2-7b", "library=vllm", "context=64"}), std::string());
    }

    void falconWaitsForTheDevice()
    {
        const auto token = [](const char* device, const char* model, std::vector<std::string> texts, const char* key) {
            texts.insert(texts.end(),
                         {std::string("model=") + model, "batch=1", "sequence=4", "context=104", "precision=fp16",
                          "logits=last"});
            return servedFigure(device, texts, key);
        };
        const std::vector<std::string> half{"weight_precision=fp16", "transformers=4.38"};
        const std::vector<std::string> four{"library=autoawq", "weight_precision=awq", "group_size=64"};
        QVERIFY(isWithin(token("nvidia-rtx-a6000", "falcon-7b", half, "eager_token_time"), 39.44e-3, 0.1));
        QVERIFY(isWithin(token("nvidia-rtx-a6000", "falcon-7b", four, "token_time"), 11.71e-3, 0.12));
        QVERIFY(isWithin(token("nvidia-rtx-4090", "falcon-7b", four, "token_time"), 8.02e-3, 0.12));
    }
};

QTEST_GUILESS_MAIN(TestServedKernels)
#include "tst_served_kernels.moc"
