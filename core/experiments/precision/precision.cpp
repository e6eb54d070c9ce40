// SPDX-License-Identifier: Apache-2.0
// precision: what do FP16, BF16, TF32, FP8 and loss scaling change?
//
// A format changes three things: how fast products run and how many bytes they move
// (core/timing/gemm_time.h), which numbers exist (core/precision/number_format.h), and what a
// training step keeps (core/training, recipe by recipe). Left out: what the loss does with other
// rounding, which only a run can say; scales of tensors and blocks.
#include "core/experiments/precision/precision.h"

#include "core/experiments/common/answers.h"
#include "core/experiments/common/framework_lines.h"
#include "core/experiments/common/idle_parameters.h"

#include <fmt/format.h>

namespace memscape {

namespace {

class PrecisionExperiment final : public Experiment
{
public:
    std::string id() const override { return "precision"; }
    std::string title() const override { return "Precision"; }
    std::string question() const override { return "What do FP16, BF16, TF32, FP8 and loss scaling change?"; }
    std::string group() const override { return "kernels"; }
    std::string help() const override
    {
        return "A number format decides how fast products run, which numbers can be represented, and what a training "
               "step keeps. Products: tiles and waves over the units of the device, bytes "
               "over its memory. Numbers: every bit as IEEE 754 and OCP define them; the share of "
               "gradients that becomes zero or infinite at a loss scale. Training: one step of a "
               "small classifier, simulated allocation by allocation. Left out: the effect of rounding on the loss, "
               "which only a run shows, and scales of tensors and blocks.";
    }
    bool isMeasuredInPytorch() const override { return true; }
    const Schema& schema() const override { return m_schema; }
    std::vector<std::string> idleParameters(const Device&, const Parameters& parameters) const override
    {
        return idlePrecisionParameters(parameters);
    }
    std::vector<std::string> headlines() const override { return {"time", "flop_rate", "speedup", "bound"}; }
    std::vector<Snippet> snippets(const Device& device, const Parameters& parameters) const override
    {
        return precisionSnippets(device, parameters);
    }
    ShortAnswer shortAnswer(const Device&, const Parameters& parameters, const Figures& figures) const override
    {
        return precisionAnswer(parameters, figures);
    }
    std::vector<SeriesSpec> series() const override
    {
        return {{"time", "time"},
                {"flop_rate", "rate"},
                {"underflow_share", "become zero"},
                {"subnormal_share", "keep fewer bits"},
                {"overflow_share", "overflow"},
                {"step_time", "step"},
                {"peak_memory", "peak memory"}};
    }
    Sweep axis(const Device& device, const Parameters& parameters) const override;
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override
    {
        const PrecisionCase asked = precisionCase(parameters);
        return asked.trains() ? trainFigures(device, asked) : matmulFigures(device, asked);
    }
    Result<Prediction> predict(const Device& device, const Parameters& parameters,
                               PredictionContext& context) const override;
    std::vector<Claim> claims(const Device& device, const Parameters& parameters,
                              const Measurement& measured) const override
    {
        return precisionClaims(device, precisionCase(parameters), measured);
    }

private:
    Schema m_schema = precisionSchema();
};

Sweep PrecisionExperiment::axis(const Device& device, const Parameters& parameters) const
{
    const bool trains = precisionCase(parameters).trains();
    Sweep sweep{trains ? "loss_scale" : "m", {}};
    const double last = trains ? 0x1p24 : device.isGpu() ? 16384 : 2048;
    for (double x = trains ? 1 : device.isGpu() ? 256 : 64; x <= last; x *= trains ? 4 : 2)
        sweep.values.emplace_back(x);
    return sweep;
}

Result<Prediction> PrecisionExperiment::predict(const Device& device, const Parameters& parameters,
                                                PredictionContext& context) const
{
    MEMSCAPE_TRY(prediction, Experiment::predict(device, parameters, context));
    if (!parameters.sweep() && precisionCase(parameters).trains()) // they do not hang on the scale
        std::erase_if(prediction.series, [](const Series& series) {
            return series.key == "step_time" || series.key == "peak_memory" || series.key == "speedup";
        });
    Json detail = precisionDetail(device, precisionCase(parameters));
    detail.update(prediction.detail);
    prediction.detail = std::move(detail);
    return prediction;
}

Json bitsJson(const PrecisionCase& asked, const NumberFormat& format)
{
    const std::uint64_t bits = encode(format, asked.value);
    return {{"bits", fmt::format("{:0{}b}", bits, format.bits())},
            {"stored", jsonNumber(decode(format, bits))},
            {"spacing", jsonNumber(format.spacing(asked.value))}};
}

Json formatJson(const Device& device, const PrecisionCase& asked, const NumberFormat& format)
{
    Json json{{"key", format.key},
              {"label", format.label},
              {"bytes", format.bytes},
              {"exponent_bits", format.exponentBits},
              {"mantissa_bits", format.mantissaBits},
              {"largest", jsonNumber(format.largest())},
              {"smallest_normal", jsonNumber(format.smallestNormal())},
              {"smallest_subnormal", jsonNumber(format.smallestSubnormal())},
              {"epsilon", jsonNumber(format.epsilon())},
              {"value", bitsJson(asked, format)}};
    const auto time = gemmTime(device, format.format, asked.shape);
    if (!time) {
        json["missing"] = time.error().message;
        return json;
    }
    json["rate"] = jsonNumber(time->rate.dense.value);
    json["reached"] = jsonNumber(time->rate.reached.value);
    json["time"] = jsonNumber(time->seconds);
    json["ridge"] = jsonNumber(time->ridge());
    return json;
}

Json recipeJson(const RecipeStep& step)
{
    return {{"recipe", precisionText(step.recipe)},
            {"weights", step.weights},
            {"gradients", step.gradients},
            {"master", step.master},
            {"state", step.state},
            {"casts", step.casts},
            {"activations", step.activations},
            {"peak", step.peak},
            {"time", jsonNumber(step.seconds)}};
}

Json recipesJson(const Device& device, const PrecisionCase& asked)
{
    Json recipes = Json::array();
    for (const Precision recipe : {Precision::Fp32, Precision::Bf16Autocast, Precision::Fp16Autocast,
                                   Precision::Bf16Mixed, Precision::Fp16Mixed, Precision::Bf16}) {
        if (const auto step = recipeStep(device, trainedNetwork(asked.shape), recipe))
            recipes.push_back(recipeJson(*step));
    }
    return recipes;
}

} // namespace

Json histogramJson(const MagnitudeHistogram& histogram)
{
    Json shares = Json::array();
    for (const double share : histogram.shares)
        shares.push_back(jsonNumber(share));
    return {{"first", histogram.first}, {"zeros", jsonNumber(histogram.zeros)}, {"shares", std::move(shares)}};
}

Json precisionDetail(const Device& device, const PrecisionCase& asked)
{
    Json formats = Json::array();
    for (const NumberFormat& format : numberFormats())
        formats.push_back(formatJson(device, asked, format));
    Json detail{{"formats", std::move(formats)},
                {"histogram", histogramJson(histogramOf(asked.gradients, histogramFirst, histogramBars))}};
    if (asked.trains())
        detail["recipes"] = recipesJson(device, asked);
    return detail;
}

const Experiment& precisionExperiment()
{
    static const PrecisionExperiment experiment;
    return experiment;
}

} // namespace memscape
