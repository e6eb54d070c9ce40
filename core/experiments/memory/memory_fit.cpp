// SPDX-License-Identifier: Apache-2.0
// Make it fit. Forward and backward passes do not depend on how the optimizer keeps its state, so each way
// to run them is simulated once, each way to update once, and their sum decides which combinations are
// worth a whole simulation:
//     peak ≈ max(passes' own peak + state, update's peak + what the passes leave alive)
// The combinations that this finds are simulated whole, with the allocator, before they are proposed. Where
// none fits, the smallest one is tried with gradients and with weights on the host, and then with what
// changes the training.
#include "core/base/cancellation.h"
#include "core/base/parallel.h"
#include "core/experiments/memory/memory_advice.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/training/optimizer_step.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace memscape {

namespace {

struct Alternative
{
    std::string label; ///< empty: as it is
    Changes changes;
};
using Alternatives = std::vector<Alternative>;

/// A way to run forward and backward, simulated without an allocator.
struct Pass
{
    Alternative chosen;
    StepTime time;
    std::int64_t peak = 0; ///< B without optimizer state and master weights
    std::int64_t left = 0; ///< B alive after the last backward pass beside weights and gradients
};

/// A way to keep the optimizer's state and to update.
struct Update
{
    Alternative chosen;
    std::int64_t state = 0; ///< B that live through the passes
    std::int64_t peak = 0;  ///< B while it runs, weights and gradients included
};

/// Every way to take one of each group; the first of a group is "as it is".
Alternatives product(const std::vector<Alternatives>& groups)
{
    Alternatives all{{}};
    for (const Alternatives& group : groups) {
        Alternatives next;
        for (const Alternative& before : all) {
            for (const Alternative& one : group) {
                Alternative both = before;
                if (!one.label.empty())
                    both.label += (both.label.empty() ? "" : ", ") + one.label;
                both.changes.insert(both.changes.end(), one.changes.begin(), one.changes.end());
                next.push_back(std::move(both));
            }
        }
        all = std::move(next);
    }
    return all;
}

Alternatives splits(const Parameters& parameters)
{
    const std::int64_t batch = parameters.integer("batch"), steps = parameters.integer("accumulation");
    Alternatives made{{}};
    const auto add = [&](std::int64_t parts) {
        if (parts > 1 && batch % parts == 0) {
            made.push_back(
                {fmt::format("batch {} → {} × {}", batch, batch / parts, parts),
                 {{"batch", fmt::format("{}", batch / parts)}, {"accumulation", fmt::format("{}", steps * parts)}}});
        }
    };
    for (std::int64_t parts : {2, 4, 8})
        if (parts < batch)
            add(parts);
    add(batch);
    return made;
}

/// "As it is" and the others that are not in force.
Alternatives others(const Parameters& parameters, const std::string& key,
                    const std::vector<std::pair<std::string, std::string>>& values)
{
    Alternatives made{{}};
    for (const auto& [value, label] : values) {
        if (parameters.choice(key) != value)
            made.push_back({label, {{key, value}}});
    }
    return made;
}

std::vector<Alternatives> passGroups(const Parameters& parameters)
{
    std::vector<Alternatives> groups{
        others(parameters, "attention", {{"flash", "flash attention"}}),
        others(parameters, "checkpointing",
               {{"selective", "selective checkpointing"}, {"block", "checkpoint every block"}}),
        splits(parameters)};
    if (parameters.integer("data_parallel") > 1) {
        Alternatives stages{{}};
        for (int stage = int(parameters.integer("zero")) + 1; stage <= 3; ++stage)
            stages.push_back({fmt::format("ZeRO-{}", stage), {{"zero", fmt::format("{}", stage)}}});
        groups.push_back(std::move(stages));
    }
    return groups;
}

std::vector<Alternatives> updateGroups(const Device& device, const Parameters& parameters)
{
    return {others(parameters, "optimizer_implementation", {{"fused", "fused optimizer"}}),
            parameters.choice("offload") == "none" && !isHostMemory(device)
                ? others(parameters, "offload", {{"optimizer", "optimizer on the host"}})
                : Alternatives{{}}};
}

/// The second micro-batch finds the gradients of the first, and every later one finds what the second
/// found: peak and rest of two are those of all.
Result<Trace> passTrace(const Graph& graph, const PreparedNetwork& network, StepSettings settings)
{
    settings.plan.accumulation = std::min(settings.plan.accumulation, 2);
    return countPasses(graph, network, settings);
}

Result<Pass> passOf(const Device& device, const Parameters& parameters, const Alternative& chosen,
                    RecordedNetworks& networks)
{
    MEMSCAPE_CHECK(checkWanted());
    MEMSCAPE_TRY(then, changed(parameters, chosen.changes));
    MEMSCAPE_TRY(setup, trainingSetup(device, then));
    MEMSCAPE_TRY(graph, networks.network(setup.build));
    const auto network = preparedNetwork(networks, *graph);
    MEMSCAPE_TRY(trace, passTrace(*graph, *network, setup.step));
    networks.countEvents(trace.eventCount());
    const auto& tensors = network->parameters;
    Pass pass{chosen, {}, 0, 0};
    pass.peak = trace.peakBytes();
    if (const auto time = setupTime(device, setup, *graph, tensors, double(pass.peak)))
        pass.time = *time;
    const KeptBytes kept = keptBytes(tensors, setup.step.plan);
    pass.left = std::max<std::int64_t>(0, trace.liveBytes() - kept.weights - kept.gradients);
    return pass;
}

Result<Update> updateOf(const Device& device, const Parameters& parameters, const Alternative& chosen,
                        const std::vector<ParameterTensor>& tensors)
{
    MEMSCAPE_TRY(then, changed(parameters, chosen.changes));
    MEMSCAPE_TRY(setup, trainingSetup(device, then));
    const Plan& plan = setup.step.plan;
    const KeptBytes kept = keptBytes(tensors, plan);
    Trace trace;
    trace.allocate(kept.weights, Category::Weights);
    trace.allocate(kept.gradients, Category::Gradients);
    const std::int64_t before = trace.liveBytes();
    OptimizerBlocks blocks = allocateOptimizer(trace, tensors, plan);
    Update update{chosen, trace.liveBytes() - before, 0};
    trace.enter(Phase::Optimizer);
    updateParameters(trace, plan, blocks);
    update.peak = trace.peakBytes();
    return update;
}

struct Candidate
{
    Alternative chosen;
    std::int64_t bytes = 0; ///< B allocated, without the allocator's rounding
    double seconds = 0;
};

std::vector<Candidate> candidates(const Device& device, const Parameters& parameters, const TrainingAnswer& answer)
{
    std::vector<Update> updates;
    for (const Alternative& one : product(updateGroups(device, parameters))) {
        if (auto update = updateOf(device, parameters, one, answer.simulation.parameters()))
            updates.push_back(std::move(*update));
    }
    const std::int64_t stateNow = answer.simulation.kept.state + answer.simulation.kept.master;
    const Alternatives ways = product(passGroups(parameters));
    std::vector<Changes> changes;
    for (const Alternative& one : ways)
        changes.push_back(one.changes);
    std::vector<std::optional<Pass>> passes(ways.size());
    const std::vector<std::size_t> order = orderByNetwork(device, parameters, answer, changes);
    inParallel(order.size(), stepsAtOnce(answer), [&](std::size_t k) {
        if (auto pass = passOf(device, parameters, ways[order[k]], *answer.networks))
            passes[order[k]] = std::move(*pass);
    });
    std::vector<Candidate> made;
    for (const std::optional<Pass>& pass : passes) {
        if (!pass)
            continue;
        const Alternative& one = pass->chosen;
        for (const Update& update : updates) {
            Candidate candidate{one, 0, pass->time.total};
            if (!update.chosen.label.empty()) {
                candidate.chosen.label += (candidate.chosen.label.empty() ? "" : ", ") + update.chosen.label;
                candidate.chosen.changes.insert(candidate.chosen.changes.end(), update.chosen.changes.begin(),
                                                update.chosen.changes.end());
                // What is computed is the same; moving the state costs the host's link (whole simulation, below).
                candidate.seconds *= update.state < stateNow ? 1.05 : 1;
            }
            candidate.bytes = std::max(pass->peak + update.state, update.peak + pass->left);
            made.push_back(std::move(candidate));
        }
    }
    return made;
}

/// Quicker first; among equals, fewer changes.
bool isBetter(const Candidate& a, const Candidate& b)
{
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.chosen.changes.size() < b.chosen.changes.size();
}

/// A combination that changes nothing beyond what a smaller one does is no choice.
void dropRedundant(std::vector<LeverOutcome>& outcomes)
{
    std::vector<LeverOutcome> kept;
    for (LeverOutcome& one : outcomes) {
        const auto same = std::find_if(kept.begin(), kept.end(), [&](const LeverOutcome& other) {
            return other.device == one.device && other.seconds == one.seconds;
        });
        if (same == kept.end())
            kept.push_back(std::move(one));
        else if (one.lever.changes.size() < same->lever.changes.size())
            *same = std::move(one);
    }
    outcomes = std::move(kept);
}

/// Simulates a combination whole; nothing when it cannot be had.
struct Trial
{
    const Device& device;
    const Parameters& parameters;
    const TrainingAnswer& answer;

