// SPDX-License-Identifier: Apache-2.0
// hierarchy: what latency and bandwidth does each level of memory have?
//
// Latency of a dependent random read and bandwidth of streams against the working set, by
// core/timing/working_set.h: shares of levels × their own latency (time per byte), with measured knees
// and the cost of address translation for the pages chosen.
// Left out: other tenants of a shared cache, NUMA, the loaded latency under full bandwidth.
#include "core/claims/claim_quotes.h"
#include "core/experiment/schema.h"
#include "core/experiments/common/answers.h"
#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

const ChoiceTable<Pages> pageSizes{
    {Pages::Huge, {"huge", "huge, 2 MiB", "madvise(MADV_HUGEPAGE)"}},
    {Pages::Small, {"4k", "small, 4 KiB", "madvise(MADV_NOHUGEPAGE)"}},
    {Pages::Window, {"window", "few pages at a time", "random inside stretches whose pages the first TLB holds"}}};

int threadsOn(const Device& device, const Parameters& parameters)
{
    const int all = device.isGpu() ? device.units : std::max(1, device.threads);
    const int asked = static_cast<int>(parameters.integer("threads"));
    return asked == 0 || device.isGpu() ? all : std::min(asked, all);
}

Why latencyWhy(const Device& device, const LatencyModel& model)
{
    Why why;
    why.formula = "latency = Σ share of a level × its latency + translation";
    why.with = "=";
    for (const ServedBy& one : model.served) {
        if (one.share < 5e-4)
            continue;
        why.with += fmt::format("{} {}·{}", why.with == "=" ? "" : " +",
                                quantityText(one.share, Unit::One, ByteStyle::Binary, 2),
                                secondsText(one.level->latency.value));
        why.terms.push_back({one.level->id, one.level->latency.value, Unit::Second,
                             fmt::format("{} holds {} of the accesses", one.level->label, percentText(one.share)),
                             one.level->latency.source});
    }
    if (model.translation > 0) {
        why.with += fmt::format(" + {}", secondsText(model.translation));
        why.terms.push_back({"translation", model.translation, Unit::Second, "TLB misses on these pages", "device"});
    }
    why.with += fmt::format(" = {}", secondsText(model.seconds));
    why.source = model.served.empty() ? std::string() : "knee: " + model.served.front().level->knee.source;
    why.omits = {"other tenants of a shared cache",
                 device.isGpu() ? "which memory partition is near" : "NUMA distance"};
    return why;
}

StreamShape shapeOf(const Device& device, const Parameters& parameters)
{
    return {threadsOn(device, parameters), parameters.number("occupancy"), double(parameters.integer("width"))};
}

/// How many bytes are on their way, and what Little's law lets them draw from the level that serves
/// most.
void explainFlight(Why& why, const Device& device, const BandwidthModel& model, const StreamShape& shape)
{
    const auto most =
        std::ranges::max_element(model.served, [](const ServedBy& a, const ServedBy& b) { return a.share < b.share; });
    if (most == model.served.end() || !most->level->latency.known())
        return;
    const double bytes = bytesInFlight(device, *most->level, shape);
    if (!std::isfinite(bytes) || bytes <= 0)
        return;
    why.terms.push_back(
        {"in flight", bytes, Unit::Byte,
         device.isGpu() ? "multiprocessors × warps × lanes × width × 4 loads" : "cores × bytes in flight of one core",
         device.isGpu() ? "launch" : device.basis});
    why.terms.push_back({"Little's law", littleBandwidth(bytes, most->level->latency.value), Unit::BytePerSecond,
                         fmt::format("bytes in flight / latency of {}", most->level->label),
                         most->level->latency.source});
}

