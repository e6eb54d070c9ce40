// SPDX-License-Identifier: Apache-2.0
// Training steps of the small classifier: gradients against differences of a loss in double, memory
// against the step simulator, the scaler at work, a loss that falls.
#include "core/device/catalogue.h"
#include "kernels/host/training-memory/amp_device.h"
#include "tests/support/listener.h"

#include <QtTest>

#include <cmath>

using namespace memscape;
using namespace memscape::host;

namespace {

struct Bench
{
    Device device = findDevice("cpu").value();
    test::Listener sink;
    HostSession session{device, sink};

    std::unique_ptr<AmpTrainer> trainer(const TrainedNetwork& network, Format format,
                                        std::optional<LossScalerOptions> scaler = {})
    {
        auto made =
            makeTrainer(device, hostAmpDevices(session, gemmKernels(format).front()), {network, format, scaler});
        if (!made)
            qFatal("%s", made.error().text().c_str());
        return std::move(*made);
    }
};

constexpr TrainedNetwork network{64, 48, 96};

} // namespace

class TestAmpTrainer : public QObject
{
    Q_OBJECT

private slots:
    void gradientsAreThoseOfTheLoss_data()
    {
        QTest::addColumn<int>("format");
        for (const Format format : {Format::Fp32, Format::Bf16, Format::Fp16})
            QTest::addRow("%s", numberFormat(format).key.data()) << int(format);
    }
    void gradientsAreThoseOfTheLoss()
    {
        QFETCH(int, format);
        Bench bench;
        for (const GemmKernel& kernel : gemmKernels(Format(format))) {
            const auto check = checkTrainer(bench.device, hostAmpDevices(bench.session, kernel), Format(format));
            QVERIFY2(check.has_value(), check ? "" : check.error().text().c_str());
            QVERIFY2(check->passed(), (kernel.name + ": " + check->text()).c_str());
            QVERIFY(check->compared() > 300);
        }
    }

    void memoryIsThatOfTheStepSimulator_data() { gradientsAreThoseOfTheLoss_data(); }
    void memoryIsThatOfTheStepSimulator()
    {
        QFETCH(int, format);
        Bench bench;
        for (const TrainedNetwork& shape : {network, TrainedNetwork{512, 64, 32}, TrainedNetwork{8, 300, 200}}) {
            const auto trainer = bench.trainer(shape, Format(format));
            for (std::uint64_t i = 0; i < 2; ++i)
                QVERIFY(trainer->step(i, nullptr).has_value());
            const auto predicted = recipeStep(bench.device, shape, trainingRecipe(Format(format)).value());
            QCOMPARE(trainer->highWater(), predicted->peak);
        }
    }

    void theSameSeedGivesTheSameLosses()
    {
        Bench bench;
        const auto first = bench.trainer(network, Format::Bf16), second = bench.trainer(network, Format::Bf16);
        for (std::uint64_t i = 0; i < 5; ++i)
            QCOMPARE(first->step(i, nullptr)->loss, second->step(i, nullptr)->loss);
    }

    void theLossFalls_data() { gradientsAreThoseOfTheLoss_data(); }
    void theLossFalls()
    {
        QFETCH(int, format);
        Bench bench;
        std::optional<LossScalerOptions> scaler;
        if (Format(format) == Format::Fp16)
            scaler.emplace();
        const auto trainer = bench.trainer(network, Format(format), scaler);
        std::vector<double> losses;
        for (std::uint64_t i = 0; i < 300; ++i)
            losses.push_back(trainer->step(i, nullptr)->loss);
        QVERIFY(std::fabs(losses.front() - std::log(16.0)) < 0.2); // untrained
        double last = 0;
        for (std::size_t i = 280; i < 300; ++i)
            last += losses[i] / 20;
        QVERIFY2(last < 0.6 * losses.front(), qPrintable(QString::number(last)));
    }

    void overflowSkipsTheStepAndHalvesTheScale()
    {
        Bench bench;
        LossScalerOptions options;
        options.initialScale = 0x1p30F;
        const auto trainer = bench.trainer(network, Format::Fp16, options);
        const std::vector<float> before = trainer->parameters().value();
        float scale = options.initialScale;
        int skipped = 0;
        for (; skipped < 40; ++skipped) {
            const auto step = trainer->step(0, nullptr);
            QCOMPARE(step->scale, scale);
            if (!step->isSkipped)
                break;
            QVERIFY(trainer->parameters().value() == before); // nothing moved
            scale /= 2;
        }
        QVERIFY2(skipped > 5 && skipped < 30, qPrintable(QString::number(skipped)));
        QVERIFY(trainer->parameters().value() != before);
    }

    void theScaleGrows()
    {
        Bench bench;
        const auto trainer = bench.trainer(network, Format::Fp16, LossScalerOptions{8, 2, 0.5, 3});
        std::vector<float> scales;
        for (int i = 0; i < 7; ++i)
            scales.push_back(trainer->step(0, nullptr)->scale);
        QCOMPARE(scales, (std::vector<float>{8, 8, 8, 16, 16, 16, 32}));
    }

    void gradientsAreCountedByMagnitude()
    {
        GradientCounter counter;
        const std::vector<float> gradients{0, 1, -1.5F, 0.25F, 3e-9F, INFINITY};
        counter.add(gradients, 1);
        QCOMPARE(counter.count(), 5.0);
        QCOMPARE(counter.largest(), 1.5);
        const MagnitudeHistogram bars = counter.histogram();
        QCOMPARE(bars.zeros, 0.2);
        QCOMPARE(bars.shares[std::size_t(0 - histogramFirst)], 0.4);
        QCOMPARE(bars.shares[std::size_t(-2 - histogramFirst)], 0.2);
        // What was multiplied by a scale is counted without it.
        GradientCounter scaled;
        scaled.add(std::vector<float>{4096}, 4096);
        QCOMPARE(scaled.histogram().shares[std::size_t(0 - histogramFirst)], 1.0);
    }

    void aRunAnswersWithFiguresAndCurves()
    {
        Bench bench;
        const Experiment& precision = **findExperiment("precision");
        const auto parameters =
            resolve(precision.schema(),
                    {"operation=train", "format=fp16", "m=64", "n=96", "k=48", "steps=40", "loss_scale=1048576"});
        const auto run = host::measureTraining(bench.session, precision, *parameters);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const Outcome predicted = precision.predict(bench.device, *parameters).value();
        const auto measured = [&](const char* key) {
            const Figure* figure = findFigure(run->measurement.figures, key);
            return figure ? figure->number() : NAN;
        };
        QCOMPARE(measured("peak_memory"), findFigure(predicted.figures, "peak_memory")->number());
        QCOMPARE(measured("fp32_peak_memory"), findFigure(predicted.figures, "fp32_peak_memory")->number());
        QVERIFY(measured("unscaled_underflow_share") > measured("underflow_share"));
        QVERIFY(measured("gradient_median") > 0 && measured("gradient_spread") > 0);
        for (const char* key : {"loss_fp32", "loss_fp16", "loss_fp16_unscaled", "scale"}) {
            const Series* series = run->measurement.findSeries(key);
            QVERIFY2(series && series->y.size() == 40, key);
        }
        for (const char* key : {"underflow_share", "subnormal_share", "overflow_share"}) {
            const Series* ours = run->measurement.findSeries(key);
            const Series* its = predicted.findSeries(key);
            QVERIFY2(ours && its && ours->x.values == its->x.values, key);
        }
    }
};

QTEST_GUILESS_MAIN(TestAmpTrainer)
#include "tst_amp_trainer.moc"
