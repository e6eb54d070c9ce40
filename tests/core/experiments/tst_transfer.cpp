// SPDX-License-Identifier: Apache-2.0
// transfer: published α and β of links, what a pipeline of chunks is worth, what each kind of device has, and the
// optimum chunk against a search.
#include "core/experiments/transfer/transfer.h"

#include "core/experiment/document.h"
#include "tests/support/asked_experiment.h"
#include "tests/support/devices.h"

#include <nlohmann/json.hpp>

#include <QtTest>

#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr AskedExperiment transfer{"transfer"};

/// Two cores whose ways were calibrated, all alike.
Device calibratedHost()
{
    Device host = test::twoCores("host");
    host.clock.value = 2e9;
    host.rates["fp32"].flops.value = 128e9;
    for (const char* id : {"copy", "stream", "fresh", "huge", "thread", "pipe", "shared"}) {
        Link link;
        link.id = link.label = id;
        link.latency.value = 1e-6;
        link.bandwidth.value = 8e9;
        link.farBandwidth = Sourced{4e9, Evidence::Measured, "", ""};
        host.links.push_back(std::move(link));
    }
    return host;
}

TransferModel transferModelOf(const char* device, const std::vector<std::string>& assignments)
{
    const Device target = *findDevice(device);
    return transferModel(target, transferCase(target, transfer.with(assignments)).value()).value();
}

} // namespace

class TestTransfer : public QObject
{
    Q_OBJECT

private slots:
    /// nvbandwidth with copy engines: PCIe 4 25.9 to 26.2 GB/s, PCIe 5 52.8 GB/s; a V100 over PCIe 3 12.35 GB/s.
    void largePinnedCopiesReachWhatWasPublished()
    {
        const std::vector<std::string> large{"kind=pinned", "bytes=1GiB", "chunk=0", "work=0"};
        QVERIFY(isWithin(transfer.number("nvidia-v100-sxm2", large, "bandwidth"), 12.35e9, 0.02));
        QVERIFY(isWithin(transfer.number("nvidia-a100-80gb", large, "bandwidth"), 26.05e9, 0.02));
        QVERIFY(isWithin(transfer.number("nvidia-h100-sxm", large, "bandwidth"), 52.8e9, 0.02));
    }

    void halfOfTheBandwidthIsReachedAtHalfSize()
    {
        const double half = transfer.number("nvidia-h200", {"chunk=0", "work=0"}, "half_size");
        const double rate = transfer.number("nvidia-h200", {"chunk=0", "work=0", "bytes=1TiB"}, "bandwidth");
        const std::string bytes = "bytes=" + std::to_string(std::llround(half));
        QVERIFY(isWithin(transfer.number("nvidia-h200", {bytes, "chunk=0", "work=0"}, "bandwidth"), rate / 2, 1e-3));
    }

    void manySmallCopiesPayLatencyEachTime()
    {
        const double one = transfer.number("nvidia-h200", {"bytes=64MiB", "chunk=0", "work=0"}, "time");
        const double many = transfer.number("nvidia-h200", {"bytes=64MiB", "chunk=64KiB", "work=0"}, "time");
        const double latency = transfer.number("nvidia-h200", {}, "latency");
        QVERIFY(isWithin(many - one, 1023 * latency, 1e-6));
    }

    void chunksHideTheShorterLane()
    {
        const std::vector<std::string> chunked{"bytes=1GiB", "chunk=16MiB", "streams=2", "work=512"};
        const auto of = [&](const char* key) { return transfer.number("nvidia-h200", chunked, key); };
        const double longer = std::max(of("copy_time"), of("kernel_time"));
        const double shorter = std::min(of("copy_time"), of("kernel_time"));
        // All but one chunk of the shorter lane is hidden.
        QVERIFY(isWithin(of("time"), longer + shorter / 64, 1e-9));
        QVERIFY(isWithin(of("hidden_time"), shorter * 63 / 64, 1e-9));
        QCOMPARE(of("chunks"), 64.0);
        std::vector<std::string> serial = chunked;
        serial[2] = "streams=1";
        QCOMPARE(transfer.number("nvidia-h200", serial, "hidden_time"), 0.0); // no rounding that reads as 3e-06 ps
    }

    void pageableMemoryHidesNothing()
    {
        const std::vector<std::string> chunked{"kind=pageable", "bytes=1GiB", "chunk=16MiB", "streams=8", "work=512"};
        QCOMPARE(transfer.number("nvidia-h200", chunked, "hidden_time"), 0.0);
        QVERIFY(transfer.number("nvidia-h200", chunked, "bandwidth") < 0.5 * 53e9);
        const Figures figures = transfer.figures(*findDevice("nvidia-h200"), chunked).value();
        const std::vector<std::string>& omits = findFigure(figures, "time")->why->omits;
        QVERIFY(std::any_of(omits.begin(), omits.end(),
                            [](const std::string& one) { return one.find("pageable memory cannot overlap") == 0; }));
    }

