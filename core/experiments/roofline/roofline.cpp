// SPDX-License-Identifier: Apache-2.0
// roofline: compute-bound or memory-bound?
//
//     attainable rate = min(dense rate of the format, intensity × bandwidth of the level)
//     intensity       = operations / bytes,  ridge = dense rate / bandwidth
//
// (Williams, Waterman, Patterson, CACM 52, 2009.) A kernel left of the ridge waits for memory, right
// of it for arithmetic, and each format has a ridge of its own. Kernels of the other experiments
// stand under the device's ceilings, predicted and measured by those experiments. Left out: ceilings
// within a core (no vectors, no overlap), energy, bytes that hardware counters would show.
#include "core/experiments/roofline/roofline.h"
#include "core/claims/claim_quotes.h"
#include "core/experiment/schema.h"
#include "core/experiments/common/answers.h"
#include "core/experiments/precision/precision.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

Why roofWhy(const std::string& formula, const std::string& with)
{
    Why why;
    why.formula = formula;
    why.with = with;
    why.source = "Williams, Waterman, Patterson 2009 (roofline)";
    why.omits = {"ceilings within a core: no vectors, no overlap of memory and arithmetic"};
    return why;
}

double denseRate(const Device& device, Format format)
{
    const auto rate = productRate(device, format);
    return rate ? rate->dense.value : nan;
}

double bandwidthOf(const Device& device, const std::string& level)
{
    const std::vector<RooflineLevel> levels = rooflineLevels(device);
    for (const RooflineLevel& one : levels) {
        if (one.id == level)
            return one.bandwidth;
    }
    return levels.empty() ? nan : levels.back().bandwidth; // DRAM
}

struct Question
{
    Format format;
    double intensity;
};

Question questionOf(const Parameters& parameters)
{
    return {formatFromText(parameters.choice("format")).value_or(Format::Bf16), parameters.number("intensity")};
}

class Roofline final : public Experiment
{
public:
    Roofline();
    std::string id() const override { return "roofline"; }
    std::string title() const override { return "Roofline"; }
    std::string question() const override { return "Compute-bound or memory-bound?"; }
    std::string group() const override { return "kernels"; }
    std::string help() const override
    {
        return "Every kernel does some operations per byte that it moves. Left of the ridge the "
               "memory's bandwidth is its roof, right of it the arithmetic rate of its number "
               "format. The kernels of the other experiments are placed under the device's own ceilings, "
               "cache levels included. Left out: ceilings within a core, and bytes that only "
               "hardware counters would show.";
    }
    const Schema& schema() const override { return m_schema; }
    ShortAnswer shortAnswer(const Device&, const Parameters& parameters, const Figures& figures) const override
    {
        return rooflineAnswer(parameters, figures);
    }
    std::vector<SeriesSpec> series() const override
    {
        return {{"attainable", "under DRAM"}, {"cache_attainable", "under the first cache"}};
    }
    Sweep axis(const Device& device, const Parameters& parameters) const override;
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override;
    Result<Prediction> predict(const Device& device, const Parameters& parameters,
                               PredictionContext& context) const override;
    std::vector<Claim> claims(const Device& device, const Parameters& parameters,
                              const Measurement& measured) const override;

private:
    Schema m_schema;
};

Roofline::Roofline()
{
    m_schema = {choiceSpec("format", "format", "The number format whose arithmetic rate is the flat roof.",
                           formatChoices(), "fp32"),
                realSpec("intensity", "intensity",
                         "Operations per byte of a kernel of your own, to place it on the plot.",
                         {.least = 0.001, .most = 1e6, .standard = "16", .scale = Scale::Log2, .suffix = "FLOP/B"})};
}

/// Powers of two, and the ridges: where a roof's slope ends there is a corner.
Sweep Roofline::axis(const Device& device, const Parameters& parameters) const
{
    std::vector<double> values;
    for (int power = -4; power <= 12; ++power)
        values.push_back(std::ldexp(1.0, power));
    const std::vector<RooflineLevel> levels = rooflineLevels(device);
    const double rate = denseRate(device, questionOf(parameters).format);
    for (std::size_t i = 0; i < levels.size(); i += std::max<std::size_t>(1, levels.size() - 1)) {
        const double ridge = rate / levels[i].bandwidth; // of the first cache and of DRAM
        if (ridge > values.front() && ridge < std::ldexp(1.0, 12))
            values.push_back(ridge);
    }
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return {"intensity", {values.begin(), values.end()}};
}

