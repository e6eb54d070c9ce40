// SPDX-License-Identifier: Apache-2.0
// Probes are made from a device that is known, with noise; the fit must find it again.
#include "core/timing/calibration.h"
#include "core/timing/working_set.h"
#include "tests/support/devices.h"

#include <QtTest>

#include <cmath>
#include <random>

using namespace memscape;

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

class TestCalibration : public QObject
{
    Q_OBJECT

private slots:
    void findsTheDeviceAgain()
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

    /// No probe is four times as large as the last cache, where its knee has surely ended.
    void memoryIsFoundBehindALargeCache()
    {
        Device large = known(), unknown = blank();
        for (Device* device : {&large, &unknown})
            device->levels[2].capacity.value = 200e6;
        large.levels[2].knee = {0.1, 0.6, 2.0, "of a virtual machine, which has a part of it"};
        const auto fitted = fitHostCalibration(unknown, probesOf(large, 0));
        QVERIFY2(fitted.has_value(), fitted ? "" : fitted.error().text().c_str());
        QVERIFY(std::fabs(fitted->levels[3].bandwidth.value / 30e9 - 1) < 0.05);
        QVERIFY(std::fabs(fitted->levels[3].latency.value / 105e-9 - 1) < 0.05);
        for (double size = 1e6; size < 5e8; size *= 1.17) {
            const double model = bandwidthOf(*fitted, size, Operation::Read, 1).bytesPerSecond;
            const double truth = bandwidthOf(large, size, Operation::Read, 1).bytesPerSecond;
            QVERIFY2(std::fabs(model / truth - 1) < 0.25, QByteArray::number(size).constData());
        }
    }

    void aDisturbedMomentCostsNoHugePage()
    {
        HostProbes probes = probesOf(known(), 0);
        const auto quiet = fitHostCalibration(blank(), probes);
        QVERIFY(quiet.has_value());
        // A neighbour takes the shared cache while two sizes are chased in huge pages.
        const double undisturbed = latencyOf(known(), 4 << 20, Pages::Small).seconds;
        for (Probe& probe : probes.latencyHuge) {
            if (probe.x > 3 << 20 && probe.x < 6 << 20)
                probe.value = 8 * undisturbed;
        }
        const auto fitted = fitHostCalibration(blank(), probes);
        QVERIFY2(fitted.has_value(), fitted ? "" : fitted.error().text().c_str());
        for (double size = 6000; size < 4e8; size *= 1.17) {
            const double huge = latencyOf(*fitted, size, Pages::Huge).seconds;
            const double before = latencyOf(*quiet, size, Pages::Huge).seconds;
            QVERIFY2(std::fabs(huge / before - 1) < 0.15, QByteArray::number(size).constData());
        }
    }

    void findsTheKneeAgain()
    {
        const auto probes = probesOf(known(), 0);
        const Knee knee = fitKnee(probes.latencyWindow, 32 << 20, 12e-9, 105e-9);
        QVERIFY(std::fabs(knee.begin - 0.6) < 0.16);
        QVERIFY(std::fabs(knee.end - 1.8) < 0.4);
        QCOMPARE(fitKnee({}, 1e6, 1e-9, 2e-9).begin, Knee{}.begin); // nothing to fit: the default stays
        QCOMPARE(fitKnee(probes.latencyWindow, 1e6, 2e-9, 1e-9).begin, Knee{}.begin);
    }

    void findsTheKneeOfStreams()
    {
        // The chase sees a third of L3, the streams most of it: two knees, and both are found.
        Device truth = known();
        truth.levels[2].knee = {0.3, 0.9, 2.0, "set"};
        truth.levels[2].bandwidthKnee = Knee{0.6, 1.6, 2.0, "set"};
        const auto fitted = fitHostCalibration(blank(), probesOf(truth, 0));
        QVERIFY(fitted.has_value());
        const MemoryLevel& l3 = fitted->levels[2];
        QVERIFY(l3.bandwidthKnee.has_value());
        QVERIFY(std::fabs(l3.bandwidthKnee->begin - 0.6) < 0.2);
        QVERIFY(std::fabs(l3.knee.begin - 0.3) < 0.2);
        for (double size = 6000; size < 4e8; size *= 1.17) {
            for (const int threads : {1, 2}) {
                const double model = bandwidthOf(*fitted, size, Operation::Read, threads).bytesPerSecond;
                const double is = bandwidthOf(truth, size, Operation::Read, threads).bytesPerSecond;
                QVERIFY2(std::fabs(model / is - 1) < 0.25,
                         qPrintable(QString("%1 of %2 B/s at %3 B").arg(model).arg(is).arg(size)));
            }
        }
        // With the chase's knee alone the same curve is far off.
        Device oneKnee = *fitted;
        oneKnee.levels[2].bandwidthKnee.reset();
        const double at = 0.6 * (32 << 20);
        QVERIFY(bandwidthOf(oneKnee, at, Operation::Read, 2).bytesPerSecond
                < 0.75 * bandwidthOf(truth, at, Operation::Read, 2).bytesPerSecond);
    }

