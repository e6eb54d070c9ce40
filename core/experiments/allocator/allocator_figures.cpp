// SPDX-License-Identifier: Apache-2.0
// The figures of `allocator`, predicted and measured, and why each is what it is.
#include "core/experiments/allocator/allocator.h"
#include "core/experiments/common/explain.h"

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr const char* cachingSource = "c10/cuda/CUDACachingAllocator.cpp of PyTorch 2.6, replayed request by request";

std::string allocatorSource(const AllocatorCase& asked)
{
    if (asked.setting.kind == PolicyKind::Caching)
        return cachingSource;
    for (const PolicyWord& word : policyWords())
        if (word.kind == asked.setting.kind)
            return fmt::format("{}: {}", word.label, word.rule);
    return {};
}

std::vector<std::string> allocatorOmits(const AllocatorCase& asked)
{
    std::vector<std::string> omits{"the driver's own rounding and fragmentation"};
    if (asked.setting.kind == PolicyKind::Caching)
        omits.emplace_back("private pools of CUDA graphs");
    if (asked.isStep)
        omits.emplace_back("cuDNN's workspaces and torch.compile, as on the page Memory budget");
    return omits;
}

std::string withDivisor(const AllocatorCase& asked, std::string text)
{
    if (asked.divisor > 1)
        text += fmt::format("; all sizes divided by {}", asked.divisor);
    return text;
}

std::string requestName(const AllocatorCase& asked, std::size_t request)
{
    const RequestTrace& trace = *asked.trace;
    const BlockId block = trace.requests[request].block;
    return fmt::format("request {} of {}{}", request + 1, trace.requests.size(),
                       block == noBlock ? std::string() : fmt::format(", {}", trace.nameOf(block)));
}

Why allocatedWhy(const AllocatorAnswer& answer)
{
    Why why;
    why.formula = "allocated = Σ sizes of blocks in the program's hands, as the allocator rounds them";
    why.with = withDivisor(answer.asked,
                           fmt::format("= {}, of {} asked for at most at once", sizeText(answer.replay.peak.allocated),
                                       sizeText(answer.replay.peak.requested)));
    why.source = allocatorSource(answer.asked);
    why.omits = allocatorOmits(answer.asked);
    return why;
}

Why reservedWhy(const AllocatorAnswer& answer)
{
    const ReservedPeak& peak = answer.replay.reservedPeak;
    Why why;
    why.formula = "reserved = Σ what was taken from the driver − Σ what went back to it";
    why.with = withDivisor(
        answer.asked,
        fmt::format("= {}, highest at {}", sizeText(peak.reserved), requestName(answer.asked, peak.request)));
    for (const std::string& line : answer.peakText)
        why.with += "; " + line;
    why.source = allocatorSource(answer.asked);
    why.omits = allocatorOmits(answer.asked);
    return why;
}

Why wastedWhy(const AllocatorAnswer& answer)
{
    Why why;
    why.formula = "wasted = peak reserved − peak allocated";
    why.with = fmt::format("= {} − {}", sizeText(answer.replay.peak.reserved), sizeText(answer.replay.peak.allocated));
    why.source = "max_memory_reserved() − max_memory_allocated()";
    why.omits = {"the two peaks may be of different moments"};
    return why;
}

Why unusableWhy(const AllocatorAnswer& answer)
{
    const ReservedPeak& peak = answer.replay.reservedPeak;
    Why why;
    why.formula =
        "unusable = (free, but no use to the request that made reserved grow to its peak + rounded up) / reserved";
    why.with = fmt::format("= ({} + {}) / {}, at {}", sizeText(peak.free), sizeText(peak.rounding),
                           sizeText(peak.reserved), requestName(answer.asked, peak.request));
    why.terms = {{"free", double(peak.free), Unit::Byte,
                  "reserved before that request, not in use, and too small or in another pool", "replayed"},
                 {"rounding", double(peak.rounding), Unit::Byte, "of blocks beyond what was asked for", "replayed"},
                 {"taken", double(peak.taken), Unit::Byte, "from the driver for that request", "replayed"}};
    why.source =
        "what no request could use when more had to be taken; free memory that the next request gets is not lost";
    return why;
}

Why notesWhy(const AllocatorAnswer& answer)
{
    Why why;
    why.formula = "(reserved − allocated) / reserved";
    why.with = fmt::format("= ({} − {}) / {}, behind the last request", sizeText(answer.replay.end.reserved),
                           sizeText(answer.replay.end.allocated), sizeText(answer.replay.end.reserved));
    why.source = "course notes, GPU memory management, which call it fragmentation";
    why.omits = {"that the next request gets what is free: a cache that is kept is not fragmented"};
    return why;
}

Why segmentsWhy(const AllocatorAnswer& answer)
{
    Why why;
    why.formula = "segments = most ranges of addresses that were reserved at once";
    const bool isExpandable = answer.asked.setting.options.expandableSegments;
    why.with = isExpandable ? "expandable segments are not counted, as in torch.cuda.memory_stats()" : "counted";
    why.source = allocatorSource(answer.asked);
    return why;
}

Why callsWhy(const AllocatorAnswer& answer)
{
    Why why;
    why.formula = "driver calls = what was taken + what was given back";
    why.with = fmt::format("= {} + {}, for {} requests", answer.replay.totals.takes, answer.replay.totals.returns,
                           answer.replay.played);
    why.source = allocatorSource(answer.asked);
    return why;
}

