// SPDX-License-Identifier: Apache-2.0
// float16 against the compiler's own, over all its numbers and many floats; bfloat16
// against its definition, the upper half of a float that lies nearest.
#include "kernels/programs/common/half.h"
#include "tests/support/compilers_half.h"

#include <QtTest>

#include <cmath>
#include <random>

using namespace memscape;

class TestHalf : public QObject
{
    Q_OBJECT

private slots:
    void everyFloat16ReadsAsTheCompilerReadsIt()
    {
        for (std::uint32_t bits = 0; bits < 65536; ++bits) {
            const float theirs = test::compilersFloat(std::uint16_t(bits));
            const float ours = float16ToFloat(std::uint16_t(bits));
            if (std::isnan(theirs))
                QVERIFY(std::isnan(ours));
            else
                QCOMPARE(std::bit_cast<std::uint32_t>(ours), std::bit_cast<std::uint32_t>(theirs));
        }
    }

    void floatsRoundToFloat16AsTheCompilerRoundsThem()
    {
        std::mt19937_64 random(7);
        for (int i = 0; i < 4'000'000; ++i) {
            // All exponents that matter, and the ties between two halves among them.
            auto bits = std::uint32_t(random());
            if (i % 3 == 0)
                bits &= 0xfffff000u;
            if (i % 2 == 0)
                bits = (bits & 0x80ffffffu) | (0x32u + std::uint32_t(i) % 0x16u) << 24;
            const auto value = std::bit_cast<float>(bits);
            if (std::isnan(value)) {
                QVERIFY(std::isnan(float16ToFloat(floatToFloat16(value))));
                continue;
            }
            QCOMPARE(floatToFloat16(value), test::compilersHalf(value));
        }
    }

    void bfloat16IsTheNearestUpperHalf()
    {
        std::mt19937 random(7);
        for (int i = 0; i < 1'000'000; ++i) {
            auto bits = std::uint32_t(random());
            if (i % 4 == 0)
                bits = (bits & 0xffff0000u) | 0x8000u; // ties
            const auto value = std::bit_cast<float>(bits);
            const std::uint16_t found = floatToBfloat16(value);
            if (std::isnan(value)) {
                QVERIFY(std::isnan(bfloat16ToFloat(found)));
                continue;
            }
            const auto below = std::uint16_t(bits >> 16);
            const auto above = std::uint16_t(below + 1);
            // The distance to what lies above, which for the largest is the next power of two.
            const double down = std::abs(double(value) - double(bfloat16ToFloat(below)));
            const double step = std::ldexp(1.0, std::max(int(bits >> 23 & 0xff), 1) - 127 - 7);
            const std::uint16_t expected = down < step / 2 || (down == step / 2 && below % 2 == 0) ? below : above;
            QCOMPARE(found, expected);
        }
    }

    void roundoffsAreThoseOfTheFormats()
    {
        QCOMPARE(roundoff(DType::Float16), double(float16ToFloat(0x3c01) - 1) / 2);
        QCOMPARE(roundoff(DType::BFloat16), double(bfloat16ToFloat(0x3f81) - 1) / 2);
        QCOMPARE(leastRoundoff(DType::Float16), double(float16ToFloat(1)) / 2);
        QCOMPARE(leastRoundoff(DType::BFloat16), double(bfloat16ToFloat(1)) / 2);
    }
};

QTEST_APPLESS_MAIN(TestHalf)
#include "tst_half.moc"
