// SPDX-License-Identifier: Apache-2.0
// Placements measured on the fake GPU: every strategy gives the bits of a run without a limit, reaches the peak and
// moves the bytes that were predicted, and no stream touches what another is still at; copies take the link's time; a
// lost bit, memory that cannot be had and Stop are told apart; nothing is left behind.
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/session.h"
#include "tests/kernels/cuda/fake_run.h"

#include <QtTest>

#include <algorithm>
#include <cmath>

using namespace memscape;

namespace {

constexpr double slow = 5e-3; // s
const char* const smallChain = "graph=mlp:5x32";
const char* const ownGraph = "graph=x: input 8 32; m@host: input 8 32; a: matmul 8 32 32 <- x; b: mul <- a m; "
                             "c: cpu <- b; d: gelu <- c; e: gpu <- d; f: add <- e x; n: item <- f; "
                             "g: matmul 8 8 32 <- f w; w@host: input 32 8; h: relu <- g";

/// Of 8 rows, at the limit and once more: a point that fails does not end such a run. Without `twice` it does.
std::vector<std::string> placedGiven(const QStringList& more, bool twice)
{
    std::vector<std::string> given;
    const auto isGiven = [&](const char* key) {
        return std::ranges::any_of(more, [&](const QString& one) { return one.startsWith(key); });
    };
    if (!isGiven("format="))
        given.emplace_back("format=fp32");
    if (!isGiven("batch="))
        given.emplace_back("batch=8");
    const auto limit = std::ranges::find_if(more, [](const QString& one) { return one.startsWith("limit="); });
    const std::string bytes = limit == more.end() ? "1MiB" : limit->mid(6).toStdString();
    given.push_back("limit=" + bytes + (twice ? "," + bytes : std::string()));
    for (const QString& one : more) {
        if (!one.startsWith("limit="))
            given.push_back(one.toStdString());
    }
    return given;
}

struct PlacedOnFake : ListenedRun
{
    explicit PlacedOnFake(const QStringList& more, bool twice = true)
        : ListenedRun("placement", placedGiven(more, twice))
    { }
};

} // namespace

