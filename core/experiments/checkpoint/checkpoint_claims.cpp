// SPDX-License-Identifier: Apache-2.0
// What textbooks and READMEs say about checkpointing, with this chain's numbers beside it. Every
// number is of a replayed schedule or of Revolve's closed form, and every verdict is drawn from them.
#include "core/claims/claim_quotes.h"
#include "core/experiments/checkpoint/checkpoint.h"

#include "core/checkpoint/knapsack.h"
#include "core/checkpoint/revolve.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Chains longer than this get the claims that need no table.
constexpr int knapsackClaimLimit = 400;
/// Sums of seconds in another order differ by less.

/// The schedules that the claims are about, replayed.
struct Ground
{
    const CheckpointAnswer& answer;
    double length = 0, forward = 0, backward = 0; ///< stages, Σ fw, Σ bw
    Replay segments;                              ///< √n, the last kept
    Replay recomputed;                            ///< the same, every stage twice
    Replay layers;                                ///< every stage its own segment

    double full() const { return double(answer.fullMemory); }
    std::string memory(double value) const { return memoryText(answer, value); }
    std::string time(double value) const { return timeText(answer, value); }
    double extra(const Replay& replayed) const { return replayed.makespan - answer.fullTime; }
    /// Nothing on chains too long for the front.
    std::optional<ProvenSchedule> optimum(std::int64_t memory) const
    {
        auto best = answer.front ? answer.tables->optimum(memory) : Result<ProvenSchedule>(fail(Error{}));
        return best ? std::optional(*std::move(best)) : std::nullopt;
    }
};

Result<Ground> groundOf(const CheckpointAnswer& answer)
{
    const Chain& chain = answer.chain();
    const int length = chain.length();
    Ground ground{answer, double(length), 0, chain.lossTime, {}, {}, {}};
    for (const Stage& stage : chain.stages) {
        ground.forward += stage.forward;
        ground.backward += stage.options.front().backward;
    }
    MEMSCAPE_TRY(segments, replay(chain, squareRootSchedule(length)));
    const int every = std::max(1, length / std::max(1, int(std::lround(std::sqrt(double(length))))));
    MEMSCAPE_TRY(recomputed, replay(chain, everyStages(length, every, LastSegment::Recomputed)));
    MEMSCAPE_TRY(layers, replay(chain, everyStages(length, 1, LastSegment::Kept)));
    ground.segments = std::move(segments);
    ground.recomputed = std::move(recomputed);
    ground.layers = std::move(layers);
    return ground;
}

/// Two-level segments of L equal stages keep √L inputs beside one live segment of √L stages.
Claim squareRootMemory(const Ground& ground)
{
    const double segments = double(ground.segments.peak), layers = double(ground.layers.peak);
    const double share = segments / ground.full(), allowed = 2 / std::sqrt(ground.length);
    const bool holds = share < 1 && share <= 1.25 * allowed; // gradients and the input come on top
    return quotedClaim(
        "sqrt-memory",
        holds ? "holds for the number of activations of two-level segments on equal layers; not for "
                "weights, gradients and optimizer, and not when "
                "every layer is its own segment"
              : "does not hold for this chain: its stages are too few or too different",
        fmt::format("everything {}, √n segments {} ({}; 2/√n is {}), every stage its own segment {} ({})",
                    ground.memory(ground.full()), ground.memory(segments), percentText(share, 3),
                    percentText(allowed, 3), ground.memory(layers), percentText(layers / ground.full(), 3)));
}

Claim oneThird(const Ground& ground)
{
    const double step = ground.answer.fullTime, twice = ground.extra(ground.recomputed) / step,
                 kept = ground.extra(ground.segments) / step;
    const double ratio = ground.forward > 0 ? ground.backward / ground.forward : 0;
    return quotedClaim("checkpoint-third",
                       std::fabs(twice - 1.0 / 3) < 0.005
                           ? "holds when every stage runs twice, the last segment too"
                           : "does not hold for this chain: only when the backward takes twice the forward and "
                             "every stage runs twice",
                       fmt::format("here backward / forward = {}, so every stage twice costs {}; with the "
                                   "last segment kept {}",
                                   quantityText(ratio, Unit::One), percentText(twice, 3), percentText(kept, 3)));
}

Claim memoryReduction(const Ground& ground)
{
    const double claimed = 1 - 1 / std::sqrt(ground.length), real = 1 - double(ground.segments.peak) / ground.full();
    return quotedClaim(
        "memory-reduction",
        std::fabs(claimed - real) < 0.01
            ? "holds"
            : "does not hold: it counts the checkpoints and omits the segment that is being reversed",
        fmt::format("the formula gives {}, the replayed schedule {}", percentText(claimed, 3), percentText(real, 3)));
}

Claim oneSegment(const Ground& ground)
{
    const double root = std::sqrt(ground.length), claimed = (root - 1) / ground.length;
    const double ofForward = ground.forward > 0 ? ground.extra(ground.segments) / ground.forward : 0;
    return quotedClaim(
        "compute-overhead",
        std::fabs(claimed - ofForward) < 0.01
            ? "holds for this chain: all but the last segment is one run again"
            : "does not hold: that is one segment run again; all but the last are, 1 − 1/√n of a forward",
        fmt::format("the formula gives {}, the replayed schedule runs {} of a forward again, {} of "
                    "the step (1 − 1/√n = {})",
                    percentText(claimed, 3), percentText(ofForward, 3),
                    percentText(ground.extra(ground.segments) / ground.answer.fullTime, 3),
                    percentText(1 - 1 / root, 3)));
}

