// SPDX-License-Identifier: Apache-2.0
// Times of walks and copies on a machine of round numbers, worked out by hand.
#include "core/access/views/view_step.h"
#include "core/timing/layout_time.h"
#include "tests/support/devices.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

TensorWalk walkOver(const Sizes& shape, const char* views)
{
    const auto steps = applyAll(*freshTensor(shape), *parseViews(views));
    return walkOf(steps->empty() ? *freshTensor(shape) : steps->back().view, WalkOrder::LastFastest, 4);
}

Device machine()
{
    Device device = test::twoCores();
    device.clock.value = 4e9;
    device.concurrency.linesInFlightPerUnit.value = 10;
    device.levels[1].bandwidth.value = 400e9; // L2 streams faster than it fills L1 line by line
    return device;
}

bool isNear(double found, double expected, double within = 0.02)
{
    return std::fabs(found / expected - 1) <= within;
}

} // namespace

class TestLayoutTime : public QObject
{
    Q_OBJECT

private slots:
    /// 1000 rows of 4000 B: a column is 1000 lines, more than L1's 512 and less than L2's 16384. Every visit brings a
    /// line from L2, 2 clocks of 4 GHz each; what L2 misses waits 12 ns in L3, ten at a time, and takes the 2 clocks
    /// too.
    void linesFromL2TakeTwoClocks()
    {
        const WalkTime time = *walkTime(machine(), walkOver({1000, 1000}, "t()"));
        const double l2 = time.misses.at(0) - time.misses.at(1), l3 = time.misses.at(1) - time.misses.at(2);
        const double expected = l2 * 0.5e-9 + l3 * (1.2e-9 + 0.5e-9);
        QVERIFY2(isNear(time.seconds - time.served.back().seconds, expected), std::to_string(time.seconds).c_str());
        QCOMPARE(time.limit, std::string("L2"));
        QVERIFY(isNear(time.misses.at(0), 1e6));
        QVERIFY(time.misses.at(1) < 0.1e6);
    }

    /// A column of a matrix beyond every cache, its lines 64 KiB apart: a core has 10 of them on their way, 100 ns
    /// each.
    void farLinesWaitForTheMemory()
    {
        const WalkTime time = *walkTime(machine(), walkOver({16384, 16384}, "t()"));
        const double lines = 16384.0 * 16384;
        QVERIFY2(isNear(time.seconds, lines * 10e-9), std::to_string(time.seconds / lines).c_str());
    }

    /// What is calibrated with both cores is shared by them where nothing is prefetched.
    void aCoreHasItsShareOfACalibratedCurve()
    {
        Device device = machine();
        device.calibration.emplace();
        device.calibration->lineRates = {{Operation::Read, 64, 600e6}, {Operation::Read, 65536, 200e6}};
        const WalkTime far = *walkTime(device, walkOver({16384, 16384}, "t()"));
        QVERIFY(isNear(far.seconds, 16384.0 * 16384 / 100e6));
    }

    void contiguousReadsStream()
    {
        const TensorWalk walk = walkOver({16384, 16384}, "");
        const WalkTime time = *walkTime(machine(), walk);
        QVERIFY(isNear(time.served.back().bytes, 1 << 30));
        QVERIFY(isNear(time.seconds, double(1 << 30) / 40e9, 0.1));
        QVERIFY(time.seconds < walkTime(machine(), walkOver({16384, 16384}, "t()"))->seconds / 50);
    }

    void copiesGetNoSlowerWithTheirVersion()
    {
        const TensorWalk walk = walkOver({4096, 4096}, "t()");
        double last = 1e9;
        for (int version = 1; version <= copyVersionCount; ++version) {
            const double seconds = copyTime(machine(), walk, version)->seconds;
            QVERIFY2(seconds <= last * 1.0001, std::to_string(version).c_str());
            last = seconds;
        }
        QCOMPARE(copyTime(machine(), walk, 0)->seconds, last);
        // Past the caches there is memory, however small the matrix: 64 KiB at 40 GB/s.
        const CopyTime small = *copyTime(machine(), walkOver({128, 128}, "t()"), 4);
        QVERIFY(isNear(small.writes, 65536 / 40e9));
        QVERIFY(small.writes > copyTime(machine(), walkOver({128, 128}, "t()"), 3)->writes);
    }

    void whatIsNotKnown()
    {
        Device device = machine();
        device.levels.back().bandwidth = {};
        const auto time = walkTime(device, walkOver({8, 8}, ""));
        QVERIFY(!time);
        QCOMPARE(time.error().code, std::string("predict.device"));
        QCOMPARE(walkTime(machine(), walkOver({0, 8}, ""))->seconds, 0.0);
    }
};

QTEST_APPLESS_MAIN(TestLayoutTime)
#include "tst_layout_time.moc"
