// SPDX-License-Identifier: Apache-2.0
// `batch-size` on a GPU of the test's own making (fake_gpu.h): its products and passes really run, on the host,
// and take the time of the fake's model. What a real GPU computes is not tested here.
#include "core/training/noisy_regression.h"
#include "tests/kernels/cuda/fake_run.h"
#include "tests/support/listener.h"

#include <QtTest>

#include <cmath>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

FakeRun measureBatches(const std::vector<std::string>& given, RunSink& sink)
{
    return runOnFake("batch-size", given, sink);
}

bool isNear(double found, double expected, double tolerance)
{
    return std::fabs(found - expected) <= tolerance * std::fabs(expected);
}

/// Seconds of one step of a single layer on the fake: as many launches as a step has kernels.
double stepOfOneLayer(double batch, double in, double out)
{
    const FakeGpu& gpu = fakeGpu();
    // Forward: product, bias, loss. Backward: its gradient, product, sum. Update: weights, bias.
    const double products = 2 * 2 * batch * in * out / gpu.flopsPerSecond;
    const double floats = batch * out * (2 + 2 + 3 + 1) + 3 * (in * out + out);
    return 8 * gpu.launchSeconds + products + 4 * floats / gpu.streamBytesPerSecond;
}

} // namespace

class TestCudaBatchSize : public QObject
{
    Q_OBJECT

private slots:
    void init() { fakeGpu() = FakeGpu{}; }

