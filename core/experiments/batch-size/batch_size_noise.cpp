// SPDX-License-Identifier: Apache-2.0
// What is known of a model's gradient noise before anything is run.
#include "core/experiments/batch-size/batch_size.h"

#include "core/network/inventory.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::int64_t mostRegressionInputs = 4096; // a step of its moments costs as many operations

BatchNoise given(const BatchCase& asked)
{
    BatchNoise noise;
    noise.source = BatchNoise::Source::Given;
    noise.target = asked.targetLoss;
    noise.noiseScale = asked.noiseScale;
    noise.reason = "noise_scale is given, and taken as constant along the way";
    if (asked.fewestSteps > 0)
        noise.hyperbola = {asked.fewestSteps, asked.fewestSteps * asked.noiseScale};
    else
        noise.remedy = "set fewest_steps too for steps and examples to the target";
    return noise;
}

void neverReached(BatchNoise& noise, std::string reason, std::string remedy)
{
    noise.isReached = false;
    noise.reason = std::move(reason);
    noise.remedy = std::move(remedy);
}

BatchNoise regression(const std::vector<std::int64_t>& sizes, const BatchCase& asked)
{
    BatchNoise noise;
    noise.source = BatchNoise::Source::Regression;
    noise.mlpSizes = sizes;
    noise.target = asked.targetLoss > 0 ? asked.targetLoss : 2 * NoisyRegression::labelVariance;
    noise.reason = "one linear layer on noisy examples: the moments of its gradients in closed form";
    NoisyRegression problem(sizes[0], sizes[1]);
    const std::string floor = quantityText(problem.floor(), Unit::One), start = quantityText(problem.loss(), Unit::One);
    if (noise.target <= problem.floor()) {
        neverReached(
            noise,
            fmt::format("a loss of {} is never reached: the labels' own noise is {}", numberText(noise.target), floor),
            fmt::format("choose a target between {} and {}", floor, start));
        return noise;
    }
    if (noise.target >= problem.loss()) {
        neverReached(
            noise, fmt::format("training starts at a loss of {}, below the target {}", start, numberText(noise.target)),
            fmt::format("choose a target between {} and {}", floor, start));
        return noise;
    }
    std::vector<double> batches;
    for (double batch = 1; batch <= 0x1p14; batch *= 4)
        batches.push_back(batch);
    auto fitted = fitHyperbola(regressionSteps(sizes[0], sizes[1], noise.target, batches));
    if (!fitted) {
        neverReached(
            noise,
            fmt::format("a loss of {} is so near to the labels' own noise, {}, that no batch reaches it in 1500 steps",
                        numberText(noise.target), floor),
            "choose a larger target");
        return noise;
    }
    noise.hyperbola = *fitted;
    // On the way of this update; smaller ones go the way of 8.
    while (problem.loss() > noise.target)
        problem.step(std::max(8.0, asked.update(double(asked.batch))));
    noise.noiseScale = problem.simpleNoise();
    return noise;
}

/// Parameters of a decoder that one token uses, without embeddings: what the law counts.
double lawParameters(const ModelDescription& model)
{
    const auto tensors = inventory(model);
    if (!tensors)
        return 0;
    double embeddings = 0;
    for (const ModelTensor& tensor : tensors->tensors) {
        const bool isOuter =
            tensor.role == TensorRole::Embedding || (tensor.layer < 0 && tensor.role == TensorRole::Matrix);
        embeddings += isOuter ? double(tensor.elements()) : 0;
    }
    return double(tensors->active) - embeddings;
}

BatchNoise lawOf(const ModelDescription& model, const BatchCase& asked)
{
    BatchNoise noise;
    noise.source = BatchNoise::Source::Law;
    const LanguageLaw law{lawParameters(model)};
    noise.law = law;
    noise.target = asked.targetLoss > 0 ? asked.targetLoss : 1.1 * law.leastLoss();
    noise.reason = "the scaling laws of Kaplan et al. 2020 for decoders trained on web text";
    const auto tokens = law.toLoss(noise.target);
    if (!tokens) {
        neverReached(noise, tokens.error().message, tokens.error().hint);
        return noise;
    }
    if (tokens->fewestSteps < 1) {
        neverReached(noise, fmt::format("a loss of {} is above what training starts at", numberText(noise.target)),
                     "choose a smaller target");
        return noise;
    }
    noise.hyperbola = {tokens->fewestSteps, tokens->fewestExamples / double(asked.sequence)};
    noise.noiseScale = law.noiseTokens(noise.target) / double(asked.sequence);
    return noise;
}

} // namespace

std::unique_ptr<TrainingCourse> BatchNoise::course(const BatchCase& asked) const
{
    if (!knowsSteps())
        return nullptr;
    switch (source) {
    case Source::Regression: return regressionCourse(mlpSizes[0], mlpSizes[1], target);
    case Source::Law: return languageCourse(*law, double(asked.sequence), target);
    case Source::Given: return steadyCourse(noiseScale, hyperbola.fewestSteps);
    case Source::Unknown: break;
    }
    return nullptr;
}

BatchNoise batchNoise(const ModelDescription& model, const BatchCase& asked)
{
    if (asked.noiseScale > 0)
        return given(asked);
    const bool isOneLayer = model.family == Family::Mlp && model.mlpSizes.size() == 2;
    if (isOneLayer && model.mlpSizes[0] <= mostRegressionInputs)
        return regression(model.mlpSizes, asked);
    if (model.family == Family::Decoder && model.head == HeadKind::LanguageModel && lawParameters(model) >= 1)
        return lawOf(model, asked);
    BatchNoise noise;
    noise.target = asked.targetLoss;
    noise.reason = "no published law gives the noise of this model's gradients";
    noise.remedy = model.family == Family::Mlp
        ? "measure: it is estimated from real gradients; or set noise_scale and fewest_steps"
        : "set noise_scale (and fewest_steps) to what a run of yours showed";
    return noise;
}

} // namespace memscape
