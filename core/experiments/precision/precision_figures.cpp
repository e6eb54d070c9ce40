// SPDX-License-Identifier: Apache-2.0
// The figures of `precision`, each with its why.
#include "core/experiments/precision/precision.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace memscape {

namespace {

Why gemmWhy(const GemmTime& time, const GemmShape& shape, const NumberFormat& format)
{
    Why why;
    why.formula = "t = max(waves × 2 tm tn k / rate per SM, bytes / bandwidth) + overhead";
    if (time.tileRows == 0)
        why.formula = "t = max(2 m n k / reached rate, bytes / bandwidth)";
    why.with =
        fmt::format("{} × {} × {} in {}: arithmetic {}, memory {}, overhead {}", shape.m, shape.n, shape.k,
                    format.label, secondsText(time.arithmetic), secondsText(time.memory), secondsText(time.overhead));
    why.terms = {{"P", time.rate.dense.value, Unit::FlopPerSecond, "dense rate", time.rate.dense.source},
                 {"P_reached", time.rate.reached.value, Unit::FlopPerSecond, "what large products reach",
                  time.rate.reached.source},
                 {"B", time.bandwidth, Unit::BytePerSecond, "DRAM, reads and writes", "device"}};
    if (time.tileRows > 0) {
        why.terms.push_back(
            {"tiles", time.tiles, Unit::One, fmt::format("of {} × {}", time.tileRows, time.tileColumns), "counted"});
        why.terms.push_back({"waves", time.waves, Unit::One, "tiles over multiprocessors, rounded up", "counted"});
    }
    why.source = "NVIDIA, Matrix Multiplication Background User's Guide; constants fitted to cuBLAS "
                 "on an H100 SXM";
    why.omits = {"split-k, and which kernel a library's heuristics choose", "operands still in a cache"};
    return why;
}

Why rateWhy(const std::string& formula, const std::string& with)
{
    Why why;
    why.formula = formula;
    why.with = with;
    why.source = "Williams, Waterman, Patterson 2009 (roofline)";
    return why;
}

Why shareWhy(const PrecisionCase& asked, const std::string& condition, double share, double scale)
{
    Why why;
    why.formula = "P(" + condition + ")";
    why.with = fmt::format("median |g| {} × loss scale {} in {}: {}", shortNumber(asked.gradients.median),
                           shortNumber(scale), numberFormat(asked.format).label, percentText(share, 3));
    const NumberFormat& format = numberFormat(asked.format);
    why.terms = {{"least", format.smallestSubnormal(), Unit::One, "the least number above 0", "the format"},
                 {"normal", format.smallestNormal(), Unit::One, "the least with all its bits", "the format"},
                 {"largest", format.largest(), Unit::One, "the largest finite number", "the format"},
                 {"median", asked.gradients.median, Unit::One, "of |g|, assumed", "parameter"},
                 {"spread", asked.gradients.spreadBits, Unit::One, "of log2 |g|, assumed", "parameter"}};
    why.source = "rounding to nearest; log-normal gradients: Chmiel et al. 2020 (arXiv:2006.08173)";
    why.omits = {"exact zeros, which a ReLU makes", "that layers differ"};
    return why;
}

Why valueWhy(const PrecisionCase& asked, double stored)
{
    const NumberFormat& format = numberFormat(asked.format);
    Why why;
    why.formula = format.isInteger() ? "the nearest whole number in -128 … 127"
                                     : "(−1)^s × 2^(e − bias) × 1.mantissa, nearest, ties to even";
    why.with = fmt::format("{} becomes {}: bits {:0{}b}", numberText(asked.value), numberText(stored),
                           encode(format, asked.value), format.bits());
    why.source = "IEEE 754-2019; OCP 8-bit Floating Point Specification 1.0 for FP8";
    return why;
}

/// Seconds in FP32 over seconds in the format; NaN where FP32 is not known.
double speedup(const Device& device, const PrecisionCase& asked, double seconds)
{
    const auto single = gemmTime(device, Format::Fp32, asked.shape);
    return single ? single->seconds / seconds : std::numeric_limits<double>::quiet_NaN();
}

Why stepWhy(const RecipeStep& step, const TrainedNetwork& network)
{
    Why why;
    why.formula = "Σ operators max(FLOPs / reached rate, bytes / bandwidth) + launches";
    why.with = fmt::format("{}: {} parameters, a batch of {}, {} of products", precisionText(step.recipe),
                           network.parameters(), network.batch, operationsText(network.flops()));
    why.source = "the step simulator (core/timing/operator_time.h)";
    why.omits = {"dispatch on the host", "reading one scalar back per step to know whether to skip"};
    return why;
}

Why keptWhy(const RecipeStep& step, const TrainedNetwork& network)
{
    const double count = double(network.parameters());
    Why why;
    why.formula = "weights + gradients + master copy + optimizer";
    why.with = fmt::format("{}: {} B + {} B + {} B + {} B per parameter", precisionText(step.recipe),
                           shortNumber(double(step.weights) / count), shortNumber(double(step.gradients) / count),
                           shortNumber(double(step.master) / count), shortNumber(double(step.state) / count));
    why.source = "AdamW: two moments in FP32";
    why.omits = {"casts of weights while the forward pass runs", "activations"};
    return why;
}

Why peakWhy(const RecipeStep& step)
{
    Why why;
    why.formula = "the highest sum of live blocks over the step, each rounded up to 512 B";
    why.with =
        fmt::format("{}: of activations at most {}, of cast weights {}", precisionText(step.recipe),
                    quantityText(double(step.activations), Unit::Byte), quantityText(double(step.casts), Unit::Byte));
    why.source = "the step simulator, checked against PyTorch's allocations (core/training)";
    why.omits = {"the allocator's own reserve, workspaces of libraries"};
    return why;
}

int expectedSkips(const PrecisionCase& asked, const TrainedNetwork& network)
{
    // The largest of N draws lies about where 1/N of them are larger.
    const double least = 1 / double(network.parameters());
    double largest = asked.gradients.median;
    while (asked.gradients.above(largest) > least && largest < 0x1p100)
        largest *= 1.1;
    return skipsAtStart(asked.scaler(), largest, numberFormat(asked.format).overflowThreshold());
}

Figure skipsFigure(const PrecisionCase& asked, const TrainedNetwork& network)
{
    Why why;
    why.formula = "⌈log2(loss scale × largest gradient / overflow threshold)⌉, at the start";
    why.with = fmt::format("the largest of {} assumed gradients, loss scale {}", network.parameters(),
                           shortNumber(asked.lossScale));
    why.source = "PyTorch's GradScaler: a step with an infinite gradient is skipped, the scale halved";
    why.omits = {"skips later, when the scale has grown"};
    // FP32 and BF16 train without a scaler.
    const double skips = asked.format == Format::Fp16 ? expectedSkips(asked, network) : 0;
    return figureOf("skipped_steps", "skipped steps", Unit::One, skips, why);
}

} // namespace

