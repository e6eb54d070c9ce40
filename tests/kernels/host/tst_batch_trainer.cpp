// SPDX-License-Identifier: Apache-2.0
// The trained chain against the step simulator's allocations, against the closed form of its noise, and against
// itself: the same examples in one batch and in many.
#include "core/device/catalogue.h"
#include "core/experiments/batch-size/batch_size.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/trace/allocator_replay.h"
#include "core/training/noisy_regression.h"
#include "kernels/host/batch-size/batch_device.h"
#include "kernels/host/batch-size/batch_size.h"
#include "kernels/programs/batch-size/batch_course.h"
#include "tests/support/listener.h"

#include <QtTest>

#include <cmath>

using namespace memscape;
using namespace memscape::host;

namespace {

class Fixture
{
public:
    Device device = findDevice("cpu").value();
    test::Listener sink;
    HostSession session{device, sink};
    BatchDeviceFactory devices = batchDevices(session, bestProduct());
};

Parameters with(const std::vector<std::string>& assignments)
{
    auto parameters = resolve((*findExperiment("batch-size"))->schema(), assignments);
    if (!parameters)
        qFatal("%s", parameters.error().text().c_str());
    return *parameters;
}

} // namespace

class TestBatchTrainer : public QObject
{
    Q_OBJECT

private slots:
    void gradientsAndNormsAreRight()
    {
        Fixture fixture;
        for (const ProductKernel& kernel : productKernels()) {
            const auto check = checkBatchTrainer(batchDevices(fixture.session, kernel));
            QVERIFY2(check && check->passed(), check ? check->text().c_str() : check.error().text().c_str());
        }
    }