Why bandwidthWhy(const Device& device, const BandwidthModel& model, Operation operation, const StreamShape& shape,
                 bool triad)
{
    const int threads = shape.threads;
    Why why;
    why.formula = triad ? "triad = 3 arrays in the time of a copy (2) and a read (1)"
                        : "1 / bandwidth = Σ share of a level / its bandwidth";
    why.with = fmt::format("= {} for {} {}", quantityText(model.bytesPerSecond, Unit::BytePerSecond), threads,
                           device.isGpu() ? "multiprocessors" : "threads");
    for (const ServedBy& one : model.served) {
        if (one.share < 5e-4)
            continue;
        why.terms.push_back({one.level->id, levelRate(device, *one.level, operation, threads), Unit::BytePerSecond,
                             fmt::format("{} serves {}", one.level->label, percentText(one.share)),
                             levelBandwidth(device, *one.level, operation).source});
    }
    explainFlight(why, device, model, shape);
    why.omits = {"random order (streams are sequential)", "other programs that use the memory"};
    return why;
}

Result<void> checkWidth(double bytes)
{
    if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16)
        return {};
    return fail("parameter.range", fmt::format("no load has {} bytes", bytes), "use 1, 2, 4, 8 or 16", "width");
}

/// What the streams of a GPU go over: with a launch of one's own choice they share the whole set,
/// and L1 takes no part.
double streamedBytes(const Device& device, double workingSet, const StreamShape& shape, bool triad)
{
    const MemoryLevel* first = device.level("L1");
    const bool chosen = triad || shape.warps > 0 || shape.wordBytes != 16;
    if (!device.isGpu() || !chosen || !first || !first->capacity.known())
        return workingSet;
    return std::max(workingSet, first->knee.end * first->capacity.value);
}

class Hierarchy final : public Experiment
{
public:
    Hierarchy();
    std::string id() const override { return "hierarchy"; }
    std::string title() const override { return "Hierarchy"; }
    std::string question() const override { return "What latency and bandwidth does each level of memory have?"; }
    std::string group() const override { return "hardware"; }
    std::string help() const override
    {
        return "A working set is served by the nearest level of memory that holds it. Latency is that of one random "
               "read that the next one waits for; bandwidth is that of streams. Between two levels the curve bends "
               "in a knee, whose place and width are measured, not derived. Left out: other tenants of a shared "
               "cache, NUMA, and the latency under load.";
    }
    const Schema& schema() const override { return m_schema; }
    ShortAnswer shortAnswer(const Device& device, const Parameters&, const Figures& figures) const override
    {
        return hierarchyAnswer(device, figures);
    }
    std::vector<SeriesSpec> series() const override
    {
        return {{"latency", "latency"},
                {"latency_huge", "huge pages"},
                {"latency_4k", "4 KiB pages"},
                {"latency_window", "few pages at a time"},
                {"bandwidth", "bandwidth"}};
    }
    Sweep axis(const Device& device, const Parameters& parameters) const override;
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override;
    std::vector<Claim> claims(const Device& device, const Parameters& parameters,
                              const Measurement& measured) const override;

private:
    Schema m_schema;
};