    bool keepsTooMuch(const Alternative& chosen) const
    {
        const auto then = changed(parameters, chosen.changes);
        return then && memscape::keepsTooMuch(device, *then, answer);
    }
    std::optional<LeverOutcome> operator()(const Alternative& chosen, bool keepsTraining = true) const
    {
        const auto then = changed(parameters, chosen.changes);
        const auto result = then ? totalsOfTraining(device, *then, answer.networks) : fail(then.error());
        if (!result)
            return std::nullopt;
        Lever lever;
        lever.label = chosen.label.empty() ? "as it is" : chosen.label;
        lever.changes = chosen.changes;
        lever.keepsTraining = keepsTraining;
        return leverOutcome(std::move(lever), answer, *result);
    }
};

/// Both; where they change the same parameter, the second decides.
Alternative together(Alternative first, const Alternative& second)
{
    for (const auto& [key, value] : second.changes) {
        std::erase_if(first.changes, [&key = key](const auto& change) { return change.first == key; });
        first.changes.emplace_back(key, value);
    }
    first.label += (first.label.empty() || second.label.empty() ? "" : ", ") + second.label;
    return first;
}

/// Levers that change the training, alone and on top of `least`, that fit.
std::vector<LeverOutcome> changingTraining(const Trial& whole, const Alternative& least)
{
    std::vector<Lever> levers = leversFor(whole.device, whole.parameters);
    std::erase_if(levers, [](const Lever& lever) { return lever.keepsTraining; });
    std::vector<std::optional<LeverOutcome>> tried(levers.size());
    inParallel(levers.size(), stepsAtOnce(whole.answer), [&](std::size_t i) {
        const Alternative alone{levers[i].label, levers[i].changes};
        const bool isTooMuch = whole.keepsTooMuch(alone);
        auto outcome = isTooMuch ? std::nullopt : whole(alone, false);
        if (!outcome && !isTooMuch)
            return; // not for this model
        if ((isTooMuch || !outcome->fits) && !least.changes.empty()) {
            const Alternative both = together(least, alone);
            outcome = whole.keepsTooMuch(both) ? std::nullopt : whole(both, false);
        }
        tried[i] = std::move(outcome);
    });
    std::vector<LeverOutcome> found;
    for (std::optional<LeverOutcome>& outcome : tried) {
        if (outcome && outcome->fits)
            found.push_back(std::move(*outcome));
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const LeverOutcome& a, const LeverOutcome& b) { return a.seconds < b.seconds; });
    return found;
}

