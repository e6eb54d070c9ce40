// SPDX-License-Identifier: Apache-2.0
// A kernel of the test's own sees which slices it is given; the time it took is what the test's clock
// says.
#include "kernels/host/hierarchy/bandwidth.h"

#include "tests/support/devices.h"
#include "tests/support/host_fakes.h"
#include "tests/support/memory_limit.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include <QTest>

using namespace memscape;
using namespace memscape::host;
using namespace memscape::test;

namespace {

struct Call
{
    StreamSlice slice;
    std::size_t repeats = 0;
};

/// What the kernel below was called with. A kernel is a plain function, so this is not a parameter.
struct Recorded
{
    std::mutex mutex;
    std::vector<Call> calls;
    Listener* stopAtOnce = nullptr;
};
Recorded& recorded()
{
    static Recorded one;
    return one;
}

std::uint64_t recordingKernel(const StreamSlice& slice, std::size_t repeats)
{
    const std::lock_guard lock(recorded().mutex);
    recorded().calls.push_back({slice, repeats});
    if (recorded().stopAtOnce) {
        recorded().stopAtOnce->stop = true;
        // Long enough for the waiting thread to check for a stop, which it does all 20 ms.
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    return 0;
}

struct Measured
{
    explicit Measured(std::vector<double> steps, int threads = 1)
        : session(device, listener, machineOf(std::move(steps), threads))
    {
        recorded().calls.clear();
        recorded().stopAtOnce = nullptr;
    }
    static Instruments machineOf(std::vector<double> steps, int threads)
    {
        Instruments instruments = steadyMachine(std::move(steps));
        instruments.processors.resize(static_cast<std::size_t>(threads), instruments.processors[0]);
        return instruments;
    }
    Result<BandwidthSamples> bandwidth(Operation operation, std::size_t bytes, int threads = 1,
                                       StreamFunction kernel = recordingKernel,
                                       const StoppingOptions& options = fewSamples())
    {
        BandwidthPoint point;
        point.bytes = bytes;
        point.operation = operation;
        point.threads = threads;
        point.kernel = kernel;
        return measureBandwidth(session, point, options);
    }

    Device device = twoCores();
    Listener listener;
    HostSession session;
};

using Span = std::pair<const std::byte*, const std::byte*>;

/// Every array that any thread was given, in ascending order and each once.
std::vector<Span> arraysOf(const std::vector<Call>& calls)
{
    std::vector<Span> spans;
    for (const auto& [slice, repeats] : calls) {
        for (const std::byte* const begin : {static_cast<const std::byte*>(slice.a), slice.b, slice.c}) {
            if (begin)
                spans.emplace_back(begin, begin + slice.bytes);
        }
    }
    std::ranges::sort(spans);
    spans.erase(std::unique(spans.begin(), spans.end()), spans.end());
    return spans;
}

} // namespace

class TestBandwidth : public QObject
{
    Q_OBJECT
private slots:
    void everyThreadHasArraysOfItsOwn_data()
    {
        QTest::addColumn<int>("operation");
        QTest::addColumn<int>("arrays");
        QTest::addColumn<int>("threads");
        QTest::addColumn<quint64>("bytes");
        for (const int threads : {1, 2, 3}) {
            for (const quint64 bytes : {quint64{4096}, quint64{100'000}, quint64{1 << 20}}) {
                const auto row = [&](const char* name, Operation operation, int arrays) {
                    QTest::addRow("%s, %d threads, %llu B", name, threads, bytes)
                        << static_cast<int>(operation) << arrays << threads << bytes;
                };
                row("read", Operation::Read, 1);
                row("write", Operation::Write, 1);
                row("copy", Operation::Copy, 2);
                row("triad", Operation::Triad, 3);
            }
        }
    }
    void everyThreadHasArraysOfItsOwn()
    {
        QFETCH(const int, operation);
        QFETCH(const int, arrays);
        QFETCH(const int, threads);
        QFETCH(const quint64, bytes);
        Measured machine({0x1p-7}, threads);
        const auto samples = machine.bandwidth(static_cast<Operation>(operation), bytes, threads);
        QVERIFY2(samples.has_value(), samples ? "" : samples.error().text().c_str());

        const auto spans = arraysOf(recorded().calls);
        QCOMPARE(spans.size(), static_cast<std::size_t>(arrays * threads));
        double named = 0;
        for (std::size_t i = 0; i < spans.size(); ++i) {
            if (i > 0)
                QVERIFY(spans[i - 1].second <= spans[i].first);
            QCOMPARE((spans[i].second - spans[i].first) % 64, std::ptrdiff_t{0});
            named += static_cast<double>(spans[i].second - spans[i].first);
        }
        QVERIFY(static_cast<quint64>(spans.back().second - spans.front().first) <= bytes);
        QCOMPARE(samples->namedBytes, named);
        QVERIFY2(named > 0.9 * static_cast<double>(bytes), "the working set is what was asked for");
        QCOMPARE(machine.session.memory().used(), std::int64_t{0});
    }

    void arraysDoNotAliasByPage()
    {
        // Loads wait for stores to the same place of another page: neighbours must not start there.
        for (const Operation operation : {Operation::Copy, Operation::Triad}) {
            Measured machine({0x1p-7});
            QVERIFY(machine.bandwidth(operation, 3 << 20).has_value());
            std::map<std::ptrdiff_t, int> places;
            for (const Span& span : arraysOf(recorded().calls))
                ++places[reinterpret_cast<std::intptr_t>(span.first) % 4096];
            QCOMPARE(places.size(), static_cast<std::size_t>(arraysOf(operation)));
        }
    }

    void aSampleIsAsManyPassesAsTakeAMillisecond()
    {
        Measured fast({0x1p-20}); // a pass took 2^-20 s: 1048 of them are a millisecond
        const auto samples = fast.bandwidth(Operation::Read, 4096);
        QCOMPARE(samples->seconds, std::vector<double>(5, 0x1p-20 / 1048));
        QCOMPARE(recorded().calls.back().repeats, std::size_t{1048});

        Measured slow({0x1p-7});
        QCOMPARE(slow.bandwidth(Operation::Read, 4096)->seconds, std::vector<double>(5, 0x1p-7));
        QCOMPARE(recorded().calls.back().repeats, std::size_t{1});
    }

    void longPassesComeInPieces()
    {
        constexpr std::size_t piece = std::size_t{64} << 20;
        Measured machine({0x1p-7});
        QVERIFY(machine.bandwidth(Operation::Read, 2 * piece + 4096).has_value());
        const auto& calls = recorded().calls;
        QCOMPARE(calls[0].slice.bytes, piece);
        QCOMPARE(calls[1].slice.a, calls[0].slice.a + piece);
        QCOMPARE(calls[2].slice.bytes, std::size_t{4096});
        QCOMPARE(calls[3].slice.a, calls[0].slice.a); // the next pass
    }

    void stopEndsALongPass()
    {
        Measured machine({0x1p-7});
        recorded().stopAtOnce = &machine.listener;
        const auto samples = machine.bandwidth(Operation::Read, std::size_t{192} << 20);
        QCOMPARE(samples.error().code, std::string("run.cancelled"));
        QVERIFY2(recorded().calls.size() < 3, "the rest of the pass was not run");
    }

    void stopBeforeTheFirstPass()
    {
        Measured machine({0x1p-7});
        machine.listener.stop = true;
        const auto samples = machine.bandwidth(Operation::Copy, 4096);
        QCOMPARE(samples.error().code, std::string("run.cancelled"));
        QVERIFY(recorded().calls.empty());
    }

    void tooLargeIsRefusedBeforeItIsTouched()
    {
        Measured machine({0x1p-7});
        const auto samples = machine.bandwidth(Operation::Read, std::size_t{1} << 50);
        QCOMPARE(samples.error().code, std::string("run.memory"));
        QVERIFY(!samples.error().hint.empty());
        QVERIFY(recorded().calls.empty());
    }

    void aSystemThatRefusesIsAnError()
    {
        Measured machine({0x1p-7});
        const MemoryLimit limit(32 << 20);
        if (!limit.holds())
            QSKIP("the address space cannot be limited here");
        QCOMPARE(machine.bandwidth(Operation::Read, std::size_t{64} << 20).error().code, std::string("run.memory"));
        QVERIFY(machine.bandwidth(Operation::Read, 4096).has_value());
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
        Measured machine({step});
        const auto samples = machine.bandwidth(Operation::Copy, 1 << 20, 1, nullptr, StoppingOptions());
        QVERIFY(samples.has_value());
        QVERIFY(samples->seconds.empty());
        QCOMPARE(machine.listener.count("clock.broken"), 1);
    }

    void theKernelOfTheProgramRunsHereToo()
    {
        Measured machine({0x1p-7}, 2);
        for (const Operation operation : {Operation::Read, Operation::Write, Operation::Copy, Operation::Triad}) {
            const auto samples = machine.bandwidth(operation, 100'000, 2, nullptr);
            QVERIFY(samples.has_value());
            QCOMPARE(samples->seconds.size(), std::size_t{5});
        }
    }
};

QTEST_GUILESS_MAIN(TestBandwidth)
#include "tst_bandwidth.moc"