Why timeWhy(const AllocatorAnswer& answer)
{
    const auto calls = double(answer.replay.totals.takes + answer.replay.totals.returns);
    Why why;
    why.formula = "time = driver calls × what one costs";
    const bool isAssumed = answer.asked.assumesDriverCall;
    why.with = fmt::format("= {:.0f} × {}{}", calls, secondsText(answer.asked.driverCall),
                           isAssumed ? ", which is assumed: measure it, or give driver_call" : "");
    why.terms = {
        {"calls", calls, Unit::One, "of the driver", "replayed"},
        {"call", answer.asked.driverCall, Unit::Second, "of the driver", isAssumed ? "assumed" : "driver_call"}};
    why.source = isAssumed ? "calls counted, what one costs assumed" : "calls counted, what one costs given";
    why.omits = {"what the allocator itself takes for a request that it serves from its cache"};
    return why;
}

Why boundWhy(const AllocatorAnswer& answer)
{
    Why why;
    why.formula = "bound = most bytes alive at once, as they were asked for";
    why.with = fmt::format("= {}", sizeText(answer.asked.peakLive));
    why.source = "perfect packing: no allocator can do with less";
    return why;
}

Why pagesWhy(const AllocatorAnswer& answer, const char* what)
{
    Why why;
    why.formula = what;
    why.with = answer.pages ? fmt::format("= {} pages touched for the first time, at most {} there at once",
                                          answer.pages->faults, answer.pages->highest)
                            : "";
    why.source = "each page of 4 KiB is given when it is first written";
    why.omits = {"huge pages", "pages of the program itself"};
    return why;
}

} // namespace

AllocatorNumbers numbersOf(const AllocatorCase& asked, const PolicyReplay& replay)
{
    AllocatorNumbers numbers;
    numbers.peakAllocated = double(replay.peak.allocated);
    numbers.peakReserved = double(replay.peak.reserved);
    numbers.endAllocated = double(replay.end.allocated);
    numbers.endReserved = double(replay.end.reserved);
    numbers.unusable = replay.reservedPeak.share();
    numbers.segments = double(replay.peak.segments);
    numbers.driverCalls = double(replay.totals.takes + replay.totals.returns);
    numbers.retries = double(replay.totals.retries);
    numbers.seconds = asked.driverCall * numbers.driverCalls;
    if (replay.refusal)
        numbers.outOfMemory = fmt::format("at {}", requestName(asked, replay.refusal->request));
    return numbers;
}

Figures allocatorFigures(const Device& device, const AllocatorCase& asked, const AllocatorNumbers& numbers)
{
    const auto notes = numbers.endReserved > 0 ? (numbers.endReserved - numbers.endAllocated) / numbers.endReserved : 0;
    const auto requests = double(asked.trace->count(RequestKind::Allocate) + asked.trace->count(RequestKind::Free));
    Figures figures{
        {"peak_allocated", "peak allocated", Unit::Byte, numbers.peakAllocated},
        {"peak_reserved", "peak reserved", Unit::Byte, numbers.peakReserved},
        {"wasted", "reserved beyond allocated", Unit::Byte, numbers.peakReserved - numbers.peakAllocated},
        {"unusable", "not usable at the peak", Unit::One, numbers.unusable},
        {"notes_fragmentation", "\"fragmentation\" of the notes", Unit::One, notes},
        {"bound", "perfect packing", Unit::Byte, double(asked.peakLive)},
        {"segments", "segments", Unit::One, numbers.segments},
        {"driver_calls", "driver calls", Unit::One, numbers.driverCalls},
        {"retries", "cache emptied for a request", Unit::One, numbers.retries},
        {"out_of_memory", "out of memory", Unit::One, numbers.outOfMemory},
        {"time", "time of all requests", Unit::Second, numbers.seconds, numbers.secondsLow, numbers.secondsHigh, {}},
        {"request_time", "time a request", Unit::Second, requests > 0 ? numbers.seconds / requests : nan},
    };
    if (!device.isGpu()) {
        figures.push_back({"first_touch", "first touch of the pages", Unit::Second, numbers.firstTouch});
        figures.push_back({"page_faults", "page faults", Unit::One, numbers.pageFaults});
        figures.push_back({"resident", "peak resident", Unit::Byte, numbers.resident});
    }
    markCounted(figures, {"bound"});
    return figures;
}

Figures predictedAllocator(const Device& device, const AllocatorAnswer& answer)
{
    AllocatorNumbers numbers = numbersOf(answer.asked, answer.replay);
    if (answer.pages) {
        numbers.pageFaults = double(answer.pages->faults);
        numbers.resident = double(answer.pages->highest * hostPage);
    }
    Figures figures = allocatorFigures(device, answer.asked, numbers);
    explain(figures, "peak_allocated", allocatedWhy(answer));
    explain(figures, "peak_reserved", reservedWhy(answer));
    explain(figures, "wasted", wastedWhy(answer));
    explain(figures, "unusable", unusableWhy(answer));
    explain(figures, "notes_fragmentation", notesWhy(answer));
    explain(figures, "bound", boundWhy(answer));
    explain(figures, "segments", segmentsWhy(answer));
    explain(figures, "driver_calls", callsWhy(answer));
    for (Figure& figure : figures)
        if (answer.asked.assumesDriverCall && (figure.key == "time" || figure.key == "request_time"))
            figure.label += " (a call's cost assumed)";
    explain(figures, "time", timeWhy(answer));
    explain(figures, "request_time", timeWhy(answer));
    explain(figures, "page_faults", pagesWhy(answer, "page faults = pages written for the first time"));
    explain(figures, "resident", pagesWhy(answer, "resident = most pages there at once × 4 KiB"));
    return figures;
}

} // namespace memscape
