// SPDX-License-Identifier: Apache-2.0
// The answer that is named optimal. The solver's schedule is the optimum among persistent ones, on
// exact sizes or between two bounds (checkpoint_tables.h); every other strategy at the same budget is
// a candidate beside it, so that none on the page can be quicker. One may be: where sizes had to be
// rounded, and where a heuristic drops a kept value and recomputes it. Then its schedule is the
// answer, and the note names the strategy.
#include "core/experiments/checkpoint/checkpoint.h"

#include "core/base/stopwatch.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Sums of seconds in another order differ by less.

Error belowMinimum(const CheckpointAnswer& answer)
{
    const std::string least = memoryText(answer, double(answer.leastMemory));
    return {"checkpoint.budget",
            fmt::format("no schedule fits in {}", memoryText(answer, double(answer.budget.memory))), "budget",
            answer.isLeastExact
                ? fmt::format("the least that a persistent schedule takes is {} ({})", least, answer.leastMemory)
                : fmt::format("one operation alone takes {} ({})", least, answer.leastMemory)};
}

Error optimalError(const CheckpointAnswer& answer, Error error)
{
    if (error.code == "checkpoint.budget" && answer.isLeastExact && answer.budget.memory < answer.leastMemory)
        return belowMinimum(answer);
    if (error.code == "checkpoint.budget")
        error.hint += "; sizes are rounded up to slots, so more slots may fit";
    if (error.code == "checkpoint.size" && error.place.empty())
        error.place = "chain";
    if (error.code == "checkpoint.size")
        error.hint += "; or take strategy=sqrt or revolve";
    return error;
}

std::string noteOf(const CheckpointAnswer& answer, const StrategyAnswer& optimal)
{
    const std::string among = "optimal among persistent schedules: a kept value stays until its own backward";
    if (optimal.takenFrom == "exhaustive")
        return "optimal among all schedules: found by exhaustive search";
    if (optimal.bound == 0)
        return fmt::format("the schedule of {}: no persistent one was found in this budget", optimal.takenFrom);
    if (!optimal.takenFrom.empty() && optimal.gap() <= sameTime)
        return fmt::format("the schedule of {}, which is quicker than the optimum among persistent ones ({})",
                           optimal.takenFrom, timeText(answer, optimal.bound));
    if (optimal.gap() <= sameTime)
        return among;
    return fmt::format("at most {} above the optimum among persistent schedules (between {} and {}): "
                       "sizes were rounded to slots of {}, more slots narrow it",
                       percentText(optimal.gap(), 2), timeText(answer, optimal.bound),
                       timeText(answer, optimal.replay.makespan), memoryText(answer, double(optimal.slot)));
}

/// The quickest that fits.
const StrategyAnswer* quickest(const CheckpointAnswer& answer, const std::vector<StrategyAnswer>& others)
{
    const StrategyAnswer* best = nullptr;
    for (const StrategyAnswer& other : others) {
        if (other.hasSchedule() && other.replay.peak <= answer.budget.memory
            && (!best || other.replay.makespan < best->replay.makespan))
            best = &other;
    }
    return best;
}

} // namespace

double StrategyAnswer::gap() const
{
    return hasSchedule() && bound > 0 ? std::max(0.0, replay.makespan / bound - 1) : 0;
}

StrategyAnswer solveOptimal(const CheckpointAnswer& answer, const std::vector<StrategyAnswer>& others)
{
    StrategyAnswer optimal;
    optimal.key = "optimal";
    optimal.label = "optimal";
    const Stopwatch watch;
    auto proven = answer.tables->optimum(answer.budget.memory);
    optimal.solverTime = watch.seconds();
    if (proven) {
        optimal.solverTime += proven->tableTime;
        optimal.schedule = std::move(proven->schedule);
        optimal.replay = std::move(proven->replay);
        optimal.bound = proven->bound;
        optimal.slot = proven->slot;
        optimal.extra["table_bytes"] = proven->tableBytes;
    }
    const bool mayBeFound = proven || proven.error().code == "checkpoint.budget";
    const StrategyAnswer* other = mayBeFound ? quickest(answer, others) : nullptr;
    if (other && (!proven || other->replay.makespan < optimal.replay.makespan)) {
        if (!proven || other->replay.makespan < optimal.replay.makespan * (1 - sameTime))
            optimal.takenFrom = other->key;
        optimal.schedule = other->schedule;
        optimal.replay = other->replay;
    }
    if (!optimal.hasSchedule()) {
        optimal.missing = optimalError(answer, proven.error());
        optimal.note = "optimal among persistent schedules: a kept value stays until its own backward";
        return optimal;
    }
    optimal.isFeasible = true;
    optimal.note = noteOf(answer, optimal);
    optimal.extra["bound"] = optimal.bound;
    optimal.extra["gap"] = optimal.gap();
    if (!optimal.takenFrom.empty())
        optimal.extra["taken_from"] = optimal.takenFrom;
    return optimal;
}

std::vector<FrontPoint> bestFront(const CheckpointAnswer& answer, const std::vector<StrategyAnswer>& strategies)
{
    if (!answer.front)
        return {};
    std::vector<FrontPoint> line = answer.front->front();
    for (const StrategyAnswer& strategy : strategies) {
        if (!strategy.hasSchedule())
            continue;
        const FrontPoint found{strategy.replay.peak, strategy.replay.makespan};
        auto at = std::lower_bound(line.begin(), line.end(), found.budget,
                                   [](const FrontPoint& point, std::int64_t budget) { return point.budget < budget; });
        // What the front says for this budget: a point at it, or the step of the one below.
        const bool isOn = at != line.end() && at->budget == found.budget;
        const double known = isOn ? at->makespan
            : at == line.begin()  ? std::numeric_limits<double>::infinity()
                                  : std::prev(at)->makespan;
        if (found.makespan >= known * (1 - sameTime))
            continue;
        auto end = at; // the points that it is below
        while (end != line.end() && end->makespan > found.makespan)
            ++end;
        std::vector<FrontPoint> corners;
        if (at != line.begin() && std::prev(at)->budget < found.budget - 1)
            corners.push_back({found.budget - 1, std::prev(at)->makespan});
        corners.push_back(found);
        if (end != line.end() && end->budget - 1 > found.budget)
            corners.push_back({end->budget - 1, found.makespan});
        at = line.erase(at, end);
        line.insert(at, corners.begin(), corners.end());
    }
    return line;
}

} // namespace memscape