    void aMappedKernelTakesTheSlowerOfBoth()
    {
        const auto time = [](const char* work) {
            return transfer.number("nvidia-h200", {"kind=mapped", "bytes=1GiB", std::string("work=") + work}, "time");
        };
        QVERIFY(isWithin(time("1"), 0x1p30 / 53e9, 0.01));
        QVERIFY(time("65536") > 10 * time("1"));
        QVERIFY(transfer.number("nvidia-h200", {"kind=mapped", "work=512"}, "hidden_time") > 0);
    }

    void bothDirectionsFillThreeLanes()
    {
        const std::vector<std::string> both{"direction=both", "bytes=1GiB", "chunk=16MiB", "streams=4", "work=64"};
        const double time = transfer.number("nvidia-h200", both, "time");
        const double copies = transfer.number("nvidia-h200", both, "copy_time");
        QVERIFY(time < 0.6 * copies); // in and out at once, the kernel behind them
        QCOMPARE(transferModelOf("nvidia-h200", both).lanes.size(), std::size_t(3));
    }

    void theBestChunkIsWhatASearchFinds()
    {
        for (const char* work : {"16", "512", "4096"}) {
            for (const char* direction : {"to", "from", "both"}) {
                TransferModel model = transferModelOf(
                    "nvidia-h200",
                    {"bytes=256MiB", "streams=4", std::string("work=") + work, std::string("direction=") + direction});
                model.asked.chunk = bestChunk(model);
                const double best = model.seconds();
                for (double chunk = 4096; chunk <= 0x1p28; chunk *= 1.03) {
                    model.asked.chunk = std::uint64_t(chunk);
                    QVERIFY2(best <= model.seconds() * 1.03, // a short last chunk is not foreseen
                             qPrintable(QString("%1 %2: chunks of %3").arg(work, direction).arg(chunk)));
                }
            }
        }
    }

    void aHostHasItsOwnKinds()
    {
        const Device host = calibratedHost();
        for (const char* kind : {"copy", "stream", "fresh", "huge", "thread", "pipe", "shared"}) {
            const auto figures =
                transfer.figures(host, {std::string("kind=") + kind, "bytes=64KiB", "chunk=0", "work=0"});
            QVERIFY2(figures, kind);
            const double expected = kind == std::string("copy") ? memscape::nan : 1e-6 + 65536 / 8e9;
            if (std::isfinite(expected))
                QVERIFY(isWithin(findFigure(*figures, "time")->number(), expected, 1e-9));
        }
        const double far =
            findFigure(*transfer.figures(host, {"kind=pipe", "bytes=1GiB", "chunk=0", "work=0"}), "bandwidth")
                ->number();
        QVERIFY(isWithin(far, 4e9, 0.01));
    }

    void aCopyWithinAHostFollowsItsCaches()
    {
        const Device host = calibratedHost();
        const auto rate = [&](const char* bytes) {
            return findFigure(*transfer.figures(host, {std::string("bytes=") + bytes, "chunk=0", "work=0"}),
                              "bandwidth")
                ->number();
        };
        QVERIFY(rate("128KiB") > 1.5 * rate("256MiB"));
        QVERIFY(rate("4") < 1e8); // α alone
    }

    /// Lines pass between the cores at 1 GB/s out of a core's own caches, and at 8 GB/s out of the shared one.
    void aKernelWaitsForTheLinesOfAnotherCore()
    {
        Device host = calibratedHost();
        for (Link& link : host.links) {
            if (link.id == "thread")
                link.ownBandwidth = Sourced{1e9, Evidence::Measured, "", ""};
        }
        const auto figure = [&](const char* chunk, const char* key) {
            return findFigure(
                       *transfer.figures(
                           host, {"kind=copy", "bytes=64MiB", "work=8", "streams=2", std::string("chunk=") + chunk}),
                       key)
                ->number();
        };
        QVERIFY(figure("64KiB", "time") >= 0x1p26 / 1e9);
        QVERIFY(figure("4MiB", "time") < 0.5 * figure("64KiB", "time"));
        QVERIFY(isWithin(figure("64KiB", "kernel_time"), figure("4MiB", "kernel_time"), 0.01)); // alone
        const TransferModel model =
            transferModel(host, transferCase(host, transfer.with({"kind=copy"})).value()).value();
        QVERIFY(bestChunk(model) >= 1 << 20); // beyond a core's own caches
    }

