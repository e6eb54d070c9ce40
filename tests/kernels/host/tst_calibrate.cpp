// SPDX-License-Identifier: Apache-2.0
// Every probe of a calibration runs for real, over small caches and with a clock that moves by a fixed
// step, so that what must come out is known: the step over the work that was done in it.
#include "kernels/host/host_backend.h"

#include "tests/support/devices.h"
#include "tests/support/host_fakes.h"
#include "tests/support/memory_limit.h"

#include <algorithm>
#include <cmath>

#include <QTest>

using namespace memscape;
using namespace memscape::host;
using namespace memscape::test;

namespace {

constexpr double step = 0x1p-5;
constexpr double largest = 0x1p26; ///< the least that a calibration goes up to

/// A last cache of 1 MiB, so that the largest arrays are of 64 MiB.
Device smallCaches()
{
    Device device = twoCores();
    device.levels[1].capacity.value = 256 << 10;
    device.levels[2].capacity.value = 1 << 20;
    return device;
}

Result<HostProbes> probed(Listener& listener, Instruments instruments)
{
    const Device device = smallCaches();
    HostSession session(device, listener, std::move(instruments));
    return probeHost(session);
}

void ascendFrom(const std::vector<Probe>& curve, double first)
{
    QVERIFY(curve.size() > 10);
    QCOMPARE(curve.front().x, first);
    QCOMPARE(curve.back().x, largest);
    for (std::size_t i = 1; i < curve.size(); ++i)
        QVERIFY(curve[i - 1].x < curve[i].x);
}

} // namespace

class TestCalibrate : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase()
    {
        Listener listener;
        const auto probes = probed(listener, steadyMachine({step}));
        QVERIFY2(probes.has_value(), probes ? "" : probes.error().text().c_str());
        m_probes = *probes;
        QCOMPARE(listener.lastDone + 1, listener.lastTotal);
        QCOMPARE(listener.steps.size(), static_cast<std::size_t>(listener.lastTotal));
        m_steps = listener.steps;
    }

    void latenciesAreTimeOverLoads()
    {
        // 16384 loads took a step, so 20 ms are 10485 and a group of 32 more, in whole groups: 10496.
        for (const auto* const curve : {&m_probes.latency4k, &m_probes.latencyHuge, &m_probes.latencyWindow}) {
            ascendFrom(*curve, 4096);
            for (const Probe& probe : *curve) {
                QCOMPARE(probe.value, step / 10496);
                QCOMPARE(probe.low, probe.value);
            }
        }
    }

    void bandwidthsAreBytesOverTime()
    {
        QCOMPARE(m_probes.bandwidths.size(), std::size_t{3}); // one core: read, write, copy
        for (const BandwidthProbes& probes : m_probes.bandwidths) {
            ascendFrom(probes.points, 4096);
            QCOMPARE(probes.threads, 2); // all cores are all threads
            for (const Probe& probe : probes.points) {
                // A pass is longer than a millisecond by this clock: one a sample. Copies are a
                // little shorter than asked for, so that they do not alias.
                const double asked = probe.x / step;
                QVERIFY2(probe.value <= asked && probe.value > 0.92 * asked, qPrintable(QString::number(probe.x)));
                QVERIFY(probe.low <= probe.value && probe.value <= probe.high);
            }
        }
    }

    void everyWalkHasARate()
    {
        QCOMPARE(m_probes.lineRates.size(), std::size_t{30});
        QCOMPARE(m_probes.randomRates.size(), std::size_t{3 * 11});
        QCOMPARE(m_probes.issueRates.size(), std::size_t{3 * 5 * 2});
        for (const LineRate& rate : m_probes.lineRates) {
            // What a pass over 64 MiB touches; a short one is repeated until it touches 65536 lines.
            const double lines = std::max(std::ceil(largest / rate.strideBytes), 65536.0);
            QCOMPARE(rate.linesPerSecond, lines / step);
        }
        for (const LineRate& rate : m_probes.randomRates)
            QCOMPARE(rate.linesPerSecond, rate.strideBytes / 64 / step); // a draw for every line
        for (const char* kind : {"read neighbours", "copy apart", "copy edges", "tiles 3", "tiles 3 crowded",
                                 "read stream", "column L2", "column DRAM"}) {
            const auto found = std::ranges::find(m_probes.walkRates, kind, &WalkRate::kind);
            QVERIFY2(found != m_probes.walkRates.end(), kind);
        }
        for (const WalkRate& rate : m_probes.walkRates)
            QVERIFY2(rate.seconds > 0 && rate.seconds <= step && rate.at > 0, rate.kind.c_str());
    }

    void theClockIsTheCanarys()
    {
        QCOMPARE(m_probes.clockHz, 4e9);
        QCOMPARE(m_probes.grade, std::string("A"));
        // Other notes say which readings this machine's file system refuses.
        QVERIFY(std::ranges::any_of(m_probes.notes,
                                    [](const std::string& note) { return note.find("grade A") != std::string::npos; }));
    }

    /// By this clock a pass takes the same time over any size: memory gives more than L1, so that the levels, and
    /// they alone, are measured twice more.
    void levelsThatContradictThemselvesComeAgain()
    {
        const auto times = [&](const std::string& label) { return std::ranges::count(m_steps, label); };
        QCOMPARE(times("latency of 4 KiB, windows"), 2 + 2);
        QCOMPARE(times("latency of 64 MiB, windows"), 1 + 2);
        QCOMPARE(times("read bandwidth of 64 MiB, 1 core"), 1 + 2);
        QCOMPARE(times("random read of 64 KiB"), 1);
    }

    void theFitRefusesWhatNoMachineDoes()
    {
        const auto device = fitHostCalibration(smallCaches(), m_probes);
        QVERIFY(!device);
        QCOMPARE(device.error().code, std::string("run.impossible"));
        QVERIFY2(device.error().message.find("only") != std::string::npos, device.error().text().c_str());
    }

    void theFitTakesThem()
    {
        HostProbes probes = m_probes;
        for (BandwidthProbes& set : probes.bandwidths)
            for (Probe& probe : set.points)
                probe.value = 1e9;
        const auto device = fitHostCalibration(smallCaches(), probes);
        QVERIFY2(device.has_value(), device ? "" : device.error().text().c_str());
        QCOMPARE(device->basis, std::string("calibrated"));
        QCOMPARE(device->calibration->grade, std::string("A"));
    }

    void stopIsAnError_data()
    {
        QTest::addColumn<int>("after");
        QTest::newRow("at once") << 0;
        QTest::newRow("on the way") << 50;
    }
    void stopIsAnError()
    {
        QFETCH(const int, after);
        Listener listener;
        listener.stopAfter = after;
        QCOMPARE(probed(listener, steadyMachine({step})).error().code, std::string("run.cancelled"));
        QVERIFY(listener.lastDone < listener.lastTotal / 2);
    }

    void aSystemThatRefusesIsAnError()
    {
        const MemoryLimit limit(16 << 20);
        if (!limit.holds())
            QSKIP("the address space cannot be limited here");
        Listener listener;
        const auto probes = probed(listener, steadyMachine({step}));
        QCOMPARE(probes.error().code, std::string("run.memory"));
        QVERIFY(!probes.error().hint.empty());
    }

private:
    HostProbes m_probes;
    std::vector<std::string> m_steps;
};

QTEST_GUILESS_MAIN(TestCalibrate)
#include "tst_calibrate.moc"
