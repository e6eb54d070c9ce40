// SPDX-License-Identifier: Apache-2.0
// What the course notes say about mixed precision, with the numbers of this device, this product and
// this network beside it.
#include "core/claims/claim_quotes.h"
#include "core/experiments/common/judged_number.h"
#include "core/experiments/precision/precision.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

std::string times(double factor)
{
    return quantityText(factor, Unit::One, ByteStyle::Binary, 3) + "×";
}

/// The short format that this device multiplies, BF16 where it can.
std::optional<Format> shortFormat(const Device& device)
{
    for (const Format format : {Format::Bf16, Format::Fp16}) {
        if (productRate(device, format))
            return format;
    }
    return {};
}

/// "0.0027 %": shares of gradients are judged far below what percentages round to.
std::string shareText(double share)
{
    return share < 1e-12 ? std::string("none") : fmt::format("{:.2g} %", 100 * share);
}

bool isShort(Format format)
{
    return format == Format::Bf16 || format == Format::Fp16;
}

/// The autocast that this page is about.
Precision recipeOf(const PrecisionCase& asked)
{
    return asked.format == Format::Fp16 ? Precision::Fp16Autocast : Precision::Bf16Autocast;
}

/// The step's gain where a step is asked about, else this product's.
std::optional<Claim> speedClaim(const Device& device, const PrecisionCase& asked, const Measurement& measured)
{
    const auto half = shortFormat(device);
    const Format format = isShort(asked.format) ? asked.format : half.value_or(Format::Fp32);
    const auto slow = gemmTime(device, Format::Fp32, asked.shape);
    const auto fast = gemmTime(device, format, asked.shape);
    if (!half || !slow || !fast)
        return {};
    const double product = slow->seconds / fast->seconds;
    double predicted = product;
    if (asked.trains()) {
        const auto single = recipeStep(device, trainedNetwork(asked.shape), Precision::Fp32);
        const auto mixed = recipeStep(device, trainedNetwork(asked.shape), recipeOf(asked));
        predicted = single && mixed ? single->seconds / mixed->seconds : std::nan("");
    }
    // A run in FP32 says nothing of a shorter format.
    const JudgedNumber gain = judgedNumber(isShort(asked.format) ? measured : Measurement(), "speedup", predicted);
    if (!std::isfinite(gain.value))
        return {};
    Claim claim = quotedClaim("tensor-core-speedup",
                              gain.value < 1.95       ? "does not hold here: it gains less"
                                  : gain.value < 3.05 ? "holds here"
                                                      : "does not hold here: it gains more",
                              {});
    claim.ours = fmt::format("{} in {} is {} as fast as in FP32 ({}); ", asked.trains() ? "this step" : "this product",
                             numberFormat(format).label, times(gain.value), gain.side());
    if (asked.trains())
        claim.ours += fmt::format("one product of its size {}; ", times(product));
    claim.ours += times(fast->rate.dense.value / slow->rate.dense.value) + " by the dense rates";
    if (const auto tf32 = gemmTime(device, Format::Tf32, asked.shape))
        claim.ours += fmt::format("; the product against TF32, {}", times(tf32->seconds / fast->seconds));
    return claim;
}

std::optional<Claim> unitsClaim(const Device& device)
{
    const auto half = shortFormat(device);
    const auto single = productRate(device, Format::Fp32);
    if (!half || !single)
        return {};
    const double units = productRate(device, *half)->dense.value / single->dense.value;
    return quotedClaim(
        "eight-times",
        std::fabs(units - 8) < 1 ? "holds"
            : units > 8          ? "does not hold for this device: more"
                                 : "does not hold for this device: less",
        fmt::format("{}: {} gives {} of FP32's dense rate", device.name, numberFormat(*half).label, times(units)));
}

std::string perParameter(const RecipeStep& step, double count)
{
    return fmt::format(
        "{} keeps {} B per parameter", precisionText(step.recipe),
        quantityText(double(step.weights + step.gradients + step.master + step.state) / count, Unit::One));
}

/// The four recipes that the claims about memory compare.
struct Recipes
{
    RecipeStep single, autocast, mixed, pure;
    double count = 1; ///< parameters

    double share(const RecipeStep& step) const { return double(step.peak) / double(single.peak); }
    std::string shareText(const RecipeStep& step) const { return percentText(share(step), 3); }
};

Result<Recipes> recipesOf(const Device& device, const PrecisionCase& asked)
{
    const TrainedNetwork network = trainedNetwork(asked.shape);
    MEMSCAPE_TRY(single, recipeStep(device, network, Precision::Fp32));
    MEMSCAPE_TRY(autocast, recipeStep(device, network, recipeOf(asked)));
    MEMSCAPE_TRY(mixed, recipeStep(device, network, Precision::Bf16Mixed));
    MEMSCAPE_TRY(pure, recipeStep(device, network, Precision::Bf16));
    return Recipes{single, autocast, mixed, pure, double(network.parameters())};
}

Claim halfClaim(const PrecisionCase& asked, const Recipes& recipes, const Measurement& measured)
{
    const JudgedNumber ratio =
        judgedNumber(isShort(asked.format) ? measured : Measurement(), "memory_ratio", recipes.share(recipes.autocast));
    return quotedClaim("half-memory",
                       ratio.value < 0.45       ? "does not hold: it saves more"
                           : ratio.value < 0.55 ? "holds"
                           : ratio.value < 0.99 ? "does not hold: it saves less"
                                                : "does not hold: it saves nothing",
                       fmt::format("this step peaks at {} of FP32's under autocast ({}); predicted {} with half "
                                   "weights and a master copy, {} all in BF16: {}, {}",
                                   percentText(ratio.value, 3), ratio.side(), recipes.shareText(recipes.mixed),
                                   recipes.shareText(recipes.pure), perParameter(recipes.single, recipes.count),
                                   perParameter(recipes.autocast, recipes.count)));
}

