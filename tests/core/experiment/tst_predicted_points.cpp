// SPDX-License-Identifier: Apache-2.0
// A sweep of which some values are refused keeps the others, and says which and why, wherever it is shown.
#include "core/experiment/predicted_points.h"

#include "core/experiment/gap_sentences.h"
#include "core/experiment/record.h"
#include "tests/support/devices.h"

#include <QtTest>

#include <cmath>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

Device hostOfTest()
{
    Device host = test::twoCores("host");
    host.clock.value = 2e9;
    host.rates["fp32"].flops.value = 128e9;
    return host;
}

Result<Record> predictedOf(const char* experiment, const Device& device, const std::vector<std::string>& assignments)
{
    const Experiment& found = **findExperiment(experiment);
    return predictRecord(found, device, resolve(found.schema(), assignments).value());
}

/// Four layers of 4 MiB ahead do not fit into 16 MiB.
Result<Record> prefetched(const char* values)
{
    return predictedOf("placement", hostOfTest(), {"strategy=layers", "graph=mlp:8x1024", "limit=16MiB", values});
}

} // namespace

class TestPredictedPoints : public QObject
{
    Q_OBJECT

private slots:
    void valuesThatFitStayWhenOneDoesNot()
    {
        const auto record = prefetched("prefetch=0,1,2,4");
        QVERIFY(record);
        const Series* const time = record->predicted->findSeries("time");
        QVERIFY(time);
        QCOMPARE(time->y.size(), std::size_t(4));
        for (std::size_t i = 0; i < 3; ++i)
            QVERIFY(time->y[i] > 0);
        QVERIFY(std::isnan(time->y[3]));
        QCOMPARE(record->predicted->figures[0].number(), time->y[0]);
        const auto gaps = gapsOf(*record->predicted);
        QCOMPARE(gaps.size(), std::size_t(1));
        QCOMPARE(gaps[0].x, 4.0);
        QCOMPARE(gaps[0].label, std::string("prefetch 4 layers"));
        QVERIFY2(gaps[0].reason.find("choose prefetch=0") != std::string::npos, gaps[0].reason.c_str());
        // A document keeps them.
        const auto again = recordFromJson(recordToJson(*record));
        QVERIFY(again);
        QCOMPARE(gapsOf(*again->predicted).size(), std::size_t(1));
    }

    void theFirstMayBeTheOneThatDoesNot()
    {
        const auto record = prefetched("prefetch=4,1");
        QVERIFY(record);
        QVERIFY(record->predicted->figures.empty());
        QVERIFY(record->predicted->findSeries("time")->y[1] > 0);
        QCOMPARE(gapsOf(*record->predicted).size(), std::size_t(1));
    }

    void aSweepOfNothingThatFitsIsRefused()
    {
        const auto record = prefetched("prefetch=4,8");
        QVERIFY(!record);
        QCOMPARE(record.error().place, std::string("limit"));
    }

    void thePointThatWasAskedForIsNoGap()
    {
        const auto record = prefetched("prefetch=4");
        QVERIFY(!record);
        QCOMPARE(record.error().place, std::string("limit"));
    }

    /// They make their curves and their detail themselves.
    void experimentsOfTheirOwnPredictionKeepThem_data()
    {
        QTest::addColumn<QString>("experiment");
        QTest::addColumn<QString>("sweep");
        const auto row = [](const char* experiment, const char* sweep) {
            QTest::addRow("%s %s", experiment, sweep) << experiment << sweep;
        };
        for (const char* experiment : {"sharding", "training-memory", "inference-memory"}) {
            row(experiment, "tensor_parallel=1,7"); // 32 heads
            row(experiment, "tensor_parallel=7,1");
        }
    }
    void experimentsOfTheirOwnPredictionKeepThem()
    {
        QFETCH(QString, experiment);
        QFETCH(QString, sweep);
        const auto record =
            predictedOf(qPrintable(experiment), *findDevice("nvidia-h200"), {"model=llama-3-8b", sweep.toStdString()});
        QVERIFY2(record, record ? "" : record.error().text().c_str());
        const auto gaps = gapsOf(*record->predicted);
        QCOMPARE(gaps.size(), std::size_t(1));
        QVERIFY2(gaps[0].reason.find("divides") != std::string::npos, gaps[0].reason.c_str());
    }

    void sentencesNamePointAndReason()
    {
        Outcome predicted, measured;
        predicted.detail = {{"gaps",
                             {{{"x", 4}, {"label", "prefetch 4 layers"}, {"reason", "limit: too small"}},
                              {{"x", 8}, {"label", "prefetch 8 layers"}, {"reason", "limit: too small"}}}}};
        measured.detail = {{"gaps",
                            {{{"x", 4}, {"label", "prefetch 4 layers"}, {"reason", "limit: too small"}},
                             {{"x", 1}, {"label", "prefetch 1 layer"}, {"reason", "no memory"}}}}};
        QCOMPARE(gapSentences(&predicted, &measured),
                 (std::vector<std::string>{"Neither predicted nor measured at prefetch 4 layers: limit: too small.",
                                           "Not predicted at prefetch 8 layers: limit: too small.",
                                           "Not measured at prefetch 1 layer: no memory."}));
        for (int i = 0; i < 6; ++i)
            predicted.detail["gaps"].push_back({{"x", i}, {"label", "prefetch"}, {"reason", "limit"}});
        QCOMPARE(gapSentences(&predicted, nullptr).size(), std::size_t(5));
        QCOMPARE(gapSentences(&predicted, nullptr).back(), std::string("4 more points are missing."));
    }

    void foreignGapsAreLeftOut()
    {
        for (const char* text : {R"({"gaps": 7})", R"({"gaps": [7, {"label": 4}, {"label": "a"}, {"reason": "b"}]})",
                                 R"({"gaps": {"label": "a", "reason": "b"}})", "7"}) {
            Outcome outcome;
            outcome.detail = *parseJson(text);
            QVERIFY(gapsOf(outcome).empty());
        }
    }
};

QTEST_GUILESS_MAIN(TestPredictedPoints)
#include "tst_predicted_points.moc"
