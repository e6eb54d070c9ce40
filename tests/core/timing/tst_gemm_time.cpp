// SPDX-License-Identifier: Apache-2.0
// The model of matrix products against published measurements (the errors are stated; the quality of tiles was fitted
// to the FP16 point of the H100 at 1024 before there were any smaller than 128 × 128), tiles and waves against counts
// by hand, bytes and ridges against arithmetic from the datasheet.
#include "core/device/catalogue.h"
#include "core/timing/gemm_time.h"

#include <nlohmann/json.hpp>

#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

GemmTime timeOf(const char* device, Format format, std::int64_t m, std::int64_t n, std::int64_t k)
{
    return gemmTime(findDevice(device).value(), format, {m, n, k}).value();
}

GemmTime square(const char* device, Format format, std::int64_t size)
{
    return timeOf(device, format, size, size, size);
}

} // namespace

class TestGemmTime : public QObject
{
    Q_OBJECT

private slots:
    // cuBLAS: waynehacking8/blackwell-tensorcore-kernels bench.csv (H100), gau-nernst 02b (A100),
    // zzc0721/torch-performance-test-data, issue 140 (V100).
    void publishedRates_data()
    {
        QTest::addColumn<QString>("device");
        QTest::addColumn<int>("format");
        QTest::addColumn<int>("size");
        QTest::addColumn<double>("teraflops");
        QTest::addColumn<double>("within"); // relative error of the predicted time
        const auto row = [](const char* device, Format format, int size, double rate, double within) {
            QTest::addRow("%s %s %d", device, numberFormat(format).key.data(), size)
                << device << int(format) << size << rate << within;
        };
        row("nvidia-h100-sxm", Format::Fp16, 1024, 178, 0.22);
        row("nvidia-h100-sxm", Format::Fp16, 2048, 548, 0.15);
        row("nvidia-h100-sxm", Format::Fp16, 4096, 733, 0.03);
        row("nvidia-h100-sxm", Format::Fp16, 8192, 756, 0.01);
        row("nvidia-h100-sxm", Format::Tf32, 1024, 127, 0.22);
        row("nvidia-h100-sxm", Format::Tf32, 2048, 326, 0.14);
        row("nvidia-h100-sxm", Format::Tf32, 8192, 415, 0.01);
        row("nvidia-h100-sxm", Format::Fp32, 8192, 48.5, 0.01);
        row("nvidia-a100-40gb", Format::Fp16, 4096, 245, 0.05);
        row("nvidia-a100-40gb", Format::Fp16, 8192, 262, 0.01);
        row("nvidia-v100-sxm2", Format::Fp16, 1024, 57.3, 0.08);
        row("nvidia-v100-sxm2", Format::Fp16, 2048, 78.23, 0.05);
        row("nvidia-v100-sxm2", Format::Fp16, 4096, 95.73, 0.1);
        row("nvidia-v100-sxm2", Format::Fp32, 1024, 10.56, 0.05);
        row("nvidia-v100-sxm2", Format::Fp32, 2048, 12.71, 0.09);
        row("nvidia-v100-sxm2", Format::Fp32, 4096, 13.85, 0.03);
    }

    void publishedRates()
    {
        QFETCH(QString, device);
        QFETCH(int, format);
        QFETCH(int, size);
        QFETCH(double, teraflops);
        QFETCH(double, within);
        const GemmTime time = square(qPrintable(device), Format(format), size);
        const double measured = time.flops / (teraflops * 1e12);
        const double error = time.seconds / measured - 1;
        QVERIFY2(std::fabs(error) < within, qPrintable(QString::number(error)));
    }

    /// All eleven, the ones that the model misses among them: cuBLAS gave FP32 22 TFLOP/s at 2048 (and 4
    /// at 1024), a half and an eighth of what full waves would; the model does not know why.
    void mostPublishedRatesAreNear()
    {
        struct Point
        {
            Format format;
            double size, teraflops;
        };
        std::vector<double> errors;
        for (const Point& point : {Point{Format::Fp16, 1024, 178},
                                   {Format::Fp16, 2048, 548},
                                   {Format::Fp16, 4096, 733},
                                   {Format::Fp16, 8192, 756},
                                   {Format::Tf32, 1024, 127},
                                   {Format::Tf32, 2048, 326},
                                   {Format::Tf32, 8192, 415},
                                   {Format::Fp32, 1024, 4},
                                   {Format::Fp32, 2048, 22},
                                   {Format::Fp32, 8192, 48.5}}) {
            const GemmTime time = square("nvidia-h100-sxm", point.format, std::int64_t(point.size));
            errors.push_back(std::fabs(time.seconds * point.teraflops * 1e12 / time.flops - 1));
        }
        std::sort(errors.begin(), errors.end());
        QVERIFY2((errors[4] + errors[5]) / 2 < 0.16, qPrintable(QString::number((errors[4] + errors[5]) / 2)));
        QVERIFY2(errors.back() > 0.5, "if FP32 at 1024 fits now, say so above");
    }

