// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/amp_trainer.h"

#include "core/checkpoint/mlp_chain.h"
#include "kernels/host/amp_arrays.h"
#include "kernels/measure/mlp_numbers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace memscape::host {

namespace {

constexpr int layers = 3;
// torch.optim.AdamW's standards.
constexpr float learningRate = 1e-3F, beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F, decay = 0.01F;

/// One linear layer: what it keeps, and its products.
struct Layer
{
    std::int64_t inputs = 0, outputs = 0;
    PooledArray weight, bias; ///< FP32
    PooledArray weightMoment, weightSquare, biasMoment, biasSquare; ///< AdamW's
    PooledArray weightStep, biasStep; ///< its counts: the fused kernel keeps them on the device
    PooledArray weightCast, biasCast, inputCast;
    PooledArray weightGradient, biasGradient; ///< FP32
    std::optional<TeamGemm> forward, inputProduct, weightProduct;
};

class HostAmpTrainer final : public AmpTrainer
{
public:
    HostAmpTrainer(HostSession& session, const TrainerOptions& options)
        : m_session(session)
        , m_options(options)
        , m_batch(options.network.batch)
        , m_isShort(options.format != Format::Fp32)
        , m_scaler(options.scaler.value_or(LossScalerOptions{}))
    {
    }

    Result<void> open();
    Result<TrainedStep> step(const TrainingBatch& batch, GradientCounter* counter) override;
    std::int64_t highWater() const override { return m_pool->pool.highWater(); }
    std::vector<float> parameters() const override;
    const std::vector<float>& lastGradients() const override { return m_lastGradients; }

private:
    Result<void> prepare(Layer& layer, int index);
    Result<PooledArray> take(std::int64_t elements, Format format)
    {
        return PooledArray::take(*m_pool, elements, format);
    }
    Result<PooledArray> cast(const PooledArray& from, Format to);
    Result<PooledArray> linear(Layer& layer, const PooledArray& input);
    Result<double> forward();
    Result<void> backward(double scale, GradientCounter* counter);
    Result<PooledArray> layerBackward(Layer& layer, PooledArray gradient, const PooledArray& input,
                                      bool wantsInput, GradientCounter* counter);
    Result<PooledArray> lossBackward(double scale, GradientCounter* counter);
    bool unscale(double scale);
    void update();
    void count(const PooledArray& gradients, GradientCounter* counter) const;

