// SPDX-License-Identifier: Apache-2.0
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"
#include "core/timing/working_set.h"

#include <QtTest>

#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr AskedExperiment hierarchy{"hierarchy"};

Figures at(const char* device, const std::string& workingSet)
{
    return *hierarchy->predictPoint(*findDevice(device), hierarchy.with({"working_set=" + workingSet}));
}

} // namespace

class TestHierarchy : public QObject
{
    Q_OBJECT

private slots:
    void sizesLiveWhereTheyShould_data()
    {
        QTest::addColumn<QString>("device");
        QTest::addColumn<QString>("size");
        QTest::addColumn<QString>("level");
        const auto row = [](const char* name, const char* device, const char* size, const char* level) {
            QTest::newRow(name) << device << size << level;
        };
        row("Zen 4, L1", "amd-epyc-9654", "16KiB", "L1");
        row("Zen 4, L2", "amd-epyc-9654", "256KiB", "L2");
        row("Zen 4, L3", "amd-epyc-9654", "16MiB", "L3");
        row("Zen 4, DRAM", "amd-epyc-9654", "1GiB", "DRAM");
        row("H200, L1", "nvidia-h200", "64KiB", "L1");
        row("H200, L2", "nvidia-h200", "8MiB", "L2");
        row("H200, DRAM", "nvidia-h200", "4GiB", "DRAM");
    }
    void sizesLiveWhereTheyShould()
    {
        QFETCH(QString, device);
        QFETCH(QString, size);
        QFETCH(QString, level);
        const Figures figures = at(device.toUtf8().constData(), size.toStdString());
        QCOMPARE(QString::fromStdString(findFigure(figures, "level")->text()), level);
        QVERIFY(std::isfinite(findFigure(figures, "latency")->number()));
        QVERIFY(std::isfinite(findFigure(figures, "bandwidth")->number()));
    }

    void seriesBeginWithLatency()
    {
        const auto prediction = hierarchy->predict(*findDevice("cpu"), hierarchy.with({}));
        QVERIFY(prediction.has_value());
        QStringList keys;
        for (const Series& series : prediction->series)
            keys << QString::fromStdString(series.key);
        QCOMPARE(keys.first(), QString("latency"));
        QCOMPARE(keys.last(), QString("bandwidth"));
        QCOMPARE(QString::fromStdString(prediction->series[0].x.key), QString("working_set"));
        QVERIFY(prediction->series[0].x.values.back() >= 0x1p26);
    }

    void everyCatalogueDeviceAnswers()
    {
        std::vector<Error> problems;
        const auto devices = catalogue(&problems);
        QVERIFY(problems.empty());
        QVERIFY(devices.size() >= 17);
        for (const Device& device : devices) {
            const auto prediction = hierarchy->predict(device, hierarchy.with({}));
            QVERIFY2(prediction.has_value(), device.id.c_str());
            double last = 0;
            for (const double latency : prediction->series[0].y) {
                if (std::isnan(latency))
                    continue; // a level whose latency is not known
                QVERIFY2(latency >= last, device.id.c_str());
                last = latency;
            }
        }
    }

    void claimsAreJudgedByNumbers()
    {
        const auto claims = hierarchy->claims(*findDevice("amd-epyc-9654"), hierarchy.with({}));
        QVERIFY(claims.size() >= 4);
        bool l1 = false, ram = false;
        for (const Claim& claim : claims) {
            if (claim.quote.starts_with("L1"))
                l1 = claim.verdict == "holds";
            if (claim.quote.starts_with("RAM"))
                ram = claim.verdict == "does not hold";
        }
        QVERIFY(l1);
        QVERIFY(ram); // some 100 ns are some 370 cycles, not 100
    }

    void threadsAddUpUntilMemoryIsFull()
    {
        const Device device = *findDevice("amd-epyc-9654");
        const MemoryLevel& dram = *device.dram();
        for (const int threads : {1, 2, 4, 8, 16, 32, 64, 96}) {
            // Little's law by hand: bytes on their way over the latency, at most what the memory gives.
            const double flying =
                threads * dram.oneCoreBandwidth->value * device.derating.read.valueOr(1) * dram.latency.value;
            const double most =
                std::min(levelBandwidth(device, dram, Operation::Read).value, flying / dram.latency.value);
            const double rate =
                hierarchy.number(device, {"working_set=64GiB", "threads=" + std::to_string(threads)}, "bandwidth");
            QVERIFY2(std::fabs(rate / most - 1) < 0.01, QByteArray::number(threads).constData());
            QVERIFY(std::fabs(bytesInFlight(device, dram, {threads, 0, 16}) / flying - 1) < 0.01);
        }
    }

    void warpsInFlightFollowLittlesLaw()
    {
        const Device device = *findDevice("nvidia-h200");
        const double latency = device.dram()->latency.value;
        for (const int width : {1, 4, 16}) {
            for (const int warps : {1, 2, 8, 64}) {
                const double flying = 132.0 * warps * 32 * width * 4;
                const double most =
                    std::min(levelBandwidth(device, *device.dram(), Operation::Read).value, flying / latency);
                const double rate = hierarchy.number(
                    device,
                    {"working_set=4GiB", "width=" + std::to_string(width), "occupancy=" + std::to_string(warps)},
                    "bandwidth");
                QVERIFY2(std::fabs(rate / most - 1) < 0.05, QByteArray::number(warps).constData());
            }
        }
        // A sweep over it draws the curve.
        const auto curve =
            hierarchy->predict(device, hierarchy.with({"working_set=4GiB", "width=4", "occupancy=1:64:x2"}));
        QVERIFY(curve.has_value());
        const Series& bandwidth = curve->series.back();
        QCOMPARE(bandwidth.x.key, std::string("occupancy"));
        QCOMPARE(bandwidth.y.size(), std::size_t(7));
        QVERIFY(std::fabs(bandwidth.y[1] / bandwidth.y[0] - 2) < 1e-9);
    }

    void triadIsACopyAndARead()
    {
        for (const char* id : {"amd-epyc-9654", "nvidia-h200"}) {
            const Device device = *findDevice(id);
            const auto rate = [&](const char* operation) {
                return hierarchy.number(device, {"working_set=8GiB", std::string("operation=") + operation},
                                        "bandwidth");
            };
            // Three bytes counted: two at a copy's rate, one at a read's.
            QCOMPARE(rate("triad"), 3 / (2 / rate("copy") + 1 / rate("read")));
            QVERIFY(rate("triad") > rate("copy") && rate("triad") < rate("read"));
        }
    }

    void refusesWidthsThatNoLoadHas()
    {
        const auto figures = hierarchy->predictPoint(*findDevice("nvidia-h200"), hierarchy.with({"width=3"}));
        QVERIFY(!figures.has_value());
        QCOMPARE(figures.error().place, std::string("width"));
    }
};

QTEST_GUILESS_MAIN(TestHierarchy)
#include "tests/support/asked_experiment.h"
#include "tst_hierarchy.moc"
