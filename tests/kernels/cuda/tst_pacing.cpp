// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/pacing.h"

#include <QtTest>

using namespace memscape::cuda;

class TestPacing : public QObject
{
    Q_OBJECT

private slots:
    void flushesThreeTimesL2ButNeverMoreThanAQuarter_data()
    {
        QTest::addColumn<quint64>("l2");
        QTest::addColumn<quint64>("free");
        QTest::addColumn<quint64>("bytes");
        QTest::newRow("small L2: 256 MB") << 4 * quint64(mega) << quint64(16'000 * mega) << quint64(256 * mega);
        QTest::newRow("126 MB L2: three times")
            << quint64(126 * mega) << quint64(180'000 * mega) << quint64(378 * mega);
        QTest::newRow("little memory: a quarter") << 4 * quint64(mega) << quint64(400 * mega) << quint64(100 * mega);
        QTest::newRow("none free") << 4 * quint64(mega) << quint64(0) << quint64(0);
    }
    void flushesThreeTimesL2ButNeverMoreThanAQuarter()
    {
        QFETCH(quint64, l2);
        QFETCH(quint64, free);
        QTEST(quint64(flushBytes(l2, free)), "bytes");
    }

    void shortKernelsAreBatched_data()
    {
        QTest::addColumn<double>("seconds");
        QTest::addColumn<int>("batch");
        QTest::newRow("long enough alone") << 250e-6 << 1;
        QTest::newRow("at the limit") << 200e-6 << 1;
        QTest::newRow("60 µs: a launch is 3 % of it") << 60e-6 << 4;
        QTest::newRow("40 µs: five make 200 µs") << 40e-6 << 5;
        QTest::newRow("3 µs") << 3e-6 << 67;
        QTest::newRow("no more than the queue holds") << 0.1e-6 << 200;
        QTest::newRow("zero") << 0.0 << 200;
        QTest::newRow("not a number") << std::nan("") << 200;
    }
    void shortKernelsAreBatched()
    {
        QFETCH(double, seconds);
        QTEST(batchFor(seconds), "batch");
    }

    void workOfManyKernelsIsBatchedAsFarAsTheQueueHoldsIt()
    {
        QCOMPARE(batchFor(3e-6, 7), 67);
        QCOMPARE(batchFor(3e-6, 10), 51); // 510 launches
        QCOMPARE(batchFor(3e-6, 2000), 1);
        QCOMPARE(batchFor(0, 256), 2);
    }

    void aChaseIsWarmedByALapOrByWhatL2Holds()
    {
        QCOMPARE(int(warmLoads(1000, 128, 50 << 20)), 1024);       // a lap, in whole turns
        QCOMPARE(int(warmLoads(393'216, 128, 50 << 20)), 393'216); // 48 MiB of the 50
        QCOMPARE(int(warmLoads(1 << 24, 128, 50 << 20)), 409'600); // 2 GiB: until L2 is full
        QCOMPARE(int(warmLoads(1 << 24, 128, 4 << 20)), 1 << 18);
    }

    void coldBatchesGetCopiesAsFarAsTheyFit()
    {
        QCOMPARE(copiesFor(1, 1000, 1'000'000), 1); // one launch needs one
        QCOMPARE(copiesFor(67, 1000, 1'000'000), 67);
        QCOMPARE(copiesFor(67, 1000, 9'500), 10); // nine more fit beside the first
        QCOMPARE(copiesFor(67, 1000, 0), 1);
        QCOMPARE(copiesFor(67, 0, 1000), 1);
    }

    void stampsGiveTheClock()
    {
        // 100 µs at 1980 MHz
        QCOMPARE(clockBetween(5'000'000, 1000, 5'100'000, 1000 + 198'000), 1.98e9);
    }

    void stampsThatAreNoMomentsGiveNone()
    {
        QVERIFY(std::isnan(clockBetween(0, 0, 0, 0)));     // never written
        QVERIFY(std::isnan(clockBetween(100, 5, 100, 9))); // the timer did not tick
        QVERIFY(std::isnan(clockBetween(200, 5, 100, 9)));
        QVERIFY(std::isnan(clockBetween(100, 9, 200, 5))); // counters of two SMs
    }

    void aWorkingSetIsCutForTheLaps_data()
    {
        QTest::addColumn<int>("kib");
        QTest::addColumn<bool>("isPrivate");
        QTest::addColumn<int>("chunks");
        QTest::newRow("4 KiB in L1") << 4 << true << 132;
        QTest::newRow("1.25 × L1 is still a slice") << 320 << true << 132;
        QTest::newRow("beyond: shared") << 384 << false << 6;
        QTest::newRow("24 MiB") << 24 * 1024 << false << 384;
    }
    void aWorkingSetIsCutForTheLaps()
    {
        QFETCH(int, kib);
        QFETCH(bool, isPrivate);
        const double workingSet = kib * 1024.0;
        const LapsShape shape = lapsShape(std::uint64_t(workingSet), 256 << 10, 132);
        QCOMPARE(shape.isPrivate, isPrivate);
        QTEST(int(shape.chunks), "chunks");
        QCOMPARE(int(shape.chunkBytes % 32), 0);
        const double covered = isPrivate ? double(shape.chunkBytes) : double(shape.memoryBytes());
        QVERIFY(covered <= workingSet);
        QVERIFY(covered >= 0.995 * workingSet);
    }

    void lapsMoveAboutWhatIsAsked()
    {
        const LapsShape shape = lapsShape(24 << 20, 256 << 10, 132);
        const int blocks = 264;
        const auto laps = lapsFor(shape, blocks, 1e9);
        const double moved = double(laps) * blocks * double(shape.chunkBytes);
        QVERIFY2(std::abs(moved - 1e9) < 0.02e9, qPrintable(QString::number(moved)));
        QCOMPARE(int(lapsFor(shape, blocks, 0)), 1); // at least one
    }

    void noChaseHoldsADisplay()
    {
        // A watchdog ends kernels after about two seconds; two microseconds a load is slow even for
        // DRAM.
        QVERIFY(double(chaseLoads(1ULL << 31, 50 << 20)) * 2e-6 < 0.2);
        QVERIFY(double(chaseLoads(1 << 20, 50 << 20)) * 0.4e-6 < 0.2);
        QCOMPARE(int(chaseLoads(1 << 20, 50 << 20) % 32), 0); // whole turns of the unrolled loop
    }
};

QTEST_GUILESS_MAIN(TestPacing)
#include "tst_pacing.moc"
