// SPDX-License-Identifier: Apache-2.0
// Products in every format that this machine has a kernel for, against sums in double; and what is
// said about the formats without one.
#include "kernels/host/precision/gemm.h"
#include "kernels/host/precision/onednn.h"
#include "kernels/host/precision/precision.h"
#include "tests/support/listener.h"

#include <QtTest>

#include <cstring>

using namespace memscape;
using namespace memscape::host;

class TestGemm : public QObject
{
    Q_OBJECT

private slots:
    void everyKernelIsRight_data()
    {
        QTest::addColumn<int>("format");
        QTest::addColumn<int>("kernel");
        for (const Format format : gemmFormats()) {
            const auto kernels = gemmKernels(format);
            for (std::size_t i = 0; i < kernels.size(); ++i)
                QTest::addRow("%s %s", numberFormat(format).key.data(), kernels[i].name.c_str())
                    << int(format) << int(i);
        }
    }
    void everyKernelIsRight()
    {
        QFETCH(int, format);
        QFETCH(int, kernel);
        const Check check = checkGemm(gemmKernels(Format(format))[std::size_t(kernel)], Format(format));
        QVERIFY2(check.passed(), check.text().c_str());
        QVERIFY(check.compared() > 10'000);
    }

    void theTeamsProductIsTheSame_data()
    {
        QTest::addColumn<int>("format");
        QTest::addColumn<bool>("isWide");
        for (const Format format : gemmFormats()) {
            QTest::addRow("%s rows", numberFormat(format).key.data()) << int(format) << false;
            QTest::addRow("%s columns", numberFormat(format).key.data()) << int(format) << true;
        }
    }

    /// Slabs of a team against one thread, element by element: whole numbers, so that every order of sums
    /// gives the same.
    void theTeamsProductIsTheSame()
    {
        QFETCH(int, format);
        QFETCH(bool, isWide);
        const Device device;
        test::Listener sink;
        HostSession session(device, sink);
        const NumberFormat& numbers = numberFormat(Format(format));
        const GemmKernel kernel = gemmKernels(numbers.format).front();
        const GemmShape shape = isWide ? GemmShape{100, 333, 70} : GemmShape{333, 100, 70};
        const GemmTask task = GemmTask::dense(shape, numbers.format);
        const auto filled = [&](std::int64_t count, int step) {
            std::vector<std::byte> bytes(std::size_t(count * numbers.bytes));
            for (std::int64_t i = 0; i < count; ++i) {
                const std::uint64_t bits = encode(numbers, double(i * step % 7 - 3));
                std::memcpy(bytes.data() + i * numbers.bytes, &bits, std::size_t(numbers.bytes));
            }
            return bytes;
        };
        const auto a = filled(shape.m * shape.k, 3), b = filled(shape.k * shape.n, 5);
        const auto size = std::size_t(shape.m * shape.n * resultBytes(task));
        std::vector<std::byte> alone(size, std::byte(1)), together(size, std::byte(2));
        kernel.plan(task).value()->run(a.data(), b.data(), alone.data());
        auto gemm = TeamGemm::make(session, kernel, task);
        QVERIFY2(gemm.has_value(), gemm ? "" : gemm.error().text().c_str());
        QVERIFY(gemm->run(a.data(), b.data(), together.data()) > 0);
        QVERIFY(alone == together);
    }

    void wrongProductsAreSeen()
    {
        class Wrong final : public GemmPlan
        {
        public:
            explicit Wrong(const GemmTask& task)
                : m_bytes(std::size_t(task.shape.m * task.cStride * resultBytes(task)))
            { }
            void run(const void*, const void*, void* c) override { std::memset(c, 0, m_bytes); }
            std::string name() const override { return "zeros"; }

        private:
            std::size_t m_bytes;
        };
        const GemmKernel zeros{"zeros", false, [](const GemmTask& task) -> Result<std::unique_ptr<GemmPlan>> {
                                   return std::unique_ptr<GemmPlan>(std::make_unique<Wrong>(task));
                               }};
        for (const Format format : {Format::Fp32, Format::Bf16, Format::Int8})
            QVERIFY(!checkGemm(zeros, format).passed());
    }

    void floatsAndHalvesAlwaysHaveSomeone()
    {
        QVERIFY(!gemmKernels(Format::Fp32).empty());
        QVERIFY(!gemmKernels(Format::Bf16).empty());
        QVERIFY(!gemmKernels(Format::Fp16).empty());
        QCOMPARE(gemmKernels(Format::Int8).empty(), oneDnnName().empty() || !hasExactInt8());
        // Without instructions of its own a format is multiplied as FP32, and that is said.
        QVERIFY(gemmKernels(Format::Fp16).back().isEmulated);
        QVERIFY(!gemmKernels(Format::Fp32).back().isEmulated);
    }

    void unknownFormatsNameTheNearest()
    {
        const Device device;
        test::Listener sink;
        HostSession session(device, sink);
        const auto choice = fastestGemm(session, Format::Fp8E4M3);
        QVERIFY(!choice);
        QCOMPARE(choice.error().code, std::string("run.skipped"));
        QCOMPARE(choice.error().place, std::string("format"));
        QVERIFY(choice.error().hint.find("the nearest is bf16") != std::string::npos);
        QVERIFY(choice.error().hint.find("fp32, fp16, bf16") != std::string::npos);
    }

    void theProcessorsInstructionsAreNamed()
    {
        const std::string text = numberInstructions();
#if defined(__x86_64__)
        const bool found = __builtin_cpu_supports("avx512bf16");
        QCOMPARE(text.find("AVX512-BF16") < text.find(';'), found); // before what is missing
#else
        QVERIFY(!text.empty());
#endif
    }
};

QTEST_GUILESS_MAIN(TestGemm)
#include "tst_gemm.moc"
