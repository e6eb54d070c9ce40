// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/statistics.h"

#include <cmath>
#include <limits>
#include <vector>

#include <QTest>

using namespace memscape;

class TestStatistics : public QObject
{
    Q_OBJECT
private slots:
    void quantilesOfKnownNumbers()
    {
        // Quartiles of 1…9 by linear interpolation: positions 2, 4, 6 of nine.
        const Summary summary = summarize(std::vector<double>{9, 1, 8, 2, 7, 3, 6, 4, 5});
        QCOMPARE(summary.count, std::size_t{9});
        QCOMPARE(summary.median, 5.0);
        QCOMPARE(summary.mean, 5.0);
        QCOMPARE(summary.minimum, 1.0);
        QCOMPARE(summary.maximum, 9.0);
        QCOMPARE(summary.q1, 3.0);
        QCOMPARE(summary.q3, 7.0);
        QCOMPARE(summary.p5, 1.4);
        QCOMPARE(summary.p95, 8.6);
        QCOMPARE(summary.relativeIqr, 0.8);
    }

    void evenCountTakesTheMiddleOfTwo() { QCOMPARE(summarize(std::vector<double>{4, 1, 3, 2}).median, 2.5); }

    void oneOutlierDoesNotMoveTheMedian()
    {
        std::vector<double> samples(20, 1.0);
        samples[7] = 1000;
        const Summary summary = summarize(samples);
        QCOMPARE(summary.median, 1.0);
        QCOMPARE(summary.relativeIqr, 0.0);
        QCOMPARE(summary.maximum, 1000.0);
    }

    void noSamplesGiveNoNan()
    {
        const Summary summary = summarize({});
        QVERIFY(summary.empty());
        QCOMPARE(summary.median, 0.0);
        QVERIFY(std::isfinite(summary.relativeIqr));
    }

    void oneSampleIsItsOwnEverything()
    {
        const Summary summary = summarize(std::vector<double>{3.0});
        QCOMPARE(summary.median, 3.0);
        QCOMPARE(summary.q3, 3.0);
        QCOMPARE(summary.relativeIqr, 0.0);
    }

    void notNumbersAreCountedAndLeftOut()
    {
        const double nan = std::numeric_limits<double>::quiet_NaN();
        const double infinity = std::numeric_limits<double>::infinity();
        const Summary summary = summarize(std::vector<double>{nan, 2.0, infinity, 4.0});
        QCOMPARE(summary.count, std::size_t{2});
        QCOMPARE(summary.rejected, std::size_t{2});
        QCOMPARE(summary.median, 3.0);
        QVERIFY(summarize(std::vector<double>{nan}).empty());
    }
};

QTEST_APPLESS_MAIN(TestStatistics)
#include "tst_statistics.moc"
