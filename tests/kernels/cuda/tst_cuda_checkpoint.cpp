// SPDX-License-Identifier: Apache-2.0
// `checkpoint` on a GPU of the test's own making (fake_gpu.h): its products and passes really run,
// on the host, and take the time of the fake's model. What a real GPU computes is not tested here.
#include "core/checkpoint/chain.h"
#include "tests/kernels/cuda/fake_run.h"
#include "tests/support/listener.h"

#include <QtTest>

#include <cmath>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

FakeRun measureChain(const std::vector<std::string>& given, RunSink& sink)
{
    return runOnFake("checkpoint", given, sink);
}

} // namespace

class TestCudaCheckpoint : public QObject
{
    Q_OBJECT

private slots:
    void init() { fakeGpu() = FakeGpu{}; }

    void theMeasuredPeakIsThePredictedOne_data()
    {
        QTest::addColumn<QString>("strategy");
        for (const char* strategy : {"none", "every:2", "sqrt", "optimal"})
            QTest::newRow(strategy) << strategy;
    }
    void theMeasuredPeakIsThePredictedOne()
    {
        QFETCH(QString, strategy);
        test::Listener listener;
        const auto [run, predicted] =
            measureChain({"chain=mlp:6x32", "batch=20", "strategy=" + strategy.toStdString()}, listener);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        for (const char* key : {"peak", "recomputed_forwards", "forward_evaluations"}) {
            QVERIFY(findFigure(predicted.figures, key) != nullptr);
            QCOMPARE(findFigure(run->measurement.figures, key)->number(), findFigure(predicted.figures, key)->number());
        }
        QVERIFY(run->complete);
        QVERIFY(run->measurement.detail.at("gradients").at("identical").get<bool>());
        QCOMPARE(run->provenance.machine.at("backend").get<std::string>(), std::string("cuda"));
        QVERIFY(run->provenance.method.at("product").get<std::string>().starts_with("product v"));
        QCOMPARE(listener.count("cublaslt.missing"), 1);
        QVERIFY(!run->provenance.machine.contains("cublaslt"));
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
        fakeGpu().hasLibrary = true;
        const auto by =
            measureChain({"chain=mlp:6x32", "batch=20", "strategy=" + strategy.toStdString()}, listener).run;
        QVERIFY2(by.has_value(), by ? "" : by.error().text().c_str());
        QCOMPARE(by->provenance.machine.at("cublaslt").at("file").get<std::string>(),
                 std::string("/a/folder/libcublasLt.so.13"));
    }

    /// The fake has no noise: the profile must add up to the step, and a forward be its product and its
    /// pass.
    void timesAreThoseOfTheGpu()
    {
        test::Listener listener;
        const auto [run, predicted] = measureChain({"chain=mlp:4x64", "batch=32", "strategy=every:2"}, listener);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const Json chain = run->measurement.detail.at("measured_chain");
        const FakeGpu& gpu = fakeGpu();
        const double forward =
            2 * gpu.launchSeconds + 2.0 * 32 * 64 * 64 / gpu.flopsPerSecond + 12.0 * 32 * 64 / gpu.streamBytesPerSecond;
        QVERIFY(std::abs(chain.at("forward").at(0).get<double>() - forward) < 1e-3 * forward);
        const double makespan = findFigure(run->measurement.figures, "makespan")->number();
        const double profiled = findFigure(run->measurement.figures, "profile_makespan")->number();
        QVERIFY2(std::abs(profiled - makespan) < 1e-3 * makespan,
                 qPrintable(QString("%1 s and %2 s").arg(profiled).arg(makespan)));
        const Series* memory = run->measurement.findSeries("memory");
        QVERIFY(memory != nullptr && !memory->y.empty());
        QVERIFY(std::abs(memory->x.values.back() - makespan) < 1e-3 * makespan);
    }

    void aProductThatIsOffByOneIsFound()
    {
        // Among those of the small chain that is checked (95), of keeping everything (from 101 on), of
        // the schedule.
        for (const int when : {7, 110, 130}) {
            fakeGpu() = FakeGpu{};
            fakeGpu().productsUntilWrong = when;
            test::Listener listener;
            const auto run = measureChain({"chain=mlp:6x32", "batch=20", "strategy=sqrt"}, listener).run;
            QVERIFY(!run.has_value());
            QCOMPARE(run.error().code, std::string("check.failed"));
        }
    }

    void aChainThatDoesNotFitSaysWhatItNeeds()
    {
        fakeGpu().memoryBytes = 512 << 20;
        test::Listener listener;
        const auto run =
            measureChain({"chain=mlp:48x4096", "strategy=none"}, listener).run; // 6 GiB of weights and gradients
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.memory"));
        QVERIFY2(run.error().message.find("available") != std::string::npos, run.error().message.c_str());
    }

    void onlyAChainWithBuffersRuns()
    {
        test::Listener listener;
        const auto run = measureChain({"chain=uniform:8"}, listener).run;
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.skipped"));
        QVERIFY(run.error().hint.find("mlp:") != std::string::npos);
    }

    void stopEndsTheRun()
    {
        test::Listener listener;
        listener.stopAfter = 40;
        const auto run = measureChain({"chain=mlp:6x32", "batch=20"}, listener).run;
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.cancelled"));
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
    }
};

QTEST_APPLESS_MAIN(TestCudaCheckpoint)
#include "tst_cuda_checkpoint.moc"
