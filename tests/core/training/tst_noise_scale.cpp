// SPDX-License-Identifier: Apache-2.0
// Gradient noise against what is drawn: normal vectors of known covariance, a regression that is trained for real
// many times over; the papers' own sentences about their formulas.
#include "core/training/batch_schedule.h"

#include <QtTest>

#include <cmath>
#include <random>

using namespace memscape;

namespace {

using Vector = std::vector<double>;

double squared(const Vector& values)
{
    double sum = 0;
    for (const double value : values)
        sum += value * value;
    return sum;
}

/// Per-example gradients around a mean, entry j with variance 1 + j.
struct NormalGradients
{
    Vector mean{3, -2, 1, 0.5, 0};
    std::mt19937_64 random{7};

    double trace() const { return 1 + 2 + 3 + 4 + 5; }
    Vector one()
    {
        Vector made = mean;
        for (std::size_t j = 0; j < made.size(); ++j)
            made[j] += std::normal_distribution<double>(0, std::sqrt(1.0 + double(j)))(random);
        return made;
    }
    GradientNoise measurement(int count)
    {
        Vector sum(mean.size());
        double norms = 0;
        for (int i = 0; i < count; ++i) {
            const Vector drawn = one();
            norms += squared(drawn);
            for (std::size_t j = 0; j < sum.size(); ++j)
                sum[j] += drawn[j] / count;
        }
        return noiseOfExamples(count, norms / count, squared(sum));
    }
};

/// The regression of noisy_regression.h trained as its header says, on drawn numbers: the mean loss after each step.
Vector trainedLosses(int inputs, int outputs, int batch, const Vector& rates, int runs)
{
    std::mt19937_64 random(11);
    std::uniform_real_distribution<double> uniform(-std::sqrt(3.0), std::sqrt(3.0));
    double sum = 0;
    for (int j = 0; j < inputs; ++j)
        sum += 1.0 / (j + 1);
    Vector losses(rates.size() + 1);
    for (int run = 0; run < runs; ++run) {
        Vector truth(std::size_t(inputs * outputs)), weights(truth.size()), bias(std::size_t(outputs), 0.0);
        for (double& one : truth)
            one = (random() % 2 ? 1 : -1) / std::sqrt(sum);
        for (std::size_t step = 0; step <= rates.size(); ++step) {
            double risk = 0;
            for (int k = 0; k < outputs; ++k) {
                for (int j = 0; j < inputs; ++j) {
                    const double off = weights[std::size_t(k * inputs + j)] - truth[std::size_t(k * inputs + j)];
                    risk += off * off / (j + 1);
                }
                risk += bias[std::size_t(k)] * bias[std::size_t(k)] + 0.1;
            }
            losses[step] += risk / outputs / runs;
            if (step == rates.size())
                break;
            Vector gradient(weights.size()), ofBias(bias.size());
            for (int i = 0; i < batch; ++i) {
                Vector x(std::size_t(inputs), 0.0);
                for (int j = 0; j < inputs; ++j)
                    x[std::size_t(j)] = uniform(random) / std::sqrt(j + 1.0);
                for (int k = 0; k < outputs; ++k) {
                    double residual = bias[std::size_t(k)] - std::sqrt(0.1) * uniform(random);
                    for (int j = 0; j < inputs; ++j)
                        residual += (weights[std::size_t(k * inputs + j)] - truth[std::size_t(k * inputs + j)])
                            * x[std::size_t(j)];
                    const double slope = 2 * residual / (batch * outputs); // of the mean over batch and outputs
                    for (int j = 0; j < inputs; ++j)
                        gradient[std::size_t(k * inputs + j)] += slope * x[std::size_t(j)];
                    ofBias[std::size_t(k)] += slope;
                }
            }
            for (std::size_t i = 0; i < weights.size(); ++i)
                weights[i] -= rates[step] * gradient[i];
            for (std::size_t k = 0; k < bias.size(); ++k)
                bias[k] -= rates[step] * ofBias[k];
        }
    }
    return losses;
}

} // namespace

class TestNoiseScale : public QObject
{
    Q_OBJECT

private slots:
    void theCorrectedEstimatorFindsTheNoise_data()
    {
        QTest::addColumn<int>("batch");
        QTest::newRow("2 examples") << 2;
        QTest::newRow("8 examples") << 8;
        QTest::newRow("64 examples") << 64;
    }

