// SPDX-License-Identifier: Apache-2.0
// The lanes of a transfer and what each takes for n bytes:
//
//     copy      T = α + n/β of the link and kind (core/timing/link_time.h)
//     kernel    T = launch + n · max(1/memory rate, work/FP32 rate): a roofline over the bytes of the chunk
//
//     pageable  α of the host link, β of the staged copy; the call waits, so nothing overlaps
//     pinned    α and β of the host link
//     mapped    one kernel reads and writes over the host link: α is its launch, the slower of link and work rules
//     device    α is a launch, β half the rate of copies in the GPU's memory, which counts reads and writes
//     peer      β of the link to another GPU; α of the host link where its own is not known
//     copy      β by the rates of one thread; calibrated, α and β of one piece are the link's. Through buffers a
//               byte is read where the one side lies and written where the other does: a byte of the array comes back
//               after the array and the buffers, one of a buffer after twice the buffers. On a Zen 4, 64 MiB took 5.3
//               ms in one piece (the rates: 2.1 ms of reading, 2.7 ms of writing), 3.1 to 3.3 ms in chunks of 512 KiB
//               to 4 MiB, whose writing stays in the caches
//     numa      calibrated; else copies as above, and what no cache holds is read over the link: lines in flight over
//               the latencies of DRAM and link, at most the link's rate, in place of lines in flight over DRAM's
//     the rest  calibrated links of this host
//
// Side by side on a host, a kernel reads lines that another core has just written, and the copy writes over lines that
// the kernel has just read: both wait for the other core's caches. What a chunk takes at least is calibrated as it is
// used, copies with a kernel that does next to nothing beside them, α + n/β by the bytes of the buffers. On an Emerald
// Rapids, 64 MiB in chunks of 48 KiB took 8.7 ms, copies and kernel alone 2.9 and 3.4 ms; in chunks of 6 MiB, which lie
// in the shared cache, 5.6 ms, where the copies alone took 5.2 ms.
//
// The best chunk: with n bytes in chunks of c, the slowest lane's fixed cost f is paid n/c times, and the other lanes
// take c · r (r their seconds per byte) to fill and drain, so c = √(n f / r).
//
// Left out: two lanes that share a memory or a core's clock, page faults of the source; with numa, lanes whose threads
// run on different nodes.
#include "core/experiments/transfer/transfer.h"

#include "core/timing/link_time.h"
#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Cycles of a call that copies nothing, where no calibration says: a call, two branches, a fence.
constexpr double emptyCopyCycles = 20;

struct LinkRates
{
    double latency = nan, perByte = nan; ///< s, s/B
    std::string rule = {}, source = {};
    double perPiece = 0; ///< s, of pieces that a chunk's size alone decides
};

tl::unexpected<Error> notKnown(const Device& device, const std::string& what, const std::string& remedy)
{
    return fail("predict.device", fmt::format("{} of {} is not known", what, device.name), remedy, device.id);
}

Result<LinkRates> hostLinkRates(const Device& device, const TransferCase& asked)
{
    const Link* const link = device.link("host");
    const bool isPageable = asked.kind == TransferKind::Pageable;
    if (!link || !link->bandwidth.known() || (isPageable && !(link->pageable && link->pageable->known())))
        return notKnown(
            device, isPageable ? "the rate of copies from pageable memory" : "the bandwidth of the link to the host",
            isPageable ? "choose kind=pinned, or another device" : "choose another device");
    const Sourced& rate = isPageable ? *link->pageable : link->bandwidth;
    const double launch = device.launch.valueOr(0);
    const bool isMapped = asked.kind == TransferKind::Mapped;
    LinkRates rates{isMapped ? launch : link->latency.valueOr(launch), 1 / rate.value};
    rates.rule = isMapped       ? "the kernel asks for the bytes: no copy is set up"
        : isPageable            ? "the driver copies into a pinned buffer of its own and waits: half as fast or less"
        : link->latency.known() ? "a copy engine moves pinned memory"
                                : "one memory: α is a launch";
    rates.source = fmt::format("{}: {}", link->label, rate.source);
    return rates;
}

