// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/checkpoint/checkpoint.h"

#include <limits>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::string_view chainModel = "Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova 2019 (arXiv 1911.13214)";

std::vector<std::string> memoryOmits()
{
    return {"parameters, their gradients and the optimizer's state: there all the time",
            "rounding and fragmentation of an allocator"};
}

/// Where the answer is from; a reason where there is none.
std::string missingText(const CheckpointAnswer& answer)
{
    return answer.chosen.missing ? answer.chosen.missing->text() : std::string();
}

double valueOr(const CheckpointAnswer& answer, double value)
{
    return answer.chosen.hasSchedule() ? value : std::numeric_limits<double>::quiet_NaN();
}

std::string operationName(const ChainOperation& operation)
{
    if (operation.kind == OperationKind::Loss)
        return "the loss";
    return fmt::format("{} of stage {}", operationText(operation.kind), operation.stage);
}

Why peakWhy(const CheckpointAnswer& answer)
{
    Why why;
    why.formula = "peak = max over operations of resident before + what it makes + its overhead";
    why.with = missingText(answer);
    const auto& steps = answer.chosen.replay.steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].during != answer.chosen.replay.peak)
            continue;
        const std::int64_t before = i == 0 ? answer.chain().values.front() : steps[i - 1].after;
        const double own = double(steps[i].during - before);
        why.with = fmt::format("= {} + {}, in operation {} of {}: {}", memoryText(answer, double(before)),
                               memoryText(answer, own), i, steps.size(), operationName(answer.chosen.schedule[i]));
        why.terms = {{"resident", double(before), answer.memoryUnit(), "kept values and gradients before it",
                      answer.source.sizes},
                     {"made", own, answer.memoryUnit(), "its result and overhead", answer.source.sizes}};
        break;
    }
    why.source = fmt::format("{}; every operation replayed", chainModel);
    why.omits = memoryOmits();
    return why;
}

Why makespanWhy(const CheckpointAnswer& answer)
{
    Why why;
    why.formula = "time of the step = Σ forwards (each time it runs) + loss + Σ backwards";
    const double more = answer.chosen.replay.makespan - answer.fullTime;
    why.with = answer.chosen.hasSchedule() ? fmt::format("= {} + {} ({} more)", timeText(answer, answer.fullTime),
                                                         timeText(answer, more), percentText(more / answer.fullTime, 3))
                                           : missingText(answer);
    why.terms = {
        {"all kept", answer.fullTime, answer.timeUnit(), "a step in which nothing runs twice", answer.source.times}};
    why.source = answer.source.times;
    why.omits = answer.source.omits;
    why.omits.push_back("time of the optimizer");
    return why;
}

Why forwardsWhy(const CheckpointAnswer& answer)
{
    Why why;
    why.formula = "recomputed forwards = forward executions − stages";
    why.with = answer.chosen.hasSchedule() ? fmt::format("= {} − {} = {}", answer.chosen.replay.forwards,
                                                         answer.chain().length(), answer.chosen.replay.recomputed)
                                           : missingText(answer);
    why.terms = {{"L", double(answer.chain().length()), Unit::One, "stages", answer.source.sizes}};
    why.source = "the schedule, operation by operation";
    why.omits = {"what a backward computes again inside a stage: its time counts, not its number"};
    return why;
}

Why feasibleWhy(const CheckpointAnswer& answer)
{
    Why why;
    why.formula = "1 when there is a schedule and its peak is within the budget, else 0";
    if (!answer.chosen.hasSchedule())
        why.with = missingText(answer);
    else if (answer.budget.states)
        why.with = fmt::format("{} states; memory is not bounded", *answer.budget.states);
    else
        why.with = fmt::format("{} of {}{}", memoryText(answer, double(answer.chosen.replay.peak)),
                               memoryText(answer, double(answer.budget.memory)),
                               answer.budget.isGiven ? "" : ", the budget when none is given");
    why.terms = {{"budget", double(answer.budget.memory), answer.memoryUnit(), "at any moment",
                  answer.budget.isGiven ? "the parameter" : "half-way between the least and everything kept"}};
    why.source = answer.chosen.note;
    return why;
}

Why leastWhy(const CheckpointAnswer& answer)
{
    Why why;
    why.formula = answer.isLeastExact ? "the least peak of any persistent schedule, by the recursion without time"
                                      : "the memory of the largest single operation: no schedule needs less";
    why.with =
        fmt::format("= {} of the {} that keeping everything takes", memoryText(answer, double(answer.leastMemory)),
                    memoryText(answer, double(answer.fullMemory)));
    why.terms = {{"all kept", double(answer.fullMemory), answer.memoryUnit(), "peak when nothing is dropped",
                  answer.source.sizes}};
    why.source = chainModel;
    why.omits = memoryOmits();
    if (answer.isLeastExact)
        why.omits.push_back("schedules that drop a kept value and recompute it, which may take less");
    return why;
}

Why solverWhy(const CheckpointAnswer& answer)
{
    Why why;
    why.formula = "time of finding the schedule, one thread, without the replay";
    why.with = answer.chosen.slot > 0 ? fmt::format("slots of {}", memoryText(answer, double(answer.chosen.slot)))
                                      : answer.chosen.note;
    why.source = "measured while it ran, on the machine that predicts";
    why.omits = {"the other strategies of the comparison"};
    return why;
}

} // namespace

Figures checkpointFigures(const CheckpointAnswer& answer)
{
    const Replay& replayed = answer.chosen.replay;
    const Unit memory = answer.memoryUnit(), time = answer.timeUnit();
    Why evaluations = forwardsWhy(answer);
    evaluations.formula = "every forward that runs, of any kind";
    return {figureOf("peak", "peak", memory, valueOr(answer, double(replayed.peak)), peakWhy(answer)),
            figureOf("makespan", "time of the step", time, valueOr(answer, replayed.makespan), makespanWhy(answer)),
            figureOf("recomputed_forwards", "recomputed forwards", Unit::One,
                     valueOr(answer, double(replayed.recomputed)), forwardsWhy(answer)),
            figureOf("forward_evaluations", "forward evaluations", Unit::One,
                     valueOr(answer, double(replayed.forwards)), evaluations),
            figureOf("feasible", "feasible", Unit::One, answer.chosen.isFeasible ? 1.0 : 0.0, feasibleWhy(answer)),
            figureOf("lower_bound_memory", "least memory", memory, double(answer.leastMemory), leastWhy(answer)),
            figureOf("solver_time", "solver time", Unit::Second, answer.chosen.solverTime, solverWhy(answer))};
}

} // namespace memscape
