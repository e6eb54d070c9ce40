// SPDX-License-Identifier: Apache-2.0
// The trainer's gradients against differences of a loss that is computed here, plainly, in double.
#include "kernels/programs/training-memory/amp_trainer.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace memscape {

namespace {

struct PlainBatch
{
    std::vector<float> inputs;
    std::vector<int> labels;
};

PlainBatch plainBatch(const TrainedNetwork& network, std::uint64_t index)
{
    const auto inputs = std::uint64_t(network.inputs);
    std::vector<float> directions;
    for (std::uint64_t i = 0; i < inputs * ampClasses; ++i)
        directions.push_back(ampDirection(inputs, i / ampClasses, int(i % ampClasses)));
    PlainBatch batch;
    batch.inputs.resize(std::size_t(network.batch * network.inputs));
    for (std::uint64_t row = 0; row < std::uint64_t(network.batch); ++row)
        batch.labels.push_back(ampExample(index, row, inputs, directions.data(), batch.inputs.data() + row * inputs));
    return batch;
}

/// The mean loss of a batch; `parameters` as AmpTrainer::parameters().
double plainLoss(const TrainedNetwork& network, const std::vector<double>& parameters, const PlainBatch& batch)
{
    const std::array<std::size_t, 4> widths{std::size_t(network.inputs), std::size_t(network.hidden),
                                            std::size_t(network.hidden), std::size_t(TrainedNetwork::classes)};
    double loss = 0;
    for (std::size_t row = 0; row < batch.labels.size(); ++row) {
        const float* const begin = batch.inputs.data() + row * widths[0];
        std::vector<double> x(begin, begin + widths[0]);
        std::size_t at = 0;
        for (std::size_t layer = 0; layer < 3; ++layer) {
            const std::size_t in = widths[layer], out = widths[layer + 1];
            std::vector<double> y(out);
            for (std::size_t i = 0; i < out; ++i) {
                y[i] = parameters[at + in * out + i];
                for (std::size_t j = 0; j < in; ++j)
                    y[i] += parameters[at + i * in + j] * x[j];
                if (layer < 2)
                    y[i] = std::max(y[i], 0.0);
            }
            at += in * out + out;
            x = std::move(y);
        }
        const double most = *std::ranges::max_element(x);
        double sum = 0;
        for (const double logit : x)
            sum += std::exp(logit - most);
        loss += std::log(sum) + most - x[std::size_t(batch.labels[row])];
    }
    return loss / double(batch.labels.size());
}

} // namespace

Result<Check> checkTrainer(const Device& machine, const AmpDeviceFactory& devices, Format format)
{
    const TrainedNetwork network{9, 7, 11};
    // BF16 and FP16 round every array of the step; gradients are about as exact as their format.
    const double place = format == Format::Fp32 ? 1e-5 : 6 * numberFormat(format).epsilon();
    TrainerOptions options{network, format, {}, true};
    if (format == Format::Fp16)
        options.scaler = LossScalerOptions{1024, 2, 0.5, 2000};
    MEMSCAPE_TRY(trainer, makeTrainer(machine, devices, options));
    const PlainBatch batch = plainBatch(network, 0);
    MEMSCAPE_TRY(before, trainer->parameters());
    std::vector<double> parameters(before.begin(), before.end());
    MEMSCAPE_TRY(step, trainer->step(0, nullptr));
    const std::vector<float>& found = trainer->lastGradients();
    std::vector<double> expected;
    double largest = 0;
    for (double& parameter : parameters) {
        const double kept = parameter;
        parameter = kept + 1e-6;
        const double above = plainLoss(network, parameters, batch);
        parameter = kept - 1e-6;
        expected.push_back((above - plainLoss(network, parameters, batch)) / 2e-6);
        parameter = kept;
        largest = std::max(largest, std::fabs(expected.back()));
    }
    Check check({place * largest, place});
    check.require(0, found.size() == expected.size(), "gradients are missing");
    check.require(1, !step.isSkipped, "a step without an infinite gradient was skipped");
    check.compare(2, step.loss, plainLoss(network, parameters, batch));
    for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i)
        check.compare(i, double(found[i]), expected[i]);
    return check;
}

} // namespace memscape