Hierarchy::Hierarchy()
{
    ParameterSpec pages =
        choiceSpec("pages", "pages",
                   "Size of the pages the working set lies in: a random read also needs the translation of its page's "
                   "address. A few at a time are read at random, and then the next, so that translation costs nothing. "
                   "GPUs: no effect.",
                   pageSizes.choices());
    pages.appliesTo = AppliesTo::Hosts;
    m_schema = {
        integerSpec("working_set", "working set", "How many bytes the program accesses again and again.",
                    {.least = 1024, .most = 0x1p44, .standard = "24MiB", .unit = Unit::Byte, .scale = Scale::Log2}),
        std::move(pages),
        choiceSpec(
            "operation", "operation", "The operation of the bandwidth's streams.",
            {{"read", "read", "loads only"},
             {"write", "write", "stores only"},
             {"copy", "copy", "loads and stores; both count"},
             {"triad", "triad",
              "a = b + 3 c: two arrays loaded, one stored; all three count, the fetch of the stored lines does not"}}),
        integerSpec(
            "threads", "threads",
            "CPU threads that stream for the bandwidth; 0 is all of them. Latency always takes one. A sweep shows "
            "Little's law: each core keeps a fixed number of bytes in flight, until the memory's bandwidth is reached.",
            {.most = 1024, .words = {{"0", "all", "every thread that the device has"}}, .appliesTo = AppliesTo::Hosts}),
        integerSpec("occupancy", "occupancy",
                    "Warps that stream on each multiprocessor of a GPU; 0 is as many as fit. A sweep shows Little's "
                    "law: bandwidth is at most bytes in flight / latency. CPUs: no effect, sweep threads.",
                    {.most = 64,
                     .suffix = "warps",
                     .words = {{"0", "as many as fit", "the most warps that a multiprocessor holds"}},
                     .appliesTo = AppliesTo::Gpus}),
        integerSpec("width", "width",
                    "Bytes that each GPU thread loads at a time: narrow loads keep fewer bytes in flight. CPUs: no "
                    "effect, they use their widest vectors.",
                    {.least = 1,
                     .most = 16,
                     .standard = "16",
                     .unit = Unit::Byte,
                     .scale = Scale::Log2,
                     .appliesTo = AppliesTo::Gpus}),
    };
}

Sweep Hierarchy::axis(const Device& device, const Parameters&) const
{
    // Far enough past the last cache to see memory, two points per doubling.
    const MemoryLevel* last = device.lastCache();
    const double beyond = last && last->capacity.known() ? 8 * last->capacity.value : 0x1p28;
    const double end = std::clamp(beyond, 0x1p26, 0x1p30);
    Sweep sweep{"working_set", {}};
    for (double bytes = 0x1p12; bytes <= end; bytes *= 2) {
        sweep.values.emplace_back(bytes);
        if (bytes * 1.5 <= end)
            sweep.values.emplace_back(bytes * 1.5);
    }
    return sweep;
}

Result<Figures> Hierarchy::predictPoint(const Device& device, const Parameters& parameters) const
{
    const double workingSet = parameters.number("working_set");
    const Pages pages = device.isGpu() ? Pages::Window : pageSizes.of(parameters.choice("pages"));
    const Operation operation = operationOf(parameters.choice("operation"));
    const bool triad = operation == Operation::Triad;
    const StreamShape shape = shapeOf(device, parameters);
    MEMSCAPE_CHECK(checkWidth(shape.wordBytes));
    const MemoryLevel* home = homeLevel(device, workingSet);
    if (!home) {
        return fail("predict.device", "no level of memory of this device has a known size",
                    "calibrate it, or choose a device of the catalogue", device.id);
    }
    const LatencyModel latency = latencyOf(device, workingSet, pages);
    const double streamed = streamedBytes(device, workingSet, shape, triad);
    const BandwidthModel bandwidth =
        triad ? triadOf(device, streamed, shape) : bandwidthOf(device, streamed, operation, shape);
    const auto variant = [&](Pages of) { return device.isGpu() ? nan : latencyOf(device, workingSet, of).seconds; };

    Why level;
    level.formula = "the level that serves most accesses";
    level.with = fmt::format("{} in {} ({})", bytesText(workingSet), home->label, bytesText(home->capacity.value));
    Figures figures{
        figureOf("level", "level", Unit::One, home->id, level),
        figureOf("latency", "latency", Unit::Second, latency.seconds, latencyWhy(device, latency)),
        figureOf(
            "cycles", "cycles", Unit::One, latency.seconds * device.clock.value,
            Why{"cycles = latency × clock",
                fmt::format("= {} × {}", secondsText(latency.seconds), quantityText(device.clock.value, Unit::Hertz)),
                {},
                device.clock.source,
                {}}),
        figureOf("bandwidth", "bandwidth", Unit::BytePerSecond, bandwidth.bytesPerSecond,
                 bandwidthWhy(device, bandwidth, triad ? Operation::Copy : operation, shape, triad)),
        {"latency_huge", "huge pages", Unit::Second, variant(Pages::Huge)},
        {"latency_4k", "4 KiB pages", Unit::Second, variant(Pages::Small)},
        {"latency_window", "few pages at a time", Unit::Second, variant(Pages::Window)},
        figureOf("peak_memory", "peak memory", Unit::Byte, workingSet,
                 Why{"peak memory = working set",
                     fmt::format("= {}", bytesText(workingSet)),
                     {},
                     {},
                     {"the program itself"}}),
    };
    return figures;
}

