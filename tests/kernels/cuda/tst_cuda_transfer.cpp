// SPDX-License-Identifier: Apache-2.0
// Transfers measured on the fake GPU, whose copies take a latency and the bytes over a bandwidth: both are found again,
// chunk by chunk; a bit that is lost on the way fails the run; nothing is left behind.
#include "core/device/catalogue.h"
#include "kernels/cuda/transfer/pinning.h"
#include "tests/kernels/cuda/fake_run.h"
#include "tests/support/listener.h"

#include <QtTest>

#include <cmath>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

/// Figures measured at the last of a run's points; NaN where it failed.
class TransferOnFake
{
public:
    explicit TransferOnFake(const std::vector<std::string>& given)
    {
        test::Listener listener;
        if (const auto run = runOnFake("transfer", given, listener).run)
            m_figures = run->measurement.figures;
    }
    double operator[](const char* key) const
    {
        const Figure* const figure = findFigure(m_figures, key);
        return figure ? figure->number() : memscape::nan;
    }

private:
    std::vector<Figure> m_figures;
};

Error transferErrorOnFake(const std::vector<std::string>& given)
{
    test::Listener listener;
    const auto run = runOnFake("transfer", given, listener).run;
    return run ? Error() : run.error();
}

bool isAbout(double found, double expected)
{
    return std::fabs(found / expected - 1) < 0.01;
}

} // namespace

class TestCudaTransfer : public QObject
{
    Q_OBJECT

private slots:
    /// A link so slow that a few runs are enough.
    void init()
    {
        fakeGpu() = FakeGpu{};
        fakeGpu().linkLatency = 9e-4;
        fakeGpu().linkBytesPerSecond = 5e8;
    }

    void latencyAndBandwidthAreFoundAgain()
    {
        const TransferOnFake large({"kind=pinned", "bytes=16MiB,16MiB", "chunk=0", "work=0"});
        const double seconds = 9e-4 + 0x1p24 / 5e8;
        QVERIFY(isAbout(large["copy_time"], seconds));
        QVERIFY(isAbout(large["time"], seconds));
        QVERIFY(isAbout(large["latency"], 9e-4));
        QVERIFY(isAbout(large["half_size"], 9e-4 * 5e8));
    }

    void everyChunkPaysTheLatency()
    {
        const TransferOnFake chunked({"bytes=1MiB,1MiB", "chunk=64KiB", "streams=4", "work=16"});
        QVERIFY(isAbout(chunked["copy_time"], 16 * 9e-4 + 0x1p20 / 5e8));
        // The fake has one stream: nothing is hidden, and the lanes add up.
        QVERIFY(std::fabs(chunked["hidden_time"]) < 0.01 * chunked["time"]);
        QVERIFY(isAbout(chunked["kernel_time"], 16 * (2.5e-6 + std::max(0x1p16 / 4.2e12, 16 * 0x1p16 / 40e12))));
    }

    void bothDirectionsAreMoved()
    {
        const TransferOnFake both({"direction=both", "bytes=1MiB,1MiB", "chunk=0", "work=0"});
        QVERIFY(isAbout(both["copy_time"], 2 * (9e-4 + 0x1p20 / 5e8)));
        QVERIFY(isAbout(TransferOnFake({"direction=from", "bytes=1MiB,1MiB", "chunk=0", "work=0"})["copy_time"],
                        9e-4 + 0x1p20 / 5e8));
    }

    void pageableAndInnerCopiesHaveTheirOwnRates()
    {
        fakeGpu().pageableBytesPerSecond = 1e8;
        QVERIFY(isAbout(TransferOnFake({"kind=pageable", "bytes=4MiB,4MiB", "chunk=0", "work=0"})["copy_time"],
                        9e-4 + 0x1p22 / 1e8));
        fakeGpu().insideBytesPerSecond = 2e9;
        QVERIFY(isAbout(TransferOnFake({"kind=device", "bytes=4MiB,4MiB", "chunk=0", "work=0"})["copy_time"],
                        9e-4 + 0x1p22 / 2e9));
    }

    void aMappedKernelNeedsNoCopy()
    {
        // A launch and the bytes, at the only rate that the fake's kernels have.
        QVERIFY(
            isAbout(TransferOnFake({"kind=mapped", "bytes=4MiB,4MiB", "work=0"})["time"], 2.5e-6 + 0x1p22 / 4.2e12));
    }

    void everyKindIsMovedBesideAKernel_data()
    {
        QTest::addColumn<QByteArray>("kind");
        for (const char* kind : {"pageable", "pinned", "mapped", "device", "peer"})
            QTest::newRow(kind) << QByteArray(kind);
    }

    /// In and out around a kernel, in eight streams: every byte is compared before it is timed, and no stream touches
    /// what another has not left.
    void everyKindIsMovedBesideAKernel()
    {
        QFETCH(QByteArray, kind);
        fakeGpu().devices = 2;
        fakeGpu().linkLatency = fakeGpu().peerLatency = 1e-3; // a few runs are enough
        fakeGpu().launchSeconds = 1e-4;
        fakeGpu().pageableBytesPerSecond = 10e9;
        fakeGpu().insideBytesPerSecond = 2e12;
        const std::uint64_t before = fakeGpu().usedBytes;
        const TransferOnFake moved({"kind=" + kind.toStdString(), "direction=both", "bytes=64KiB,64KiB", "chunk=8KiB",
                                    "streams=8", "work=16"});
        QVERIFY(moved["time"] > 0);
        if (kind == "mapped") // one kernel reads, works and writes: no copy waits for the link
            QVERIFY(moved["time"] < 1e-3);
        else // eight chunks, each way
            QVERIFY(moved["copy_time"] > 16e-3 && moved["copy_time"] < 17e-3);
        QCOMPARE(fakeGpu().race, std::string());
        QCOMPARE(fakeGpu().usedBytes, before);
    }