    void theCorrectedEstimatorFindsTheNoise()
    {
        QFETCH(int, batch);
        NormalGradients gradients;
        const double truth = gradients.trace() / squared(gradients.mean);
        std::vector<GradientNoise> measurements;
        for (int i = 0; i < 4000; ++i)
            measurements.push_back(gradients.measurement(batch));
        const NoiseScale scale = noiseScaleOf(measurements);
        QVERIFY(scale.standardError > 0 && scale.standardError < 0.1 * truth);
        QVERIFY2(std::abs(scale.corrected - truth) < 4 * scale.standardError,
                 qPrintable(QString("%1 ± %2, not %3").arg(scale.corrected).arg(scale.standardError).arg(truth)));
        // The simple one divides by |G|² + tr(Σ)/n.
        const double biased = gradients.trace() / (squared(gradients.mean) + gradients.trace() / batch);
        QVERIFY2(std::abs(scale.simple / biased - 1) < 0.05, qPrintable(QString::number(scale.simple)));
        QVERIFY(scale.simple < scale.corrected);
    }

    void theStandardErrorCoversTheTruth()
    {
        // Of 200 runs of 40 measurements each, about 95 in 100 lie within two standard errors.
        NormalGradients gradients;
        const double truth = gradients.trace() / squared(gradients.mean);
        int within = 0;
        for (int run = 0; run < 200; ++run) {
            std::vector<GradientNoise> measurements;
            for (int i = 0; i < 40; ++i)
                measurements.push_back(gradients.measurement(16));
            const NoiseScale scale = noiseScaleOf(measurements);
            within += std::abs(scale.corrected - truth) < 2 * scale.standardError;
        }
        QVERIFY2(within > 176 && within < 200, qPrintable(QString::number(within)));
    }

    void twoBatchSizesSayTheSameAsExamples()
    {
        // |G|² = 4, tr(Σ) = 30: expected squared norms 4 + 30/B.
        const GradientNoise noise = noiseOfTwoBatches(2, 4 + 15.0, 10, 4 + 3.0);
        QVERIFY(std::abs(noise.trace - 30) < 1e-12 && std::abs(noise.signal - 4) < 1e-12);
        QCOMPARE(noiseScaleOf(std::vector{noise}).corrected, noise.trace / noise.signal);
        QVERIFY(std::isnan(noiseScaleOf({}).corrected));
        QVERIFY(std::isinf(noiseScaleOf(std::vector{noiseOfTwoBatches(1, 10, 4, 2)}).corrected)); // all noise
    }

    void atTheCriticalBatchBothAreTwiceTheFewest()
    {
        // McCandlish et al. 2018, section 2.3: (S/S_min − 1)(E/E_min − 1) = 1.
        const BatchHyperbola hyperbola{50, 20000};
        QCOMPARE(hyperbola.critical(), 400.0);
        QCOMPARE(hyperbola.steps(400), 100.0);
        QCOMPARE(hyperbola.examples(400), 40000.0);
        for (const double batch : {1.0, 30.0, 5000.0})
            QVERIFY(std::abs((hyperbola.steps(batch) / 50 - 1) * (hyperbola.examples(batch) / 20000 - 1) - 1) < 1e-9);
        QCOMPARE(stepProgress(400, 400), 0.5);
    }

    void aFitFindsTheHyperbolaOfItsPoints()
    {
        std::vector<StepsToTarget> points;
        for (double batch = 1; batch <= 1024; batch *= 4)
            points.push_back({batch, 50 + 20000 / batch});
        const auto fitted = fitHyperbola(points);
        QVERIFY(fitted);
        QVERIFY(std::abs(fitted->fewestSteps / 50 - 1) < 1e-6 && std::abs(fitted->critical() / 400 - 1) < 1e-6);
        QCOMPARE(fitHyperbola(std::vector<StepsToTarget>{{8, 100}, {8, 90}}).error().code, std::string("noise.points"));
        QCOMPARE(fitHyperbola(std::vector<StepsToTarget>{{1, 10}, {8, 100}}).error().code, std::string("noise.fit"));
    }

