// SPDX-License-Identifier: Apache-2.0
// Rows to FP16 and BF16 and back: the check that runs before a measurement, and the processor's own
// AVX512-BF16 where it has it.
#include "kernels/host/precision/convert.h"

#include "kernels/programs/common/mlp_numbers.h"

#include <QtTest>

#include <bit>
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace memscape;
using namespace memscape::host;

namespace {

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bf16,avx512vl"))) void hardwareRow(const float* from, std::uint16_t* to)
{
    const __m512bh made = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + 16), _mm512_loadu_ps(from));
    __builtin_memcpy(to, &made, sizeof made);
}
#endif

} // namespace

class TestConvert : public QObject
{
    Q_OBJECT

private slots:
    void everyNumberAndAMillionFloats_data()
    {
        QTest::addColumn<int>("format");
        QTest::newRow("fp16") << int(Format::Fp16);
        QTest::newRow("bf16") << int(Format::Bf16);
    }

    void everyNumberAndAMillionFloats()
    {
        QFETCH(int, format);
        const Check check = checkConversions(Format(format));
        QVERIFY2(check.passed(), check.text().c_str());
    }

    void asTheProcessorRoundsToBf16()
    {
#if defined(__x86_64__)
        if (!__builtin_cpu_supports("avx512bf16"))
            QSKIP("this processor has no AVX512-BF16");
        for (std::uint64_t round = 0; round < 100'000; ++round) {
            float from[32];
            std::uint16_t ours[32], its[32];
            for (std::uint64_t i = 0; i < 32; ++i)
                from[i] = std::bit_cast<float>(std::uint32_t(mlpMixed(32 * round + i)));
            narrowRow(Format::Bf16, from, ours, 32);
            hardwareRow(from, its);
            for (int i = 0; i < 32; ++i) {
                if (std::fabs(from[i]) < 0x1p-126F) // subnormal: the instruction takes it for zero
                    continue;
                QVERIFY2(ours[i] == its[i] || std::isnan(from[i]),
                         qPrintable(QString::number(std::bit_cast<std::uint32_t>(from[i]), 16)));
            }
        }
#else
        QSKIP("AVX512-BF16 is of x86");
#endif
    }
};

QTEST_APPLESS_MAIN(TestConvert)
#include "tst_convert.moc"
