// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/batch-size/batch_size.h"

#include "core/experiments/memory/memory_detail.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr const char* paper = "McCandlish et al. 2018, arXiv:1812.06162";

Why largestWhy(const Device& device, const BatchStudy& study)
{
    Why why;
    why.formula = "the largest batch whose simulated step fits, by bisection; memory grows with the batch";
    why.source = "the training step simulated, as on the page Memory budget";
    if (!study.capacity) {
        why.with = fmt::format("the memory of {} is not known", device.name);
        return why;
    }
    if (!study.largest) {
        why.with =
            fmt::format("even 1 takes {} of {}: {} too many", bytesText(double(study.memory->smallest->deviceBytes())),
                        bytesText(double(*study.capacity)), bytesText(double(study.over)));
        return why;
    }
    why.with = fmt::format("= {} in {}", *study.largest, bytesText(double(*study.capacity)));
    if (const BatchPoint* point = study.at(*study.largest))
        why.terms.push_back(
            {"total", double(point->device), Unit::Byte, "device total at that batch", "the simulated step"});
    why.omits = {"what the memory budget leaves out"};
    return why;
}

Why noiseWhy(const BatchNoise& noise, std::string formula)
{
    Why why;
    why.formula = std::move(formula);
    why.with = noise.isReached ? std::string() : noise.reason;
    if (std::isfinite(noise.noiseScale))
        why.with = fmt::format("= {} examples at a loss of {}", shortNumber(noise.noiseScale),
                               quantityText(noise.target, Unit::One));
    if (noise.knowsSteps()) {
        why.terms = {{"S_min", noise.hyperbola.fewestSteps, Unit::One, "steps with an unlimited batch",
                      std::string(noiseSourceText(noise.source))},
                     {"E_min", noise.hyperbola.fewestExamples, Unit::One, "examples with the smallest batches",
                      std::string(noiseSourceText(noise.source))}};
    } else if (!noise.remedy.empty()) {
        why.with += (why.with.empty() ? "" : "; ") + noise.reason + ": " + noise.remedy;
    }
    why.source = paper;
    if (noise.isReached && !noise.reason.empty())
        why.source += fmt::format("; {}", noise.reason);
    why.omits = {"rates that are not tuned to the batch", "momentum and Adam's scaling", "generalisation"};
    return why;
}

/// The costs of a processor's operations, and their source.
void sayHost(Why& why, const Device& device, const StepTime& time)
{
    const HostOperations host = hostOperations(device);
    const char* const source =
        host.evidence == Evidence::Measured ? "calibration of this machine" : "typical value, until calibrated";
    why.terms = {
        {"calls", time.launchBound, Unit::Second, "barriers of threads, and starting products", source},
        {"memory", time.memoryBound, Unit::Second, "rearranging operands, writing results, passes over arrays", source},
        {"arithmetic", time.arithmeticBound, Unit::Second, "multiply-adds, edge tiles included", source},
        {"update", time.optimizer, Unit::Second, "the optimizer's, an operation for each parameter",
         "bytes of its rule"},
        {"call", host.call, Unit::Second, "one operation with almost no work", source},
        {"start", host.start, Unit::Second, "a step without operations", source}};
    why.source = host.evidence == Evidence::Measured
        ? fmt::format("operations of this machine's calibration; its fit is within {} of half of the probes",
                      percentText(host.misfit))
        : std::string("typical costs of a core of the 2020s: memscape-cli calibrate measures this machine's");
    why.omits = {"dispatch of a framework", "time that the system takes away", "data loading"};
}

Why throughputWhy(const Device& device, const BatchPoint& point)
{
    Why why;
    const StepTime& time = point.time;
    why.formula = "examples of an update / time of the step";
    why.with = fmt::format("= {} / {}", shortNumber(point.examples), secondsText(time.total));
    why.terms = {{"arithmetic", time.arithmeticBound, Unit::Second, "in operators limited by arithmetic", "roofline"},
                 {"memory", time.memoryBound, Unit::Second, "in operators limited by memory", "roofline"},
                 {"launch", time.launchBound, Unit::Second, "in operators limited by their launch", "roofline"},
                 {"dispatch", time.dispatch, Unit::Second, "the device waits for the host that dispatches",
                  "measured: PyTorch 2.15 on a Zen 4, operators of a GPU on a Xeon"},
                 {"update", time.optimizer, Unit::Second, "the optimizer's", "bytes of its rule"}};
    why.source = "each operator max(FLOPs / rate, bytes / bandwidth) + launch: Williams, Waterman, Patterson 2009; "
                 "products at the rate that their shapes reach";
    why.omits = {"kernels that torch.compile fuses", "data loading"};
    if (!device.isGpu())
        sayHost(why, device, time);
    return why;
}