/// A schedule against the best in the same memory: refuted by a quicker one, confirmed by the bound.
Claim againstOptimum(const Ground& ground, Claim claim, std::string_view whose, const Replay& replayed,
                     const ProvenSchedule& best, std::string_view refuted)
{
    const double time = replayed.makespan;
    if (best.replay.makespan < time * (1 - sameTime))
        claim.verdict = refuted;
    else if (best.bound >= time * (1 - sameTime))
        claim.verdict = "holds for this chain at this memory: no persistent schedule is quicker";
    else
        claim.verdict = "open for this chain at this memory: sizes were rounded to slots; more slots decide";
    const bool isProven = best.bound >= best.replay.makespan * (1 - sameTime);
    claim.ours = fmt::format(
        "in the {} of {} the {} persistent schedule takes {}{}, {} {}", ground.memory(double(replayed.peak)), whose,
        isProven ? "optimal" : "best known", ground.time(best.replay.makespan),
        isProven ? "" : fmt::format(" (none less than {})", ground.time(best.bound)), whose, ground.time(time));
    return claim;
}

std::optional<Claim> spacing(const Ground& ground)
{
    const auto best = ground.optimum(ground.segments.peak);
    if (!best)
        return {};
    return againstOptimum(
        ground, {"√n spacing is the optimal choice", "cybertronai/gradient-checkpointing, README", {}, {}},
        "√n segments", ground.segments, *best, "does not hold: it is the best of equal two-level segments only");
}

std::optional<Claim> logarithmic(const Ground& ground)
{
    const auto length = std::int64_t(ground.length);
    if (length < 4)
        return {};
    const auto slots = std::int64_t(std::ceil(std::log2(ground.length)));
    const double total = double(revolveAdvances(length, slots) + length), bound = ground.length * double(slots);
    return Claim{"O(log n) memory costs O(n log n) compute", "Chen et al. 2016, section 4.3",
                 total > bound             ? "does not hold"
                     : total > bound / 1.5 ? "holds as an upper bound"
                                           : "holds as an upper bound, a loose one",
                 fmt::format("log₂ n = {} states: Revolve runs {} forwards, {} a stage; the bound is {}", slots,
                             numberText(total), quantityText(total / ground.length, Unit::One), numberText(bound))};
}

std::optional<Claim> constantMemory(const Ground& ground)
{
    const auto length = std::int64_t(ground.length);
    const double advances = double(revolveAdvances(length, 1)), share = advances / (ground.length * ground.length);
    return Claim{"Constant memory costs n² compute", "Griewank and Walther 2000; course notes",
                 share >= 0.4 ? "holds: L (L − 1) / 2 advances, half of n²"
                              : "does not hold for so few stages: L (L − 1) / 2 advances",
                 fmt::format("one stored state: {} advances for {} stages, {} of n²", numberText(advances), length,
                             percentText(share, 3))};
}

std::optional<Claim> binomial(const Ground& ground)
{
    const CheckpointAnswer& answer = ground.answer;
    const int length = answer.chain().length();
    const auto plan = revolve(length, std::max<std::int64_t>(2, std::int64_t(std::ceil(std::log2(ground.length + 1)))));
    if (!plan)
        return {};
    const auto replayed = replay(answer.chain(), plan->schedule);
    const auto best = replayed ? ground.optimum(replayed->peak) : std::nullopt;
    if (!best)
        return {};
    return againstOptimum(ground, {"Binomial checkpointing (Revolve) is optimal", "Griewank and Walther 2000", {}, {}},
                          "Revolve", *replayed, *best,
                          "does not hold for this chain: only for equal stages of known number when states "
                          "alone can be stored");
}

/// The knapsack's plans for growing budgets of saved bytes: does the peak grow with them?
std::optional<Claim> monotone(const Ground& ground)
{
    const Chain& chain = ground.answer.chain();
    if (chain.length() > knapsackClaimLimit || chain.length() < 3)
        return {};
    const auto items = stageItems(chain);
    std::int64_t all = 0;
    for (const KnapsackItem& item : items)
        all += item.memory;
    const auto knapsack = Knapsack::make(items, all, 200);
    if (!knapsack)
        return {};
    std::string shown;
    bool isMonotone = true, isMoved = false;
    std::int64_t before = 0;
    for (const int percent : {5, 10, 15, 20, 30, 50, 75, 100}) {
        const auto replayed = replay(
            chain, selectiveSchedule(knapsack->best(knapsack->slotCount() * percent / 100).kept, Borders::Dropped));
        if (!replayed)
            return {};
        isMonotone &= replayed->peak >= before;
        isMoved |= before != 0 && replayed->peak != before;
        before = replayed->peak;
        shown += fmt::format("{}{} %: {}", shown.empty() ? "" : ", ", percent, ground.memory(double(replayed->peak)));
    }
    return Claim{"More activation budget, more memory: the knob is monotone",
                 "torch.compile's activation_memory_budget",
                 !isMoved         ? "does not hold for this chain: the knob has no effect, the peak is the same "
                                    "at every setting"
                     : isMonotone ? "holds for this chain"
                                  : "does not hold: the plan's saved bytes grow, the peak does not, "
                                    "since the backward holds what is recomputed",
                 "peak by share of saved bytes: " + shown};
}

} // namespace

std::vector<Claim> checkpointClaims(const CheckpointAnswer& answer)
{
    const auto ground = groundOf(answer);
    if (!ground)
        return {};
    std::vector<Claim> made{squareRootMemory(*ground), oneThird(*ground), memoryReduction(*ground),
                            oneSegment(*ground)};
    for (auto& claim :
         {spacing(*ground), logarithmic(*ground), constantMemory(*ground), binomial(*ground), monotone(*ground)}) {
        if (claim)
            made.push_back(*claim);
    }
    return made;
}

} // namespace memscape
