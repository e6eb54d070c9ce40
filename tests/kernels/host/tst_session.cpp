// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/session.h"

#include "tests/support/devices.h"
#include "tests/support/host_fakes.h"

#include <QTest>

using namespace memscape;
using namespace memscape::host;
using namespace memscape::test;

class TestSession : public QObject
{
    Q_OBJECT
private slots:
    void theBudgetIsDividedAmongPointsPassesAndLoops()
    {
        const Device device = twoCores();
        Listener listener;
        HostSession session(device, listener, steadyMachine({1e-3}));
        QCOMPARE(session.passOptions().wallLimit, 2.0 / 3); // of the rule itself: no budget yet
        QCOMPARE(session.passOptions(4).wallLimit, 2.0 / 12);
        session.setBudget(12, 20);
        QCOMPARE(session.passOptions().wallLimit, 12.0 / 20 / 3);
        QCOMPARE(session.passOptions(4).wallLimit, 0.06); // less would say too little
        session.setBudget(1000, 2);
        QCOMPARE(session.passOptions().wallLimit, 2.0 / 3);
    }

    void zeroThreadsMeansAllOfThem()
    {
        Instruments instruments = steadyMachine({1e-3});
        instruments.processors = {instruments.processors[0], instruments.processors[0]};
        const Device device = twoCores();
        Listener listener;
        const HostSession session(device, listener, instruments);
        QCOMPARE(session.threadsFor(0), 2);
        QCOMPARE(session.threadsFor(1), 1);
        QCOMPARE(session.threadsFor(99), 2);
        QCOMPARE(session.threadsFor(-5), 2);
    }

    void aCoreThatCannotBeHadIsSaid()
    {
        Instruments instruments = steadyMachine({1e-3});
        const Device device = twoCores();
        Listener pinned, unpinned;
        const HostSession good(device, pinned, instruments);
        instruments.processors = {1023}; // a number that no machine of today gives a core
        const HostSession bad(device, unpinned, instruments);
        QCOMPARE(pinned.count("host.unpinned"), 0);
        QCOMPARE(unpinned.count("host.unpinned"), 1);
    }

    void stopIsAnError()
    {
        const Device device = twoCores();
        Listener listener;
        HostSession session(device, listener, steadyMachine({1e-3}));
        QVERIFY(session.checkStopped().has_value());
        listener.stop = true;
        QCOMPARE(session.checkStopped().error().code, std::string("run.cancelled"));
        listener.stop = false; // it does not come back to life
        QVERIFY(!session.checkStopped().has_value());
    }

    void everyCanaryIsWatched()
    {
        Instruments instruments = steadyMachine({1e-3});
        double clock = 4e9;
        instruments.canary = [&](const Clock&) { return CanaryReading{clock, 4 / clock}; };
        const Device device = twoCores();
        Listener listener;
        HostSession session(device, listener, instruments);
        QCOMPARE(session.readCanary().clockHz, 4e9);
        clock = 3e9;
        session.readCanary();
        QCOMPARE(session.watch().fastestClock(), 4e9);
        QCOMPARE(session.watch().conditions(session.readTicks(), 1).clockShare, 0.75);
    }

    void theRealCanaryIsTheDefault()
    {
        const Device device = twoCores();
        Listener listener;
        HostSession session(device, listener);
        QVERIFY(session.readCanary().clockHz > 0);
        QVERIFY(session.readTicks().total > 0);
        QCOMPARE(session.team().processors(), physicalCores());
    }

    void theLargestCacheIsTheDevices()
    {
        Device device = twoCores();
        Listener listener;
        QCOMPARE(HostSession(device, listener, steadyMachine({1e-3})).largestCache(), double(32 << 20));
        device.levels.resize(1);
        QCOMPARE(HostSession(device, listener, steadyMachine({1e-3})).largestCache(), 32768.0);
        device.levels[0].kind = LevelKind::Dram; // sysfs lists no cache
        QVERIFY(HostSession(device, listener, steadyMachine({1e-3})).largestCache() > 1e6);
    }

    void flushingIsNotTheExperimentsMemory()
    {
        Device device = twoCores();
        Listener listener;
        HostSession session(device, listener, steadyMachine({1e-3}));
        QVERIFY(session.flush().has_value());
        QVERIFY(session.flush().has_value());
        QCOMPARE(session.memory().highWater(), std::int64_t{0});
        listener.stop = true;
        QCOMPARE(session.flush().error().code, std::string("run.cancelled"));
    }

    void aCacheLargerThanMemoryCannotBeFlushed()
    {
        Device device = twoCores();
        device.levels[2].capacity.value = 0x1p50; // a description that is wrong
        Listener listener;
        HostSession session(device, listener, steadyMachine({1e-3}));
        const auto flushed = session.flush();
        QCOMPARE(flushed.error().code, std::string("run.memory"));
        QVERIFY(!flushed.error().hint.empty());
    }

    void aNoteIsSentOnce()
    {
        const Device device = twoCores();
        Listener listener;
        HostSession session(device, listener, steadyMachine({1e-3}));
        session.noteOnce("info", "one", "first");
        session.noteOnce("info", "one", "again");
        session.noteOnce("info", "two", "another");
        QCOMPARE(listener.count("one"), 1);
        QCOMPARE(listener.count("two"), 1);
    }

    void samplesAreWhatTheRuleTook()
    {
        const Device device = twoCores();
        Listener listener;
        HostSession session(device, listener, steadyMachine({1e-3}));
        StoppingRule rule(fewSamples(), session.clock());
        for (const double sample : {2.0, -1.0, 0.0, 4.0})
            rule.add(sample);
        QCOMPARE(session.samplesOf(rule, 8), (std::vector<double>{0.25, 0.5}));
        QCOMPARE(listener.count("clock.broken"), 0);
        const StoppingRule empty(fewSamples(), session.clock());
        QVERIFY(session.samplesOf(empty, 8).empty());
        QCOMPARE(listener.count("clock.broken"), 1);
    }

    void whatDoesNotFitIsRefusedUnlessForced()
    {
        const Device device = twoCores();
        Listener careful, stubborn;
        stubborn.forced = true;
        HostSession refuses(device, careful, steadyMachine({1e-3}));
        HostSession tries(device, stubborn, steadyMachine({1e-3}));
        QVERIFY(refuses.checkFits(1000).has_value());
        const auto refused = refuses.checkFits(1e18);
        QVERIFY(!refused.has_value());
        QCOMPARE(refused.error().code, std::string("run.memory"));
        QVERIFY(!refused.error().hint.empty());
        QVERIFY(tries.checkFits(1e18).has_value());
        QCOMPARE(stubborn.count("run.forced"), 1);
        // The system's own refusal is an error all the same.
        const auto buffer = allocate(std::size_t(1) << 60, Pages::Small, tries.memory());
        QVERIFY(!buffer.has_value());
        QCOMPARE(buffer.error().code, std::string("run.memory"));
    }

    void noCoreMovesATerabyteASecond()
    {
        QCOMPARE(possibleSeconds(0.5, 1000), 0.5);
        QCOMPARE(possibleSeconds(-3, 0), 1e-8);
        QCOMPARE(possibleSeconds(0, 1e9), 1e-3);
    }

    void factsOfThisMachine()
    {
        const HostFacts facts = hostFacts();
        QVERIFY(facts.kernel.starts_with("Linux"));
        QVERIFY(!facts.governor.empty());
    }
};

QTEST_GUILESS_MAIN(TestSession)
#include "tst_session.moc"
