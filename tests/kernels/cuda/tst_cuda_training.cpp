// SPDX-License-Identifier: Apache-2.0
// `precision`, operation=train, on a GPU of the test's own making (fake_gpu.h): every thread of its passes and
// its products really runs, on the host, and takes the time of the fake's model; what comes out is held
// against the same run on the host. What a real GPU computes is not tested here.
#include "kernels/cuda/module.h"
#include "kernels/cuda/training-memory/amp.h"

#include "core/device/catalogue.h"
#include "core/experiments/precision/precision.h"
#include "kernels/host/training-memory/amp_device.h"
#include "tests/kernels/cuda/fake_backend.h"
#include "tests/support/listener.h"

#include <QtTest>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

struct Measured
{
    Result<MeasuredRun> run;
    Prediction predicted;

    double figure(const char* key) const
    {
        const Figure* found = run ? findFigure(run->measurement.figures, key) : nullptr;
        return found != nullptr ? found->number() : NAN;
    }
    std::vector<double> series(const char* key) const
    {
        const Series* found = run ? run->measurement.findSeries(key) : nullptr;
        return found != nullptr ? found->y : std::vector<double>();
    }
};

/// A small network of sizes that no vector divides: 37 inputs, 50 hidden, batches of 43.
Parameters parametersOf(std::vector<std::string> given)
{
    given.insert(given.begin(), "operation=train");
    for (const std::string standard : {"m=43", "n=50", "k=37"}) {
        const auto isGiven = [&](const std::string& one) { return one.substr(0, 2) == standard.substr(0, 2); };
        if (std::ranges::none_of(given, isGiven))
            given.push_back(standard);
    }
    return resolve((*findExperiment("precision"))->schema(), given).value();
}

Measured measureTraining(const std::vector<std::string>& given, RunSink& sink)
{
    const std::unique_ptr<Backend> gpu = backend();
    const auto experiment = findExperiment("precision");
    const Parameters parameters = parametersOf(given);
    const BackendDevice device = gpu->devices().front();
    const auto predicted = (*experiment)->predict(device.device, parameters);
    return {gpu->measure(**experiment, device, parameters, sink), predicted ? *predicted : Prediction()};
}

/// Has heard enough of a self-test when attention's turn comes.
class ShortListener : public test::Listener
{
public:
    void progress(int, int, const std::string& label) override { stop = stop || label == "attention"; }
};

Result<MeasuredRun> measureOnHost(const std::vector<std::string>& given)
{
    const Device device = findDevice("cpu").value();
    test::Listener sink;
    host::HostSession session(device, sink);
    return host::measureTraining(session, **findExperiment("precision"), parametersOf(given));
}

} // namespace

static cuda::ElementFormat elementFormat(Format format)
{
    return format == Format::Fp32 ? cuda::ElementFormat::Float32
        : format == Format::Fp16  ? cuda::ElementFormat::Float16
                                  : cuda::ElementFormat::BFloat16;
}

class TestCudaTraining : public QObject
{
    Q_OBJECT

private slots:
    void init() { fakeGpu() = FakeGpu{}; }

    void everyThreadDoesItsPart_data()
    {
        QTest::addColumn<int>("format");
        for (const Format format : {Format::Fp32, Format::Fp16, Format::Bf16})
            QTest::addRow("%s", numberFormat(format).key.data()) << int(format);
    }
    void everyThreadDoesItsPart()
    {
        QFETCH(int, format);
        const cuda::KernelCheck check = cuda::checkAmpElements(elementFormat(Format(format)));
        QVERIFY2(check.passed, check.detail);
        fakeGpu().wrongKernel = true;
        const cuda::KernelCheck wrong = cuda::checkAmpElements(elementFormat(Format(format)));
        QVERIFY(!wrong.passed);
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
    }

