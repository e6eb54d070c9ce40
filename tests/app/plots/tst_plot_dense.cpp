// SPDX-License-Identifier: GPL-3.0-or-later
// What a column of pixels shows of very many points, against a walk over all of them.
#include "app/plots/plot_dense.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

using namespace memscape;

namespace {

constexpr double gap = std::numeric_limits<double>::quiet_NaN();

CleanCurve noise(std::size_t points, unsigned seed)
{
    std::mt19937 random(seed);
    CleanCurve curve;
    for (std::size_t i = 0; i < points; ++i) {
        curve.x.push_back(1 + double(i));
        curve.y.push_back(double(random() % 100000));
    }
    return curve;
}

Extremes byHand(const std::vector<double>& y, std::size_t begin, std::size_t end)
{
    Extremes found{gap, gap};
    for (std::size_t i = begin; i < end; ++i) {
        if (!std::isfinite(y[i]))
            continue;
        found.low = std::isfinite(found.low) ? std::min(found.low, y[i]) : y[i];
        found.high = std::isfinite(found.high) ? std::max(found.high, y[i]) : y[i];
    }
    return found;
}

bool same(double a, double b)
{
    return a == b || (std::isnan(a) && std::isnan(b));
}

} // namespace

class TestPlotDense : public QObject
{
    Q_OBJECT

private slots:
    void extremesAreThoseOfAWalk_data()
    {
        QTest::addColumn<int>("points");
        for (const int points : {1, 31, 32, 33, 1000, 1024, 1025, 40000})
            QTest::addRow("%d", points) << points;
    }
    void extremesAreThoseOfAWalk()
    {
        QFETCH(int, points);
        CleanCurve curve = noise(std::size_t(points), 7);
        for (std::size_t i = 0; i < curve.y.size(); i += 11)
            curve.y[i] = gap;
        const ExtremesTree tree(curve.y);
        std::mt19937 random(3);
        for (int i = 0; i < 500; ++i) {
            std::size_t begin = random() % (curve.y.size() + 1);
            std::size_t end = random() % (curve.y.size() + 1);
            if (begin > end)
                std::swap(begin, end);
            const Extremes expected = byHand(curve.y, begin, end);
            const Extremes found = tree.over(curve.y, begin, end);
            QVERIFY(same(found.low, expected.low));
            QVERIFY(same(found.high, expected.high));
        }
    }

    void everyColumnKeepsItsLowestAndHighest_data()
    {
        QTest::addColumn<bool>("log");
        QTest::newRow("linear") << false;
        QTest::newRow("logarithmic") << true;
    }
    void everyColumnKeepsItsLowestAndHighest()
    {
        QFETCH(bool, log);
        const CleanCurve curve = noise(200000, 5);
        const AxisRange range{1000.5, 150000.5, log};
        constexpr int columns = 700;
        const auto points = densePoints(curve, ExtremesTree(curve.y), range, columns);
        QVERIFY(points.size() <= columns * 4 + 2);
        std::vector<Extremes> expected(columns, {1e300, -1e300}), found = expected;
        const auto note = [&](std::vector<Extremes>& into, double x, double y) {
            const double share = range.toShare(x);
            if (share < 0 || share >= 1)
                return;
            Extremes& column = into[std::size_t(share * columns)];
            column = {std::min(column.low, y), std::max(column.high, y)};
        };
        for (std::size_t i = 0; i < curve.x.size(); ++i)
            note(expected, curve.x[i], curve.y[i]);
        for (const DensePoint& point : points)
            note(found, point.x, point.y);
        for (std::size_t i = 0; i < columns; ++i) {
            QCOMPARE(found[i].low, expected[i].low);
            QCOMPARE(found[i].high, expected[i].high);
        }
        for (std::size_t i = 0; i < points.size(); ++i)
            QVERIFY(!points[i].joined || points[i].x == points[i - 1].x);
        QVERIFY(std::ranges::is_sorted(points, [](const auto& a, const auto& b) { return a.x < b.x; }));
    }

    void linesReachTheEdges()
    {
        const CleanCurve curve = noise(100, 1);
        const auto points = densePoints(curve, ExtremesTree(curve.y), {10.5, 20.5, false}, 50);
        QCOMPARE(points.front().x, 10.0);
        QCOMPARE(points.back().x, 21.0);
        QCOMPARE(points.size(), std::size_t(12));
    }

    void aGapStaysAGap()
    {
        CleanCurve curve = noise(100000, 2);
        for (std::size_t i = 40000; i < 60000; ++i)
            curve.y[i] = gap;
        const auto points = densePoints(curve, ExtremesTree(curve.y), {1, 100000, false}, 500);
        for (const DensePoint& point : points)
            QCOMPARE(std::isnan(point.y), point.x > 40000.5 && point.x < 60000.5);
    }

    void nothingInsideGivesTheNeighbours()
    {
        const CleanCurve curve = noise(100, 1);
        const auto points = densePoints(curve, ExtremesTree(curve.y), {50.2, 50.8, false}, 300);
        QCOMPARE(points.size(), std::size_t(2));
        QVERIFY(densePoints({}, ExtremesTree({}), {0, 1, false}, 300).empty());
    }
};

QTEST_GUILESS_MAIN(TestPlotDense)
#include "tst_plot_dense.moc"
