// SPDX-License-Identifier: Apache-2.0
// The index arithmetic of the kernels, run on the host for every thread of a small grid.
#include "kernels/cuda/common/plan.h"

#include "core/access/warp.h"

#include <QtTest>

#include <set>
#include <vector>

using namespace memscape::cuda;

static bool eachOnce(const std::vector<int>& seen)
{
    return std::ranges::all_of(seen, [](int count) { return count == 1; });
}

class TestPlan : public QObject
{
    Q_OBJECT

private slots:
    void everyValueOfAPermutationComesOnce_data()
    {
        QTest::addColumn<quint64>("n");
        for (quint64 n : {1, 2, 3, 7, 8, 31, 32, 33, 1000, 1024, 65537, 100003})
            QTest::addRow("%llu", n) << n;
    }
    void everyValueOfAPermutationComesOnce()
    {
        QFETCH(quint64, n);
        std::vector<int> seen(n, 0);
        for (quint64 i = 0; i < n; ++i) {
            const auto value = permuted(i, n, 5);
            QVERIFY2(value < n, qPrintable(QString::number(value)));
            ++seen[value];
        }
        QVERIFY(eachOnce(seen));
    }

    void seedsGiveOtherOrders()
    {
        int equal = 0;
        for (quint64 i = 0; i < 1000; ++i)
            equal += permuted(i, 1000, 1) == permuted(i, 1000, 2);
        QVERIFY2(equal < 20, qPrintable(QString::number(equal)));
    }

    void aPermutationLooksRandomToAWarp()
    {
        // 32 random floats of 64 MiB hardly ever share a 32-byte sector: a pattern in the permutation
        // would show as fewer sectors.
        const quint64 elements = 1 << 24;
        double sectors = 0;
        const int warps = 2000;
        for (int warp = 0; warp < warps; ++warp) {
            std::set<quint64> touched;
            for (int lane = 0; lane < 32; ++lane)
                touched.insert(permuted(quint64(warp) * 32 + quint64(lane), elements, 1) * 4 / 32);
            sectors += double(touched.size());
        }
        const auto expected = memscape::expectedRandomCounts(0, elements, 4);
        QVERIFY(expected.has_value());
        QVERIFY2(std::abs(sectors / warps - expected->sectors) < 0.01, qPrintable(QString::number(sectors / warps)));
    }

    void aWalkTouchesWhatFits_data()
    {
        QTest::addColumn<quint64>("count");
        QTest::addColumn<quint64>("first");
        QTest::addColumn<quint64>("step");
        QTest::addColumn<quint64>("touched");
        const auto row = [](const char* name, quint64 count, quint64 first, quint64 step, quint64 touched) {
            QTest::newRow(name) << count << first << step << touched;
        };
        row("contiguous", 100, 0, 1, 100);
        row("every third of 100: 0 … 99", 100, 0, 3, 34);
        row("every fourth of 100: 0 … 96", 100, 0, 4, 25);
        row("misaligned by 3", 100, 3, 1, 97);
        row("broadcast", 100, 0, 0, 100);
        row("step beyond the end", 100, 0, 1000, 1);
        row("nothing behind the offset", 4, 4, 1, 0);
        row("empty", 0, 0, 1, 0);
    }
    void aWalkTouchesWhatFits()
    {
        QFETCH(quint64, count);
        QFETCH(quint64, first);
        QFETCH(quint64, step);
        const Walk walk = walkOf(count, first, step);
        QTEST(quint64(walk.touched), "touched");
        for (quint64 i = 0; i < walk.touched; ++i)
            QVERIFY(walkIndex(walk, i) < count);
        if (step > 0 && walk.touched > 0)
            QVERIFY(walkIndex(walk, walk.touched) >= count); // and no further one would fit
    }

    void gridStrideCoversEachElementOnce_data()
    {
        QTest::addColumn<quint64>("touched");
        QTest::addColumn<int>("blocks");
        QTest::addColumn<int>("threads");
        QTest::newRow("less than a warp") << quint64(5) << 3 << 32;
        QTest::newRow("one short of a full turn") << quint64(4 * 96 - 1) << 3 << 32;
        QTest::newRow("exactly one turn") << quint64(4 * 96) << 3 << 32;
        QTest::newRow("a turn and a tail") << quint64(4 * 96 + 97) << 3 << 32;
        QTest::newRow("many turns") << quint64(100003) << 7 << 256;
        QTest::newRow("none") << quint64(0) << 1 << 32;
    }
    void gridStrideCoversEachElementOnce()
    {
        QFETCH(quint64, touched);
        QFETCH(int, blocks);
        QFETCH(int, threads);
        // The loop of the best versions, for every thread in turn.
        std::vector<int> seen(touched, 0);
        const quint64 all = quint64(blocks) * quint64(threads);
        for (quint64 thread = 0; thread < all; ++thread) {
            quint64 i = thread;
            for (; i + (inFlight - 1) * all < touched; i += inFlight * all) {
                for (int k = 0; k < inFlight; ++k)
                    ++seen[i + quint64(k) * all];
            }
            for (; i < touched; i += all)
                ++seen[i];
        }
        QVERIFY(eachOnce(seen));
        QVERIFY(blocksFor(touched, quint64(threads)) * quint64(threads) >= touched);
    }

