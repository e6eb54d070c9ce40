// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/common/answers.h"

#include "core/experiments/memory/memory_detail.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// The figures of a sentence by key; remembers whether one was missing.
class Said
{
public:
    explicit Said(const Figures& figures)
        : m_figures(figures)
    { }

    double number(std::string_view key)
    {
        const Figure* figure = findFigure(m_figures, key);
        const double value = figure ? figure->number() : std::nan("");
        m_isWhole = m_isWhole && std::isfinite(value);
        return value;
    }
    std::string text(std::string_view key)
    {
        const Figure* figure = findFigure(m_figures, key);
        m_isWhole = m_isWhole && figure && (!figure->isNumber() || std::isfinite(figure->number()));
        return figure ? figure->text() : std::string();
    }
    std::string percent(std::string_view key) { return percentText(number(key)); }
    bool has(std::string_view key) const
    {
        const Figure* figure = findFigure(m_figures, key);
        return figure && std::isfinite(figure->number());
    }
    /// The answer with that sentence, or with none where a figure was missing.
    ShortAnswer answer(std::string sentence, std::string figure, bool wantsMore, std::vector<std::string> knobs) const
    {
        return {m_isWhole ? std::move(sentence) : std::string(), std::move(figure), wantsMore, std::move(knobs)};
    }

private:
    const Figures& m_figures;
    bool m_isWhole = true;
};

std::string factorText(double factor)
{
    return quantityText(factor, Unit::One);
}

std::string counted(double count, const char* one, const char* many)
{
    return fmt::format("{} {}", factorText(count), count == 1 ? one : many);
}

/// The largest part of what is alive at the peak, where its figure says the parts; empty elsewhere. A figure of its own
/// says the most that a part takes at any time.
std::string largestAtPeak(const Figures& figures)
{
    const Figure* peak = findFigure(figures, "peak_allocated");
    if (!peak || !peak->why)
        return {};
    const Term* largest = nullptr;
    for (const Term& term : peak->why->terms) {
        if (term.meaning == aliveAtThePeak && (!largest || term.value > largest->value))
            largest = &term;
    }
    return largest ? fmt::format("; most of it: {}, {}", largest->symbol, quantityText(largest->value, Unit::Byte))
                   : std::string();
}

/// The largest of those parts, in words.
std::string largestPart(const Figures& figures, std::initializer_list<std::string_view> keys)
{
    const Figure* largest = nullptr;
    for (const std::string_view key : keys) {
        const Figure* part = findFigure(figures, key);
        if (part && part->number() > (largest ? largest->number() : 0))
            largest = part;
    }
    return largest ? fmt::format("; most of it: {}, {}", largest->label, largest->text()) : std::string();
}

} // namespace

ShortAnswer hierarchyAnswer(const Device& device, const Figures& figures)
{
    Said said(figures);
    const std::string home = said.text("level");
    std::string level = home;
    for (const MemoryLevel& one : device.levels)
        if (one.id == home && one.label != "Memory")          // every level is memory: this one is DRAM
            level = one.label.substr(0, one.label.find(',')); // "L2 cache, half near the SM"
    return said.answer(fmt::format("This working set is in {}: {} per dependent read, {} when streamed.", level,
                                   said.text("latency"), said.text("bandwidth")),
                       "latency", false, {"working_set", "pages"});
}

ShortAnswer strideAnswer(const Figures& figures)
{
    Said said(figures);
    const std::string share = said.percent("efficiency");
    return said.answer(said.number("efficiency") >= 1
                           ? fmt::format("All bytes moved are used: {}.", said.text("useful_bandwidth"))
                           : fmt::format("{} of the bytes moved are used: {} of {}.", share,
                                         said.text("useful_bandwidth"), said.text("moved_bandwidth")),
                       "useful_bandwidth", true, {"stride", "element", "pattern", "threads"});
}

ShortAnswer bankConflictsAnswer(const Figures& figures)
{
    Said said(figures);
    const double wavefronts = said.number("wavefronts");
    const std::string cost =
        said.has("bandwidth") ? fmt::format(": {} from one multiprocessor", said.text("bandwidth")) : std::string();
    return said.answer(
        said.number("conflicts") > 0
            ? fmt::format("The lanes wait: {} instead of {}{}.", counted(wavefronts, "wavefront", "wavefronts"),
                          factorText(wavefronts - said.number("conflicts")), cost)
            : fmt::format("No lane waits for another: {}{}.", counted(wavefronts, "wavefront", "wavefronts"), cost),
        "cycles", false, {"stride", "padding", "swizzle", "width"});
}

ShortAnswer layoutAnswer(const Figures& figures)
{
    Said said(figures);
    const std::string view = said.text("view_time"), dense = said.text("contiguous_time"),
                      copy = said.text("copy_time");
    const Figure* pays = findFigure(figures, "pays_after");
    const bool everPays = pays && std::isfinite(pays->number());
    const std::string reads = everPays && pays->number() > 1
        ? fmt::format("when it is read {} times or more", factorText(pays->number()))
        : "even to read it once";
    return said.answer(
        everPays ? fmt::format("Copy it {}: {} a read through the view, {} after contiguous(), which takes {}.", reads,
                               view, dense, copy)
                 : fmt::format("Leave it a view: a read takes {}, after contiguous() {}, which takes {} first.", view,
                               dense, copy),
        "view_time", false, {"walk", "order", "dtype"});
}

