// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/attention/attention_measurement.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace memscape {

namespace {

Figure figureOf(const AttentionTask& task, std::string_view key, std::string_view label, Unit unit, double value)
{
    const std::string_view kind = attentionKindText(task.problem.kind);
    Figure figure{fmt::format("{}_{}", kind, key), fmt::format("{} {}", kind, label), unit};
    figure.value = value;
    return figure;
}

} // namespace

Result<std::vector<AttentionTask>> attentionTasks(const Device& device, const Parameters& parameters)
{
    MEMSCAPE_TRY(plans, attentionPlans(device, parameters));
    std::vector<AttentionTask> tasks;
    for (AttentionPlan& plan : plans)
        tasks.push_back({plan.problem, std::move(plan.version)});
    return tasks;
}

std::string attentionTimeKey(const AttentionTask& task)
{
    return fmt::format("{}_time", attentionKindText(task.problem.kind));
}

Figures attentionTaskFigures(const AttentionTask& task, const Summary& seconds, const AttentionBytes& bytes)
{
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    const double flops = attentionFlops(task.problem.shape, task.problem.pass);
    Figure time = figureOf(task, "time", "time", Unit::Second, seconds.empty() ? unknown : seconds.median);
    Figure rate =
        figureOf(task, "rate", "rate", Unit::FlopPerSecond, seconds.empty() ? unknown : flops / seconds.median);
    if (!seconds.empty() && seconds.minimum > 0) {
        time.low = seconds.minimum;
        time.high = seconds.q3;
        rate.low = flops / seconds.q3;
        rate.high = flops / seconds.minimum;
    }
    return {time, figureOf(task, "extra_peak", "extra memory", Unit::Byte, double(bytes.peak)),
            figureOf(task, "saved_for_backward", "saved for backward", Unit::Byte, double(bytes.saved)),
            figureOf(task, "flops", "operations", Unit::One, flops), rate};
}

Figures attentionComparison(const Summary& standard, const Summary& flash)
{
    if (standard.empty() || flash.empty() || flash.median <= 0)
        return {};
    return {{"speedup", "flash is faster by", Unit::One, standard.median / flash.median, standard.minimum / flash.q3,
             standard.q3 / std::max(flash.minimum, 1e-12)}};
}

Figure attentionCrossoverFigure(const std::map<std::int64_t, double>& speedups)
{
    std::int64_t found = 0;
    for (auto entry = speedups.rbegin(); entry != speedups.rend() && entry->second > 1; ++entry)
        found = entry->first;
    Figure figure{"crossover", "flash is faster from", Unit::One};
    figure.value = double(found);
    return figure;
}

Figures attentionPointFigures(const std::vector<AttentionTask>& tasks, const MergedSamples& samples,
                              const std::map<std::string, AttentionBytes>& bytes,
                              std::map<std::int64_t, double>& speedups)
{
    Figures figures;
    std::vector<Summary> seconds;
    for (const AttentionTask& task : tasks) {
        const auto taken = samples.find(attentionTimeKey(task));
        if (taken == samples.end())
            continue;
        seconds.push_back(summarize(taken->second.merged()));
        for (Figure& figure : attentionTaskFigures(task, seconds.back(), bytes.at(taken->first)))
            figures.push_back(std::move(figure));
    }
    if (seconds.size() < 2)
        return figures;
    for (Figure& figure : attentionComparison(seconds.front(), seconds.back())) {
        speedups[tasks.front().problem.shape.queries] = figure.number();
        figures.push_back(std::move(figure));
    }
    figures.push_back(attentionCrossoverFigure(speedups));
    return figures;
}

Result<AttentionBytes> countAttention(AttentionDevice& device, const AttentionTask& task)
{
    AttentionBytes counted;
    device.resetPeak();
    MEMSCAPE_CHECK(device.forward());
    counted.saved = device.bytes().saved;
    if (task.problem.pass == AttentionPass::Forward) {
        counted.peak = device.bytes().peak;
        return counted;
    }
    if (task.problem.pass == AttentionPass::Backward)
        device.resetPeak(); // the forward before it is not asked about
    MEMSCAPE_CHECK(device.backward());
    counted.peak = device.bytes().peak;
    return counted;
}

} // namespace memscape