    /// BF16 products that nothing was fitted to: openxla/xla, matmul_interpolator_data.h, sm_90 and sm_100. Their
    /// kernels sum up less of what a small tile loses than the law says on an H100; without tiles of 64 they took 1.6
    /// times too long.
    void smallProducts()
    {
        struct Point
        {
            std::int64_t m, n, k;
            double h100, b200; // TFLOP/s
        };
        std::vector<double> h100, b200;
        for (const Point& point : {Point{256, 256, 256, 6.72, 6.77},
                                   {256, 256, 1024, 18.9, 20.2},
                                   {256, 1024, 256, 23.7, 18.6},
                                   {256, 1024, 1024, 75.1, 81.2},
                                   {256, 4096, 1024, 237.6, 292.3},
                                   {256, 4096, 4096, 418.4, 651.4},
                                   {512, 512, 512, 43.6, 48.5},
                                   {512, 2048, 512, 147.5, 162.5},
                                   {512, 4096, 512, 243.6, 291.7}}) {
            const auto error = [&point](const char* device, double teraflops) {
                const GemmTime time = timeOf(device, Format::Bf16, point.m, point.n, point.k);
                return time.seconds * teraflops * 1e12 / time.flops - 1;
            };
            h100.push_back(error("nvidia-h100-sxm", point.h100));
            b200.push_back(error("nvidia-b200", point.b200));
        }
        const auto mean = [](const std::vector<double>& errors) {
            double sum = 0;
            for (const double error : errors)
                sum += std::fabs(error);
            return sum / double(errors.size());
        };
        QVERIFY2(mean(h100) < 0.15, qPrintable(QString::number(mean(h100))));
        QVERIFY2(mean(b200) < 0.12, qPrintable(QString::number(mean(b200))));
    }

    void tilesAndWaves()
    {
        // 4096 / 128 × 4096 / 256 = 512 tiles on 132 SMs: 4 waves of 528.
        const GemmTime full = square("nvidia-h100-sxm", Format::Fp16, 4096);
        QCOMPARE(full.tileColumns, 256);
        QCOMPARE(full.tiles, 512.0);
        QCOMPARE(full.waves, 4.0);
        QVERIFY(std::fabs(full.quantization - 512.0 / 528) < 1e-12);
        // One row more than fits: a whole row of tiles more, 528 in 4 waves, no time more.
        const GemmTime more = timeOf("nvidia-h100-sxm", Format::Fp16, 4097, 4096, 4096);
        QCOMPARE(more.waves, 4.0);
        QCOMPARE(more.arithmetic, full.arithmetic);
        // Another row of tiles starts a fifth wave.
        const GemmTime wave = timeOf("nvidia-h100-sxm", Format::Fp16, 4096 + 129, 4096, 4096);
        QCOMPARE(wave.tiles, 544.0);
        QCOMPARE(wave.waves, 5.0);
        QVERIFY(wave.arithmetic > 1.24 * full.arithmetic);
        // Few tiles of every kind: smaller ones keep more SMs busy.
        const GemmTime few = square("nvidia-h100-sxm", Format::Fp16, 1024);
        QCOMPARE(few.tileRows * few.tileColumns, 64 * 128);
        QCOMPARE(few.tiles, 128.0);
        // Lanes have a kernel of 32 × 32, tensor cores none.
        QCOMPARE(timeOf("nvidia-h100-sxm", Format::Fp32, 32, 256, 256).tileRows, 32);
        QCOMPARE(timeOf("nvidia-h100-sxm", Format::Fp16, 32, 256, 256).tileRows, 64);
    }

