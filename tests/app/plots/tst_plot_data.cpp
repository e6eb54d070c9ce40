// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/plots/plot_data.h"

#include <QTest>

#include <cmath>
#include <limits>

using namespace memscape;

namespace {

constexpr double absent = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

Curve curve(std::vector<double> x, std::vector<double> y)
{
    Curve c;
    c.key = c.name = QStringLiteral("curve");
    c.x = std::move(x);
    c.y = std::move(y);
    return c;
}

} // namespace

class TestPlotData : public QObject
{
    Q_OBJECT

private slots:
    void cleaningLeavesGaps()
    {
        const CleanCurve c = clean(curve({1, 2, 3, 4, 5}, {1, absent, inf, 0, 5}), false, true);
        QCOMPARE(c.x, (std::vector<double>{1, 2, 3, 4, 5}));
        QCOMPARE(c.y[0], 1.0);
        QVERIFY(std::isnan(c.y[1]) && std::isnan(c.y[2]) && std::isnan(c.y[3]));
        QCOMPARE(c.hidden, 3);
        QCOMPARE(c.notFinite, 2);
        QCOMPARE(noteFor({c}),
                 QStringLiteral("3 point(s) not shown: 2 without a value, 1 zero or negative on a "
                                "logarithmic axis"));
        QCOMPARE(noteFor({c, clean(curve({1}, {1}), true, true), c}), noteFor({c})); // two lack the same points
        QCOMPARE(noteFor({clean(curve({1}, {1}), true, true)}), QString());
    }

    void cleaningSortsAndDropsWhatHasNoPlace()
    {
        const CleanCurve c = clean(curve({3, absent, 1, 0, 2}, {30, 9, 10, 5, 20}), true, false);
        QCOMPARE(c.x, (std::vector<double>{1, 2, 3}));
        QCOMPARE(c.y, (std::vector<double>{10, 20, 30}));
        QCOMPARE(c.hidden, 2);
    }

    void columnsOfDifferentLength()
    {
        QCOMPARE(clean(curve({1, 2, 3}, {1}), false, false).x.size(), std::size_t{1});
        QVERIFY(clean(curve({}, {1, 2}), true, true).x.empty());
    }

    void ranges_data()
    {
        QTest::addColumn<QList<double>>("y");
        QTest::addColumn<int>("log");
        QTest::newRow("ordinary") << QList<double>{1, 5, 9} << 0;
        QTest::newRow("ordinary, log") << QList<double>{1, 5, 9} << 10;
        QTest::newRow("zeros, log") << QList<double>{0, 0, 8, 2} << 10;
        QTest::newRow("only zeros, log") << QList<double>{0, 0} << 10;
        QTest::newRow("only zeros") << QList<double>{0, 0} << 0;
        QTest::newRow("infinity") << QList<double>{1, inf, 3} << 0;
        QTest::newRow("not a number") << QList<double>{absent, absent} << 0;
        QTest::newRow("empty") << QList<double>{} << 0;
        QTest::newRow("empty, log") << QList<double>{} << 2;
        QTest::newRow("one point") << QList<double>{42} << 0;
        QTest::newRow("one point, log") << QList<double>{42} << 2;
        QTest::newRow("negative") << QList<double>{-5, -1} << 0;
        QTest::newRow("all the same") << QList<double>{7, 7, 7} << 0;
        QTest::newRow("tiny and huge") << QList<double>{1e-300, 1e300} << 10;
        QTest::newRow("largest doubles") << QList<double>{-1.7e308, 1.7e308} << 0;
    }

    // Whatever the data: a range that is finite, ordered, positive when logarithmic, and holds
    // every point that can be shown.
    void ranges()
    {
        QFETCH(QList<double>, y);
        QFETCH(int, log);
        Curve c = curve({}, {y.begin(), y.end()});
        for (qsizetype i = 0; i < y.size(); ++i)
            c.x.push_back(static_cast<double>(i + 1));
        AxisSpec spec;
        spec.log = log;
        for (const bool fromZero : {false, true}) {
            spec.fromZero = fromZero;
            const AxisRange range = yRange(spec, {c}, false, {});
            QVERIFY(std::isfinite(range.low) && std::isfinite(range.high));
            QVERIFY(range.high > range.low);
            QVERIFY(log == 0 || range.low > 0);
            for (const double v : y) {
                if (std::isfinite(v) && std::fabs(v) < 1e279 && (log == 0 || v > 1e-279))
                    QVERIFY(v >= range.low && v <= range.high);
            }
            if (fromZero && log == 0 && !y.isEmpty() && *std::ranges::min_element(y) >= 0)
                QCOMPARE(range.low, 0.0);
        }
    }

    void rangeHoldsBandsAndLines()
    {
        Curve c = curve({1, 2}, {10, 20});
        c.low = {5, 18};
        c.high = {11, 40};
        const AxisRange range = yRange({}, {c}, false, {{100, QStringLiteral("datasheet")}});
        QVERIFY(range.low <= 5 && range.high >= 100);
        c.visible = false;
        QCOMPARE(yRange({}, {c}, false, {}).high, 1.0);
    }

