// SPDX-License-Identifier: Apache-2.0
// The chase runs for real; the time it took is what the test's clock says. Steps are powers of two,
// so that sums of them are exact.
#include "kernels/host/hierarchy/latency.h"

#include "kernels/host/hierarchy/chase.h"
#include "tests/support/devices.h"
#include "tests/support/host_fakes.h"
#include "tests/support/memory_limit.h"

#include <algorithm>

#include <QTest>

using namespace memscape;
using namespace memscape::host;
using namespace memscape::test;

namespace {

constexpr std::size_t small = 16384; ///< bytes of a working set

struct MeasuredChase
{
    explicit MeasuredChase(std::vector<double> steps)
        : session(device, listener, steadyMachine(std::move(steps)))
    { }
    Result<LatencySamples> latency(std::size_t bytes, const StoppingOptions& options = fewSamples(),
                                   LatencyVariant variant = LatencyVariant::Small)
    {
        return measureLatency(session, bytes, variant, 1, options);
    }

    Device device = twoCores();
    Listener listener;
    HostSession session;
};

} // namespace

class TestLatency : public QObject
{
    Q_OBJECT
private slots:
    void aSampleIsTimeOverLoads()
    {
        // 16384 loads of the probe took 2^-7 s, so 20 ms are 41943 of them and a group of 32 more,
        // in whole groups: 41952.
        MeasuredChase slow({0x1p-7});
        const auto samples = slow.latency(small);
        QVERIFY2(samples.has_value(), samples ? "" : samples.error().text().c_str());
        QCOMPARE(samples->seconds, std::vector<double>(5, 0x1p-7 / 41952));

        // And never more than a million, however fast they are.
        MeasuredChase fast({0x1p-20});
        QCOMPARE(fast.latency(small)->seconds, std::vector<double>(5, 0x1p-40));
    }

    void everyLayoutIsMeasured_data()
    {
        QTest::addColumn<int>("variant");
        QTest::newRow("4 KiB pages") << static_cast<int>(LatencyVariant::Small);
        QTest::newRow("huge pages") << static_cast<int>(LatencyVariant::Huge);
        QTest::newRow("windows") << static_cast<int>(LatencyVariant::Window);
    }
    void everyLayoutIsMeasured()
    {
        QFETCH(const int, variant);
        MeasuredChase machine({0x1p-7});
        const auto samples = machine.latency(4 * chaseWindow, fewSamples(), static_cast<LatencyVariant>(variant));
        QVERIFY2(samples.has_value(), samples ? "" : samples.error().text().c_str());
        QCOMPARE(samples->seconds.size(), std::size_t{5});
        QVERIFY(samples->hugeShare >= 0 && samples->hugeShare <= 1);
        if (variant != static_cast<int>(LatencyVariant::Huge))
            QCOMPARE(samples->hugeShare, 0.0); // they were forbidden
    }

    void memoryIsCountedInWholeLines_data()
    {
        QTest::addColumn<quint64>("asked");
        QTest::addColumn<qint64>("counted");
        QTest::newRow("nothing") << quint64{0} << qint64{128}; // a cycle needs two lines
        QTest::newRow("one line") << quint64{64} << qint64{128};
        QTest::newRow("two lines and a bit") << quint64{191} << qint64{128};
        QTest::newRow("three lines") << quint64{192} << qint64{192};
        QTest::newRow("16 KiB") << quint64{16384} << qint64{16384};
    }
    void memoryIsCountedInWholeLines()
    {
        QFETCH(const quint64, asked);
        QFETCH(const qint64, counted);
        MeasuredChase machine({0x1p-7});
        QVERIFY(machine.latency(asked).has_value());
        QCOMPARE(machine.session.memory().highWater(), counted);
        QCOMPARE(machine.session.memory().used(), std::int64_t{0});
    }

    void noiseIsKept()
    {
        // A clock whose steps alternate: every other sample takes four times as long.
        MeasuredChase machine({0x1p-9, 0x1p-7});
        const auto samples = machine.latency(small, fewSamples(20));
        QCOMPARE(samples->seconds.size(), std::size_t{20});
        const auto [least, most] = std::minmax_element(samples->seconds.begin(), samples->seconds.end());
        QCOMPARE(*most / *least, 4.0);
    }

    void aBrokenClockEndsWithoutSamples_data()
    {
        QTest::addColumn<double>("step");
        QTest::newRow("stands still") << 0.0;
        QTest::newRow("runs backwards") << -0x1p-7;
    }
    void aBrokenClockEndsWithoutSamples()
    {
        QFETCH(const double, step);
        MeasuredChase machine({step});
        const auto samples = machine.latency(small, StoppingOptions());
        QVERIFY(samples.has_value());
        QVERIFY(samples->seconds.empty());
        QCOMPARE(machine.listener.count("clock.broken"), 1);
    }

    void aClockThatJumpsBackCostsTheSample()
    {
        // One look in eleven goes back by half a second.
        std::vector<double> steps(11, 0x1p-7);
        steps.back() = -0.5;
        MeasuredChase machine(steps);
        const auto samples = machine.latency(small, fewSamples(20));
        QCOMPARE(samples->seconds.size(), std::size_t{20});
        for (const double sample : samples->seconds)
            QVERIFY(sample > 0);
    }

    void tooLargeIsRefusedBeforeItIsTouched()
    {
        MeasuredChase machine({0x1p-7});
        const auto samples = machine.latency(std::size_t{1} << 50);
        QCOMPARE(samples.error().code, std::string("run.memory"));
        QVERIFY(!samples.error().hint.empty());
        QCOMPARE(machine.session.memory().highWater(), std::int64_t{0});
    }

    void aSystemThatRefusesIsAnError()
    {
        MeasuredChase machine({0x1p-7});
        const MemoryLimit limit(32 << 20);
        if (!limit.holds())
            QSKIP("the address space cannot be limited here");
        // counted beforehand; a forced run hears it from the system.
        const auto counted = machine.latency(std::size_t{64} << 20);
        QCOMPARE(counted.error().code, std::string("run.memory"));
        QVERIFY(counted.error().message.find("are available") != std::string::npos);
        machine.listener.forced = true;
        const auto samples = machine.latency(std::size_t{64} << 20);
        QCOMPARE(samples.error().code, std::string("run.memory"));
        QVERIFY2(samples.error().message.find("64 MiB") != std::string::npos, samples.error().text().c_str());
        machine.listener.forced = false;
        QVERIFY(machine.latency(small).has_value()); // what fits is measured all the same
    }

    void stopIsAnError_data()
    {
        QTest::addColumn<int>("after");
        QTest::newRow("at once") << 0;
        QTest::newRow("between samples") << 3;
    }
    void stopIsAnError()
    {
        QFETCH(const int, after);
        MeasuredChase machine({0x1p-7});
        machine.listener.stopAfter = after;
        const auto samples = machine.latency(small, fewSamples(1000));
        QCOMPARE(samples.error().code, std::string("run.cancelled"));
        QCOMPARE(machine.session.memory().used(), std::int64_t{0});
    }
};

QTEST_GUILESS_MAIN(TestLatency)
#include "tst_latency.moc"
