// SPDX-License-Identifier: Apache-2.0
// bank-conflicts: when does shared memory serve one request of a warp piece by piece?
//
// Wavefronts are counted exactly over the lanes' addresses (core/access/banks.h). A multiprocessor's 32
// banks give 4 bytes each a cycle, so one wavefront, 128 bytes, takes a cycle:
//     cycles    = wavefronts                                     many warps ask
//     bandwidth = bytes that lanes access × clock / cycles
//     latency   = that without conflicts + wavefronts − 1        one warp asks
// Left out: see the omits of each figure.
#include "core/experiments/bank-conflicts/bank_conflicts.h"
#include "core/experiment/schema.h"

#include "core/access/random.h"
#include "core/experiments/common/answers.h"
#include "core/experiments/common/sources.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::uint32_t randomRows = 32;
constexpr std::uint64_t randomSeed = 1;

std::string numberOf(double value)
{
    return quantityText(value, Unit::One, ByteStyle::Binary, 4);
}

std::uint32_t whole(const Parameters& parameters, std::string_view key)
{
    return static_cast<std::uint32_t>(parameters.integer(key));
}

const ChoiceTable<std::uint32_t> widths{
    {1, {"1", "1 B (int8)", "four lanes share a word"}},
    {2, {"2", "2 B (float16)", "two lanes share a word"}},
    {4, {"4", "4 B (float32)", "a lane, a word, a bank"}},
    {8, {"8", "8 B (float2)", "half a warp at a time"}},
    {16, {"16", "16 B (float4)", "a quarter of a warp at a time; a row of ldmatrix"}}};

const ChoiceTable<BankPattern> patterns{
    {BankPattern::Strided, {"strided", "strided", "lane i takes element i × stride"}},
    {BankPattern::Row, {"row", "row of a tile", "tile[0][i]: neighbours"}},
    {BankPattern::Column,
     {"column", "column of a tile", "tile[i][0]: a row apart, as a transposition reads or writes"}},
    {BankPattern::Random, {"random", "random", "any element of 32 rows, one fixed draw, as a table look-up does"}}};

std::uint32_t widthOf(const Parameters& parameters)
{
    return widths.of(parameters.choice("width"));
}

std::uint32_t granuleOf(const Parameters& parameters)
{
    const std::string& swizzle = parameters.choice("swizzle");
    if (swizzle == "none")
        return 0;
    return swizzle == "xor16" ? 16 : std::max(widthOf(parameters), bankBytes);
}

/// Elements that the lanes access.
std::vector<std::uint32_t> elementsOf(const BankCase& request, std::uint32_t lanes)
{
    std::vector<std::uint32_t> elements;
    SplitMix64 random(randomSeed);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        elements.push_back(request.pattern == BankPattern::Random
                               ? static_cast<std::uint32_t>(random.below(randomRows * request.tile.columns))
                               : lane * request.stride);
    }
    return elements;
}

Why countWhy(const BankCase& request, const BankAccess& access)
{
    Why why;
    std::string degrees;
    for (const BankPhase& phase : access.phases)
        degrees += (degrees.empty() ? "" : " + ") + std::to_string(phase.degree);
    why.formula = "wavefronts = Σ degree over the phases, degree = most different words accessed in one bank";
    why.with = fmt::format("= {}{}", degrees, access.phases.size() > 1 ? fmt::format(" = {}", access.wavefronts) : "");
    why.terms = {
        {"phases", double(access.phases.size()), Unit::One,
         fmt::format("{} lanes of {} B share the 128 B of a wavefront", access.phases.front().lanes, access.width),
         access.isMerged ? "two at a time: pairs of lanes with equal addresses (compute capability 7.0 to 7.5)"
                         : "NVIDIA's forums: 8 bytes go by half warps, 16 by quarter warps"},
        {"lanes", double(request.elements.size()), Unit::One, "that take part", "the parameters"}};
    why.source = std::string(sharedMemoryGuide);
    why.omits = {"the order of the wavefronts, which is not documented",
                 "phases that later GPUs may merge when lanes access equal addresses"};
    return why;
}

