// SPDX-License-Identifier: Apache-2.0
// stride: what does it cost when neighbours in the program are not neighbours in memory?
//
// Memory moves in granules: 32-byte sectors on GPUs, 64-byte lines on hosts. A pattern that uses part
// of each granule transfers all of it:
//     useful bandwidth = moved bandwidth × used bytes / moved bytes
// Which granules one request of 32 neighbouring accesses touches is counted exactly (core/access);
// what the memory gives is the device's own rate (core/timing/stride_time.h).
// Left out: see the omits of each figure.
#include "core/experiments/stride/stride.h"
#include "core/claims/claim_quotes.h"
#include "core/experiment/schema.h"
#include "core/experiments/common/answers.h"
#include "core/experiments/common/judged_number.h"
#include "core/experiments/common/sources.h"

#include "core/timing/stride_time.h"

#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

const ChoiceTable<Pattern> walkPatterns{
    {Pattern::Contiguous, {"contiguous", "contiguous", "every element in order"}},
    {Pattern::Strided, {"strided", "strided", "every stride-th element"}},
    {Pattern::Random, {"random", "random", "uniformly drawn elements, one per 64 bytes of the array"}},
    {Pattern::Misaligned,
     {"misaligned", "misaligned", "every element in order, beginning `offset` bytes into the array"}},
    {Pattern::Aos, {"aos", "array of structures", "one field of structures of `stride` fields"}},
    {Pattern::Soa, {"soa", "structure of arrays", "the same field, stored contiguously"}}};

/// Bytes of one element.
const ChoiceTable<std::uint64_t> elements{{1, {"int8", "int8 (1 B)", "one byte"}},
                                          {2, {"float16", "float16 (2 B)", "half precision"}},
                                          {4, {"float32", "float32 (4 B)", "single precision"}},
                                          {8, {"float64", "float64 (8 B)", "double precision"}},
                                          {16, {"float4", "float4 (16 B)", "four float32 loaded at once"}}};

GranuleSizes granulesOf(const Device& device)
{
    // Hosts have no sectors; 32 bytes are counted all the same, to compare with a GPU.
    return {static_cast<std::uint64_t>(device.isGpu() ? device.sectorBytes : 32),
            static_cast<std::uint64_t>(device.lineBytes)};
}

std::vector<std::string> omitsOf(const Device& device)
{
    if (device.isGpu())
        return {"DRAM's own granularity where it is larger than a sector",
                "sectors written in part, which some memories read first", "other work on the GPU"};
    return {"lines that prefetchers fetch in vain, except as calibrated", "page walks, except as calibrated",
            "other programs that use the memory"};
}

Why bandwidthWhy(const Device& device, const StrideCase& walk, const StrideTime& time)
{
    Why why;
    const double useful = walk.usefulBytes();
    why.formula = "useful bandwidth = bytes accessed / time";
    why.with = fmt::format("= {} / {} = {}", bytesText(useful), secondsText(time.seconds),
                           quantityText(useful / time.seconds, Unit::BytePerSecond));
    why.terms = {
        {"accessed", useful, Unit::Byte, "elements touched × element size, both ways for a copy", "the parameters"},
        {"time", time.seconds, Unit::Second, fmt::format("limited by: {}", limitText(time.limit)), "see time"}};
    why.source = time.rateSource;
    why.omits = omitsOf(device);
    return why;
}

