// SPDX-License-Identifier: Apache-2.0
// Which implementation scaled_dot_product_attention takes: on a CPU against what PyTorch 2.15 picks
// (tests/data/pytorch/attention_paths.py), on GPUs against the conditions in its sources and documentation.
#include "core/network/attention_path.h"
#include "core/network/dtype.h"

#include <QtTest>

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

using namespace memscape;

namespace {

EagerRules gpu(bool hasFlash, bool prefersCudnn, PyTorch version = PyTorch::From214)
{
    EagerRules rules = EagerRules::onGpu(version);
    rules.hasFlash = hasFlash;
    rules.prefersCudnn = prefersCudnn;
    return rules;
}

AttentionCase asked(DType dtype, std::int64_t width = 64)
{
    return {.dtype = dtype, .width = width, .valueWidth = width};
}

} // namespace

class TestAttentionPath : public QObject
{
    Q_OBJECT

private slots:
    void aCpuTakesWhatPyTorchTakes()
    {
        QFile file(TEST_DATA "/pytorch/attention_paths.json");
        QVERIFY(file.open(QFile::ReadOnly));
        const QJsonArray cases = QJsonDocument::fromJson(file.readAll())["cases"].toArray();
        QVERIFY(cases.size() >= 120);
        for (const QJsonValue& one : cases) {
            const QString type = one["dtype"].toString();
            const AttentionCase asked{.dtype = type == "fp32" ? DType::Float32
                                          : type == "bf16"    ? DType::BFloat16
                                                              : DType::Float16,
                                      .width = one["width"].toInt(),
                                      .valueWidth = one["value_width"].toInt(),
                                      .sharesHeads = one["shares"].toBool(),
                                      .isMasked = one["masked"].toBool(),
                                      .dropout = one["dropout"].toDouble()};
            const bool isKernel = chosenAttention(EagerRules::onCpu(false, 2), asked).path == AttentionPath::Flash;
            QVERIFY2(isKernel == (one["choice"].toInt() == 1),
                     QJsonDocument(one.toObject()).toJson(QJsonDocument::Compact).constData());
        }
    }

    void sixteenBitsTakeFlashAttention()
    {
        const EagerRules ampere = gpu(true, false);
        QCOMPARE(chosenAttention(ampere, asked(DType::BFloat16)).path, AttentionPath::Flash);
        QCOMPARE(chosenAttention(ampere, asked(DType::Float16, 256)).path, AttentionPath::Flash);
        QCOMPARE(chosenAttention(ampere, asked(DType::Float16, 264)).path, AttentionPath::Efficient);
        QCOMPARE(chosenAttention(ampere, asked(DType::Float32)).path, AttentionPath::Efficient);
        QCOMPARE(chosenAttention(ampere, asked(DType::Float32, 30)).path, AttentionPath::Math); // loads four at a time
    }

    void cudnnComesFirstOnHopper()
    {
        const EagerRules hopper = gpu(true, true);
        AttentionCase one = asked(DType::BFloat16, 128);
        QCOMPARE(chosenAttention(hopper, one).path, AttentionPath::Cudnn);
        one.dropout = 0.125; // a multiple of 1/16
        QCOMPARE(chosenAttention(hopper, one).path, AttentionPath::Cudnn);
        one.dropout = 0.1;
        QCOMPARE(chosenAttention(hopper, one).path, AttentionPath::Flash);
        QCOMPARE(chosenAttention(hopper, asked(DType::BFloat16, 100)).path, AttentionPath::Flash); // no multiple of 8
    }

    void aMaskIsNotForFlashAttention()
    {
        AttentionCase one = asked(DType::BFloat16);
        one.isMasked = true;
        const AttentionChoice choice = chosenAttention(gpu(true, false), one);
        QCOMPARE(choice.path, AttentionPath::Efficient);
        QCOMPARE(QString(choice.because), QString("FlashAttention takes no mask"));
        QCOMPARE(chosenAttention(gpu(true, true), one).path, AttentionPath::Cudnn); // which takes one
    }

    void olderGpusHaveNoBrainFloat()
    {
        const EagerRules turing = gpu(false, false);
        QCOMPARE(chosenAttention(turing, asked(DType::Float16)).path, AttentionPath::Efficient);
        QCOMPARE(chosenAttention(turing, asked(DType::BFloat16)).path, AttentionPath::Math);
        QCOMPARE(chosenAttention(turing, asked(DType::Float32, 30)).path, AttentionPath::Efficient);
    }

    void sharedHeadsWereWrittenOutBefore214()
    {
        // Pull request 191085 of PyTorch (July 2026); 2.14.1 has it, and the documentation of 2.15 names
        // memory-efficient attention among those that share.
        AttentionCase one = asked(DType::Float32);
        one.sharesHeads = true;
        QCOMPARE(chosenAttention(gpu(true, false), one).path, AttentionPath::Efficient);
        QCOMPARE(chosenAttention(gpu(true, false, PyTorch::Before214), one).path, AttentionPath::Math);
        one.dtype = DType::BFloat16;
        QCOMPARE(chosenAttention(gpu(true, false, PyTorch::Before214), one).path, AttentionPath::Flash);
    }
};

QTEST_GUILESS_MAIN(TestAttentionPath)
#include "tst_attention_path.moc"