Why degreeWhy(const BankAccess& access)
{
    Why why;
    why.formula = "degree = most different 4-byte words of one phase in one bank, bank = ⌊address / 4⌋ mod 32";
    const auto worst = std::ranges::max_element(
        access.phases, [](const BankPhase& a, const BankPhase& b) { return a.degree < b.degree; });
    why.with = fmt::format("lanes {} to {}: {}", worst->firstLane, worst->firstLane + worst->lanes - 1, worst->degree);
    why.source = std::string(sharedMemoryGuide);
    return why;
}

/// The stride of the rule of thumb. A column's is the row with its padding: what the rule is used for.
std::uint32_t ruleStride(const BankCase& request)
{
    return request.stride + (request.pattern == BankPattern::Column ? request.tile.padding : 0);
}

int phasesOf(const BankCase& request)
{
    const int together = lanesPerPhase(request.tile.width);
    return (int(request.elements.size()) + together - 1) / together;
}

Why gcdWhy(const BankCase& request)
{
    Why why;
    const std::uint32_t width = request.tile.width;
    why.formula = "phases × gcd(stride, 128 B / width)";
    why.with = fmt::format("= {} × gcd({}, {}) = {}", phasesOf(request), ruleStride(request), lanesPerPhase(width),
                           gcdWavefronts(request));
    why.source = "gcd(s, 32) of the textbooks, for 4-byte elements";
    why.omits = {"broadcasts: for stride 0 it gives 32, one wavefront serves all", "lanes that do not take part",
                 request.pattern == BankPattern::Column ? "the swizzle" : "padding between rows, and the swizzle"};
    return why;
}

std::vector<Term> timeTerms(const BankTime& time, const BankAccess& access)
{
    return {{"wavefronts", double(access.wavefronts), Unit::One, "of one request", "counted"},
            {"clock", time.clock.value, Unit::Hertz, "of a multiprocessor", time.clock.source},
            {"cycles per wavefront", time.cyclesPerWavefront, Unit::One, "a bank moves 32 bits a cycle",
             std::string(sharedMemoryGuide)}};
}

Figures predictedTimes(const BankCase& request, const BankAccess& access, const BankTime& time)
{
    Why cycles;
    cycles.formula = "cycles = wavefronts × cycles per wavefront, while many warps keep the banks busy";
    cycles.with =
        fmt::format("= {} × {} = {}", access.wavefronts, numberOf(time.cyclesPerWavefront), numberOf(time.cycles));
    cycles.terms = timeTerms(time, access);
    cycles.source = std::string(sharedMemoryGuide);
    cycles.omits = {"instructions between the requests", "L1 hits, which go through the same unit"};
    Why bandwidth = cycles;
    bandwidth.formula = "bandwidth = bytes the lanes access × clock / cycles, of one multiprocessor";
    bandwidth.with = fmt::format("= {} × {} / {} = {}", quantityText(request.usefulBytes(), Unit::Byte),
                                 quantityText(time.clock.value, Unit::Hertz), numberOf(time.cycles),
                                 quantityText(time.bandwidth, Unit::BytePerSecond));
    Figures figures{figureOf("cycles", "cycles / request", Unit::One, time.cycles, cycles),
                    figureOf("bandwidth", "bandwidth, one SM", Unit::BytePerSecond, time.bandwidth, bandwidth)};
    if (!std::isfinite(time.latencyCycles))
        return figures;
    Why latency;
    const double first = time.latency.value * time.clock.value;
    latency.formula = "latency = latency without conflicts + (wavefronts − 1) × cycles per wavefront";
    latency.with = fmt::format("= {} + {} × {} = {}", numberOf(first), access.wavefronts - 1,
                               numberOf(time.cyclesPerWavefront), numberOf(time.latencyCycles));
    latency.terms = timeTerms(time, access);
    latency.terms.push_back({"latency without conflicts", time.latency.value, Unit::Second,
                             "one dependent read of 4 bytes", time.latency.source});
    latency.source = time.latency.source;
    latency.omits = {"what a conflict costs beyond its wavefront: no source we found gives it for these GPUs"};
    figures.push_back(figureOf("latency_cycles", "cycles, lone warp", Unit::One, time.latencyCycles, latency));
    return figures;
}

