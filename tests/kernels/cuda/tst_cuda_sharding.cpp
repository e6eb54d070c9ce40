// SPDX-License-Identifier: Apache-2.0
// Rings between fake GPUs: every sum is exact, the bytes are those of the prediction, no rank touches what its
// neighbour is still at, and a step takes the link's time; GPUs that do not reach each other go through the host and
// say so; too few of them, a lost bit and memory that cannot be had are told apart; nothing is left behind.
#include "tests/kernels/cuda/fake_run.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

/// So slow that a few runs are enough.
FakeGpu slowGpus(int devices)
{
    FakeGpu gpu;
    gpu.devices = devices;
    gpu.peerLatency = gpu.linkLatency = 2e-3;
    return gpu;
}

/// Ranks with few parameters, at one point twice; a point that fails does not end such a run. Without `twice` it does.
std::vector<std::string> shardedGiven(int ranks, const QStringList& more, bool twice)
{
    std::vector<std::string> given{
        "model=from-scratch:hidden=16,layers=2,heads=2,ffn=32,vocab=64",
        "sequence=8",
        QString(twice ? "data_parallel=%1,%1" : "data_parallel=%1").arg(ranks).toStdString(),
    };
    for (const QString& one : more)
        given.push_back(one.toStdString());
    return given;
}

struct ShardedOnFake : ListenedRun
{
    explicit ShardedOnFake(int ranks, const QStringList& more = {}, bool twice = true)
        : ListenedRun("sharding", shardedGiven(ranks, more, twice))
    { }
};

} // namespace

class TestCudaSharding : public QObject
{
    Q_OBJECT

private slots:
    void init() { fakeGpu() = slowGpus(1); }

    void everySumIsExact_data()
    {
        QTest::addColumn<int>("ranks");
        QTest::addColumn<QStringList>("more");
        for (const int ranks : {2, 3, 4}) {
            for (const char* stage : {"zero=0", "zero=1", "zero=2", "zero=3"}) {
                for (const char* link : {"link=peer", "link=host"})
                    QTest::addRow("%d %s %s", ranks, stage, link) << ranks << QStringList{stage, link};
            }
        }
        QTest::newRow("floats") << 2 << QStringList{"precision=fp32", "zero=2"};
    }
    void everySumIsExact()
    {
        QFETCH(int, ranks);
        QFETCH(QStringList, more);
        fakeGpu().devices = 4;
        const ShardedOnFake sharded(ranks, more);
        QCOMPARE(sharded.error(), std::string());
        QVERIFY(sharded.measured("sent") > 0);
        QCOMPARE(sharded.measured("sent"), sharded.predicted("sent"));
        QCOMPARE(sharded.measured("stored"), sharded.predicted("stored"));
        QVERIFY(sharded.measured("communication_time") > 0);
        QCOMPARE(fakeGpu().race, std::string());
        QCOMPARE(fakeGpu().heldUp, std::string());
        QCOMPARE(sharded.listener.count("sharding.staged"), 0);
    }

    void aStepTakesTheLinksTime()
    {
        // One float: two ranks copy one after the other in the one clock of the fake; in the first of two steps they
        // add.
        fakeGpu().devices = 2;
        const ShardedOnFake sharded(2);
        QCOMPARE(sharded.error(), std::string());
        const double step = 2 * 2e-3 + 2 * 2.5e-6 / 2;
        QVERIFY2(std::fabs(sharded.measured("latency") / step - 1) < 0.01,
                 qPrintable(QString::number(sharded.measured("latency"))));
    }

    void gpusThatDoNotReachEachOtherGoThroughTheHost()
    {
        fakeGpu().devices = 2;
        fakeGpu().reachesPeers = false;
        const ShardedOnFake sharded(2, {"link=peer"});
        QCOMPARE(sharded.error(), std::string());
        QCOMPARE(sharded.listener.count("sharding.staged"), 1);
        QVERIFY(sharded.listener.notes.back().second.find("cannot reach") != std::string::npos);
        QCOMPARE(fakeGpu().race, std::string());
    }

    void aRefusedWayGoesThroughTheHost()
    {
        fakeGpu().devices = 2;
        fakeGpu().peerError = cudaErrorTooManyPeers;
        const ShardedOnFake refused(2, {"link=peer"});
        QCOMPARE(refused.error(), std::string());
        QCOMPARE(refused.listener.count("sharding.staged"), 1);
        fakeGpu().peerError = cudaErrorPeerAccessAlreadyEnabled;
        QCOMPARE(ShardedOnFake(2, {"link=peer"}).listener.count("sharding.staged"), 0);
    }

    void tooFewGpusAreRefused()
    {
        const ShardedOnFake one(2);
        QVERIFY(!one.ran.run);
        QCOMPARE(one.ran.run.error().code, std::string("run.skipped"));
        QVERIFY2(one.error().find("2 ranks need 2 GPUs, and there is one") != std::string::npos, one.error().c_str());
        QVERIFY2(one.error().find("device cpu") != std::string::npos, one.error().c_str());
        fakeGpu().devices = 2;
        const ShardedOnFake two(4);
        QVERIFY(!two.ran.run);
        QVERIFY2(two.error().find("choose 2 ranks") != std::string::npos, two.error().c_str());
    }

    void aLostBitFailsTheRun()
    {
        for (const char* link : {"link=peer", "link=host"}) {
            fakeGpu() = slowGpus(2);
            fakeGpu().wrongCopyAt = 3;
            const ShardedOnFake sharded(2, {link}, false);
            QVERIFY(!sharded.ran.run);
            QCOMPARE(sharded.ran.run.error().code, std::string("check.failed"));
        }
    }

    void stopEndsARunWithin()
    {
        fakeGpu().devices = 2;
        const std::uint64_t before = fakeGpu().usedBytes;
        test::Listener listener;
        listener.stopAfter = 8;
        const auto run = runOnFake("sharding", shardedGiven(2, {}, false), listener).run;
        QVERIFY(!run);
        QCOMPARE(run.error().code, std::string("run.cancelled"));
        QCOMPARE(fakeGpu().usedBytes, before);
    }

    void memoryThatCannotBeHadIsNamed()
    {
        fakeGpu().devices = 2;
        fakeGpu().memoryBytes = 64 << 10;
        const ShardedOnFake small(2, {"precision=fp32"});
        QVERIFY(!small.ran.run);
        QCOMPARE(small.ran.run.error().code, std::string("run.memory"));
        QVERIFY2(small.error().find("of GPU") != std::string::npos, small.error().c_str());
        fakeGpu() = slowGpus(2);
        fakeGpu().pinnableBytes = 100;
        const ShardedOnFake pinned(2, {"link=host"});
        QCOMPARE(pinned.ran.run ? std::string() : pinned.ran.run.error().code, std::string("run.memory"));
    }

    void nothingIsLeftBehind()
    {
        fakeGpu().devices = 2;
        const std::uint64_t before = fakeGpu().usedBytes;
        QCOMPARE(ShardedOnFake(2, {"zero=3"}).error(), std::string());
        QCOMPARE(fakeGpu().usedBytes, before);
    }
};

QTEST_GUILESS_MAIN(TestCudaSharding)
#include "tst_cuda_sharding.moc"
