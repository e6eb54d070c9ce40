// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/comparison.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

Figure figure(double value, double low, double high, Unit unit = Unit::Second)
{
    return {"f", "f", unit, value, low, high, {}};
}

Series series(std::vector<double> x, std::vector<double> y, double band = 0, Unit unit = Unit::BytePerSecond)
{
    Series one{"s", "s", {"x", "x", Unit::One, AxisScale::Linear, std::move(x), {}}, "y", unit, y, {}, {}};
    for (const double value : y) {
        one.low.push_back(value - band);
        one.high.push_back(value + band);
    }
    return one;
}

} // namespace

class TestComparison : public QObject
{
    Q_OBJECT

private slots:
    void errorIsSignedAndRelative()
    {
        Outcome predicted{{figure(12.0e-9, 12.0e-9, 12.0e-9)}, {}, {}};
        Outcome measured{{figure(12.6e-9, 12.5e-9, 12.9e-9)}, {}, {}};
        const auto comparison = compare(predicted, measured);
        QVERIFY(std::fabs(comparison.figures[0].error - (12.0 - 12.6) / 12.6) < 1e-12);
        QVERIFY(!comparison.figures[0].agree);
        Outcome counted = predicted;
        counted.figures[0].isCounted = true;
        QVERIFY(std::isnan(compare(counted, measured).figures[0].error));
        QVERIFY(outcomeFromJson(JsonReader(outcomeToJson(counted), "predicted"))->figures[0].isCounted);
        measured.figures[0].low = 11.9e-9;
        QVERIFY(compare(predicted, measured).figures[0].agree);
    }

    void wordsAgreeOrNot()
    {
        Outcome predicted{{{"level", "level", Unit::One, std::string("L2")}}, {}, {}};
        Outcome measured = predicted;
        QVERIFY(compare(predicted, measured).figures[0].agree);
        measured.figures[0].value = std::string("L3");
        QVERIFY(!compare(predicted, measured).figures[0].agree);
        QVERIFY(std::isnan(compare(predicted, measured).figures[0].error));
    }

    void seriesTakeTheMedianOverCommonPoints()
    {
        const Outcome predicted{{}, {series({1, 2, 3, 4}, {10, 10, 10, 10})}, {}};
        const Outcome measured{{}, {series({2, 3, 4, 5}, {10, 8, 20, 1})}, {}};
        const auto comparison = compare(predicted, measured).series[0];
        QCOMPARE(comparison.points, std::size_t(3));
        QCOMPARE(comparison.medianError, 0.25); // of 0, 2/8, 10/20
        QCOMPARE(comparison.largestError, 0.5);
        QCOMPARE(comparison.worstX, 4.0);
    }

    void pointsAreFoundInAnyOrder()
    {
        const Outcome predicted{
            {}, {series({3, NAN, 1, 2, 2, -0.0}, {30, 5, 10, 20, 99, 7})}, {}}; // of equal ones the first
        const Outcome measured{{}, {series({2, 1, NAN, 3, 0, 4}, {20, 10, 6, 30, 7, 1})}, {}};
        const auto comparison = compare(predicted, measured).series[0];
        QCOMPARE(comparison.points, std::size_t(4));
        QCOMPARE(comparison.largestError, 0.0);
    }

    void bandsDecideFasterAndSlower()
    {
        QCOMPARE(compareFigures(figure(10, 9, 11), figure(8, 7, 8.5)), Verdict::Faster);
        QCOMPARE(compareFigures(figure(10, 9, 11), figure(12, 11.5, 13)), Verdict::Slower);
        QCOMPARE(compareFigures(figure(10, 9, 11), figure(10.5, 10, 12)), Verdict::Same);
        const auto rate = [](double value) { return figure(value, value - 1, value + 1, Unit::BytePerSecond); };
        QCOMPARE(compareFigures(rate(10), rate(20)), Verdict::Faster);
        QCOMPARE(compareSeries(series({1, 2, 3}, {10, 10, 10}, 1), series({1, 2, 3}, {20, 20, 10}, 1)),
                 Verdict::Faster);
        QCOMPARE(compareSeries(series({1, 2, 3}, {10, 10, 10}, 1), series({1, 2, 3}, {20, 20, 2}, 1)), Verdict::Same);
    }

    void gapsAndForeignUnitsAreNotCompared()
    {
        QCOMPARE(compareFigures(figure(1, 1, 1), figure(1, 1, 1, Unit::Byte)), Verdict::Unknown);
        QCOMPARE(compareSeries(series({1}, {NAN}), series({1}, {2})), Verdict::Unknown);
        const Outcome gap{{}, {series({1, 2}, {NAN, 0})}, {}};
        QCOMPARE(compare(gap, gap).series[0].points, std::size_t(1)); // 0 against 0 agrees, NaN is no point
        QVERIFY(compare({}, {}).figures.empty());
    }
};

QTEST_GUILESS_MAIN(TestComparison)
#include "tst_comparison.moc"
