// SPDX-License-Identifier: Apache-2.0
#include "core/access/cache_simulator.h"
#include "core/device/catalogue.h"
#include "core/timing/working_set.h"
#include "tests/support/devices.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

Device host()
{
    Device device = test::twoCores();
    device.levels.push_back(test::level("SSD", LevelKind::Storage, 1e12, 1, 90e-6, 3e9));
    device.tlbs = {{"L2 dTLB", 4096, {3072, Evidence::Specified, "", ""}, {30e-9, Evidence::Measured, "", ""}}};
    return device;
}

} // namespace

class TestWorkingSet : public QObject
{
    Q_OBJECT

private slots:
    void kneeFollowsTheMeasuredHopperL2()
    {
        // gpu-benches gpu-l2-cache on a GH200, C = 50 MB: hit shares at three sizes.
        const double capacity = 50e6;
        QVERIFY(std::fabs(hitShare(57.9e6, capacity, Knee{}) - 0.384) < 0.03);
        QVERIFY(std::fabs(hitShare(63.5e6, capacity, Knee{}) - 0.215) < 0.03);
        QVERIFY(std::fabs(hitShare(69.6e6, capacity, Knee{}) - 0.124) < 0.03);
        QCOMPARE(hitShare(40e6, capacity, Knee{}), 1.0);
        QCOMPARE(hitShare(90e6, capacity, Knee{}), 0.0);
    }

    void sharesAddUpToOne()
    {
        const Device device = host();
        for (double size = 1024; size < 1e14; size *= 1.3) {
            double sum = 0;
            for (const ServedBy& one : servedBy(device, size)) {
                QVERIFY(one.share >= 0);
                sum += one.share;
            }
            QVERIFY(std::fabs(sum - 1) < 1e-12);
        }
    }

    void latencyRisesWithTheWorkingSet()
    {
        const Device device = host();
        for (const Pages pages : {Pages::Huge, Pages::Small, Pages::Window}) {
            double last = 0;
            for (double size = 1024; size < 1e13; size *= 1.1) {
                const double latency = latencyOf(device, size, pages).seconds;
                QVERIFY(latency >= last - 1e-18);
                last = latency;
            }
        }
    }

    void plateausAreTheLevelsOwnLatency()
    {
        const Device device = host();
        QCOMPARE(latencyOf(device, 16384, Pages::Huge).seconds, 1e-9);
        QCOMPARE(latencyOf(device, 256 << 10, Pages::Huge).seconds, 4e-9);
        QCOMPARE(latencyOf(device, 8 << 20, Pages::Huge).seconds, 12e-9);
        QCOMPARE(latencyOf(device, 1e9, Pages::Huge).seconds, 100e-9);
        QCOMPARE(homeLevel(device, 24 << 20)->id, std::string("L3"));
        QCOMPARE(homeLevel(device, 1e9)->id, std::string("DRAM"));
        QCOMPARE(homeLevel(device, 1e12)->id, std::string("SSD"));
    }

    void translationCostsWithSmallPages()
    {
        const Device device = host();
        QCOMPARE(latencyOf(device, 1e9, Pages::Small).seconds, 130e-9); // far past 3072 × 4 KiB
        QCOMPARE(latencyOf(device, 1e9, Pages::Window).seconds, 100e-9);
        QCOMPARE(latencyOf(device, 1 << 20, Pages::Small).translation, 0.0);
    }

    void bandwidthFallsAndThreadsAddUp()
    {
        const Device device = host();
        double last = 1e30;
        for (double size = 4096; size < 1e10; size *= 1.1) {
            const double rate = bandwidthOf(device, size, Operation::Read, 2).bytesPerSecond;
            QVERIFY(rate <= last * (1 + 1e-12));
            last = rate;
        }
        // Two cores have two L1s: 48 KiB shared by both still fits.
        QCOMPARE(bandwidthOf(device, 48 << 10, Operation::Read, 2).bytesPerSecond, 400e9);
        QCOMPARE(bandwidthOf(device, 16 << 10, Operation::Read, 1).bytesPerSecond, 200e9);
    }

    void gpuBandwidthIsOfTheLevelThatLatencyNames()
    {
        // 8 MiB is L2 to every multiprocessor, although 132 L1 caches together would hold it.
        const auto device = findDevice("nvidia-h200");
        QVERIFY(device.has_value());
        const auto rate = [&](double size) {
            return bandwidthOf(*device, size, Operation::Read, device->units).bytesPerSecond;
        };
        QCOMPARE(rate(32 << 10), levelBandwidth(*device, *device->level("L1"), Operation::Read).value);
        QCOMPARE(rate(8 << 20), levelBandwidth(*device, *device->level("L2"), Operation::Read).value);
    }

    void littlesLaw()
    {
        // measuring notes: 132 SMs × 64 warps × 32 lanes × 4 B over 0.97 µs = 1.11 TB/s on an H200.
        QVERIFY(std::fabs(littleBandwidth(132.0 * 64 * 32 * 4, 0.97e-6) / 1.11e12 - 1) < 0.01);
    }

    void streamsMayHaveAKneeOfTheirOwn()
    {
        Device device = host();
        const double within = 24 << 20;
        const double before = bandwidthOf(device, within, Operation::Read, 2).bytesPerSecond;
        device.levels[2].bandwidthKnee = Knee{0.2, 0.3, 2, "test"};
        QCOMPARE(bandwidthOf(device, within, Operation::Read, 2).bytesPerSecond, 40e9);
        QVERIFY(before > 99e9);
        QCOMPARE(latencyOf(device, within, Pages::Huge).seconds, 12e-9); // the chase keeps its own
    }

    void firstCacheFallsAsTheSimulatorSays()
    {
        // Contiguous lines walked in circles through the cache simulator, whose judge is cachegrind.
        for (const std::uint64_t ways : {8u, 12u}) {
            const std::uint64_t capacity = ways * 4096;
            for (std::uint64_t lines = ways * 32; lines < ways * 110; lines += 5) {
                CacheSimulator simulator = CacheSimulator::create({{"L1", capacity, ways, 64}}).value();
                std::uint64_t at = 0;
                const auto walk = [&] { return MemoryAccess{64 * (at++ % lines), 8, false}; };
                QVERIFY(simulator.run(lines, walk));
                simulator.resetCounters();
                QVERIFY(simulator.run(lines, walk));
                const double hits = 1 - double(simulator.counters()[0].misses()) / double(lines);
                const double model = hitShare(double(64 * lines), double(capacity), lruKnee(double(ways)));
                QVERIFY2(std::fabs(hits - model) < 0.08, QByteArray::number(lines).constData());
            }
        }
        QCOMPARE(lruKnee(std::numeric_limits<double>::quiet_NaN()).end, lruKnee(8).end);
    }
};

QTEST_GUILESS_MAIN(TestWorkingSet)
#include "tst_working_set.moc"