Why timeWhy(const Device& device, const StrideCase& walk, const StrideTime& time)
{
    Why why;
    if (device.isGpu()) {
        why.formula = "time = launch + moved bytes / memory rate";
        why.with = fmt::format("= {} + {} / {} = {}", secondsText(device.launch.valueOr(0)), bytesText(time.movedBytes),
                               quantityText(time.memoryRate, Unit::BytePerSecond), secondsText(time.seconds));
        why.terms = {{"moved", time.movedBytes, Unit::Byte, "requests × sectors × 32 B", std::string(coalescingGuide)},
                     {"memory rate", time.memoryRate, Unit::BytePerSecond,
                      time.limit == StrideLimit::Latency ? "bytes in flight / latency (Little's law)"
                                                         : "the bandwidth of DRAM for this operation",
                      time.rateSource},
                     {"launch", device.launch.valueOr(0), Unit::Second, "one kernel start", device.launch.source}};
    } else {
        const double lineCount = time.seconds * (time.limit == StrideLimit::Memory ? time.memoryRate : 0);
        why.formula = "time = max(lines / line rate, accesses / issue rate)";
        why.with = time.limit == StrideLimit::Memory
            ? fmt::format("= {} lines / {} lines per s = {}",
                          quantityText(std::round(lineCount), Unit::One, ByteStyle::Binary, 4),
                          quantityText(time.memoryRate, Unit::One, ByteStyle::Binary, 4), secondsText(time.seconds))
            : fmt::format("= {} accesses / {} per s = {}", double(walk.accesses),
                          quantityText(time.issueRate, Unit::One, ByteStyle::Binary, 4), secondsText(time.seconds));
        why.terms = {
            {"line rate", time.memoryRate, Unit::One, "lines per second of memory at this stride", time.rateSource},
            {"issue rate", time.issueRate, Unit::One, "accesses per second that the cores start",
             device.calibration ? "calibrated on this machine"
                                : "one element per cycle, or L1 bandwidth for neighbours"}};
    }
    why.source = time.rateSource;
    why.omits = omitsOf(device);
    return why;
}

/// What a processor's own counter says of one pass, where there is one.
Result<Figure> linesRead(const Device& device, const StrideCase& walk)
{
    MEMSCAPE_TRY(footprint, hostFootprint(walk, {static_cast<std::uint64_t>(device.lineBytes), 4096}));
    const MemoryLevel* l1 = device.level("L1");
    const double holds = l1 ? l1->capacity.valueOr(0) * walk.threadsOn(device) : 0;
    const bool stays = !walk.cold && footprint.movedBytes <= holds;
    Why why;
    // A random walk comes back to lines that L1 has lost meanwhile.
    const double lines = walk.pattern == Pattern::Random ? footprint.lineVisits : footprint.lines;
    why.formula = "lines read into L1 = lines of one pass; none where the pass before left them in L1";
    why.with = stays ? fmt::format("{} of lines stay in {} of L1", bytesText(footprint.movedBytes), bytesText(holds))
                     : fmt::format("= {}", countText(std::round(lines)));
    why.source = "counted by the access model";
    why.omits = {"lines that prefetchers fetch in vain", "lines of the page tables",
                 "a part that stays in L1 where not all does"};
    return figureOf("lines_read", "lines read into L1", Unit::One, stays ? 0 : lines, std::move(why));
}

class Stride final : public Experiment
{
public:
    Stride();
    std::string id() const override { return "stride"; }
    std::string title() const override { return "Access patterns"; }
    std::string question() const override
    {
        return "How many bytes are moved when consecutive accesses are not adjacent in memory?";
    }
    std::string group() const override { return "hardware"; }
    std::string help() const override
    {
        return "Memory moves in granules: 32-byte sectors on a GPU, 64-byte lines on a CPU. A pattern that uses part "
               "of each granule moves all of it. The model counts the granules exactly and "
               "divides by the memory's rate; it leaves out other programs, unused prefetched lines and "
               "page walks, except where a calibration measured them.";
    }
    const Schema& schema() const override { return m_schema; }
    std::vector<std::string> headlines() const override
    {
        return {"efficiency", "useful_bandwidth", "moved_bandwidth", "time"};
    }
    ShortAnswer shortAnswer(const Device&, const Parameters&, const Figures& figures) const override
    {
        return strideAnswer(figures);
    }
    std::vector<SeriesSpec> series() const override
    {
        return {{"useful_bandwidth", "useful bandwidth"},
                {"moved_bandwidth", "moved bandwidth"},
                {"efficiency", "efficiency"},
                {"sectors_per_request", "sectors / request"},
                {"time", "time"}};
    }
    Sweep axis(const Device& device, const Parameters& parameters) const override;
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override;
    std::vector<Claim> claims(const Device& device, const Parameters& parameters,
                              const Measurement& measured) const override;

private:
    Schema m_schema;
};

