// SPDX-License-Identifier: Apache-2.0
// Every way in which a GPU can fail while it is measured, on one of the test's own making (fake_gpu.h): what is said,
// what is kept, and what is not tried again. Kernels that never end: tst_cuda_waiting.cpp.
#include "tests/kernels/cuda/fake_backend.h"

#include <QtTest>

#include <cmath>

#include <nlohmann/json.hpp>

using namespace memscape;

class TestCudaFaults : public QObject
{
    Q_OBJECT

private slots:
    void init() { fakeGpu() = FakeGpu{}; }

    void saysWhyThereIsNone_data()
    {
        QTest::addColumn<int>("error");
        QTest::addColumn<int>("driver");
        QTest::addColumn<QString>("says");
        QTest::newRow("no driver") << int(cudaErrorInsufficientDriver) << 0 << "no NVIDIA driver";
        QTest::newRow("old driver") << int(cudaErrorInsufficientDriver) << 11040
                                    << "supports CUDA 11.4, the module needs 13.0";
        QTest::newRow("no GPU") << int(cudaErrorNoDevice) << 13000 << "sees no GPU";
        QTest::newRow("taken") << int(cudaErrorDevicesUnavailable) << 13000 << "busy or prohibited";
        QTest::newRow("mismatch") << int(cudaErrorSystemDriverMismatch) << 13000 << "reboot";
    }
    void saysWhyThereIsNone()
    {
        QFETCH(int, error);
        QFETCH(int, driver);
        QFETCH(QString, says);
        fakeGpu().countError = static_cast<cudaError_t>(error);
        fakeGpu().driverVersion = driver;
        const auto devices = backend()->devices();
        QCOMPARE(int(devices.size()), 1);
        const QString reason = QString::fromStdString(devices[0].missing);
        QVERIFY2(reason.contains(says), qPrintable(reason));
        PointsSink sink;
        const auto run = measure(*backend(), "stride", {}, sink);
        QVERIFY(!run);
        QCOMPARE(run.error().code, std::string("device.missing"));
    }

    void aLibraryThatCannotBeUsedIsSaid()
    {
        fakeGpu().libraryPassedOver = true;
        PointsSink sink;
        const auto ours = measure(*backend(), "precision", {"format=fp16", "m=1024:1024"}, sink);
        QVERIFY(ours.has_value());
        QVERIFY(!ours->provenance.machine.contains("cublaslt"));
        fakeGpu().hasLibrary = true; // another, found elsewhere
        const auto theirs = measure(*backend(), "precision", {"format=fp16", "m=1024:1024"}, sink);
        QVERIFY(theirs.has_value());
        QVERIFY(theirs->provenance.machine.contains("cublaslt"));
        QCOMPARE(sink.notes, (std::vector<std::string>{"cublaslt.missing", "cublaslt.passed_over"}));
    }

    void anOffsetThatNoGpuCanLoadIsSkipped()
    {
        PointsSink sink;
        const auto alone = measure(*backend(), "stride", {"pattern=misaligned", "offset=2,6"}, sink);
        QVERIFY(!alone);
        QCOMPARE(alone.error().code, std::string("run.skipped"));
        const auto beside = measure(*backend(), "stride", {"pattern=misaligned", "offset=4,6"}, sink);
        QVERIFY(beside.has_value());
        const Series* useful = beside->measurement.findSeries("useful_bandwidth");
        QVERIFY(std::isfinite(useful->y[0]));
        QVERIFY(std::isnan(useful->y[1]));
    }

    void onePointThatDoesNotFitLeavesTheOthers()
    {
        PointsSink sink;
        const auto run = measure(*backend(), "stride", {"pattern=contiguous", "bytes=64MiB,1TiB"}, sink);
        QVERIFY(run.has_value());
        QVERIFY(std::isfinite(run->measurement.findSeries("time")->y[0]));
        QVERIFY(std::isnan(run->measurement.findSeries("time")->y[1]));
        QCOMPARE(sink.notes, std::vector<std::string>{"run.memory"});
        const auto reason = run->measurement.detail["points"][1]["reason"].get<std::string>();
        QVERIFY2(reason.find("1 TiB") != std::string::npos, reason.c_str());
    }

    void nothingFits()
    {
        fakeGpu().memoryBytes = 100 << 20;
        PointsSink sink;
        const auto run = measure(*backend(), "stride", {"stride=1,2", "bytes=1GiB"}, sink);
        QVERIFY(!run);
        QCOMPARE(run.error().code, std::string("run.memory"));
        QVERIFY(!run.error().hint.empty());
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
    }

