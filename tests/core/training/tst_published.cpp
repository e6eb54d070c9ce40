// SPDX-License-Identifier: Apache-2.0
// Tables that papers printed (tests/data/pytorch/published_tables.json), against the closed
// formulas and against what the plan's own accounting of weights, gradients and state says: ZeRO's
// Table 1 in its printed roundings, its Figure 1 and volumes, Korthikanti's layers, parameters and
// utilisation, bytes of optimizers, QLoRA's bits, KV caches.
#include "core/training/communication.h"
#include "core/training/lora.h"
#include "core/training/optimizer_state.h"
#include "core/training/sharding.h"
#include "core/training/textbook.h"
#include "tests/support/pytorch_data.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

/// One of the tables by its key.
QJsonObject table(const char* key)
{
    return pytorchData("published_tables.json")[QLatin1String(key)].toObject();
}

enum class Rounding { Nearest, Down };

/// Whether `exact` in the digits of the printed value is that value. "41.3" has one decimal.
bool printsAs(double exact, double printed, Rounding rounding)
{
    const QString text = QString::number(printed, 'g', 12);
    const int decimals = text.contains('.') ? int(text.size()) - int(text.indexOf('.')) - 1 : 0;
    const double scale = std::pow(10, decimals);
    const double shown = rounding == Rounding::Nearest ? std::round(exact * scale) : std::floor(exact * scale);
    return std::abs(shown - printed * scale) < 1e-6;
}

bool isNear(double value, double wanted, double tolerance)
{
    return std::abs(value - wanted) <= tolerance;
}

std::vector<ParameterTensor> parametersOf(double count)
{
    return {{"all", {std::int64_t(count)}, std::int64_t(count), true, false, 0}};
}

Plan zeroPlan(int stage, int degree)
{
    Plan plan;
    plan.precision = Precision::Fp16Mixed;
    plan.optimizer = OptimizerKind::Adam;
    plan.zeroStage = stage;
    plan.dataParallel = degree;
    return plan;
}

int stageOf(const QString& name)
{
    return name == "os" ? 1 : name == "os+g" ? 2 : 3;
}

textbook::Transformer transformer(const QJsonObject& model)
{
    textbook::Transformer result;
    result.layers = model["layers"].toDouble();
    result.hidden = model["hidden"].toDouble();
    result.heads = model["heads"].toDouble();
    result.sequence = model["seq"].toDouble();
    result.vocabulary = model["vocab"].toDouble();
    result.batch = model["micro_batch"].toDouble();
    result.tensorParallel = model["tensor_parallel"].toDouble();
    return result;
}

} // namespace

class TestPublished : public QObject
{
    Q_OBJECT

    static void korthikantiModels()
    {
        QTest::addColumn<QJsonObject>("model");
        for (const QJsonValue& model : table("korthikanti")["models"].toArray())
            QTest::newRow(qPrintable(model["model"].toString())) << model.toObject();
    }

private slots:
    void zeroTable1_data()
    {
        QTest::addColumn<QJsonObject>("cell");
        const QJsonArray rows = table("zero_table1")["rows"].toArray();
        QCOMPARE(rows.size(), 54);
        for (const QJsonValue& row : rows)
            QTest::addRow("%gB, %d, %s", row["params_billion"].toDouble(), row["dp_degree"].toInt(),
                          qPrintable(row["stage"].toString()))
                << row.toObject();
    }
    void zeroTable1()
    {
        QFETCH(QJsonObject, cell);
        const double billions = cell["params_billion"].toDouble();
        const int degree = cell["dp_degree"].toInt(), stage = stageOf(cell["stage"].toString());
        const double printed = cell["published_GB"].toDouble();
        // The paper rounds its first column and cuts the other two.
        const Rounding rounding = billions == 7.5 ? Rounding::Nearest : Rounding::Down;
        const double closed = textbook::zeroBytes(billions * 1e9, degree, stage) / 1e9;
        QVERIFY2(printsAs(closed, printed, rounding), qPrintable(QString::number(closed, 'g', 12)));
        const KeptBytes kept = keptBytes(parametersOf(billions * 1e9), zeroPlan(stage, degree));
        const double ours = double(kept.device()) / 1e9;
        QVERIFY2(printsAs(ours, printed, rounding), qPrintable(QString::number(ours, 'g', 12)));
    }