Stride::Stride()
{
    m_schema = {
        integerSpec("stride", "stride",
                    "Distance between the elements that neighbouring lanes (or iterations) touch. 1 is contiguous, 0 "
                    "is the same element for all. For array-of-structures patterns it is the number of fields.",
                    {.most = 1048576, .standard = "4", .scale = Scale::Log2, .suffix = "elements"}),
        choiceSpec("element", "element", "Type of one element: the bytes of each access.", elements.choices(),
                   "float32"),
        choiceSpec("pattern", "pattern", "Which elements are touched, in which order.", walkPatterns.choices(),
                   "strided"),
        choiceSpec("operation", "operation", "Read, write, or copy from one array to another in the same pattern.",
                   {{"read", "read", "loads only"},
                    {"write", "write", "stores only"},
                    {"copy", "copy", "loads from one array, stores to another; both count as useful"}}),
        integerSpec(
            "bytes", "array",
            "Size of the array. Larger than the last cache, or the caches serve the accesses instead of memory.",
            {.least = 4096, .most = 0x1p40, .standard = "256MiB", .unit = Unit::Byte, .scale = Scale::Log2}),
        integerSpec("offset", "offset", "Bytes between the start of the array and the first element.",
                    {.most = 4095, .unit = Unit::Byte}),
        integerSpec(
            "threads", "threads", "CPU threads that share the walk; 0 is all of them. GPUs use every multiprocessor.",
            {.most = 1024, .words = {{"0", "all", "every thread that the device has"}}, .appliesTo = AppliesTo::Hosts}),
        choiceSpec("cache", "caches", "Cold: flushed before every pass. Warm: data of the pass before is still cached.",
                   {{"cold", "cold", "every pass begins with caches that hold other data"},
                    {"warm", "warm", "passes follow each other"}}),
    };
}

Sweep Stride::axis(const Device&, const Parameters& parameters) const
{
    const auto sweep = [](std::string key, std::initializer_list<double> values) {
        return Sweep{std::move(key), {values.begin(), values.end()}};
    };
    switch (walkPatterns.of(parameters.choice("pattern"))) {
    case Pattern::Contiguous:
    case Pattern::Random: return sweep("bytes", {0x1p16, 0x1p18, 0x1p20, 0x1p22, 0x1p24, 0x1p26, 0x1p28});
    case Pattern::Misaligned: return sweep("offset", {0, 4, 8, 16, 24, 32, 48, 64});
    case Pattern::Strided:
    case Pattern::Aos:
    case Pattern::Soa: break;
    }
    return sweep("stride", {1, 2, 4, 8, 16, 32, 64, 128});
}

Result<Figures> Stride::predictPoint(const Device& device, const Parameters& parameters) const
{
    MEMSCAPE_TRY(walk, strideCase(parameters));
    MEMSCAPE_TRY(figures, stridedCountFigures(device, walk));
    MEMSCAPE_TRY(time, strideTime(device, walk));
    const double useful = walk.usefulBytes() / time.seconds;
    const double moved = time.movedBytes / time.seconds;
    figures.push_back(figureOf("useful_bandwidth", "useful bandwidth", Unit::BytePerSecond, useful,
                               bandwidthWhy(device, walk, time)));
    Why movedWhy = timeWhy(device, walk, time);
    movedWhy.formula = "moved bandwidth = moved bytes / time";
    movedWhy.with = fmt::format("= {} / {} = {}", bytesText(time.movedBytes), secondsText(time.seconds),
                                quantityText(moved, Unit::BytePerSecond));
    figures.push_back(figureOf("moved_bandwidth", "moved bandwidth", Unit::BytePerSecond, moved, movedWhy));
    figures.push_back(figureOf("time", "time", Unit::Second, time.seconds, timeWhy(device, walk, time)));
    if (!device.isGpu() && walk.operation == Operation::Read) {
        MEMSCAPE_TRY(lines, linesRead(device, walk));
        figures.push_back(std::move(lines));
    }
    Why memory;
    memory.formula = "peak memory = arrays × bytes";
    memory.with =
        fmt::format("= {} × {} = {}", walk.arrays(), bytesText(double(walk.arrayBytes)), bytesText(walk.memoryBytes()));
    memory.omits = {"the program itself"};
    figures.push_back(figureOf("peak_memory", "peak memory", Unit::Byte, walk.memoryBytes(), memory));
    return figures;
}