Result<Figures> Roofline::predictPoint(const Device& device, const Parameters& parameters) const
{
    const Question asked = questionOf(parameters);
    MEMSCAPE_TRY(rate, productRate(device, asked.format));
    const std::vector<RooflineLevel> levels = rooflineLevels(device);
    if (levels.empty() || !std::isfinite(levels.back().bandwidth))
        return fail("predict.device", fmt::format("the DRAM bandwidth of {} is not known", device.name),
                    "choose a device of the catalogue, or calibrate this one");
    const double ridge = rate.dense.value / levels.back().bandwidth;
    const std::string with =
        fmt::format("= min({}, {} × {})", quantityText(rate.dense.value, Unit::FlopPerSecond),
                    shortNumber(asked.intensity, 3), quantityText(levels.back().bandwidth, Unit::BytePerSecond));
    const Why why = roofWhy("min(dense rate, intensity × bandwidth)", with);
    Figures figures;
    const auto add = [&](std::string key, std::string label, Unit unit, double value) {
        figures.push_back(figureOf(std::move(key), std::move(label), unit, value, why));
    };
    add("attainable", "attainable rate", Unit::FlopPerSecond, rooflineRoof(device, asked.format, {}, asked.intensity));
    add("cache_attainable", "attainable from " + levels.front().id, Unit::FlopPerSecond,
        rooflineRoof(device, asked.format, levels.front().id, asked.intensity));
    figures.push_back(
        figureOf("bound", "limited by", Unit::One, rooflineBound(device, asked.format, {}, asked.intensity), why));
    add("ridge", "ridge (FLOP/B)", Unit::One, ridge);
    for (const Format format : productFormats(device)) {
        const NumberFormat& numbers = numberFormat(format);
        const double dense = denseRate(device, format);
        figures.push_back(figureOf(fmt::format("ridge_{}", numbers.key),
                                   fmt::format("ridge, {} (FLOP/B)", numbers.label), Unit::One,
                                   dense / levels.back().bandwidth,
                                   roofWhy("dense rate / DRAM bandwidth",
                                           fmt::format("= {} / {}", quantityText(dense, Unit::FlopPerSecond),
                                                       quantityText(levels.back().bandwidth, Unit::BytePerSecond)))));
    }
    return figures;
}

Result<Prediction> Roofline::predict(const Device& device, const Parameters& parameters,
                                     PredictionContext& context) const
{
    MEMSCAPE_TRY(prediction, Experiment::predict(device, parameters, context));
    Json points = Json::array();
    for (const RooflineKernel& kernel : rooflineKernels(device)) {
        const auto own = rooflineParameters(kernel);
        const auto experiment = findExperiment(kernel.experiment);
        if (!own || !experiment)
            continue;
        const auto figures = (*experiment)->predictPoint(device, *own);
        const auto point = figures ? rooflinePoint(kernel, *figures) : std::nullopt;
        if (!point)
            continue;
        addRooflineFigures(prediction.figures, device, kernel, *point);
        points.push_back(rooflineJson(device, kernel, *point));
    }
    prediction.detail["points"] = std::move(points);
    Json levels = Json::array(), formats = Json::array();
    for (const RooflineLevel& level : rooflineLevels(device))
        levels.push_back({{"id", level.id}, {"label", level.label}, {"bandwidth", jsonNumber(level.bandwidth)}});
    for (const Format format : productFormats(device))
        formats.push_back({{"key", numberFormat(format).key},
                           {"label", numberFormat(format).label},
                           {"rate", jsonNumber(denseRate(device, format))}});
    prediction.detail["levels"] = std::move(levels);
    prediction.detail["formats"] = std::move(formats);
    return prediction;
}