Result<LinkRates> gpuRates(const Device& device, const TransferCase& asked)
{
    const double launch = device.launch.valueOr(0);
    if (asked.kind == TransferKind::Device) {
        const double rate = bandwidthOf(device, 2 * double(asked.bytes), Operation::Copy, device.units).bytesPerSecond;
        if (!std::isfinite(rate))
            return notKnown(device, "the memory bandwidth", "calibrate it, or choose a device of the catalogue");
        const double shared = asked.goesIn() && asked.goesOut() ? 2 : 1; // both copies use the one memory
        return LinkRates{launch, 2 * shared / rate, "the memory reads and writes every byte",
                         "the device's rates by working set"};
    }
    if (asked.kind == TransferKind::Peer) {
        const Link* const link = device.link("peer");
        if (!link || !link->bandwidth.known())
            return notKnown(device, "a link to another GPU", "choose pinned, pageable, mapped or device");
        const Link* const host = device.link("host");
        const double like = host ? host->latency.valueOr(launch) : launch;
        return LinkRates{link->latency.valueOr(like), 1 / link->bandwidth.value,
                         link->latency.known() ? "the link's own α and β"
                                               : "its α is not known: that of a copy to the host",
                         fmt::format("{}: {}", link->label, link->bandwidth.source)};
    }
    return hostLinkRates(device, asked);
}

/// The time of a copied byte through these buffers over that in one piece.
double bufferShare(const Device& device, const TransferCase& asked)
{
    const auto perByte = [&](double workingSet, Operation operation) {
        return 1 / bandwidthOf(device, workingSet, operation, 1).bytesPerSecond;
    };
    const double bytes = double(asked.bytes), array = bytes + asked.bufferBytes(), buffers = 2 * asked.bufferBytes();
    const double in = perByte(array, Operation::Read) + perByte(buffers, Operation::Write),
                 out = perByte(buffers, Operation::Read) + perByte(array, Operation::Write);
    const double whole = perByte(2 * bytes, Operation::Read) + perByte(2 * bytes, Operation::Write);
    const double share = (asked.goesIn() && asked.goesOut() ? (in + out) / 2 : asked.goesIn() ? in : out) / whole;
    return std::isfinite(share) && share > 0 ? share : 1;
}

Result<LinkRates> hostCopyRates(const Device& device, const TransferCase& asked)
{
    const double workingSet = 2 * double(asked.bytes);
    LinkRates rates;
    rates.perByte = 2 / bandwidthOf(device, workingSet, Operation::Copy, 1).bytesPerSecond * bufferShare(device, asked);
    if (!std::isfinite(rates.perByte))
        return notKnown(device, "the memory bandwidth", "calibrate it, or choose a device of the catalogue");
    const Link* const link = device.link("copy");
    const bool isKnown = link && link->latency.known();
    rates.latency = isKnown ? link->latency.value : emptyCopyCycles / device.clock.valueOr(3e9);
    rates.rule = fmt::format("one thread; {} stay in use", bytesText(double(asked.bytes) + asked.bufferBytes()));
    rates.source = device.calibration ? "calibrated on this machine" : "the device's rates by working set";
    if (!isKnown)
        rates.source += "; α is 20 cycles, not measured";
    return rates;
}

Result<LinkRates> calibratedRates(const Device& device, const TransferCase& asked)
{
    const std::string& id = transferKindKey(asked.kind);
    const Link* const link = device.link(id);
    if (!link || !link->bandwidth.known() || !link->latency.known())
        return notKnown(device, fmt::format("what \"{}\" costs", id),
                        "calibrate this machine, or choose kind=copy, whose rates every device has");
    const double workingSet = double(asked.bytes) + asked.bufferBytes();
    const bool isCopy = asked.kind == TransferKind::Copy;
    const CachedShares cached = cachedShares(device, isCopy ? 2 * double(asked.bytes) : workingSet);
    LinkRates rates{link->latency.value, secondsPerByte(*link, cached),
                    fmt::format("{} of the data lie in the last cache, {} in a core's own", percentText(cached.last),
                                percentText(cached.own)),
                    link->latency.method};
    const double perPiece = pieceSeconds(device, id);
    if (asked.kind == TransferKind::Pipe)
        rates.perPiece = perPiece;
    else
        rates.perByte += linkPieces(id, 1, cached) * perPiece;
    rates.perByte *= isCopy ? bufferShare(device, asked) : 1;
    return rates;
}