class BankConflicts final : public Experiment
{
public:
    BankConflicts();
    std::string id() const override { return "bank-conflicts"; }
    std::string title() const override { return "Bank conflicts"; }
    std::string question() const override
    {
        return "When does shared memory make the lanes of a warp wait for each other?";
    }
    std::string group() const override { return "hardware"; }
    std::string help() const override
    {
        return "A multiprocessor's shared memory lies in 32 banks of 4 bytes. In one wavefront every bank gives one "
               "word; lanes that access different words of the same bank wait, lanes that access the same word are "
               "served together. Wavefronts are counted exactly for strides, rows and columns of a tile, with padding "
               "or an XOR swizzle, reads and writes of 1 to 16 bytes; a wavefront takes a cycle. Left out: "
               "instructions between the requests, and what NVIDIA does not document of the order. A CPU has no such "
               "banks: its prediction counts the wavefronts of a GPU's warp, and only a GPU can measure it.";
    }
    std::string notMeasuredOn(const Device& device) const override
    {
        if (device.framework)
            return Experiment::notMeasuredOn(device);
        if (device.isGpu())
            return {};
        return "A CPU has no shared memory in banks to measure. Choose a GPU: a live one to measure, or one of the "
               "catalogue to predict its cycles.";
    }
    const Schema& schema() const override { return m_schema; }
    ShortAnswer shortAnswer(const Device&, const Parameters&, const Figures& figures) const override
    {
        return bankConflictsAnswer(figures);
    }
    std::vector<SeriesSpec> series() const override
    {
        return {{"cycles", "cycles / request"},           {"wavefronts", "wavefronts"},
                {"gcd_wavefronts", "by gcd(stride, 32)"}, {"latency_cycles", "lone warp"},
                {"bandwidth", "bandwidth, one SM"},       {"degree", "degree"}};
    }
    Sweep axis(const Device& device, const Parameters& parameters) const override;
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override;
    Json predictDetail(const Device& device, const Parameters& parameters) const override;
    std::vector<Claim> claims(const Device& device, const Parameters& parameters,
                              const Measurement& measured) const override;
    Result<Prediction> predict(const Device& device, const Parameters& parameters,
                               PredictionContext& context) const override;

private:
    Schema m_schema;
};

BankConflicts::BankConflicts()
{
    m_schema = {
        choiceSpec("pattern", "pattern", "Which elements of the tile the lanes of a warp access.", patterns.choices()),
        integerSpec(
            "stride", "stride",
            "Elements between neighbouring lanes. Odd strides of 4-byte elements access no bank twice; 0 is the "
            "same element for all, a broadcast. Rows and columns set their own stride.",
            {.most = 128, .standard = "8", .suffix = "elements"}),
        choiceSpec(
            "width", "width",
            "Bytes that each lane reads or writes at once. Wider accesses are served in phases: 16 lanes of 8 bytes, "
            "8 lanes of 16.",
            widths.choices(), "4"),
        integerSpec("columns", "row length", "Elements of one row of the tile: float tile[32][row length].",
                    {.least = 1, .most = 1024, .standard = "32", .scale = Scale::Log2, .suffix = "elements"}),
        integerSpec("padding", "padding",
                    "Unused elements behind each row: float tile[32][row length + padding]. One shifts every row "
                    "by a bank.",
                    {.most = 64, .suffix = "elements"}),
        choiceSpec(
            "swizzle", "swizzle",
            "Exchange the elements of each row by an XOR with the row's number: no conflicts, and no extra memory.",
            {{"none", "none", "elements lie in order"},
             {"xor", "XOR", "element c of row r lies at c ^ r, within 128 bytes"},
             {"xor16", "XOR, 16-byte chunks", "chunks of 16 bytes, as kernels with ldmatrix need them"}}),
        choiceSpec("operation", "operation", "Whether the lanes read or write.",
                   {{"read", "read", "loads; lanes that access the same word are served together"},
                    {"write", "write", "stores; of lanes that write the same word one wins"}}),
        integerSpec("lanes", "lanes", "Lanes of the warp that take part, from the first on.",
                    {.most = 64, .words = {{"0", "all", "every lane: 32, or 64 of an AMD GPU"}}}),
    };
}

