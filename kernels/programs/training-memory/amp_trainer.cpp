// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/training-memory/amp_trainer.h"

#include "kernels/programs/training-memory/amp_pool.h"

#include <array>
#include <cmath>

namespace memscape {

static_assert(ampClasses == TrainedNetwork::classes);

namespace {

constexpr int layers = 3;
// torch.optim.AdamW's standards.
constexpr float learningRate = 1e-3F, beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F, decay = 0.01F;

/// One linear layer: what it keeps, and its products.
struct Layer
{
    std::int64_t inputs = 0, outputs = 0;
    PooledArray weight, bias;                                       ///< FP32
    PooledArray weightMoment, weightSquare, biasMoment, biasSquare; ///< AdamW's
    PooledArray weightStep, biasStep; ///< its counts: the fused kernel keeps them on the device
    PooledArray weightCast, biasCast, inputCast;
    PooledArray weightGradient, biasGradient; ///< FP32
    int forward = 0, inputProduct = 0, weightProduct = 0;
};

class ProgrammedTrainer final : public AmpTrainer
{
public:
    ProgrammedTrainer(const Device& machine, const TrainerOptions& options)
        : m_machine(machine)
        , m_options(options)
        , m_batch(options.network.batch)
        , m_isShort(options.format != Format::Fp32)
        , m_scaler(options.scaler.value_or(LossScalerOptions{}))
    { }

    Result<void> open(const AmpDeviceFactory& devices);
    Result<TrainedStep> step(std::uint64_t batch, GradientCounter* counter) override;
    std::int64_t highWater() const override { return m_pool->pool.highWater(); }
    Result<std::vector<float>> parameters() override;
    const std::vector<float>& lastGradients() const override { return m_lastGradients; }

private:
    Result<void> prepare(Layer& layer, int index);
    Result<PooledArray> take(std::int64_t elements, Format format);
    Result<PooledArray> cast(const PooledArray& from, Format to);
    /// The products' sums of a layer, without the bias.
    Result<PooledArray> linear(Layer& layer, const PooledArray& input);
    const PooledArray& biasOf(const Layer& layer) const { return m_isShort ? layer.biasCast : layer.bias; }
    const PooledArray& weightOf(const Layer& layer) const { return m_isShort ? layer.weightCast : layer.weight; }
    Result<void> forward();
    Result<void> backward(GradientCounter* counter);
    Result<PooledArray> layerBackward(Layer& layer, PooledArray gradient, const PooledArray& input, bool wantsInput,
                                      GradientCounter* counter);
    Result<PooledArray> lossBackward(GradientCounter* counter);
    /// Whether the optimizer may step.
    Result<bool> unscale();
    Result<void> update();
    Result<void> count(const PooledArray& gradients, GradientCounter* counter);
    Result<void> keep(const PooledArray& gradient);