/// Copies whose far side is another node's memory, by the catalogue's link between the two.
Result<LinkRates> describedNodeRates(const Device& device, const TransferCase& asked)
{
    const Link& link = *device.link("numa");
    const MemoryLevel* const dram = device.dram();
    if (!link.latency.known() || !link.bandwidth.known() || !dram || !dram->latency.known())
        return notKnown(device, "the way to another node's memory", "calibrate this machine, or choose kind=copy");
    MEMSCAPE_TRY(rates, hostCopyRates(device, asked));
    const double flying = bytesInFlight(device, *dram, {1, 0, 16});
    const double home = littleBandwidth(flying, dram->latency.value);
    const double away =
        std::min(link.bandwidth.value, littleBandwidth(flying, dram->latency.value + link.latency.value));
    if (!(home > 0) || !(away > 0))
        return notKnown(device, "how many bytes a core has on their way", "choose kind=copy");
    const double missed = 1 - cachedShares(device, double(asked.bytes) + asked.bufferBytes()).last;
    rates.perByte += missed * std::max(0.0, 1 / away - 1 / home);
    rates.rule = fmt::format("{} of the data come from the other node: a core draws {} there and {} at home",
                             percentText(missed), quantityText(away, Unit::BytePerSecond),
                             quantityText(home, Unit::BytePerSecond));
    rates.source = fmt::format("{}: {}", link.label, link.latency.source);
    return rates;
}

Result<LinkRates> ratesOf(const Device& device, const TransferCase& asked)
{
    if (device.isGpu())
        return gpuRates(device, asked);
    if (asked.kind == TransferKind::Numa && !device.link("numa")->farBandwidth)
        return describedNodeRates(device, asked);
    const Link* const copies = device.link("copy");
    const bool isCalibrated = copies && copies->bandwidth.known() && copies->latency.known();
    return asked.kind == TransferKind::Copy && !isCalibrated ? hostCopyRates(device, asked)
                                                             : calibratedRates(device, asked);
}

TransferLane transferCopyLane(std::string name, const LinkRates& rates, const TransferCase& asked)
{
    return {std::move(name), false, rates.latency, rates.perByte, rates.perPiece, transferKindKey(asked.kind)};
}

/// What a copied chunk takes at least while another core reads it, as far as caches hold the buffers. The array may lie
/// farther than the calibration's, or nearer. A calibration without that has the link between cores, which counts one
/// core's writing and the other's reading one after the other.
void setBeside(TransferLane& lane, const Device& device, const TransferCase& asked)
{
    const bool isProbed = device.link(besideLink) != nullptr;
    const Link* const beside = device.isGpu() ? nullptr : device.link(isProbed ? besideLink : "thread");
    if (!beside || !beside->latency.known() || !beside->bandwidth.known())
        return;
    const auto readPerByte = [&](double array) {
        return 1 / bandwidthOf(device, array, Operation::Read, 1).bytesPerSecond;
    };
    const double farther = isProbed ? readPerByte(double(asked.bytes)) - readPerByte(besideArray) : 0;
    Device caches; // a device's calibration is large
    caches.levels = device.levels;
    lane.besideFixed = beside->latency.value;
    lane.besidePerByte = [caches = std::move(caches), link = *beside, piece = pieceSeconds(device, beside->id),
                          farther = std::isfinite(farther) ? farther : 0](double buffers) {
        const CachedShares cached = cachedShares(caches, buffers);
        const double held = secondsPerByte(link, cached) - (1 - cached.last) * secondsPerByte(link, {0, 0, 0});
        return std::max(0.0, held + linkPieces(link.id, 1, cached) * piece + cached.last * farther);
    };
}

Result<TransferLane> kernelLane(const Device& device, const TransferCase& asked)
{
    const int threads = device.isGpu() ? device.units : 1;
    const double operations = device.flopRate("fp32") / (device.isGpu() ? 1 : std::max(1, device.units));
    const MemoryLevel* const dram = device.dram();
    const double memory = device.isGpu()
        ? (dram ? levelBandwidth(device, *dram, Operation::Read).value : nan)
        : bandwidthOf(device, asked.bufferBytes(), Operation::Read, threads).bytesPerSecond;
    if (!(operations > 0))
        return notKnown(device, "the rate of operations in FP32", "choose work=0, or a device of the catalogue");
    if (!(memory > 0))
        return notKnown(device, "the memory bandwidth", "calibrate it, or choose a device of the catalogue");
    return TransferLane{"kernel", true, device.isGpu() ? device.launch.valueOr(0) : 0,
                        std::max(1 / memory, asked.work / operations)};
}

