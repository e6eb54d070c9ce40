// SPDX-License-Identifier: Apache-2.0
// transfer: what does moving data cost, and how much of it can be hidden?
//
// A transfer takes T = α + n/β; cut into chunks that are worked on as they arrive, copy and kernel run side by side.
// Rates of each kind: transfer_model.cpp; chunks in lanes: core/timing/pipeline.h. Left out: collectives, disks,
// networks.
#include "core/experiments/transfer/transfer.h"

#include "core/base/rounding.h"
#include "core/claims/claim_quotes.h"
#include "core/experiment/schema.h"
#include "core/experiments/common/judged_number.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

const ChoiceTable<TransferKind> transferKinds{
    {TransferKind::Pageable,
     {"pageable", "pageable", "GPU: ordinary host memory, which the driver stages; the call waits"}},
    {TransferKind::Pinned, {"pinned", "pinned", "GPU: page-locked host memory, moved by a copy engine"}},
    {TransferKind::Mapped, {"mapped", "mapped", "GPU: the kernel reads and writes page-locked host memory itself"}},
    {TransferKind::Device, {"device", "within the GPU", "GPU: from one place of its memory to another"}},
    {TransferKind::Peer, {"peer", "another GPU", "GPU: over the link to its neighbour"}},
    {TransferKind::Copy, {"copy", "copy", "CPU: ordinary loads and stores of one thread"}},
    {TransferKind::Stream,
     {"stream", "copy past the caches", "CPU: the same with non-temporal stores, which fetch nothing"}},
    {TransferKind::Fresh,
     {"fresh", "into fresh memory", "CPU: into pages that were never touched; each is a page fault"}},
    {TransferKind::Huge, {"huge", "into fresh huge pages", "CPU: the same with pages of 2 MiB"}},
    {TransferKind::Numa,
     {"numa", "another node's memory", "CPU: to or from memory of another NUMA node, mostly of another socket"}},
    {TransferKind::Thread, {"thread", "from another core", "CPU: one core writes, another reads"}},
    {TransferKind::Pipe, {"pipe", "pipe", "CPU: from another process through a pipe; the kernel copies twice"}},
    {TransferKind::Shared,
     {"shared", "shared memory", "CPU: from another process through memory that both have mapped"}}};

const ChoiceTable<TransferDirection> transferDirections{
    {TransferDirection::To, {"to", "in", "copied in, then worked on"}},
    {TransferDirection::From, {"from", "out", "worked on, then copied out"}},
    {TransferDirection::Both, {"both", "in and out", "copied in, worked on, copied out"}}};

constexpr const char* usualKind = "usual";
constexpr std::uint64_t mostChunks = 65536;

std::vector<ChoiceValue> kindChoices()
{
    std::vector<ChoiceValue> all{{usualKind, "usual", "pinned on a GPU, copy on a CPU"}};
    for (ChoiceValue& one : transferKinds.choices())
        all.push_back(std::move(one));
    return all;
}

Schema transferSchema()
{
    return {
        choiceSpec("kind", "kind", "Which way the bytes go.", kindChoices()),
        choiceSpec("direction", "direction", "In, out, or both; the kernel comes after what is copied in.",
                   transferDirections.choices()),
        integerSpec("bytes", "bytes", "What is moved, in each direction.",
                    {.least = 4, .most = 0x1p40, .standard = "64MiB", .unit = Unit::Byte, .scale = Scale::Log2}),
        integerSpec("chunk", "chunk", "Bytes that are moved at a time; 0 moves all in one piece.",
                    {.least = 0,
                     .most = 0x1p40,
                     .standard = "4MiB",
                     .unit = Unit::Byte,
                     .scale = Scale::Log2,
                     .words = {{"0", "one piece", "nothing is cut: the kernel begins when all of it is there"}}}),
        integerSpec("streams", "streams",
                    "Buffers in flight: a chunk is copied while another is worked on. 1: nothing overlaps.",
                    {.least = 1, .most = 8, .standard = "2"}),
        integerSpec("work", "work", "Operations on each byte once it is there, in FP32; 0: none.",
                    {.least = 0, .most = 65536, .standard = "8", .scale = Scale::Log2, .suffix = "FLOP/B"}),
    };
}

bool isOfGpu(TransferKind kind)
{
    return kind <= TransferKind::Peer;
}

bool hasTransfers(const Device& device, TransferKind kind)
{
    const bool needsNeighbour = kind == TransferKind::Peer || kind == TransferKind::Numa;
    return isOfGpu(kind) == device.isGpu() && (!needsNeighbour || device.link(transferKinds.keyOf(kind)));
}

/// "copy, stream, …": what such a device has.
std::string kindsOf(const Device& device)
{
    std::string all;
    for (const ChoiceValue& choice : transferKinds.choices()) {
        if (hasTransfers(device, transferKinds.of(choice.key)))
            all += (all.empty() ? "" : ", ") + choice.key;
    }
    return all;
}

