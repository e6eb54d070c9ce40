// SPDX-License-Identifier: Apache-2.0
#include "kernels/pytorch/measured_memory.h"

#include "core/experiments/memory/memory_detail.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/trace/peak.h"
#include "core/trace/timeline.h"
#include "core/training/simulation.h"
#include "kernels/measure/timed_figures.h"
#include "kernels/pytorch/measured_trace.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace memscape {

namespace {

/// In this order; others follow in their own.
constexpr const char* figureOrder[] = {"parameter_count", "weights",       "master_weights", "gradients",
                                       "optimizer_state", "kv_cache",      "activations",    "temporary",
                                       "peak_allocated",  "peak_reserved", "device_total",   "fits",
                                       "step_time",       "prefill_time",  "token_time",     "resident"};

std::size_t rankOf(const Figure& figure)
{
    const auto* found = std::find(std::begin(figureOrder), std::end(figureOrder), figure.key);
    return std::size_t(found - std::begin(figureOrder));
}

double valueOf(const Figures& figures, const std::string& key)
{
    const auto found = std::find_if(figures.begin(), figures.end(), [&](const Figure& one) { return one.key == key; });
    return found == figures.end() ? std::numeric_limits<double>::quiet_NaN() : found->number();
}

/// Unless the probe has measured it itself.
void addFigure(Figures& figures, Figure figure)
{
    if (std::none_of(figures.begin(), figures.end(), [&](const Figure& one) { return one.key == figure.key; }))
        figures.push_back(std::move(figure));
}

Result<std::vector<double>> numbersAt(const JsonReader& reader, const char* key)
{
    std::vector<double> numbers;
    if (!reader.has(key))
        return numbers;
    MEMSCAPE_TRY(node, reader.at(key));
    MEMSCAPE_TRY(items, node.items());
    for (const JsonReader& item : items) {
        MEMSCAPE_TRY(number, item.number());
        numbers.push_back(number);
    }
    return numbers;
}

void addTimes(MeasuredMemory& memory, const JsonReader& samples)
{
    constexpr std::pair<const char*, const char*> times[] = {
        {"step_time", "step time"}, {"prefill_time", "prefill"}, {"token_time", "one more token"}};
    for (const auto& [key, label] : times) {
        const auto seconds = numbersAt(samples, key);
        if (!seconds || seconds->empty())
            continue;
        addFigure(memory.figures, timeFigure(key, label, summarize(*seconds), false));
        if (memory.seconds.empty())
            memory.seconds = *seconds;
    }
}

void addTrace(MeasuredMemory& memory, const Device& device, const Trace& trace, double context)
{
    const auto peak = peakOf(trace);
    if (!peak)
        return;
    const auto bytes = [](const char* key, const char* label, std::int64_t value) {
        return Figure{key, label, Unit::Byte, double(value)};
    };
    addFigure(memory.figures, bytes("activations", "activations", highestBytes(trace, Category::Activations)));
    addFigure(memory.figures, bytes("temporary", "temporary", peak->categories[std::size_t(Category::Temporary)]));
    addFigure(memory.figures, bytes("peak_allocated", "peak allocated", peak->bytes));
    const double reserved = valueOf(memory.figures, "peak_reserved");
    const auto held = std::max(peak->bytes, reserved >= 0 ? std::int64_t(reserved) : peak->bytes);
    Json& detail = memory.detail;
    detail["parts"] = partsJson(*peak, held, std::int64_t(context));
    const std::vector<Moment> line = timelineOf(trace, timelinePoints);
    detail["timeline"] = timelineJson(trace, line, *peak, capacityOf(device), std::nullopt);
    addPeaks(detail, trace, *peak);
    detail["live_at_end"] = trace.liveBytes();
    memory.timeline = timelineSeries(line);
}

void addModel(Json& detail, const Device& device, const Parameters& parameters)
{
    if (const auto model = askedModel(parameters))
        detail["model"] = modelJson(*model);
    detail["capacity"] = capacityJson(device, device.isGpu() ? parameters.integer("device_context") : 0);
    detail["basis"] = device.basis;
}

} // namespace

Result<MeasuredMemory> measuredMemory(const Device& device, const Parameters& parameters, const Json& result)
{
    MEMSCAPE_TRY(outcome, outcomeFromJson(JsonReader(result, "result")));
    MeasuredMemory memory;
    memory.figures = std::move(outcome.figures);
    addModel(memory.detail, device, parameters);
    const Json& given = outcome.detail;
    const JsonReader detail(given, "result.detail");
    if (detail.has("samples")) {
        MEMSCAPE_TRY(samples, detail.at("samples"));
        addTimes(memory, samples);
    }
    MEMSCAPE_TRY(context, detail.number("context", 0.0));
    if (detail.has("trace")) {
        MEMSCAPE_TRY(tables, detail.at("trace"));
        MEMSCAPE_TRY(trace, traceFromProbe(tables.node()));
        addTrace(memory, device, trace, context);
        addFigure(memory.figures, {"fits", "fits", Unit::One, 1.0});
    }
    for (const char* key : {"phases", "notes", "problem"}) {
        if (given.is_object() && given.contains(key))
            memory.detail[key] = given[key];
    }
    if (detail.has("host_state"))
        memory.hostState = given["host_state"];
    memory.detail["fits"] = valueOf(memory.figures, "fits") != 0;
    memory.detail["fit"] = fitText(valueOf(memory.figures, "fits") != 0, 0, {});
    memory.detail["over"] = 0;
    std::stable_sort(memory.figures.begin(), memory.figures.end(),
                     [](const Figure& a, const Figure& b) { return rankOf(a) < rankOf(b); });
    return memory;
}

} // namespace memscape
