// SPDX-License-Identifier: Apache-2.0
// Every strategy becomes a schedule, and every schedule is replayed; what a solver claims and what
// the replay counts must agree, or there is no answer.
//
// Strategies that count slots (Revolve, mixed) and the knapsack take no budget of memory:
// of their plans the quickest whose replay fits is taken.
#include "core/experiments/checkpoint/checkpoint.h"

#include "core/base/cancellation.h"
#include "core/base/stopwatch.h"
#include "core/checkpoint/adaptive.h"
#include "core/checkpoint/exhaustive.h"
#include "core/checkpoint/knapsack.h"
#include "core/checkpoint/revolve.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Up to this length every number of slots is tried; beyond, they are bisected.
constexpr int slotScanLimit = 300;
/// Longest chain whose table of the mixed variant is made for a comparison that was not asked for.
constexpr int mixedComparisonLimit = 400;
constexpr std::int64_t selectiveSlotLimit = 500;
/// Beyond, only what is quick is compared.
constexpr int comparisonLimit = 2000;

/// A schedule and what its solver said it would be.
struct Solved
{
    Schedule schedule;
    std::optional<std::int64_t> forwards = {};
    std::int64_t slot = 0;
    Json extra = Json::object();
};

/// The quickest of the plans for 1 … most slots whose replay fits the budget. `plan` is asked for
/// one of them.
Result<Solved> fittingSlots(const CheckpointAnswer& answer, std::int64_t most,
                            const std::function<Result<SlotPlan>(std::int64_t)>& plan)
{
    std::optional<Solved> best;
    double bestTime = 0;
    std::optional<Error> failed;
    const auto tryOut = [&](std::int64_t slots) {
        if (const auto wanted = checkWanted(); !wanted) {
            failed = wanted.error();
            return false;
        }
        auto made = plan(slots);
        if (!made) {
            failed = made.error();
            return false;
        }
        const auto replayed = replay(answer.chain(), made->schedule);
        if (!replayed || replayed->peak > answer.budget.memory)
            return false;
        if (!best || replayed->makespan < bestTime) {
            bestTime = replayed->makespan;
            best = Solved{std::move(made->schedule), made->forwards, 0, Json{{"states", slots}}};
            if (made->writes > 0)
                best->extra["writes"] = made->writes;
        }
        return true;
    };
    if (answer.chain().length() <= slotScanLimit) {
        for (std::int64_t slots = 1; slots <= most; ++slots)
            tryOut(slots);
    } else { // the peak grows with the slots
        std::int64_t low = 1, high = most;
        while (low <= high) {
            const std::int64_t middle = low + (high - low) / 2;
            const bool fits = tryOut(middle);
            const bool isTooFew = !fits && failed && failed->code == "chain.length";
            failed.reset();
            (fits || isTooFew) ? low = middle + 1 : high = middle - 1;
        }
    }
    if (best)
        return *std::move(best);
    return fail(
        failed ? *failed
               : Error{"checkpoint.budget",
                       fmt::format("no number of slots fits in {}", memoryText(answer, double(answer.budget.memory))),
                       "budget", "give a larger budget, or take strategy=optimal"});
}

Result<Solved> solveRevolve(const CheckpointAnswer& answer)
{
    const int length = answer.chain().length();
    if (!answer.budget.states)
        return fittingSlots(answer, length, [&](std::int64_t slots) { return revolve(length, slots); });
    MEMSCAPE_TRY(plan, revolve(length, *answer.budget.states));
    return Solved{
        std::move(plan.schedule), plan.forwards, 0, {{"states", *answer.budget.states}, {"writes", plan.writes}}};
}

Result<Solved> solveMixed(const CheckpointAnswer& answer)
{
    const int length = answer.chain().length();
    const std::int64_t most = answer.budget.states.value_or(
        std::min<std::int64_t>(length, std::max<std::int64_t>(1, mixedWorkLimit / (std::int64_t(length) * length))));
    MEMSCAPE_TRY(table, MixedTable::make(length, most));
    if (!answer.budget.states)
        return fittingSlots(answer, table.largestSlots(), [&](std::int64_t slots) { return table.plan(slots); });
    MEMSCAPE_TRY(plan, table.plan(most));
    return Solved{std::move(plan.schedule), plan.forwards, 0, {{"states", most}}};
}