    void aRoundReadsEveryChunkOnce_data()
    {
        QTest::addColumn<quint64>("blocks");
        QTest::addColumn<quint64>("chunks");
        QTest::newRow("as many blocks as chunks") << quint64(132) << quint64(132);
        QTest::newRow("few chunks, many blocks") << quint64(264) << quint64(8);
        QTest::newRow("many chunks") << quint64(10) << quint64(1000);
        QTest::newRow("one chunk") << quint64(7) << quint64(1);
    }
    void aRoundReadsEveryChunkOnce()
    {
        QFETCH(quint64, blocks);
        QFETCH(quint64, chunks);
        const quint64 rounds = 5, laps = chunks * rounds; // blocks × laps is a whole number of rounds
        std::vector<quint64> reads(chunks, 0);
        for (quint64 lap = 0; lap < laps; ++lap) {
            for (quint64 block = 0; block < blocks; ++block) {
                const quint64 chunk = chunkOf(block, lap, blocks, chunks);
                QVERIFY(chunk < chunks);
                ++reads[chunk];
            }
        }
        QVERIFY(std::ranges::all_of(reads, [&](quint64 count) { return count == blocks * rounds; }));
    }

    void roundsDealChunksAnew()
    {
        // A block must not meet the same chunk in every round, or L1 would answer for L2.
        std::set<quint64> met;
        for (quint64 lap = 0; lap < 64; ++lap)
            met.insert(chunkOf(0, lap, 64, 64));
        QVERIFY2(met.size() > 30, qPrintable(QString::number(met.size())));
    }

    void aWarpOfTheWalkTouchesTheSectorsOfTheModel_data()
    {
        QTest::addColumn<quint64>("step");
        QTest::addColumn<quint64>("element");
        QTest::addColumn<quint64>("offset");
        for (quint64 element : {1, 2, 4, 8, 16}) {
            for (quint64 step : {0, 1, 2, 3, 5, 8, 17, 32, 64}) {
                for (quint64 offset : {quint64(0), element, 3 * element})
                    QTest::addRow("%llu B, stride %llu, offset %llu", element, step, offset)
                        << step << element << offset;
            }
        }
    }
    void aWarpOfTheWalkTouchesTheSectorsOfTheModel()
    {
        QFETCH(quint64, step);
        QFETCH(quint64, element);
        QFETCH(quint64, offset);
        const Walk walk{0, step, 32};
        std::set<quint64> sectors;
        for (quint64 lane = 0; lane < 32; ++lane) {
            const quint64 begin = offset + walkIndex(walk, lane) * element;
            for (quint64 byte = begin; byte < begin + element; ++byte)
                sectors.insert(byte / 32);
        }
        const auto counts = memscape::stridedCounts(offset, step, element);
        QVERIFY(counts.has_value());
        QCOMPARE(double(sectors.size()), counts->sectors);
    }

    void wordsFoldToTheirLanes()
    {
        QCOMPARE(fold(std::uint8_t(0xab)), 0xabU);
        QCOMPARE(fold(Word8{1, 2}), 3U);
        QCOMPARE(fold(Word16{1, 2, 3, 0xffffffffU}), 5U); // wraps
        const auto word = wordOf<Word16>(7);
        QVERIFY(word.a != word.b && word.b != word.c && word.c != word.d);
        QCOMPARE(int(sizeof(Word8)), 8);
        QCOMPARE(int(alignof(Word16)), 16);
    }

    void triadIsBPlusThreeC()
    {
        QCOMPARE(int(triadOf(std::uint8_t(250), std::uint8_t(4))), 6); // 262 wraps
        QCOMPARE(triadOf(10U, 4U), 22U);
        QCOMPARE(triadOf(Word8{1, 2}, Word8{3, 4}).b, 14U);
    }

    void blocksHoldWholeWarps()
    {
        QVERIFY(wholeWarps(32) && wholeWarps(256) && wholeWarps(1024));
        QVERIFY(!wholeWarps(0) && !wholeWarps(-32) && !wholeWarps(100) && !wholeWarps(2048));
    }

    void occupancyBringsTheWarpsAskedFor()
    {
        for (int warps = 1; warps <= 64; ++warps) {
            const Occupancy occupancy = occupancyOf(warps);
            const int brought = occupancy.blocksPerSm * occupancy.threads / lanesPerWarp;
            QVERIFY(occupancy.threads <= 1024 && occupancy.threads % lanesPerWarp == 0);
            QVERIFY(brought == warps || (warps > 32 && brought == warps + 1)); // two equal blocks
        }
    }
};

QTEST_GUILESS_MAIN(TestPlan)
#include "tst_plan.moc"