    void findsAShareOfASharedCache()
    {
        // A tenant that gets a tenth of L3: the region that L3's size promises is mostly memory's.
        Device truth = known();
        truth.levels[2].capacity.value = 256 << 20;
        truth.levels[2].bandwidthKnee = Knee{0.1, 0.25, 2.0, "set"};
        Device described = blank();
        described.levels[2].capacity.value = 256 << 20;
        HostProbes probes = probesOf(truth, 0);
        for (BandwidthProbes& set : probes.bandwidths) {
            for (double size = 600e6; size < 2.2e9; size *= std::sqrt(2)) {
                const double value = bandwidthOf(truth, size, Operation::Read, set.threads).bytesPerSecond;
                set.points.push_back({size, value, value, value});
            }
        }
        const auto fitted = fitHostCalibration(described, probes);
        QVERIFY(fitted.has_value());
        QVERIFY(std::fabs(fitted->levels[2].bandwidthKnee->begin - 0.1) < 0.05);
        QVERIFY(std::fabs(fitted->levels[2].bandwidth.value / 90e9 - 1) < 0.05);
    }

    void keepsWhatTheProbesCannotTell()
    {
        HostProbes probes = probesOf(known(), 0);
        std::erase_if(probes.latencyWindow, [](const Probe& probe) { return probe.x > 10e6; });
        Device described = known();
        described.levels[3].latency.value = 111e-9;
        const auto fitted = fitHostCalibration(described, probes);
        QVERIFY(fitted.has_value());
        QCOMPARE(fitted->levels[3].latency.value, 111e-9);
    }

    void ratesFollowTheClockAndWhatProductsReached()
    {
        Device described = blank();
        described.clock.value = 2.4e9;
        described.rates = {{"fp32", {{100e9, Evidence::Unverified, "typical", {}}, 16, false, {}}},
                           {"bf16", {{100e9, Evidence::Unverified, "typical", {}}, 16, false, {}}},
                           {"int8", {{100e9, Evidence::Derived, "all cores", {}}, 16, true, {}}}};
        HostProbes probes = probesOf(known(), 0); // their clock: 3.6 GHz
        probes.productRates = {{"fp32", 120e9}, {"bf16", 240e9}, {"int8", 90e9}, {"fp16", 1e15}};
        const auto fitted = fitHostCalibration(described, probes);
        QVERIFY(fitted.has_value());
        QCOMPARE(fitted->rates.at("fp32").flops.value, 150e9); // the clock's, above what was reached
        QVERIFY(fitted->rates.at("fp32").flops.evidence == Evidence::Unverified);
        QCOMPARE(fitted->rates.at("bf16").flops.value, 240e9); // nothing runs above its dense rate
        QVERIFY(fitted->rates.at("bf16").flops.evidence == Evidence::Measured);
        QCOMPARE(2 * fitted->units * fitted->rates.at("bf16").fmaPerClockPerUnit * 3.6e9, 240e9);
        QCOMPARE(fitted->rates.at("int8").flops.value, 100e9); // has a clock of its own
        QVERIFY(!fitted->rates.contains("fp16"));              // what a device lacks stays lacking
    }

    /// A pipe of 1 µs and 2 GB/s; of another kind nothing could be measured.
    void findsTheLinks()
    {
        HostProbes probes = probesOf(known(), 0.02);
        probes.links = {{"pipe", "pipe", {}}, {"huge", "into fresh huge pages", {}}};
        for (const double bytes : {4.0, 4096.0, 65536.0, 1048576.0})
            probes.links[0].points.push_back({bytes, 1e-6 + bytes / 2e9});
        const Device fitted = fitHostCalibration(blank(), probes).value();
        QVERIFY(fitted.link("pipe"));
        QVERIFY(std::abs(fitted.link("pipe")->latency.value / 1e-6 - 1) < 0.01);
        QVERIFY(std::abs(fitted.link("pipe")->bandwidth.value / 2e9 - 1) < 0.01);
        QVERIFY(!fitted.link("huge"));
        QVERIFY(std::any_of(fitted.notes.begin(), fitted.notes.end(), [](const std::string& note) {
            return note.find("fresh huge pages") != std::string::npos;
        }));
        QCOMPARE(fitted.calibration->raw["links"].size(), std::size_t(4));
    }

    void refusesEmptyProbes()
    {
        const auto fitted = fitHostCalibration(blank(), HostProbes{});
        QVERIFY(!fitted.has_value());
        QCOMPARE(fitted.error().code, std::string("calibration.probes"));
    }
};

QTEST_GUILESS_MAIN(TestCalibration)
#include "tst_calibration.moc"
