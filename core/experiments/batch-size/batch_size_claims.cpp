// SPDX-License-Identifier: Apache-2.0
// What the course notes say about the batch, with the numbers of this model on this device beside it.
#include "core/claims/claim_quotes.h"
#include "core/experiments/batch-size/batch_size.h"
#include "core/experiments/common/judged_number.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

Claim criticalClaim(const BatchStudy& study, const Measurement& measured)
{
    Claim claim = quotedClaim("critical-batch", "open: without a gradient and a rate it cannot be judged here", {});
    const BatchNoise& noise = study.noise;
    if (noise.source == BatchNoise::Source::Regression && noise.knowsSteps()) {
        NoisyRegression problem(noise.mlpSizes[0], noise.mlpSizes[1]);
        const double scale = std::pow(2 / double(noise.mlpSizes[1]), 2); // of the loss, squared
        while (problem.loss() > noise.target)
            problem.step(0x1p40);
        const double rate = problem.bestRate(0x1p40);
        const double claimed = problem.trace() * scale / rate / rate;
        const JudgedNumber critical = judgedNumber(measured, "critical_batch", noise.hyperbola.critical());
        claim.verdict = claimed > critical.value / 2 && claimed < critical.value * 2
            ? "holds here by its size alone: the square of the gradient belongs below, not that of the rate"
            : "does not hold: the square of the gradient belongs below, not that of the rate";
        claim.ours =
            fmt::format("at the target tr(Σ) = {} and the best rate is {}: σ²/ε² = {}; tr(Σ)/|G|² = {}, and the {} "
                        "steps to the target give {}. The rate does not have a gradient's unit: scale the loss by 10 "
                        "and σ²/ε² is 10⁴ times as large, while the useful batch stays the same",
                        shortNumber(problem.trace() * scale, 3), shortNumber(rate, 3), shortNumber(claimed, 3),
                        shortNumber(problem.simpleNoise(), 3), critical.side(), shortNumber(critical.value, 3));
    } else if (noise.knowsSteps()) {
        claim.ours = fmt::format("here E_min / S_min = {} examples; no rate is in it",
                                 shortNumber(noise.hyperbola.critical(), 3));
    } else {
        claim.ours = "the noise scale is tr(Σ)/|G|²: measure it, or set noise_scale";
    }
    return claim;
}

Claim beyondClaim(const BatchStudy& study, const Measurement& measured)
{
    const double update = study.point.examples;
    const JudgedNumber critical = judgedNumber(measured, "critical_batch", study.noise.hyperbola.critical());
    // Each doubling saves B_crit / (B_crit + B) / 2 of the steps: 50 % of them far below, 25 % at B_crit.
    const double saved = critical.value / (critical.value + update) / 2;
    Claim claim =
        quotedClaim("beyond-critical",
                    update < critical.value && saved < 0.4 ? "holds, and begins before: there is no edge at B_crit"
                        : update < critical.value          ? "not reached: this update is far below B_crit"
                                                           : "holds: this update is beyond B_crit",
                    {});
    claim.ours = fmt::format(
        "doubling the update of {} saves {} of the steps and costs {} more examples; at B_crit = {} ({}) both are "
        "a factor of 2 from the fewest",
        shortNumber(update, 3), percentText(saved),
        percentText((critical.value + 2 * update) / (critical.value + update) - 1), shortNumber(critical.value, 3),
        critical.side());
    return claim;
}

std::optional<Claim> halvingClaim(const BatchStudy& study)
{
    const std::int64_t batch = study.asked.batch;
    const BatchPoint* half = batch % 2 == 0 ? study.at(batch / 2) : nullptr;
    if (!half)
        return {};
    const double ratio = double(half->device) / double(study.point.device);
    Claim claim =
        quotedClaim("oom-halve",
                    ratio < 0.55 ? "holds here: the batch is nearly all of it"
                                 : "does not hold: only what belongs to the batch is halved",
                    fmt::format("half the batch takes {} of the memory: {} instead of {}", percentText(ratio),
                                bytesText(double(half->device), 3), bytesText(double(study.point.device), 3)));
    if (study.largest)
        claim.ours += fmt::format("; halving from twice the largest ends at {} or below it, and {} would fit",
                                  *study.largest, *study.largest);
    return claim;
}

