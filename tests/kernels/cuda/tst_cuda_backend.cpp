// SPDX-License-Identifier: Apache-2.0
// The backend from devices to record on a GPU of the test's own making (fake_gpu.h). What is measured here is what the
// fake's model says, so that a mistake in bytes, batches, clocks or units shows.
#include "core/timing/gemm_time.h"
#include "kernels/cuda/experiments.h"
#include "tests/kernels/cuda/fake_backend.h"

#include <QtTest>

#include <cmath>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

bool near(double found, double expected, double tolerance)
{
    return std::fabs(found - expected) <= tolerance * expected;
}

std::vector<std::string> keys(const Figures& figures)
{
    std::vector<std::string> keys;
    for (const Figure& figure : figures)
        keys.push_back(figure.key);
    return keys;
}

} // namespace

class TestCudaBackend : public QObject
{
    Q_OBJECT

private slots:
    void init() { fakeGpu() = FakeGpu{}; }

    void describesTheGpu()
    {
        const auto devices = backend()->devices();
        QCOMPARE(int(devices.size()), 1);
        QCOMPARE(devices[0].id, std::string("cuda:0"));
        QCOMPARE(devices[0].missing, std::string());
        QVERIFY(devices[0].device.isGpu());
        QCOMPARE(devices[0].device.units, 132);
    }