/// Strides draw the comb of the textbooks; a tile asks how much padding it takes.
Sweep BankConflicts::axis(const Device&, const Parameters& parameters) const
{
    Sweep sweep{patterns.of(parameters.choice("pattern")) == BankPattern::Strided ? "stride" : "padding", {}};
    const int last = sweep.key == "stride" ? 64 : 16;
    for (int value = 0; value <= last; ++value)
        sweep.values.emplace_back(double(value));
    return sweep;
}

Result<Figures> BankConflicts::predictPoint(const Device& device, const Parameters& parameters) const
{
    MEMSCAPE_TRY(request, bankCase(device, parameters));
    MEMSCAPE_TRY(access, bankAccess(device, request));
    Figures times;
    if (const auto time = bankTime(device, request, access))
        times = predictedTimes(request, access, *time);
    return bankFigures(request, access, std::move(times));
}

Json BankConflicts::predictDetail(const Device& device, const Parameters& parameters) const
{
    Parameters own = parameters;
    own.setSweep({});
    const auto request = bankCase(device, own);
    const auto access = request ? bankAccess(device, *request) : tl::unexpected(request.error());
    return access ? bankDetail(device, *request, *access) : Json::object();
}

std::vector<Claim> BankConflicts::claims(const Device& device, const Parameters& parameters,
                                         const Measurement& measured) const
{
    Parameters own = parameters;
    own.setSweep({});
    const auto request = bankCase(device, own);
    const auto access = request ? bankAccess(device, *request) : tl::unexpected(request.error());
    return access ? bankClaims(device, *request, *access, measured) : std::vector<Claim>();
}

/// Cycles, wavefronts and the rule of thumb are counts per request: they share an axis.
Result<Prediction> BankConflicts::predict(const Device& device, const Parameters& parameters,
                                          PredictionContext& context) const
{
    MEMSCAPE_TRY(prediction, Experiment::predict(device, parameters, context));
    for (Series& series : prediction.series) {
        if (series.key == "cycles" || series.key == "wavefronts" || series.key == "gcd_wavefronts")
            series.yLabel = device.isGpu() ? "cycles / request" : "wavefronts / request";
    }
    return prediction;
}

} // namespace

const std::string& patternKey(BankPattern pattern)
{
    return patterns.keyOf(pattern);
}

std::vector<std::uint32_t> BankCase::addresses() const
{
    std::vector<std::uint32_t> addresses;
    for (const std::uint32_t element : elements)
        addresses.push_back(addressIn(tile, element));
    return addresses;
}

Result<BankCase> bankCase(const Device& device, const Parameters& parameters)
{
    BankCase request;
    request.pattern = patterns.of(parameters.choice("pattern"));
    request.isWrite = parameters.choice("operation") == "write";
    MEMSCAPE_TRY(tile,
                 sharedTile(widthOf(parameters), whole(parameters, "columns"), whole(parameters, "padding"),
                            granuleOf(parameters)));
    request.tile = tile;
    request.stride = request.pattern == BankPattern::Strided ? whole(parameters, "stride")
        : request.pattern == BankPattern::Column             ? tile.columns
        : request.pattern == BankPattern::Row                ? 1
                                                             : 0;
    const std::uint32_t warp = device.isGpu() ? static_cast<std::uint32_t>(device.warp) : 32;
    const std::uint32_t lanes = whole(parameters, "lanes");
    if (lanes > warp)
        return fail("banks.lanes", fmt::format("{} lanes, but a warp of {} has {}", lanes, device.name, warp),
                    fmt::format("choose 1 to {}, or 0 for all", warp), "lanes");
    request.elements = elementsOf(request, lanes == 0 ? warp : lanes);
    request.rows = *std::ranges::max_element(request.elements) / tile.columns + 1;
    const MemoryLevel* shared = device.level("shared");
    if (shared && shared->capacity.known() && request.tileBytes() > shared->capacity.value)
        return fail("banks.capacity",
                    fmt::format("the lanes reach over {}, the shared memory of one multiprocessor of {} holds {}",
                                quantityText(request.tileBytes(), Unit::Byte), device.name,
                                quantityText(shared->capacity.value, Unit::Byte)),
                    "choose a smaller stride, row length or width");
    return request;
}