    void everyAllocationIsTheSimulators_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<int>("batch");
        QTest::addColumn<int>("accumulation");
        QTest::addColumn<QString>("device"); // whose allocations; the host runs them
        QTest::newRow("one layer") << "mlp:256,64" << 32 << 1 << "cpu";
        QTest::newRow("one layer, accumulated") << "mlp:256,64" << 8 << 4 << "cpu";
        QTest::newRow("three layers") << "mlp:100,300,200,10" << 17 << 1 << "cpu";
        QTest::newRow("three layers, accumulated") << "mlp:100,300,200,10" << 17 << 3 << "cpu";
        QTest::newRow("large: blocks with remainders") << "mlp:1200,1500,900" << 700 << 2 << "cpu";
        QTest::newRow("a GPU's workspaces, one layer") << "mlp:256,64" << 32 << 1 << "nvidia-h200";
        QTest::newRow("a GPU's workspaces, accumulated") << "mlp:100,300,200,10" << 17 << 3 << "nvidia-h200";
        QTest::newRow("smaller workspaces") << "mlp:100,300,10" << 17 << 1 << "nvidia-a100-40gb";
    }

    void everyAllocationIsTheSimulators()
    {
        QFETCH(QString, model);
        QFETCH(int, batch);
        QFETCH(int, accumulation);
        QFETCH(QString, device);
        Fixture fixture;
        const auto described = findDevice(device.toStdString());
        QVERIFY(described);
        const Parameters parameters = with({"model=" + model.toStdString(), "batch=" + std::to_string(batch),
                                            "accumulation=" + std::to_string(accumulation)});
        const Device placed = withOwnKernels(*described); // PyTorch's kernels on a CPU have blocks of their own
        const auto answer = answerTraining(placed, trainingParameters(parameters));
        QVERIFY(answer);
        const std::int64_t workspace = answer->setup.step.blasWorkspace;
        QCOMPARE(workspace > 0, described->isGpu());
        const auto trainer =
            BatchTrainer::make(fixture.devices, {answer->model.mlpSizes, batch, accumulation, workspace});
        QVERIFY(trainer);
        const auto &ran = (*trainer)->trace().events(), &simulated = answer->simulation.trace.events();
        std::size_t i = 0;
        for (const Event& event : simulated) {
            if (event.phase == Phase::ZeroGrad || event.phase == Phase::Optimizer)
                break;
            QVERIFY(i < ran.size());
            QVERIFY2(ran[i].change() == event.change() && ran[i].phase == event.phase
                         && ran[i].microBatch == event.microBatch,
                     qPrintable(QString("event %1: %2 B, not %3").arg(i).arg(ran[i].change()).arg(event.change())));
            ++i;
        }
        QVERIFY(i > 10);
        QCOMPARE(replayTrace((*trainer)->trace(), answer->setup.allocator).statistics.peak.allocated,
                 answer->simulation.allocatedBytes());
    }

    void accumulatedGradientsAreTheBatchs()
    {
        Fixture fixture;
        const std::vector<std::int64_t> sizes{64, 96, 32};
        const auto whole = BatchTrainer::make(fixture.devices, {sizes, 48, 1});
        const auto parts = BatchTrainer::make(fixture.devices, {sizes, 6, 8});
        QVERIFY(whole && parts);
        for (const auto* trainer : {&*whole, &*parts}) {
            QVERIFY((*trainer)->load(1000));
            for (int step = 0; step < 5; ++step)
                QVERIFY((*trainer)->step(2));
        }
        const auto a = (*whole)->parameters().value(), b = (*parts)->parameters().value();
        double apart = 0, moved = 0;
        const auto start = BatchTrainer::make(fixture.devices, {sizes, 1, 1});
        const auto before = (*start)->parameters().value();
        for (std::size_t i = 0; i < a.size(); ++i) {
            apart = std::max(apart, double(std::fabs(a[i] - b[i])));
            moved = std::max(moved, double(std::fabs(a[i] - before[i])));
        }
        QVERIFY2(apart < 1e-4 * moved && moved > 0.01, qPrintable(QString("%1 of %2").arg(apart).arg(moved)));
    }

    void measuredNoiseIsTheClosedForms()
    {
        // At the start, weights zero: the closed form against real gradients of the chain.
        Fixture fixture;
        const auto trainer = BatchTrainer::make(fixture.devices, {{128, 32}, 512, 1});
        QVERIFY(trainer);
        std::vector<GradientNoise> measurements;
        for (int i = 0; i < 40; ++i) {
            QVERIFY((*trainer)->load(std::uint64_t(i) * 512));
            measurements.push_back((*trainer)->gradients(true).value().noise);
        }
        const NoiseScale scale = noiseScaleOf(measurements);
        const NoisyRegression problem(128, 32);
        QVERIFY2(
            std::abs(scale.corrected - problem.simpleNoise()) < 4 * scale.standardError,
            qPrintable(
                QString("%1 ± %2, not %3").arg(scale.corrected).arg(scale.standardError).arg(problem.simpleNoise())));
        QVERIFY(scale.standardError < 0.1 * scale.corrected);
        // The same of two batch sizes: mean gradients of 512 and of the 20480 together.
        QVERIFY(std::abs((*trainer)->risk().value() - problem.loss()) < 1e-5);
    }

    void trainingTakesThePredictedSteps_data()
    {
        QTest::addColumn<int>("batch");
        for (const int batch : {8, 64, 512})
            QTest::newRow(qPrintable(QString::number(batch))) << batch;
    }

    void trainingTakesThePredictedSteps()
    {
        QFETCH(int, batch);
        Fixture fixture;
        const auto result = trainTo(fixture.devices, fixture.session.clock(), {{64, 16}, batch, 0.2, 200000, 30, true});
        QVERIFY(result && result->isReached);
        QCOMPARE(result->noise.size(), std::size_t(noiseMeasurements));
        const double expected = regressionSteps(64, 16, 0.2, {double(batch)}).front().steps;
        QVERIFY2(std::abs(result->steps - expected) < 0.15 * expected + 1.5,
                 qPrintable(QString("%1 steps, not %2").arg(result->steps).arg(expected)));
    }

    void aDeeperChainLearnsToo()
    {
        Fixture fixture;
        const auto small = trainTo(fixture.devices, fixture.session.clock(), {{32, 64, 8}, 16, 0.6, 200000, 30, false});
        const auto large =
            trainTo(fixture.devices, fixture.session.clock(), {{32, 64, 8}, 256, 0.6, 200000, 30, false});
        QVERIFY2(small && small->isReached, small ? small->stop.c_str() : small.error().text().c_str());
        QVERIFY2(large && large->isReached, large ? large->stop.c_str() : large.error().text().c_str());
        QVERIFY2(small->steps > large->steps, qPrintable(QString("%1 %2").arg(small->steps).arg(large->steps)));
        const auto never = trainTo(fixture.devices, fixture.session.clock(), {{32, 64, 8}, 16, 0.01, 50, 30, false});
        QVERIFY(never && !never->isReached);
        QVERIFY(never->stop.find("50 steps") != std::string::npos);
    }

    void aMeasurementHasThePredictionsFigures()
    {
        Fixture fixture;
        const Experiment& experiment = **findExperiment("batch-size");
        const Parameters parameters = with({"model=mlp:64,16", "batch=16,64,256"});
        const auto run = measureBatchSize(fixture.session, experiment, parameters);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const auto predicted = experiment.predict(fixture.device, parameters);
        QVERIFY(predicted);
        for (const char* key :
             {"peak_allocated", "throughput", "noise_scale", "critical_batch", "examples_to_target", "step_time"})
            QVERIFY2(findFigure(run->measurement.figures, key)
                         && findFigure(run->measurement.figures, key)->number() > 0,
                     key);
        QCOMPARE(run->measurement.findSeries("memory")->y, predicted->findSeries("memory")->y); // to the byte
        const auto &measured = run->measurement.findSeries("examples_to_target")->y,
                   &expected = predicted->findSeries("examples_to_target")->y;
        for (std::size_t i = 0; i < expected.size(); ++i)
            QVERIFY2(std::abs(measured[i] / expected[i] - 1) < 0.25,
                     qPrintable(QString("%1 %2").arg(measured[i]).arg(expected[i])));
        const Json& detail = run->measurement.detail;
        QVERIFY(detail["accumulation"]["same_within_rounding"].get<bool>());
        QVERIFY(detail["noise"]["simple"].get<double>() < detail["noise"]["corrected"].get<double>());
        QVERIFY(run->provenance.quality.has_value());
    }

    void whatIsNotTrainedHereSaysWhy_data()
    {
        QTest::addColumn<QString>("assignment");
        QTest::addColumn<QString>("place");
        QTest::newRow("a language model") << "model=gpt2;sequence=64"
                                          << "model";
        QTest::newRow("half precision") << "precision=bf16"
                                        << "precision";
        QTest::newRow("another optimizer") << "optimizer=adamw"
                                           << "optimizer";
        QTest::newRow("replicas") << "data_parallel=2"
                                  << "data_parallel";
        QTest::newRow("checkpointing") << "checkpointing=block"
                                       << "checkpointing";
        QTest::newRow("a target that is never reached") << "target_loss=0.05"
                                                        << "target_loss";
    }

    void whatIsNotTrainedHereSaysWhy()
    {
        QFETCH(QString, assignment);
        QFETCH(QString, place);
        Fixture fixture;
        std::vector<std::string> texts;
        for (const QString& text : assignment.split(';'))
            texts.push_back(text.toStdString());
        const auto run = measureBatchSize(fixture.session, **findExperiment("batch-size"), with(texts));
        QVERIFY(!run);
        QCOMPARE(run.error().code, std::string("run.skipped"));
        QCOMPARE(QString::fromStdString(run.error().place), place);
        QVERIFY(!run.error().hint.empty());
    }
};

QTEST_GUILESS_MAIN(TestBatchTrainer)
#include "tst_batch_trainer.moc"
