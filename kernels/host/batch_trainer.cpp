// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/batch_trainer.h"

#include "core/checkpoint/mlp_chain.h"
#include "core/training/noisy_regression.h"
#include "kernels/measure/mlp_numbers.h"

#include <algorithm>
#include <cmath>

namespace memscape::host {

namespace {

constexpr std::uint64_t truthSeed = 901, inputSeed = 902, noiseSeed = 903;
constexpr float unitVariance = 1.7320508F; // of uniform numbers in ±√3

/// Bytes that surely hold the step: everything that it ever takes, at once.
std::int64_t arenaBytes(const BatchTrainerOptions& options)
{
    std::int64_t parameters = 0, activations = 0;
    for (std::size_t i = 0; i + 1 < options.sizes.size(); ++i) {
        parameters += pooledBytes(4 * options.sizes[i] * options.sizes[i + 1]) + pooledBytes(4 * options.sizes[i + 1]);
        activations += pooledBytes(4 * options.batch * options.sizes[i]) + pooledBytes(4 * options.batch * options.sizes[i + 1]);
    }
    return 3 * parameters + 3 * activations + (1 << 16);
}

} // namespace

BatchData::BatchData(std::vector<std::int64_t> sizes, const ProductKernel& product)
    : m_sizes(std::move(sizes))
    , m_product(product)
{
    double sum = 0;
    for (std::int64_t j = 0; j < inputs(); ++j) {
        m_scales.push_back(float(std::sqrt(NoisyRegression::variance(j))));
        sum += NoisyRegression::variance(j);
    }
    const float magnitude = float(1 / std::sqrt(sum));
    m_truth.resize(std::size_t(inputs() * outputs()));
    for (std::size_t i = 0; i < m_truth.size(); ++i)
        m_truth[i] = mlpUniform(truthSeed, i) < 0 ? -magnitude : magnitude;
}

void BatchData::fill(HostSession& session, std::uint64_t first, std::int64_t count, float* x, float* t) const
{
    const auto in = std::size_t(inputs()), out = std::size_t(outputs());
    const bool isLinear = m_sizes.size() == 2;
    const float noise = unitVariance * float(std::sqrt(NoisyRegression::labelVariance));
    const auto body = [&](int thread, int threads) {
        ProductScratch scratch;
        const Part rows = partOf(std::size_t(count), thread, threads);
        for (std::size_t row = rows.begin; row < rows.end && !session.team().stopping(); ++row) {
            for (std::size_t j = 0; j < in; ++j)
                x[row * in + j] = unitVariance * m_scales[j] * mlpUniform(inputSeed, (first + row) * in + j);
        }
        if (rows.size() > 0)
            m_product.run({rows.size(), out, in, x + rows.begin * in, in, false, m_truth.data(), in, true,
                           t + rows.begin * out, out, false},
                          scratch);
        for (std::size_t i = rows.begin * out; i < rows.end * out; ++i) {
            const float clean = isLinear ? t[i] : std::sqrt(2.0F) * std::max(t[i], 0.0F);
            t[i] = clean + noise * mlpUniform(noiseSeed, first * out + i);
        }
    };
    if (count * inputs() < 16384) // waking the others takes longer
        return body(0, 1);
    session.team().run([&](int thread) { body(thread, session.team().size()); });
}

double BatchData::risk(const float* weights, const float* bias) const
{
    double sum = 0;
    const auto in = std::size_t(inputs()), out = std::size_t(outputs());
    for (std::size_t k = 0; k < out; ++k) {
        float part = 0; // rounding is far below the labels' noise
        for (std::size_t j = 0; j < in; ++j) {
            const float off = (weights[k * in + j] - m_truth[k * in + j]) * m_scales[j];
            part += off * off;
        }
        sum += double(part) + double(bias[k]) * double(bias[k]);
    }
    return sum / double(out) + NoisyRegression::labelVariance;
}

BatchTrainer::BatchTrainer(HostSession& session, const BatchTrainerOptions& options)
    : m_session(session)
    , m_options(options)
    , m_data(options.sizes, options.product)
    , m_pool(arenaBytes(options))
{
}

Result<std::unique_ptr<BatchTrainer>> BatchTrainer::make(HostSession& session, const BatchTrainerOptions& options)
{
    const std::int64_t bytes = arenaBytes(options);
    const std::int64_t store = options.accumulation > 1
        ? 4 * options.batch * options.accumulation * (options.sizes.front() + options.sizes.back())
        : 0;
    MEMSCAPE_CHECK(session.checkFits(double(bytes) + double(store)));
    std::unique_ptr<BatchTrainer> trainer(new BatchTrainer(session, options));
    MEMSCAPE_TRY(arena, allocate(std::size_t(bytes), Pages::Huge, session.memory()));
    trainer->m_arena = std::move(arena);
    trainer->m_store.resize(std::size_t(store / 4));
    MEMSCAPE_CHECK(trainer->place());
    MEMSCAPE_CHECK(session.checkStopped());
    return trainer;
}

Result<BatchTrainer::Taken> BatchTrainer::take(std::int64_t elements, Category category)
{
    MEMSCAPE_TRY(offset, m_pool.take(4 * elements));
    return Taken{reinterpret_cast<float*>(m_arena.data() + offset), offset, m_trace.allocate(4 * elements, category)};
}

void BatchTrainer::give(Taken& taken)
{
    if (taken.block == noBlock)
        return;
    m_pool.give(taken.offset);
    m_trace.free(taken.block);
    taken = {};
}

Result<void> BatchTrainer::place()
{
    m_trace.enter(Phase::Setup);
    MEMSCAPE_TRY(input, take(m_options.batch * m_data.inputs(), Category::Input));
    m_input = input;
    std::vector<float> start;
    for (std::size_t i = 0; i + 1 < m_options.sizes.size(); ++i) {
        Layer layer{m_options.sizes[i], m_options.sizes[i + 1]};
        MEMSCAPE_TRY(weight, take(layer.inputs * layer.outputs, Category::Weights));
        MEMSCAPE_TRY(bias, take(layer.outputs, Category::Weights));
        layer.weight = weight.data;
        layer.bias = bias.data;
        m_layers.push_back(layer);
        const float bound = m_options.sizes.size() == 2 ? 0.0F : 1 / std::sqrt(float(layer.inputs));
        for (std::int64_t j = 0; j < layer.inputs * layer.outputs; ++j)
            start.push_back(bound * mlpUniform(mlpWeightSeed(int(i)), std::uint64_t(j)));
        for (std::int64_t j = 0; j < layer.outputs; ++j)
            start.push_back(bound * mlpUniform(mlpBiasSeed(int(i)), std::uint64_t(j)));
    }
    setParameters(start);
    MEMSCAPE_TRY(target, take(m_options.batch * m_data.outputs(), Category::Input));
    m_target = target;
    for (std::int64_t micro = 0; micro < m_options.accumulation; ++micro) {
        m_micro = micro;
        MEMSCAPE_CHECK(placeMicroBatch(micro == 0));
    }
    m_trace.enter(Phase::Optimizer);
    std::vector<BatchOperation> update;
    for (std::size_t i = 0; i < m_layers.size(); ++i) {
        const Layer& layer = m_layers[i];
        update.push_back({BatchOperation::Kind::Update, layer.outputs, 0, layer.inputs, layer.weightGradient, nullptr, nullptr, layer.weight});
        update.push_back({BatchOperation::Kind::Update, 1, 0, layer.outputs, layer.biasGradient, nullptr, nullptr, layer.bias});
    }
    m_trace.enter(Phase::ZeroGrad);
    for (Taken& gradient : m_gradients)
        give(gradient);
    give(m_output);
    give(m_loss);
    m_step.operations = m_passes.operations;
    m_step.operations.insert(m_step.operations.end(), update.begin(), update.end());
    return {};
}

Result<void> BatchTrainer::placeMicroBatch(bool isFirst)
{
    m_trace.enter(Phase::Forward, std::uint16_t(std::min<std::int64_t>(m_micro, 65535)));
    const std::int64_t batch = m_options.batch;
    auto& ops = m_passes.operations;
    std::vector<Taken> activations; // what the layers read, the input aside
    const float* x = m_input.data;
    Taken output;
    if (m_options.accumulation > 1) {
        const float* const stored = m_store.data();
        ops.push_back({BatchOperation::Kind::Load, batch, 0, m_data.inputs(), stored + m_micro * batch * m_data.inputs(), nullptr, nullptr, m_input.data});
        ops.push_back({BatchOperation::Kind::Load, batch, 0, m_data.outputs(),
                       stored + update() * m_data.inputs() + m_micro * batch * m_data.outputs(), nullptr, nullptr, m_target.data});
    }
    for (std::size_t i = 0; i < m_layers.size(); ++i) {
        const Layer& layer = m_layers[i];
        MEMSCAPE_TRY(sums, take(batch * layer.outputs, Category::Activations));
        ops.push_back({BatchOperation::Kind::Linear, batch, layer.inputs, layer.outputs, x, layer.weight, layer.bias, sums.data});
        if (i + 1 == m_layers.size()) {
            output = sums;
            break;
        }
        MEMSCAPE_TRY(activation, take(batch * layer.outputs, Category::Activations));
        ops.push_back({BatchOperation::Kind::Relu, batch, 0, layer.outputs, sums.data, nullptr, nullptr, activation.data});
        give(sums);
        activations.push_back(activation);
        x = activation.data;
    }
    give(m_output); // the name is bound anew
    m_output = output;
    MEMSCAPE_TRY(loss, take(1, Category::Activations));
    give(m_loss);
    m_loss = loss;
    ops.push_back({BatchOperation::Kind::Loss, batch, 0, m_data.outputs(), output.data, m_target.data});
    return placeBackward(activations, output, isFirst, m_gradients);
}

Result<void> BatchTrainer::placeBackward(const std::vector<Taken>& saved, const Taken& output, bool isFirst,
                                         std::vector<Taken>& kept)
{
    m_trace.enter(Phase::Backward, std::uint16_t(std::min<std::int64_t>(m_micro, 65535)));
    const std::int64_t batch = m_options.batch;
    auto& ops = m_passes.operations;
    std::vector<Taken> activations = saved;
    MEMSCAPE_TRY(one, take(1, Category::Temporary));
    MEMSCAPE_TRY(gradient, take(batch * m_data.outputs(), Category::Temporary));
    ops.push_back({BatchOperation::Kind::LossGradient, batch, 0, m_data.outputs(), output.data, m_target.data, nullptr, gradient.data});
    for (std::size_t i = m_layers.size(); i-- > 0;) {
        Layer& layer = m_layers[i];
        const float* const x = i > 0 ? activations[i - 1].data : m_input.data;
        Taken below;
        if (i > 0) {
            MEMSCAPE_TRY(made, take(batch * layer.inputs, Category::Temporary));
            below = made;
            ops.push_back({BatchOperation::Kind::InputGradient, batch, layer.inputs, layer.outputs, gradient.data, layer.weight, nullptr, below.data});
        }
        const Category category = isFirst ? Category::Gradients : Category::Temporary;
        MEMSCAPE_TRY(weight, take(layer.inputs * layer.outputs, category));
        MEMSCAPE_TRY(bias, take(layer.outputs, category));
        ops.push_back({BatchOperation::Kind::WeightGradient, batch, layer.inputs, layer.outputs, gradient.data, x, nullptr, weight.data, bias.data});
        give(gradient);
        if (isFirst) {
            layer.weightGradient = weight.data;
            layer.biasGradient = bias.data;
            kept.push_back(weight);
            kept.push_back(bias);
        } else {
            ops.push_back({BatchOperation::Kind::Add, layer.outputs, 0, layer.inputs, weight.data, nullptr, nullptr, layer.weightGradient});
            ops.push_back({BatchOperation::Kind::Add, 1, 0, layer.outputs, bias.data, nullptr, nullptr, layer.biasGradient});
            give(weight);
            give(bias);
        }
        if (i == 0)
            break;
        MEMSCAPE_TRY(masked, take(batch * layer.inputs, Category::Temporary));
        ops.push_back({BatchOperation::Kind::ReluGradient, batch, 0, layer.inputs, below.data, x, nullptr, masked.data});
        give(below);
        give(activations[i - 1]);
        gradient = masked;
    }
    give(one);
    return {};
}

void BatchTrainer::load(std::uint64_t first)
{
    if (m_store.empty())
        return m_data.fill(m_session, first, m_options.batch, m_input.data, m_target.data);
    float* const targets = m_store.data() + update() * m_data.inputs();
    m_data.fill(m_session, first, update(), m_store.data(), targets);
}

BatchStep BatchTrainer::finished(double seconds, const BatchSums& sums, bool countsNorms) const
{
    const auto steps = double(m_options.accumulation), batch = double(m_options.batch), all = double(update());
    BatchStep step{seconds, sums.loss / (all * double(m_data.outputs())), {}};
    if (!countsNorms)
        return step;
    double squared = 0;
    for (const Layer& layer : m_layers) {
        for (std::int64_t i = 0; i < layer.inputs * layer.outputs; ++i)
            squared += double(layer.weightGradient[i]) * double(layer.weightGradient[i]);
        for (std::int64_t i = 0; i < layer.outputs; ++i)
            squared += double(layer.biasGradient[i]) * double(layer.biasGradient[i]);
    }
    // Gradients of micro-batches are summed, and each δ holds 1 / batch.
    step.noise = noiseOfExamples(all, batch * batch * sums.squaredNorms / all, squared / (steps * steps));
    return step;
}

BatchStep BatchTrainer::gradients(bool countsNorms)
{
    BatchSums sums;
    const double seconds = m_passes.run(m_session, m_options.product, 0, countsNorms, sums);
    return finished(seconds, sums, countsNorms);
}

BatchStep BatchTrainer::step(double rate)
{
    BatchSums sums;
    const float ofSum = float(rate / double(m_options.accumulation));
    const double seconds = m_step.run(m_session, m_options.product, ofSum, false, sums);
    return finished(seconds, sums, false);
}

void BatchTrainer::learn(double rate)
{
    constexpr double aloneFlops = 4e6; // waking the others takes longer
    double flops = 0;
    for (const Layer& layer : m_layers)
        flops += 6.0 * double(update()) * double(layer.inputs) * double(layer.outputs);
    BatchSums sums;
    if (flops < aloneFlops)
        m_step.runAlone(m_options.product, float(rate / double(m_options.accumulation)), false, sums);
    else
        static_cast<void>(step(rate));
}

std::vector<float> BatchTrainer::parameters() const
{
    std::vector<float> all;
    for (const Layer& layer : m_layers) {
        all.insert(all.end(), layer.weight, layer.weight + layer.inputs * layer.outputs);
        all.insert(all.end(), layer.bias, layer.bias + layer.outputs);
    }
    return all;
}

void BatchTrainer::setParameters(const std::vector<float>& parameters)
{
    const float* at = parameters.data();
    for (const Layer& layer : m_layers) {
        std::copy_n(at, layer.inputs * layer.outputs, layer.weight);
        at += layer.inputs * layer.outputs;
        std::copy_n(at, layer.outputs, layer.bias);
        at += layer.outputs;
    }
}

std::vector<float> BatchTrainer::lastGradients() const
{
    std::vector<float> all;
    const float mean = 1 / float(m_options.accumulation);
    for (const Layer& layer : m_layers) {
        for (std::int64_t i = 0; i < layer.inputs * layer.outputs; ++i)
            all.push_back(mean * layer.weightGradient[i]);
        for (std::int64_t i = 0; i < layer.outputs; ++i)
            all.push_back(mean * layer.biasGradient[i]);
    }
    return all;
}

} // namespace memscape::host
