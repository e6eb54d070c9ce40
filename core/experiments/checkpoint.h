// SPDX-License-Identifier: Apache-2.0
// What `checkpoint` answers beyond its prediction: the chain, every strategy's schedule with its
// replay, and the solved front, for a page that plays a schedule, drags a budget and compares.
#pragma once

#include "core/checkpoint/periodic.h"
#include "core/checkpoint/persistent.h"
#include "core/checkpoint/replay.h"
#include "core/experiment/experiment.h"
#include "core/experiments/checkpoint_chain.h"
#include "core/experiments/checkpoint_tables.h"

#include <optional>

namespace memscape {

/// What `budget` says. Memory is in the chain's units.
struct CheckpointBudget
{
    std::int64_t memory =
        0; ///< given, or half-way between the least and what keeping everything takes
    std::optional<std::int64_t> states; ///< slots:N on uniform:L, for revolve and mixed
    bool isGiven = false;
};

/// One strategy at the budget.
struct StrategyAnswer
{
    std::string key; ///< "every:4": what the parameter `strategy` takes
    std::string label; ///< "every 4 stages"
    std::string
        note; ///< what kind of answer this is: "optimal among persistent schedules", "a heuristic"
    Schedule schedule; ///< empty when there is none
    Replay replay;
    std::optional<Error> missing; ///< why there is none
    bool isFeasible = false; ///< there is one, and within the budget (when one was given)
    double solverTime = 0; ///< s, without the replay
    std::int64_t slot = 0; ///< the size of a slot that the solver rounded to, 0: none
    Json extra = Json::object(); ///< what is special to the strategy

    bool hasSchedule() const { return !schedule.empty(); }
};

struct CheckpointAnswer
{
    ChainSource source;
    CheckpointBudget budget;
    std::int64_t leastMemory =
        0; ///< that a persistent schedule takes; a bound from single operations on long chains
    bool isLeastExact = true;
    std::int64_t fullMemory = 0; ///< that keeping everything takes
    double fullTime = 0; ///< s, nothing runs twice
    StrategyAnswer chosen;
    std::optional<PersistentSolution> front; ///< missing on chains too long for it
    std::optional<Error> frontMissing;
    std::shared_ptr<CheckpointTables> tables; ///< what is solved, for other budgets

    const Chain& chain() const { return source.chain; }
    Unit memoryUnit() const { return chain().units.isBytes ? Unit::Byte : Unit::One; }
    Unit timeUnit() const { return chain().units.isSeconds ? Unit::Second : Unit::One; }
};

/// Errors: those of chainSource; parameter.* with `budget` as place when it can't be read;
/// chain.length, checkpoint.size when the chain is too long for the strategy, with what would work.
/// A budget that is too small is an answer: chosen.missing says so.
Result<CheckpointAnswer> answerCheckpoint(const Device& device, const Parameters& parameters);
/// The same with what the last answer left.
Result<CheckpointAnswer> answerCheckpoint(const Device& device, const Parameters& parameters,
                                          PredictionContext& context);

/// The strategies that a person would compare, at the same budget: none, every k, √n, Revolve,
/// mixed, optimal, selective, adaptive, and on tiny chains everything. Those that can't be (too
/// long) say why.
std::vector<StrategyAnswer> compareStrategies(const CheckpointAnswer& answer,
                                              const Parameters& parameters);

/// One strategy: solved, replayed, checked against what the solver claimed. `key` as the parameter
/// takes it.
StrategyAnswer solveStrategy(const CheckpointAnswer& answer, const std::string& key,
                             const Parameters& parameters);

/// The parameters of `checkpoint`; those of a model are spelled as in `training-memory`.
Schema checkpointSchema();
/// Errors: parameter.syntax, parameter.range with `budget` as place.
Result<CheckpointBudget> parseBudget(const ChainSource& source, const Parameters& parameters);

// The parts of the prediction, one file each.
Figures checkpointFigures(const CheckpointAnswer& answer);
Json checkpointDetail(const CheckpointAnswer& answer,
                      const std::vector<StrategyAnswer>& strategies);
/// Live memory over the time of the chosen schedule: two points an operation, at the height it has
/// while it runs.
Series checkpointMemorySeries(const CheckpointAnswer& answer);
std::vector<Claim> checkpointClaims(const CheckpointAnswer& answer);

/// "1.5 GiB" or "18", "3.2 ms" or "245": in the chain's units.
std::string memoryText(const CheckpointAnswer& answer, double memory);
std::string timeText(const CheckpointAnswer& answer, double time);

} // namespace memscape
