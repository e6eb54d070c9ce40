// SPDX-License-Identifier: Apache-2.0
// Which kernel of attention a training step takes, and what it keeps: copied heads, a mask of padding.
#include "core/device/catalogue.h"
#include "core/experiments/training-memory/training_memory.h"
#include "tests/support/devices.h"
#include "tests/support/training_case.h"

#include <QtTest>

using namespace memscape;
using namespace memscape::test;

class TestTrainingAttention : public QObject
{
    Q_OBJECT

private slots:
    void repeatedHeadsAreKeptForEachQuery()
    {
        const auto with = [](const char* repeats) {
            return *answerTraining(
                h200(),
                trainingWith({"model=llama-3.2-1b", "batch=2", "sequence=512", "precision=bf16", "attention=flash",
                              "advice=none", std::string("repeats_heads=") + repeats}));
        };
        // 16 layers of 32 heads on 8, 64 wide: keys and values of 24 heads more.
        QCOMPARE(liveAtBackward(with("true")) - liveAtBackward(with("false")),
                 std::int64_t(16) * 2 * 24 * 64 * 2 * 512 * 2);
    }

    void paddingKeepsAMaskInEachLayer()
    {
        // convert_boolean_attn_mask() makes 2 · 512 · 512 of bf16 of the mask at every call; heads are copied where
        // there is a mask (use_gqa_in_sdpa() of transformers); attention_mask itself is 2 · 512 of Int64.
        // tst_pytorch_networks runs it.
        const auto with = [](const char* padding) {
            return liveAtBackward(
                *answerTraining(*findDevice("nvidia-a100-80gb"),
                                trainingWith({"model=llama-3.2-1b", "batch=2", "sequence=512", "precision=bf16",
                                              "advice=none", std::string("padding=") + padding})));
        };
        const std::int64_t mask = 2 * 512 * 512 * 2, heads = 2 * 24 * 64 * 2 * 512 * 2;
        QCOMPARE(with("true") - with("false"), 16 * (mask + heads - 8) + 2 * 512 * 8);
    }

    void attentionIsTheKernelThatPyTorchPicks_data()
    {
        // PyTorch, aten/src/ATen/native/transformers/cuda/sdp_utils.cpp: FlashAttention takes 16 bits on sm_80 and
        // later. transformers 5.24: Gemma 2 and BLOOM have no attention by F.scaled_dot_product_attention.
        QTest::addColumn<QString>("device");
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("precision");
        QTest::addColumn<QString>("kernel");
        QTest::newRow("bf16 on an A100") << "nvidia-a100-80gb"
                                         << "llama-3.2-1b"
                                         << "bf16"
                                         << "flash";
        QTest::newRow("autocast on an H200") << "nvidia-h200"
                                             << "llama-3.2-1b"
                                             << "bf16-autocast"
                                             << "flash";
        QTest::newRow("fp32 on an A100") << "nvidia-a100-80gb"
                                         << "llama-3.2-1b"
                                         << "fp32"
                                         << "efficient";
        QTest::newRow("fp16 on a V100") << "nvidia-v100-sxm2"
                                        << "gpt2"
                                        << "fp16"
                                        << "efficient";
        QTest::newRow("scores with a cap") << "nvidia-h200"
                                           << "gemma-2-2b"
                                           << "bf16"
                                           << "eager";
        QTest::newRow("a cap left out") << "nvidia-h200"
                                        << "gemma-2-2b transformers=4.55"
                                        << "bf16"
                                        << "flash";
        QTest::newRow("scores with slopes") << "nvidia-h200"
                                            << "bloom-560m"
                                            << "bf16"
                                            << "eager";
        QTest::newRow("from scratch") << "nvidia-h200"
                                      << "from-scratch:hidden=256,layers=2,heads=4,ffn=512,vocab=1000"
                                      << "bf16"
                                      << "eager";
        QTest::newRow("PyTorch 1.13") << "nvidia-a100-80gb"
                                      << "gpt2 pytorch=1.13"
                                      << "fp16"
                                      << "eager";
    }
    void attentionIsTheKernelThatPyTorchPicks()
    {
        QFETCH(QString, device);
        QFETCH(QString, model);
        QFETCH(QString, precision);
        QFETCH(QString, kernel);
        const Device on = *findDevice(device.toStdString());
        const auto peak = [&](const QString& attention) {
            std::vector<std::string> texts{"batch=16",
                                           "sequence=512",
                                           "optimizer=sgd",
                                           "advice=none",
                                           "precision=" + precision.toStdString(),
                                           "attention=" + attention.toStdString()};
            for (const QString& text : QString("model=" + model).split(' '))
                texts.push_back(text.toStdString());
            const auto prediction = trainingMemory().predict(on, trainingWith(texts));
            return prediction ? predictedValue(*prediction, "peak_allocated") : memscape::nan;
        };
        QVERIFY(peak("auto") > 0);
        QCOMPARE(peak("auto"), peak(kernel));
        if (kernel != "eager")
            QVERIFY(peak("auto") < peak("eager"));
    }

