// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/fields/slider_stops.h"

#include <QTest>

#include <algorithm>
#include <cmath>

using namespace memscape;

namespace {

ParameterSpec spec(ParameterKind kind, double minimum, double maximum, Scale scale)
{
    return {"key", "label", "help", kind, Unit::One, minimum, maximum, scale, {}, "1"};
}

} // namespace

class TestSliderStops : public QObject
{
    Q_OBJECT

private slots:
    void wholeNumbersOneByOne()
    {
        QCOMPARE(sliderStops(spec(ParameterKind::Integer, 0, 4, Scale::Linear)), (std::vector<double>{0, 1, 2, 3, 4}));
    }

    void octavesInQuarters()
    {
        QCOMPARE(sliderStops(spec(ParameterKind::Integer, 0, 8, Scale::Log2)),
                 (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
        const auto stops = sliderStops(spec(ParameterKind::Integer, 1024, 4096, Scale::Log2));
        QCOMPARE(stops, (std::vector<double>{1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096}));
    }

    void allStandsBeyondTheMost()
    {
        ParameterSpec threads = spec(ParameterKind::Integer, 0, 8, Scale::Log2);
        threads.choices = {{"0", "all", "every thread that the device has"}};
        const auto stops = sliderStops(threads);
        QCOMPARE(stops, (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 0}));
        for (int i = 0; i < int(stops.size()); ++i)
            QCOMPARE(nearestStop(stops, stops[std::size_t(i)]), i);
        QCOMPARE(nearestStop(stops, 100), 7);
        threads.choices = {{"0", "none", ""}};
        QCOMPARE(sliderStops(threads).front(), 0.0);
    }

    void everyStopIsInsideAndAscending_data()
    {
        QTest::addColumn<double>("minimum");
        QTest::addColumn<double>("maximum");
        QTest::addColumn<bool>("whole");
        QTest::addColumn<bool>("log");
        QTest::newRow("bytes") << 1024.0 << 0x1p44 << true << true;
        QTest::newRow("strides") << 0.0 << 1048576.0 << true << true;
        QTest::newRow("odd ends") << 3.0 << 1000003.0 << true << true;
        QTest::newRow("real from zero") << 0.0 << 1.0 << false << true;
        QTest::newRow("one value") << 5.0 << 5.0 << true << false;
        QTest::newRow("wide linear") << 0.0 << 1e6 << true << false;
        QTest::newRow("negative") << -2.5 << 2.5 << false << false;
    }
    void everyStopIsInsideAndAscending()
    {
        QFETCH(double, minimum);
        QFETCH(double, maximum);
        QFETCH(bool, whole);
        QFETCH(bool, log);
        const auto stops = sliderStops(spec(whole ? ParameterKind::Integer : ParameterKind::Real, minimum, maximum,
                                            log ? Scale::Log2 : Scale::Linear));
        QVERIFY(!stops.empty());
        QCOMPARE(stops.front(), minimum);
        QCOMPARE(stops.back(), maximum);
        QVERIFY(std::ranges::is_sorted(stops));
        QVERIFY(std::ranges::adjacent_find(stops) == stops.end());
        QVERIFY(stops.size() <= 1200);
        for (const double stop : stops)
            QVERIFY(!whole || stop == std::round(stop));
    }

    void nearestIsByRatio()
    {
        const std::vector<double> stops{1, 2, 4, 8};
        QCOMPARE(nearestStop(stops, 0), 0);
        QCOMPARE(nearestStop(stops, 2.9), 2); // 4/2.9 is less than 2.9/2
        QCOMPARE(nearestStop(stops, 2.7), 1);
        QCOMPARE(nearestStop(stops, 100), 3);
        for (int i = 0; i < 4; ++i)
            QCOMPARE(nearestStop(stops, stops[std::size_t(i)]), i);
    }
};

QTEST_GUILESS_MAIN(TestSliderStops)
#include "tst_slider_stops.moc"
