// SPDX-License-Identifier: Apache-2.0
// The trace, its peak and its timeline on traces small enough to add up by hand, and on a random
// one against a slow recount.
#include "core/access/random.h"
#include "core/trace/peak.h"
#include "core/trace/timeline.h"

#include <QtTest>

#include <limits>

using namespace memscape;

namespace {

/// 100 B of weights; forward allocates 10 and 30, frees the 10; backward allocates 20 and frees
/// everything but the weights and the 20.
Trace smallStep()
{
    Trace trace;
    trace.allocate(100, Category::Weights, trace.name("weight"), trace.module("fc"));
    trace.enter(Phase::Forward);
    const BlockId a = trace.allocate(10, Category::Activations, trace.name("out"), trace.module("h.0"));
    const BlockId b = trace.allocate(30, Category::Activations, trace.name("out"), trace.module("h.1"));
    trace.free(a);
    trace.enter(Phase::Backward);
    trace.allocate(20, Category::Gradients, trace.name("weight.grad"), trace.module("fc"));
    trace.free(b);
    return trace;
}

/// Allocations and frees of random sizes, with some moments alone far above the rest.
Trace randomStep(std::size_t events)
{
    SplitMix64 random(7);
    Trace trace;
    trace.allocate(1 << 20, Category::Weights);
    trace.enter(Phase::Forward);
    std::vector<BlockId> live;
    while (trace.events().size() < events) {
        if (random.below(1000) == 0)
            trace.free(trace.allocate(std::int64_t(random.below(1 << 30)), Category::Temporary));
        else if (live.empty() || random.below(100) < 52) {
            live.push_back(
                trace.allocate(1 + std::int64_t(random.below(1 << 16)), Category(random.below(categoryCount))));
        } else {
            std::swap(live[random.below(live.size())], live.back());
            trace.free(live.back());
            live.pop_back();
        }
    }
    return trace;
}

} // namespace

class TestTrace : public QObject
{
    Q_OBJECT

private slots:
    void peakIsWhereTheSumIsHighest()
    {
        const Trace trace = smallStep();
        const auto peak = peakOf(trace);
        QVERIFY(peak);
        QCOMPARE(peak->bytes, std::int64_t(150)); // weights 100, h.1 30, gradient 20
        QCOMPARE(peak->event, std::size_t(4));
        QCOMPARE(peak->phase, Phase::Backward);
        QCOMPARE(peak->categories[std::size_t(Category::Activations)], std::int64_t(30));
        QCOMPARE(trace.peakBytes(), std::int64_t(150));
        QCOMPARE(trace.liveBytes(), std::int64_t(120));
        QCOMPARE(trace.setupEvents(), std::size_t(1));
    }

    void everyPhaseHasItsPeak()
    {
        const Trace trace = smallStep();
        QCOMPARE(trace.peakBytes(Phase::Setup), std::int64_t(100));
        QCOMPARE(trace.peakBytes(Phase::Forward), std::int64_t(140));
        QCOMPARE(peakOf(trace, Phase::Forward)->event, std::size_t(2));
        QVERIFY(!peakOf(trace, Phase::Optimizer));
        QVERIFY(!peakOf(Trace()));
    }

    void whoIsAliveAtThePeak()
    {
        const Trace trace = smallStep();
        QCOMPARE(liveAt(trace, peakOf(trace)->event), (std::vector<BlockId>{1, 3, 4}));
    }

    void nothingIsAllocatedForNoBytes()
    {
        Trace trace;
        QCOMPARE(trace.allocate(0, Category::Input), noBlock);
        trace.free(noBlock);
        QVERIFY(trace.events().empty());
    }

    void anOverflowIsAnError()
    {
        Trace trace;
        trace.allocate(std::numeric_limits<std::int64_t>::max(), Category::Weights);
        QVERIFY(trace.check());
        trace.allocate(1, Category::Weights);
        QVERIFY(!trace.check());
        QCOMPARE(trace.check().error().code, std::string("trace.overflow"));
    }

    void aShortTimelineIsEveryMoment()
    {
        const auto line = timelineOf(smallStep(), 100);
        QList<qint64> bytes;
        for (const Moment& moment : line)
            bytes << moment.bytes;
        QCOMPARE(bytes, (QList<qint64>{100, 110, 140, 130, 150, 120}));
    }

    void aLongTimelineKeepsPeaksAndOrder_data()
    {
        QTest::addColumn<int>("points");
        for (const int points : {4, 5, 64, 1001, 50'000})
            QTest::newRow(qPrintable(QString::number(points))) << points;
    }
    void aLongTimelineKeepsPeaksAndOrder()
    {
        QFETCH(int, points);
        const Trace trace = randomStep(20'000);
        const auto line = timelineOf(trace, std::size_t(points));
        QVERIFY(line.size() <= std::size_t(points));
        std::int64_t most = 0;
        for (std::size_t i = 0; i < line.size(); ++i) {
            QVERIFY(i == 0 || line[i].event > line[i - 1].event);
            std::int64_t sum = 0;
            for (const std::int64_t bytes : line[i].categories)
                sum += bytes;
            QCOMPARE(sum, line[i].bytes);
            most = std::max(most, sum);
        }
        QCOMPARE(most, peakOf(trace)->bytes);
        QCOMPARE(most, trace.peakBytes());
        QCOMPARE(line.back().event, trace.events().size() - 1);
        QCOMPARE(line.back().bytes, trace.liveBytes());
    }

    void aLongTimelineHasTheExtremesOfEachStretch_data() { aLongTimelineKeepsPeaksAndOrder_data(); }
    /// Against the sums of all events, one after the other.
    void aLongTimelineHasTheExtremesOfEachStretch()
    {
        QFETCH(int, points);
        const Trace trace = randomStep(20'000);
        std::vector<std::int64_t> bytes;
        for (const Event& event : trace.events())
            bytes.push_back((bytes.empty() ? 0 : bytes.back()) + event.change());
        const auto line = timelineOf(trace, std::size_t(points));
        for (const Moment& moment : line)
            QCOMPARE(moment.bytes, bytes[moment.event]);
        const std::size_t first = trace.setupEvents(), left = bytes.size() - first;
        const std::size_t stretches = std::min(left, std::size_t(points - 2) / 2);
        auto drawn = line.begin() + 1;
        for (std::size_t stretch = 0; stretch < stretches && points < 20'000; ++stretch) {
            const auto begin = bytes.begin() + std::ptrdiff_t(first + stretch * left / stretches);
            const auto end = bytes.begin() + std::ptrdiff_t(first + (stretch + 1) * left / stretches);
            auto lowest = std::min_element(begin, end), highest = std::max_element(begin, end);
            if (highest < lowest)
                std::swap(lowest, highest);
            QCOMPARE(drawn++->event, std::size_t(lowest - bytes.begin()));
            if (highest != lowest)
                QCOMPARE(drawn++->event, std::size_t(highest - bytes.begin()));
        }
    }
};

QTEST_APPLESS_MAIN(TestTrace)
#include "tst_trace.moc"