class TestCudaPlacement : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        fakeGpu() = FakeGpu{};
        fakeGpu().linkLatency = fakeGpu().launchSeconds = slow; // so that a few runs are enough
    }

    void theFakeFindsStreamsInEachOthersWay()
    {
        cudaStream_t first = nullptr, second = nullptr;
        cudaEvent_t event = nullptr;
        QVERIFY(cudaStreamCreateWithFlags(&first, 0) == cudaSuccess);
        QVERIFY(cudaStreamCreateWithFlags(&second, 0) == cudaSuccess);
        QVERIFY(cudaEventCreate(&event) == cudaSuccess);
        void* pinned = nullptr;
        QVERIFY(cudaHostAlloc(&pinned, 64, 0) == cudaSuccess);
        float device[16] = {1}, *const host = static_cast<float*>(pinned);
        const auto copies = [&](bool isOrdered) {
            fakeGpu().race.clear();
            device[0] = 1;
            cudaMemcpyAsync(host, device, sizeof device, cudaMemcpyDeviceToHost, first);
            const float early = *host;
            cudaEventRecord(event, first);
            if (isOrdered)
                cudaStreamWaitEvent(second, event, 0);
            cudaMemcpyAsync(device, host, sizeof device, cudaMemcpyHostToDevice, second);
            cudaStreamSynchronize(first);
            cudaStreamSynchronize(second);
            return early;
        };
        QCOMPARE(copies(true), 0.0F); // it had not arrived
        QCOMPARE(*host, 1.0F);
        QCOMPARE(fakeGpu().race, std::string());
        copies(false);
        QVERIFY(!fakeGpu().race.empty());
        cudaFreeHost(pinned);
        cudaStreamDestroy(first);
        cudaStreamDestroy(second);
    }

    void everyStrategyGivesTheSameBits_data()
    {
        QTest::addColumn<QStringList>("more");
        const auto row = [](const char* name, const QStringList& more) { QTest::newRow(name) << more; };
        row("layers", {smallChain, "strategy=layers", "limit=16KiB"});
        row("layers, no prefetch", {smallChain, "strategy=layers", "limit=16KiB", "prefetch=0"});
        row("layers, three ahead", {smallChain, "strategy=layers", "limit=40KiB", "prefetch=3"});
        row("layers, pageable", {smallChain, "strategy=layers", "limit=16KiB", "link=pageable"});
        row("host", {smallChain, "strategy=host"});
        row("by hand", {smallChain, "strategy=device", "place=layer2@host gelu3@host"});
        row("ZeRO-Offload", {smallChain, "strategy=zero-offload"});
        row("ZeRO-Infinity", {smallChain, "strategy=zero-infinity", "prefetch=2"});
        row("ZeRO-Infinity, in turn", {smallChain, "strategy=zero-infinity", "overlap=false"});
        row("a graph, implicit", {ownGraph, "strategy=implicit"});
    }
    void everyStrategyGivesTheSameBits()
    {
        QFETCH(QStringList, more);
        const PlacedOnFake placed(more);
        QCOMPARE(placed.error(), std::string());
        QVERIFY(placed.predicted("peak") >= 0 && placed.measured("time") > 0);
        QCOMPARE(placed.measured("peak"), placed.predicted("peak")); // to the byte
        QCOMPARE(placed.measured("transferred"), placed.predicted("transferred"));
        QCOMPARE(fakeGpu().race, std::string());
        QCOMPARE(fakeGpu().heldUp, std::string());
    }

    void copiesTakeTheLinksTime()
    {
        // Five weights of 4 KiB come up and the input with them, nothing goes down.
        const PlacedOnFake placed({smallChain, "strategy=layers", "limit=12KiB", "prefetch=0"});
        QCOMPARE(placed.error(), std::string());
        const double bytes = placed.measured("transferred"), copies = placed.measured("copies");
        QVERIFY(copies >= 2);
        const double expected = copies * slow + bytes / 50e9;
        QVERIFY2(std::fabs(placed.measured("transfer_time") / expected - 1) < 1e-3,
                 qPrintable(QString::number(placed.measured("transfer_time"))));
        QCOMPARE(placed.measured("host_time"), 0.0);
    }

    void aLostBitFailsTheRun()
    {
        fakeGpu().wrongCopyAt = 3; // of weights that stay
        const PlacedOnFake placed({smallChain, "strategy=device"}, false);
        QVERIFY(!placed.ran.run);
        QCOMPARE(placed.ran.run.error().code, std::string("check.failed"));
        QVERIFY2(placed.error().find("without a limit") != std::string::npos, placed.error().c_str());
    }

    void aWrongProductFailsTheRun()
    {
        fakeGpu().productsUntilWrong = 2;
        const PlacedOnFake placed({smallChain, "strategy=layers", "limit=16KiB"}, false);
        QVERIFY(!placed.ran.run);
        QCOMPARE(placed.ran.run.error().code, std::string("check.failed"));
    }

    void memoryThatCannotBeHadIsNamed()
    {
        fakeGpu().pinnableBytes = 2048;
        const PlacedOnFake pinned({smallChain, "strategy=layers"});
        QVERIFY(!pinned.ran.run);
        QCOMPARE(pinned.ran.run.error().code, std::string("run.memory"));
        QVERIFY2(pinned.error().find("pageable") != std::string::npos, pinned.error().c_str());
        QCOMPARE(PlacedOnFake({smallChain, "strategy=layers", "link=pageable"}).error(), std::string());

        fakeGpu() = FakeGpu{};
        fakeGpu().memoryBytes = 1 << 20;
        const PlacedOnFake small({"graph=mlp:20x128", "strategy=device", "limit=4MiB"});
        QVERIFY(!small.ran.run);
        QCOMPARE(small.ran.run.error().code, std::string("run.memory"));
        QVERIFY2(small.error().find("are free") != std::string::npos, small.error().c_str());
    }

    /// Asked before every step: some have been queued by then.
    void stopEndsARunWithin()
    {
        const std::uint64_t before = fakeGpu().usedBytes;
        test::Listener listener;
        listener.stopAfter = 40;
        const auto run =
            runOnFake("placement", placedGiven({smallChain, "strategy=zero-offload"}, false), listener).run;
        QVERIFY(!run);
        QCOMPARE(run.error().code, std::string("run.cancelled"));
        QVERIFY(fakeGpu().launches > 0);
        QCOMPARE(fakeGpu().usedBytes, before);
        QCOMPARE(fakeGpu().race, std::string());
    }

    void whatIsOnlyPredictedIsRefused_data()
    {
        QTest::addColumn<QStringList>("more");
        QTest::addColumn<QString>("remedy");
        QTest::newRow("a model") << QStringList{"graph=gpt2", "strategy=layers", "limit=8GiB", "sequence=8"}
                                 << "graph=mlp:8x1024";
        QTest::newRow("half") << QStringList{smallChain, "format=half"} << "format=fp32";
        QTest::newRow("a disk") << QStringList{smallChain, "strategy=zero-infinity", "disk=1GB/s"} << "disk=0";
        QTest::newRow("more than the limit")
            << QStringList{smallChain, "strategy=device", "limit=4KiB"} << "limit=22528";
    }
    void whatIsOnlyPredictedIsRefused()
    {
        QFETCH(QStringList, more);
        QFETCH(QString, remedy);
        const PlacedOnFake placed(more);
        QVERIFY(!placed.ran.run);
        QCOMPARE(placed.ran.run.error().code, std::string("run.skipped"));
        QVERIFY2(QString::fromStdString(placed.error()).contains(remedy), placed.error().c_str());
    }

    void nothingIsLeftBehind()
    {
        const std::uint64_t before = fakeGpu().usedBytes;
        QCOMPARE(PlacedOnFake({smallChain, "strategy=zero-offload"}).error(), std::string());
        QCOMPARE(fakeGpu().usedBytes, before);
        QCOMPARE(fakeGpu().heldUp, std::string());
    }
};

QTEST_GUILESS_MAIN(TestCudaPlacement)
#include "tst_cuda_placement.moc"