Claim activationsClaim(const Recipes& recipes)
{
    const RecipeStep &single = recipes.single, &cast = recipes.autocast;
    const bool activations = double(cast.activations) < 0.55 * double(single.activations);
    const bool gradients = double(cast.gradients) < 0.55 * double(single.gradients);
    return quotedClaim("halves-activations",
                       activations && gradients ? "holds"
                           : activations        ? "holds for the activations, not for the gradients"
                           : gradients          ? "holds for the gradients, not for the activations"
                                                : "does not hold for this step: neither is halved",
                       fmt::format("under autocast activations and cast weights {} instead of {}, gradients {} "
                                   "instead of {}",
                                   quantityText(double(cast.activations), Unit::Byte),
                                   quantityText(double(single.activations), Unit::Byte),
                                   quantityText(double(cast.gradients), Unit::Byte),
                                   quantityText(double(single.gradients), Unit::Byte)));
}

/// Two sentences in one: that the whole is halved, and that no accuracy is paid for it.
Claim brainClaim(const PrecisionCase& asked, const Recipes& recipes)
{
    const double stored = rounded(numberFormat(Format::Bf16), asked.value);
    const bool saves = recipes.share(recipes.pure) < 0.55, isFree = stored == asked.value;
    return quotedClaim("bf16-saves-all",
                       saves && isFree ? "holds for this step all in BF16 and for this value"
                           : saves     ? "does not hold: it halves this step, and costs precision"
                           : isFree    ? "does not hold: this value loses nothing, but the step is not halved"
                                       : "does not hold: the step is not halved, and it costs precision",
                       fmt::format("all in BF16 the step peaks at {} of FP32's, under autocast at {}; {} is stored "
                                   "as {} with 8 bits of precision instead of 24",
                                   recipes.shareText(recipes.pure), recipes.shareText(recipes.autocast),
                                   numberText(asked.value), numberText(stored)));
}

/// The run's own gradients where there was one: what they are is the whole question.
Claim scalingClaim(const PrecisionCase& asked, const Measurement& measured)
{
    constexpr double few = 1e-3; // of the gradients: a loss that no course of training shows
    const NumberFormat& half = numberFormat(Format::Fp16);
    const Measurement& run = asked.format == Format::Fp16 ? measured : Measurement();
    const LostShares assumed = lostShares(half, asked.gradients, 1);
    const LostShares scaled = lostShares(half, asked.gradients, asked.lossScale);
    const JudgedNumber before = judgedNumber(run, "unscaled_underflow_share", assumed.underflow);
    const JudgedNumber after = judgedNumber(run, "underflow_share", scaled.underflow);
    const JudgedNumber overflow = judgedNumber(run, "overflow_share", scaled.overflow);
    return quotedClaim(
        "loss-scaling",
        overflow.value > 1e-4                  ? "does not hold at this scale: it makes others overflow"
            : before.value < few               ? "not needed here: without it hardly any become zero"
            : after.value < 0.1 * before.value ? "holds"
                                               : "does not hold at this scale: most stay zero",
        fmt::format("of {} gradients {} become zero without it, {} at {}, where {} overflow",
                    before.isMeasured ? "the measured" : "assumed", shareText(before.value), shareText(after.value),
                    quantityText(asked.lossScale, Unit::One, ByteStyle::Binary, 6), shareText(overflow.value)));
}

Claim rangeClaim(const PrecisionCase& asked)
{
    const NumberFormat &half = numberFormat(Format::Fp16), &brain = numberFormat(Format::Bf16);
    const auto error = [&](const NumberFormat& format) {
        return std::fabs(rounded(format, asked.value) - asked.value);
    };
    const double ofHalf = error(half), ofBrain = error(brain);
    return quotedClaim("bf16-better",
                       ofBrain < ofHalf ? "holds for this value, by its range"
                           : ofBrain > ofHalf
                           ? "does not hold for this value: its precision is less; its range is larger"
                           : "neither is better for this value",
                       fmt::format("{} is stored as {} in BF16, {} in FP16; BF16 reaches {:.3g} and 1 ± {:.2g}, FP16 "
                                   "{:.5g} and 1 ± {:.2g}",
                                   numberText(asked.value), numberText(rounded(brain, asked.value)),
                                   numberText(rounded(half, asked.value)), brain.largest(), brain.epsilon(),
                                   half.largest(), half.epsilon()));
}

} // namespace

std::vector<Claim> precisionClaims(const Device& device, const PrecisionCase& asked, const Measurement& measured)
{
    std::vector<Claim> claims;
    if (auto claim = speedClaim(device, asked, measured))
        claims.push_back(std::move(*claim));
    if (auto claim = unitsClaim(device))
        claims.push_back(std::move(*claim));
    if (asked.trains()) {
        if (const auto recipes = recipesOf(device, asked)) {
            claims.push_back(halfClaim(asked, *recipes, measured));
            claims.push_back(activationsClaim(*recipes));
            claims.push_back(brainClaim(asked, *recipes));
        }
        claims.push_back(scalingClaim(asked, measured));
    }
    claims.push_back(rangeClaim(asked));
    return claims;
}

} // namespace memscape