Why memoryWhy(const BatchStudy& study, const BatchPoint& point)
{
    Why why;
    why.formula = "highest sum of live blocks of the simulated step, each rounded up to 512 B";
    why.with = fmt::format("= {}", bytesText(double(point.allocated)));
    if (study.memory->smallest) {
        const double fixed = double(study.memory->smallest->simulation.allocatedBytes());
        why.terms.push_back({"batch 1", fixed, Unit::Byte, "the same step with one example", "the simulated step"});
    }
    why.source = "PyTorch's autograd and caching allocator, see Memory budget";
    return why;
}

void addNoise(Figures& figures, const BatchStudy& study, const BatchPoint& point)
{
    const BatchNoise& noise = study.noise;
    const bool known = noise.knowsSteps();
    const double critical = known                   ? noise.hyperbola.critical()
        : noise.source == BatchNoise::Source::Given ? noise.noiseScale
                                                    : nan;
    figures.push_back(figureOf(
        "critical_batch", "critical batch", Unit::One, critical,
        noiseWhy(noise,
                 "B_crit = E_min / S_min: there a target takes twice the fewest steps and twice the fewest examples")));
    figures.push_back(figureOf("noise_scale", "noise scale", Unit::One, noise.noiseScale,
                               noiseWhy(noise, "B_simple = tr(Σ) / |G|² at the target loss")));
    const double steps = known ? noise.hyperbola.steps(point.examples) : nan;
    Why why = noiseWhy(noise, "E = B S = E_min (1 + B / B_crit), S = S_min (1 + B_crit / B)");
    if (known)
        why.with = fmt::format("= {} × {} steps", shortNumber(point.examples), shortNumber(steps));
    figures.push_back(figureOf("examples_to_target", "examples to the target", Unit::One, steps * point.examples, why));
    figures.push_back(figureOf("steps_to_target", "steps to the target", Unit::One, steps, why));
    figures.push_back(
        figureOf("time_to_target", "time to the target", Unit::Second, steps * point.time.total,
                 {"steps × time of a step",
                  known ? fmt::format("= {} × {}", shortNumber(steps), secondsText(point.time.total)) : std::string(),
                  {},
                  paper,
                  {}}));
}

} // namespace

Figures batchFigures(const Device& device, const BatchStudy& study, const BatchPoint& point)
{
    Figures figures;
    figures.push_back(figureOf("largest_batch", "largest batch", Unit::One,
                               study.capacity ? double(study.largest.value_or(0)) : nan, largestWhy(device, study)));
    figures.push_back(figureOf(
        "sweet_spot", "sweet spot", Unit::One, study.sweetSpot ? double(*study.sweetSpot) : nan,
        {"the batch that reaches the target soonest on this device: least (S_min + E_min / B) × time of a step",
         study.sweetReason,
         {},
         "steps by McCandlish et al. 2018, time of the step by its operators",
         {}}));
    figures.push_back(
        figureOf("memory", "memory", Unit::Byte, double(point.device),
                 {device.isGpu() ? "reserved + context" : "what is allocated: a processor's allocator caches nothing",
                  fmt::format("= {}", bytesText(double(point.device))),
                  {},
                  device.isGpu() ? "the caching allocator replayed; the context is a setting (device_context)"
                                 : "the simulated step",
                  {}}));
    figures.push_back(
        figureOf("peak_allocated", "peak allocated", Unit::Byte, double(point.allocated), memoryWhy(study, point)));
    figures.push_back(
        figureOf("throughput", "throughput (examples/s)", Unit::One, point.throughput(), throughputWhy(device, point)));
    addNoise(figures, study, point);
    figures.push_back(
        figureOf("step_time", "time of a step", Unit::Second, point.time.total, throughputWhy(device, point)));
    figures.push_back(figureOf("time_per_example", "time per example", Unit::Second, point.secondsPerExample(),
                               throughputWhy(device, point)));
    figures.push_back(figureOf("bound", "limited by", Unit::One, std::string(boundText(point.bound, point.isHost)),
                               throughputWhy(device, point)));
    return figures;
}

Series paretoSeries(const BatchStudy& study)
{
    Series series;
    series.key = "pareto";
    series.label = "not beaten in memory, throughput and examples at once";
    series.x = {"peak_allocated", "memory", Unit::Byte, AxisScale::Log2, {}, {}};
    series.yLabel = "the front (examples/s)";
    for (const ParetoPoint& point : study.front) {
        series.x.values.push_back(point.memory);
        series.y.push_back(point.throughput);
    }
    return series;
}

} // namespace memscape