    /// Copies beside a kernel were probed: 2 µs a chunk and 4 GB/s, where copies alone take 1 µs and 8 GB/s.
    void aChunkBesideAKernelTakesWhatWasProbed()
    {
        Device host = calibratedHost();
        Link beside = *host.link("thread");
        beside.id = besideLink;
        beside.latency.value = 2e-6;
        beside.bandwidth.value = 4e9;
        host.links.push_back(beside);
        for (Link& link : host.links) // the link between cores does not count any more
            link.bandwidth.value = link.id == "thread" ? 1e9 : link.bandwidth.value;
        const auto time = [&](const char* streams) {
            const auto figures =
                transfer.figures(host, {"bytes=64MiB", "chunk=64KiB", "work=1", std::string("streams=") + streams});
            return findFigure(*figures, "time")->number();
        };
        QVERIFY(isWithin(time("2"), 1024 * (2e-6 + 0x1p16 / 4e9), 0.01));
        QVERIFY(time("1") < time("2")); // one buffer alternates on a single core: no hand-over between cores
    }

    /// The lab's run on a Zen 4: copies and kernel side by side, by the calibration of its own minute. Left out: 4 KiB,
    /// whose hand-overs a hypervisor lengthens, and 512 KiB, at the very edge of a core's own caches, where the model
    /// is a third off.
    void smallChunksAreAsSlowAsTheyWereMeasured()
    {
        const auto run = readRecord(resourcesFolder() / "labs/hide-the-copy/replay/chunks.json");
        QVERIFY(run && run->measured);
        const Series* const measured = run->measured->findSeries("time");
        QVERIFY(measured);
        for (std::size_t i = 0; i < measured->y.size(); ++i) {
            const auto chunk = measured->x.values[i];
            if (chunk == 4096 || chunk == 524288)
                continue;
            const auto figures = transfer->predictPoint(run->device, run->parameters.at("chunk", chunk));
            QVERIFY2(isWithin(findFigure(*figures, "time")->number(), measured->y[i], 0.12),
                     qPrintable(QString("%1: %2 s").arg(chunk).arg(findFigure(*figures, "time")->number())));
        }
    }

    void anotherNodesMemoryIsFarther()
    {
        Device host = *findDevice("amd-epyc-9654");
        const auto unknown = transfer.figures(host, {"kind=numa"});
        QVERIFY(!unknown && unknown.error().message.find("is not known") != std::string::npos);
        for (Link& link : host.links) {
            if (link.id == "numa") {
                link.latency = {100e-9, Evidence::Measured};
                link.bandwidth = {256e9, Evidence::Measured};
            }
        }
        const auto seconds = [&](const char* kind, const char* bytes) {
            const auto figures = transfer.figures(
                host, {std::string("kind=") + kind, std::string("bytes=") + bytes, "chunk=0", "work=0"});
            return figures ? findFigure(*figures, "time")->number() : memscape::nan;
        };
        QVERIFY(isWithin(seconds("numa", "256KiB"), seconds("copy", "256KiB"), 1e-3)); // the cache holds it
        // Little's law, by hand: what a core draws at home has so many bytes on their way, and each waits 100 ns
        // longer.
        const double drawn = host.dram()->oneCoreBandwidth->value * host.derating.read.value;
        const double longer = 0x1p30 / (drawn * host.dram()->latency.value) * 100e-9;
        QVERIFY(isWithin(seconds("numa", "1GiB") - seconds("copy", "1GiB"), longer, 0.05));
        // A calibration's rates are taken as they are.
        Device calibrated = calibratedHost();
        calibrated.links.push_back({"numa", "numa", {6e9, Evidence::Measured}, {1e-6, Evidence::Measured}});
        calibrated.links.back().farBandwidth = Sourced{2e9, Evidence::Measured, "", ""};
        const auto figures = transfer.figures(calibrated, {"kind=numa", "bytes=1GiB", "chunk=0", "work=0"});
        QVERIFY(figures);
        QVERIFY(isWithin(findFigure(*figures, "bandwidth")->number(), 2e9, 0.01));
    }

    /// Each filling of 64 KiB after the first waits for the other process; chunks that fit are no fillings.
    void pipesAreFilledAgainAndAgain()
    {
        Device host = calibratedHost();
        const auto seconds = [&](const char* chunk) {
            return findFigure(
                       *transfer.figures(host, {"kind=pipe", "bytes=1MiB", std::string("chunk=") + chunk, "work=0"}),
                       "copy_time")
                ->number();
        };
        const double whole = seconds("0"), small = seconds("64KiB"), uneven = seconds("96KiB");
        host.calibration = Calibration();
        host.calibration->raw = {{"piece_seconds", {{"pipe", 20e-6}}}};
        QVERIFY(isWithin(seconds("0") - whole, 15 * 20e-6, 1e-9));
        QVERIFY(isWithin(seconds("64KiB"), small, 1e-12));
        QVERIFY(isWithin(seconds("96KiB") - uneven, 10 * 0.5 * 20e-6, 1e-9)); // the last, of 64 KiB, has none
        const Figures figures = transfer.figures(host, {"kind=pipe", "bytes=1MiB", "chunk=0", "work=0"}).value();
        QVERIFY(findFigure(figures, "copy_time")->why->formula.find("fillings × γ") != std::string::npos);
    }