    HostSession& m_session;
    TrainerOptions m_options;
    std::int64_t m_batch;
    bool m_isShort;
    LossScaler m_scaler;
    Buffer m_arena;
    std::unique_ptr<ArrayPool> m_pool;
    std::array<Layer, layers> m_layers;
    PooledArray m_input, m_labels;
    std::array<PooledArray, 2> m_activations; ///< behind ReLU
    PooledArray m_logProbabilities, m_wideLogs, m_loss, m_labelWeight;
    double m_scale = 1;
    int m_updates = 0;
    std::vector<float> m_lastGradients;
};

Result<void> HostAmpTrainer::open()
{
    const TrainedNetwork& network = m_options.network;
    // Half as much again as predicted: more than predicted would be counted and shown, not refused.
    MEMSCAPE_TRY(recipe, trainingRecipe(m_options.format));
    MEMSCAPE_TRY(predicted, recipeStep(m_session.device(), network, recipe));
    const std::int64_t bytes = predicted.peak + predicted.peak / 2 + (1 << 20);
    MEMSCAPE_CHECK(m_session.checkFits(double(bytes)));
    MEMSCAPE_TRY(arena, allocate(std::size_t(bytes), Pages::Huge, m_session.memory()));
    m_arena = std::move(arena);
    m_pool = std::make_unique<ArrayPool>(ArrayPool{CountingPool(bytes), m_arena.data()});
    const std::array<std::int64_t, layers + 1> widths{network.inputs, network.hidden,
                                                      network.hidden, TrainedNetwork::classes};
    for (int i = 0; i < layers; ++i) {
        m_layers[std::size_t(i)].inputs = widths[std::size_t(i)];
        m_layers[std::size_t(i)].outputs = widths[std::size_t(i + 1)];
        MEMSCAPE_CHECK(prepare(m_layers[std::size_t(i)], i));
    }
    MEMSCAPE_TRY(input, take(m_batch * network.inputs, Format::Fp32));
    MEMSCAPE_TRY(labels, take(m_batch * 2, Format::Fp32)); // 8 B each
    m_input = std::move(input);
    m_labels = std::move(labels);
    return m_session.checkStopped();
}

Result<void> HostAmpTrainer::prepare(Layer& layer, int index)
{
    const std::int64_t in = layer.inputs, out = layer.outputs;
    struct Wanted
    {
        PooledArray& array;
        std::int64_t elements;
    };
    const std::array<Wanted, 8> wanted{{{layer.weight, in * out},
                                        {layer.bias, out},
                                        {layer.weightMoment, in * out},
                                        {layer.weightSquare, in * out},
                                        {layer.biasMoment, out},
                                        {layer.biasSquare, out},
                                        {layer.weightStep, 1},
                                        {layer.biasStep, 1}}};
    for (const Wanted& one : wanted) {
        MEMSCAPE_TRY(array, take(one.elements, Format::Fp32));
        std::fill_n(array.floats(), one.elements, 0.0F);
        one.array = std::move(array);
    }
    const float bound = 1 / std::sqrt(float(in)); // torch.nn.Linear's
    for (std::int64_t i = 0; i < in * out; ++i)
        layer.weight.floats()[i] = bound * mlpUniform(mlpWeightSeed(index), std::uint64_t(i));
    for (std::int64_t i = 0; i < out; ++i)
        layer.bias.floats()[i] = bound * mlpUniform(mlpBiasSeed(index), std::uint64_t(i));
    const auto plan = [&](GemmTask task) {
        return TeamGemm::make(m_session, m_options.kernel, task);
    };
    const Format format = m_options.format;
    // h (batch × out) = x · Wᵀ, W is (out × in) as in PyTorch.
    MEMSCAPE_TRY(forward, plan({{m_batch, out, in}, format, format, in, in, out, false, true}));
    // dx (batch × in) = dh · W;  dW (out × in) = dhᵀ · x
    MEMSCAPE_TRY(input, plan({{m_batch, in, out}, format, format, out, in, in, false, false}));
    MEMSCAPE_TRY(weight, plan({{out, in, m_batch}, format, format, out, in, in, true, false}));
    layer.forward = std::move(forward);
    layer.inputProduct = std::move(input);
    layer.weightProduct = std::move(weight);
    return {};
}

Result<PooledArray> HostAmpTrainer::cast(const PooledArray& from, Format to)
{
    MEMSCAPE_TRY(made, take(from.elements(), to));
    convertArray(m_session.team(), from, made);
    return made;
}

Result<PooledArray> HostAmpTrainer::linear(Layer& layer, const PooledArray& input)
{
    const Format format = m_options.format;
    const PooledArray* operand = &input;
    if (m_isShort) {
        MEMSCAPE_TRY(bias, cast(layer.bias, format));
        MEMSCAPE_TRY(weight, cast(layer.weight, format));
        layer.weightCast = std::move(weight);
        layer.biasCast = std::move(bias);
        if (input.format() != format) { // the batch itself
            MEMSCAPE_TRY(inputCast, cast(input, format));
            layer.inputCast = std::move(inputCast);
            operand = &layer.inputCast;
        }
    }
    MEMSCAPE_TRY(result, take(m_batch * layer.outputs, format));
    const PooledArray& weight = m_isShort ? layer.weightCast : layer.weight;
    layer.forward->run(operand->data(), weight.data(), result.data());
    addBias(m_session.team(), m_isShort ? layer.biasCast : layer.bias, result);
    MEMSCAPE_CHECK(m_session.checkStopped());
    return result;
}

Result<double> HostAmpTrainer::forward()
{
    const PooledArray* input = &m_input;
    for (std::size_t i = 0; i < m_activations.size(); ++i) {
        MEMSCAPE_TRY(sums, linear(m_layers[i], *input));
        MEMSCAPE_TRY(activation, take(sums.elements(), sums.format()));
        reluArray(m_session.team(), sums, activation);
        m_activations[i] = std::move(activation);
        input = &m_activations[i];
    }
    MEMSCAPE_TRY(logits, linear(m_layers[2], *input));
    MEMSCAPE_TRY(logs, take(logits.elements(), m_options.format));
    logSoftmax(logits, logs, TrainedNetwork::classes);
    PooledArray wide; // nll_loss is on autocast's list of FP32; log_softmax within it is not
    if (m_isShort) {
        MEMSCAPE_TRY(made, cast(logs, Format::Fp32));
        wide = std::move(made);
    }
    MEMSCAPE_TRY(loss, take(1, Format::Fp32));
    MEMSCAPE_TRY(labelWeight, take(1, Format::Fp32));
    m_logProbabilities = std::move(logs);
    m_loss = std::move(loss);
    m_labelWeight = std::move(labelWeight);
    const double mean =
        meanLoss(m_isShort ? wide : m_logProbabilities, m_labels, TrainedNetwork::classes);
    m_wideLogs = std::move(wide);
    for (Layer& layer : m_layers)
        layer.biasCast.give(); // autocast's end; products keep the weights that backward needs
    m_layers[0].weightCast.give();
    return mean;
}

void HostAmpTrainer::count(const PooledArray& gradients, GradientCounter* counter) const
{
    if (counter != nullptr)
        eachChunk(gradients, [&](std::span<const float> part) { counter->add(part, m_scale); });
}

Result<PooledArray> HostAmpTrainer::lossBackward(double scale, GradientCounter* counter)
{
    const auto elements = m_logProbabilities.elements();
    MEMSCAPE_TRY(ofLabels, take(elements, Format::Fp32)); // nll_loss's
    m_wideLogs.give();
    m_labelWeight.give();
    if (m_isShort) {
        MEMSCAPE_TRY(narrow, cast(ofLabels, m_options.format));
        ofLabels = std::move(narrow);
    }
    MEMSCAPE_TRY(gradient, take(elements, m_options.format));
    // At a label −scale / batch came from nll_loss, in the format.
    const double factor = rounded(numberFormat(m_options.format), scale / double(m_batch));
    memscape::host::lossBackward(m_logProbabilities, m_labels, gradient, TrainedNetwork::classes,
                                 factor);
    ofLabels.give();
    m_logProbabilities.give();
    count(gradient, counter);
    return gradient;
}

Result<PooledArray> HostAmpTrainer::layerBackward(Layer& layer, PooledArray gradient,
                                                  const PooledArray& input, bool wantsInput,
                                                  GradientCounter* counter)
{
    const Format format = m_options.format;
    const auto asFloat = [&](PooledArray& made) -> Result<PooledArray> {
        if (!m_isShort)
            return std::move(made);
        MEMSCAPE_TRY(wide, cast(made, Format::Fp32));
        made.give();
        return wide;
    };
    PooledArray result;
    if (wantsInput) {
        MEMSCAPE_TRY(made, take(m_batch * layer.inputs, format));
        layer.inputProduct->run(gradient.data(),
                                (m_isShort ? layer.weightCast : layer.weight).data(), made.data());
        count(made, counter);
        result = std::move(made);
    }
    MEMSCAPE_TRY(weight, take(layer.inputs * layer.outputs, format));
    layer.weightProduct->run(gradient.data(), input.data(), weight.data());
    count(weight, counter);
    MEMSCAPE_TRY(bias, take(layer.outputs, format));
    sumRows(gradient, bias);
    gradient.give();
    layer.weightCast.give();
    layer.inputCast.give();
    MEMSCAPE_TRY(weightGradient, asFloat(weight));
    layer.weightGradient = std::move(weightGradient);
    MEMSCAPE_TRY(biasGradient, asFloat(bias));
    layer.biasGradient = std::move(biasGradient);
    MEMSCAPE_CHECK(m_session.checkStopped());
    return result;
}

Result<void> HostAmpTrainer::backward(double scale, GradientCounter* counter)
{
    MEMSCAPE_TRY(ofLoss, take(1, Format::Fp32)); // 1, as long as backward runs
    MEMSCAPE_TRY(gradient, lossBackward(scale, counter));
    for (std::size_t i = layers; i-- > 0;) {
        const PooledArray& batch = m_isShort ? m_layers[0].inputCast : m_input;
        const PooledArray& input = i > 0 ? m_activations[i - 1] : batch;
        MEMSCAPE_TRY(below, layerBackward(m_layers[i], std::move(gradient), input, i > 0, counter));
        if (i == 0)
            break;
        MEMSCAPE_TRY(masked, take(below.elements(), below.format()));
        reluBackward(m_session.team(), m_activations[i - 1], below, masked);
        m_activations[i - 1].give();
        gradient = std::move(masked);
    }
    return {};
}

bool HostAmpTrainer::unscale(double scale)
{
    bool isFinite = true;
    m_lastGradients.clear();
    for (Layer& layer : m_layers) {
        for (PooledArray* gradient : {&layer.weightGradient, &layer.biasGradient}) {
            isFinite &= scaleArray(m_session.team(), *gradient, float(1 / scale));
            if (m_options.network.parameters() < 4096) // kept for the check alone
                m_lastGradients.insert(m_lastGradients.end(), gradient->floats(),
                                       gradient->floats() + gradient->elements());
        }
    }
    return isFinite;
}

void HostAmpTrainer::update()
{
    ++m_updates;
    const AdamStep adam{learningRate, beta1, beta2, epsilon, decay,
                        1 - std::pow(beta1, float(m_updates)),
                        std::sqrt(1 - std::pow(beta2, float(m_updates)))};
    for (Layer& layer : m_layers) {
        adamArray(m_session.team(), adam, layer.weight, layer.weightGradient,
                  layer.weightMoment.floats(), layer.weightSquare.floats());
        adamArray(m_session.team(), adam, layer.bias, layer.biasGradient,
                  layer.biasMoment.floats(), layer.biasSquare.floats());
    }
}

Result<TrainedStep> HostAmpTrainer::step(const TrainingBatch& batch, GradientCounter* counter)
{
    std::copy(batch.inputs.begin(), batch.inputs.end(), m_input.floats());
    std::copy(batch.labels.begin(), batch.labels.end(), m_labels.as<std::int64_t>());
    TrainedStep step;
    m_scale = m_options.scaler ? double(m_scaler.scale()) : 1;
    step.scale = float(m_scale);
    const double begin = m_session.clock().now();
    MEMSCAPE_TRY(loss, forward());
    step.loss = loss;
    MEMSCAPE_CHECK(backward(m_scale, counter));
    const bool isFinite = unscale(m_scale);
    const bool steps = m_options.scaler ? m_scaler.update(!isFinite) : true;
    step.isSkipped = !steps;
    if (steps)
        update();
    m_loss.give();
    for (Layer& layer : m_layers) { // zero_grad(set_to_none=True)
        layer.weightGradient.give();
        layer.biasGradient.give();
    }
    step.seconds = m_session.clock().now() - begin;
    MEMSCAPE_CHECK(m_session.checkStopped());
    return step;
}

std::vector<float> HostAmpTrainer::parameters() const
{
    std::vector<float> all;
    for (const Layer& layer : m_layers) {
        for (const PooledArray* array : {&layer.weight, &layer.bias})
            all.insert(all.end(), array->floats(), array->floats() + array->elements());
    }
    return all;
}

} // namespace

