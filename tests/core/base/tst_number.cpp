// SPDX-License-Identifier: Apache-2.0
#include "core/base/number.h"

#include <QtTest>

#include <clocale>
#include <cmath>
#include <limits>
#include <random>

using namespace memscape;

class TestNumber : public QObject
{
    Q_OBJECT

private slots:
    void readsQuantities_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<int>("unit");
        QTest::addColumn<double>("value");
        const auto row = [](const char* text, Unit unit, double value) {
            QTest::newRow(text) << QString(text) << int(unit) << value;
        };
        row("24MiB", Unit::Byte, 24.0 * 1024 * 1024);
        row("24 MB", Unit::Byte, 24e6);
        row(" 1.5 GiB ", Unit::Byte, 1.5 * 1024 * 1024 * 1024);
        row("4096", Unit::Byte, 4096);
        row("+7", Unit::One, 7);
        row("12 %", Unit::One, 0.12);
        row("1 000", Unit::One, 1000); // as numbers are shown, in groups of three
        row("8\u202f030\u202f261\u202f248", Unit::One, 8030261248.0);
        row("6 553 600 B", Unit::Byte, 6553600);
        row("1e3", Unit::One, 1000);
        row("-3", Unit::One, -3);
        row("1.5 us", Unit::Second, 1.5e-6);
        row("1.5 µs", Unit::Second, 1.5e-6);
        row("90ns", Unit::Second, 9e-8);
        row("3 GB/s", Unit::BytePerSecond, 3e9);
        row("2.6GHz", Unit::Hertz, 2.6e9);
        row("989 TFLOP/s", Unit::FlopPerSecond, 9.89e14);
    }
    void readsQuantities()
    {
        QFETCH(QString, text);
        QFETCH(int, unit);
        QFETCH(double, value);
        const auto read = parseQuantity(text.toStdString(), Unit(unit));
        QVERIFY2(read.has_value(), read ? "" : read.error().text().c_str());
        QVERIFY(std::fabs(*read - value) <= 1e-12 * std::fabs(value));
    }

    void refusesWhatIsNoQuantity_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("code");
        QTest::newRow("empty") << ""
                               << "number.syntax";
        QTest::newRow("word") << "many"
                              << "number.syntax";
        QTest::newRow("nan") << "nan"
                             << "number.range";
        QTest::newRow("infinity") << "inf"
                                  << "number.range";
        QTest::newRow("beyond double") << "1e400"
                                       << "number.range";
        QTest::newRow("beyond double with unit") << "1e305 PiB"
                                                 << "number.range";
        QTest::newRow("two numbers") << "1 2"
                                     << "number.unit";
        QTest::newRow("four digits behind a space") << "1 0000"
                                                    << "number.unit";
        QTest::newRow("bare K") << "4K"
                                << "number.unit";
        QTest::newRow("seconds for bytes") << "4 ms"
                                           << "number.unit";
        QTest::newRow("comma decimal") << "1,5"
                                       << "number.unit";
        QTest::newRow("hex") << "0x10"
                             << "number.unit";
    }
    void refusesWhatIsNoQuantity()
    {
        QFETCH(QString, text);
        QFETCH(QString, code);
        const auto read = parseQuantity(text.toStdString(), Unit::Byte);
        QVERIFY(!read.has_value());
        QCOMPARE(QString::fromStdString(read.error().code), code);
    }

    void writesForPeople_data()
    {
        QTest::addColumn<double>("value");
        QTest::addColumn<int>("unit");
        QTest::addColumn<QString>("text");
        const auto row = [](double value, Unit unit, const char* text) {
            QTest::newRow(text) << value << int(unit) << QString::fromUtf8(text);
        };
        row(24.0 * 1024 * 1024, Unit::Byte, "24 MiB");
        row(1.26e-8, Unit::Second, "12.6 ns");
        row(4.11e12, Unit::BytePerSecond, "4.11 TB/s");
        row(0.25, Unit::One, "0.25");
        row(0, Unit::Byte, "0 B");
        row(1023, Unit::Byte, "1023 B");
        row(-5e-9, Unit::Second, "−5 ns");
        row(999.9e-9, Unit::Second, "1 µs");
        row(1203659.4, Unit::One, "1\u202f203\u202f659");
        row(-123456, Unit::One, "−123\u202f456");
        row(12345, Unit::One, "12345");
        row(std::numeric_limits<double>::quiet_NaN(), Unit::Byte, "–");
    }
    void writesForPeople()
    {
        QFETCH(double, value);
        QFETCH(int, unit);
        QFETCH(QString, text);
        QCOMPARE(QString::fromStdString(quantityText(value, Unit(unit))), text);
    }

    void longCountsAreInGroups()
    {
        QCOMPARE(QString::fromStdString(countText(6738415616)), QString::fromUtf8("6\u202f738\u202f415\u202f616"));
        QCOMPARE(QString::fromStdString(countText(100000)), QString::fromUtf8("100\u202f000"));
        QCOMPARE(QString::fromStdString(countText(99999)), QString("99999"));
        QCOMPARE(QString::fromStdString(countText(7)), QString("7"));
        QCOMPARE(QString::fromStdString(countText(1e30)), QString("1e+30"));
    }

    void everyDoubleReadsBackTheSame()
    {
        std::mt19937_64 random(7);
        for (int i = 0; i < 20000; ++i) {
            const std::uint64_t bits = random();
            double value = 0;
            std::memcpy(&value, &bits, sizeof value);
            if (!std::isfinite(value))
                continue;
            const auto read = parseNumber(numberText(value));
            QVERIFY(read.has_value());
            QCOMPARE(*read, value);
        }
        QCOMPARE(QString::fromStdString(numberText(268435456)), QString("268435456"));
    }

    void theLocaleDoesNotMatter()
    {
        // The locale need not exist for the rest to hold; where it does, it would make stod read 1.
        std::setlocale(LC_ALL, "de_DE.UTF-8");
        QCOMPARE(*parseNumber("1.5"), 1.5);
        QCOMPARE(QString::fromStdString(numberText(1.5)), QString("1.5"));
        QCOMPARE(QString::fromStdString(quantityText(1.5e9, Unit::BytePerSecond)), QString("1.5 GB/s"));
        std::setlocale(LC_ALL, "C");
    }

    void unitsHaveOneTextEach()
    {
        for (const Unit unit :
             {Unit::One, Unit::Byte, Unit::Second, Unit::BytePerSecond, Unit::FlopPerSecond, Unit::Hertz})
            QVERIFY(unitFromText(unitText(unit)) == unit);
        QVERIFY(!unitFromText("GB"));
    }
};

QTEST_GUILESS_MAIN(TestNumber)
#include "tst_number.moc"
