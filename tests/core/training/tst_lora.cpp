// SPDX-License-Identifier: Apache-2.0
// Adapters of Llama-2-7B against the counts that the PEFT library prints for them, and NF4 against
// the 4.127 bits of the QLoRA paper.
#include "core/training/lora.h"
#include "core/training/optimizer_state.h"

#include <QtTest>

using namespace memscape;

namespace {

ParameterTensor matrix(const std::string& name, std::int64_t rows, std::int64_t columns)
{
    return {name, {rows, columns}, rows * columns, true, false, 0};
}

/// Hidden 4096, 11008 in the MLP, 32 layers, 32000 words, output head of its own.
std::vector<ParameterTensor> llama7b()
{
    std::vector<ParameterTensor> all{matrix("model.embed_tokens.weight", 32000, 4096)};
    all.back().isEmbedding = true;
    for (int layer = 0; layer < 32; ++layer) {
        const std::string block = "model.layers." + std::to_string(layer) + ".";
        for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
            all.push_back(matrix(block + "self_attn." + name + ".weight", 4096, 4096));
        for (const char* name : {"gate_proj", "up_proj"})
            all.push_back(matrix(block + "mlp." + name + ".weight", 11008, 4096));
        all.push_back(matrix(block + "mlp.down_proj.weight", 4096, 11008));
        for (const char* name : {"input_layernorm", "post_attention_layernorm"})
            all.push_back({block + name + ".weight", {4096}, 4096, true, false, 0});
    }
    all.push_back({"model.norm.weight", {4096}, 4096, true, false, 0});
    all.push_back(matrix("lm_head.weight", 32000, 4096));
    all.back().isEmbedding = true;
    return all;
}

} // namespace

class TestLora : public QObject
{
    Q_OBJECT

private slots:
    void countsOfPeft_data()
    {
        QTest::addColumn<QStringList>("targets");
        QTest::addColumn<int>("rank");
        QTest::addColumn<qint64>("trained");
        QTest::newRow("q, v, rank 8") << QStringList{"q_proj", "v_proj"} << 8 << qint64(4'194'304);
        QTest::newRow("q, v, rank 16") << QStringList{"q_proj", "v_proj"} << 16 << qint64(8'388'608);
        QTest::newRow("all linear, rank 16") << QStringList() << 16 << qint64(39'976'960);
    }
    void countsOfPeft()
    {
        QFETCH(QStringList, targets);
        QFETCH(int, rank);
        QFETCH(qint64, trained);
        LoraPlan lora;
        lora.rank = rank;
        for (const QString& target : targets)
            lora.targets.push_back(target.toStdString());
        const auto parameters = withAdapters(llama7b(), lora);
        QVERIFY(parameters);
        QCOMPARE(trainedCount(*parameters), trained);
        QCOMPARE(elementCount(*parameters), 6'738'415'616 + trained);
    }

    void namesOfAdapters()
    {
        const auto parameters = withAdapters(llama7b(), LoraPlan{.rank = 4, .targets = {"v_proj"}});
        QVERIFY(parameters);
        const auto at = std::find_if(parameters->begin(), parameters->end(), [](const auto& p) { return p.isTrained; });
        QCOMPARE(at->name, std::string("model.layers.0.self_attn.v_proj.lora_A.weight"));
        QCOMPARE(at->shape, (ParameterTensor::Sizes{4, 4096}));
        QCOMPARE(at[1].name, std::string("model.layers.0.self_attn.v_proj.lora_B.weight"));
    }

    void wrongTargetsAndRanks()
    {
        const auto none = withAdapters(llama7b(), LoraPlan{.rank = 4, .targets = {"query"}});
        QVERIFY(!none);
        QCOMPARE(none.error().code, std::string("plan.lora"));
        const auto large = withAdapters(llama7b(), LoraPlan{.rank = 4097, .targets = {}});
        QVERIFY(!large);
        QCOMPARE(large.error().code, std::string("plan.range"));
    }

    void normalFloatTakes4127BitsPerElement()
    {
        const double bits = 8.0 * double(normalFloatBytes(4096 * 4096)) / (4096 * 4096);
        QVERIFY2(std::abs(bits - 4.12695) < 0.001, qPrintable(QString::number(bits, 'f', 5)));
        // one element: half a byte, one scale, its scale, offset and codes
        QCOMPARE(normalFloatBytes(1), 1 + 1 + 4 + 4 + 64 + 1024);
    }

    void aQuantizedBaseKeepsEmbeddingsAndNorms()
    {
        Plan plan;
        plan.precision = Precision::Bf16;
        plan.lora = LoraPlan{.rank = 16, .targets = {}, .isQuantized = true};
        const auto parameters = withAdapters(llama7b(), *plan.lora);
        QVERIFY(parameters);
        const KeptBytes kept = keptBytes(*parameters, plan);
        const double gigabytes = double(kept.weights) / 1e9;
        // 6.476e9 elements in NF4 are 3.341 GB, 2 x 131,072,000 and the norms in bf16 0.525 GB,
        // adapters 0.080 GB
        QVERIFY2(std::abs(gigabytes - 3.945) < 0.002, qPrintable(QString::number(gigabytes)));
        QCOMPARE(kept.gradients, 2 * 39'976'960);
        QCOMPARE(kept.state, 2 * 2 * 39'976'960);
    }
};

QTEST_APPLESS_MAIN(TestLora)
#include "tst_lora.moc"