std::vector<Claim> Roofline::claims(const Device& device, const Parameters&, const Measurement&) const
{
    struct Threshold
    {
        const char* name;
        double value;
    };
    const double bandwidth = bandwidthOf(device, {}), ridge = denseRate(device, Format::Fp32) / bandwidth;
    for (const Threshold& threshold : {Threshold{"A100", 10}, {"V100", 17}, {"H100", 20}}) {
        if (device.name.find(threshold.name) == std::string::npos)
            continue;
        std::string ours;
        for (const Format format : productFormats(device))
            ours += fmt::format("{}{} {}", ours.empty() ? "" : ", ", numberFormat(format).label,
                                shortNumber(denseRate(device, format) / bandwidth, 3));
        return {quotedClaim("ridge-points",
                            std::fabs(ridge / threshold.value - 1) < 0.25 ? "holds for plain FP32"
                                                                          : "does not hold, not even for plain FP32",
                            "the ridge in FLOP/B by format: " + ours)};
    }
    if (!std::isfinite(bandwidth))
        return {};
    return {quotedClaim("ridge-points",
                        ridge < 8        ? "does not hold for this device: in FP32 it is compute-bound earlier"
                            : ridge > 25 ? "does not hold for this device: in FP32 it is memory-bound for longer"
                                         : "holds for this device too, in plain FP32",
                        fmt::format("{}: {} in FP32", device.name, shortNumber(ridge, 3)))};
}

} // namespace

std::vector<RooflineLevel> rooflineLevels(const Device& device)
{
    std::vector<RooflineLevel> levels;
    for (const MemoryLevel& level : device.levels) {
        if (level.kind != LevelKind::Cache && level.kind != LevelKind::Dram)
            continue;
        // A host reads each line before it overwrites it: the bytes that its copies count are fewer
        // than those that move, and its reads alone show what the memory gives.
        const bool copies = device.isGpu() && level.kind == LevelKind::Dram;
        const Sourced bandwidth = levelBandwidth(device, level, copies ? Operation::Copy : Operation::Read);
        if (bandwidth.valueOr(0) > 0)
            levels.push_back({level.id, level.label, bandwidth.value});
    }
    return levels;
}

double rooflineRoof(const Device& device, Format format, const std::string& level, double intensity)
{
    return std::min(denseRate(device, format), intensity * bandwidthOf(device, level));
}

std::string rooflineBound(const Device& device, Format format, const std::string& level, double intensity)
{
    const double ridge = denseRate(device, format) / bandwidthOf(device, level);
    if (!std::isfinite(ridge))
        return "not known";
    if (intensity >= ridge)
        return "compute-bound";
    return fmt::format("memory-bound ({})", level.empty() ? "DRAM" : level);
}

void addRooflineFigures(Figures& figures, const Device& device, const RooflineKernel& kernel,
                        const RooflinePoint& point)
{
    Why why = roofWhy("operations / time",
                      fmt::format("{} ({}), {} FLOP/B: {}", operationsText(point.flops), kernel.counts,
                                  shortNumber(point.intensity(), 3),
                                  rooflineBound(device, kernel.format, kernel.level, point.intensity())));
    why.source = "the experiment " + kernel.experiment;
    figures.push_back(figureOf(kernel.id + "_rate", kernel.label, Unit::FlopPerSecond, point.rate(), std::move(why)));
}

Json rooflineJson(const Device& device, const RooflineKernel& kernel, const RooflinePoint& point)
{
    const double roof = rooflineRoof(device, kernel.format, kernel.level, point.intensity());
    return {{"id", kernel.id},
            {"label", kernel.label},
            {"experiment", kernel.experiment},
            {"assignments", kernel.assignments},
            {"format", numberFormat(kernel.format).key},
            {"level", kernel.level.empty() ? "DRAM" : kernel.level},
            {"counts", kernel.counts},
            {"intensity", jsonNumber(point.intensity())},
            {"rate", jsonNumber(point.rate())},
            {"roof", jsonNumber(roof)},
            {"bound", rooflineBound(device, kernel.format, kernel.level, point.intensity())}};
}

const Experiment& rooflineExperiment()
{
    static const Roofline experiment;
    return experiment;
}

} // namespace memscape