    void zeroFigure1()
    {
        const QJsonObject printed = table("zero_figure1")["published_GB"].toObject();
        const QStringList bars{"baseline", "os", "os_g", "os_g_p"};
        for (int stage = 0; stage < 4; ++stage) {
            const double ours = double(keptBytes(parametersOf(7.5e9), zeroPlan(stage, 64)).device()) / 1e9;
            QVERIFY2(printsAs(ours, printed[bars[stage]].toDouble(), Rounding::Nearest), qPrintable(bars[stage]));
            QCOMPARE(textbook::zeroBytes(7.5e9, 64, stage),
                     double(keptBytes(parametersOf(7.5e9), zeroPlan(stage, 64)).device()));
        }
    }

    void zeroVolumes()
    {
        for (int stage = 0; stage < 4; ++stage) {
            const Plan plan = zeroPlan(stage, 1024);
            const double sent = sentBytes(dataParallelCommunication(parametersOf(1e9), plan));
            const double ring = 1023.0 / 1024;                   // which the paper leaves out
            QCOMPARE(sent / ring / 2e9, stage == 3 ? 3.0 : 2.0); // its section 7, in parameters
        }
    }

    void korthikantiLayers_data() { korthikantiModels(); }
    void korthikantiLayers()
    {
        using textbook::Kept;
        QFETCH(QJsonObject, model);
        const textbook::Transformer split = transformer(model);
        textbook::Transformer whole = split;
        whole.tensorParallel = 1;
        const QJsonObject bytes = model["bytes_per_layer"].toObject();
        const auto same = [&](const char* key, double value) {
            QVERIFY2(isNear(value / bytes[key].toDouble(), 1, 1e-12), key);
        };
        same("no_parallel", textbook::layerBytes(whole, Kept::All));
        same("tp", textbook::layerBytes(split, Kept::All));
        same("tp_sp", textbook::layerBytes(split, Kept::AllSequence));
        same("tp_sel", textbook::layerBytes(split, Kept::Selective));
        same("tp_sp_sel", textbook::layerBytes(split, Kept::SelectiveSequence));
        same("full", textbook::layerBytes(split, Kept::Full));
        QCOMPARE(textbook::attentionTerm(split), model["term_5as_over_h"].toDouble());
        QVERIFY(isNear(textbook::parameters(split) / 1e9, model["params_formula_billion"].toDouble(), 0.006));
    }

    void korthikantiUtilisation_data() { korthikantiModels(); }
    void korthikantiUtilisation()
    {
        QFETCH(QJsonObject, model);
        textbook::Transformer step = transformer(model);
        step.batch = model["global_batch"].toDouble();
        const QJsonObject printed = model["published"].toObject();
        const double seconds = printed["present_work_s"].toDouble();
        const double peak = 312e12 * model["gpus"].toDouble();
        const double used = 100 * textbook::stepFlops(step) / seconds / peak;
        const double executed = 100 * textbook::stepFlops(step, true) / seconds / peak;
        QVERIFY2(isNear(used, printed["mfu_pct"].toDouble(), 0.2), qPrintable(QString::number(used)));
        QVERIFY2(isNear(executed, printed["hfu_pct"].toDouble(), 0.2), qPrintable(QString::number(executed)));
    }

    void korthikantiStatements()
    {
        const QJsonObject said = table("korthikanti")["statements"].toObject();
        const QJsonArray models = table("korthikanti")["models"].toArray();
        const QStringList names{"gpt3", "mtnlg"};
        for (int i = 0; i < 2; ++i) { // 175B and 530B
            const textbook::Transformer model = transformer(models[i + 1].toObject());
            const double term = textbook::attentionTerm(model);
            QCOMPARE(term, said[names[i] + "_5as_over_h"].toDouble());
            QVERIFY(isNear(100 * term / (34 + term), said["selective_saves_pct"][names[i]].toDouble(), 0.5));
            const double extra = textbook::stepFlops(model, true) / textbook::stepFlops(model) - 1;
            QVERIFY(isNear(100 * extra, said["selective_flops_overhead_pct"][names[i]].toDouble(), 0.06));
        }
    }

