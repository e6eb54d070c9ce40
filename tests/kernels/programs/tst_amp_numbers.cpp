// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a training step that host and GPU share, number by number: against double, against
// the definition of AdamW, against a search for the direction that an example points along.
#include "kernels/programs/training-memory/amp_numbers.h"
#include "kernels/programs/training-memory/gradient_counter.h"

#include <QtTest>

#include <cmath>
#include <vector>

using namespace memscape;

class TestAmpNumbers : public QObject
{
    Q_OBJECT

private slots:
    void reluKeepsWhatIsNoNumber()
    {
        QCOMPARE(ampActive(-3.0F), 0.0F);
        QCOMPARE(ampActive(2.5F), 2.5F);
        QVERIFY(std::isnan(ampActive(NAN)));
        QCOMPARE(ampPassed(1e-30F, 7.0F), 7.0F);
        QCOMPARE(ampPassed(0.0F, 7.0F), 0.0F);
        QCOMPARE(ampPassed(NAN, 7.0F), 0.0F); // as torch's threshold_backward: not above 0
    }

    void probabilitiesAddUpToOne()
    {
        // Far beyond what exp() of a float holds.
        for (const float size : {1.0F, 30.0F, 5000.0F}) {
            float row[ampClasses];
            double exact[ampClasses], most = -INFINITY, sum = 0, total = 0;
            for (int j = 0; j < ampClasses; ++j) {
                row[j] = size * mlpUniform(3, std::uint64_t(j));
                exact[j] = double(row[j]);
                most = std::max(most, exact[j]);
            }
            for (const double logit : exact)
                sum += std::exp(logit - most);
            ampLogSoftmax(row);
            for (int j = 0; j < ampClasses; ++j) {
                const double expected = exact[j] - most - std::log(sum);
                QVERIFY2(std::fabs(double(row[j]) - expected) <= 4e-7 * (1 + double(size)),
                         qPrintable(QString("%1, not %2").arg(double(row[j])).arg(expected)));
                total += std::exp(double(row[j]));
            }
            QVERIFY(std::fabs(total - 1) < 1e-3);
        }
        float infinite[ampClasses] = {INFINITY};
        ampLogSoftmax(infinite); // a logit that overflowed: the loss is no number, and the step is skipped
        QVERIFY(std::isnan(infinite[0]));
    }

    void theGradientOfALogitIsItsProbabilityLessTheLabel()
    {
        QCOMPARE(ampLossGradient(std::log(0.25F), false, 8), 2.0F);
        QCOMPARE(ampLossGradient(std::log(0.25F), true, 8), -6.0F);
    }

    /// Loshchilov and Hutter 2019 (arXiv:1711.05101), algorithm 2, as torch.optim.AdamW runs it, in double.
    void adamWIsThatOfItsPaper()
    {
        float weight = 0.5F, moment = 0, square = 0;
        double w = 0.5, m = 0, v = 0;
        for (int t = 1; t <= 20; ++t) {
            const float gradient = 0.1F * mlpUniform(5, std::uint64_t(t));
            const AmpAdamStep step{1e-3F,
                                   0.9F,
                                   0.999F,
                                   1e-8F,
                                   0.01F,
                                   1 - std::pow(0.9F, float(t)),
                                   std::sqrt(1 - std::pow(0.999F, float(t)))};
            ampAdam(step, gradient, weight, moment, square);
            w *= 1 - 1e-3 * 0.01;
            m = 0.9 * m + 0.1 * double(gradient);
            v = 0.999 * v + 0.001 * double(gradient) * double(gradient);
            const double mHat = m / (1 - std::pow(0.9, t)), vHat = v / (1 - std::pow(0.999, t));
            w -= 1e-3 * mHat / (std::sqrt(vHat) + 1e-8);
            QVERIFY2(std::fabs(double(weight) - w) < 1e-6 * t,
                     qPrintable(QString("step %1: %2, not %3").arg(t).arg(double(weight)).arg(w)));
        }
        QVERIFY(std::fabs(double(weight) - 0.5) > 1e-4); // it moved
    }

    void barsAreWholeOctaves()
    {
        for (int exponent = ampFirstBar; exponent < ampFirstBar + ampBars; ++exponent) {
            const double first = std::ldexp(1.0, exponent);
            QCOMPARE(ampBarOf(first), exponent - ampFirstBar);
            QCOMPARE(ampBarOf(std::nextafter(2 * first, 0.0)), exponent - ampFirstBar);
        }
        QCOMPARE(ampBarOf(1e-300), 0);
        QCOMPARE(ampBarOf(1e300), ampBars - 1);
    }

    void countsOfAMachineAreThoseOfTheNumbers()
    {
        const std::vector<float> gradients{0, 1, -1.5F, 0.25F, 3e-9F, 0, INFINITY, NAN};
        GradientCounter direct, counted;
        direct.add(gradients, 4);
        GradientCounts counts;
        counts.bars.assign(ampBars, 0);
        for (const float gradient : gradients) {
            const double magnitude = std::fabs(double(gradient)) / 4;
            if (!std::isfinite(magnitude))
                continue;
            if (magnitude == 0) {
                ++counts.zeros;
                continue;
            }
            ++counts.bars[std::size_t(ampBarOf(magnitude))];
            counts.largest = std::max(counts.largest, magnitude);
            counts.sum += std::log2(magnitude);
            counts.squares += std::log2(magnitude) * std::log2(magnitude);
        }
        counted.add(counts);
        QCOMPARE(counted.count(), 6.0);
        QCOMPARE(counted.count(), direct.count());
        QCOMPARE(counted.histogram().zeros, 2.0 / 6);
        QCOMPARE(counted.histogram().shares, direct.histogram().shares);
        QCOMPARE(counted.largest(), 0.375);
        QCOMPARE(counted.median(), direct.median());
        QCOMPARE(counted.spreadBits(), direct.spreadBits());
    }

    void theLabelIsTheNearestDirection()
    {
        constexpr std::uint64_t inputs = 37, rows = 200;
        std::vector<float> directions;
        for (std::uint64_t i = 0; i < inputs * ampClasses; ++i)
            directions.push_back(ampDirection(inputs, i / ampClasses, int(i % ampClasses)));
        std::vector<int> seen(ampClasses, 0);
        std::vector<float> x(inputs);
        double square = 0;
        for (std::uint64_t row = 0; row < rows; ++row) {
            const int label = ampExample(7, row, inputs, directions.data(), x.data());
            int nearest = 0;
            double best = -INFINITY;
            for (int c = 0; c < ampClasses; ++c) {
                double along = 0;
                for (std::uint64_t j = 0; j < inputs; ++j)
                    along += double(x[j]) * double(directions[j * ampClasses + std::uint64_t(c)]);
                if (along > best) {
                    best = along;
                    nearest = c;
                }
            }
            QCOMPARE(label, nearest);
            ++seen[std::size_t(label)];
            for (const float value : x)
                square += double(value) * double(value);
        }
        QVERIFY(std::fabs(square / double(inputs * rows) - 1) < 0.05); // unit variance
        for (const int count : seen)
            QVERIFY(count > 0); // every class occurs
    }
};

QTEST_APPLESS_MAIN(TestAmpNumbers)
#include "tst_amp_numbers.moc"
