// SPDX-License-Identifier: Apache-2.0
// The lanes of loading and what each takes for n bytes of the file, T = α + n/β:
//
//     read     of a disk by its rate and latency, or the page cache by the rate of copies. What comes through the page
//              cache is copied from it while the kernel reads ahead: the slower of the two. mmap copies nothing, but
//              every page is mapped by a fault (16 at a time, or a whole folio). Threads share the latency and the
//              copying
//     convert  the slower of moving the bytes through one core and its operations
//     copy     α and β of the link to the GPU, of all links where each GPU has its own
//
// On a host that is calibrated, reading and converting have the α and β that were measured there, by method. α is paid
// by each chunk that is converted, read past the page cache or shared by threads, which wait for each other at its end,
// and once by what the kernel reads ahead. Each piece of
// the page cache costs γ: the first windows that are read ahead are of small pieces, so that a small file is slower by
// the byte (core/timing/page_cache.h). Chunks go through the lanes as core/timing/pipeline.h says, each with its share
// of what is paid once.
//
// Left out: a read-ahead that is too short for a fast drive, seeks between tensors, other traffic, page faults of the
// memory that the bytes arrive in.
#include "core/experiments/loading/loading.h"

#include "core/timing/link_time.h"
#include "core/timing/page_cache.h"
#include "core/timing/working_set.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Of the host beside a GPU, which a GPU's description does not hold.
constexpr double typicalCopyRate = 10e9;     ///< B/s that one thread copies
constexpr double mostTypicalCopyRate = 80e9; ///< B/s that all of them do
constexpr double typicalFault = 0.1e-6;      ///< s of mapping a page, 16 at a fault
constexpr double typicalCall = 0.5e-6;       ///< s of a call that finds its bytes in the page cache
constexpr double conversionWork = 4;         ///< operations an element: unpack, scale, round

tl::unexpected<Error> rateUnknown(const Device& device, const std::string& what, const std::string& remedy)
{
    return fail("predict.device", fmt::format("{} of {} is not known", what, device.name), remedy, device.id);
}

struct CopyRate
{
    double bytesPerSecond = nan; ///< copied; each is read and written
    std::string source;
};

CopyRate hostCopyRate(const Device& device, double workingSet, int threads)
{
    if (device.isGpu())
        return {std::min(mostTypicalCopyRate, typicalCopyRate * threads),
                "typical value: one thread of a server copies 10 GB/s"};
    return {bandwidthOf(device, workingSet, Operation::Copy, std::clamp(threads, 1, device.units)).bytesPerSecond / 2,
            device.calibration ? "calibrated on this machine" : "the device's rates by working set"};
}

/// What the file lies on. Errors: predict.device where no disk is known.
Result<Medium> mediumBehind(const Device& device, const LoadingCase& asked)
{
    if (asked.medium == LoadingMedium::Listed)
        return asked.listed;
    for (const MemoryLevel& level : device.levels) {
        if (level.kind == LevelKind::Storage && level.bandwidth.known())
            return Medium{level.id, level.label, false, level.bandwidth, level.latency};
    }
    const Medium* const usual = shippedMedium("nvme4");
    if (!usual)
        return rateUnknown(device, "the disk", "choose another medium, or describe one with medium_file=");
    Medium medium = *usual;
    medium.bandwidth.evidence = Evidence::Unverified;
    medium.bandwidth.source = "the disk beside this device is not known: an NVMe SSD, " + medium.bandwidth.source;
    return medium;
}

const Link* calibratedLink(const Device& device, const std::string& id)
{
    const Link* const link = device.isGpu() ? nullptr : device.link(id);
    return link && link->bandwidth.known() && link->latency.known() ? link : nullptr;
}

/// α and β as they were calibrated, of bytes that the caches hold so.
void setCalibrated(LoadingLane& lane, const Link& link, const CachedShares& cached)
{
    lane.fixed = link.latency.value;
    lane.perByte = secondsPerByte(link, cached);
    lane.rule = "measured on this machine";
    lane.source = link.latency.method;
}