    void measuredBytesAreThePredictedOnes_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("accumulation");
        QTest::newRow("one layer") << "mlp:24,8"
                                   << "1";
        QTest::newRow("three layers") << "mlp:12,24,16,4"
                                      << "1";
        QTest::newRow("accumulated") << "mlp:12,24,16,4"
                                     << "3";
    }
    void measuredBytesAreThePredictedOnes()
    {
        QFETCH(QString, model);
        QFETCH(QString, accumulation);
        test::Listener listener;
        const auto [run, predicted] = measureBatches({"model=" + model.toStdString(), "batch=4,16", "target_loss=0.9",
                                                      "accumulation=" + accumulation.toStdString()},
                                                     listener);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QCOMPARE(run->measurement.findSeries("memory")->y, predicted.findSeries("memory")->y);
        QCOMPARE(findFigure(run->measurement.figures, "peak_allocated")->number(),
                 findFigure(predicted.figures, "peak_allocated")->number());
        QVERIFY(run->complete);
        QVERIFY(run->measurement.detail.at("accumulation").at("same_within_rounding").get<bool>());
        QCOMPARE(run->provenance.machine.at("backend").get<std::string>(), std::string("cuda"));
        QVERIFY(run->provenance.method.at("products").get<std::string>().starts_with("product v"));
        QVERIFY(!run->provenance.method.at("check").get<std::string>().empty());
        QCOMPARE(listener.count("cublaslt.missing"), 1);
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
    }

    void aStepTakesTheTimeOfItsKernels()
    {
        test::Listener listener;
        const auto run = measureBatches({"model=mlp:32,8", "batch=4,256"}, listener).run;
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const Series* throughput = run->measurement.findSeries("throughput");
        for (std::size_t i = 0; i < 2; ++i) {
            const double batch = throughput->x.values[i], seconds = stepOfOneLayer(batch, 32, 8);
            QVERIFY2(isNear(batch / throughput->y[i], seconds, 1e-3),
                     qPrintable(QString("%1 s, not %2").arg(batch / throughput->y[i]).arg(seconds)));
        }
        const Json& point = run->measurement.detail.at("points").at(0);
        QVERIFY(point.at("batch").get<int>() > 1); // a step of 20 µs is run several times in a sample
        QVERIFY(isNear(point.at("clock").get<double>(), fakeGpu().clockHz, 0.01));
        QCOMPARE(run->provenance.quality->grade, 'A');
    }

    void aStepOfMoreKernelsThanAQueueHoldsIsTimedToo()
    {
        // 200 micro-batches of eight kernels: behind the blocking kernel the queue would fill up and never be let go.
        test::Listener listener;
        const auto [run, predicted] =
            measureBatches({"model=mlp:16,4", "batch=2,4", "accumulation=200", "target_loss=0.9"}, listener);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const double kernels = 200 * 6 + 199 * 2 + 2; // forward and backward, adding to the first's gradients, update
        const double seconds = findFigure(run->measurement.figures, "step_time")->number();
        QVERIFY2(isNear(seconds, kernels * fakeGpu().launchSeconds, 0.01),
                 qPrintable(QString::number(seconds / fakeGpu().launchSeconds)));
        QVERIFY2(fakeGpu().mostBehindBlock > 10 && fakeGpu().mostBehindBlock <= 1000,
                 qPrintable(QString::number(fakeGpu().mostBehindBlock)));
    }

    void trainingMeetsTheClosedForm()
    {
        test::Listener listener;
        const auto [run, predicted] = measureBatches({"model=mlp:32,8", "batch=8,32,128", "target_loss=0.2"}, listener);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        for (const char* key :
             {"throughput", "noise_scale", "critical_batch", "examples_to_target", "steps_to_target", "step_time"})
            QVERIFY2(findFigure(run->measurement.figures, key)
                         && findFigure(run->measurement.figures, key)->number() > 0,
                     key);
        const auto &measured = run->measurement.findSeries("examples_to_target")->y,
                   &expected = predicted.findSeries("examples_to_target")->y;
        for (std::size_t i = 0; i < expected.size(); ++i)
            QVERIFY2(isNear(measured[i], expected[i], 0.25),
                     qPrintable(QString("%1 %2").arg(measured[i]).arg(expected[i])));
        // The noise where training ended, against the closed form after as many steps.
        NoisyRegression problem(32, 8);
        for (double step = 0; step < findFigure(run->measurement.figures, "steps_to_target")->number(); ++step)
            problem.step(8);
        const Json& noise = run->measurement.detail.at("noise");
        const double error = noise.at("standard_error").get<double>();
        QVERIFY2(std::abs(noise.at("corrected").get<double>() - problem.simpleNoise())
                     < 4 * error + 0.1 * problem.simpleNoise(),
                 qPrintable(QString("%1 ± %2, not %3")
                                .arg(noise.at("corrected").get<double>())
                                .arg(error)
                                .arg(problem.simpleNoise())));
        QVERIFY(noise.at("simple").get<double>() < noise.at("corrected").get<double>());
    }

    void aDeepChainIsTrainedByProbes()
    {
        test::Listener listener;
        const auto run = measureBatches({"model=mlp:16,24,4", "batch=16,128", "target_loss=0.7"}, listener).run;
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const auto& examples = run->measurement.findSeries("examples_to_target")->y;
        QVERIFY(std::isfinite(examples[0]) && std::isfinite(examples[1]));
        QVERIFY2(examples[0] / 16 > examples[1] / 128, "a larger batch needs fewer steps");
    }

    void theLibraryGetsTheWorkspace()
    {
        fakeGpu().hasLibrary = true;
        test::Listener listener;
        const auto run = measureBatches({"model=mlp:12,24,4", "batch=4,16", "target_loss=0.9"}, listener).run;
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const auto products = run->provenance.method.at("products").get<std::string>();
        QVERIFY2(products.find("workspace") != std::string::npos, products.c_str());
        QVERIFY(run->provenance.machine.contains("cublaslt"));
        QCOMPARE(listener.count("cublaslt.missing"), 0);
        QCOMPARE(fakeGpu().largestWorkspace, std::uint64_t(32) << 20); // PyTorch's on compute capability 9.0
    }

    void aWrongProductIsFound()
    {
        // Of the small chain that is checked: a target, each layer's forward, a gradient below, gradients of weights,
        // a single example's, an accumulated one.
        for (const int when : {6, 7, 8, 9, 10, 11, 15, 50}) {
            fakeGpu() = FakeGpu{};
            fakeGpu().productsUntilWrong = when;
            test::Listener listener;
            const auto run = measureBatches({"model=mlp:64,16", "batch=16,64"}, listener).run;
            QVERIFY2(!run.has_value(), qPrintable(QString::number(when)));
            QCOMPARE(run.error().code, std::string("check.failed"));
            QVERIFY2(run.error().message.find("training step") != std::string::npos, run.error().message.c_str());
            QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
        }
    }

    void aWrongKernelIsNotTimed()
    {
        fakeGpu().wrongKernel = true;
        test::Listener listener;
        const auto run = measureBatches({"model=mlp:64,16", "batch=16,64"}, listener).run;
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("check.failed"));
        QCOMPARE(fakeGpu().launches, 0);
    }

    void aStepThatDoesNotFitSaysWhatItNeeds()
    {
        fakeGpu().memoryBytes = 400 << 20;
        test::Listener listener;
        const auto run = measureBatches({"model=mlp:64,16", "batch=16,1048576", "target_loss=0.9"}, listener).run;
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str()); // the other point stands
        QVERIFY(std::isnan(run->measurement.findSeries("throughput")->y[1]));
        const auto reason = run->measurement.detail.at("points").at(1).at("reason").get<std::string>();
        QVERIFY2(reason.find("1048576 examples takes") != std::string::npos
                     && reason.find("available") != std::string::npos,
                 reason.c_str());
        QCOMPARE(listener.count("run.memory"), 1);
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
    }

    void whatIsNotTrainedHereSaysWhy()
    {
        test::Listener listener;
        for (const auto& [given, place] :
             {std::pair("model=params:7e9", "model"), std::pair("precision=bf16", "precision"),
              std::pair("target_loss=0.05", "target_loss")}) {
            const auto run = measureBatches({given}, listener).run;
            QVERIFY2(!run.has_value(), given);
            QVERIFY2(run.error().code == "run.skipped", run.error().text().c_str());
            QCOMPARE(run.error().place, std::string(place));
            QVERIFY(!run.error().hint.empty());
        }
        QCOMPARE(fakeGpu().launches, 0); // the GPU was not warmed up for that
    }

    void stopKeepsThePoints()
    {
        test::Listener listener;
        listener.stopAfter = 600; // questions whether to stop
        const auto run = measureBatches({"model=mlp:64,16", "batch=16,64,256"}, listener).run;
        QVERIFY(!run.has_value() || !run->complete);
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
    }

    void aStuckStreamIsAnError()
    {
        fakeGpu().blockTimesOut = true;
        test::Listener listener;
        const auto run = measureBatches({"model=mlp:64,16", "batch=16,64"}, listener).run;
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.failed"));
    }
};

QTEST_APPLESS_MAIN(TestCudaBatchSize)
#include "tst_cuda_batch_size.moc"