    void aLostBitFailsTheRun()
    {
        fakeGpu().wrongCopyAt = 1;
        const Error error = transferErrorOnFake({"bytes=16KiB", "chunk=4KiB", "work=0"});
        QVERIFY2(error.code == "check.failed", error.text().c_str());
        QVERIFY2(error.message.find("pinned") != std::string::npos, error.message.c_str());
        QVERIFY(!error.hint.empty());
    }

    void aNeighbourThatIsNotThereIsSaid()
    {
        const Error error = transferErrorOnFake({"kind=peer", "bytes=16KiB,16KiB"});
        QCOMPARE(error.code, std::string("run.skipped"));
        QVERIFY2(error.hint.find("pinned") != std::string::npos, error.hint.c_str());
    }

    /// Two GPUs: the fake looks whose memory is copied, and takes the time of the link between them, so slow that a few
    /// runs are enough.
    void bytesGoToANeighbourAndBack()
    {
        const auto between = [] {
            fakeGpu() = FakeGpu{};
            fakeGpu().devices = 2;
            fakeGpu().peerLatency = 2e-3;
            fakeGpu().peerBytesPerSecond = 20e6;
        };
        between();
        const std::uint64_t before = fakeGpu().usedBytes;
        const TransferOnFake both({"kind=peer", "direction=both", "bytes=64KiB,64KiB", "chunk=16KiB", "work=0"});
        QVERIFY(isAbout(both["copy_time"], 2 * (4 * 2e-3 + 65536 / 20e6)));
        QVERIFY(isAbout(both["latency"], 2e-3 + 4 / 20e6));
        QCOMPARE(fakeGpu().race, std::string());
        QCOMPARE(fakeGpu().usedBytes, before);
        between();
        fakeGpu().wrongCopyAt = 1;
        QCOMPARE(transferErrorOnFake({"kind=peer", "bytes=16KiB", "chunk=4KiB", "work=0"}).code,
                 std::string("check.failed"));
    }

    void aNeighbourThatCannotBeReachedIsSaid()
    {
        fakeGpu().devices = 2;
        fakeGpu().reachesPeers = false;
        const Error error = transferErrorOnFake({"kind=peer", "bytes=16KiB"});
        QCOMPARE(error.code, std::string("run.skipped"));
        QVERIFY2(error.message.find("no other GPU that this one can reach") != std::string::npos,
                 error.message.c_str());
        fakeGpu().reachesPeers = true;
        fakeGpu().peerError = cudaErrorTooManyPeers; // the way is refused when it is opened
        const Error refused = transferErrorOnFake({"kind=peer", "bytes=16KiB"});
        QVERIFY2(refused.message.find("opening the way to another GPU") != std::string::npos, refused.text().c_str());
        fakeGpu().peerError = cudaErrorPeerAccessAlreadyEnabled;
        fakeGpu().peerLatency = 2e-3;
        QVERIFY(std::isfinite(TransferOnFake({"kind=peer", "bytes=16KiB,16KiB", "chunk=0", "work=0"})["time"]));
    }

    void pinningIsSaid()
    {
        test::Listener listener;
        const auto run = runOnFake("transfer", {"kind=pinned", "bytes=64KiB,64KiB", "work=0"}, listener).run;
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        QCOMPARE(listener.count("transfer.pinning"), 1);
        const Json& detail = run->measurement.detail;
        const Json& pinning = (detail.contains("points") ? detail["points"][0] : detail)["pinning"];
        QCOMPARE(pinning["bytes"].get<int>(), 65536);
        QVERIFY(pinning["allocated"].get<double>() > 0 && pinning["registered"].get<double>() > 0);
        test::Listener other;
        QVERIFY(runOnFake("transfer", {"kind=pageable", "bytes=64KiB,64KiB", "work=0"}, other).run);
        QCOMPARE(other.count("transfer.pinning"), 0);
        // It took 1.5 times what a copy loses without it, by the catalogue's rates.
        const Device device = *findDevice("nvidia-h200");
        TransferCase asked;
        asked.kind = TransferKind::Pinned;
        const double bytes = 0x1p24;
        const auto secondsOf = [&](TransferKind kind) {
            asked.kind = kind;
            asked.bytes = asked.chunk = std::uint64_t(bytes);
            const auto model = transferModel(device, asked);
            return model->latency + bytes / model->bandwidth;
        };
        const double saved = secondsOf(TransferKind::Pageable) - secondsOf(TransferKind::Pinned);
        QVERIFY(saved > 0);
        const std::string text = cuda::pinningText({std::uint64_t(bytes), 1.5 * saved, saved}, device, asked);
        QVERIFY2(text.find("paid after 2 copies") != std::string::npos, text.c_str());
    }

    void nothingIsLeftBehind()
    {
        fakeGpu().launchSeconds = 1e-4;
        const std::uint64_t before = fakeGpu().usedBytes;
        QVERIFY(
            std::isfinite(TransferOnFake({"direction=both", "bytes=64KiB,64KiB", "chunk=16KiB", "streams=3"})["time"]));
        QCOMPARE(fakeGpu().usedBytes, before);
        QCOMPARE(fakeGpu().heldUp, std::string());
    }
};

QTEST_GUILESS_MAIN(TestCudaTransfer)
#include "tst_cuda_transfer.moc"