/// No combination of the quick levers fits; `least` comes nearest.
void fitAtAnyCost(FitOutcome& fit, const Trial& whole, const Alternative& least)
{
    const Alternative hosts[] = {{},
                                 {"gradients on the host", {{"offload", "gradients"}}},
                                 {"weights on the host", {{"offload", "parameters"}, {"zero", "3"}}}};
    Alternative smallest = least;
    for (const Alternative& host : hosts) {
        if (isHostMemory(whole.device) && !host.changes.empty())
            continue;
        const Alternative both = together(least, host);
        auto outcome = whole(both);
        fit.tried += !host.changes.empty();
        if (!outcome)
            continue;
        if (outcome->fits) {
            fit.combinations.push_back(std::move(*outcome));
            return;
        }
        if (fit.smallest.lever.changes.empty() || outcome->device < fit.smallest.device) {
            fit.smallest = std::move(*outcome);
            smallest = both;
        }
    }
    fit.changing = changingTraining(whole, smallest);
}

} // namespace

FitOutcome makeItFit(const Device& device, const Parameters& parameters, const TrainingAnswer& answer)
{
    constexpr std::size_t atOnce = 10; // whole simulations
    constexpr std::size_t most = 3 * atOnce;
    constexpr double nearlyTied = 1.05; // of the quickest step
    FitOutcome fit;
    if (!answer.capacity)
        return fit;
    std::vector<Candidate> all = candidates(device, parameters, answer);
    fit.tried = all.size();
    const std::int64_t available = *answer.capacity - answer.setup.context;
    const auto smallest = std::min_element(all.begin(), all.end(),
                                           [](const Candidate& a, const Candidate& b) { return a.bytes < b.bytes; });
    const Candidate least = smallest == all.end() ? Candidate{} : *smallest;
    std::erase_if(all, [&](const Candidate& one) { return one.bytes > available; });
    std::stable_sort(all.begin(), all.end(), isBetter);

    const Trial whole{device, parameters, answer};
    const std::size_t count = std::min(most, all.size());
    const auto isDone = [&](std::size_t next) { // what comes next is no quicker than what fits
        return !fit.combinations.empty() && fit.combinations.front().seconds <= nearlyTied * all[next].seconds;
    };
    for (std::size_t first = 0; first < count && !isDone(first); first += atOnce) {
        std::vector<std::optional<LeverOutcome>> outcomes(std::min(atOnce, count - first));
        inParallel(outcomes.size(), stepsAtOnce(answer),
                   [&](std::size_t i) { outcomes[i] = whole(all[first + i].chosen); });
        for (std::optional<LeverOutcome>& outcome : outcomes) {
            if (outcome && outcome->fits)
                fit.combinations.push_back(std::move(*outcome));
        }
        std::stable_sort(fit.combinations.begin(), fit.combinations.end(),
                         [](const LeverOutcome& a, const LeverOutcome& b) { return a.seconds < b.seconds; });
    }
    dropRedundant(fit.combinations);
    if (!fit.combinations.empty()) {
        const double limit = fit.combinations.front().seconds * nearlyTied;
        std::erase_if(fit.combinations, [&](const LeverOutcome& one) { return one.seconds > limit; });
    } else {
        fitAtAnyCost(fit, whole, least.chosen);
    }
    return fit;
}

} // namespace memscape
