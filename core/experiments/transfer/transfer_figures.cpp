// SPDX-License-Identifier: Apache-2.0
// The figures of a transfer with their reasons, and the ways that its picture compares:
//     naive       in one piece, on a GPU from pageable memory, on a host into fresh pages
//     one piece   the kind that was asked for
//     chunked     in chunks, one after the other
//     overlapped  as asked; in one piece, with the model's best chunk and two buffers
#include "core/experiments/common/explain.h"
#include "core/experiments/common/hidden_time.h"
#include "core/experiments/transfer/transfer.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr std::size_t mostPieces = 256; ///< of a way that is drawn

Term latencyTerm(const TransferModel& model)
{
    return {"α", model.latency, Unit::Second, model.rule, model.source};
}

Term bandwidthTerm(const TransferModel& model)
{
    return {"β", model.bandwidth, Unit::BytePerSecond, "one direction", model.source};
}

/// γ, where bytes come in pieces.
void addPieceTerm(Why& why, const TransferModel& model)
{
    for (const TransferLane& lane : model.lanes) {
        if (lane.perPiece > 0) {
            why.terms.push_back({"γ", lane.perPiece, Unit::Second,
                                 "of each filling of the pipe after the first: the other process is woken",
                                 model.source});
            return;
        }
    }
}

std::string lanesText(const TransferModel& model)
{
    std::string sum;
    for (const LaneTime& lane : model.times())
        sum += (sum.empty() ? "" : " + ") + secondsText(lane.chunk);
    return sum;
}

Why timeWhy(const TransferModel& model)
{
    const TransferCase& asked = model.asked;
    Why why;
    const std::uint64_t chunks = asked.chunks();
    double slowest = 0;
    for (const LaneTime& lane : model.times())
        slowest = std::max(slowest, lane.chunk);
    if (model.isFused) {
        why.formula = "time = launch + max(bytes / β, work)";
        why.with = fmt::format("= {} + {} = {}", secondsText(model.latency),
                               secondsText(model.seconds() - model.latency), secondsText(model.seconds()));
    } else if (chunks == 1 || asked.depth == 1) {
        why.formula = chunks == 1 ? "time = Σ lanes" : "time = chunks × Σ lanes";
        why.with = fmt::format("= {}{}({}) = {}", chunks == 1 ? "" : countText(double(chunks)),
                               chunks == 1 ? "" : " × ", lanesText(model), secondsText(model.seconds()));
    } else {
        why.formula = "time = Σ lanes of a chunk + (chunks − 1) × slowest lane";
        why.with = fmt::format("= ({}) + {} × {} = {}", lanesText(model), countText(double(chunks - 1)),
                               secondsText(slowest), secondsText(model.seconds()));
    }
    why.terms = {latencyTerm(model), bandwidthTerm(model)};
    for (const TransferLane& lane : model.lanes) {
        if (lane.isKernel)
            why.terms.push_back({"kernel", 1 / lane.perByte, Unit::BytePerSecond,
                                 fmt::format("the slower of memory and {} FLOP/B, after {} to start",
                                             numberText(asked.work), secondsText(lane.fixed)),
                                 "roofline"});
    }
    const std::uint64_t best = bestChunk(model);
    if (best < asked.bytes)
        why.terms.push_back({"best chunk", double(best), Unit::Byte,
                             "√(bytes × the slowest lane's fixed cost / the other lanes' time of a byte)", "model"});
    why.source = "pipeline of chunks; exact for lanes that do not disturb each other";
    if (chunks > 1 && asked.lastChunk() != asked.chunk)
        why.omits.push_back("the formula counts the last chunk whole; the number does not");
    if (asked.depth > 1 && model.lanes.size() > std::size_t(asked.depth))
        why.omits.push_back("fewer buffers than lanes: a chunk also waits for its buffer, which the number counts");
    if (!asked.serial.empty() && model.lanes.size() > 1)
        why.omits.push_back(asked.serial);
    why.omits.push_back("lanes that slow each other down; other traffic");
    return why;
}

Why copyWhy(const TransferModel& model)
{
    const TransferCase& asked = model.asked;
    const int ways = asked.goesIn() + asked.goesOut();
    Why why;
    const double inPieces =
        model.copySeconds() / ways - double(asked.chunks()) * model.latency - double(asked.bytes) / model.bandwidth;
    const bool hasPieces = std::ranges::any_of(model.lanes, [](const TransferLane& one) { return one.perPiece > 0; });
    why.formula = hasPieces ? "copies = directions × (chunks × α + fillings × γ + bytes / β)"
                            : "copies = directions × (chunks × α + bytes / β)";
    why.with = fmt::format("= {} × ({} × {} + {}{} / {}) = {}", ways, countText(double(asked.chunks())),
                           secondsText(model.latency), hasPieces ? secondsText(inPieces) + " + " : "",
                           bytesText(double(asked.bytes)), quantityText(model.bandwidth, Unit::BytePerSecond),
                           secondsText(model.copySeconds()));
    why.terms = {latencyTerm(model), bandwidthTerm(model)};
    addPieceTerm(why, model);
    why.source = model.source;
    return why;
}