/// The pieces that the bytes come in through the page cache, where a calibration knows them; `far`: the share of them
/// that no cache holds.
void addPieces(LoadingLane& lane, const Device& device, const LoadingCase& asked, const std::string& link, double far)
{
    const auto pageCache = pageCacheOf(device);
    if (asked.method == LoadingMethod::Direct || !pageCache)
        return;
    const auto bytes = double(asked.bytes);
    lane.faults = asked.isMapped() ? pageCachePieces(*pageCache, bytes, faultAround) : 0;
    lane.pieces = asked.isMapped() && asked.isWarm ? lane.faults : far * pageCachePieces(*pageCache, bytes, filePage);
    lane.perPiece = pieceSeconds(device, link);
    lane.perByte += lane.pieces * lane.perPiece / bytes;
}

Result<LoadingLane> readLane(const Device& device, const LoadingCase& asked)
{
    LoadingLane lane{LoadingStep::Read, loadingReadName(asked)};
    const auto bytes = double(asked.bytes);
    lane.faults = asked.isMapped() ? std::ceil(bytes / faultAround) : 0;
    const std::string id = loadingReadLink(asked.method, asked.isWarm);
    const Link* const link = asked.medium == LoadingMedium::Host || asked.isWarm ? calibratedLink(device, id) : nullptr;
    const CopyRate copy = hostCopyRate(device, 2 * bytes, asked.threads);
    if (link) {
        const double touched = loadingTouched(asked.method, asked.isWarm); // 0: no matter of the caches
        CachedShares cached = touched > 0 ? cachedShares(device, touched * bytes) : CachedShares{};
        cached.own = cached.first = 0; // another thread made it warm, on any core
        setCalibrated(lane, *link, cached);
        // The kernel reads ahead over the borders of chunks, but threads that share a chunk wait for each other there.
        if (asked.method != LoadingMethod::Direct && asked.method != LoadingMethod::Parallel) {
            lane.once = std::exchange(lane.fixed, 0.0);
            lane.perByte += lane.once / bytes;
        }
        addPieces(lane, device, asked, id, asked.isWarm && !asked.isMapped() ? 1 - cached.last : 1);
    } else {
        if (!(copy.bytesPerSecond > 0))
            return rateUnknown(device, "the memory bandwidth", "calibrate it, or choose a device of the catalogue");
        MEMSCAPE_TRY(medium, mediumBehind(device, asked));
        const double cached = asked.isMapped()      ? typicalFault / 4096
            : asked.method == LoadingMethod::Direct ? 0
                                                    : 1 / copy.bytesPerSecond;
        const double disk = asked.isWarm ? 0 : 1 / medium.bandwidth.value;
        lane.perByte = std::max(disk, cached);
        lane.fixed = asked.isWarm ? typicalCall : medium.latency.valueOr(0) / asked.threads;
        lane.rule = asked.isWarm
            ? (asked.isMapped() ? "pages of the page cache are mapped, 16 at a fault" : "copied out of the page cache")
            : disk >= cached ? medium.name + ": its sequential rate"
                             : "the disk is faster than what is copied out of the page cache";
        lane.source = lane.perByte > disk ? (asked.isMapped() ? "typical value: 0.1 µs a page" : copy.source)
                                          : medium.bandwidth.source;
    }
    if (asked.copiesMappedPages()) {
        lane.perByte += 1 / copy.bytesPerSecond;
        lane.rule += "; mapped pages are copied into pinned memory";
    }
    return lane;
}