    void aLimitFarAboveAllCurvesIsLeftOut()
    {
        const Curve c = curve({1, 2}, {10, 20});
        const auto highest = [&](double limit, int log) {
            AxisSpec spec;
            spec.log = log;
            return yRange(spec, {c}, false, {{limit, QStringLiteral("139 GiB for PyTorch"), true}}).high;
        };
        QVERIFY(highest(50, 0) >= 50);
        QVERIFY(highest(100, 0) < 30);
        QVERIFY(highest(1500, 1) >= 1500);
        QVERIFY(highest(5000, 1) < 100);
    }

    void sharesAndBack()
    {
        for (const bool log : {false, true}) {
            const AxisRange range{1, 1000, log};
            for (const double share : {0.0, 0.25, 1.0, 1.5})
                QVERIFY(std::fabs(range.toShare(range.fromShare(share)) - share) < 1e-12);
        }
        QCOMPARE((AxisRange{1, 100, true}.fromShare(0.5)), 10.0);
        QVERIFY(std::isnan(AxisRange{1, 100, true}.toShare(0)));
    }

    // However long one zooms, the limits stay limits.
    void zoomingIsBounded()
    {
        for (const bool log : {false, true}) {
            for (const double factor : {0.5, 2.0}) {
                AxisRange range{1, 1000, log};
                for (int i = 0; i < 5000; ++i) {
                    range = panned(zoomed(range, factor, 0.3), 0.1);
                    QVERIFY(std::isfinite(range.low) && std::isfinite(range.high));
                    QVERIFY(range.high > range.low);
                    QVERIFY(!log || range.low > 0);
                }
            }
        }
    }

    void nearest()
    {
        Curve a = curve({1, 2, 4, 8}, {10, absent, 40, 80});
        Curve b = curve({2, 8}, {21, 81});
        const std::vector<Curve> curves{a, b};
        const std::vector<CleanCurve> cleaned{clean(a, true, false), clean(b, true, false)};
        const AxisRange x{1, 8, true};
        // A point without a value is not a point: at 2 only the second curve answers.
        const Sample at2 = nearestSample(curves, cleaned, x, x.toShare(2.1));
        QVERIFY(at2.found);
        QCOMPARE(at2.x, 2.0);
        QCOMPARE(at2.index, (std::vector<int>{-1, 0}));
        const Sample at8 = nearestSample(curves, cleaned, x, 2.0);
        QCOMPARE(at8.x, 8.0);
        QCOMPARE(at8.index, (std::vector<int>{3, 1}));
        QVERIFY(!nearestSample({}, {}, x, 0.5).found);
    }

    void tables()
    {
        AxisSpec x;
        x.label = QStringLiteral("stride");
        AxisSpec y;
        y.unit = Unit::BytePerSecond;
        Curve predicted = curve({1, 2, 4}, {123456789.125, 0.1, absent});
        predicted.name = QStringLiteral("predicted, \"cold\"");
        Curve measured = curve({2}, {7});
        measured.name = QStringLiteral("measured");
        measured.low = {6};
        measured.high = {8};
        const AxisRange only{1, 2, false};
        // The doubles come back to the last digit; six digits would give 1.23457e+08.
        QCOMPARE(tableText(x, y, {predicted, measured}, QLatin1Char(','), &only),
                 QStringLiteral("stride,\"predicted, \"\"cold\"\" [B/s]\",measured [B/s],measured "
                                "low [B/s],measured high [B/s]\n"
                                "1,123456789.125,,,\n"
                                "2,0.1,7,6,8\n"));
        QCOMPARE(tableText(x, y, {predicted}, QLatin1Char('\t'), nullptr).count(QLatin1Char('\n')), 4);
        QCOMPARE(tableText(x, y, {}, QLatin1Char(','), nullptr), QStringLiteral("stride\n"));
    }

    void summary()
    {
        AxisSpec x;
        x.label = QStringLiteral("working set");
        AxisSpec y;
        y.label = QStringLiteral("latency");
        y.unit = Unit::Second;
        const QString text = summaryText(QStringLiteral("Latency"), x, y, {curve({1, 2}, {1e-9, 3e-9})});
        const auto said = [&](std::vector<double> values) {
            return summaryText({}, x, y, {curve({1, 2, 4}, std::move(values))});
        };
        QVERIFY(said({3e-9, 2e-9, 1e-9}).endsWith("falls from 3 ns at 1 to 1 ns at 4."));
        QVERIFY(said({2e-9, 1e-9, 3e-9}).endsWith("between 1 ns at 2 and 3 ns at 4."));
        QVERIFY(said({2e-9, 2e-9, 2e-9}).endsWith("at 2 ns."));
        QVERIFY(!said({NAN, NAN, NAN}).contains("points"));
        QCOMPARE(text,
                 QStringLiteral(
                     "Latency: latency against working set. curve: 2 points, rises from 1 ns at 1 to 3 ns at 2."));
    }
};

QTEST_APPLESS_MAIN(TestPlotData)
#include "tst_plot_data.moc"
