// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/stopping.h"
#include "tests/support/waiting.h"

#include <functional>
#include <limits>

#include <QElapsedTimer>
#include <QTest>

using namespace memscape;

namespace {

struct Ended
{
    StopReason reason = StopReason::Running;
    std::size_t samples = 0;
    double wall = 0;
};

/// Runs a kernel that takes kernel(i) seconds, with `overhead` around each sample, until it stops.
Ended runUntilStopped(const std::function<double(int)>& kernel, double overhead = 0,
                      const StoppingOptions& options = StoppingOptions())
{
    FakeClock clock;
    StoppingRule rule(options, clock);
    for (int i = 0; !rule.finished() && i < 1'000'000; ++i) {
        const double seconds = kernel(i);
        clock.advance((seconds > 0 ? seconds : 0) + overhead);
        rule.add(seconds);
    }
    return {rule.state(), rule.samples().size(), clock.now()};
}

} // namespace

class TestStopping : public QObject
{
    Q_OBJECT
private slots:
    void quietKernelStopsAtItsFloor()
    {
        const Ended ended = runUntilStopped([](int) { return 0.02; });
        QCOMPARE(ended.reason, StopReason::Precise);
        QCOMPARE(ended.samples, std::size_t{10});
    }

    void enoughTimeIsNeededToo()
    {
        // 1 ms samples: ten are not 0.1 s.
        const Ended ended = runUntilStopped([](int) { return 0.001; });
        QCOMPARE(ended.reason, StopReason::Precise);
        QVERIFY(ended.samples >= 99);
    }

    void threeMicrosecondKernelStopsInTime()
    {
        // Jitter of ±10 %, and 1 µs around each sample. Real time must stay small as well: deciding
        // may not cost more than the kernel.
        QElapsedTimer timer;
        timer.start();
        const Ended ended = runUntilStopped([](int i) { return 3e-6 * (1 + 0.1 * (i % 5 - 2)); }, 1e-6);
        QCOMPARE(ended.reason, StopReason::Precise);
        QVERIFY(ended.wall < 2);
        QVERIFY2(timer.elapsed() < test::notStuck, qPrintable(QString::number(timer.elapsed())));
    }

    void noiseThatDoesNotShrinkIsAPlateau()
    {
        // Spread evenly over a factor of two: more samples do not change that, and the wall limit is
        // far away.
        StoppingOptions options;
        options.wallLimit = 1e9;
        options.target = 1e-9;
        const Ended ended = runUntilStopped([](int i) { return 0.01 * (1 + (i * 7 % 11) / 10.0); }, 0, options);
        QCOMPARE(ended.reason, StopReason::Plateau);
    }

    void wallLimitEndsAnything()
    {
        const Ended ended = runUntilStopped([](int i) { return i % 2 ? 0.1 : 0.3; });
        QCOMPARE(ended.reason, StopReason::WallLimit);
        QVERIFY(ended.wall < 2.5);
    }

    void oneLongSampleIsEnoughToStop()
    {
        const Ended ended = runUntilStopped([](int) { return 5.0; });
        QCOMPARE(ended.reason, StopReason::WallLimit);
        QCOMPARE(ended.samples, std::size_t{1});
    }

    void noSampleEverStillStops()
    {
        const Ended ended = runUntilStopped([](int) { return std::numeric_limits<double>::quiet_NaN(); }, 0.01);
        QCOMPARE(ended.reason, StopReason::WallLimit);
        QCOMPARE(ended.samples, std::size_t{0});
    }

    // Durations that cannot be: the rule ends, whatever the clock of the wall says.
    void aBrokenClockStops_data()
    {
        QTest::addColumn<double>("sample");
        QTest::newRow("no time passed") << 0.0;
        QTest::newRow("time ran backwards") << -0.5;
    }
    void aBrokenClockStops()
    {
        QFETCH(const double, sample);
        const Ended ended = runUntilStopped([sample](int) { return sample; });
        QCOMPARE(ended.reason, StopReason::NoClock);
        QCOMPARE(ended.samples, std::size_t{0});
        QVERIFY(stopText(ended.reason).find("clock") != std::string::npos);
    }

    void aClockThatJumpsNowAndThenDoesNotStopIt()
    {
        // Every third sample is lost to a clock that was set back; the others are as good as ever.
        StoppingOptions options;
        options.minimumSamples = 400;
        const Ended ended = runUntilStopped([](int i) { return i % 3 == 1 ? -0.02 : 0.001; }, 0, options);
        QCOMPARE(ended.reason, StopReason::Precise);
        QVERIFY(ended.samples >= 400);
    }

    void outliersDoNotKeepItRunning()
    {
        const Ended ended = runUntilStopped([](int i) { return i % 10 == 3 ? 0.5 : 0.01; });
        QCOMPARE(ended.reason, StopReason::Precise);
    }

    void onceStoppedItStaysStopped()
    {
        FakeClock clock;
        StoppingRule rule(StoppingOptions(), clock);
        clock.advance(3);
        QCOMPARE(rule.state(), StopReason::WallLimit);
        for (int i = 0; i < 100; ++i)
            rule.add(0.1);
        QCOMPARE(rule.state(), StopReason::WallLimit);
    }

    void passesShareTheBudget()
    {
        const StoppingOptions third = StoppingOptions().perPass(3);
        QCOMPARE(third.minimumSamples, std::size_t{4});
        QVERIFY(third.wallLimit < 0.7);
        QVERIFY(!stopText(StopReason::Plateau).empty());
    }
};

QTEST_APPLESS_MAIN(TestStopping)
#include "tst_stopping.moc"
