// SPDX-License-Identifier: Apache-2.0
// Shares that a format loses against counting: numbers drawn from the distribution, scaled, rounded
// to the format, and looked at.
#include "core/precision/magnitudes.h"

#include <QtTest>

#include <cmath>
#include <random>

using namespace memscape;

class TestMagnitudes : public QObject
{
    Q_OBJECT

private slots:
    void sharesAreThoseOfDrawnNumbers_data()
    {
        QTest::addColumn<QString>("format");
        QTest::addColumn<int>("shape");
        QTest::addColumn<double>("median");
        QTest::addColumn<double>("scale");
        for (const char* format : {"fp16", "bf16", "fp8-e4m3", "fp8-e5m2"}) {
            for (const int shape : {0, 1}) {
                QTest::addRow("%s %d small", format, shape) << format << shape << 0x1p-24 << 1.0;
                QTest::addRow("%s %d scaled", format, shape) << format << shape << 0x1p-20 << 65536.0;
                QTest::addRow("%s %d large", format, shape) << format << shape << 0x1p-4 << 65536.0 * 8;
            }
        }
    }
    void sharesAreThoseOfDrawnNumbers()
    {
        QFETCH(QString, format);
        QFETCH(int, shape);
        QFETCH(double, median);
        QFETCH(double, scale);
        const NumberFormat& numbers = numberFormat(formatFromText(format.toStdString()).value());
        const Magnitudes magnitudes{MagnitudeShape(shape), median, 5};
        std::mt19937_64 random(7);
        std::normal_distribution<double> normal;
        constexpr int count = 200'000;
        int zero = 0, few = 0, over = 0;
        for (int i = 0; i < count; ++i) {
            const double z = normal(random);
            const double gradient = shape == 0 ? z * median / 0.6744897501960817 : median * std::exp2(5 * z);
            const double stored = std::fabs(rounded(numbers, gradient * scale));
            zero += stored == 0;
            over += !std::isfinite(stored);
            // Rounding up to the least normal number is seldom: half a step of it.
            few += stored > 0 && std::fabs(gradient * scale) < numbers.smallestNormal();
        }
        const LostShares lost = lostShares(numbers, magnitudes, scale);
        const double noise = 4 * std::sqrt(0.25 / count);
        QVERIFY(std::fabs(lost.underflow - double(zero) / count) < noise);
        QVERIFY(std::fabs(lost.subnormal - double(few) / count) < noise);
        QVERIFY(std::fabs(lost.overflow - double(over) / count) < noise);
        QVERIFY(std::fabs(lost.kept() + lost.underflow + lost.subnormal + lost.overflow - 1) < 1e-12);
    }

    void theMedianIsInTheMiddle()
    {
        for (const MagnitudeShape shape : {MagnitudeShape::Normal, MagnitudeShape::LogNormal}) {
            const Magnitudes magnitudes{shape, 3e-5, 2};
            QVERIFY(std::fabs(magnitudes.below(3e-5) - 0.5) < 1e-12);
            QVERIFY(std::fabs(magnitudes.above(3e-5) - 0.5) < 1e-12);
            QCOMPARE(magnitudes.below(0), 0.0);
            QCOMPARE(magnitudes.above(0), 1.0);
        }
        // One standard deviation either way of a log-normal: 68.27 %.
        const Magnitudes spread{MagnitudeShape::LogNormal, 1, 3};
        QVERIFY(std::fabs(spread.below(8) - spread.below(0.125) - 0.682689492137086) < 1e-12);
    }

    void barsSumToOne()
    {
        for (const MagnitudeShape shape : {MagnitudeShape::Normal, MagnitudeShape::LogNormal}) {
            const MagnitudeHistogram bars = histogramOf({shape, 0x1p-18, 4}, -40, 48);
            double sum = 0;
            for (const double share : bars.shares)
                sum += share;
            QCOMPARE(bars.shares.size(), std::size_t(48));
            QVERIFY(std::fabs(sum - 1) < 1e-12);
        }
    }

    void aHistogramLosesWhatItsDistributionLoses()
    {
        const Magnitudes magnitudes{MagnitudeShape::LogNormal, 0x1p-20, 4};
        const MagnitudeHistogram bars = histogramOf(magnitudes, -60, 80);
        for (const double scale : {1.0, 16.0, 1024.0, 65536.0, 16777216.0}) {
            const NumberFormat& half = numberFormat(Format::Fp16);
            const LostShares exact = lostShares(half, magnitudes, scale);
            const LostShares counted = lostShares(half, bars, scale);
            QVERIFY(std::fabs(exact.underflow - counted.underflow) < 1e-3);
            QVERIFY(std::fabs(exact.subnormal - counted.subnormal) < 1e-3);
            QVERIFY(std::fabs(exact.overflow - counted.overflow) < 1e-3);
        }
    }

    void smallSharesDoNotCancel()
    {
        const Magnitudes magnitudes{MagnitudeShape::LogNormal, 1, 1};
        QVERIFY(magnitudes.above(0x1p20) > 0); // 20 standard deviations: 2.8e-89
        QVERIFY(magnitudes.above(0x1p20) < 1e-80);
        QVERIFY(magnitudes.below(0x1p-20) > 0);
    }

    void zerosAreInNoBar()
    {
        const MagnitudeHistogram half{-30, {0.25, 0.25}, 0.5};
        const LostShares lost = lostShares(numberFormat(Format::Fp16), half, 1);
        QCOMPARE(lost.underflow, 0.5); // both bars are below 2^-25, the zeros were zero before
    }
};

QTEST_APPLESS_MAIN(TestMagnitudes)
#include "tst_magnitudes.moc"