Result<std::unique_ptr<AmpTrainer>> makeTrainer(HostSession& session, const TrainerOptions& options)
{
    auto trainer = std::make_unique<HostAmpTrainer>(session, options);
    MEMSCAPE_CHECK(trainer->open());
    return std::unique_ptr<AmpTrainer>(std::move(trainer));
}

void fillBatch(HostSession& session, const TrainedNetwork& network, std::uint64_t index,
               TrainingBatch& batch)
{
    constexpr float unitVariance = 1.7320508F; // of uniform numbers in ±√3
    constexpr std::uint64_t directions = 900, first = 1000;
    const auto k = std::size_t(network.inputs), classes = std::size_t(TrainedNetwork::classes);
    batch.inputs.resize(std::size_t(network.batch) * k);
    batch.labels.resize(std::size_t(network.batch));
    std::vector<float> towards(classes * k);
    for (std::size_t i = 0; i < towards.size(); ++i)
        towards[i] = mlpUniform(directions, i);
    session.team().run([&](int thread) {
        const Part rows = partOf(batch.labels.size(), thread, session.team().size());
        for (std::size_t row = rows.begin; row < rows.end && !session.team().stopping(); ++row) {
            float* x = batch.inputs.data() + row * k;
            for (std::size_t j = 0; j < k; ++j)
                x[j] = unitVariance * mlpUniform(first + index, row * k + j);
            float best = 0;
            for (std::size_t c = 0; c < classes; ++c) {
                const float along =
                    std::inner_product(x, x + k, towards.data() + c * k, 0.0F);
                if (c == 0 || along > best) {
                    best = along;
                    batch.labels[row] = std::int64_t(c);
                }
            }
        }
    });
}

} // namespace memscape::host
