// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/common/line_counter.h"

#include "core/device/catalogue.h"
#include "core/experiments/stride/stride.h"
#include "kernels/host/measurement.h"
#include "tests/support/listener.h"

#include <QTest>

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

namespace memscape::host {
std::unique_ptr<HostMeasurement> makeStrideMeasurement(HostSession& session); // of stride.cpp
} // namespace memscape::host

using namespace memscape;
using namespace memscape::host;

namespace {

constexpr double knownLines = 1 << 17;

/// Page faults: an event of the kernel, which virtual machines have, too.
Result<std::unique_ptr<EventCounter>> openPageFaults()
{
    return openEvent(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
}

void touchNewPages(std::size_t count)
{
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* fresh = mmap(nullptr, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(fresh, count * page, MADV_NOHUGEPAGE);
    for (std::size_t i = 0; i < count; ++i)
        static_cast<volatile char*>(fresh)[i * page] = 1;
    munmap(fresh, count * page);
}

/// Returns the given counts, one reading after the other; the last one again and again.
class ToldCounter final : public EventCounter
{
public:
    explicit ToldCounter(std::vector<double> readings)
        : m_readings(std::move(readings))
    { }
    void start() override { }
    double stop() override { return m_readings[std::min(m_next++, m_readings.size() - 1)]; }

private:
    std::vector<double> m_readings;
    std::size_t m_next = 0;
};

OpenCounter counterThatSays(std::vector<double> readings)
{
    return [readings] { return Result<std::unique_ptr<EventCounter>>(std::make_unique<ToldCounter>(readings)); };
}

Instruments oneThread(OpenCounter open)
{
    Instruments instruments;
    instruments.processors.resize(1);
    instruments.openCounter = std::move(open);
    return instruments;
}

const Experiment& stride()
{
    return **findExperiment("stride");
}

/// lines_read and moved_bandwidth of a measured point.
Figures measuredFigures(OpenCounter open, const std::vector<std::string>& assignments)
{
    static const Device device = describeHost();
    test::Listener sink;
    HostSession session(device, sink, oneThread(std::move(open)));
    const auto measurement = makeStrideMeasurement(session);
    const auto point = *resolve(stride().schema(), assignments);
    const auto sets = measurement->visit(point, 0);
    MergedSamples samples;
    samples["time"].add(0, sets->at("time"));
    return *measurement->figures(point, samples);
}

} // namespace

class TestLineCounter : public QObject
{
    Q_OBJECT
private slots:
    void everyThreadCountsItsOwnEvents()
    {
        if (const auto counter = openPageFaults(); !counter)
            QSKIP(counter.error().message.c_str());
        const SteadyClock clock;
        ThreadTeam team(physicalCores(), clock);
        std::vector<double> counted(std::size_t(team.size()));
        team.run([&](int thread) {
            const auto counter = *openPageFaults();
            touchNewPages(10); // before it counts
            counter->start();
            touchNewPages(100 * (std::size_t(thread) + 1));
            counted[std::size_t(thread)] = counter->stop();
            touchNewPages(10);
        });
        for (int thread = 0; thread < team.size(); ++thread) {
            const double pages = 100 * (thread + 1), said = counted[std::size_t(thread)];
            QVERIFY2(said >= pages && said < pages + 10, qPrintable(QString::number(said)));
        }
    }

    void aCounterOfSomethingElseIsNotBelieved()
    {
        if (const auto counter = openPageFaults(); !counter)
            QSKIP(counter.error().message.c_str());
        const SteadyClock clock;
        ThreadTeam team(physicalCores(), clock);
        LineCounter lines(team, openPageFaults);
        QVERIFY2(lines.missing().find("not used") != std::string::npos, lines.missing().c_str());
        QVERIFY(!lines.during([] {}));
    }

    void whatIsBelieved_data()
    {
        QTest::addColumn<double>("all");
        QTest::addColumn<double>("one");
        QTest::addColumn<bool>("believed");
        QTest::newRow("every line once") << knownLines << 0.0 << true;
        QTest::newRow("and some of the page tables") << knownLines * 1.05 << 300.0 << true;
        QTest::newRow("none") << 0.0 << 0.0 << false;
        QTest::newRow("pairs of lines") << knownLines / 2 << 0.0 << false;
        QTest::newRow("all loads") << knownLines << knownLines << false;
        QTest::newRow("no time to count") << qQNaN() << 0.0 << false;
    }
    void whatIsBelieved()
    {
        QFETCH(const double, all);
        QFETCH(const double, one);
        QFETCH(const bool, believed);
        const SteadyClock clock;
        ThreadTeam team({physicalCores().front()}, clock);
        LineCounter lines(team, counterThatSays({all, one, 77}));
        QCOMPARE(lines.missing().empty(), believed);
        QCOMPARE(lines.during([] {}), believed ? std::optional(77.0) : std::nullopt);
    }

    void countedLinesAreTheMovedOnes()
    {
        const std::vector<std::string> read{"stride=16", "bytes=1MiB", "threads=1"};
        const double lines = 3 * 16384; // a prefetcher brought two for each
        const Figures figures = measuredFigures(counterThatSays({knownLines, 0, lines}), read);
        QCOMPARE(findFigure(figures, "lines_read")->number(), lines);
        QVERIFY(!findFigure(figures, "lines_read")->isCounted);
        const double seconds = findFigure(figures, "time")->number();
        QCOMPARE(findFigure(figures, "moved_bandwidth")->number(), lines * 64 / seconds);
        // The prediction counts those that the walk touches.
        const auto predicted = stride().predictPoint(describeHost(), *resolve(stride().schema(), read));
        QCOMPARE(findFigure(*predicted, "lines_read")->number(), 16384.0);
    }

    void aWarmWalkMovesWhatItTouches()
    {
        // All of it stays in L1: the counter sees nothing, and the bytes moved all the same.
        const Figures figures = measuredFigures(counterThatSays({knownLines, 0, 0}),
                                                {"stride=16", "bytes=16KiB", "threads=1", "cache=warm"});
        QCOMPARE(findFigure(figures, "lines_read")->number(), 0.0);
        const double seconds = findFigure(figures, "time")->number();
        QCOMPARE(findFigure(figures, "moved_bandwidth")->number(), 256 * 64 / seconds);
    }

    void withoutACounterTheModelsLinesAreSaidToBeThat_data()
    {
        QTest::addColumn<QString>("operation");
        QTest::addColumn<bool>("isThere");
        QTest::addColumn<QString>("why");
        QTest::newRow("no counter") << "read" << false << "no counters on this machine";
        QTest::newRow("stores") << "write" << true << "lines that stores fetch have no counter here";
    }
    void withoutACounterTheModelsLinesAreSaidToBeThat()
    {
        QFETCH(const QString, operation);
        QFETCH(const bool, isThere);
        QFETCH(const QString, why);
        const OpenCounter none = []() -> Result<std::unique_ptr<EventCounter>> {
            return fail("counter.missing", "no counters on this machine");
        };
        const Figures figures = measuredFigures(isThere ? counterThatSays({knownLines, 0, 5}) : none,
                                                {"stride=16", "bytes=1MiB", "operation=" + operation.toStdString()});
        QVERIFY(!findFigure(figures, "lines_read"));
        QCOMPARE(findFigure(figures, "moved_bandwidth")->why->omits.front(), why.toStdString());
    }
};

QTEST_GUILESS_MAIN(TestLineCounter)
#include "tst_line_counter.moc"