    void accumulationRepeatsWhatShardsCantKeep()
    {
        const auto volume = [](int stage, int batches, ShardedBy shardedBy = ShardedBy::Paper) {
            Plan plan = zeroPlan(stage, 2);
            plan.accumulation = batches;
            plan.shardedBy = shardedBy;
            return sentBytes(dataParallelCommunication(parametersOf(1e6), plan)) / 1e6; // ring 1/2, 2 B
        };
        QCOMPARE(volume(0, 4), 2.0);
        QCOMPARE(volume(1, 4), 2.0);
        QCOMPARE(volume(2, 4), 5.0);
        QCOMPARE(volume(3, 4), 12.0);
        // DeepSpeed sums whole buckets everywhere, as DDP does, and gathers the weights besides.
        QCOMPARE(volume(1, 4, ShardedBy::DeepSpeed), 3.0);
        QCOMPARE(volume(2, 4, ShardedBy::DeepSpeed), 9.0);
    }

    void bytesOfOptimizers()
    {
        const QJsonObject printed = table("optimizer_bytes");
        const auto perParameter = [](OptimizerKind optimizer) {
            Plan plan;
            plan.optimizer = optimizer;
            return double(keptBytes(parametersOf(1 << 30), plan).state) / (1 << 30);
        };
        QCOMPARE(perParameter(OptimizerKind::AdamW), printed["adamw_fp32"].toDouble());
        QCOMPARE(perParameter(OptimizerKind::Momentum), printed["momentum_fp32"].toDouble());
        // 2 bytes, and two fp32 scales per 256 elements
        QVERIFY(isNear(perParameter(OptimizerKind::Adam8bit), printed["adam8bit"].toDouble() + 8.0 / 256, 1e-5));
        // RoBERTa-large, 355.4 million parameters: Dettmers et al. print 2.0 GB saved
        const double saved = (perParameter(OptimizerKind::AdamW) - perParameter(OptimizerKind::Adam8bit)) * 355.4e6;
        QVERIFY(isNear(saved / (1 << 30), 2.0, 0.05));
    }

    void bitsOfQlora()
    {
        const QJsonObject constants = table("qlora")["quant_constants_bits_per_param"].toObject();
        const double ours = 8.0 * double(normalFloatBytes(1 << 30)) / (1 << 30);
        QVERIFY(isNear(ours, 4 + constants["double_quant"].toDouble(), 1e-5));
    }

    void keyValueCaches()
    {
        const QJsonArray rows = table("kv_cache")["rows"].toArray();
        QCOMPARE(textbook::cachePerToken(126, 8, 128, 2), rows[0]["check_bytes"].toDouble());
        QCOMPARE(textbook::cachePerToken(126, 8, 128, 2) / 1e3, rows[0]["published_KB_per_token"].toDouble());
        QCOMPARE(textbook::cachePerToken(80, 8, 128, 2) / 1e3, rows[1]["published_KB_per_token"].toDouble());
        QCOMPARE(textbook::cachePerToken(40, 40, 128, 2), rows[3]["check_bytes"].toDouble());
        QCOMPARE(textbook::cachePerToken(32, 32, 128, 2) * 4096 / (1 << 30), rows[4]["check_GiB"].toDouble());
        QCOMPARE(textbook::cachePerToken(48, 25, 64, 2) / 1024, rows[5]["published_KiB"].toDouble());
    }

    void whatZeroBuffers()
    {
        Plan plan = zeroPlan(0, 8);
        QCOMPARE(reduceBufferBytes(parametersOf(1e9), plan), 2'000'000'000); // DDP's buckets
        plan.gradientsAreBucketViews = true;
        QCOMPARE(reduceBufferBytes(parametersOf(1e9), plan), 0);
        plan.zeroStage = 2;
        QCOMPARE(reduceBufferBytes(parametersOf(1e9), plan), 0); // Megatron's one buffer, which is reduced itself
        plan.gradientsAreBucketViews = false;
        QCOMPARE(reduceBufferBytes(parametersOf(1e9), plan), 1'000'000'000); // 5e8 elements
        QCOMPARE(reduceBufferBytes(parametersOf(1e6), plan), 2'000'000);
        QCOMPARE(gatheredBytes(parametersOf(1e6), plan), 0);
        plan.zeroStage = 3;
        QCOMPARE(gatheredBytes(parametersOf(1e6), plan), 2'000'000);
        QCOMPARE(weightBytes(parametersOf(1'000'001)[0], plan), 2 * 125'001); // padded
    }
};

QTEST_APPLESS_MAIN(TestPublished)
#include "tst_published.moc"