    void transformersRepeatsHeadsBefore454()
    {
        // Pull request 39412 of transformers (July 2025): enable_gqa in place of repeat_kv. FlashAttention called by
        // itself shares keys and values in every version.
        const auto with = [](const std::string& version, const std::string& attention) {
            return liveAtBackward(
                *answerTraining(h200(),
                                trainingWith({"model=llama-3.2-1b", "batch=2", "sequence=512", "precision=bf16",
                                              "advice=none", "attention=" + attention, "transformers=" + version})));
        };
        QCOMPARE(with("4.50", "auto") - with("4.54", "auto"), std::int64_t(16) * 2 * 24 * 64 * 2 * 512 * 2);
        QCOMPARE(with("4.50", "flash"), with("4.54", "flash"));
    }

    void theAnswerSaysWhichKernelAndWhy()
    {
        const auto said = [](const char* device, std::vector<std::string> more, const char* sequence = "sequence=64") {
            more.insert(more.end(), {"batch=1", sequence, "advice=none"});
            const auto prediction = trainingMemory().predict(*findDevice(device), trainingWith(more));
            return prediction ? QString::fromStdString(prediction->detail.value("attention", "")) : QString();
        };
        QCOMPARE(said("nvidia-a100-80gb", {"model=llama-3.2-1b", "precision=bf16"}),
                 QString("FlashAttention: 16 bits on Ampere or later"));
        QCOMPARE(said("nvidia-h200", {"model=llama-3.2-1b", "precision=bf16"}),
                 QString("cuDNN's attention: 16 bits on Hopper or Blackwell"));
        QCOMPARE(said("nvidia-a100-80gb", {"model=llama-3.2-1b", "precision=fp32"}),
                 QString("memory-efficient attention: FlashAttention takes 16 bits"));
        // Phi-3's layers see 2,047 tokens: as many get a mask (transformers, _ignore_causal_mask_sdpa).
        QCOMPARE(said("nvidia-a100-80gb", {"model=phi-3-mini", "precision=bf16"}, "sequence=2047"),
                 QString("memory-efficient attention: FlashAttention takes no mask"));
        QCOMPARE(said("nvidia-a100-80gb", {"model=phi-3-mini", "precision=bf16"}, "sequence=2046"),
                 QString("FlashAttention: 16 bits on Ampere or later"));
        QVERIFY(said("nvidia-h200", {"model=bloom-560m", "precision=bf16"}).startsWith("written out: "));
        QCOMPARE(said("nvidia-h200", {"model=gpt2", "precision=bf16", "attention=flash"}), QString()); // as asked
    }

    void aStepTakesTheTimeOfItsKernel()
    {
        const auto seconds = [](const char* device, const std::string& attention, const std::string& version = "2.14",
                                const std::string& compile = "none") {
            const auto prediction = trainingMemory().predict(
                *findDevice(device),
                trainingWith({"model=llama-3.2-1b", "batch=1", "sequence=8192", "precision=bf16", "advice=none",
                              "attention=" + attention, "pytorch=" + version, "compile=" + compile}));
            return prediction ? predictedValue(*prediction, "step_time") : memscape::nan;
        };
        // cuDNN's attention is quicker than FlashAttention-2 on a Hopper, and PyTorch prefers it there by now.
        QVERIFY(seconds("nvidia-h200", "cudnn") < seconds("nvidia-h200", "flash"));
        QCOMPARE(seconds("nvidia-h200", "auto"), seconds("nvidia-h200", "cudnn"));
        QCOMPARE(seconds("nvidia-h200", "auto", "2.14", "inductor"),
                 seconds("nvidia-h200", "cudnn", "2.14", "inductor"));
        QCOMPARE(seconds("nvidia-h200", "auto", "2.1"), seconds("nvidia-h200", "flash", "2.1"));
        QCOMPARE(seconds("nvidia-a100-80gb", "auto"), seconds("nvidia-a100-80gb", "flash"));
    }
};

QTEST_GUILESS_MAIN(TestTrainingAttention)
#include "tst_training_attention.moc"