Why kernelWhy(const TransferModel& model)
{
    Why why;
    why.formula = "kernel = chunks × start + bytes × max(1 / memory rate, work / FP32 rate)";
    why.with = "= " + secondsText(model.kernelSeconds());
    why.source = "roofline";
    why.omits = {"alone: what its lines cost when another core has just written them is a part of the time",
                 "a last wave of blocks that is not full"};
    return why;
}

Why simpleWhy(std::string formula, std::string with, const TransferModel& model, std::vector<std::string> omits = {})
{
    Why why;
    why.formula = std::move(formula);
    why.with = std::move(with);
    why.terms = {latencyTerm(model), bandwidthTerm(model)};
    why.source = model.source;
    why.omits = std::move(omits);
    return why;
}

void explainTransfer(Figures& figures, const TransferModel& model)
{
    const TransferCase& asked = model.asked;
    const double copy = model.copySeconds(), kernel = model.kernelSeconds();
    explain(figures, "time", timeWhy(model));
    explain(figures, "copy_time", copyWhy(model));
    explain(figures, "kernel_time", kernelWhy(model));
    explain(figures, "bandwidth",
            simpleWhy("bandwidth = bytes moved / copies",
                      fmt::format("= {} / {}", bytesText(asked.moved()), secondsText(copy)), model));
    explain(figures, "latency",
            simpleWhy("α: what a transfer of no bytes takes", "= " + secondsText(model.latency), model));
    explain(figures, "half_size",
            simpleWhy("half of β is reached where α = n/β: n = α β",
                      fmt::format("= {} × {} = {}", secondsText(model.latency),
                                  quantityText(model.bandwidth, Unit::BytePerSecond),
                                  bytesText(model.latency * model.bandwidth)),
                      model));
    explain(
        figures, "hidden_time",
        simpleWhy("hidden = max(0, copies + kernel − time)",
                  fmt::format("= {} + {} − {}", secondsText(copy), secondsText(kernel), secondsText(model.seconds())),
                  model, {hiddenFromZero}));
    Why chunks;
    chunks.formula = "chunks = ⌈bytes / chunk⌉";
    chunks.with = fmt::format("= ⌈{} / {}⌉", bytesText(double(asked.bytes)), bytesText(double(asked.chunk)));
    chunks.source = "counted";
    explain(figures, "chunks", chunks);
}

Json wayJson(const std::string& key, const std::string& label, const TransferModel& model)
{
    Json lanes = Json::array(), pieces = Json::array();
    for (const TransferLane& lane : model.lanes)
        lanes.push_back(lane.name);
    if (model.isFused) { // one kernel: both lanes from its start to its end
        for (std::size_t lane = 0; lane < model.lanes.size(); ++lane) {
            const double end = model.latency + double(model.asked.bytes) * model.lanes[lane].perByte;
            pieces.push_back({lane, 0, 0, model.latency, jsonNumber(end)});
        }
    } else {
        for (const LanePiece& piece :
             pipelinePieces(model.times(), model.asked.chunks(), model.asked.depth, mostPieces))
            pieces.push_back({piece.lane, piece.first, piece.last, jsonNumber(piece.begin), jsonNumber(piece.end)});
    }
    return {{"key", key},
            {"label", label},
            {"time", jsonNumber(model.seconds())},
            {"chunk", model.asked.chunk},
            {"chunks", model.asked.chunks()},
            {"depth", model.asked.depth},
            {"hidden", jsonNumber(hiddenSeconds(model.copySeconds() + model.kernelSeconds(), model.seconds()))},
            {"fixed", jsonNumber(model.lanes.front().fixed)},
            {"per_byte", jsonNumber(model.lanes.front().perByte)},
            {"lanes", std::move(lanes)},
            {"pieces", std::move(pieces)}};
}

/// The model of the same bytes in another way; none where the device does not know it.
void addWay(Json& ways, const Device& device, const std::string& key, const std::string& label, TransferCase asked)
{
    if (const auto model = transferModel(device, asked))
        ways.push_back(wayJson(key, label, *model));
}

} // namespace