/// The model's time with chunks of `chunk` bytes.
double secondsWithChunk(TransferModel model, double chunk)
{
    const auto most = double(model.asked.bytes);
    model.asked.chunk = std::uint64_t(std::clamp(std::round(chunk), 1.0, std::max(1.0, most)));
    return model.seconds();
}

} // namespace

std::vector<LaneTime> TransferModel::times() const
{
    std::vector<LaneTime> times;
    const bool isBeside = asked.depth > 1 && asked.chunks() > 1 && lanes.size() > 1;
    const auto secondsOf = [&](const TransferLane& lane, std::uint64_t bytes) {
        return isBeside ? lane.secondsBeside(double(bytes), asked.bufferBytes()) : lane.seconds(double(bytes));
    };
    for (const TransferLane& lane : lanes)
        times.push_back({secondsOf(lane, asked.chunk), secondsOf(lane, asked.lastChunk())});
    return times;
}

double TransferLane::seconds(double bytes) const
{
    return fixed + bytes * perByte + (perPiece > 0 ? linkPieces(pieces, bytes, {}) * perPiece : 0);
}

double TransferLane::secondsBeside(double bytes, double buffers) const
{
    return std::max(seconds(bytes), besidePerByte ? besideFixed + bytes * besidePerByte(buffers) : 0);
}

double TransferLane::seconds(const TransferCase& asked) const
{
    return double(asked.chunks() - 1) * seconds(double(asked.chunk)) + seconds(double(asked.lastChunk()));
}

double TransferModel::copySeconds() const
{
    double sum = 0;
    for (const TransferLane& lane : lanes)
        sum += lane.isKernel ? 0 : lane.seconds(asked);
    return sum;
}

double TransferModel::kernelSeconds() const
{
    double sum = 0;
    for (const TransferLane& lane : lanes)
        sum += lane.isKernel ? lane.seconds(asked) : 0;
    return sum;
}

double TransferModel::seconds() const
{
    if (!isFused)
        return pipelineSeconds(times(), asked.chunks(), asked.depth);
    double slowest = 0;
    for (const TransferLane& lane : lanes)
        slowest = std::max(slowest, double(asked.bytes) * lane.perByte);
    return latency + slowest;
}

Result<TransferModel> transferModel(const Device& device, const TransferCase& asked)
{
    MEMSCAPE_TRY(rates, ratesOf(device, asked));
    TransferModel model;
    model.asked = asked;
    model.isFused = asked.kind == TransferKind::Mapped;
    model.latency = rates.latency;
    model.bandwidth = 1 / rates.perByte;
    model.rule = rates.rule;
    model.source = rates.source;
    if (asked.goesIn()) {
        model.lanes.push_back(transferCopyLane("copy in", rates, asked));
        if (asked.hasKernel())
            setBeside(model.lanes.back(), device, asked);
    }
    if (asked.hasKernel()) {
        MEMSCAPE_TRY(kernel, kernelLane(device, asked));
        model.lanes.push_back(std::move(kernel));
    }
    if (asked.goesOut())
        model.lanes.push_back(transferCopyLane("copy out", rates, asked));
    return model;
}

std::uint64_t bestChunk(const TransferModel& model)
{
    const auto bytes = double(model.asked.bytes);
    if (model.isFused || model.asked.depth < 2)
        return model.asked.bytes;
    double best = bytes, shortest = secondsWithChunk(model, bytes);
    const auto consider = [&](double chunk) {
        if (const double seconds = secondsWithChunk(model, chunk); seconds < shortest) {
            shortest = seconds;
            best = chunk;
        }
    };
    for (const TransferLane& slowest : model.lanes) {
        double others = 0;
        for (const TransferLane& lane : model.lanes)
            others += &lane == &slowest ? 0 : lane.perByte;
        if (!(others > 0) || !(slowest.fixed > 0))
            continue;
        consider(std::clamp(std::round(std::sqrt(bytes * slowest.fixed / others)), 1.0, bytes));
    }
    const bool isHandedOver =
        std::ranges::any_of(model.lanes, [](const TransferLane& lane) { return bool(lane.besidePerByte); });
    // Which cache holds the buffers decides then: no closed form.
    for (double chunk = 4096; isHandedOver && chunk < bytes; chunk *= 2)
        consider(chunk);
    return std::uint64_t(best);
}

} // namespace memscape