    const Device& m_machine;
    TrainerOptions m_options;
    std::int64_t m_batch;
    bool m_isShort;
    LossScaler m_scaler;
    std::unique_ptr<AmpDevice> m_device;
    std::unique_ptr<ArrayPool> m_pool;
    std::array<Layer, layers> m_layers;
    PooledArray m_input, m_labels;
    std::array<PooledArray, 2> m_activations; ///< behind ReLU
    PooledArray m_logProbabilities, m_wideLogs, m_loss, m_labelWeight;
    double m_scale = 1;
    int m_updates = 0;
    std::vector<float> m_lastGradients;
};

Result<void> ProgrammedTrainer::open(const AmpDeviceFactory& devices)
{
    const TrainedNetwork& network = m_options.network;
    // Half as much again as predicted: more than predicted would be counted and shown, not refused.
    MEMSCAPE_TRY(recipe, trainingRecipe(m_options.format));
    MEMSCAPE_TRY(predicted, recipeStep(m_machine, network, recipe));
    const std::int64_t bytes = predicted.peak + predicted.peak / 2 + (1 << 20);
    MEMSCAPE_SET(m_device, devices(bytes));
    m_pool = std::make_unique<ArrayPool>(ArrayPool{CountingPool(bytes), m_device->arena()});
    const std::array<std::int64_t, layers + 1> widths{network.inputs, network.hidden, network.hidden,
                                                      TrainedNetwork::classes};
    for (int i = 0; i < layers; ++i) {
        m_layers[std::size_t(i)].inputs = widths[std::size_t(i)];
        m_layers[std::size_t(i)].outputs = widths[std::size_t(i + 1)];
        MEMSCAPE_CHECK(prepare(m_layers[std::size_t(i)], i));
    }
    MEMSCAPE_SET(m_input, take(m_batch * network.inputs, Format::Fp32));
    MEMSCAPE_TRY(labels, take(m_batch * 2, Format::Fp32)); // 8 B each
    m_labels = std::move(labels);
    return m_device->checkStopped();
}

Result<PooledArray> ProgrammedTrainer::take(std::int64_t elements, Format format)
{
    MEMSCAPE_TRY(taken, PooledArray::take(*m_pool, elements, format));
    if (m_options.isChecked)
        MEMSCAPE_CHECK(m_device->poison(taken));
    return taken;
}

Result<void> ProgrammedTrainer::prepare(Layer& layer, int index)
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
        MEMSCAPE_CHECK(m_device->clear(array));
        one.array = std::move(array);
    }
    const float bound = 1 / std::sqrt(float(in)); // torch.nn.Linear's
    MEMSCAPE_CHECK(m_device->uniform(layer.weight, mlpWeightSeed(index), bound));
    MEMSCAPE_CHECK(m_device->uniform(layer.bias, mlpBiasSeed(index), bound));
    const Format format = m_options.format;
    // h (batch × out) = x · Wᵀ, W is (out × in) as in PyTorch.
    MEMSCAPE_SET(layer.forward, m_device->prepare({{m_batch, out, in}, format, false, true}));
    // dx (batch × in) = dh · W;  dW (out × in) = dhᵀ · x
    MEMSCAPE_SET(layer.inputProduct, m_device->prepare({{m_batch, in, out}, format, false, false}));
    MEMSCAPE_SET(layer.weightProduct, m_device->prepare({{out, in, m_batch}, format, true, false}));
    return {};
}

Result<PooledArray> ProgrammedTrainer::cast(const PooledArray& from, Format to)
{
    MEMSCAPE_TRY(made, take(from.elements(), to));
    MEMSCAPE_CHECK(m_device->convert(from, made));
    return made;
}

Result<PooledArray> ProgrammedTrainer::linear(Layer& layer, const PooledArray& input)
{
    const Format format = m_options.format;
    const PooledArray* operand = &input;
    if (m_isShort) {
        MEMSCAPE_SET(layer.biasCast, cast(layer.bias, format));
        MEMSCAPE_SET(layer.weightCast, cast(layer.weight, format));
        if (input.format() != format) { // the batch itself
            MEMSCAPE_SET(layer.inputCast, cast(input, format));
            operand = &layer.inputCast;
        }
    }
    MEMSCAPE_TRY(result, take(m_batch * layer.outputs, format));
    MEMSCAPE_CHECK(m_device->multiply(layer.forward, *operand, weightOf(layer), result));
    MEMSCAPE_CHECK(m_device->checkStopped());
    return result;
}