double measuredHalfSize(const TransferCase& asked, const TransferNumbers& numbers)
{
    const double setUp = numbers.latency.seconds * double(asked.chunks()) * (asked.goesIn() + asked.goesOut());
    return numbers.copy.seconds > 2 * setUp ? numbers.latency.seconds * asked.moved() / (numbers.copy.seconds - setUp)
                                            : nan;
}

Figures transferFigures(const TransferCase& asked, const TransferNumbers& numbers)
{
    const auto time = [](const char* key, const char* label, const TransferTime& one) {
        return Figure{key, label, Unit::Second, one.seconds, one.low, one.high, {}};
    };
    Figure bandwidth{"bandwidth", "bandwidth", Unit::BytePerSecond, asked.moved() / numbers.copy.seconds};
    if (numbers.copy.low && numbers.copy.high) {
        bandwidth.low = asked.moved() / *numbers.copy.high;
        bandwidth.high = asked.moved() / *numbers.copy.low;
    }
    const double kernel = asked.hasKernel() ? numbers.kernel.seconds : 0;
    Figures figures{
        time("time", "time", numbers.time),
        std::move(bandwidth),
        time("latency", "latency α", numbers.latency),
        {"hidden_time", "hidden", Unit::Second, hiddenSeconds(numbers.copy.seconds + kernel, numbers.time.seconds)},
        time("copy_time", "copies alone", numbers.copy),
        time("kernel_time", "kernel alone", asked.hasKernel() ? numbers.kernel : TransferTime{0, {}, {}}),
        {"half_size", "half of β is reached at", Unit::Byte, numbers.halfSize},
        {"chunks", "chunks", Unit::One, double(asked.chunks())}};
    markCounted(figures, {"chunks"});
    return figures;
}

Result<Figures> predictedTransfer(const Device& device, const Parameters& parameters)
{
    MEMSCAPE_TRY(asked, transferCase(device, parameters));
    MEMSCAPE_TRY(model, transferModel(device, asked));
    TransferNumbers numbers;
    numbers.time.seconds = model.seconds();
    numbers.copy.seconds = model.copySeconds();
    numbers.kernel.seconds = model.kernelSeconds();
    numbers.latency.seconds = model.latency;
    numbers.halfSize = model.latency * model.bandwidth;
    Figures figures = transferFigures(asked, numbers);
    explainTransfer(figures, model);
    return figures;
}

Json transferDetail(const Device& device, const Parameters& parameters)
{
    const auto asked = transferCase(device, parameters);
    const auto model = asked ? transferModel(device, *asked) : tl::unexpected<Error>(asked.error());
    if (!model)
        return Json::object();
    Json ways = Json::array();
    const std::string kind = transferKindLabel(asked->kind);
    TransferCase whole = *asked;
    whole.chunk = whole.bytes;
    whole.depth = 1;
    TransferCase naive = whole;
    naive.kind = device.isGpu() ? TransferKind::Pageable : TransferKind::Fresh;
    if (naive.kind != asked->kind && asked->kind != TransferKind::Device
        && transferPartners(asked->kind, asked->direction) == 0)
        addWay(ways, device, "naive", transferKindLabel(naive.kind) + ", one piece", naive);
    addWay(ways, device, "whole", kind + ", one piece", whole);
    if (asked->chunks() > 1) {
        TransferCase chunked = *asked;
        chunked.depth = 1;
        addWay(ways, device, "chunked", fmt::format("{}, {} chunks", kind, asked->chunks()), chunked);
        if (asked->depth > 1)
            addWay(ways, device, "overlapped",
                   fmt::format("{}, {} chunks, {} buffers", kind, asked->chunks(), asked->depth), *asked);
    }
    TransferModel free = *model;
    free.asked.depth = asked->serial.empty() && !model->isFused ? std::max(2, asked->depth) : 1;
    const std::uint64_t best = bestChunk(free);
    free.asked.chunk = best;
    const bool wasOverlapped = asked->chunks() > 1 && asked->depth > 1;
    if (best < asked->bytes && !wasOverlapped)
        ways.push_back(wayJson(
            "best", fmt::format("{}, {} chunks, {} buffers", kind, free.asked.chunks(), free.asked.depth), free));
    return {{"ways", std::move(ways)},
            {"bytes", asked->bytes},
            {"chunk", asked->chunk},
            {"depth", asked->depth},
            {"kind", transferKindKey(asked->kind)},
            {"asked",
             asked->chunks() == 1    ? "whole"
                 : asked->depth == 1 ? "chunked"
                                     : "overlapped"},
            {"serial", asked->serial},
            {"best_chunk", best},
            {"best_time", jsonNumber(free.seconds())}};
}

} // namespace memscape