    void aPassThatIsWrongIsNotTimed()
    {
        fakeGpu().wrongKernel = true;
        test::Listener listener;
        const auto run = measureTraining({"format=bf16", "steps=5"}, listener).run;
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("check.failed"));
    }

    void memoryIsThatOfTheStepSimulator_data() { everyThreadDoesItsPart_data(); }

    void memoryIsThatOfTheStepSimulator()
    {
        QFETCH(int, format);
        test::Listener listener;
        const Measured measured =
            measureTraining({"format=" + std::string(numberFormat(Format(format)).key), "steps=4"}, listener);
        QVERIFY2(measured.run.has_value(), measured.run ? "" : measured.run.error().text().c_str());
        for (const char* key : {"peak_memory", "fp32_peak_memory"}) {
            QVERIFY(findFigure(measured.predicted.figures, key) != nullptr);
            QCOMPARE(measured.figure(key), findFigure(measured.predicted.figures, key)->number());
        }
        QVERIFY(measured.run->complete);
        QCOMPARE(measured.run->provenance.machine.at("backend").get<std::string>(), std::string("cuda"));
        QCOMPARE(listener.count("cublaslt.missing"), 1);
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
    }

    void lossesAreThoseOfTheHost_data() { everyThreadDoesItsPart_data(); }

    void lossesAreThoseOfTheHost()
    {
        QFETCH(int, format);
        const std::string key(numberFormat(Format(format)).key);
        const std::vector<std::string> given{"format=" + key, "steps=60", "loss_scale=1024"};
        test::Listener listener;
        const Measured measured = measureTraining(given, listener);
        QVERIFY2(measured.run.has_value(), measured.run ? "" : measured.run.error().text().c_str());
        const auto host = measureOnHost(given);
        QVERIFY2(host.has_value(), host ? "" : host.error().text().c_str());
        std::vector<std::string> curves{"loss_fp32"};
        if (Format(format) != Format::Fp32)
            curves.push_back("loss_" + key);
        if (Format(format) == Format::Fp16)
            curves.push_back("loss_fp16_unscaled");
        for (const std::string& curve : curves) {
            const std::vector<double> ours = measured.series(curve.c_str()),
                                      its = host->measurement.findSeries(curve)->y;
            QCOMPARE(int(ours.size()), 60);
            // Sums in another order; a short format rounds what differs in the last place up or down.
            const double tolerance = curve == "loss_fp32" ? 1e-4 : curve == "loss_bf16" ? 0.05 : 0.01;
            for (std::size_t i = 0; i < ours.size(); ++i)
                QVERIFY2(std::fabs(ours[i] - its[i]) <= tolerance * its[i],
                         qPrintable(QString("%1, step %2: %3, on the host %4")
                                        .arg(curve.c_str())
                                        .arg(i + 1)
                                        .arg(ours[i])
                                        .arg(its[i])));
            QVERIFY(ours.back() < ours.front()); // it learns
        }
    }

    void gradientsAreCountedAsOnTheHost()
    {
        const std::vector<std::string> given{"format=fp16", "steps=30", "loss_scale=1024"};
        test::Listener listener;
        const Measured measured = measureTraining(given, listener);
        QVERIFY2(measured.run.has_value(), measured.run ? "" : measured.run.error().text().c_str());
        const auto host = measureOnHost(given);
        const Json &ours = measured.run->measurement.detail, &its = host->measurement.detail;
        QCOMPARE(ours.at("gradients_counted").get<double>(), its.at("gradients_counted").get<double>());
        const double parameters = 37 * 50 + 50 * 50 + 50 * 16, passed = 43 * (16 + 50 + 50);
        QCOMPARE(ours.at("gradients_counted").get<double>(), 10 * (parameters + passed));
        for (const auto& [key, tolerance] : {std::pair("gradient_median", 1e-2), std::pair("gradient_spread", 1e-2),
                                             std::pair("largest_gradient", 1e-3)}) {
            const double expected = findFigure(host->measurement.figures, key)->number();
            QVERIFY2(std::fabs(measured.figure(key) - expected) <= tolerance * expected, key);
        }
        QVERIFY(measured.figure("unscaled_underflow_share") > 0);
        QVERIFY(measured.figure("unscaled_underflow_share") > measured.figure("underflow_share"));
    }

    void overflowSkipsTheStepAndHalvesTheScale()
    {
        test::Listener listener;
        const Measured measured =
            measureTraining({"format=fp16", "steps=40", "loss_scale=1073741824", "growth_interval=10"}, listener);
        QVERIFY2(measured.run.has_value(), measured.run ? "" : measured.run.error().text().c_str());
        const std::vector<double> scale = measured.series("scale");
        const Json skipped = measured.run->measurement.detail.at("skipped_steps");
        QVERIFY2(skipped.size() > 5, skipped.dump().c_str());
        QCOMPARE(measured.figure("skipped_steps"), double(skipped.size()));
        QCOMPARE(scale.front(), 0x1p30);
        int inRow = 0, grown = 0;
        for (std::size_t i = 0; i + 1 < scale.size(); ++i) {
            const bool isSkipped = std::ranges::find(skipped, Json(i + 1)) != skipped.end();
            inRow = isSkipped ? 0 : inRow + 1;
            const bool grows = inRow == 10;
            QCOMPARE(scale[i + 1], isSkipped ? scale[i] / 2 : grows ? 2 * scale[i] : scale[i]);
            grown += grows;
            inRow = grows ? 0 : inRow;
        }
        QVERIFY(grown > 0);
        for (const double loss : measured.series("loss_fp16"))
            QVERIFY(std::isfinite(loss)); // a step with infinities changed nothing
    }

    /// The fake has no noise: every step takes its launches and its bytes, counted or not.
    void timesAreThoseOfTheGpu()
    {
        test::Listener listener;
        const Measured measured = measureTraining({"format=fp16", "steps=30"}, listener);
        QVERIFY2(measured.run.has_value(), measured.run ? "" : measured.run.error().text().c_str());
        // 8 products, 3 biases, 3 passes of the loss, 2 ReLUs backward, 3 sums over rows, AdamW; mixed precision
        // casts 6 parameters, the batch, the loss there and back and 6 gradients, and unscales.
        const double launch = fakeGpu().launchSeconds;
        for (const auto& [key, kernels] : {std::pair("fp32_step_time", 20), std::pair("step_time", 36)})
            QVERIFY2(measured.figure(key) > kernels * launch && measured.figure(key) < (kernels + 0.2) * launch,
                     qPrintable(QString::number(measured.figure(key) / launch)));
        const Json samples = measured.run->provenance.samples;
        for (const Json& course : samples) {
            const std::vector<double> steps = course.at("values").get<std::vector<double>>();
            QCOMPARE(int(steps.size()), 30);
            if (course.at("key") == "step_time_fp32") {
                for (const double step : steps)
                    QVERIFY(std::fabs(step - steps.front()) < 1e-3 * steps.front());
            }
        }
    }

    void aProductThatIsOffByOneIsFound()
    {
        fakeGpu().productsUntilWrong = 4; // among those of the small network that is checked
        test::Listener listener;
        const auto run = measureTraining({"format=fp16", "steps=5"}, listener).run;
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("check.failed"));
        QVERIFY2(run.error().message.find("training in FP32") != std::string::npos, run.error().message.c_str());
    }

    void whatTheLibraryLacksWeMultiply()
    {
        fakeGpu().hasLibrary = true;
        test::Listener listener;
        const Measured all = measureTraining({"format=bf16", "steps=3"}, listener);
        QVERIFY2(all.run.has_value(), all.run ? "" : all.run.error().text().c_str());
        const Json method = all.run->provenance.method;
        QCOMPARE(method.at("products").at("bf16").get<std::string>(), std::string("a library of the test's own"));
        QVERIFY(!method.contains("multiplied_by_our_kernels"));
        QCOMPARE(all.run->provenance.machine.at("cublaslt").at("version").get<std::string>(), std::string("13.0.2"));
        QCOMPARE(listener.count("cublaslt.missing"), 0);
        fakeGpu().libraryLacksOdd = true; // 43 × 50 × 37
        const Measured most = measureTraining({"format=bf16", "steps=3"}, listener);
        QVERIFY2(most.run.has_value(), most.run ? "" : most.run.error().text().c_str());
        const Json ours = most.run->provenance.method.at("multiplied_by_our_kernels");
        QVERIFY2(ours.dump().find("43 × 50 × 37") != std::string::npos, ours.dump().c_str());
        QCOMPARE(most.series("loss_bf16"), all.series("loss_bf16"));
    }

    void aNetworkThatDoesNotFitSaysWhatItNeeds()
    {
        fakeGpu().memoryBytes = 64 << 20;
        test::Listener listener;
        const auto run = measureTraining({"format=bf16", "n=4096"}, listener).run; // 16.8 million weights
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.memory"));
        QVERIFY2(run.error().message.find("available") != std::string::npos, run.error().message.c_str());
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
    }

    void aGpuWithoutTheFormatIsSkipped()
    {
        test::Listener listener;
        fakeGpu().computeCapability = 75;
        const auto turing = measureTraining({"format=bf16"}, listener).run;
        QVERIFY(!turing.has_value());
        QCOMPARE(turing.error().code, std::string("run.skipped"));
        QVERIFY2(turing.error().message.find("BF16") != std::string::npos, turing.error().message.c_str());
        const auto bytes = measureTraining({"format=fp8-e4m3"}, listener).run;
        QVERIFY(!bytes.has_value());
        QCOMPARE(bytes.error().code, std::string("run.skipped"));
    }

    void aSweepIsARunOfEachValue()
    {
        test::Listener listener;
        const Measured measured =
            measureTraining({"format=fp16", "steps=12", "loss_scale=1,65536,1099511627776"}, listener);
        QVERIFY2(measured.run.has_value(), measured.run ? "" : measured.run.error().text().c_str());
        const Series* skips = measured.run->measurement.findSeries("step_time");
        QVERIFY(skips != nullptr && skips->y.size() == 3);
        const Json points = measured.run->measurement.detail.at("points");
        QVERIFY(points[0].at("skipped_steps").empty());
        QCOMPARE(int(points[2].at("skipped_steps").size()), 12); // 2^40 is not halved in twelve steps
        QCOMPARE(int(listener.points.size()), 3);
    }

    void stopEndsTheRun()
    {
        test::Listener listener;
        listener.stopAfter = 30;
        const auto run = measureTraining({"format=fp16"}, listener).run;
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.cancelled"));
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
        listener.stopAfter = 300; // later: what was trained is a result
        const auto part = measureTraining({"format=fp16", "steps=500"}, listener).run;
        QVERIFY2(part.has_value(), part ? "" : part.error().text().c_str());
        QVERIFY(!part->complete);
        QVERIFY(part->measurement.findSeries("loss_fp16")->y.size() > 2);
    }

    void theSelftestTrains()
    {
        fakeGpu().hasLibrary = true;
        const std::unique_ptr<Backend> gpu = backend();
        ShortListener listener;
        int steps = 0, passes = 0;
        for (const SelftestLine& line : gpu->selftest(gpu->devices().front(), listener)) {
            const bool isStep = line.kernel.starts_with("training step in"),
                       isPass = line.kernel.starts_with("passes of");
            steps += isStep;
            passes += isPass;
            if (isStep || isPass)
                QVERIFY2(line.passed, (line.kernel + ": " + line.detail).c_str());
        }
        QCOMPARE(steps, 6); // three formats, by the library and by ours
        QCOMPARE(passes, 3);
    }
};

QTEST_GUILESS_MAIN(TestCudaTraining)
#include "tst_cuda_training.moc"
