// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/canary.h"

#include <algorithm>

#include <QTest>

using namespace memscape;

class TestCanary : public QObject
{
    Q_OBJECT
private slots:
    void readsThisMachine()
    {
        const SteadyClock clock;
        CanaryReading best;
        for (int i = 0; i < 20; ++i) {
            const CanaryReading reading = readCanary(clock);
            QVERIFY(reading.clockHz > 0);
            best.clockHz = std::max(best.clockHz, reading.clockHz);
            best.l1Latency = best.l1Latency == 0 ? reading.l1Latency : std::min(best.l1Latency, reading.l1Latency);
        }
        // Anything that runs this test; sanitizers and busy machines only make it slower.
        QVERIFY(best.clockHz > 1e7 && best.clockHz < 1e10);
        QVERIFY(best.l1Latency > 1e-10 && best.l1Latency < 1e-6);
    }

    void aClockThatStandsStillGivesNoReading() { QCOMPARE(readCanary(FakeClock()).clockHz, 0.0); }

    void clockDropOfOneAndAHalfShows()
    {
        ContentionWatch watch;
        watch.add({3.6e9, 1.1e-9});
        watch.add({2.4e9, 1.65e-9});
        QCOMPARE(watch.conditions({}, 1).clockShare, 2.4 / 3.6);
        // Against a reference from before, a whole run at the low clock shows too.
        ContentionWatch later(3.6e9);
        later.add({2.4e9, 1.65e-9});
        QCOMPARE(later.conditions({}, 1).clockShare, 2.4 / 3.6);
    }

    void withoutReadingsNothingIsClaimed()
    {
        const ContentionWatch watch;
        QVERIFY(!(watch.conditions({}, 0).clockShare < 1)); // unknown
        QCOMPARE(watch.clock(), 0.0);
    }

    void stealAndPreemptionsAreDifferences()
    {
        ContentionWatch watch;
        watch.start({.steal = 100, .total = 10000, .preemptions = 5});
        const RunConditions seen = watch.conditions({.steal = 150, .total = 11000, .preemptions = 25}, 10);
        QCOMPARE(seen.stealShare, 0.05);
        QCOMPARE(seen.preemptions, 2.0);
    }

    void procStat_data()
    {
        QTest::addColumn<QString>("line");
        QTest::addColumn<double>("steal");
        QTest::addColumn<double>("total");
        QTest::addColumn<double>("busy"); // neither idle nor waiting for a disk
        QTest::newRow("usual") << "cpu  10 1 20 300 4 5 6 7 0 0" << 7.0 << 353.0 << 42.0;
        QTest::newRow("old, without steal") << "cpu 10 1 20 300" << 0.0 << 331.0 << 31.0;
        QTest::newRow("another line") << "cpu0 10 1 20 300 4 5 6 7 0 0" << 0.0 << 0.0 << 0.0;
        QTest::newRow("garbage") << "cpu x y z" << 0.0 << 0.0 << 0.0;
        QTest::newRow("empty") << "" << 0.0 << 0.0 << 0.0;
    }
    void procStat()
    {
        QFETCH(const QString, line);
        QFETCH(const double, steal);
        QFETCH(const double, total);
        QFETCH(const double, busy);
        const SystemTicks ticks = parseProcStat(line.toStdString());
        QCOMPARE(ticks.steal, steal);
        QCOMPARE(ticks.total, total);
        QCOMPARE(ticks.busy, busy);
    }

    void whatOthersHadIsWhatIsLeft()
    {
        const SystemTicks begin{.steal = 5, .total = 1000, .busy = 300, .own = 100};
        QCOMPARE(othersShare(begin, {.steal = 5, .total = 1200, .busy = 400, .own = 200}), 0.0);
        QCOMPARE(othersShare(begin, {.steal = 15, .total = 1200, .busy = 430, .own = 200}), 0.2);
        QVERIFY(!(othersShare(begin, begin) >= 0)); // no time passed
    }

    void ticksOfThisMachine() { QVERIFY(readSystemTicks().total > 0); }
};

QTEST_APPLESS_MAIN(TestCanary)
#include "tst_canary.moc"