Figures valueFigures(const PrecisionCase& asked)
{
    const NumberFormat& format = numberFormat(asked.format);
    const double stored = rounded(format, asked.value);
    const double error = asked.value == 0 ? 0 : std::fabs(stored / asked.value - 1);
    Why relative = rateWhy("|stored / value − 1|",
                           fmt::format("at most {} for normal numbers", shortNumber(format.epsilon() / 2)));
    relative.source = "half a unit in the last place";
    Why spacing = rateWhy("2^(exponent − mantissa bits)", fmt::format("{} bits of mantissa", format.mantissaBits));
    spacing.source = valueWhy(asked, stored).source;
    return {figureOf("stored_value", "value as stored", Unit::One, stored, valueWhy(asked, stored)),
            figureOf("value_error", "relative error of the value", Unit::One, error, relative),
            figureOf("value_spacing", "distance to the next number", Unit::One, format.spacing(asked.value), spacing)};
}

/// A bell's tail never ends: fewer than one number in 10¹² are none.
LostShares countable(const LostShares& lost)
{
    const auto some = [](double share) { return share < 1e-12 ? 0 : share; };
    return {some(lost.underflow), some(lost.subnormal), some(lost.overflow)};
}

Figures gradientFigures(const PrecisionCase& asked)
{
    const NumberFormat& format = numberFormat(asked.format);
    const LostShares plain = countable(lostShares(format, asked.gradients, 1));
    const LostShares lost = countable(lostShares(format, asked.gradients, asked.lossScale));
    const double scale = asked.lossScale;
    return {figureOf("unscaled_underflow_share", "gradients lost without scaling", Unit::One, plain.underflow,
                     shareWhy(asked, "|g| ≤ least number / 2", plain.underflow, 1)),
            figureOf("underflow_share", "gradients that become zero", Unit::One, lost.underflow,
                     shareWhy(asked, "|g| S ≤ least number / 2", lost.underflow, scale)),
            figureOf("subnormal_share", "gradients with fewer bits", Unit::One, lost.subnormal,
                     shareWhy(asked, "least / 2 < |g| S < least normal", lost.subnormal, scale)),
            figureOf("overflow_share", "gradients that overflow", Unit::One, lost.overflow,
                     shareWhy(asked, "|g| S ≥ largest + half a step", lost.overflow, scale))};
}

