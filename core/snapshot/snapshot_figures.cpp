// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/snapshot_device.h"

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::string_view source =
    "the snapshot's trace and segments; sizes as PyTorch's caching allocator gives them";

std::string eventText(const SnapshotDevice& device, std::size_t moment)
{
    return moment == 0 ? "before the trace"
                       : fmt::format("after event {} of {}", moment - 1, device.lifetimes().events());
}

Why why(const SnapshotDevice& device, std::string formula, std::string with, std::vector<Term> terms)
{
    Why why{std::move(formula), std::move(with), std::move(terms), std::string(source), {}};
    why.omits.push_back("memory outside of the caching allocator: the CUDA context, NCCL, other programs");
    if (device.lifetimes().hasCache() && device.snapshot().devices().size() > 1)
        why.omits.push_back("the other devices of the file");
    return why;
}

Term bytesTerm(std::string symbol, std::int64_t bytes, std::string meaning)
{
    return {std::move(symbol), double(bytes), Unit::Byte, std::move(meaning), std::string(source)};
}

Figure bytesFigure(const SnapshotDevice& device, std::string key, std::string label, std::int64_t bytes,
                   std::string formula, std::size_t moment)
{
    return figureOf(std::move(key), label, Unit::Byte, double(bytes),
                    why(device, std::move(formula), fmt::format("= {} B, {}", bytes, eventText(device, moment)),
                        {bytesTerm("bytes", bytes, label)}));
}

std::size_t momentWithMostRequested(const Lifetimes& lifetimes, const EventRange& range, std::int64_t& most)
{
    SnapshotBytes bytes = lifetimes.bytesAt(range.first);
    std::size_t moment = range.first;
    most = bytes.requested;
    for (std::size_t event = range.first; event < range.last; ++event) {
        bytes += lifetimes.change(event);
        if (bytes.requested > most) {
            most = bytes.requested;
            moment = event + 1;
        }
    }
    return moment;
}

void addPeaks(const SnapshotDevice& device, const EventRange& range, Figures& figures)
{
    const Lifetimes& lifetimes = device.lifetimes();
    const std::size_t allocatedAt = device.timeline().peakAllocated(range.first, range.last);
    const std::size_t reservedAt = device.timeline().peakReserved(range.first, range.last);
    figures.push_back(bytesFigure(device, "peak_allocated", "peak allocated", lifetimes.bytesAt(allocatedAt).allocated,
                                  "largest sum of the blocks in the program's hands", allocatedAt));
    figures.push_back(bytesFigure(
        device, "peak_reserved", "peak reserved", lifetimes.bytesAt(reservedAt).reserved,
        lifetimes.hasCache() ? "largest sum of the segments" : "a CPU has no cache: active bytes", reservedAt));
}

void addFragmentation(const SnapshotDevice& device, const EventRange& range, Figures& figures)
{
    const double allocated = figures[0].number(), reserved = figures[1].number();
    figures.push_back(
        figureOf("fragmentation", "reserved, never allocated", Unit::One, reserved > 0 ? 1 - allocated / reserved : 0,
                 why(device, "1 − peak allocated / peak reserved",
                     fmt::format("= 1 − {} B / {} B", numberText(allocated), numberText(reserved)),
                     {bytesTerm("peak allocated", std::int64_t(allocated), "most bytes in blocks of the program"),
                      bytesTerm("peak reserved", std::int64_t(reserved), "most bytes in segments")})));
    const std::size_t moment = device.timeline().peakAllocated(range.first, range.last);
    figures.push_back(bytesFigure(
        device, "largest_free", "largest free block at the peak", device.lifetimes().layoutAt(moment).largestFree,
        "largest hole in the segments where allocated is at its peak: no larger request fits there", moment));
}

} // namespace

Figures snapshotFigures(const SnapshotDevice& device, const EventRange& range)
{
    const Lifetimes& lifetimes = device.lifetimes();
    Figures figures;
    addPeaks(device, range, figures);
    addFragmentation(device, range, figures);
    std::int64_t requested = 0;
    const std::size_t requestedAt = momentWithMostRequested(lifetimes, range, requested);
    figures.push_back(bytesFigure(device, "peak_requested", "peak requested", requested,
                                  "largest sum of what was asked for, before rounding", requestedAt));
    const SnapshotBytes last = lifetimes.bytesAt(range.last);
    figures.push_back(bytesFigure(device, "final_allocated", "allocated at the end", last.allocated,
                                  "sum of the blocks in the program's hands", range.last));
    figures.push_back(
        bytesFigure(device, "final_reserved", "reserved at the end", last.reserved, "sum of the segments", range.last));
    figures.push_back(bytesFigure(device, "final_largest_free", "largest free block at the end",
                                  lifetimes.layoutAt(range.last).largestFree, "largest hole in the segments",
                                  range.last));
    const auto retries = double(allocationRetries(device, range).size());
    figures.push_back(figureOf("retries", "allocation retries", Unit::One, retries,
                               why(device, "segments freed because the driver refused one, counted by allocation",
                                   fmt::format("= {}", retries), {})));
    return figures;
}

} // namespace memscape
