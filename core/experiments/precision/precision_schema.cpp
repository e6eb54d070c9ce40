// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/precision/precision.h"

#include "core/experiment/schema.h"

namespace memscape {

namespace {

const ChoiceTable<PrecisionOperation> precisionOperations{
    {PrecisionOperation::Matmul, {"matmul", "product", "C (m × n) = A (m × k) · B (k × n)"}},
    {PrecisionOperation::Train,
     {"train", "training",
      "a classifier, k inputs → n → n → 16 classes, on batches of m, in FP32 and in the format "
      "with FP32 weights (autocast) and dynamic loss scaling"}}};

const ChoiceTable<MagnitudeShape> distributions{
    {MagnitudeShape::LogNormal, {"log-normal", "log-normal", "log2 |g| is normal: most networks' gradients"}},
    {MagnitudeShape::Normal, {"normal", "normal", "g is normal around 0"}}};

/// Columns or terms: as many as rows unless they are given.
ParameterSpec asRows(std::string key, std::string label, std::string help)
{
    return integerSpec(std::move(key), std::move(label), std::move(help),
                       {.most = 1 << 20, .scale = Scale::Log2, .words = {{"0", "as m", "as many as m"}}});
}

} // namespace

std::vector<ChoiceValue> formatChoices()
{
    std::vector<ChoiceValue> choices;
    for (const NumberFormat& format : numberFormats())
        choices.push_back({std::string(format.key), std::string(format.label), {}});
    choices[std::size_t(Format::Fp64)].help = "double precision: for science, not training";
    choices[std::size_t(Format::Fp32)].help = "single precision: 8 bits of exponent, 24 of precision";
    choices[std::size_t(Format::Tf32)].help =
        "FP32 in memory; tensor cores take 19 of its bits: the range of FP32, the precision of FP16";
    choices[std::size_t(Format::Fp16)].help =
        "half precision: 11 bits of precision, nothing beyond 65504 or below 6e-8";
    choices[std::size_t(Format::Bf16)].help = "the upper half of an FP32 word: its range, 8 bits of precision";
    choices[std::size_t(Format::Fp8E4M3)].help =
        "for weights and activations: up to 448, 4 bits of precision, no infinity";
    choices[std::size_t(Format::Fp8E5M2)].help = "for gradients: the range of FP16, 3 bits of precision";
    choices[std::size_t(Format::Int8)].help = "whole numbers from -128 to 127; needs a scale";
    return choices;
}

Schema precisionSchema()
{
    return {
        choiceSpec("operation", "operation", "One matrix product, or steps of a small network's training.",
                   precisionOperations.choices()),
        choiceSpec("format", "format", "Number format of the products, or of the training.", formatChoices(), "bf16"),
        integerSpec("m", "rows, m", "Rows of the result; in training the batch.",
                    {.least = 1, .most = 1 << 20, .standard = "1024", .scale = Scale::Log2}),
        asRows("n", "columns, n", "Columns of the result; in training the hidden width. 0: as m."),
        asRows("k", "terms of a sum, k", "Terms of each sum; in training the inputs. 0: as m."),
        realSpec("value", "value",
                 "A number to store in the format: its bits, the value as stored, and the distance to the next number.",
                 {.least = -1e38, .most = 1e38, .standard = "0.1"}),
        realSpec("loss_scale", "loss scale",
                 "What the loss is multiplied by before backward, and the gradients divided by "
                 "before the optimizer. The scaler of a training run starts here.",
                 {.least = 1, .most = 0x1p40, .standard = "65536", .scale = Scale::Log2}),
        choiceSpec("distribution", "gradients", "How the magnitudes of the assumed gradients are spread.",
                   distributions.choices()),
        realSpec("gradient_median", "median |g|",
                 "The median magnitude of the assumed gradients, before scaling. A measured run reports it.",
                 {.least = 0x1p-60, .most = 0x1p20, .standard = "1e-6", .scale = Scale::Log2}),
        realSpec("gradient_spread", "spread", "Standard deviation of log2 |g| of log-normal gradients.",
                 {.least = 0.1, .most = 20, .standard = "4", .suffix = "bits"}),
        integerSpec("steps", "steps", "Training steps of a measured run.",
                    {.least = 1, .most = 100000, .standard = "100", .scale = Scale::Log2}),
        integerSpec("growth_interval", "growth interval",
                    "Steps without an infinite gradient after which the loss scale doubles.",
                    {.least = 1, .most = 1000000, .standard = "2000", .scale = Scale::Log2, .suffix = "steps"}),
    };
}

PrecisionCase precisionCase(const Parameters& parameters)
{
    PrecisionCase asked;
    asked.operation = precisionOperations.of(parameters.choice("operation"));
    // A choice of the schema always is a format.
    asked.format = formatFromText(parameters.choice("format")).value_or(Format::Bf16);
    const auto orRows = [&](std::int64_t given) { return given > 0 ? given : parameters.integer("m"); };
    asked.shape = {parameters.integer("m"), orRows(parameters.integer("n")), orRows(parameters.integer("k"))};
    asked.value = parameters.number("value");
    asked.gradients.shape = distributions.of(parameters.choice("distribution"));
    asked.gradients.median = parameters.number("gradient_median");
    asked.gradients.spreadBits = parameters.number("gradient_spread");
    asked.lossScale = parameters.number("loss_scale");
    asked.steps = int(parameters.integer("steps"));
    asked.growthInterval = int(parameters.integer("growth_interval"));
    return asked;
}

} // namespace memscape
