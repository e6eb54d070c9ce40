// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/precision.h"

namespace memscape {

namespace {

ParameterSpec size(std::string key, std::string label, std::string help, double least,
                   std::string standard)
{
    ParameterSpec spec{std::move(key), std::move(label), std::move(help), ParameterKind::Integer,
                       Unit::One, least, 1 << 20, Scale::Log2, {}, std::move(standard)};
    if (least == 0)
        spec.choices = {{"0", "as m", "as many as m"}};
    return spec;
}

ParameterSpec formatSpec()
{
    return {"format", "format", "Which numbers are multiplied, or trained in.",
            ParameterKind::Choice, Unit::One, 0, 0, Scale::Linear, formatChoices(), "bf16"};
}

ParameterSpec gradientSpec(std::string key, std::string label, std::string help, double least,
                           double most, Scale scale, std::string standard, std::string suffix = {})
{
    ParameterSpec spec{std::move(key), std::move(label), std::move(help), ParameterKind::Real,
                       Unit::One, least, most, scale, {}, std::move(standard)};
    spec.suffix = std::move(suffix);
    return spec;
}

} // namespace

std::vector<ChoiceValue> formatChoices()
{
    std::vector<ChoiceValue> choices;
    for (const NumberFormat& format : numberFormats())
        choices.push_back({std::string(format.key), std::string(format.label), {}});
    choices[std::size_t(Format::Fp64)].help = "double precision: sciences, not training";
    choices[std::size_t(Format::Fp32)].help = "single precision: 8 bits of exponent, 24 of precision";
    choices[std::size_t(Format::Tf32)].help =
        "FP32 in memory; tensor cores take 19 of its bits: the range of FP32, the precision of FP16";
    choices[std::size_t(Format::Fp16)].help =
        "half precision: 11 bits of precision, nothing beyond 65504 or below 6e-8";
    choices[std::size_t(Format::Bf16)].help =
        "the upper half of an FP32 word: its range, 8 bits of precision";
    choices[std::size_t(Format::Fp8E4M3)].help =
        "for weights and activations: up to 448, 4 bits of precision, no infinity";
    choices[std::size_t(Format::Fp8E5M2)].help =
        "for gradients: the range of FP16, 3 bits of precision";
    choices[std::size_t(Format::Int8)].help = "whole numbers from -128 to 127; needs a scale";
    return choices;
}

Schema precisionSchema()
{
    return {
        {"operation", "operation", "One matrix product, or steps of a small network's training.",
         ParameterKind::Choice, Unit::One, 0, 0, Scale::Linear,
         {{"matmul", "product", "C (m × n) = A (m × k) · B (k × n)"},
          {"train", "training",
           "a classifier, k inputs → n → n → 16 classes, on batches of m, in FP32 and in the format "
           "with FP32 weights (autocast) and dynamic loss scaling"}},
         "matmul"},
        formatSpec(),
        size("m", "rows, m", "Rows of the result; in training the batch.", 1, "1024"),
        size("n", "columns, n", "Columns of the result; in training the hidden width. 0: as m.", 0, "0"),
        size("k", "terms of a sum, k", "Terms of each sum; in training the inputs. 0: as m.", 0, "0"),
        gradientSpec("value", "value",
                     "A number to store in the format: its bits, what is left of it, how far away "
                     "its neighbours are.",
                     -1e38, 1e38, Scale::Linear, "0.1"),
        gradientSpec("loss_scale", "loss scale",
                     "What the loss is multiplied by before backward, and the gradients divided by "
                     "before the optimizer. The scaler of a training run starts here.",
                     1, 0x1p40, Scale::Log2, "65536"),
        {"distribution", "gradients", "How the magnitudes of the assumed gradients are spread.",
         ParameterKind::Choice, Unit::One, 0, 0, Scale::Linear,
         {{"log-normal", "log-normal", "log2 |g| is normal: most networks' gradients"},
          {"normal", "normal", "g is normal around 0"}},
         "log-normal"},
        gradientSpec("gradient_median", "median |g|",
                     "The median magnitude of the assumed gradients, before scaling. A measured run "
                     "says what it was.",
                     0x1p-60, 0x1p20, Scale::Log2, "1e-6"),
        gradientSpec("gradient_spread", "spread",
                     "Standard deviation of log2 |g| of log-normal gradients.", 0.1, 20,
                     Scale::Linear, "4", "bits"),
        {"steps", "steps", "Training steps of a measured run.", ParameterKind::Integer, Unit::One, 1,
         100000, Scale::Log2, {}, "100"},
        {"growth_interval", "growth interval",
         "Steps without an infinite gradient after which the loss scale doubles.",
         ParameterKind::Integer, Unit::One, 1, 1000000, Scale::Log2, {}, "2000", "steps"},
    };
}

PrecisionCase precisionCase(const Parameters& parameters)
{
    PrecisionCase asked;
    asked.operation = parameters.choice("operation") == "train" ? PrecisionOperation::Train
                                                                : PrecisionOperation::Matmul;
    // A choice of the schema always is a format.
    asked.format = formatFromText(parameters.choice("format")).value_or(Format::Bf16);
    const auto orRows = [&](std::int64_t given) {
        return given > 0 ? given : parameters.integer("m");
    };
    asked.shape = {parameters.integer("m"), orRows(parameters.integer("n")),
                   orRows(parameters.integer("k"))};
    asked.value = parameters.number("value");
    asked.gradients.shape = parameters.choice("distribution") == "normal"
        ? MagnitudeShape::Normal
        : MagnitudeShape::LogNormal;
    asked.gradients.median = parameters.number("gradient_median");
    asked.gradients.spreadBits = parameters.number("gradient_spread");
    asked.lossScale = parameters.number("loss_scale");
    asked.steps = int(parameters.integer("steps"));
    asked.growthInterval = int(parameters.integer("growth_interval"));
    return asked;
}

} // namespace memscape
