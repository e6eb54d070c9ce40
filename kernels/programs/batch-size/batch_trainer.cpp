// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/batch-size/batch_trainer.h"

#include "core/checkpoint/mlp_chain.h"
#include "kernels/programs/common/mlp_numbers.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// Bytes that surely hold the step: everything that it ever takes, at once.
std::int64_t arenaBytes(const BatchShape& shape)
{
    std::int64_t parameters = 0, activations = 0;
    for (std::size_t i = 0; i + 1 < shape.sizes.size(); ++i) {
        parameters += pooledBytes(4 * shape.sizes[i] * shape.sizes[i + 1]) + pooledBytes(4 * shape.sizes[i + 1]);
        activations +=
            pooledBytes(4 * shape.batch * shape.sizes[i]) + pooledBytes(4 * shape.batch * shape.sizes[i + 1]);
    }
    return 3 * parameters + 3 * activations + 2 * pooledBytes(shape.workspace) + (1 << 16);
}

std::uint16_t phaseNumber(std::int64_t micro)
{
    return std::uint16_t(std::min<std::int64_t>(micro, 65535));
}

} // namespace

BatchTrainer::BatchTrainer(const BatchShape& shape)
    : m_shape(shape)
    , m_pool(arenaBytes(shape))
{ }

Result<std::unique_ptr<BatchTrainer>> BatchTrainer::make(const BatchDeviceFactory& makeDevice, const BatchShape& shape)
{
    MEMSCAPE_TRY(device, makeDevice(shape, arenaBytes(shape)));
    std::unique_ptr<BatchTrainer> trainer(new BatchTrainer(shape));
    trainer->m_device = std::move(device);
    MEMSCAPE_CHECK(trainer->place());
    MEMSCAPE_CHECK(trainer->checkStopped());
    return trainer;
}

Result<BatchTrainer::Taken> BatchTrainer::take(std::int64_t elements, Category category)
{
    MEMSCAPE_TRY(offset, m_pool.take(4 * elements));
    return Taken{m_device->arena() + offset / 4, offset, m_trace.allocate(4 * elements, category)};
}

void BatchTrainer::give(Taken& taken)
{
    if (taken.block == noBlock)
        return;
    m_pool.give(taken.offset);
    m_trace.free(taken.block);
    taken = {};
}

Result<float*> BatchTrainer::workspace(Taken& ofPass)
{
    if (m_shape.workspace > 0 && ofPass.block == noBlock)
        MEMSCAPE_SET(ofPass, take(m_shape.workspace / 4, Category::Workspace));
    return ofPass.data;
}

Result<void> BatchTrainer::place()
{
    m_trace.enter(Phase::Setup);
    MEMSCAPE_SET(m_input, take(m_shape.batch * m_shape.inputs(), Category::Input));
    MEMSCAPE_TRY(start, placeLayers());
    MEMSCAPE_CHECK(setParameters(start));
    MEMSCAPE_SET(m_target, take(m_shape.batch * m_shape.outputs(), Category::Input));
    for (std::int64_t micro = 0; micro < m_shape.accumulation; ++micro)
        MEMSCAPE_CHECK(placeMicroBatch(micro));
    m_trace.enter(Phase::Optimizer);
    addUpdate();
    m_trace.enter(Phase::ZeroGrad);
    for (Taken& gradient : m_gradients)
        give(gradient);
    give(m_output);
    give(m_loss);
    return {};
}

/// Weights and biases, and what they start from.
Result<std::vector<float>> BatchTrainer::placeLayers()
{
    std::vector<float> start;
    for (std::size_t i = 0; i + 1 < m_shape.sizes.size(); ++i) {
        Layer layer{m_shape.sizes[i], m_shape.sizes[i + 1]};
        MEMSCAPE_TRY(weight, take(layer.inputs * layer.outputs, Category::Weights));
        MEMSCAPE_TRY(bias, take(layer.outputs, Category::Weights));
        layer.weight = weight.data;
        layer.bias = bias.data;
        m_layers.push_back(layer);
        const float bound = m_shape.isLinear() ? 0.0F : 1 / std::sqrt(float(layer.inputs));
        for (std::int64_t j = 0; j < layer.inputs * layer.outputs; ++j)
            start.push_back(bound * mlpUniform(mlpWeightSeed(int(i)), std::uint64_t(j)));
        for (std::int64_t j = 0; j < layer.outputs; ++j)
            start.push_back(bound * mlpUniform(mlpBiasSeed(int(i)), std::uint64_t(j)));
    }
    return start;
}

