// SPDX-License-Identifier: Apache-2.0
// The band around a peak: sums of its parts by hand, each of them said.
#include "core/experiments/memory/memory_band.h"

#include <QtTest>

using namespace memscape;

class TestMemoryBand : public QObject
{
    Q_OBJECT

private slots:
    void partsAddUp()
    {
        MemoryBand band;
        band.addActivations(100);
        band.addTemporary(10);
        band.addAllocator(200);
        Figure figure = figureOf("peak", "peak", Unit::Byte, 1000.0, Why{});
        band.giveTo(figure);
        QCOMPARE(*figure.low, 1000.0 - 10 - 4);
        QCOMPARE(*figure.high, 1000.0 + 15 + 4 + 40);
        QCOMPARE(figure.why->terms.size(), std::size_t(3));
    }

    void quantizedWeightsAreLessCertain()
    {
        const auto width = [](bool areQuantized) {
            MemoryBand band;
            band.addWeights(1000, areQuantized);
            Figure figure = figureOf("peak", "peak", Unit::Byte, 1000.0, Why{});
            band.giveTo(figure);
            return *figure.high - *figure.low;
        };
        QVERIFY(width(true) > 5 * width(false));
    }

    void whatIsCountedToTheByteHasNone()
    {
        Figure figure = figureOf("peak", "peak", Unit::Byte, 1000.0, Why{});
        MemoryBand().giveTo(figure);
        QVERIFY(!figure.low && !figure.high);
    }
};

QTEST_APPLESS_MAIN(TestMemoryBand)
#include "tst_memory_band.moc"