Json selectionJson(const Selection& selection)
{
    Json kept = Json::array();
    for (std::size_t i = 0; i < selection.kept.size(); ++i) {
        if (selection.kept[i])
            kept.push_back(i);
    }
    return {{"saved", selection.memory}, {"time_kept", selection.runtime}, {"stages", std::move(kept)}};
}

/// The quickest knapsack plan whose peak fits. Its own budget, of saved bytes, is found on the way.
Result<Solved> solveSelective(const CheckpointAnswer& answer, int slots)
{
    const auto items = stageItems(answer.chain());
    const std::int64_t wanted = answer.chain().units.isBytes ? slots : 0;
    MEMSCAPE_TRY(knapsack, Knapsack::make(items, answer.budget.memory, wanted));
    std::optional<Solved> best;
    double bestTime = 0;
    const std::int64_t stride = std::max<std::int64_t>(1, knapsack.slotCount() / selectiveSlotLimit);
    std::optional<Selection> last;
    for (std::int64_t slot = knapsack.slotCount(); slot >= 0; slot -= std::min(slot > 0 ? slot : 1, stride)) {
        Selection selection = knapsack.best(slot);
        if (last && last->kept == selection.kept)
            continue;
        for (const Borders borders : {Borders::Kept, Borders::Dropped}) {
            Schedule schedule = selectiveSchedule(selection.kept, borders);
            const auto replayed = replay(answer.chain(), schedule);
            if (!replayed || replayed->peak > answer.budget.memory || (best && replayed->makespan >= bestTime))
                continue;
            const std::int64_t capacity = slot * knapsack.unit();
            bestTime = replayed->makespan;
            best = Solved{std::move(schedule), {}, knapsack.unit(), selectionJson(selection)};
            best->extra["capacity"] = capacity;
            best->extra["borders"] = borders == Borders::Kept ? "kept" : "dropped";
            best->extra["greedy"] = selectionJson(greedySelection(items, capacity));
        }
        last = std::move(selection);
    }
    if (best)
        return *std::move(best);
    return fail(
        "checkpoint.budget",
        fmt::format("the peak of every knapsack plan is above {}", memoryText(answer, double(answer.budget.memory))),
        "give a larger budget, or take strategy=optimal", "budget");
}

Result<Solved> solveBy(const CheckpointAnswer& answer, const std::string& key, const Parameters& parameters)
{
    MEMSCAPE_CHECK(checkWanted());
    const int length = answer.chain().length(), slots = int(parameters.integer("slots"));
    const LastSegment last = lastSegmentOf(parameters);
    if (key == "none")
        return Solved{keepEverything(length)};
    if (key.starts_with("every:")) {
        MEMSCAPE_TRY(every, parseNumber(std::string_view(key).substr(6)));
        return Solved{everyStages(length, int(every), last)};
    }
    if (key == "sqrt")
        return Solved{squareRootSchedule(length)};
    if (key == "revolve")
        return solveRevolve(answer);
    if (key == "mixed")
        return solveMixed(answer);
    if (key == "selective")
        return solveSelective(answer, slots);
    MEMSCAPE_TRY(schedule,
                 key == "adaptive" ? adaptiveSchedule(answer.chain(), answer.budget.memory)
                                   : exhaustiveSchedule(answer.chain(), answer.budget.memory));
    return Solved{std::move(schedule)};
}

/// Whether the replay says what the solver said.
std::optional<Error> disagreement(const Solved& solved, const Replay& replayed)
{
    if (solved.forwards && *solved.forwards != replayed.forwards)
        return Error{"schedule.invalid",
                     fmt::format("{} forwards replayed, {} claimed", replayed.forwards, *solved.forwards)};
    return {};
}