    void aViewIsReadAndCopied()
    {
        // The fake moves a sector for each element of a transposed matrix, and tiles move each element once each way.
        PointsSink sink;
        const auto run = measure(*backend(), "layout", {"shape=8192,8192", "reads=1,8"}, sink);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const auto figure = [&run](const char* key) { return findFigure(run->measurement.figures, key)->number(); };
        const double elements = 8192.0 * 8192;
        QVERIFY(near(figure("view_time"), elements * 32 / 4e12, 0.05));
        QVERIFY(near(figure("copy_time"), elements * 8 / 4e12, 0.05));
        QVERIFY(near(figure("contiguous_time"), elements * 4 / 4e12, 0.1));
        QCOMPARE(figure("pays_after"), 1.0);
        QCOMPARE(figure("sectors_per_request"), 32.0);
        const Series* view = run->measurement.findSeries("view_total");
        const Series* dense = run->measurement.findSeries("contiguous_total");
        QVERIFY(view && dense);
        QVERIFY(near(view->y[1], 8 * view->y[0], 0.05));
        QVERIFY(dense->y[1] < view->y[1]);
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0)); // everything was given back
    }

    void aStrideCostsSectors()
    {
        // The fake moves sectors at 4 TB/s, so useful bandwidth must halve with every doubling up to 8.
        PointsSink sink;
        const auto run = measure(*backend(), "stride", {"stride=1,2,8,32", "bytes=1GiB"}, sink);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(run->complete);
        const Series* useful = run->measurement.findSeries("useful_bandwidth");
        const Series* moved = run->measurement.findSeries("moved_bandwidth");
        QVERIFY(useful && moved);
        const double expected[] = {4e12, 2e12, 0.5e12, 0.5e12};
        for (std::size_t i = 0; i < 4; ++i) {
            QVERIFY2(near(useful->y[i], expected[i], 0.05), qPrintable(QString::number(useful->y[i])));
            QVERIFY2(near(moved->y[i], 4e12, 0.05), qPrintable(QString::number(moved->y[i])));
            QVERIFY(useful->low[i] <= useful->y[i] && useful->y[i] <= useful->high[i]);
        }
        QCOMPARE(findFigure(run->measurement.figures, "peak_memory")->number(), double(1 << 30));
        QCOMPARE(run->provenance.quality->grade, 'A');
        QVERIFY(near(run->provenance.machine["launch_period"].get<double>(), 2.5e-6, 0.01));
        QVERIFY(near(run->provenance.machine["busy_clock"].get<double>(), 1.98e9, 0.01));
        QCOMPARE(int(sink.points.size()), 4 * 3);        // every point in every pass
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0)); // everything was given back
    }

    void aShortKernelIsBatchedOverCopies()
    {
        PointsSink sink;
        const auto run = measure(*backend(), "stride", {"pattern=contiguous", "bytes=1MiB,2MiB"}, sink);
        QVERIFY(run.has_value());
        const Json& detail = run->measurement.detail["points"][0];
        // 2.5 µs launch + 0.26 µs of bytes: 73 launches make 200 µs, each over a copy of its own.
        QCOMPARE(detail["batch"].get<int>(), 73);
        QCOMPARE(detail["copies"].get<int>(), 73);
        QVERIFY(near(findFigure(run->measurement.figures, "time")->number(), 2.76e-6, 0.02));
        QCOMPARE(findFigure(run->measurement.figures, "peak_memory")->number(), double(1 << 20));
    }

    void measuresTheSameFiguresAsItPredicts_data()
    {
        QTest::addColumn<QString>("id");
        QTest::addColumn<QString>("sweep");
        QTest::newRow("stride") << "stride"
                                << "stride=4,8";
        QTest::newRow("hierarchy") << "hierarchy"
                                   << "working_set=64KiB,1MiB";
        QTest::newRow("bank-conflicts") << "bank-conflicts"
                                        << "stride=1,32";
    }
    void measuresTheSameFiguresAsItPredicts()
    {
        QFETCH(QString, id);
        QFETCH(QString, sweep);
        PointsSink sink;
        const auto gpu = backend();
        const auto run = measure(*gpu, qPrintable(id), {sweep.toStdString()}, sink);
        QVERIFY(run.has_value());
        const auto experiment = *findExperiment(id.toStdString());
        const auto parameters = resolve(experiment->schema(), std::vector<std::string>{sweep.toStdString()});
        const auto predicted = experiment->predict(gpu->devices()[0].device, *parameters);
        QVERIFY(predicted.has_value());
        auto measuredKeys = keys(run->measurement.figures), predictedKeys = keys(predicted->figures);
        QCOMPARE(measuredKeys, predictedKeys);
        QCOMPARE(run->measurement.series.size(), predicted->series.size());
        for (std::size_t i = 0; i < predicted->series.size(); ++i) {
            QCOMPARE(run->measurement.series[i].key, predicted->series[i].key);
            QCOMPARE(run->measurement.series[i].x.values, predicted->series[i].x.values);
        }
    }

    void aWorkingSetIsInItsLevel()
    {
        PointsSink sink;
        const auto run = measure(*backend(), "hierarchy", {"working_set=32KiB,4MiB,512MiB"}, sink);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const Series* latency = run->measurement.findSeries("latency");
        const Series* bandwidth = run->measurement.findSeries("bandwidth");
        const double seconds[] = {16e-9, 140e-9, 350e-9}, rates[] = {25e12, 8e12, 4.2e12};
        for (std::size_t i = 0; i < 3; ++i) {
            QVERIFY2(near(latency->y[i], seconds[i], 0.01), qPrintable(QString::number(latency->y[i])));
            QVERIFY2(near(bandwidth->y[i], rates[i], 0.05), qPrintable(QString::number(bandwidth->y[i])));
        }
        QVERIFY(std::isnan(run->measurement.findSeries("latency_4k")->y[0]));
        const char* const levels[] = {"L1", "L2", "DRAM"};
        for (std::size_t i = 0; i < 3; ++i) {
            for (const Point& point : sink.points) {
                if (point.x == latency->x.values[i])
                    QCOMPARE(std::get<std::string>(findFigure(point.figures, "level")->value), std::string(levels[i]));
            }
        }
        QVERIFY(near(findFigure(run->measurement.figures, "cycles")->number(), 16e-9 * 1.98e9, 0.01));
        QCOMPARE(findFigure(run->measurement.figures, "peak_memory")->number(), 32.0 * 1024);
    }

    void aBankConflictCostsItsWavefronts()
    {
        // The fake's banks take the turns that the emulated machine counts, at 1.98 GHz.
        PointsSink sink;
        const auto run = measure(*backend(), "bank-conflicts", {"stride=0,1,2,6,32"}, sink);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const Series* cycles = run->measurement.findSeries("cycles");
        const Series* latency = run->measurement.findSeries("latency_cycles");
        const Series* bandwidth = run->measurement.findSeries("bandwidth");
        const double expected[] = {1, 1, 2, 2, 32};
        for (std::size_t i = 0; i < std::size(expected); ++i) {
            QVERIFY2(near(cycles->y[i], expected[i], 0.001), qPrintable(QString::number(cycles->y[i])));
            QVERIFY(near(latency->y[i], 23 + expected[i] - 1, 0.001));
            QVERIFY(near(bandwidth->y[i], 128 * 1.98e9 / expected[i], 0.001));
            QVERIFY(cycles->low[i] <= cycles->y[i] && cycles->y[i] <= cycles->high[i]);
        }
        QCOMPARE(run->provenance.quality->grade, 'A');
        QCOMPARE(int(sink.points.size()), 5 * 3);
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
        const auto cured = measure(*backend(), "bank-conflicts", {"pattern=column", "padding=0,1"}, sink);
        QVERIFY(near(cured->measurement.findSeries("cycles")->y[0], 32, 0.001));
        QVERIFY(near(cured->measurement.findSeries("cycles")->y[1], 1, 0.001));
    }

    void aWriteHasNoLatency()
    {
        PointsSink sink;
        for (const char* what : {"operation=write", "width=2"}) {
            const auto run = measure(*backend(), "bank-conflicts", {"stride=1,2", what}, sink);
            QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
            QVERIFY(!findFigure(run->measurement.figures, "latency_cycles"));
            QVERIFY(near(run->measurement.findSeries("cycles")->y[0], 1, 0.001));
        }
        // 32 rows of 440 float4 take 220 KiB, more than a block gets unasked; of 1000 they fit into no block.
        const auto large =
            measure(*backend(), "bank-conflicts", {"pattern=column", "width=16", "columns=440,16"}, sink);
        QVERIFY2(large.has_value(), large ? "" : large.error().text().c_str());
        const std::vector<double>& y = large->measurement.findSeries("cycles")->y;
        QVERIFY(std::isfinite(y[0]) && std::isfinite(y[1]));
        const auto none =
            measure(*backend(), "bank-conflicts", {"pattern=column", "width=16", "columns=1000,1010"}, sink);
        QVERIFY(!none.has_value());
        QVERIFY(!none.error().hint.empty());
    }

    void productsTakeTheirTime()
    {
        // The fake multiplies halves at 400 TFLOP/s and floats at 40, behind 2.5 µs of launch.
        PointsSink sink;
        const auto run = measure(*backend(), "precision", {"format=bf16", "m=2048,4096", "value=0.1"}, sink);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const Series* time = run->measurement.findSeries("time");
        for (std::size_t i = 0; i < 2; ++i) {
            const double n = time->x.values[i], flops = 2 * n * n * n; // n, k: as m
            QVERIFY2(near(time->y[i], 2.5e-6 + flops / 400e12, 0.02), qPrintable(QString::number(time->y[i])));
        }
        const double flops = 2 * std::pow(2048.0, 3);
        QVERIFY(near(findFigure(run->measurement.figures, "speedup")->number(),
                     (2.5e-6 + flops / 40e12) / (2.5e-6 + flops / 400e12), 0.02));
        QCOMPARE(findFigure(run->measurement.figures, "stored_value")->number(), 0.10009765625); // BF16
        const auto large = measure(*backend(), "precision", {"m=131072,262144"}, sink);          // 96 GiB on a GPU of 8
        QCOMPARE(large.error().code, std::string("run.memory"));
        QVERIFY(large.error().message.find("96 GiB") != std::string::npos);
        sink.notes.resize(1);
        QVERIFY(run->provenance.method["products"]["bf16"].get<std::string>().find("tensor cores")
                != std::string::npos);
        QCOMPARE(sink.notes, std::vector<std::string>{"cublaslt.missing"});
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
    }

    void formatsWithoutALibrary()
    {
        PointsSink sink;
        const auto gpu = backend();
        const auto in = [&](const std::string& format) {
            return measure(*gpu, "precision", {"format=" + format, "m=1024,2048"}, sink);
        };
        for (const NumberFormat& numbers : numberFormats()) { // each checked against sums in double first
            const std::string key(numbers.key);
            const auto run = in(key);
            QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
            QVERIFY(run->provenance.method["products"][key].get<std::string>().starts_with("our product"));
        }
        fakeGpu().computeCapability = 80;
        QVERIFY(in("fp8-e5m2").error().message.find("8.0 has no products in FP8") != std::string::npos);
        QVERIFY(in("fp64").has_value());
        fakeGpu().computeCapability = 75;
        const auto turing = in("bf16");
        QVERIFY2(turing.error().message.find("7.5 has no products in BF16") != std::string::npos,
                 turing.error().message.c_str());
        QVERIFY2(turing.error().hint.find("fp32, fp16, int8") != std::string::npos, turing.error().hint.c_str());
        const auto doubles = in("fp64");
        QCOMPARE(doubles.error().code, std::string("run.skipped"));
        QVERIFY2(doubles.error().message.find("FP64 need cuBLASLt") != std::string::npos,
                 doubles.error().message.c_str());
    }

    void everyFormatIsMultipliedByALibrary()
    {
        fakeGpu().hasLibrary = true;
        PointsSink sink;
        const auto gpu = backend();
        for (const NumberFormat& numbers : numberFormats()) {
            // Checked against sums in double first: operands, how B lies, and the result's format.
            const auto run = measure(*gpu, "precision", {"format=" + std::string(numbers.key), "m=1024,2048"}, sink);
            QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
            const bool onCores = numbers.format != Format::Fp32 && numbers.format != Format::Fp64;
            const double seconds = 2.5e-6 + 2 * std::pow(1024.0, 3) / (onCores ? 400e12 : 40e12);
            QVERIFY(near(findFigure(run->measurement.figures, "time")->number(), seconds, 0.03));
            const double bytes = findFigure(run->measurement.figures, "bytes")->number();
            QCOMPARE(bytes, gemmBytes(numbers, {1024, 1024, 1024}));
            const Json library = run->provenance.machine.at("cublaslt");
            QCOMPARE(library.at("file").get<std::string>(), std::string("/a/folder/libcublasLt.so.13"));
            QCOMPARE(library.at("version").get<std::string>(), std::string("13.0.2"));
        }
        QVERIFY(sink.notes.empty());
        fakeGpu().computeCapability = 80; // an A100 has no FP8
        const auto older = measure(*gpu, "precision", {"format=fp8-e4m3", "m=64,128"}, sink);
        QVERIFY(older.error().message.find("8.0 has no products in FP8") != std::string::npos);
    }

    void aColdReadExcludesWritesOfTheFlush()
    {
        // Had the flush left L2 full of its own writes, the read would take the 12 µs of writing them back.
        PointsSink sink;
        const auto run = measure(*backend(), "stride", {"pattern=contiguous", "bytes=1GiB,2GiB", "cache=cold"}, sink);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const double seconds = 0x1p30 / 4e12 + fakeGpu().launchSeconds;
        QVERIFY(near(findFigure(run->measurement.figures, "time")->number(), seconds, 0.001));
    }

    void aChaseIsWarmBeforeItIsTimed()
    {
        PointsSink sink; // 393 216 lines, all of which L2 holds
        const auto run = measure(*backend(), "hierarchy", {"working_set=1MiB,48MiB"}, sink);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(near(run->measurement.findSeries("latency")->y[1], 140e-9, 0.01));
    }

    void stoppingKeepsThePoints()
    {
        PointsSink sink;
        sink.stopAfter = 2;
        const auto run = measure(*backend(), "stride", {"stride=1,2,4,8"}, sink);
        QVERIFY(run.has_value());
        QVERIFY(!run->complete);
        int finite = 0;
        for (double y : run->measurement.findSeries("time")->y)
            finite += std::isfinite(y);
        QCOMPARE(finite, 2);
    }

    void withoutPoolsMemoryIsCountedAllTheSame()
    {
        fakeGpu().hasPools = false;
        PointsSink sink;
        const auto run = measure(*backend(), "stride", {"operation=copy", "stride=1,2", "bytes=1GiB"}, sink);
        QVERIFY(run.has_value());
        QCOMPARE(findFigure(run->measurement.figures, "peak_memory")->number(), 2.0 * (1 << 30));
    }

    void calibrationFillsTheDevice()
    {
        fakeGpu().pageableBytesPerSecond = 10e9;
        PointsSink sink;
        const auto gpu = backend();
        const auto device = gpu->calibrate(gpu->devices().front(), sink);
        QVERIFY2(device.has_value(), device ? "" : device.error().text().c_str());
        QCOMPARE(device->basis, std::string("calibrated"));
        QVERIFY(near(device->level("L1")->latency.value, 16e-9, 0.01));
        QVERIFY(near(device->level("L2")->latency.value, 140e-9, 0.01));
        QVERIFY(near(device->dram()->latency.value, 350e-9, 0.01));
        QVERIFY(near(device->dram()->bandwidth.value, 4.2e12, 0.02));
        QVERIFY(near(device->level("L1")->bandwidth.value, 25e12, 0.02));
        QVERIFY(device->dram()->latency.evidence == Evidence::Measured);
        QVERIFY(!device->dram()->latency.method.empty());
        QVERIFY(near(device->launch.value, 2.5e-6, 0.01));
        const Json& rates = device->calibration->raw["product_rates"];
        QVERIFY(near(rates["fp32"].get<double>(), 40e12, 0.02));
        QVERIFY(near(rates["bf16"].get<double>(), 400e12, 0.02));
        QVERIFY(near(productRate(*device, Format::Bf16)->reached.value, 400e12, 0.02)); // predictions stand on it
        QVERIFY(near(rates["fp8-e4m3"].get<double>(), 400e12, 0.02));
        QCOMPARE(int(device->calibration->lineRates.size()), 3 * 6);
        for (const LineRate& rate : device->calibration->lineRates)
            QVERIFY2(near(rate.linesPerSecond * 32 * (rate.operation == Operation::Copy ? 2 : 1), 4e12, 0.02),
                     qPrintable(QString::number(rate.linesPerSecond)));
        const Link* const host = device->link("host");
        QVERIFY(host && near(host->bandwidth.value, 50e9, 0.01) && near(host->latency.value, 9e-6, 0.01));
        QVERIFY(host->pageable && near(host->pageable->value, 10e9, 0.01));
        QVERIFY(host->bandwidth.evidence == Evidence::Measured);
        const bool isSaid = std::ranges::any_of(
            device->notes, [](const std::string& note) { return note.find("no other GPU") != std::string::npos; });
        QVERIFY(isSaid); // a peer is not there: its described value stays
        const auto back = deviceFromJson(deviceToJson(*device));
        QVERIFY2(back.has_value(), back ? "" : back.error().text().c_str());
    }

    void calibrationTakesMedians()
    {
        fakeGpu().luckyEvery = 7; // a tenth faster, as no GPU is for long
        PointsSink sink;
        const auto gpu = backend();
        const auto device = gpu->calibrate(gpu->devices().front(), sink);
        QVERIFY2(device.has_value(), device ? "" : device.error().text().c_str());
        QVERIFY2(near(device->dram()->bandwidth.value, 4.2e12, 0.02),
                 qPrintable(QString::number(device->dram()->bandwidth.value)));
        QVERIFY(device->calibration->raw.contains("bandwidth DRAM read"));
    }

    void selftestReportsEveryKernel()
    {
        PointsSink sink;
        const auto gpu = backend();
        const auto device = gpu->devices().front();
        fakeGpu().computeCapability = 70; // too old for tensor cores: what needs them is skipped
        const auto lines = gpu->selftest(device, sink);
        // 4 chases, 3 versions × 5 widths × 4 streams, 6 laps, 2 versions × 5 widths × 3 × 3 strides,
        // 5 ways to visit a view × 5 widths, 8 formats multiplied, 4 converted; banks: 5 widths × 3 tiles × 2,
        // latencies 3 × 3, 2 versions × 4 ways to read a product, its elements, the chain; the training step's
        // elements, the step; attention in its formats: standard 3 versions × 3, flash one × 3 and eight × 2
        constexpr int attention = 9 + 19;
        constexpr int training = 3 + 3, trainingSkipped = 2; // passes and steps in FP32, FP16 and BF16
        std::size_t ofRows = 0;                              // what experiments bring themselves
        for (const auto& [id, experiment] : cuda::gpuExperiments())
            ofRows += experiment.checks != nullptr ? experiment.checks(1).size() : 0;
        QCOMPARE(int(lines.size() - ofRows),
                 4 + 60 + 6 + 90 + 25 + 30 + 9 + 8 + 1 + 1 + 2 + 8 + 4 + attention + training);
        for (const SelftestLine& line : lines)
            QVERIFY2(line.passed != line.skipped, (line.kernel + ": " + line.detail).c_str());
        QCOMPARE(std::ranges::count_if(lines, [](const SelftestLine& line) { return line.skipped; }),
                 attention - 2 + 7
                     + trainingSkipped); // standard attention in floats runs, our own products; of formats FP32 alone
        fakeGpu().wrongKernel = true;
        const auto wrong = gpu->selftest(device, sink);
        QVERIFY(!wrong[0].passed && !wrong[0].skipped);
    }
};

QTEST_GUILESS_MAIN(TestCudaBackend)
#include "tst_cuda_backend.moc"
