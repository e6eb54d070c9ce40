// SPDX-License-Identifier: Apache-2.0
// `detail` of a prediction of `checkpoint`:
//   schedule    the chosen one: [{"operation","stage","option","begin","end","during","after",
//               "recomputation"}]
//   front       [{"budget","makespan"}]: corners of the least time for every budget, from the least
//               memory to no recomputation
//   strategies  every strategy at the budget: [{"key","label","note","peak","makespan",
//               "recomputed_forwards","forward_evaluations","feasible","solver_time","missing"}]
//   chain       names and arrays, as a memscape-chain document; its units say what they are
//   budget      {"value","given","states","minimum","without_recomputation",
//               "makespan_without_recomputation"}
//   attention   which kernel a model's attention runs in, and why
#include "core/checkpoint/schedule_json.h"
#include "core/experiments/checkpoint/checkpoint.h"

#include <fmt/format.h>

namespace memscape {

namespace {

/// Longer schedules are left out of documents, with the reason in their place.
constexpr std::size_t writtenOperationLimit = 200'000;

Json errorJson(const Error& error)
{
    return {{"code", error.code}, {"message", error.message}, {"hint", error.hint}};
}

Json strategyJson(const StrategyAnswer& strategy)
{
    Json json{{"key", strategy.key},
              {"label", strategy.label},
              {"note", strategy.note},
              {"feasible", strategy.isFeasible},
              {"solver_time", strategy.solverTime}};
    if (strategy.hasSchedule()) {
        json["peak"] = strategy.replay.peak;
        json["makespan"] = strategy.replay.makespan;
        json["recomputed_forwards"] = strategy.replay.recomputed;
        json["forward_evaluations"] = strategy.replay.forwards;
    }
    if (strategy.missing)
        json["missing"] = errorJson(*strategy.missing);
    if (!strategy.extra.empty())
        json["extra"] = strategy.extra;
    return json;
}

Json frontJson(const CheckpointAnswer& answer, const std::vector<StrategyAnswer>& strategies)
{
    Json points = Json::array();
    for (const FrontPoint& point : bestFront(answer, strategies))
        points.push_back({{"budget", point.budget}, {"makespan", point.makespan}});
    return points;
}

Json budgetJson(const CheckpointAnswer& answer)
{
    Json json{{"value", answer.budget.memory},
              {"given", answer.budget.isGiven},
              {"minimum", answer.leastMemory},
              {"without_recomputation", answer.front ? answer.front->budgetWithoutRecomputation() : answer.fullMemory},
              {"makespan_without_recomputation", answer.fullTime}};
    if (answer.budget.states)
        json["states"] = *answer.budget.states;
    return json;
}

} // namespace

Json checkpointDetail(const CheckpointAnswer& answer, const std::vector<StrategyAnswer>& strategies)
{
    Json detail{{"chain", chainToJson(answer.chain())}, {"budget", budgetJson(answer)}};
    detail["chain"]["sizes_from"] = answer.source.sizes;
    detail["chain"]["times_from"] = answer.source.times;
    if (!answer.source.attention.empty())
        detail["attention"] = answer.source.attention;
    detail["strategy"] = strategyJson(answer.chosen);
    const bool isShort = answer.chosen.schedule.size() <= writtenOperationLimit;
    detail["schedule"] = isShort ? scheduleJson(answer.chosen.schedule, answer.chosen.replay) : Json::array();
    if (!isShort)
        detail["schedule_missing"] =
            fmt::format("{} operations are more than {}", answer.chosen.schedule.size(), writtenOperationLimit);
    detail["front"] = frontJson(answer, strategies);
    if (answer.front)
        detail["front_slot"] = answer.front->slot();
    if (answer.frontMissing)
        detail["front_missing"] = errorJson(*answer.frontMissing);
    detail["strategies"] = Json::array();
    for (const StrategyAnswer& strategy : strategies)
        detail["strategies"].push_back(strategyJson(strategy));
    return detail;
}

Series checkpointMemorySeries(const CheckpointAnswer& answer)
{
    Series series;
    series.key = "memory";
    series.label = "live memory";
    series.x = {"step_time", "time", answer.timeUnit(), AxisScale::Linear, {}, {}};
    series.yLabel = "live memory";
    series.yUnit = answer.memoryUnit();
    if (answer.chosen.schedule.size() > writtenOperationLimit)
        return series;
    for (const ReplayStep& step : answer.chosen.replay.steps) {
        series.x.values.insert(series.x.values.end(), {step.begin, step.end});
        series.y.insert(series.y.end(), {double(step.during), double(step.during)});
    }
    return series;
}

} // namespace memscape