Result<Figures> matmulFigures(const Device& device, const PrecisionCase& asked)
{
    MEMSCAPE_TRY(time, gemmTime(device, asked.format, asked.shape));
    const NumberFormat& format = numberFormat(asked.format);
    const Why why = gemmWhy(time, asked.shape, format);
    const std::string bytes = quantityText(time.bytes, Unit::Byte);
    Figures figures{
        figureOf("time", "time", Unit::Second, time.seconds, why),
        figureOf("flop_rate", "rate", Unit::FlopPerSecond, time.flops / time.seconds, why),
        figureOf("speedup", "speedup", Unit::One, speedup(device, asked, time.seconds), why),
        figureOf("flops", "operations", Unit::One, time.flops, rateWhy("2 m n k", numberText(time.flops))),
        figureOf("bytes", "bytes", Unit::Byte, time.bytes, rateWhy("e (m k + k n) + e_out m n", "= " + bytes)),
        figureOf("intensity", "intensity (FLOP/B)", Unit::One, time.intensity(),
                 rateWhy("operations / bytes", fmt::format("= {} / {}", operationsText(time.flops), bytes))),
        figureOf("ridge", "ridge (FLOP/B)", Unit::One, time.ridge(),
                 rateWhy("dense rate / DRAM bandwidth",
                         fmt::format("= {} / {}", quantityText(time.rate.dense.value, Unit::FlopPerSecond),
                                     quantityText(time.bandwidth, Unit::BytePerSecond)))),
        figureOf("quantization", "tiles and waves used", Unit::One, time.quantization, why)};
    Figure bound{"bound", "limited by", Unit::One, std::string(gemmBoundText(time.bound))};
    bound.why = why;
    figures.push_back(std::move(bound));
    markCounted(figures, {"flops", "bytes", "intensity"});
    const Figures value = valueFigures(asked);
    figures.insert(figures.end(), value.begin(), value.end());
    return figures;
}

Result<Figures> trainFigures(const Device& device, const PrecisionCase& asked)
{
    MEMSCAPE_TRY(recipe, trainingRecipe(asked.format));
    const TrainedNetwork network = trainedNetwork(asked.shape);
    MEMSCAPE_TRY(step, recipeStep(device, network, recipe));
    MEMSCAPE_TRY(single, recipeStep(device, network, Precision::Fp32));
    const double count = double(network.parameters());
    const double kept = double(step.weights + step.gradients + step.master + step.state) / count;
    const double ratio = double(step.peak) / double(single.peak);
    Figures figures{
        figureOf("step_time", "step", Unit::Second, step.seconds, stepWhy(step, network)),
        figureOf("fp32_step_time", "step in FP32", Unit::Second, single.seconds, stepWhy(single, network)),
        figureOf("speedup", "speedup", Unit::One, single.seconds / step.seconds, stepWhy(step, network)),
        figureOf("peak_memory", "peak memory", Unit::Byte, double(step.peak), peakWhy(step)),
        figureOf("fp32_peak_memory", "peak memory in FP32", Unit::Byte, double(single.peak), peakWhy(single)),
        figureOf("memory_ratio", "memory against FP32", Unit::One, ratio, peakWhy(step)),
        figureOf("kept_per_parameter", "kept bytes per parameter", Unit::Byte, kept, keptWhy(step, network)),
        skipsFigure(asked, network)};
    for (const Figures& more : {gradientFigures(asked), valueFigures(asked)})
        figures.insert(figures.end(), more.begin(), more.end());
    return figures;
}

} // namespace memscape
