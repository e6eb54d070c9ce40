// SPDX-License-Identifier: Apache-2.0
// The trainer against a loss that is computed here, plainly, in double.
#include "kernels/programs/batch-size/batch_numbers.h"
#include "kernels/programs/batch-size/batch_trainer.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// Mean squared error of the chain on these examples; `parameters` as BatchTrainer::parameters().
double plainLoss(const std::vector<std::int64_t>& sizes, const std::vector<double>& parameters, std::int64_t count,
                 const std::vector<float>& x, const std::vector<float>& t)
{
    double loss = 0;
    for (std::size_t row = 0; row < std::size_t(count); ++row) {
        std::vector<double> values(x.begin() + long(row) * sizes.front(), x.begin() + long(row + 1) * sizes.front());
        std::size_t at = 0;
        for (std::size_t layer = 0; layer + 1 < sizes.size(); ++layer) {
            const auto in = std::size_t(sizes[layer]), out = std::size_t(sizes[layer + 1]);
            std::vector<double> next(out);
            for (std::size_t k = 0; k < out; ++k) {
                next[k] = parameters[at + in * out + k];
                for (std::size_t j = 0; j < in; ++j)
                    next[k] += parameters[at + k * in + j] * values[j];
                if (layer + 2 < sizes.size())
                    next[k] = std::max(next[k], 0.0);
            }
            at += in * out + out;
            values = std::move(next);
        }
        for (std::size_t k = 0; k < values.size(); ++k)
            loss += std::pow(values[k] - double(t[row * values.size() + k]), 2);
    }
    return loss / double(count * sizes.back());
}

double squared(const std::vector<float>& values)
{
    double sum = 0;
    for (const float value : values)
        sum += double(value) * double(value);
    return sum;
}

/// Examples [first, first + count) as the formulas of batch_numbers.h give them, sums in double.
BatchExamples plainExamples(const BatchShape& shape, std::uint64_t first, std::int64_t count)
{
    const auto in = std::uint64_t(shape.inputs()), out = std::uint64_t(shape.outputs());
    const std::vector<float> scales = batchScales(shape.inputs());
    const float magnitude = batchTruthMagnitude(shape.inputs());
    BatchExamples examples;
    for (std::uint64_t row = 0; row < std::uint64_t(count); ++row) {
        for (std::uint64_t j = 0; j < in; ++j)
            examples.inputs.push_back(batchInput((first + row) * in + j, scales[j]));
        for (std::uint64_t k = 0; k < out; ++k) {
            double sum = 0;
            for (std::uint64_t j = 0; j < in; ++j)
                sum += double(examples.inputs[row * in + j]) * double(batchTruth(k * in + j, magnitude));
            examples.targets.push_back(
                batchTarget((first + row) * out + k, float(sum), shape.isLinear(), batchNoise()));
        }
    }
    return examples;
}

/// Gradients of the whole batch at once, and what they are compared with later.
struct Whole
{
    BatchStep step;
    std::vector<float> start, gradients;
};

/// Examples, loss and every gradient against differences of a loss in double.
Result<Whole> checkGradients(Check& check, BatchTrainer& trainer, const BatchShape& shape, std::uint64_t first)
{
    const BatchExamples plain = plainExamples(shape, first, shape.batch);
    MEMSCAPE_CHECK(trainer.load(first));
    MEMSCAPE_TRY(step, trainer.gradients(true));
    MEMSCAPE_TRY(examples, trainer.examples());
    for (std::size_t i = 0; i < plain.inputs.size(); ++i)
        check.require(i, examples.inputs[i] == plain.inputs[i], "an input is not the one of its number");
    for (std::size_t i = 0; i < plain.targets.size(); ++i)
        check.require(i, std::abs(examples.targets[i] - plain.targets[i]) < 1e-5F,
                      "a target is not the one of its number");
    MEMSCAPE_TRY(start, trainer.parameters());
    MEMSCAPE_TRY(found, trainer.lastGradients());
    std::vector<double> parameters(start.begin(), start.end());
    const auto loss = [&] { return plainLoss(shape.sizes, parameters, shape.batch, plain.inputs, plain.targets); };
    check.compare(0, step.loss, loss());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const double kept = parameters[i];
        parameters[i] = kept + 1e-6;
        const double above = loss();
        parameters[i] = kept - 1e-6;
        check.compare(i, double(found[i]), (above - loss()) / 2e-6);
        parameters[i] = kept;
    }
    return Whole{step, std::move(start), std::move(found)};
}

