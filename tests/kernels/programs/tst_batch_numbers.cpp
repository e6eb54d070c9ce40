// SPDX-License-Identifier: Apache-2.0
// The examples that host and GPU make from their numbers, against the problem whose noise is known in closed form:
// its variances, its kurtosis, its weights, the noise of its labels.
#include "kernels/programs/batch-size/batch_device.h"
#include "kernels/programs/batch-size/batch_numbers.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

constexpr std::int64_t inputs = 24, outputs = 6;
constexpr std::uint64_t examples = 200000, first = 1ULL << 32; // those that training takes

struct Moments
{
    double mean = 0, variance = 0, kurtosis = 0;
};

template <typename Value> Moments momentsOf(const Value& value)
{
    double sum = 0, second = 0, fourth = 0;
    for (std::uint64_t i = 0; i < examples; ++i) {
        const double x = double(value(i));
        sum += x;
        second += x * x;
        fourth += x * x * x * x;
    }
    const double n = double(examples), variance = second / n;
    return {sum / n, variance, fourth / n / (variance * variance)};
}

} // namespace

class TestBatchNumbers : public QObject
{
    Q_OBJECT

private slots:
    void inputsHaveTheProblemsVariances()
    {
        const std::vector<float> scales = batchScales(inputs);
        for (const std::int64_t j : {0, 1, 7, 23}) {
            const Moments found = momentsOf([&](std::uint64_t i) {
                return batchInput((first + i) * std::uint64_t(inputs) + std::uint64_t(j), scales[std::size_t(j)]);
            });
            const double variance = NoisyRegression::variance(j), root = std::sqrt(double(examples));
            // Standard errors: of the mean √(variance / n), of the variance √((κ − 1) / n) of it.
            QVERIFY(std::abs(found.mean) < 4 * std::sqrt(variance) / root);
            QVERIFY2(std::abs(found.variance / variance - 1) < 4 * std::sqrt(NoisyRegression::kurtosis - 1) / root,
                     qPrintable(QString::number(found.variance / variance)));
            QVERIFY(std::abs(found.kurtosis - NoisyRegression::kurtosis) < 0.02);
        }
    }

    void neighboursAreIndependent()
    {
        // Of an example and of a column: a correlation would be gradient noise that the closed form does not know.
        for (const std::uint64_t apart : {std::uint64_t(1), std::uint64_t(inputs)}) {
            const Moments product = momentsOf([&](std::uint64_t i) {
                const std::uint64_t at = first * std::uint64_t(inputs) + i * 2 * std::uint64_t(inputs);
                return batchInput(at, 1) * batchInput(at + apart, 1);
            });
            QVERIFY(std::abs(product.mean) < 4 / std::sqrt(double(examples)));
        }
    }

    void weightsHaveTheProblemsMagnitude()
    {
        const float magnitude = batchTruthMagnitude(inputs);
        QVERIFY(std::abs(double(magnitude) - NoisyRegression(inputs, outputs).weightMagnitude()) < 1e-7);
        int positive = 0;
        for (std::uint64_t i = 0; i < 10000; ++i) {
            const float weight = batchTruth(i, magnitude);
            QVERIFY(weight == magnitude || weight == -magnitude);
            positive += weight > 0;
        }
        QVERIFY2(std::abs(positive - 5000) < 4 * 50, qPrintable(QString::number(positive)));
    }

    void labelsAreNoisyByATenth()
    {
        for (const bool isLinear : {true, false}) {
            for (const float product : {-0.7F, 0.0F, 1.3F}) {
                const float clean = isLinear ? product : std::sqrt(2.0F) * std::max(product, 0.0F);
                const Moments noise = momentsOf([&](std::uint64_t i) {
                    return batchTarget(first * std::uint64_t(outputs) + i, product, isLinear, batchNoise()) - clean;
                });
                const double root = std::sqrt(double(examples));
                QVERIFY(std::abs(noise.mean) < 4 * std::sqrt(NoisyRegression::labelVariance) / root);
                QVERIFY(std::abs(noise.variance / NoisyRegression::labelVariance - 1) < 4 / root);
            }
        }
    }

    void aStoreKeepsTargetsAligned()
    {
        const BatchShape whole{{5, 3}, 7, 1};
        QCOMPARE(whole.storeBytes(), std::int64_t(0));
        const BatchShape parts{{5, 3}, 7, 11}; // 385 inputs, 231 targets
        QCOMPARE(parts.update(), std::int64_t(77));
        QCOMPARE(parts.storedInputs(), std::int64_t(512));
        QCOMPARE(parts.storeBytes(), std::int64_t(4 * (512 + 231)));
    }
};

QTEST_GUILESS_MAIN(TestBatchNumbers)
#include "tst_batch_numbers.moc"