void BatchTrainer::addUpdate()
{
    m_step = m_passes;
    for (const Layer& layer : m_layers) {
        m_step.push_back({BatchOperation::Kind::Update, layer.outputs, 0, layer.inputs, layer.weightGradient, nullptr,
                          nullptr, layer.weight});
        m_step.push_back(
            {BatchOperation::Kind::Update, 1, 0, layer.outputs, layer.biasGradient, nullptr, nullptr, layer.bias});
    }
}

Result<void> BatchTrainer::placeMicroBatch(std::int64_t micro)
{
    m_trace.enter(Phase::Forward, phaseNumber(micro));
    const std::int64_t batch = m_shape.batch;
    auto& ops = m_passes;
    std::vector<Taken> activations; // what the layers read, the input aside
    const float* x = m_input.data;
    Taken output;
    if (m_shape.accumulation > 1) {
        const float* const stored = m_device->store();
        ops.push_back({BatchOperation::Kind::Load, batch, 0, m_shape.inputs(),
                       stored + micro * batch * m_shape.inputs(), nullptr, nullptr, m_input.data});
        ops.push_back({BatchOperation::Kind::Load, batch, 0, m_shape.outputs(),
                       stored + m_shape.storedInputs() + micro * batch * m_shape.outputs(), nullptr, nullptr,
                       m_target.data});
    }
    for (std::size_t i = 0; i < m_layers.size(); ++i) {
        const Layer& layer = m_layers[i];
        MEMSCAPE_TRY(sums, take(batch * layer.outputs, Category::Activations));
        MEMSCAPE_TRY(scratch, workspace(m_forwardWorkspace));
        ops.push_back({BatchOperation::Kind::Linear, batch, layer.inputs, layer.outputs, x, layer.weight, layer.bias,
                       sums.data, nullptr, scratch});
        if (i + 1 == m_layers.size()) {
            output = sums;
            break;
        }
        MEMSCAPE_TRY(activation, take(batch * layer.outputs, Category::Activations));
        ops.push_back(
            {BatchOperation::Kind::Relu, batch, 0, layer.outputs, sums.data, nullptr, nullptr, activation.data});
        give(sums);
        activations.push_back(activation);
        x = activation.data;
    }
    give(m_output); // the name is bound anew
    m_output = output;
    MEMSCAPE_TRY(loss, take(1, Category::Activations));
    give(m_loss);
    m_loss = loss;
    ops.push_back({BatchOperation::Kind::Loss, batch, 0, m_shape.outputs(), output.data, m_target.data});
    return placeBackward(activations, output, micro);
}

Result<void> BatchTrainer::placeBackward(const std::vector<Taken>& saved, const Taken& output, std::int64_t micro)
{
    m_trace.enter(Phase::Backward, phaseNumber(micro));
    const bool isFirst = micro == 0;
    const std::int64_t batch = m_shape.batch;
    auto& ops = m_passes;
    std::vector<Taken> activations = saved;
    MEMSCAPE_TRY(one, take(1, Category::Temporary));
    MEMSCAPE_TRY(gradient, take(batch * m_shape.outputs(), Category::Temporary));
    ops.push_back({BatchOperation::Kind::LossGradient, batch, 0, m_shape.outputs(), output.data, m_target.data, nullptr,
                   gradient.data});
    for (std::size_t i = m_layers.size(); i-- > 0;) {
        Layer& layer = m_layers[i];
        const float* const x = i > 0 ? activations[i - 1].data : m_input.data;
        Taken below;
        if (i > 0) {
            MEMSCAPE_SET(below, take(batch * layer.inputs, Category::Temporary));
            MEMSCAPE_TRY(scratch, workspace(m_backwardWorkspace));
            ops.push_back({BatchOperation::Kind::InputGradient, batch, layer.inputs, layer.outputs, gradient.data,
                           layer.weight, nullptr, below.data, nullptr, scratch});
        }
        const Category category = isFirst ? Category::Gradients : Category::Temporary;
        MEMSCAPE_TRY(weight, take(layer.inputs * layer.outputs, category));
        MEMSCAPE_TRY(scratch, workspace(m_backwardWorkspace));
        MEMSCAPE_TRY(bias, take(layer.outputs, category));
        ops.push_back({BatchOperation::Kind::WeightGradient, batch, layer.inputs, layer.outputs, gradient.data, x,
                       nullptr, weight.data, bias.data, scratch});
        give(gradient);
        if (isFirst) {
            layer.weightGradient = weight.data;
            layer.biasGradient = bias.data;
            m_gradients.push_back(weight);
            m_gradients.push_back(bias);
        } else {
            ops.push_back({BatchOperation::Kind::Add, layer.outputs, 0, layer.inputs, weight.data, nullptr, nullptr,
                           layer.weightGradient});
            ops.push_back(
                {BatchOperation::Kind::Add, 1, 0, layer.outputs, bias.data, nullptr, nullptr, layer.biasGradient});
            give(weight);
            give(bias);
        }
        if (i == 0)
            break;
        MEMSCAPE_TRY(masked, take(batch * layer.inputs, Category::Temporary));
        ops.push_back(
            {BatchOperation::Kind::ReluGradient, batch, 0, layer.inputs, below.data, x, nullptr, masked.data});
        give(below);
        give(activations[i - 1]);
        gradient = masked;
    }
    give(one);
    return {};
}