Result<void> ProgrammedTrainer::forward()
{
    const PooledArray* input = &m_input;
    for (std::size_t i = 0; i < m_activations.size(); ++i) {
        MEMSCAPE_TRY(sums, linear(m_layers[i], *input));
        MEMSCAPE_TRY(activation, take(sums.elements(), sums.format()));
        MEMSCAPE_CHECK(m_device->biasRelu(biasOf(m_layers[i]), sums, activation));
        m_activations[i] = std::move(activation);
        input = &m_activations[i];
    }
    MEMSCAPE_TRY(logits, linear(m_layers[2], *input));
    MEMSCAPE_CHECK(m_device->addBias(biasOf(m_layers[2]), logits));
    MEMSCAPE_TRY(logs, take(logits.elements(), m_options.format));
    MEMSCAPE_CHECK(m_device->logSoftmax(logits, logs));
    PooledArray wide; // nll_loss is on autocast's list of FP32; log_softmax within it is not
    if (m_isShort)
        MEMSCAPE_SET(wide, cast(logs, Format::Fp32));
    MEMSCAPE_SET(m_loss, take(1, Format::Fp32));
    MEMSCAPE_SET(m_labelWeight, take(1, Format::Fp32));
    m_logProbabilities = std::move(logs);
    MEMSCAPE_CHECK(m_device->meanLoss(m_isShort ? wide : m_logProbabilities, m_labels, m_loss));
    m_wideLogs = std::move(wide);
    for (Layer& layer : m_layers)
        layer.biasCast.give(); // autocast's end; products keep the weights that backward needs
    m_layers[0].weightCast.give();
    return {};
}

Result<void> ProgrammedTrainer::count(const PooledArray& gradients, GradientCounter* counter)
{
    return counter != nullptr ? m_device->count(gradients, m_scale, *counter) : Result<void>();
}

Result<PooledArray> ProgrammedTrainer::lossBackward(GradientCounter* counter)
{
    const auto elements = m_logProbabilities.elements();
    MEMSCAPE_TRY(ofLabels, take(elements, Format::Fp32)); // nll_loss's, zero but at the labels
    MEMSCAPE_CHECK(m_device->clear(ofLabels));
    m_wideLogs.give();
    m_labelWeight.give();
    if (m_isShort)
        MEMSCAPE_SET(ofLabels, cast(ofLabels, m_options.format));
    MEMSCAPE_TRY(gradient, take(elements, m_options.format));
    // At a label −scale / batch came from nll_loss, in the format.
    const double factor = rounded(numberFormat(m_options.format), m_scale / double(m_batch));
    MEMSCAPE_CHECK(m_device->lossBackward(m_logProbabilities, m_labels, gradient, factor));
    ofLabels.give();
    m_logProbabilities.give();
    MEMSCAPE_CHECK(count(gradient, counter));
    return gradient;
}

Result<PooledArray> ProgrammedTrainer::layerBackward(Layer& layer, PooledArray gradient, const PooledArray& input,
                                                     bool wantsInput, GradientCounter* counter)
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
        MEMSCAPE_CHECK(m_device->multiply(layer.inputProduct, gradient, weightOf(layer), made));
        MEMSCAPE_CHECK(count(made, counter));
        result = std::move(made);
    }
    MEMSCAPE_TRY(weight, take(layer.inputs * layer.outputs, format));
    MEMSCAPE_CHECK(m_device->multiply(layer.weightProduct, gradient, input, weight));
    MEMSCAPE_CHECK(count(weight, counter));
    MEMSCAPE_TRY(bias, take(layer.outputs, format));
    MEMSCAPE_CHECK(m_device->sumRows(gradient, bias));
    gradient.give();
    layer.weightCast.give();
    layer.inputCast.give();
    MEMSCAPE_SET(layer.weightGradient, asFloat(weight));
    MEMSCAPE_SET(layer.biasGradient, asFloat(bias));
    MEMSCAPE_CHECK(m_device->checkStopped());
    return result;
}

Result<void> ProgrammedTrainer::backward(GradientCounter* counter)
{
    MEMSCAPE_TRY(ofLoss, take(1, Format::Fp32)); // 1, as long as backward runs
    MEMSCAPE_TRY(gradient, lossBackward(counter));
    for (std::size_t i = layers; i-- > 0;) {
        const PooledArray& batch = m_isShort ? m_layers[0].inputCast : m_input;
        const PooledArray& input = i > 0 ? m_activations[i - 1] : batch;
        MEMSCAPE_TRY(below, layerBackward(m_layers[i], std::move(gradient), input, i > 0, counter));
        if (i == 0)
            break;
        MEMSCAPE_TRY(masked, take(below.elements(), below.format()));
        MEMSCAPE_CHECK(m_device->reluBackward(m_activations[i - 1], below, masked));
        m_activations[i - 1].give();
        gradient = std::move(masked);
    }
    return {};
}

