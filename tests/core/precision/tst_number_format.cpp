// SPDX-License-Identifier: Apache-2.0
// The formats against reference implementations: FP16 against the compiler's, FP32 against its
// float, FP8, BF16 and INT8 against PyTorch, ml_dtypes, numpy and CUDA's cuda_fp8.h over four million
// floats (data/precision/make_conversions.py), ranges against the OCP and IEEE tables.
#include "core/precision/number_format.h"
#include "tests/support/compilers_half.h"

#include <QtTest>

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

#include <bit>
#include <cmath>
#include <limits>

using namespace memscape;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double notANumber = std::numeric_limits<double>::quiet_NaN();

std::uint64_t mix(std::uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/// Float number i of make_conversions.py.
float floatNumber(std::uint64_t i)
{
    const std::uint64_t h = mix((i + 1) * 0x9e3779b97f4a7c15u);
    const std::uint64_t cleared = (h >> 48) % 24;
    auto bits =
        std::uint32_t((h >> 63) << 31 | (127 - 40 + (h >> 32) % 70) << 23 | (h & 0x7fffff) >> cleared << cleared);
    if (h % 16 == 0)
        bits = std::uint32_t(h >> 20);
    return std::bit_cast<float>(bits);
}

QJsonObject conversions()
{
    QFile file(QString(TEST_DATA) + "/precision/conversions.json");
    if (!file.open(QIODevice::ReadOnly))
        qFatal("no %s", qPrintable(file.fileName()));
    return QJsonDocument::fromJson(file.readAll()).object();
}

const NumberFormat& formatOf(const char* key)
{
    return numberFormat(formatFromText(key).value());
}

bool same(double a, double b)
{
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

} // namespace

class TestNumberFormat : public QObject
{
    Q_OBJECT

private slots:
    void everyNumberOf16BitsIsTheCompilers()
    {
        const NumberFormat& half = formatOf("fp16");
        const NumberFormat& brain = formatOf("bf16");
        for (std::uint32_t bits = 0; bits < 65536; ++bits) {
            QVERIFY2(same(decode(half, bits), double(test::compilersFloat(std::uint16_t(bits)))),
                     qPrintable(QString::number(bits)));
            // BF16 is the upper half of a float's word.
            const double upper = std::bit_cast<float>(bits << 16);
            QVERIFY2(same(decode(brain, bits), upper), qPrintable(QString::number(bits)));
        }
    }

    void everyNumberOf16BitsComesBack_data()
    {
        QTest::addColumn<QString>("key");
        QTest::newRow("fp16") << "fp16";
        QTest::newRow("bf16") << "bf16";
    }
    void everyNumberOf16BitsComesBack()
    {
        QFETCH(QString, key);
        const NumberFormat& format = formatOf(qPrintable(key));
        for (std::uint64_t bits = 0; bits < 65536; ++bits) {
            const double value = decode(format, bits);
            if (std::isnan(value))
                QVERIFY(std::isnan(rounded(format, value)));
            else
                QCOMPARE(encode(format, value), bits);
        }
    }

    void everyNumberOfFp8_data()
    {
        QTest::addColumn<QString>("key");
        QTest::newRow("e4m3") << "fp8-e4m3";
        QTest::newRow("e5m2") << "fp8-e5m2";
    }
    void everyNumberOfFp8()
    {
        QFETCH(QString, key);
        const NumberFormat& format = formatOf(qPrintable(key));
        const QJsonArray values = conversions()[key].toObject()["values"].toArray();
        QCOMPARE(values.size(), 256);
        for (int bits = 0; bits < 256; ++bits) {
            const QJsonValue expected = values[bits];
            const double value = decode(format, std::uint64_t(bits));
            if (expected.isString()) {
                QCOMPARE(std::isnan(value), expected.toString().contains("nan"));
                QCOMPARE(std::isinf(value), expected.toString().contains("inf"));
                QVERIFY(std::isnan(value) || std::signbit(value) == expected.toString().startsWith('-'));
            } else {
                QCOMPARE(value, expected.toDouble());
                QCOMPARE(encode(format, value), std::uint64_t(bits));
            }
        }
    }

    void fourMillionFloatsAsOtherProgramsRoundThem_data()
    {
        QTest::addColumn<QString>("key");
        QTest::addColumn<QString>("program");
        const QJsonObject all = conversions();
        for (const char* key : {"tf32", "fp16", "bf16", "fp8-e4m3", "fp8-e5m2", "int8"}) {
            const QJsonObject programs = all[key].toObject();
            for (const QString& program : programs.keys()) {
                if (program != "values")
                    QTest::addRow("%s %s", key, qPrintable(program)) << QString(key) << program;
            }
        }
    }
    void fourMillionFloatsAsOtherProgramsRoundThem()
    {
        QFETCH(QString, key);
        QFETCH(QString, program);
        const QJsonObject all = conversions();
        const NumberFormat& format = formatOf(qPrintable(key));
        Conversion how;
        // PyTorch 2.15 saturates where there is no infinity.
        if (program.endsWith("saturating") || (program == "torch" && !format.hasInfinity))
            how.overflow = Overflow::Saturate;
        std::uint64_t sum = 0;
        const auto count = std::uint64_t(all["count"].toDouble());
        QCOMPARE(count, std::uint64_t(1) << 22);
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t bits = encode(format, double(floatNumber(i)), how);
            const bool isNan = !format.isInteger() && std::isnan(decode(format, bits));
            sum += mix(i << 20 | (isNan ? 0xfffffu : bits));
        }
        QCOMPARE(QString::number(sum, 16).rightJustified(16, '0'), all[key].toObject()[program].toString());
    }

    void floatsAreTheCompilers()
    {
        const NumberFormat& single = formatOf("fp32");
        const NumberFormat& half = formatOf("fp16");
        for (std::uint64_t i = 0; i < 1'000'000; ++i) {
            // Doubles around the whole range of floats, subnormal ones and ties among them.
            const std::uint64_t h = mix(i);
            const double mantissa = double((h & 0xfffffffffffff) >> (h >> 57) % 45 << (h >> 57) % 45);
            const double value = std::ldexp(mantissa, int((h >> 52) % 300) - 200);
            QVERIFY(same(rounded(single, value), double(float(value))));
            QCOMPARE(encode(single, value), std::uint64_t(std::bit_cast<std::uint32_t>(float(value))));
            const float number = floatNumber(i);
            const float compiled = test::compilersFloat(test::compilersHalf(number));
            QVERIFY(same(rounded(half, double(number)), double(compiled)));
        }
    }

    void doublesAreThemselves()
    {
        const NumberFormat& format = formatOf("fp64");
        for (std::uint64_t i = 0; i < 200'000; ++i) {
            const auto value = std::bit_cast<double>(mix(i) >> (i % 4 == 0 ? 12 : 0)); // subnormal too
            if (std::isnan(value))
                continue;
            QCOMPARE(encode(format, value), std::bit_cast<std::uint64_t>(value));
            QVERIFY(same(decode(format, std::bit_cast<std::uint64_t>(value)), value));
        }
    }

    // OCP 8-bit Floating Point Specification 1.0, table 1; IEEE 754-2019; NVIDIA's TF32; bfloat16.
    void ranges_data()
    {
        QTest::addColumn<QString>("key");
        QTest::addColumn<int>("bits");
        QTest::addColumn<int>("bias");
        QTest::addColumn<double>("largest");
        QTest::addColumn<double>("smallestNormal");
        QTest::addColumn<double>("smallestSubnormal");
        using Double = std::numeric_limits<double>;
        using Float = std::numeric_limits<float>;
        QTest::newRow("fp64") << "fp64" << 64 << 1023 << Double::max() << Double::min() << Double::denorm_min();
        QTest::newRow("fp32") << "fp32" << 32 << 127 << double(Float::max()) << double(Float::min())
                              << double(Float::denorm_min());
        QTest::newRow("tf32") << "tf32" << 19 << 127 << 0x1.ffcp127 << 0x1p-126 << 0x1p-136;
        QTest::newRow("fp16") << "fp16" << 16 << 15 << 65504.0 << 0x1p-14 << 0x1p-24;
        QTest::newRow("bf16") << "bf16" << 16 << 127 << 0x1.fep127 << 0x1p-126 << 0x1p-133;
        QTest::newRow("e4m3") << "fp8-e4m3" << 8 << 7 << 448.0 << 0x1p-6 << 0x1p-9;
        QTest::newRow("e5m2") << "fp8-e5m2" << 8 << 15 << 57344.0 << 0x1p-14 << 0x1p-16;
    }
    void ranges()
    {
        QFETCH(QString, key);
        const NumberFormat& format = formatOf(qPrintable(key));
        QTEST(format.bits(), "bits");
        QTEST(format.bias(), "bias");
        QTEST(format.largest(), "largest");
        QTEST(format.smallestNormal(), "smallestNormal");
        QTEST(format.smallestSubnormal(), "smallestSubnormal");
        QCOMPARE(rounded(format, format.largest()), format.largest());
        QCOMPARE(rounded(format, format.smallestSubnormal()), format.smallestSubnormal());
        QCOMPARE(format.epsilon(), format.spacing(1));
    }

    void thresholdsAreWhereRoundingTurns_data()
    {
        QTest::addColumn<QString>("key");
        for (const std::string& key : formatKeys())
            QTest::newRow(key.c_str()) << QString::fromStdString(key);
    }
    void thresholdsAreWhereRoundingTurns()
    {
        QFETCH(QString, key);
        const NumberFormat& format = formatOf(qPrintable(key));
        const double zero = format.underflowThreshold();
        QCOMPARE(rounded(format, zero), 0.0);
        QVERIFY(rounded(format, std::nextafter(zero, infinity)) > 0);
        const double most = format.overflowThreshold();
        if (key == "fp64") {
            QCOMPARE(most, infinity);
            return;
        }
        QCOMPARE(rounded(format, std::nextafter(most, 0)), format.largest());
        const double beyond = rounded(format, std::nextafter(most, infinity));
        if (format.isInteger())
            QCOMPARE(beyond, format.largest());
        else
            QVERIFY(!std::isfinite(beyond));
        QCOMPARE(std::isnan(beyond), key == "fp8-e4m3");
    }

    void spacingIsTheDistanceToTheNextNumber()
    {
        for (const char* key : {"fp8-e4m3", "fp8-e5m2", "fp16", "bf16"}) {
            const NumberFormat& format = formatOf(key);
            const std::uint64_t most = encode(format, format.largest());
            for (std::uint64_t bits = 0; bits < most; ++bits)
                QCOMPARE(format.spacing(decode(format, bits)), decode(format, bits + 1) - decode(format, bits));
            QCOMPARE(format.spacing(-format.largest()), format.spacing(format.largest()));
            QCOMPARE(format.spacing(infinity), infinity);
        }
    }

    void specialNumbers()
    {
        const NumberFormat& e4m3 = formatOf("fp8-e4m3");
        QCOMPARE(encode(e4m3, notANumber) & 0x7f, std::uint64_t(0x7f));
        QVERIFY(std::isnan(rounded(e4m3, infinity))); // it has no infinity
        QVERIFY(std::isnan(rounded(e4m3, 1e9)));
        QCOMPARE(rounded(e4m3, -infinity, {.overflow = Overflow::Saturate}), -448.0);
        QVERIFY(std::isnan(rounded(e4m3, notANumber, {.overflow = Overflow::Saturate})));
        const NumberFormat& e5m2 = formatOf("fp8-e5m2");
        QCOMPARE(rounded(e5m2, -1e9), -infinity);
        QCOMPARE(rounded(e5m2, infinity, {.overflow = Overflow::Saturate}), 57344.0);
        const NumberFormat& int8 = formatOf("int8");
        QCOMPARE(rounded(int8, -infinity), -128.0);
        QCOMPARE(rounded(int8, 200), 127.0);
        QCOMPARE(rounded(int8, notANumber), 0.0);
        QVERIFY(std::signbit(rounded(formatOf("fp16"), -0.0)));
    }

    void waysToRound()
    {
        const NumberFormat& brain = formatOf("bf16"); // steps of 2^-7 above 1
        const double tie = 1 + 0x1p-8, above = 1 + 3 * 0x1p-8;
        QCOMPARE(rounded(brain, tie), 1.0);
        QCOMPARE(rounded(brain, above), 1 + 2 * 0x1p-7);
        QCOMPARE(rounded(brain, tie, {.rounding = Rounding::NearestAway}), 1 + 0x1p-7);
        QCOMPARE(rounded(brain, -tie, {.rounding = Rounding::NearestAway}), -1 - 0x1p-7);
        QCOMPARE(rounded(brain, -1.999, {.rounding = Rounding::TowardZero}), -1.9921875);
        QCOMPARE(rounded(formatOf("fp16"), 1e6, {.rounding = Rounding::TowardZero}), 65504.0);
    }

    void stochasticRoundingIsFair()
    {
        const NumberFormat& half = formatOf("fp16");
        const double value = 1 + 0.3 * 0x1p-10;
        double sum = 0;
        constexpr int draws = 1000;
        for (int i = 0; i < draws; ++i)
            sum += rounded(half, value, {.rounding = Rounding::Stochastic, .draw = (i + 0.5) / draws});
        QVERIFY(std::fabs(sum / draws - value) < 1e-12); // the mean of all draws is the number itself
    }

    void unknownNames()
    {
        const auto format = formatFromText("fp61");
        QVERIFY(!format);
        QCOMPARE(format.error().code, std::string("format.unknown"));
        QVERIFY(format.error().text().find("fp16") != std::string::npos);
    }
};

QTEST_APPLESS_MAIN(TestNumberFormat)
#include "tst_number_format.moc"
