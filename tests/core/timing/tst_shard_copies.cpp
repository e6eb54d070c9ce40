// SPDX-License-Identifier: Apache-2.0
// Bytes that DDP and FSDP copy, convert and divide beside their collectives, against PyTorch's own operators
// (tests/data/pytorch/shard_copies.py), and how often a step does so.
#include "core/timing/shard_copies.h"
#include "tests/support/real_steps.h"

#include <QtTest>

using namespace memscape;
using namespace memscape::test;

namespace {

std::vector<ParameterTensor> layersOf(int count, std::int64_t width)
{
    ParameterTensor layer;
    layer.shape = {width, width};
    layer.elements = width * width;
    return std::vector<ParameterTensor>(std::size_t(count), layer);
}

Plan planOf(ShardedBy implementation, int stage, Precision precision = Precision::Bf16Mixed)
{
    Plan plan;
    plan.precision = precision;
    plan.shardedBy = implementation;
    plan.zeroStage = stage;
    plan.dataParallel = 8;
    return plan;
}

} // namespace

class TestShardCopies : public QObject
{
    Q_OBJECT

private slots:
    void bytesAreThoseOfPyTorch()
    {
        const QJsonObject file = recordedFile("shard_copies.json");
        const auto layers = layersOf(file["layers"].toInt(), file["width"].toInteger());
        for (const QJsonValue& recorded : file["cases"].toArray()) {
            const QString sharded = recorded["sharded"].toString(), precision = recorded["precision"].toString();
            Plan plan = planOf(sharded == "fsdp2" ? ShardedBy::Fsdp2 : ShardedBy::Fsdp1, sharded == "ddp" ? 0 : 3,
                               precision == "fp32" ? Precision::Fp32 : Precision::Bf16Mixed);
            plan.dataParallel = file["ranks"].toInt();
            plan.fp32Gradients = recorded["reduce"] == "fp32";
            plan.gradientsAreBucketViews = recorded["views"].toBool();
            double gathered = 0, reduced = 0;
            const QJsonObject passes = recorded["bytes"].toObject();
            for (const QString& name : passes.keys())
                (name == "split_with_sizes_copy" ? gathered : reduced) += passes[name].toDouble();
            const ShardCopies copies = shardCopies(layers, plan);
            QVERIFY2(copies.gathered == gathered && copies.reduced == reduced, qPrintable(sharded + " " + precision));
        }
    }

    void everyMicroBatchIsReducedButUnderDdp()
    {
        const auto layers = layersOf(2, 32);
        const auto growth = [&](ShardedBy implementation, int stage) {
            Plan plan = planOf(implementation, stage);
            const ShardCopies once = shardCopies(layers, plan);
            plan.accumulation = 4;
            return shardCopies(layers, plan).reduced / once.reduced;
        };
        QCOMPARE(growth(ShardedBy::Fsdp1, 3), 4.0);
        QCOMPARE(growth(ShardedBy::Fsdp2, 2), 4.0);
        QCOMPARE(growth(ShardedBy::DeepSpeed, 2), 4.0);
        QCOMPARE(growth(ShardedBy::DeepSpeed, 1), 1.0);
        QCOMPARE(growth(ShardedBy::Fsdp1, 0), 1.0);
    }

    void theRootIsGatheredOnce()
    {
        auto layers = layersOf(2, 32);
        layers[0].isEmbedding = true;
        QCOMPARE(shardCopies(layers, planOf(ShardedBy::Fsdp2, 3)).gathered, 2.0 * (1 + 2) * 32 * 32 * 2);
        QCOMPARE(shardCopies(layers, planOf(ShardedBy::Fsdp2, 2)).gathered, 2.0 * (1 + 1) * 32 * 32 * 2);
    }

    void nothingIsCopiedForOneRankForFrozenWeightsOrByMegatron()
    {
        auto layers = layersOf(2, 32);
        Plan alone = planOf(ShardedBy::Fsdp1, 3);
        alone.dataParallel = 1;
        QCOMPARE(shardCopies(layers, alone).reduced, 0.0);
        QCOMPARE(shardCopies(layers, planOf(ShardedBy::Paper, 1)).reduced, 0.0);
        const double both = shardCopies(layers, planOf(ShardedBy::Fsdp1, 3)).reduced;
        layers[1].isTrained = false;
        QCOMPARE(shardCopies(layers, planOf(ShardedBy::Fsdp1, 3)).reduced, both / 2);
    }
};

QTEST_GUILESS_MAIN(TestShardCopies)
#include "tst_shard_copies.moc"
