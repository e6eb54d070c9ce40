// SPDX-License-Identifier: Apache-2.0
#include "core/device/catalogue.h"
#include "core/timing/working_set.h"
#include "tests/support/devices.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

class TestWorkingSet : public QObject
{
    Q_OBJECT

private slots:
    void kneeFollowsTheMeasuredHopperL2();
    void sharesAddUpToOne();
    void latencyRisesWithTheWorkingSet();
    void plateausAreTheLevelsOwnLatency();
    void translationCostsWithSmallPages();
    void bandwidthFallsAndThreadsAddUp();
    void gpuBandwidthIsOfTheLevelThatLatencyNames();
    void littlesLaw();
};

namespace {

Device host()
{
    Device device = test::twoCores();
    device.levels.push_back(test::level("SSD", LevelKind::Storage, 1e12, 1, 90e-6, 3e9));
    device.tlbs = {{"L2 dTLB", 4096, {3072, Evidence::Specified, "", ""}, {30e-9, Evidence::Measured, "", ""}}};
    return device;
}

} // namespace

void TestWorkingSet::kneeFollowsTheMeasuredHopperL2()
{
    // gpu-benches gpu-l2-cache on a GH200, C = 50 MB: hit shares at three sizes.
    const double capacity = 50e6;
    QVERIFY(std::fabs(hitShare(57.9e6, capacity, Knee{}) - 0.384) < 0.03);
    QVERIFY(std::fabs(hitShare(63.5e6, capacity, Knee{}) - 0.215) < 0.03);
    QVERIFY(std::fabs(hitShare(69.6e6, capacity, Knee{}) - 0.124) < 0.03);
    QCOMPARE(hitShare(40e6, capacity, Knee{}), 1.0);
    QCOMPARE(hitShare(90e6, capacity, Knee{}), 0.0);
}

void TestWorkingSet::sharesAddUpToOne()
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

void TestWorkingSet::latencyRisesWithTheWorkingSet()
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

void TestWorkingSet::plateausAreTheLevelsOwnLatency()
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

void TestWorkingSet::translationCostsWithSmallPages()
{
    const Device device = host();
    QCOMPARE(latencyOf(device, 1e9, Pages::Small).seconds, 130e-9); // far past 3072 × 4 KiB
    QCOMPARE(latencyOf(device, 1e9, Pages::Window).seconds, 100e-9);
    QCOMPARE(latencyOf(device, 1 << 20, Pages::Small).translation, 0.0);
}

void TestWorkingSet::bandwidthFallsAndThreadsAddUp()
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

void TestWorkingSet::gpuBandwidthIsOfTheLevelThatLatencyNames()
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

void TestWorkingSet::littlesLaw()
{
    // measuring notes: 132 SMs × 64 warps × 32 lanes × 4 B over 0.97 µs = 1.11 TB/s on an H200.
    QVERIFY(std::fabs(littleBandwidth(132.0 * 64 * 32 * 4, 0.97e-6) / 1.11e12 - 1) < 0.01);
}

QTEST_GUILESS_MAIN(TestWorkingSet)
#include "tst_working_set.moc"