ShortAnswer memoryAnswer(const Device& device, const Figures& figures)
{
    Said said(figures);
    const std::string total = said.text("device_total");
    const double capacity = double(capacityOf(device).value_or(0));
    std::string parts = largestAtPeak(figures);
    if (parts.empty())
        parts = largestPart(
            figures,
            {"weights", "master_weights", "gradients", "optimizer_state", "activations", "temporary", "kv_cache"});
    const std::string of = capacity > 0 ? fmt::format(" of {}", quantityText(capacity, Unit::Byte)) : std::string();
    const Figure* fits = findFigure(figures, "fits");
    if (capacity <= 0 || !fits || !std::isfinite(fits->number()))
        return said.answer(fmt::format("It takes {}{}.", total, parts), "device_total", false, {});
    return said.answer(fmt::format("It {}: {}{}{}.", fits->number() > 0 ? "fits" : "does not fit", total, of, parts),
                       "device_total", false, {});
}

ShortAnswer checkpointAnswer(const Figures& figures)
{
    Said said(figures);
    if (said.has("feasible") && !(said.number("feasible") > 0))
        return {"No schedule fits that budget.", "peak", false, {"strategy"}};
    const double again = said.number("recomputed_forwards");
    return said.answer(
        again > 0 ? fmt::format("{} at the peak and {} a step, {} computed again; no schedule needs less than {}.",
                                said.text("peak"), said.text("makespan"), counted(again, "forward", "forwards"),
                                said.text("lower_bound_memory"))
                  : fmt::format("Everything is kept: {} at the peak, {} a step; no schedule needs less than {}.",
                                said.text("peak"), said.text("makespan"), said.text("lower_bound_memory")),
        "peak", false, {"strategy"});
}

ShortAnswer batchSizeAnswer(const Figures& figures)
{
    Said said(figures);
    if (!said.has("largest_batch") || !said.has("throughput"))
        return {};
    std::string sentence = said.number("largest_batch") > 0
        ? fmt::format("Up to {} fit; this one gives {} examples/s", said.text("largest_batch"), said.text("throughput"))
        : "No batch fits";
    if (said.has("sweet_spot"))
        sentence += fmt::format("; {} is the sweet spot", said.text("sweet_spot"));
    if (said.has("critical_batch"))
        sentence += fmt::format("; a batch above {} wastes examples", factorText(said.number("critical_batch")));
    return said.answer(sentence + ".", "time_per_example", false, {"batch", "precision"});
}

ShortAnswer allocatorAnswer(const Figures& figures)
{
    Said said(figures);
    const std::string lost = said.number("unusable") < 0.001
        ? "all of it could be used"
        : fmt::format("{} of it could not be used when more had to be taken", said.percent("unusable"));
    const std::string blocks = said.text("peak_allocated");
    const std::string rounded =
        blocks == said.text("bound") ? std::string() : fmt::format(" ({} in rounded blocks)", blocks);
    return said.answer(fmt::format("{} are reserved for at most {} asked for at once{}; {}.",
                                   said.text("peak_reserved"), said.text("bound"), rounded, lost),
                       "peak_reserved", false, {"batch", "optimizer", "precision"});
}

ShortAnswer attentionAnswer(const Figures& figures)
{
    Said said(figures);
    if (!said.has("flash_time") || !said.has("standard_time")) {
        const std::string kind = said.has("flash_time") ? "flash" : "standard";
        return said.answer(fmt::format("{} attention takes {} and {} of extra memory.",
                                       kind == "flash" ? "Flash" : "Standard", said.text(kind + "_time"),
                                       said.text(kind + "_extra_peak")),
                           kind + "_time", false, {"causal", "dtype", "version"});
    }
    const double ratio = said.number("standard_time") / said.number("flash_time");
    return said.answer(
        fmt::format("Flash attention is {} times as fast ({} against {}) with {} of extra memory instead of {}.",
                    factorText(ratio), said.text("flash_time"), said.text("standard_time"),
                    said.text("flash_extra_peak"), said.text("standard_extra_peak")),
        "flash_time", false, {"causal", "dtype", "version"});
}

ShortAnswer precisionAnswer(const Parameters& parameters, const Figures& figures)
{
    Said said(figures);
    const std::string& format = parameters.choice("format");
    const std::string speed = said.has("speedup") && said.number("speedup") != 1
        ? fmt::format(", {} times the speed of FP32", factorText(said.number("speedup")))
        : std::string();
    if (said.has("step_time")) {
        const double lost = said.number("underflow_share");
        return said.answer(fmt::format("A training step takes {} in {}{}; {} of its gradients become zero.",
                                       said.text("step_time"), format, speed, lost > 5e-5 ? percentText(lost) : "none"),
                           {}, false, {});
    }
    if (!said.has("flop_rate"))
        return {};
    return said.answer(fmt::format("This product runs at {} in {}{}; it is {}.", said.text("flop_rate"), format, speed,
                                   said.text("bound")),
                       "flop_rate", true, {"format", "m", "n", "k"});
}

ShortAnswer rooflineAnswer(const Parameters& parameters, const Figures& figures)
{
    Said said(figures);
    const std::string intensity = factorText(parameters.number("intensity"));
    return said.answer(
        fmt::format("At {} FLOP/B a kernel is {} and reaches at most {}; from {} FLOP/B on arithmetic limits it.",
                    intensity, said.text("bound"), said.text("attainable"), factorText(said.number("ridge"))),
        "attainable", true, {"intensity", "format"});
}

} // namespace memscape