    void theRegressionLosesWhatTrainingLoses_data()
    {
        QTest::addColumn<int>("batch");
        QTest::newRow("batch 1") << 1;
        QTest::newRow("batch 4") << 4;
        QTest::newRow("batch 32") << 32;
    }

    void theRegressionLosesWhatTrainingLoses()
    {
        QFETCH(int, batch);
        NoisyRegression problem(12, 3);
        Vector rates, expected{problem.loss()};
        for (int step = 0; step < 40; ++step) {
            rates.push_back(problem.bestRate(batch));
            problem.step(batch);
            expected.push_back(problem.loss());
        }
        QCOMPARE(expected.front(), 1.1);
        const Vector drawn = trainedLosses(12, 3, batch, rates, 3000);
        for (std::size_t step = 0; step < drawn.size(); ++step) {
            const double error = (drawn[step] - expected[step]) / (expected[step] - 0.1);
            QVERIFY2(
                std::abs(error) < 0.03,
                qPrintable(QString("step %1: %2 drawn, %3 expected").arg(step).arg(drawn[step]).arg(expected[step])));
        }
    }

    void theRegressionsNoiseIsThatOfDrawnGradients()
    {
        // At the start: weights are zero, so the residual of output k is −(w*_k·x + n).
        const int inputs = 12, outputs = 3, count = 400000;
        std::mt19937_64 random(3);
        std::uniform_real_distribution<double> uniform(-std::sqrt(3.0), std::sqrt(3.0));
        const NoisyRegression problem(inputs, outputs);
        Vector mean(std::size_t((inputs + 1) * outputs));
        double norms = 0;
        for (int i = 0; i < count; ++i) {
            Vector x(std::size_t(inputs), 0.0);
            for (int j = 0; j < inputs; ++j)
                x[std::size_t(j)] = uniform(random) / std::sqrt(j + 1.0);
            for (int k = 0; k < outputs; ++k) {
                double residual = std::sqrt(0.1) * uniform(random);
                for (int j = 0; j < inputs; ++j)
                    residual += problem.weightMagnitude() * ((j + k) % 2 ? 1 : -1) * x[std::size_t(j)];
                norms += residual * residual * (squared(x) + 1) / count;
                for (int j = 0; j < inputs; ++j)
                    mean[std::size_t(k * (inputs + 1) + j)] += residual * x[std::size_t(j)] / count;
                mean[std::size_t(k * (inputs + 1) + inputs)] += residual / count;
            }
        }
        const double trace = norms - squared(mean);
        QVERIFY2(std::abs(problem.trace() / trace - 1) < 0.01,
                 qPrintable(QString("%1 %2").arg(problem.trace()).arg(trace)));
        QVERIFY2(std::abs(problem.simpleNoise() / (trace / squared(mean)) - 1) < 0.01,
                 qPrintable(QString::number(problem.simpleNoise())));
    }

    void stepsOfTheRegressionLieOnAHyperbola()
    {
        std::vector<double> batches;
        for (double batch = 1; batch <= 8192; batch *= 2)
            batches.push_back(batch);
        const auto points = regressionSteps(256, 64, 0.2, batches);
        const auto fitted = fitHyperbola(points);
        QVERIFY(fitted);
        for (const StepsToTarget& point : points)
            QVERIFY2(std::abs(fitted->steps(point.batch) / point.steps - 1) < 0.05,
                     qPrintable(QString::number(point.batch)));
        // What is extrapolated to small batches against every step taken.
        NoisyRegression problem(256, 64);
        double steps = 0;
        for (; problem.loss() > 0.2; ++steps)
            problem.step(2);
        QVERIFY2(std::abs(points[1].steps / steps - 1) < 0.005,
                 qPrintable(QString("%1 %2").arg(points[1].steps).arg(steps)));
    }

