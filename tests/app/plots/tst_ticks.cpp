// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/plots/ticks.h"

#include <QTest>

#include <cmath>

using namespace memscape;

namespace {

QString joined(const std::vector<Tick>& ticks)
{
    QStringList texts;
    for (const Tick& tick : ticks)
        texts << tick.text;
    return texts.join(QStringLiteral(" | "));
}

AxisSpec axis(Unit unit, int log, ByteStyle bytes = ByteStyle::Binary)
{
    AxisSpec spec;
    spec.unit = unit;
    spec.log = log;
    spec.bytes = bytes;
    return spec;
}

} // namespace

class TestTicks : public QObject
{
    Q_OBJECT

private slots:
    void texts_data()
    {
        QTest::addColumn<int>("unit");
        QTest::addColumn<int>("log");
        QTest::addColumn<bool>("decimal");
        QTest::addColumn<double>("low");
        QTest::addColumn<double>("high");
        QTest::addColumn<int>("wanted");
        QTest::addColumn<QString>("expected");
        const int one = int(Unit::One), byte = int(Unit::Byte), second = int(Unit::Second),
                  rate = int(Unit::BytePerSecond);
        QTest::newRow("working sets") << byte << 2 << false << 4096.0 << 0x1p31 << 8
                                      << "4 KiB | 32 KiB | 256 KiB | 2 MiB | 16 MiB | 128 MiB | 1 GiB";
        QTest::newRow("every power") << byte << 2 << false << 1024.0 << 8192.0 << 8 << "1 KiB | 2 KiB | 4 KiB | 8 KiB";
        QTest::newRow("up to a terabyte")
            << byte << 0 << false << 0.0 << 0x1p40 << 8 << "0 | 128 | 256 | 384 | 512 | 640 | 768 | 896 | 1024 GiB";
        QTest::newRow("some terabytes") << byte << 0 << false << 0.0 << 2.6 * 0x1p40 << 6
                                        << "0.0 | 0.5 | 1.0 | 1.5 | 2.0 | 2.5 TiB";
        QTest::newRow("decimal bytes") << byte << 2 << true << 4096.0 << 2e9 << 8
                                       << "10 kB | 100 kB | 1 MB | 10 MB | 100 MB | 1 GB";
        QTest::newRow("tiny shares") << one << 0 << false << 0.0 << 4.2e-9 << 5
                                     << "0 | 1·10⁻⁹ | 2·10⁻⁹ | 3·10⁻⁹ | 4·10⁻⁹";
        QTest::newRow("tinier, with halves")
            << one << 0 << false << 0.0 << 1.6e-12 << 4 << "0 | 0.5·10⁻¹² | 1.0·10⁻¹² | 1.5·10⁻¹²";
        QTest::newRow("shares of a file")
            << one << 2 << false << 1.0 / 256 << 1.0 << 5 << "1/256 | 1/64 | 1/16 | 1/4 | 1";
        QTest::newRow("two ends where one multiple of the step is in sight")
            << byte << 2 << false << 2048.0 << 8192.0 << 2 << "2 KiB | 8 KiB";
        QTest::newRow("two ends of three decades") << rate << 10 << false << 9e8 << 1.3e11 << 2 << "1 GB/s | 100 GB/s";
        QTest::newRow("two ends of little more than one")
            << second << 10 << false << 25e-6 << 5e-4 << 2 << "30 µs | 300 µs";
        QTest::newRow("strides") << one << 2 << false << 1.0 << 128.0 << 8 << "1 | 2 | 4 | 8 | 16 | 32 | 64 | 128";
        QTest::newRow("large powers") << one << 2 << false << 65536.0 << 1048576.0 << 8
                                      << "65536 | 131072 | 262144 | 524288 | 1048576";
        QTest::newRow("tokens") << one << 2 << false << 1024.0 << 1048576.0 << 6
                                << "1024 | 4096 | 16384 | 65536 | 262144 | 1048576";
        QTest::newRow("one form on one axis") << one << 2 << false << 1024.0 << 0x1p26 << 5 << "2¹² | 2¹⁶ | 2²⁰ | 2²⁴";
        QTest::newRow("latencies") << second << 10 << false << 1e-9 << 3e-7 << 6
                                   << "1 ns | 3 ns | 10 ns | 30 ns | 100 ns | 300 ns";
        QTest::newRow("many decades") << second << 10 << false << 1e-9 << 1.0 << 5
                                      << "10 ns | 1 µs | 100 µs | 10 ms | 1 s";
        QTest::newRow("rates share a prefix")
            << rate << 0 << false << 0.0 << 5.2e12 << 6 << "0 | 1 | 2 | 3 | 4 | 5 TB/s";
        QTest::newRow("fractions") << one << 0 << false << 0.0 << 1.0 << 5 << "0.0 | 0.2 | 0.4 | 0.6 | 0.8 | 1.0";
        QTest::newRow("negative") << one << 0 << false << -2.0 << 2.0 << 4 << "−2 | −1 | 0 | 1 | 2";
        QTest::newRow("deep zoom") << rate << 0 << false << 4.100e12 << 4.104e12 << 4
                                   << "4.100 | 4.101 | 4.102 | 4.103 | 4.104 TB/s";
        QTest::newRow("linear bytes") << byte << 0 << false << 0.0 << 4.0 * 0x1p20 << 4 << "0 | 1 | 2 | 3 | 4 MiB";
        QTest::newRow("less than an octave") << one << 2 << false << 33.0 << 47.0 << 4 << "35 | 40 | 45";
    }