std::string labelOf(const std::string& key)
{
    if (key.starts_with("every:"))
        return key == "every:1" ? "every stage" : fmt::format("every {} stages", key.substr(6));
    static const std::vector<std::pair<std::string_view, std::string_view>> labels{
        {"none", "keep everything"},          {"sqrt", "√n segments"},       {"revolve", "Revolve"},
        {"mixed", "mixed Revolve"},           {"optimal", "optimal"},        {"selective", "selective"},
        {"adaptive", "adaptive (heuristic)"}, {"exhaustive", "true optimum"}};
    for (const auto& [known, label] : labels) {
        if (known == key)
            return std::string(label);
    }
    return key;
}

std::string noteOf(const std::string& key)
{
    static const std::vector<std::pair<std::string_view, std::string_view>> notes{
        {"none", "nothing runs twice"},
        {"sqrt", "Chen et al. 2016: best of equal two-level segments on equal stages"},
        {"revolve", "optimal for equal stages when only states x_i are stored"},
        {"mixed", "optimal for equal stages when a slot holds a state or all that a step saves"},
        {"selective", "a knapsack over saved bytes; the peak is the replay's"},
        {"adaptive", "a heuristic that does not plan (DTR)"},
        {"exhaustive", "optimal among all schedules: found by exhaustive search"}};
    for (const auto& [known, note] : notes) {
        if (known == key)
            return std::string(note);
    }
    return "equal segments";
}

} // namespace

StrategyAnswer solveStrategy(const CheckpointAnswer& answer, const std::string& key, const Parameters& parameters)
{
    StrategyAnswer strategy;
    strategy.key = key;
    strategy.label = labelOf(key);
    strategy.note = noteOf(key);
    const Stopwatch watch;
    auto solved = solveBy(answer, key, parameters);
    strategy.solverTime = watch.seconds();
    if (!solved) {
        strategy.missing = solved.error();
        return strategy;
    }
    auto replayed = replay(answer.chain(), solved->schedule);
    if (const auto wrong = replayed ? disagreement(*solved, *replayed) : std::optional<Error>(replayed.error())) {
        strategy.missing = wrong;
        return strategy;
    }
    strategy.schedule = std::move(solved->schedule);
    strategy.replay = std::move(*replayed);
    strategy.slot = solved->slot;
    strategy.extra = std::move(solved->extra);
    const bool isBound = answer.budget.isGiven && !answer.budget.states;
    strategy.isFeasible = !isBound || strategy.replay.peak <= answer.budget.memory;
    return strategy;
}

std::vector<StrategyAnswer> solveOthers(const CheckpointAnswer& answer, const Parameters& parameters)
{
    const int length = answer.chain().length();
    const std::string chosen = parameters.choice("strategy");
    std::vector<std::string> keys{"none"};
    for (std::int64_t every = 1; every < length && length <= comparisonLimit; every *= 2)
        keys.push_back(fmt::format("every:{}", every));
    if (chosen.starts_with("every:") && std::find(keys.begin(), keys.end(), chosen) == keys.end())
        keys.push_back(chosen);
    keys.push_back("sqrt");
    if (length <= comparisonLimit || chosen == "revolve")
        keys.push_back("revolve");
    if (length <= mixedComparisonLimit || chosen == "mixed")
        keys.push_back("mixed");
    if (length <= comparisonLimit || chosen == "selective")
        keys.push_back("selective");
    if (length <= slotScanLimit || chosen == "adaptive")
        keys.push_back("adaptive");
    if (length <= exhaustiveLengthLimit || chosen == "exhaustive")
        keys.push_back("exhaustive");
    std::vector<StrategyAnswer> all;
    for (const std::string& key : keys)
        all.push_back(key == answer.chosen.key ? answer.chosen : solveStrategy(answer, key, parameters));
    return all;
}

std::vector<StrategyAnswer> compareStrategies(const CheckpointAnswer& answer, const Parameters& parameters)
{
    const bool isOptimal = answer.chosen.key == "optimal";
    std::vector<StrategyAnswer> all = isOptimal ? answer.others : solveOthers(answer, parameters);
    if (!isOptimal && !answer.front)
        return all;
    const auto before = std::find_if(all.begin(), all.end(), [](const StrategyAnswer& strategy) {
        return strategy.key == "selective" || strategy.key == "adaptive" || strategy.key == "exhaustive";
    });
    all.insert(before, isOptimal ? answer.chosen : solveOptimal(answer, all));
    return all;
}

} // namespace memscape