std::vector<Claim> Stride::claims(const Device& device, const Parameters& parameters, const Measurement& measured) const
{
    std::vector<Claim> made;
    const auto walk = strideCase(parameters);
    if (!walk)
        return made;
    const auto time = strideTime(device, *walk);
    const MemoryLevel* dram = device.dram();
    if (!time || !dram)
        return made;
    const double theory = dram->bandwidth.value;
    const JudgedNumber useful = judgedNumber(measured, "useful_bandwidth", walk->usefulBytes() / time->seconds);
    const double formula = theory * walk->usefulBytes() / time->movedBytes;
    const double ratio = useful.value / formula;
    made.push_back(quotedClaim(
        "effective-bandwidth",
        std::fabs(ratio - 1) < 0.1 ? "holds here"
            : ratio > 1
            ? "does not hold here: a cache gives more than the memory's bandwidth"
            : "does not hold here: the core, the latency or what streams reach of the datasheet is the limit",
        fmt::format("the formula gives {}, {} {}", quantityText(formula, Unit::BytePerSecond), useful.side(),
                    quantityText(useful.value, Unit::BytePerSecond))));
    return made;
}

} // namespace

Result<StrideCase> strideCase(const Parameters& parameters)
{
    StrideCase walk;
    walk.pattern = walkPatterns.of(parameters.choice("pattern"));
    walk.operation = operationOf(parameters.choice("operation"));
    walk.elementBytes = elements.of(parameters.choice("element"));
    walk.stride = static_cast<std::uint64_t>(parameters.integer("stride"));
    walk.offsetBytes = static_cast<std::uint64_t>(parameters.integer("offset"));
    walk.arrayBytes = static_cast<std::uint64_t>(parameters.integer("bytes"));
    walk.threads = static_cast<int>(parameters.integer("threads"));
    walk.cold = parameters.choice("cache") == "cold";
    return completed(walk);
}

Result<Figures> stridedCountFigures(const Device& device, const StrideCase& walk)
{
    MEMSCAPE_TRY(counts, requestCounts(walk, granulesOf(device)));
    double used = counts.usedBytes, fetched = counts.fetchedBytes;
    std::string granule = "sectors × 32 B, of one request";
    if (!device.isGpu()) {
        MEMSCAPE_TRY(footprint, hostFootprint(walk, {static_cast<std::uint64_t>(device.lineBytes), 4096}));
        used = footprint.usedBytes;
        fetched = footprint.movedBytes;
        granule = fmt::format("lines × {} B, of one pass", device.lineBytes);
    }
    Why sectors;
    sectors.formula = "sectors = distinct ⌊byte address / 32⌋ over the bytes of 32 lanes";
    sectors.with =
        fmt::format("stride {} × {} B, offset {} B: {}", walk.pitchBytes / walk.elementBytes, walk.elementBytes,
                    walk.offsetBytes, quantityText(counts.sectors, Unit::One, ByteStyle::Binary, 4));
    sectors.source = coalescingGuide;
    if (!device.isGpu())
        sectors.omits = {"a CPU has no sectors: this is what a GPU's warp would access, shown to compare"};
    Why lines = sectors;
    lines.formula = fmt::format("lines = distinct ⌊byte address / {}⌋ over the bytes of 32 accesses", device.lineBytes);
    lines.with = fmt::format("= {}", quantityText(counts.lines, Unit::One, ByteStyle::Binary, 4));
    lines.omits = {};
    Why efficiency;
    efficiency.formula = "efficiency = distinct bytes used / bytes fetched";
    efficiency.with =
        fmt::format("= {} / {} = {}", bytesText(used), bytesText(fetched), percentText(used / fetched, 3));
    efficiency.terms = {{"used", used, Unit::Byte, "distinct bytes that some access used", "counted"},
                        {"fetched", fetched, Unit::Byte, granule, "counted"}};
    efficiency.source = coalescingGuide;
    return Figures{
        {"sectors_per_request", "sectors / request", Unit::One, counts.sectors, {}, {}, sectors, true},
        {"lines_per_request", "lines / request", Unit::One, counts.lines, {}, {}, lines, true},
        {"efficiency", "efficiency", Unit::One, used / fetched, {}, {}, efficiency, true},
    };
}

const Experiment& strideExperiment()
{
    static const Stride experiment;
    return experiment;
}

} // namespace memscape