    void aLostContextIsSaidOnceAndForAll()
    {
        fakeGpu().fillsUntilFault = 3; // at the third point; the flush's buffer is filled at the first
        PointsSink sink;
        const auto gpu = backend();
        const auto run = measure(*gpu, "stride", {"stride=1,2,4,8", "bytes=1GiB"}, sink);
        QVERIFY(!run);
        QCOMPARE(run.error().code, std::string("run.sticky"));
        QCOMPARE(int(sink.points.size()), 2); // what was measured before had been sent
        const int launches = fakeGpu().launches;
        const auto again = measure(*gpu, "stride", {"stride=1,2"}, sink);
        QVERIFY(!again);
        QCOMPARE(again.error().code, std::string("run.sticky"));
        QCOMPARE(fakeGpu().launches, launches); // it was not tried again
    }

    void aStuckStreamIsAnError()
    {
        fakeGpu().blockTimesOut = true;
        PointsSink sink;
        const auto run = measure(*backend(), "stride", {"stride=1,2"}, sink);
        QVERIFY(!run);
        QCOMPARE(run.error().code, std::string("run.failed"));
        QVERIFY(run.error().message.find("within 5 s") != std::string::npos);
    }

    void aGpuThatVanishesIsMissing()
    {
        const auto gpu = backend();
        const auto device = gpu->devices().front();
        fakeGpu().openError = cudaErrorDevicesUnavailable;
        PointsSink sink;
        const auto lines = gpu->selftest(device, sink);
        QCOMPARE(int(lines.size()), 1);
        QVERIFY(lines[0].skipped);
        const auto calibrated = gpu->calibrate(device, sink);
        QVERIFY(!calibrated);
        QCOMPARE(calibrated.error().code, std::string("device.missing"));
        QVERIFY(!calibrated.error().hint.empty());
    }

    void aSaggingClockCostsTheGrade()
    {
        fakeGpu().clockSag = 0.7;
        PointsSink sink;
        const auto run = measure(*backend(), "stride", {"stride=1,2", "bytes=1GiB"}, sink);
        QVERIFY(run.has_value());
        QCOMPARE(run->provenance.quality->grade, 'C');
        const auto reason = run->provenance.quality->reason;
        QVERIFY2(reason.find("clock") != std::string::npos, reason.c_str());
    }

    void denseKernelsAreJudgedByTheDriftOfTheirClock()
    {
        PointsSink sink;
        fakeGpu().clockSag = 0.82; // under their load the clock is lower, and stays so
        const auto capped = measure(*backend(), "precision", {"format=bf16", "m=2048,4096"}, sink);
        QVERIFY(capped.has_value());
        QCOMPARE(capped->provenance.quality->grade, 'A');
        const auto reason = capped->measurement.detail["points"][0]["reason"].get<std::string>();
        QVERIFY2(reason.find("drift within the run") != std::string::npos, reason.c_str());
        QVERIFY2(reason.find("82 %") != std::string::npos, reason.c_str());

        const int launches = fakeGpu().launches;
        fakeGpu() = FakeGpu{};
        fakeGpu().clockSag = 0.82;
        fakeGpu().sagsAfter = launches / 2; // it falls half-way
        const auto falling = measure(*backend(), "precision", {"format=bf16", "m=2048,4096"}, sink);
        QVERIFY(falling.has_value());
        QCOMPARE(falling->provenance.quality->grade, 'C');
        QVERIFY(falling->provenance.quality->reason.find("the clock drifted by") != std::string::npos);
    }

    void aWrongKernelIsNotTimed()
    {
        fakeGpu().wrongKernel = true;
        PointsSink sink;
        for (const char* id : {"stride", "hierarchy"}) {
            const auto run = measure(*backend(), id, {}, sink);
            QVERIFY(!run);
            QCOMPARE(run.error().code, std::string("check.failed"));
        }
        QCOMPARE(fakeGpu().launches, 0);
        const auto banks = measure(*backend(), "bank-conflicts", {"stride=1,2"}, sink);
        QVERIFY(!banks);
        QCOMPARE(banks.error().code, std::string("check.failed"));
    }

    void aWorkerThatLostItsGpuEnds()
    {
        const EndedWorker worker =
            workerOnFake([](FakeGpu& gpu) { gpu.fillsUntilFault = 3; },
                         {1, "stride", "cuda:0", Json{{"stride", Json::array({1, 2, 4})}, {"bytes", 1 << 30}}});
        QCOMPARE(worker.exitCode, 1);
        QVERIFY2(worker.said.find("run.sticky") != std::string::npos, worker.said.c_str());
        QVERIFY2(worker.said.find("\"sample\"") != std::string::npos, "points from before the fault are kept");
    }
};

QTEST_GUILESS_MAIN(TestCudaFaults)
#include "tst_cuda_faults.moc"
