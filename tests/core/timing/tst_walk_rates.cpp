// SPDX-License-Identifier: Apache-2.0
// Times of walks from probes of round numbers, worked out by hand: what lies between two probes, what a run's
// end costs, which level a column waits for.
#include "core/access/views/view_step.h"
#include "core/timing/layout_time.h"
#include "core/timing/walk_rates.h"
#include "tests/support/devices.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

constexpr double ns = 1e-9;

TensorWalk walkOf(const Sizes& shape, const char* views)
{
    const auto steps = applyAll(*freshTensor(shape), *parseViews(views));
    return walkOf(steps->empty() ? *freshTensor(shape) : steps->back().view, WalkOrder::LastFastest, 4);
}

/// An element in a long run takes 1 ns next to its neighbour and 2 ns apart, a run's end 5 ns; copies twice that.
Device probedMachine()
{
    Device device = test::twoCores();
    device.calibration.emplace();
    auto& rates = device.calibration->walkRates;
    for (const double n : {2.0, 10.0, 1000.0, 1e6}) {
        rates.push_back({"read neighbours", 4, n, (n + 5) * ns});
        rates.push_back({"read apart", 4, n, (2 * n + 5) * ns});
        rates.push_back({"copy neighbours", 4, n, (2 * n + 10) * ns});
        rates.push_back({"copy apart", 4, n, (4 * n + 10) * ns});
        rates.push_back({"copy edges", 4, n, 3 * n * ns});
    }
    rates.push_back({"read stream", 4, 1e3, 0.5 * ns});
    rates.push_back({"read stream", 4, 1e9, 0.5 * ns});
    rates.push_back({"copy stream", 4, 1e3, 1.5 * ns});
    rates.push_back({"copy stream", 4, 1e9, 1.5 * ns});
    rates.push_back({"tiles 4", 4, 1e4, 1 * ns});
    rates.push_back({"tiles 4", 4, 1e6, 4 * ns});
    rates.push_back({"tiles 4 crowded", 4, 1e4, 8 * ns});
    rates.push_back({"tiles 4 crowded", 4, 1e6, 8 * ns});
    rates.push_back({"column L2", 4, 64, 3 * ns});
    rates.push_back({"column L2", 4, 4096, 12 * ns});
    rates.push_back({"column L3", 4, 64, 10 * ns});
    rates.push_back({"column L3", 4, 4096, 40 * ns});
    return device;
}

bool isClose(double found, double expected, double within = 0.01)
{
    return std::fabs(found / expected - 1) <= within;
}

} // namespace

class TestWalkRates : public QObject
{
    Q_OBJECT

private slots:
    void betweenTwoProbes()
    {
        const Device device = probedMachine();
        QVERIFY(isClose(*runSeconds(device, "read apart", 4, 505), 1015 * ns)); // runs: on a straight line
        QVERIFY(isClose(*runSeconds(device, "read apart", 4, 1), 9 * ns));      // not less than the shortest
        QVERIFY(isClose(*runSeconds(device, "read apart", 4, 4e6), 8 * 1e6 * ns, 0.001));
        QVERIFY(isClose(*curveSeconds(device, "tiles 4", 4, 1e5), 2 * ns)); // curves: in the logarithms
        QVERIFY(isClose(*curveSeconds(device, "tiles 4", 4, 1e12), 4 * ns));
        QVERIFY(!runSeconds(device, "read apart", 8, 10));
        QVERIFY(!curveSeconds(test::twoCores(), "tiles 4", 4, 1e5));
    }

    void aDistanceSharesItsPowerOfTwo()
    {
        QCOMPARE(setStride(0), 64.0);
        QCOMPARE(setStride(4000), 64.0);
        QCOMPARE(setStride(768), 256.0);
        QCOMPARE(setStride(3 * 4096), 4096.0);
        QCOMPARE(setStride(65536), 4096.0);
    }

    /// 1000 rows of 10 of 12 elements: 15 ns each, more than what their bytes need.
    void shortRowsPayForTheirEnds()
    {
        const WalkTime read = *walkTime(probedMachine(), walkOf({1000, 12}, "narrow(1,0,10)"));
        QVERIFY2(isClose(read.seconds, 15000 * ns), std::to_string(read.seconds).c_str());
        const CopyTime copy = *copyTime(probedMachine(), walkOf({1000, 12}, "narrow(1,0,10)"), 0);
        QVERIFY2(isClose(copy.seconds, 30000 * ns), std::to_string(copy.seconds).c_str());
        QVERIFY(isClose(copy.ends, 10000 * ns));
        const WalkTime whole = *walkTime(probedMachine(), walkOf({1000, 12}, ""));
        QVERIFY(isClose(whole.seconds, 12000 * ns));
    }

    /// 2048 rows, 64 KiB + 64 B apart: four times what L1 holds, fewer than L2: three visits in four wait 1 ns beyond
    /// their 2.
    void aColumnWaitsForItsLevel()
    {
        const TensorWalk walk = walkOf({2048, 16400}, "narrow(1,0,16);t()");
        const WalkTime time = *walkTime(probedMachine(), walk);
        const double visits = 2048.0 * 16, lines = 2048;
        QVERIFY(isClose(time.misses.at(0), visits));
        QVERIFY(time.misses.at(1) <= lines);
        QVERIFY2(isClose(time.seconds, visits * (2 + 0.75) * ns + 16 * 5 * ns), std::to_string(time.seconds).c_str());
        QVERIFY(time.adds);
    }

    /// 256 rows 64 KiB apart fall into a few sets: L2 does not hold them, and L3 is slower there.
    void crowdedSetsAreSlower()
    {
        const WalkTime time = *walkTime(probedMachine(), walkOf({256, 16384}, "narrow(1,0,16);t()"));
        const double visits = 256.0 * 16;
        QVERIFY2(isClose(time.seconds, visits * (2 + 38) * ns, 0.05), std::to_string(time.seconds).c_str());
        QCOMPARE(time.limit, std::string("L3"));
    }

    /// 240 × 240 is all tiles; 100 × 100 has edges: 96 × 96 in tiles, 96 runs of 4 and 4 runs of 100.
    void tilesAndTheirEdges()
    {
        const Device device = probedMachine();
        const double footprint = 2 * 240 * 240 * 4;
        const CopyTime whole = *copyTime(device, walkOf({240, 240}, "t()"), 4);
        QVERIFY2(isClose(whole.seconds, 240 * 240 * *curveSeconds(device, "tiles 4", 4, footprint)),
                 std::to_string(whole.seconds).c_str());
        QCOMPARE(whole.ends, 0.0);
        const CopyTime crowded = *copyTime(device, walkOf({1024, 1024}, "t()"), 4);
        QVERIFY(isClose(crowded.seconds, 1024.0 * 1024 * 8 * ns));
        Device third = device;
        for (WalkRate& rate : third.calibration->walkRates)
            rate.kind = rate.kind == "tiles 4" ? "tiles 3" : rate.kind; // 100 is no whole number of lines
        const CopyTime edges = *copyTime(third, walkOf({100, 100}, "t()"), 4);
        const double tiles = 96 * 96 * *curveSeconds(third, "tiles 3", 4, 80000);
        QVERIFY2(isClose(edges.seconds, tiles + 96 * 12 * ns + 4 * 300 * ns + (1e4 - 96 * 96) * 1.5 * ns, 0.01),
                 std::to_string(edges.seconds).c_str());
    }
};

QTEST_APPLESS_MAIN(TestWalkRates)
#include "tst_walk_rates.moc"
