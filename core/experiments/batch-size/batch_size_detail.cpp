// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/batch-size/batch_size.h"

#include "core/base/json.h"
#include "core/network/dtype.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

Json pointJson(const BatchStudy& study, const BatchPoint& point)
{
    const bool known = study.noise.knowsSteps();
    return {{"batch", point.batch},
            {"accumulation", point.accumulation},
            {"update", jsonNumber(point.examples)},
            {"peak_allocated", point.allocated},
            {"device_total", point.device},
            {"fits", point.fits},
            {"step_time", jsonNumber(point.time.total)},
            {"throughput", jsonNumber(point.throughput())},
            {"bound", boundText(point.bound, point.isHost)},
            {"steps", jsonNumber(known ? study.noise.hyperbola.steps(point.examples) : nan)},
            {"examples", jsonNumber(known ? study.noise.hyperbola.examples(point.examples) : nan)}};
}

/// Neighbours of one bound together: where one becomes the other.
Json regimesJson(const BatchStudy& study)
{
    Json regimes = Json::array();
    for (const BatchPoint& point : study.curve) {
        if (!(point.time.total > 0))
            continue;
        if (regimes.empty() || regimes.back()["bound"] != boundText(point.bound, point.isHost))
            regimes.push_back(
                {{"bound", boundText(point.bound, point.isHost)}, {"from", point.batch}, {"to", point.batch}});
        regimes.back()["to"] = point.batch;
    }
    return regimes;
}

Json noiseJson(const BatchNoise& noise)
{
    const bool known = noise.knowsSteps();
    Json json{{"source", noiseSourceText(noise.source)},
              {"target_loss", jsonNumber(noise.target)},
              {"reached", noise.isReached},
              {"reason", noise.reason},
              {"remedy", noise.remedy},
              {"noise_scale", jsonNumber(noise.noiseScale)}};
    json["fewest_steps"] = known ? jsonNumber(noise.hyperbola.fewestSteps) : Json();
    json["fewest_examples"] = known ? jsonNumber(noise.hyperbola.fewestExamples) : Json();
    json["critical_batch"] = known ? jsonNumber(noise.hyperbola.critical()) : Json();
    return json;
}

Json runJson(const ScheduleRun& run)
{
    Json steps = Json::array(), batches = Json::array(), noise = Json::array(), losses = Json::array(),
         examples = Json::array();
    for (const ScheduleMoment& moment : run.moments) {
        steps.push_back(jsonNumber(moment.step));
        batches.push_back(jsonNumber(moment.batch));
        noise.push_back(jsonNumber(moment.noiseScale));
        losses.push_back(jsonNumber(moment.loss));
        examples.push_back(jsonNumber(moment.examples));
    }
    return {{"steps", jsonNumber(run.steps)}, {"examples", jsonNumber(run.examples)}, {"reached", run.isReached},
            {"step", std::move(steps)},       {"batch", std::move(batches)},          {"noise_scale", std::move(noise)},
            {"loss", std::move(losses)},      {"seen", std::move(examples)}};
}

Json scheduleJson(const BatchStudy& study)
{
    if (!study.schedule)
        return {};
    Json json = runJson(*study.schedule);
    json["limit"] = jsonNumber(study.mostScheduled);
    json["step_limit"] = jsonNumber(study.scheduleLimit);
    if (study.constant) {
        json["constant"] = {{"steps", jsonNumber(study.constant->steps)},
                            {"examples", jsonNumber(study.constant->examples)},
                            {"reached", study.constant->isReached}};
    }
    return json;
}

Json accumulationJson(const BatchStudy& study)
{
    Json splits = Json::array();
    const BatchPoint* whole = study.splits.empty() ? nullptr : &study.splits.front();
    for (const BatchPoint& split : study.splits) {
        Json json = pointJson(study, split);
        json["overhead"] = jsonNumber(split.time.total / whole->time.total - 1);
        splits.push_back(std::move(json));
    }
    const Plan& plan = study.own.setup.step.plan;
    const double trained = double(trainedCount(study.own.simulation.parameters()));
    return {{"splits", std::move(splits)},
            {"buffer_bytes", jsonNumber(trained * double(plan.gradientBytes()))},
            {"buffer_element", plan.gradientBytes()},
            {"buffer_fp32", jsonNumber(trained * 4)},
            {"buffer_half", jsonNumber(trained * 2)}};
}

Json frontJson(const BatchStudy& study)
{
    Json front = Json::array();
    for (const ParetoPoint& point : study.front)
        front.push_back({{"batch", point.batch},
                         {"accumulation", point.accumulation},
                         {"peak_allocated", jsonNumber(point.memory)},
                         {"throughput", jsonNumber(point.throughput)},
                         {"examples", jsonNumber(point.examples)}});
    return front;
}

} // namespace

Json batchDetail(const BatchStudy& study)
{
    Json curve = Json::array();
    for (const BatchPoint& point : study.curve)
        curve.push_back(pointJson(study, point));
    Json detail{
        {"curve", std::move(curve)},
        {"regimes", regimesJson(study)},
        {"noise", noiseJson(study.noise)},
        {"accumulation", accumulationJson(study)},
        {"pareto", frontJson(study)},
        {"schedule", scheduleJson(study)},
        {"sweet_spot", {{"batch", study.sweetSpot ? Json(*study.sweetSpot) : Json()}, {"why", study.sweetReason}}},
        {"largest", study.largest ? Json(*study.largest) : Json()},
        {"over", study.over},
        {"capacity", study.capacity ? Json(*study.capacity) : Json()},
        {"attention", study.own.simulation.graph->attention.text},
        {"model",
         {{"name", study.memory->model.name},
          {"assumptions", study.memory->model.assumptions},
          {"caution", study.memory->model.caution}}}};
    return detail;
}

} // namespace memscape