Result<void> BatchTrainer::load(std::uint64_t first)
{
    float* const store = m_device->store();
    if (store == nullptr)
        return m_device->fill(first, m_shape.batch, m_input.data, m_target.data);
    return m_device->fill(first, update(), store, store + m_shape.storedInputs());
}

Result<BatchStep> BatchTrainer::finished(const BatchSums& sums, bool countsNorms) const
{
    const auto steps = double(m_shape.accumulation), batch = double(m_shape.batch), all = double(update());
    BatchStep step{sums.loss / (all * double(m_shape.outputs())), {}};
    if (!countsNorms)
        return step;
    MEMSCAPE_TRY(gradients, readAll(true));
    double squared = 0;
    for (const float gradient : gradients)
        squared += double(gradient) * double(gradient);
    // Gradients of micro-batches are summed, and each δ holds 1 / batch.
    step.noise = noiseOfExamples(all, batch * batch * sums.squaredNorms / all, squared / (steps * steps));
    return step;
}

Result<BatchStep> BatchTrainer::gradients(bool countsNorms)
{
    MEMSCAPE_TRY(sums, m_device->run(m_passes, 0, countsNorms));
    return finished(sums, countsNorms);
}

Result<BatchStep> BatchTrainer::step(double rate)
{
    MEMSCAPE_TRY(sums, m_device->run(m_step, float(rate / double(m_shape.accumulation)), false));
    return finished(sums, false);
}

Result<void> BatchTrainer::learn(double rate)
{
    return m_device->learn(m_step, float(rate / double(m_shape.accumulation)));
}

Result<std::vector<float>> BatchTrainer::readAll(bool gradients) const
{
    std::size_t count = 0, at = 0;
    for (const Layer& layer : m_layers)
        count += std::size_t((layer.inputs + 1) * layer.outputs);
    std::vector<float> all(count);
    const auto append = [&](const float* from, std::int64_t elements) -> Result<void> {
        MEMSCAPE_CHECK(m_device->read(from, std::span(all).subspan(at, std::size_t(elements))));
        at += std::size_t(elements);
        return {};
    };
    for (const Layer& layer : m_layers) {
        MEMSCAPE_CHECK(append(gradients ? layer.weightGradient : layer.weight, layer.inputs * layer.outputs));
        MEMSCAPE_CHECK(append(gradients ? layer.biasGradient : layer.bias, layer.outputs));
    }
    return all;
}

Result<std::vector<float>> BatchTrainer::parameters() const
{
    return readAll(false);
}

Result<void> BatchTrainer::setParameters(const std::vector<float>& parameters)
{
    std::span<const float> left(parameters);
    for (const Layer& layer : m_layers) {
        const auto weights = std::size_t(layer.inputs * layer.outputs), biases = std::size_t(layer.outputs);
        MEMSCAPE_CHECK(m_device->write(layer.weight, left.first(weights)));
        MEMSCAPE_CHECK(m_device->write(layer.bias, left.subspan(weights, biases)));
        left = left.subspan(weights + biases);
    }
    return {};
}

Result<std::vector<float>> BatchTrainer::lastGradients() const
{
    MEMSCAPE_TRY(all, readAll(true));
    const float mean = 1 / float(m_shape.accumulation);
    for (float& gradient : all)
        gradient *= mean;
    return all;
}

Result<BatchExamples> BatchTrainer::examples() const
{
    BatchExamples examples{std::vector<float>(std::size_t(m_shape.batch * m_shape.inputs())),
                           std::vector<float>(std::size_t(m_shape.batch * m_shape.outputs()))};
    MEMSCAPE_CHECK(m_device->read(m_input.data, examples.inputs));
    MEMSCAPE_CHECK(m_device->read(m_target.data, examples.targets));
    return examples;
}

} // namespace memscape