std::string serialReason(const Device& device, const TransferCase& asked)
{
    if (asked.kind == TransferKind::Pageable)
        return "pageable memory cannot overlap: the driver stages it, and the call waits until it has";
    const int lanes = transferLanes(asked.direction, asked.hasKernel());
    const int cores = lanes + transferPartners(asked.kind, asked.direction);
    if (!device.isGpu() && lanes > 1 && cores > device.units)
        return fmt::format("side by side this takes {} cores, and there are {}: one after the other", cores,
                           device.units);
    return {};
}

std::vector<Claim> transferClaims(const Device& device, const Parameters& parameters, const Measurement& measured)
{
    const auto asked = transferCase(device, parameters);
    const auto model = asked ? transferModel(device, *asked) : tl::unexpected<Error>(asked.error());
    if (!model)
        return {};
    const JudgedNumber time = judgedNumber(measured, "time", model->seconds());
    const JudgedNumber copy = judgedNumber(measured, "copy_time", model->copySeconds());
    const JudgedNumber kernel = judgedNumber(measured, "kernel_time", model->kernelSeconds());
    const double sum = copy.value + kernel.value;
    std::vector<Claim> claims{
        quotedClaim("total-time",
                    !(kernel.value > 0)          ? "holds here: nothing is computed"
                        : time.value > 0.9 * sum ? "holds here: next to nothing overlaps"
                                                 : "does not hold here: the two overlap",
                    fmt::format("{} of copies and {} of kernels take {} ({})", secondsText(copy.value),
                                secondsText(kernel.value), secondsText(time.value), time.side()))};
    if (asked->kind == TransferKind::Pinned) {
        const JudgedNumber rate = judgedNumber(measured, "bandwidth", asked->moved() / model->copySeconds());
        const std::string rateText = quantityText(rate.value, Unit::BytePerSecond);
        claims.push_back(quotedClaim("pcie-bandwidth",
                                     rate.value < 9e9        ? "does not hold here: less"
                                         : rate.value > 27e9 ? "does not hold here: more"
                                                             : "holds here",
                                     fmt::format("{} of pinned memory move at {} ({}); the link reaches {}",
                                                 bytesText(double(asked->bytes)), rateText, rate.side(),
                                                 quantityText(model->bandwidth, Unit::BytePerSecond))));
    }
    return claims;
}

class Transfer final : public Experiment
{
public:
    std::string id() const override { return "transfer"; }
    std::string title() const override { return "Transfers"; }
    std::string question() const override { return "What does moving data cost, and how much of it can be hidden?"; }
    std::string group() const override { return "hardware"; }
    std::string help() const override
    {
        return "A transfer takes α + n/β, the latency of its way and the bytes over its bandwidth. Cut into chunks, "
               "the "
               "next is copied while the last is worked on: the pipeline fills once, then the slower side rules, and "
               "every chunk pays α again. The model takes α and β of a GPU's links from the catalogue, of a CPU from "
               "its calibration, and the kernel from a roofline. Pageable memory cannot overlap: the driver stages it. "
               "Left out: lanes that share a memory, collectives, disks and networks.";
    }
    bool isThroughMemory(const Device& device) const override { return !device.isGpu(); } // a link's rates
    const Schema& schema() const override { return m_schema; }
    std::vector<std::string> idleParameters(const Device& device, const Parameters& parameters) const override;
    ParameterTexts standardOn(const Device& device) const override
    {
        return device.isGpu() ? ParameterTexts{{"work", "512"}} : ParameterTexts{};
    }
    std::vector<std::string> headlines() const override { return {"time", "bandwidth", "hidden_time", "latency"}; }
    ShortAnswer shortAnswer(const Device& device, const Parameters& parameters, const Figures& figures) const override;
    std::vector<SeriesSpec> series() const override
    {
        return {{"bandwidth", "bandwidth"},
                {"time", "time"},
                {"copy_time", "copies alone"},
                {"kernel_time", "kernel alone"},
                {"hidden_time", "hidden"}};
    }
    Sweep axis(const Device& device, const Parameters& parameters) const override
    {
        Sweep sweep{"bytes", {}};
        // Not so large that the chunks of a small size would be too many.
        const double chunk = parameters.number("chunk");
        const double last = std::min(device.isGpu() ? 0x1p30 : 0x1p28, chunk > 0 ? chunk * double(mostChunks) : 0x1p30);
        for (double bytes = 4; bytes <= last; bytes *= 4)
            sweep.values.emplace_back(bytes);
        return sweep;
    }
    Result<Figures> predictPoint(const Device& device, const Parameters& parameters) const override
    {
        return predictedTransfer(device, parameters);
    }
    Json predictDetail(const Device& device, const Parameters& parameters) const override
    {
        return transferDetail(device, parameters);
    }
    std::vector<Claim> claims(const Device& device, const Parameters& parameters,
                              const Measurement& measured) const override
    {
        return transferClaims(device, parameters, measured);
    }

private:
    Schema m_schema = transferSchema();
};