    void bytesAndRidge()
    {
        const GemmTime bf16 = timeOf("nvidia-h200", Format::Bf16, 100, 200, 300);
        QCOMPARE(bf16.bytes, 2.0 * (100 * 300 + 300 * 200 + 100 * 200));
        QCOMPARE(bf16.flops, 2.0 * 100 * 200 * 300);
        const GemmTime fp8 = timeOf("nvidia-h200", Format::Fp8E4M3, 100, 200, 300);
        QCOMPARE(fp8.bytes, 1.0 * (100 * 300 + 300 * 200) + 2.0 * 100 * 200);
        const GemmTime int8 = timeOf("nvidia-h200", Format::Int8, 100, 200, 300);
        QCOMPARE(int8.bytes, 1.0 * (100 * 300 + 300 * 200) + 4.0 * 100 * 200);
        // 989 TFLOP/s over 4.11 TB/s measured; the datasheet's 4.8 TB/s gives 206.
        QVERIFY(std::fabs(bf16.ridge() - 989e12 / 4.11e12) < 3);
        QVERIFY(std::fabs(989e12 / 4.8e12 - 206) < 1);
    }

    void boundInWords()
    {
        QVERIFY(square("nvidia-h200", Format::Bf16, 8192).bound == GemmBound::Arithmetic);
        QVERIFY(timeOf("nvidia-h200", Format::Bf16, 16384, 16384, 16).bound == GemmBound::Memory);
        QVERIFY(square("nvidia-h200", Format::Bf16, 64).bound == GemmBound::Overhead);
        QCOMPARE(gemmBoundText(GemmBound::Memory), std::string_view("memory-bound"));
    }

    void aHostHasNoTiles()
    {
        const GemmTime time = square("amd-epyc-zen4-vm", Format::Fp32, 2048);
        QCOMPARE(time.tileRows, 0);
        QCOMPARE(time.quantization, 1.0);
        QCOMPARE(time.seconds, time.flops / (0.9 * 231.46e9));
        Device calibrated = findDevice("amd-epyc-zen4-vm").value();
        calibrated.calibration.emplace();
        calibrated.calibration->raw = {{"product_rates", {{"fp32", 2e11}}}};
        QCOMPARE(gemmTime(calibrated, Format::Fp32, {2048, 2048, 2048}).value().seconds,
                 2.0 * 2048 * 2048 * 2048 / 2e11);
    }

    void unknownFormats()
    {
        const auto time = gemmTime(findDevice("nvidia-v100-sxm2").value(), Format::Bf16, {64, 64, 64});
        QVERIFY(!time);
        QCOMPARE(time.error().code, std::string("predict.format"));
        QCOMPARE(time.error().place, std::string("format"));
        QVERIFY(time.error().hint.find("fp16") != std::string::npos);
    }

    // In a long run: a quarter of the multiprocessors may draw the power of all, f ~ ∛4, up to the clocks of a short
    // run (42.3 against 20.7 TFLOP/s on a T4). An A100 of 400 W keeps its own.
    void idleMultiprocessorsLeaveTheirPower()
    {
        const auto seconds = [](double spare, double products) {
            const TileUnits units{Multipliers::TensorCores, 40, 20.7e12, 0.1, true, spare};
            const TiledTime time = tiledTime(units, 64, 64, 4096, products);
            return time.seconds - time.filling;
        };
        QVERIFY(std::abs(seconds(1, 10) / seconds(4, 10) - std::cbrt(4.0)) < 1e-9);
        QVERIFY(std::abs(seconds(1, 10) / seconds(1.2, 10) - 1.2) < 1e-9);
        QCOMPARE(seconds(4, 40), seconds(1, 40));
        QVERIFY(std::abs(spareClocks(findDevice("nvidia-t4").value(), Format::Fp16) - 42.3 / 20.7) < 1e-9);
        QCOMPARE(spareClocks(findDevice("nvidia-a100-80gb").value(), Format::Bf16), 1.0);
        QCOMPARE(spareClocks(findDevice("nvidia-b200").value(), Format::Bf16), 1.0);
    }

    void nothingBeatsTheDenseRate()
    {
        for (const Device& device : catalogue()) {
            for (const Format format : productFormats(device)) {
                for (const std::int64_t size : {256, 1000, 4096, 16384}) {
                    const GemmTime time = gemmTime(device, format, {size, size, size}).value();
                    // GeForce boards run up to 15 % above the clock that the dense rate is specified at.
                    const double most = std::max(time.rate.dense.value, 1.08 * time.rate.reached.value); // fuller waves
                    QVERIFY2(time.flops / time.seconds <= most, device.id.c_str());
                    QVERIFY2(time.rate.reached.value <= 1.15 * time.rate.dense.value, device.id.c_str());
                    QVERIFY(time.quantization > 0 && time.quantization <= 1);
                }
            }
        }
    }
};

QTEST_APPLESS_MAIN(TestGemmTime)
#include "tst_gemm_time.moc"