/// Norms of examples against gradients of one example each.
Result<void> checkNorms(Check& check, const BatchDeviceFactory& makeDevice, const BatchShape& shape,
                        std::uint64_t first, const Whole& whole)
{
    MEMSCAPE_TRY(single, BatchTrainer::make(makeDevice, {shape.sizes, 1, 1}));
    double norms = 0;
    for (std::int64_t i = 0; i < shape.batch; ++i) {
        MEMSCAPE_CHECK(single->load(first + std::uint64_t(i)));
        MEMSCAPE_CHECK(single->gradients(false));
        MEMSCAPE_TRY(gradients, single->lastGradients());
        norms += squared(gradients) / double(shape.batch);
    }
    const GradientNoise expected = noiseOfExamples(double(shape.batch), norms, squared(whole.gradients));
    check.compare(1, whole.step.noise.trace, expected.trace);
    check.compare(2, whole.step.noise.signal, expected.signal);
    return {};
}

/// Accumulated over three micro-batches, and an update, with and without sums.
Result<void> checkParts(Check& check, const BatchDeviceFactory& makeDevice, const BatchShape& shape,
                        std::uint64_t first, const Whole& whole)
{
    MEMSCAPE_TRY(parts, BatchTrainer::make(makeDevice, {shape.sizes, shape.batch / 3, 3}));
    MEMSCAPE_CHECK(parts->load(first));
    MEMSCAPE_TRY(accumulated, parts->gradients(true));
    check.compare(3, accumulated.loss, whole.step.loss);
    check.compare(4, accumulated.noise.trace, whole.step.noise.trace);
    MEMSCAPE_TRY(gradients, parts->lastGradients());
    check.compareAll<float>(gradients, whole.gradients);
    for (const bool isTimed : {true, false}) {
        MEMSCAPE_CHECK(parts->setParameters(whole.start));
        if (isTimed)
            MEMSCAPE_CHECK(parts->step(0.5));
        else
            MEMSCAPE_CHECK(parts->learn(0.5));
        MEMSCAPE_TRY(updated, parts->parameters());
        for (std::size_t i = 0; i < updated.size(); ++i)
            check.compare(i, double(updated[i]), double(whole.start[i]) - 0.5 * double(whole.gradients[i]));
    }
    return {};
}

/// The expected loss of one layer somewhere, against its formula in double.
Result<void> checkRisk(Check& check, const BatchDeviceFactory& makeDevice)
{
    const BatchShape shape{{70, 3}, 2, 1};
    MEMSCAPE_TRY(trainer, BatchTrainer::make(makeDevice, shape));
    MEMSCAPE_TRY(weights, trainer->parameters());
    const std::vector<float> scales = batchScales(shape.inputs());
    const float magnitude = batchTruthMagnitude(shape.inputs());
    double risk = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        weights[i] = 0.3F * mlpUniform(41, i);
        const bool isBias = i >= std::size_t(shape.inputs() * shape.outputs());
        const double off = isBias
            ? double(weights[i])
            : (double(weights[i]) - double(batchTruth(i, magnitude))) * double(scales[i % std::size_t(shape.inputs())]);
        risk += off * off / double(shape.outputs());
    }
    MEMSCAPE_CHECK(trainer->setParameters(weights));
    MEMSCAPE_TRY(found, trainer->risk());
    check.compare(5, found, risk + NoisyRegression::labelVariance);
    return {};
}

} // namespace

Result<Check> checkBatchTrainer(const BatchDeviceFactory& makeDevice)
{
    const BatchShape shape{{9, 37, 5}, 6, 1};
    constexpr std::uint64_t first = 3;
    MEMSCAPE_TRY(trainer, BatchTrainer::make(makeDevice, shape));
    MEMSCAPE_CHECK(trainer->load(first));
    MEMSCAPE_CHECK(trainer->gradients(false));
    MEMSCAPE_TRY(scale, trainer->lastGradients());
    Check check({1e-5 * std::sqrt(squared(scale)), 1e-4});
    MEMSCAPE_TRY(whole, checkGradients(check, *trainer, shape, first));
    MEMSCAPE_CHECK(checkNorms(check, makeDevice, shape, first, whole));
    MEMSCAPE_CHECK(checkParts(check, makeDevice, shape, first, whole));
    MEMSCAPE_CHECK(checkRisk(check, makeDevice));
    return check;
}

} // namespace memscape