std::vector<std::string> Transfer::idleParameters(const Device& device, const Parameters& parameters) const
{
    std::vector<std::string> idle = Experiment::idleParameters(device, parameters);
    const auto asked = transferCase(device, parameters);
    if (!asked)
        return idle;
    if (asked->kind == TransferKind::Mapped)
        idle.insert(idle.end(), {"chunk", "streams"});
    else if (!asked->serial.empty() || parameters.number("chunk") <= 0)
        idle.emplace_back("streams");
    return idle;
}

ShortAnswer Transfer::shortAnswer(const Device& device, const Parameters& parameters, const Figures& figures) const
{
    for (const char* key : {"time", "bandwidth", "hidden_time", "kernel_time", "copy_time"}) {
        const Figure* const one = findFigure(figures, key);
        if (!one || !std::isfinite(one->number()))
            return {};
    }
    const auto text = [&](const char* key) { return findFigure(figures, key)->text(); };
    const double hidden = findFigure(figures, "hidden_time")->number();
    const double kernel = findFigure(figures, "kernel_time")->number(),
                 copy = findFigure(figures, "copy_time")->number();
    const std::string moved = fmt::format("Moving {} takes {} at {}", bytesText(parameters.number("bytes")),
                                          text("copy_time"), text("bandwidth"));
    ShortAnswer answer{{}, "time", false, {"chunk", "streams"}};
    if (!(kernel > 0)) {
        answer.sentence = moved + "; there is no kernel to hide behind.";
        return answer;
    }
    const double shorter = std::min(kernel, copy);
    const char* const behind = parameters.choice("direction") == "both" ? "the kernel and each other" : "the kernel";
    answer.sentence = hidden > 0.005 * shorter
        ? fmt::format("{}; {} of that hides behind {}.", moved, percentText(std::min(1.0, hidden / copy)), behind)
        : fmt::format("{}; none of it is hidden.", moved);
    const auto asked = transferCase(device, parameters);
    if (!asked || !asked->serial.empty())
        return answer;
    if (const auto model = transferModel(device, *asked); model && bestChunk(*model) < asked->bytes)
        answer.tries.emplace_back("chunk", double(bestChunk(*model)));
    return answer;
}

} // namespace

double TransferCase::bufferBytes() const
{
    return std::min(double(bytes), double(chunk) * depth);
}

int transferLanes(TransferDirection direction, bool hasKernel)
{
    return (direction == TransferDirection::Both ? 2 : 1) + hasKernel;
}

int transferPartners(TransferKind kind, TransferDirection direction)
{
    return kind < TransferKind::Thread ? 0 : direction == TransferDirection::Both ? 2 : 1;
}

const std::string& transferKindKey(TransferKind kind)
{
    return transferKinds.keyOf(kind);
}

std::string transferKindLabel(TransferKind kind)
{
    for (const ChoiceValue& choice : transferKinds.choices()) {
        if (choice.key == transferKinds.keyOf(kind))
            return choice.label;
    }
    return {};
}

Result<TransferCase> transferCase(const Device& device, const Parameters& parameters)
{
    TransferCase asked;
    const std::string& kind = parameters.choice("kind");
    asked.kind = kind != usualKind ? transferKinds.of(kind)
        : device.isGpu()           ? TransferKind::Pinned
                                   : TransferKind::Copy;
    if (asked.kind == TransferKind::Numa && !device.isGpu() && !device.link("numa"))
        return fail("predict.device",
                    fmt::format("{} has one node of memory: there is no other to copy from", device.name),
                    "choose a host with several sockets, or one of " + kindsOf(device), "kind");
    if (!hasTransfers(device, asked.kind))
        return fail("predict.device", fmt::format("{} has no transfers of kind \"{}\"", device.name, kind),
                    "choose one of " + kindsOf(device), "kind");
    asked.direction = transferDirections.of(parameters.choice("direction"));
    asked.bytes = std::uint64_t(parameters.integer("bytes"));
    asked.work = parameters.number("work");
    const auto chunk = std::uint64_t(parameters.integer("chunk"));
    asked.chunk = chunk == 0 || asked.kind == TransferKind::Mapped ? asked.bytes : std::min(chunk, asked.bytes);
    if (asked.chunks() > mostChunks)
        return fail("predict.chunks",
                    fmt::format("{} in chunks of {} are {} chunks, and {} is the most", bytesText(double(asked.bytes)),
                                bytesText(double(asked.chunk)), countText(double(asked.chunks())),
                                countText(double(mostChunks))),
                    fmt::format("choose chunk={} or more, or 0 for one piece", quotientUp(asked.bytes, mostChunks)),
                    "chunk");
    asked.serial = serialReason(device, asked);
    asked.depth = asked.serial.empty() && asked.chunks() > 1 ? int(parameters.integer("streams")) : 1;
    return asked;
}

const Experiment& transferExperiment()
{
    static const Transfer experiment;
    return experiment;
}

} // namespace memscape