Result<LoadingLane> convertLane(const Device& device, const LoadingCase& asked)
{
    LoadingLane lane{LoadingStep::Convert, asked.changesForm() ? "conversion" : "copy into the model"};
    const auto bytes = double(asked.bytes);
    const LoadingForm form = asked.changesForm() ? asked.form : LoadingForm::Other;
    if (const Link* const link = calibratedLink(device, loadingConvertLink(form, asked.target))) {
        setCalibrated(lane, *link, cachedShares(device, 2 * bytes));
        return lane;
    }
    const double ratio = asked.convertedBytes(bytes) / bytes;
    const CopyRate copy = hostCopyRate(device, bytes * (1 + ratio), 1);
    if (!(copy.bytesPerSecond > 0))
        return rateUnknown(device, "the memory bandwidth", "calibrate it, or choose a device of the catalogue");
    const double operations = device.isGpu() ? nan : device.flopRate("fp32") / std::max(1, device.units);
    const double moving = (1 + ratio) / 2 / copy.bytesPerSecond;
    const double working =
        asked.changesForm() && operations > 0 ? conversionWork * double(asked.elements) / bytes / operations : 0;
    lane.fixed = typicalCall;
    lane.perByte = std::max(moving, working);
    lane.rule = fmt::format("one core reads a byte and writes {}", numberText(std::round(ratio * 100) / 100));
    lane.source = copy.source;
    return lane;
}

Result<LoadingLane> copyLane(const Device& device, const LoadingCase& asked)
{
    const Link* const link = device.link("host");
    if (!link || !link->bandwidth.known() || (!asked.isPinned && !(link->pageable && link->pageable->known())))
        return rateUnknown(device, asked.isPinned ? "the link to the host" : "the rate of copies from pageable memory",
                           asked.isPinned ? "choose another device" : "choose staging=pinned, or another device");
    const Sourced& rate = asked.isPinned ? link->bandwidth : *link->pageable;
    const int links = asked.isLinkShared ? 1 : asked.gpus;
    LoadingLane lane{LoadingStep::Copy, "link to the GPU"};
    lane.fixed = link->latency.valueOr(device.launch.valueOr(0));
    lane.perByte = asked.convertedBytes(double(asked.bytes)) / double(asked.bytes) / (rate.value * links);
    lane.rule = asked.gpus == 1
        ? (asked.isPinned ? "from pinned memory" : "from pageable memory, which the driver stages")
        : asked.isLinkShared ? fmt::format("{} GPUs share one link", asked.gpus)
                             : fmt::format("{} GPUs, a link each", asked.gpus);
    lane.source = fmt::format("{}: {}", link->label, rate.source);
    return lane;
}

} // namespace

std::vector<LaneTime> LoadingModel::times() const
{
    std::vector<LaneTime> times;
    for (const LoadingLane& lane : lanes)
        times.push_back(
            {lane.fixed + double(asked.chunk) * lane.perByte, lane.fixed + double(asked.lastChunk()) * lane.perByte});
    return times;
}

const LoadingLane* LoadingModel::lane(LoadingStep step) const
{
    const auto found = std::ranges::find(lanes, step, &LoadingLane::step);
    return found == lanes.end() ? nullptr : &*found;
}

double LoadingModel::laneSeconds(LoadingStep step) const
{
    double sum = 0;
    for (const LoadingLane& lane : lanes)
        sum += lane.step == step ? double(asked.chunks()) * lane.fixed + double(asked.bytes) * lane.perByte : 0;
    return sum;
}

double LoadingModel::secondsWithDepth(int depth) const
{
    return pipelineSeconds(times(), asked.chunks(), depth);
}

Result<LoadingModel> loadingModel(const Device& device, const LoadingCase& asked)
{
    LoadingModel model;
    model.asked = asked;
    MEMSCAPE_TRY(read, readLane(device, asked));
    model.lanes.push_back(std::move(read));
    if (asked.hasConversion()) {
        MEMSCAPE_TRY(convert, convertLane(device, asked));
        model.lanes.push_back(std::move(convert));
    }
    if (asked.goesToGpu) {
        MEMSCAPE_TRY(copy, copyLane(device, asked));
        model.lanes.push_back(std::move(copy));
    }
    return model;
}

} // namespace memscape