Result<bool> ProgrammedTrainer::unscale()
{
    if (!m_options.scaler)
        return true;
    std::vector<AmpArray> gradients;
    for (const Layer& layer : m_layers) {
        gradients.push_back(layer.weightGradient);
        gradients.push_back(layer.biasGradient);
    }
    MEMSCAPE_CHECK(m_device->unscale(gradients, float(1 / m_scale)));
    MEMSCAPE_TRY(isInfinite, m_device->foundInfinite());
    return m_scaler.update(isInfinite);
}

Result<void> ProgrammedTrainer::update()
{
    ++m_updates;
    const AmpAdamStep adam{learningRate,
                           beta1,
                           beta2,
                           epsilon,
                           decay,
                           1 - std::pow(beta1, float(m_updates)),
                           std::sqrt(1 - std::pow(beta2, float(m_updates)))};
    std::vector<AmpParameter> parameters;
    for (const Layer& layer : m_layers) {
        parameters.push_back({layer.weight, layer.weightGradient, layer.weightMoment, layer.weightSquare});
        parameters.push_back({layer.bias, layer.biasGradient, layer.biasMoment, layer.biasSquare});
    }
    return m_device->adam(adam, parameters);
}

Result<void> ProgrammedTrainer::keep(const PooledArray& gradient)
{
    MEMSCAPE_TRY(values, m_device->read(gradient));
    m_lastGradients.insert(m_lastGradients.end(), values.begin(), values.end());
    return {};
}

Result<TrainedStep> ProgrammedTrainer::step(std::uint64_t batch, GradientCounter* counter)
{
    MEMSCAPE_CHECK(m_device->batch(m_options.network, batch, m_input, m_labels));
    TrainedStep step;
    m_scale = m_options.scaler ? double(m_scaler.scale()) : 1;
    step.scale = float(m_scale);
    MEMSCAPE_CHECK(m_device->begin());
    MEMSCAPE_CHECK(forward());
    MEMSCAPE_CHECK(backward(counter));
    MEMSCAPE_TRY(steps, unscale());
    step.isSkipped = !steps;
    if (steps)
        MEMSCAPE_CHECK(update());
    m_lastGradients.clear();
    m_loss.give();
    for (Layer& layer : m_layers) { // zero_grad(set_to_none=True)
        if (m_options.isChecked) {
            MEMSCAPE_CHECK(keep(layer.weightGradient));
            MEMSCAPE_CHECK(keep(layer.biasGradient));
        }
        layer.weightGradient.give();
        layer.biasGradient.give();
    }
    MEMSCAPE_SET(step.seconds, m_device->end());
    MEMSCAPE_SET(step.loss, m_device->loss());
    MEMSCAPE_CHECK(m_device->checkStopped());
    return step;
}

Result<std::vector<float>> ProgrammedTrainer::parameters()
{
    std::vector<float> all;
    for (const Layer& layer : m_layers) {
        for (const PooledArray* array : {&layer.weight, &layer.bias}) {
            MEMSCAPE_TRY(values, m_device->read(*array));
            all.insert(all.end(), values.begin(), values.end());
        }
    }
    return all;
}

} // namespace

Result<std::unique_ptr<AmpTrainer>> makeTrainer(const Device& machine, const AmpDeviceFactory& devices,
                                                const TrainerOptions& options)
{
    auto trainer = std::make_unique<ProgrammedTrainer>(machine, options);
    MEMSCAPE_CHECK(trainer->open(devices));
    return std::unique_ptr<AmpTrainer>(std::move(trainer));
}

} // namespace memscape