Result<BankAccess> bankAccess(const Device& device, const BankCase& request)
{
    const double capability = parseNumber(device.computeCapability).value_or(0);
    const bool merges = capability >= 7.0 && capability <= 7.5 && !request.isWrite;
    return resolveBanks(request.addresses(), request.tile.width,
                        merges ? PhaseMerging::EqualPairs : PhaseMerging::Never);
}

bool hasLatency(const BankCase& request)
{
    return !request.isWrite && request.tile.width >= bankBytes;
}

std::optional<BankTime> bankTime(const Device& device, const BankCase& request, const BankAccess& access)
{
    const MemoryLevel* shared = device.level("shared");
    if (!device.isGpu() || !shared || !device.clock.known())
        return std::nullopt;
    BankTime time;
    time.clock = device.clock;
    time.latency = shared->latency;
    time.cycles = access.wavefronts * time.cyclesPerWavefront;
    time.bandwidth = request.usefulBytes() * time.clock.value / time.cycles;
    time.latencyCycles = std::numeric_limits<double>::quiet_NaN();
    if (hasLatency(request) && shared->latency.known())
        time.latencyCycles =
            shared->latency.value * time.clock.value + (access.wavefronts - 1) * time.cyclesPerWavefront;
    return time;
}

int gcdWavefronts(const BankCase& request)
{
    // Several elements below 4 bytes share a word: the rule is for words.
    if (request.pattern == BankPattern::Random || request.tile.width < bankBytes)
        return 0;
    return phasesOf(request) * gcdDegree(ruleStride(request), request.tile.width);
}

Figures bankFigures(const BankCase& request, const BankAccess& access, Figures times)
{
    Figures figures{
        figureOf("degree", "degree", Unit::One, double(access.degree), degreeWhy(access)),
        figureOf("wavefronts", "wavefronts", Unit::One, double(access.wavefronts), countWhy(request, access))};
    for (Figure& figure : times)
        figures.push_back(std::move(figure));
    Why conflicts;
    conflicts.formula = "conflicts = wavefronts − phases, as profilers count them";
    conflicts.with = fmt::format("= {} − {} = {}", access.wavefronts, access.phases.size(), access.conflicts());
    conflicts.source = "Nsight Compute, l1tex__data_bank_conflicts_pipe_lsu_mem_shared";
    figures.push_back(figureOf("conflicts", "bank conflicts", Unit::One, double(access.conflicts()), conflicts));
    if (const int rule = gcdWavefronts(request); rule > 0)
        figures.push_back(figureOf("gcd_wavefronts", "by gcd(stride, 32)", Unit::One, double(rule), gcdWhy(request)));
    Why bytes;
    bytes.formula = "tile = rows × (row length + padding) × width";
    bytes.with = fmt::format("= {} × ({} + {}) × {} B = {}", request.rows, request.tile.columns, request.tile.padding,
                             request.tile.width, quantityText(request.tileBytes(), Unit::Byte));
    bytes.omits = {"other arrays of the block"};
    figures.push_back(figureOf("tile_bytes", "tile", Unit::Byte, double(request.tileBytes()), bytes));
    markCounted(figures, {"degree", "wavefronts", "conflicts", "gcd_wavefronts", "tile_bytes"});
    return figures;
}

const Experiment& bankConflictsExperiment()
{
    static const BankConflicts experiment;
    return experiment;
}

} // namespace memscape
