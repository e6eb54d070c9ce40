// SPDX-License-Identifier: Apache-2.0
// What the course notes say about mixed precision, with the numbers of this device, this product and
// this network beside it.
#include "core/experiments/precision.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr const char* notes = "course notes";

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

std::optional<Claim> speedClaim(const Device& device, const PrecisionCase& asked)
{
    const auto half = shortFormat(device);
    if (!half)
        return {};
    const auto slow = gemmTime(device, Format::Fp32, asked.shape);
    const auto fast = gemmTime(device, *half, asked.shape);
    if (!slow || !fast)
        return {};
    const double gain = slow->seconds / fast->seconds;
    const double units = fast->rate.dense.value / slow->rate.dense.value;
    const bool holds = gain >= 1.9 && gain <= 3.1;
    Claim claim{"Mixed precision: 2-3x speedup on Tensor Cores", notes,
                holds ? "holds" : "holds when about half of the step is products", {}};
    claim.ours = fmt::format(
        "this product alone is {} as fast in {} as in FP32 ({} by the dense rates); a step gains "
        "less, since what is no product gains only bytes",
        times(gain), numberFormat(*half).label, times(units));
    if (const auto tf32 = gemmTime(device, Format::Tf32, asked.shape))
        claim.ours += fmt::format("; against TF32, {}", times(tf32->seconds / fast->seconds));
    return claim;
}

std::optional<Claim> unitsClaim(const Device& device)
{
    const auto half = shortFormat(device);
    const auto single = productRate(device, Format::Fp32);
    if (!half || !single)
        return {};
    const double units = productRate(device, *half)->dense.value / single->dense.value;
    return Claim{"Uses Tensor Cores (up to 8x faster)", notes,
                 std::fabs(units - 8) < 1 ? "holds" : "holds when it is said of a V100",
                 fmt::format("{}: {} gives {} of FP32's dense rate", device.name,
                             numberFormat(*half).label, times(units))};
}

std::string perParameter(const RecipeStep& step, double count)
{
    return fmt::format("{} keeps {} B per parameter", precisionText(step.recipe),
                       quantityText(double(step.weights + step.gradients + step.master + step.state)
                                        / count,
                                    Unit::One));
}

void addMemoryClaims(const Device& device, const PrecisionCase& asked, std::vector<Claim>& claims)
{
    const TrainedNetwork network = trainedNetwork(asked.shape);
    const auto single = recipeStep(device, network, Precision::Fp32);
    const auto autocast = recipeStep(device, network, Precision::Bf16Autocast);
    const auto mixed = recipeStep(device, network, Precision::Bf16Mixed);
    const auto pure = recipeStep(device, network, Precision::Bf16);
    if (!single || !autocast || !mixed || !pure)
        return;
    const double count = double(network.parameters());
    const auto share = [&](const RecipeStep& step) {
        return percentText(double(step.peak) / double(single->peak), 3);
    };
    claims.push_back(
        {"50% memory reduction", notes,
         double(autocast->peak) < 0.55 * double(single->peak) ? "holds" : "does not hold",
         fmt::format("this step peaks at {} of FP32's under autocast, {} with half weights and a "
                     "master copy, {} all in BF16: {}, {}",
                     share(*autocast), share(*mixed), share(*pure), perParameter(*single, count),
                     perParameter(*autocast, count))});
    claims.push_back(
        {"Mixed precision halves activation and gradient memory", notes,
         "holds when the activations are results of products; autocast's gradients are FP32",
         fmt::format("activations and cast weights {} instead of {}, gradients {} instead of {}",
                     quantityText(double(autocast->activations), Unit::Byte),
                     quantityText(double(single->activations), Unit::Byte),
                     quantityText(double(autocast->gradients), Unit::Byte),
                     quantityText(double(single->gradients), Unit::Byte))});
    claims.push_back(
        {"BF16 saves all memory; cost: none (if HW supports)", notes, "does not hold",
         fmt::format("{}; and a number keeps 8 bits of precision instead of 24: {} is stored as {}",
                     perParameter(*autocast, count), numberText(asked.value),
                     numberText(rounded(numberFormat(Format::Bf16), asked.value)))});
}

Claim scalingClaim(const PrecisionCase& asked)
{
    const NumberFormat& half = numberFormat(Format::Fp16);
    const LostShares plain = lostShares(half, asked.gradients, 1);
    const LostShares scaled = lostShares(half, asked.gradients, asked.lossScale);
    const bool overflows = scaled.overflow > 1e-4;
    return {"Loss scaling prevents underflow in FP16 gradients", notes,
            overflows ? "holds when the scale is not so large that others overflow" : "holds",
            fmt::format("of these gradients {} become zero without it, {} at {}, where {} overflow",
                        percentText(plain.underflow, 3), percentText(scaled.underflow, 3),
                        quantityText(asked.lossScale, Unit::One, ByteStyle::Binary, 6),
                        percentText(scaled.overflow, 3))};
}

Claim rangeClaim()
{
    const NumberFormat& half = numberFormat(Format::Fp16);
    const NumberFormat& brain = numberFormat(Format::Bf16);
    return {"BF16: better numerical properties than FP16", notes,
            "holds when range is meant: its precision is less",
            fmt::format("BF16 reaches {:.3g} and 1 ± {:.2g}, FP16 {:.5g} and 1 ± {:.2g}",
                        brain.largest(), brain.epsilon(), half.largest(), half.epsilon())};
}

} // namespace

std::vector<Claim> precisionClaims(const Device& device, const PrecisionCase& asked)
{
    std::vector<Claim> claims;
    if (auto claim = speedClaim(device, asked))
        claims.push_back(std::move(*claim));
    if (auto claim = unitsClaim(device))
        claims.push_back(std::move(*claim));
    if (asked.trains()) {
        addMemoryClaims(device, asked, claims);
        claims.push_back(scalingClaim(asked));
    }
    claims.push_back(rangeClaim());
    return claims;
}

} // namespace memscape