/// Of the largest measured working set that is inside of `level` and not of the one above it: between
/// twice that one's capacity and half of its own. Not a number without one.
double measuredLatency(const Device& device, const MemoryLevel& level, const Measurement& measured)
{
    const Series* curve = measured.findSeries("latency");
    double above = 0, found = std::nan("");
    for (const MemoryLevel& other : device.levels) {
        if (&other == &level)
            break;
        if (other.kind == LevelKind::Cache)
            above = std::max(above, other.capacity.valueOr(0));
    }
    const double most = level.kind == LevelKind::Dram ? HUGE_VAL : level.capacity.valueOr(0) / 2;
    const double least = level.kind == LevelKind::Dram ? 4 * above : 2 * above;
    for (std::size_t i = 0; curve && curve->x.key == "working_set" && i < curve->y.size(); ++i) {
        if (curve->x.values[i] >= least && curve->x.values[i] <= most && std::isfinite(curve->y[i]))
            found = curve->y[i];
    }
    return level.kind == LevelKind::Cache || level.kind == LevelKind::Dram ? found : std::nan("");
}

std::vector<Claim> Hierarchy::claims(const Device& device, const Parameters&, const Measurement& measured) const
{
    struct Quoted
    {
        std::string_view kind, level, id;
        double low, high;
    };
    // The notes' table of cycles; a level's latency on this device says whether it holds here.
    constexpr Quoted host[] = {{"host", "L1", "host-l1", 3.5, 5.5},
                               {"host", "L2", "host-l2", 8, 12.5},
                               {"host", "L3", "host-l3", 32, 50},
                               {"host", "DRAM", "host-ram", 80, 125},
                               {"host", "SSD", "host-ssd", 8000, 12500}};
    constexpr Quoted gpu[] = {{"gpu", "L1", "gpu-l1-cycles", 1, 10},
                              {"gpu", "L2", "gpu-l2-cycles", 10, 100},
                              {"gpu", "DRAM", "gpu-memory-cycles", 200, 800}};
    std::vector<Claim> made;
    const auto add = [&](const Quoted& quoted) {
        const MemoryLevel* level = device.level(quoted.level);
        if (!level || !device.clock.known())
            return;
        const double seen = measuredLatency(device, *level, measured);
        const double latency = std::isfinite(seen) ? seen : level->latency.valueOr(std::nan(""));
        if (!std::isfinite(latency))
            return;
        const double cycles = latency * device.clock.value;
        const bool holds = cycles >= quoted.low && cycles <= quoted.high;
        made.push_back(
            quotedClaim(quoted.id, holds ? "holds" : "does not hold",
                        fmt::format("{} here: {} cycles ({}{})", level->id,
                                    quantityText(cycles, Unit::One, ByteStyle::Binary, cycles < 1000 ? 3 : 4),
                                    secondsText(latency), std::isfinite(seen) ? ", measured" : "")));
    };
    if (device.isGpu())
        std::for_each(std::begin(gpu), std::end(gpu), add);
    else
        std::for_each(std::begin(host), std::end(host), add);
    return made;
}

} // namespace

const Experiment& hierarchyExperiment()
{
    static const Hierarchy experiment;
    return experiment;
}

} // namespace memscape