std::optional<Claim> costClaim(const BatchStudy& study)
{
    if (study.splits.size() < 2 || !(study.splits.front().time.total > 0))
        return {};
    const double whole = study.splits.front().time.total;
    const auto overhead = [&](const BatchPoint& split) { return split.time.total / whole - 1; };
    const BatchPoint *cheapest = nullptr, *dearest = &study.splits.back();
    for (const BatchPoint& split : study.splits) {
        if (&split != &study.splits.front() && overhead(split) < 0.05)
            cheapest = &split; // the smallest micro-batch below 5 %
    }
    Claim claim = quotedClaim("accumulation-overhead", {}, {});
    claim.verdict = overhead(*dearest) < 0.05 ? "holds for every split"
        : cheapest                            ? fmt::format("holds down to micro-batches of {}", cheapest->batch)
                                              : "does not hold here";
    claim.ours = fmt::format("{} × {} takes {} more time than {} at once", dearest->batch, dearest->accumulation,
                             percentText(overhead(*dearest)), study.splits.front().batch);
    if (cheapest && cheapest != dearest)
        claim.ours +=
            fmt::format("; {} × {}: {}", cheapest->batch, cheapest->accumulation, percentText(overhead(*cheapest)));
    claim.ours += ". Small micro-batches read the weights as often and fill the units less";
    return claim;
}

std::optional<Claim> savingClaim(const BatchStudy& study)
{
    if (study.splits.size() < 2)
        return {};
    const BatchPoint &whole = study.splits.front(), &last = study.splits.back();
    const double promised = double(whole.batch) / double(last.batch),
                 got = double(whole.allocated) / double(last.allocated);
    return quotedClaim("accumulation-factor",
                       got > 0.9 * promised ? "holds here: activations are nearly all"
                                            : "does not hold: weights, gradients and state stay",
                       fmt::format("{} in micro-batches of {}: {} instead of {}, a factor of {} and not {}",
                                   whole.batch, last.batch, bytesText(double(last.allocated), 3),
                                   bytesText(double(whole.allocated), 3), shortNumber(got, 3),
                                   shortNumber(promised, 3)));
}

Claim scheduleClaim(const BatchStudy& study)
{
    Claim claim = quotedClaim("adabatch", "open: no schedule ran to the target", {});
    const auto isReached = [](const std::optional<ScheduleRun>& run) { return run && run->isReached; };
    if (isReached(study.schedule) && isReached(study.constant)) {
        const bool steps = study.schedule->steps<0.99 * study.constant->steps, examples = study.schedule->examples> 1.01
            * study.constant->examples;
        claim.verdict = !steps ? "no benefit here: it needs as many steps as a constant batch"
            : examples         ? "holds with tr(Σ)/|G|² as B_opt: fewer steps at the cost of more examples"
                               : "holds with tr(Σ)/|G|² as B_opt: fewer steps for no more examples";
    }
    if (!study.schedule || !study.constant)
        claim.ours = "choose schedule=adaptive to see it beside a constant batch";
    else
        claim.ours = fmt::format("from {}: {} steps and {} examples, with the batch constant {} and {}",
                                 shortNumber(study.asked.schedule.first, 3), shortNumber(study.schedule->steps, 3),
                                 shortNumber(study.schedule->examples, 3), shortNumber(study.constant->steps, 3),
                                 shortNumber(study.constant->examples, 3));
    return claim;
}

} // namespace

std::vector<Claim> batchClaims(const BatchStudy& study, const Measurement& measured)
{
    std::vector<Claim> claims{criticalClaim(study, measured)};
    if (study.noise.knowsSteps())
        claims.push_back(beyondClaim(study, measured));
    for (auto& made : {halvingClaim(study), costClaim(study), savingClaim(study)}) {
        if (made)
            claims.push_back(*made);
    }
    claims.push_back(scheduleClaim(study));
    return claims;
}

} // namespace memscape
