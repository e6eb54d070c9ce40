// SPDX-License-Identifier: Apache-2.0
// The trainer against a loss that is computed here, plainly, in double.
#include "kernels/host/batch_trainer.h"

#include <algorithm>
#include <cmath>

namespace memscape::host {

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

} // namespace

Result<Check> checkBatchTrainer(HostSession& session, const ProductKernel& product)
{
    const std::vector<std::int64_t> sizes{9, 37, 5};
    const std::int64_t count = 6;
    MEMSCAPE_TRY(trainer, BatchTrainer::make(session, {sizes, count, 1, product}));
    std::vector<float> x(std::size_t(count * sizes.front())), t(std::size_t(count * sizes.back()));
    BatchData(sizes, product).fill(session, 3, count, x.data(), t.data());
    trainer->load(3);
    const BatchStep step = trainer->gradients(true);
    const std::vector<float> start = trainer->parameters(), found = trainer->lastGradients();
    std::vector<double> parameters(start.begin(), start.end());
    const double largest = std::sqrt(squared(found));
    Check check({1e-5 * largest, 1e-4});
    check.compare(0, step.loss, plainLoss(sizes, parameters, count, x, t));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const double kept = parameters[i];
        parameters[i] = kept + 1e-6;
        const double above = plainLoss(sizes, parameters, count, x, t);
        parameters[i] = kept - 1e-6;
        check.compare(i, double(found[i]), (above - plainLoss(sizes, parameters, count, x, t)) / 2e-6);
        parameters[i] = kept;
    }
    // Norms of examples against gradients of one example each.
    MEMSCAPE_TRY(single, BatchTrainer::make(session, {sizes, 1, 1, product}));
    double norms = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        single->load(std::uint64_t(3 + i));
        static_cast<void>(single->gradients(false));
        norms += squared(single->lastGradients()) / double(count);
    }
    const GradientNoise expected = noiseOfExamples(double(count), norms, squared(found));
    check.compare(1, step.noise.trace, expected.trace);
    check.compare(2, step.noise.signal, expected.signal);
    // Accumulated over three micro-batches, and an update.
    MEMSCAPE_TRY(parts, BatchTrainer::make(session, {sizes, 2, 3, product}));
    parts->load(3);
    const BatchStep accumulated = parts->gradients(true);
    check.compare(3, accumulated.loss, step.loss);
    check.compare(4, accumulated.noise.trace, step.noise.trace);
    check.compareAll<float>(parts->lastGradients(), found);
    static_cast<void>(parts->step(0.5));
    const std::vector<float> updated = parts->parameters();
    for (std::size_t i = 0; i < updated.size(); ++i)
        check.compare(i, double(updated[i]), double(start[i]) - 0.5 * double(found[i]));
    return check;
}

} // namespace memscape::host