    void whatADeviceHasNotIsRefusedWithWhatItHas()
    {
        const auto refused = [](const char* device, const char* kind) {
            const auto figures = transfer.figures(*findDevice(device), {std::string("kind=") + kind});
            return figures ? Error() : figures.error();
        };
        QCOMPARE(refused("amd-epyc-9654", "pinned").code, std::string("predict.device"));
        QVERIFY(refused("amd-epyc-9654", "pinned").hint.find("copy, stream, fresh") != std::string::npos);
        QVERIFY(refused("nvidia-h200", "pipe").hint.find("pageable, pinned, mapped, device, peer")
                != std::string::npos);
        QVERIFY(refused("nvidia-rtx-4090", "peer").hint.find("peer") == std::string::npos);
        QVERIFY(refused("amd-epyc-9654", "pipe").hint.find("calibrate") != std::string::npos);
        QVERIFY(refused("nvidia-jetson-agx-orin-64gb", "pageable").code == "predict.device");
        QVERIFY(refused("amd-epyc-zen4-vm", "numa").message.find("one node of memory") != std::string::npos);
        QVERIFY(refused("amd-epyc-zen4-vm", "numa").hint.find("several sockets") != std::string::npos);
        QVERIFY(refused("nvidia-h200", "numa").hint.find("pinned") != std::string::npos);
    }

    void tooManyChunksAreRefusedWithARemedy()
    {
        const auto figures = transfer.figures(*findDevice("nvidia-h200"), {"bytes=1TiB", "chunk=4KiB"});
        QVERIFY(!figures);
        QCOMPARE(figures.error().code, std::string("predict.chunks"));
        QCOMPARE(figures.error().place, std::string("chunk"));
        QVERIFY(figures.error().hint.find("chunk=16777216") != std::string::npos);
        QVERIFY(transfer.figures(*findDevice("nvidia-h200"), {"bytes=1TiB", "chunk=16777216"}));
    }

    void coresThatAreMissingLeaveNoOverlap()
    {
        const Device host = calibratedHost();
        const auto hidden = [&](const Device& device, const char* kind, const char* direction) {
            return findFigure(*transfer.figures(device,
                                                {std::string("kind=") + kind, std::string("direction=") + direction,
                                                 "bytes=64MiB", "chunk=1MiB", "work=16"}),
                              "hidden_time")
                ->number();
        };
        QVERIFY(hidden(host, "copy", "to") > 1e-4);
        QVERIFY(std::fabs(hidden(host, "copy", "both")) < 1e-12);
        QVERIFY(std::fabs(hidden(host, "pipe", "to")) < 1e-12); // the other process needs a core, too
        Device more = host;
        more.units = more.threads = 4;
        QVERIFY(hidden(more, "pipe", "to") > 1e-4);
    }

    void aWholeThatTakesLongerHidesNothing()
    {
        const std::vector<std::string> chunked{"bytes=64MiB", "chunk=4MiB", "work=16"};
        const TransferCase asked = transferCase(*findDevice("nvidia-h200"), transfer.with(chunked)).value();
        const auto hidden = [&](double together) {
            TransferNumbers numbers;
            numbers.copy.seconds = 3e-3;
            numbers.kernel.seconds = 2e-3;
            numbers.time.seconds = together;
            return findFigure(transferFigures(asked, numbers), "hidden_time")->number();
        };
        QVERIFY(isWithin(hidden(4e-3), 1e-3, 1e-9));
        QCOMPARE(hidden(5e-3), 0.0);
        QCOMPARE(hidden(6e-3), 0.0); // the lanes slowed each other down
    }

    void theDetailIsBounded()
    {
        const Parameters parameters =
            transfer.with({"bytes=1GiB", "chunk=16KiB", "direction=both", "work=64", "streams=3"});
        const Json detail = transfer->predictDetail(*findDevice("nvidia-h200"), parameters);
        QVERIFY(detail["ways"].size() >= 4);
        for (const Json& way : detail["ways"]) {
            QVERIFY(way["pieces"].size() <= 256);
            double end = 0;
            for (const Json& piece : way["pieces"])
                end = std::max(end, piece[4].get<double>());
            QVERIFY2(isWithin(end, way["time"].get<double>(), 1e-9), way["key"].get<std::string>().c_str());
        }
        // Nothing to draw where the model refuses.
        QVERIFY(transfer->predictDetail(*findDevice("amd-epyc-9654"), transfer.with({"kind=pinned"})).empty());
    }
};

QTEST_APPLESS_MAIN(TestTransfer)
#include "tst_transfer.moc"