    void texts()
    {
        QFETCH(int, unit);
        QFETCH(int, log);
        QFETCH(bool, decimal);
        QFETCH(double, low);
        QFETCH(double, high);
        QFETCH(int, wanted);
        QFETCH(QString, expected);
        const AxisSpec spec = axis(static_cast<Unit>(unit), log, decimal ? ByteStyle::Decimal : ByteStyle::Binary);
        QCOMPARE(joined(majorTicks(spec, low, high, wanted)), expected);
    }

    void neverWrongNorTooMany_data()
    {
        QTest::addColumn<int>("log");
        QTest::newRow("linear") << 0;
        QTest::newRow("base 2") << 2;
        QTest::newRow("base 10") << 10;
    }

    // Whatever the limits: ascending, inside, finite, not many more than asked for.
    void neverWrongNorTooMany()
    {
        QFETCH(int, log);
        for (const Unit unit : {Unit::One, Unit::Byte, Unit::Second, Unit::BytePerSecond, Unit::Hertz}) {
            const AxisSpec spec = axis(unit, log);
            for (double low = 1e-12; low < 1e15; low *= 37.3) {
                for (const double factor : {1.0001, 1.3, 2.0, 10.0, 1e3, 1e9, 1e20}) {
                    for (const int wanted : {2, 5, 12}) {
                        const auto ticks = majorTicks(spec, low, low * factor, wanted);
                        QVERIFY2(ticks.size() <= static_cast<std::size_t>(2 * wanted + 3), qPrintable(joined(ticks)));
                        for (std::size_t i = 0; i < ticks.size(); ++i) {
                            const double slack = 1e-6 * low * factor;
                            QVERIFY(ticks[i].value >= low - slack);
                            QVERIFY(ticks[i].value <= low * factor + slack);
                            QVERIFY(i == 0 || ticks[i].value > ticks[i - 1].value);
                            QVERIFY(!ticks[i].text.isEmpty());
                        }
                    }
                }
            }
        }
    }

    void noRangeNoTicks()
    {
        const double nan = std::nan("");
        QVERIFY(majorTicks(axis(Unit::One, 0), nan, 1, 5).empty());
        QVERIFY(majorTicks(axis(Unit::One, 0), 1, 1, 5).empty());
        QVERIFY(majorTicks(axis(Unit::One, 10), 1, INFINITY, 5).empty());
        QVERIFY(minorTicks(axis(Unit::One, 10), 0, 100, 5).empty());
    }

    // Ticks that need too many digits are written as a difference from the first: +128 KiB.
    void aSmallPartOfManyBytes()
    {
        const double gib = 0x1p30, kib = 0x1p10;
        QCOMPARE(joined(byteTicks(ByteStyle::Binary, 0, 4 * gib, 4)), QStringLiteral("0 | 1 | 2 | 3 | 4 GiB"));
        QCOMPARE(joined(byteTicks(ByteStyle::Binary, 10.25 * gib, 10.25 * gib + 300 * kib, 4)),
                 QStringLiteral("10.2 GiB | +128 | +256 KiB"));
        QCOMPARE(joined(byteTicks(ByteStyle::Binary, 3.3 * gib, 3.317 * gib, 4)),
                 QStringLiteral("3.3 GiB | +8 | +16 MiB"));
        QCOMPARE(byteTicks(ByteStyle::Binary, 10.25 * gib, 10.25 * gib + 300 * kib, 4).back().value,
                 10.25 * gib + 256 * kib);
    }

    void categories()
    {
        AxisSpec spec;
        spec.names = {QStringLiteral("read"), QStringLiteral("write"), QStringLiteral("copy")};
        QCOMPARE(joined(majorTicks(spec, -0.5, 2.5, 8)), QStringLiteral("read | write | copy"));
        spec.names = {QStringLiteral("hdd"), QStringLiteral("network-100g"), QStringLiteral("sata")};
        QCOMPARE(joined(majorTicks(spec, -0.5, 2.5, 2)), QStringLiteral("hdd | sata")); // 48 px each
        spec.names = {QStringLiteral("read"), QStringLiteral("write"), QStringLiteral("copy")};
        QCOMPARE(axisValueText(spec, 1.0), QStringLiteral("write"));
        QCOMPARE(axisValueText(spec, 7.0), QString());
        spec.names = QStringList(7, QStringLiteral("this machine's disk")); // many: in two lines
        QCOMPARE(majorTicks(spec, -0.5, 6.5, 12).front().text, QStringLiteral("this machine's\ndisk"));
        spec.names = QStringList(7, QStringLiteral("network-100g"));
        QCOMPARE(majorTicks(spec, -0.5, 6.5, 12).front().text, QStringLiteral("network-\n100g"));
    }

    void valuesForPeople()
    {
        QCOMPARE(axisValueText(axis(Unit::Byte, 2), 25165824), QStringLiteral("24 MiB"));
        QCOMPARE(axisValueText(axis(Unit::Byte, 2, ByteStyle::Decimal), 24e6), QStringLiteral("24 MB"));
        QCOMPARE(axisValueText(axis(Unit::Second, 10), 1.26e-8), QStringLiteral("12.6 ns"));
        QCOMPARE(axisValueText(axis(Unit::One, 2), 48), QStringLiteral("48"));
    }
};

QTEST_APPLESS_MAIN(TestTicks)
#include "tst_ticks.moc"
