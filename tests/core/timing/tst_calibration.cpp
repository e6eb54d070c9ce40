// SPDX-License-Identifier: Apache-2.0
// Probes are made from a device that is known, with noise; the fit must find it again.
#include "core/timing/calibration.h"
#include "core/timing/working_set.h"
#include "tests/support/devices.h"

#include <QtTest>

#include <cmath>
#include <random>

using namespace memscape;

class TestCalibration : public QObject
{
    Q_OBJECT

private slots:
    void findsTheDeviceAgain();
    void findsTheKneeAgain();
    void keepsWhatTheProbesCannotTell();
    void refusesEmptyProbes();
};

namespace {

Device known()
{
    Device device = test::twoCores("known");
    const double latencies[] = {1.1e-9, 3.9e-9, 12e-9, 105e-9};
    const double bandwidths[] = {400e9, 200e9, 90e9, 30e9};
    for (std::size_t i = 0; i < device.levels.size(); ++i) {
        device.levels[i].latency.value = latencies[i];
        device.levels[i].bandwidth.value = bandwidths[i];
    }
    device.levels[3].capacity.value = 24e9;
    device.levels[2].knee = {0.6, 1.8, 2.0, "set"};
    device.tlbs = {{"far", 4096, {3072, Evidence::Specified, "", ""}, {60e-9, Evidence::Specified, "", ""}}};
    return device;
}

HostProbes probesOf(const Device& device, double noise)
{
    std::mt19937 random(5);
    std::uniform_real_distribution<double> extra(0, noise); // noise of latencies is one-sided
    HostProbes probes;
    probes.threads = 2;
    probes.clockHz = 3.6e9;
    probes.grade = "A";
    BandwidthProbes all{Operation::Read, 2, {}}, one{Operation::Read, 1, {}};
    for (double size = 4096; size <= 512e6; size *= std::sqrt(2)) {
        const auto probe = [&](Pages pages) {
            const double value = latencyOf(device, size, pages).seconds * (1 + extra(random));
            return Probe{size, value, value, value};
        };
        probes.latencyWindow.push_back(probe(Pages::Window));
        probes.latencyHuge.push_back(probe(Pages::Huge));
        probes.latency4k.push_back(probe(Pages::Small));
        for (BandwidthProbes* set : {&all, &one}) {
            const double value = bandwidthOf(device, size, Operation::Read, set->threads).bytesPerSecond;
            set->points.push_back({size, value, value, value});
        }
    }
    probes.bandwidths = {all, one};
    return probes;
}

Device blank()
{
    Device device = known();
    for (MemoryLevel& level : device.levels) {
        level.latency = {};
        level.bandwidth = {};
        level.knee = {};
    }
    device.tlbs.clear();
    return device;
}

} // namespace

void TestCalibration::findsTheDeviceAgain()
{
    const auto fitted = fitHostCalibration(blank(), probesOf(known(), 0.04));
    QVERIFY(fitted.has_value());
    QCOMPARE(fitted->basis, std::string("calibrated"));
    for (std::size_t i = 0; i < fitted->levels.size(); ++i) {
        const MemoryLevel &is = fitted->levels[i], truth = known().levels[i];
        QVERIFY2(std::fabs(is.latency.value / truth.latency.value - 1) < 0.05, is.id.c_str());
        QVERIFY2(std::fabs(is.bandwidth.value / truth.bandwidth.value - 1) < 0.05, is.id.c_str());
        QVERIFY(is.latency.evidence == Evidence::Measured);
    }
    // What counts is the curve: everywhere, for all pages.
    for (double size = 6000; size < 4e8; size *= 1.17) {
        for (const Pages pages : {Pages::Small, Pages::Huge, Pages::Window}) {
            const double model = latencyOf(*fitted, size, pages).seconds;
            const double truth = latencyOf(known(), size, pages).seconds;
            QVERIFY2(std::fabs(model / truth - 1) < 0.25, QByteArray::number(size).constData());
        }
    }
}

void TestCalibration::findsTheKneeAgain()
{
    const auto probes = probesOf(known(), 0);
    const Knee knee = fitKnee(probes.latencyWindow, 32 << 20, 12e-9, 105e-9);
    QVERIFY(std::fabs(knee.begin - 0.6) < 0.16);
    QVERIFY(std::fabs(knee.end - 1.8) < 0.4);
    QCOMPARE(fitKnee({}, 1e6, 1e-9, 2e-9).begin, Knee{}.begin); // nothing to fit: the default stays
    QCOMPARE(fitKnee(probes.latencyWindow, 1e6, 2e-9, 1e-9).begin, Knee{}.begin);
}

void TestCalibration::keepsWhatTheProbesCannotTell()
{
    HostProbes probes = probesOf(known(), 0);
    std::erase_if(probes.latencyWindow, [](const Probe& probe) { return probe.x > 10e6; });
    Device described = known();
    described.levels[3].latency.value = 111e-9;
    const auto fitted = fitHostCalibration(described, probes);
    QVERIFY(fitted.has_value());
    QCOMPARE(fitted->levels[3].latency.value, 111e-9);
}

void TestCalibration::refusesEmptyProbes()
{
    const auto fitted = fitHostCalibration(blank(), HostProbes{});
    QVERIFY(!fitted.has_value());
    QCOMPARE(fitted.error().code, std::string("calibration.probes"));
}

QTEST_GUILESS_MAIN(TestCalibration)
#include "tst_calibration.moc"
