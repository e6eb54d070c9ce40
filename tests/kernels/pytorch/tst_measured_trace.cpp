// SPDX-License-Identifier: Apache-2.0
// The tables of the probe become the trace that they describe; each wrong number is refused by its place.
#include "core/trace/peak.h"
#include "kernels/pytorch/measured_trace.h"

#include <QtTest>

using namespace memscape;

namespace {

/// 100 B of weights; forward makes 40, backward 8 and frees the 40.
Json tables()
{
    return *parseJson(R"({"modules": ["", "fc"], "names": ["", "weight", "mm"],
        "categories": ["weights", "activations", "temporary"], "phases": ["setup", "forward", "backward"],
        "events": [100, 1, 1, 1, 0, 0, 0,   40, 2, 1, 2, 1, 1, 0,   8, 3, 1, 2, 2, 2, 0,   0, 2, 2, 0]})");
}

std::string placeOf(std::size_t index, const Json& number)
{
    Json wrong = tables();
    wrong["events"][index] = number;
    const auto trace = traceFromProbe(wrong);
    return trace ? "accepted" : trace.error().place;
}

} // namespace

class TestMeasuredTrace : public QObject
{
    Q_OBJECT

private slots:
    void a_trace()
    {
        const auto trace = traceFromProbe(tables());
        QVERIFY(trace.has_value());
        QCOMPARE(trace->peakBytes(), std::int64_t(148));
        QCOMPARE(trace->liveBytes(), std::int64_t(108));
        QCOMPARE(trace->setupEvents(), std::size_t(1));
        const Moment peak = *peakOf(*trace);
        QVERIFY(peak.phase == Phase::Backward);
        QCOMPARE(peak.categories[std::size_t(Category::Activations)], std::int64_t(40));
        QCOMPARE(trace->modules()[trace->events()[1].module], std::string("fc"));
        QCOMPARE(trace->names()[trace->events()[1].name], std::string("mm"));
    }

    void wrong_numbers()
    {
        QCOMPARE(placeOf(1, 7), std::string("events[1]"));     // blocks count from 1
        QCOMPARE(placeOf(2, 2), std::string("events[2]"));     // no such module
        QCOMPARE(placeOf(4, -1), std::string("events[4]"));    // no such category
        QCOMPARE(placeOf(5, 3), std::string("events[5]"));     // no such phase
        QCOMPARE(placeOf(6, 65536), std::string("events[6]")); // micro-batches
        QCOMPARE(placeOf(0, 2e18), std::string("events[0]"));  // no whole number
        QCOMPARE(placeOf(0, (1ll << 60) + 1), std::string("events[0]"));
        QCOMPARE(placeOf(7, "40"), std::string("events[7]"));
        QCOMPARE(placeOf(22, 9), std::string("events[22]")); // freed, but never made
    }

    void freed_twice_and_cut_off()
    {
        Json twice = tables();
        for (const int number : {0, 2, 2, 0})
            twice["events"].push_back(number);
        QCOMPARE(traceFromProbe(twice).error().place, std::string("events[26]"));
        Json cut = tables();
        for (int left = 3; left > 0; --left) {
            cut["events"].erase(cut["events"].size() - 1);
            QVERIFY(!traceFromProbe(cut));
        }
    }

    void tables_that_are_missing()
    {
        for (const char* key : {"modules", "names", "categories", "phases", "events"}) {
            Json less = tables();
            less.erase(key);
            QVERIFY(!traceFromProbe(less));
            less[key] = "text";
            QVERIFY(!traceFromProbe(less));
        }
        Json foreign = tables();
        foreign["categories"][2] = "of tomorrow";
        QCOMPARE(traceFromProbe(foreign).error().code, std::string("probe.trace"));
    }
};

QTEST_GUILESS_MAIN(TestMeasuredTrace)
#include "tst_measured_trace.moc"
