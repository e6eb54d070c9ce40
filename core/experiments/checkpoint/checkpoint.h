// SPDX-License-Identifier: Apache-2.0
// What `checkpoint` answers beyond its prediction: the chain, every strategy's schedule with its
// replay, and the solved front, for a page that plays a schedule, drags a budget and compares.
#pragma once

#include "core/checkpoint/periodic.h"
#include "core/checkpoint/persistent.h"
#include "core/checkpoint/replay.h"
#include "core/experiment/experiment.h"
#include "core/experiments/checkpoint/checkpoint_chain.h"
#include "core/experiments/checkpoint/checkpoint_tables.h"

#include <optional>

namespace memscape {

/// Two times that differ by less than this share are the same.
inline constexpr double sameTime = 1e-9;

/// What `budget` says. Memory is in the chain's units.
struct CheckpointBudget
{
    std::int64_t memory = 0;            ///< given, or half-way between the least and what keeping everything takes
    std::optional<std::int64_t> states; ///< slots:N on uniform:L, for revolve and mixed
    bool isGiven = false;
};

/// One strategy at the budget.
struct StrategyAnswer
{
    std::string key;   ///< "every:4": what the parameter `strategy` takes
    std::string label; ///< "every 4 stages"
    std::string note;  ///< what kind of answer this is: "optimal among persistent schedules", "a heuristic"
    Schedule schedule; ///< empty when there is none
    Replay replay;
    std::optional<Error> missing; ///< why there is none
    bool isFeasible = false;      ///< there is one, and within the budget (when one was given)
    double solverTime = 0;        ///< s, without the replay
    std::int64_t slot = 0;        ///< the size of a slot that the solver rounded to, 0: none
    /// Of optimal: no persistent schedule takes less time, and the strategy that found the schedule where it was
    /// another.
    double bound = 0;
    std::string takenFrom;
    Json extra = Json::object(); ///< what is special to the strategy

    bool hasSchedule() const { return !schedule.empty(); }
    /// How much longer than its bound, as a share of it; 0 where it is the optimum.
    double gap() const;
};

struct CheckpointAnswer
{
    ChainSource source;
    CheckpointBudget budget;
    std::int64_t leastMemory = 0; ///< that a persistent schedule takes; a bound from single operations on long chains
    bool isLeastExact = true;
    std::int64_t fullMemory = 0; ///< that keeping everything takes
    double fullTime = 0;         ///< s, nothing runs twice
    StrategyAnswer chosen;
    std::vector<StrategyAnswer> others;      ///< where the optimal one is chosen: what it had to beat
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
std::vector<StrategyAnswer> compareStrategies(const CheckpointAnswer& answer, const Parameters& parameters);

/// One strategy but the optimal: solved, replayed, checked against what the solver claimed. `key` as
/// the parameter takes it.
StrategyAnswer solveStrategy(const CheckpointAnswer& answer, const std::string& key, const Parameters& parameters);
/// All that are compared but the optimal one.
std::vector<StrategyAnswer> solveOthers(const CheckpointAnswer& answer, const Parameters& parameters);
/// The best that is known at the budget: the optimum among persistent schedules, or what one of the
/// others found where that is better (a heuristic that drops and recomputes can be). So no
/// strategy that fits the budget is quicker.
StrategyAnswer solveOptimal(const CheckpointAnswer& answer, const std::vector<StrategyAnswer>& others);

/// The least time for every budget, as a line through its corners: the solved front, and below it
/// what strategies found, where sizes were rounded or they do what the front leaves out.
std::vector<FrontPoint> bestFront(const CheckpointAnswer& answer, const std::vector<StrategyAnswer>& strategies);

/// The parameters of `checkpoint`; those of a model are spelled as in `training-memory`.
Schema checkpointSchema();
LastSegment lastSegmentOf(const Parameters& parameters);
/// Errors: parameter.syntax, parameter.range with `budget` as place.
Result<CheckpointBudget> parseBudget(const ChainSource& source, const Parameters& parameters);

// The parts of the prediction, one file each.
Figures checkpointFigures(const CheckpointAnswer& answer);
Json checkpointDetail(const CheckpointAnswer& answer, const std::vector<StrategyAnswer>& strategies);
/// Live memory over the time of the chosen schedule: two points an operation, at the height it has
/// while it runs.
Series checkpointMemorySeries(const CheckpointAnswer& answer);
std::vector<Claim> checkpointClaims(const CheckpointAnswer& answer);

/// "1.5 GiB" or "18", "3.2 ms" or "245": in the chain's units.
std::string memoryText(const CheckpointAnswer& answer, double memory);
std::string timeText(const CheckpointAnswer& answer, double time);

} // namespace memscape