    void theLawSaysWhatItsPaperSays()
    {
        const LanguageLaw law{1.5e9};
        // Kaplan et al. 2020, figure 10: the critical batch doubles for every 13 % decrease in loss.
        QVERIFY(std::abs(law.criticalTokens(0.87 * 3) / law.criticalTokens(3) / 2 - 1) < 0.05);
        // Table 5: L(N) = (8.8e13/N)^0.076 of converged models, another fit of the same curve.
        for (const double parameters : {1e6, 1e8, 1e9})
            QVERIFY(std::abs(LanguageLaw{parameters}.leastLoss() / std::pow(8.8e13 / parameters, 0.076) - 1) < 0.03);
        const auto reached = law.toLoss(2.8);
        QVERIFY(reached);
        QVERIFY(std::abs(law.loss(reached->fewestSteps) - 2.8) < 1e-9);
        QVERIFY(std::abs(reached->critical() / law.criticalTokens(2.8) - 1) < 1e-9);
        const auto never = law.toLoss(1.5);
        QVERIFY(!never);
        QCOMPARE(never.error().code, std::string("batch.target"));
        QVERIFY(!never.error().hint.empty());
    }

    void aConstantBatchTakesTheHyperbolasSteps_data()
    {
        QTest::addColumn<double>("batch");
        for (const double batch : {1.0, 100.0, 1000.0, 50000.0})
            QTest::newRow(qPrintable(QString::number(batch))) << batch;
    }

    void aConstantBatchTakesTheHyperbolasSteps()
    {
        QFETCH(double, batch);
        const LanguageLaw law{1e8};
        const double target = 1.1 * law.leastLoss();
        const auto hyperbola = law.toLoss(target);
        const auto course = languageCourse(law, 1024, target);
        BatchSchedule schedule;
        schedule.first = batch;
        const ScheduleRun run = runSchedule(*course, schedule, 1e12);
        QVERIFY(run.isReached);
        QVERIFY(std::abs(run.steps / (hyperbola->fewestSteps + hyperbola->fewestExamples / 1024 / batch) - 1) < 0.005);
        QCOMPARE(run.examples, run.steps * batch);
        QVERIFY(run.moments.size() <= mostMoments + 1);
        const auto steady = steadyCourse(500, 100);
        QVERIFY(std::abs(runSchedule(*steady, schedule, 1e12).steps / (100 + 100 * 500 / batch) - 1) < 0.03);
    }

    void schedulesFollowTheirFormulas()
    {
        BatchSchedule linear{ScheduleKind::Linear, 8, 0.5, 1, 1, 100};
        QCOMPARE(linear.next(8, 4, 1, 77), 8 * (1 + 0.5 * 4)); // the notes' B(t) = B₀ (1 + αt)
        QCOMPARE(linear.next(8, 4000, 1, 77), 100.0);
        BatchSchedule adaptive{ScheduleKind::Adaptive, 8, 0, 0.25, 4, 100};
        QCOMPARE(adaptive.next(8, 1, 1, 40), 0.25 * 40 + 0.75 * 8); // clip(αB_opt + (1 − α)B, …)
        QCOMPARE(adaptive.next(8, 1, 1, 1e9), 100.0);
        QCOMPARE(adaptive.next(4, 1, 1, 0.1), 4.0);
        const double once = adaptive.next(adaptive.next(8, 1, 1, 40), 2, 1, 40);
        QVERIFY(std::abs(adaptive.next(8, 2, 2, 40) - once) < 1e-9); // two steps at once
    }

    void growingSavesStepsAndCostsExamples()
    {
        BatchSchedule schedule{ScheduleKind::Constant, 16, 0, 0.05, 1, 4096};
        const ScheduleRun constant = runSchedule(*regressionCourse(256, 64, 0.2), schedule, 1e5);
        schedule.kind = ScheduleKind::Adaptive;
        const ScheduleRun grown = runSchedule(*regressionCourse(256, 64, 0.2), schedule, 1e5);
        QVERIFY(constant.isReached && grown.isReached);
        // Far below the noise scale steps fall much faster than examples rise.
        QVERIFY(grown.steps < 0.2 * constant.steps);
        QVERIFY(grown.examples > constant.examples && grown.examples < 2.5 * constant.examples);
        QVERIFY(grown.moments.back().batch > 10 * grown.moments.front().batch);
        const ScheduleRun stopped = runSchedule(*regressionCourse(256, 64, 0.2), schedule, 5);
        QVERIFY(!stopped.isReached);
        QCOMPARE(stopped.steps, 5.0);
    }
};

QTEST_GUILESS_MAIN(TestNoiseScale)
#include "tst_noise_scale.moc"
