// SPDX-License-Identifier: Apache-2.0
// The figures of `layout`, each with its why.
#include "core/experiments/common/sources.h"
#include "core/experiments/layout/layout.h"

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr const char* rules = "PyTorch: c10/core/Contiguity.h, ATen/TensorUtils.cpp (computeStride)";

std::string loopsText(const TensorWalk& walk)
{
    std::string text;
    for (auto loop = walk.loops.rbegin(); loop != walk.loops.rend(); ++loop)
        text += fmt::format("{}{} × stride {}", text.empty() ? "" : ", ", loop->count, loop->stride);
    return text.empty() ? "one element" : text;
}

Why why(std::string formula, std::string with, std::string source = rules)
{
    Why made;
    made.formula = std::move(formula);
    made.with = std::move(with);
    made.source = std::move(source);
    return made;
}

Why requestWhy(const LayoutAnswer& answer, bool isEfficiency)
{
    const WalkRequests& requests = answer.requests;
    Why made = isEfficiency
        ? why("efficiency = distinct bytes accessed / (sectors × 32 B), per request",
              fmt::format("= {} / {} = {}", bytesText(requests.usedBytes), bytesText(requests.fetchedBytes),
                          percentText(requests.efficiency(), 3)),
              coalescingGuide)
        : why("sectors = distinct ⌊byte address / 32⌋ over 32 neighbouring visits, mean over all requests",
              fmt::format("{} requests, loops from the slowest: {}: {}", shortNumber(requests.requests, 6),
                          loopsText(answer.asked.walk()), shortNumber(requests.sectors, 6)),
              coalescingGuide);
    if (!requests.isExact)
        made.omits.push_back("requests are resolved one in many: no product of the inner loops is a multiple of 32");
    if (!isEfficiency)
        made.omits.push_back("a CPU has no sectors: there it is what a GPU's warp would access");
    return made;
}

Why passWhy(const Device& device, const WalkTime& time, const TensorWalk& walk)
{
    Why made;
    if (device.isGpu()) {
        made.formula = "t = launch + max(DRAM bytes / rate, L2 bytes / rate, look-ups / rate)";
        made.with = fmt::format("limited by {}: launch {} + {}", time.limit, secondsText(device.launch.valueOr(0)),
                                secondsText(std::max(time.memory, time.issue)));
    } else {
        const bool isCalibrated = time.runs > 0;
        made.formula = !isCalibrated ? "t = max(visits / issue rate, Σ lines served by a level / its line rate)"
            : time.adds              ? "t = runs × seconds of a run + Σ lines served by a level × its stall"
                                     : "t = max(runs × seconds of a run, stream of the lines)";
        made.with = fmt::format("= {}{}{}{}{}", time.adds ? "" : "max(", secondsText(time.issue),
                                time.adds ? " + " : ", ", secondsText(time.memory), time.adds ? "" : ")");
        made.with += " = " + secondsText(time.seconds);
        made.omits = {"hashed cache sets"};
        if (isCalibrated)
            made.terms.push_back(
                {"runs", time.runs, Unit::One,
                 fmt::format("of the innermost loop, {} each with its end", secondsText(time.issue / time.runs)),
                 time.source});
        else
            made.omits.insert(made.omits.begin(), {"page walks: huge pages are requested", "ends of short loops"});
        if (!time.isWhole)
            made.omits.push_back("the caches were simulated for the first visits only");
    }
    for (const LevelShare& share : time.served)
        made.terms.push_back(
            {share.level, share.bytes, Unit::Byte, "delivered in one pass: " + secondsText(share.seconds), "counted"});
    made.terms.push_back(
        {"visits", double(walk.elements), Unit::One, "loops from the slowest: " + loopsText(walk), "counted"});
    made.source = time.source;
    return made;
}

Why copyWhy(const Device& device, const LayoutAnswer& answer)
{
    const CopyTime& copy = answer.copy;
    if (!answer.asked.needsCopy())
        return why("nothing is copied", "the result is contiguous already");
    const int version = answer.asked.version == 0 ? copyVersionCount : answer.asked.version;
    Why made = why(device.isGpu() ? "t = launch + max(reads + writes, L2 or shared memory)"
                                  : "t = max(reads + writes, elements / issue rate)",
                   fmt::format("= reads {} + writes {}, issue {}: {}", secondsText(copy.reads),
                               secondsText(copy.writes), secondsText(copy.issue), secondsText(copy.seconds)),
                   answer.view.source);
    if (copy.isCalibrated) {
        made.formula = copy.formula;
        made.with = fmt::format("elements {}, ends {}, reads {}, stream {}: {}", secondsText(copy.issue),
                                secondsText(copy.ends), secondsText(copy.reads), secondsText(copy.writes),
                                secondsText(copy.seconds));
    }
    made.terms = {{"version", double(version), Unit::One, copyLesson(device.isGpu(), version), "parameter"}};
    made.omits = {"allocating the target, which PyTorch's allocator keeps"};
    return made;
}

Why paysWhy(const LayoutAnswer& answer)
{
    Why made = why("reads = copy / (view − contiguous), rounded up",
                   fmt::format("= {} / ({} − {})", secondsText(answer.copy.seconds), secondsText(answer.view.seconds),
                               secondsText(answer.dense.seconds)),
                   "two straight lines that cross");
    if (!answer.asked.needsCopy())
        made.with = "the result is contiguous already: no copy is needed";
    else if (answer.view.seconds <= answer.dense.seconds)
        made.with = "reading the copy is no faster in this order: it never pays off";
    return made;
}

} // namespace

Figures countedLayoutFigures(const Device& device, const LayoutAnswer& answer)
{
    const LayoutCase& asked = answer.asked;
    const auto item = double(asked.itemBytes());
    std::string copies = "no step copies";
    if (asked.copiedBytes() > 0) {
        copies.clear();
        for (const ViewStep& step : asked.steps) {
            if (step.copied)
                copies += fmt::format("{}{}: {}", copies.empty() ? "" : ", ", viewText(step.operation),
                                      bytesText(double(step.written) * item));
        }
    }
    const bool isEmpty = asked.view.isEmpty();
    const double line = device.lineBytes;
    Figures figures{
        figureOf("elements", "elements", Unit::One, double(asked.view.elements()),
                 why("elements = Π sizes", fmt::format("{} = {}", sizesText(asked.view.size), asked.view.elements()))),
        figureOf("storage_bytes", "storage", Unit::Byte, double(asked.view.storage) * item,
                 why("storage = elements of the storage × bytes of one",
                     fmt::format("= {} × {} B", asked.view.storage, asked.itemBytes()))),
        figureOf("copied_bytes", "copied by the steps", Unit::Byte, double(asked.copiedBytes()),
                 why("copied = Σ new storages of the steps", copies)),
        figureOf("sectors_per_request", "sectors / request", Unit::One, answer.requests.sectors,
                 requestWhy(answer, false)),
        figureOf("lines_per_request", "lines / request", Unit::One, answer.requests.lines,
                 why(fmt::format("lines = distinct ⌊byte address / {}⌋ over 32 neighbouring visits", line),
                     shortNumber(answer.requests.lines, 6), coalescingGuide)),
        figureOf("efficiency", "efficiency", Unit::One, isEmpty ? nan : answer.requests.efficiency(),
                 requestWhy(answer, true)),
        figureOf("lines", "lines in all", Unit::One, answer.lines,
                 why(fmt::format("distinct ⌊byte address / {}⌋ over the whole view", line),
                     fmt::format("= {} of {}", bytesText(answer.lines * line),
                                 bytesText(double(asked.view.elements()) * item)),
                     "counted, in closed form for each run")),
        figureOf("pages", "pages in all", Unit::One, answer.pages,
                 why("distinct ⌊byte address / 4096⌋ over the whole view", shortNumber(answer.pages, 6), "counted")),
    };
    for (Figure& one : figures)
        one.isCounted = true;
    return figures;
}

Figures missedLayoutFigures(const LayoutAnswer& answer)
{
    Figures figures;
    for (std::size_t i = 0; i < answer.view.caches.size() && i < answer.view.misses.size(); ++i) {
        const std::string& level = answer.view.caches[i];
        Why counted = why(fmt::format("lines that miss in {}, in one pass after another", level),
                          shortNumber(answer.view.misses[i], 6), "cache simulator: true LRU, no prefetching");
        if (!answer.view.isWhole)
            counted.omits.push_back("simulated for the first visits, the second half of them counted for all");
        std::string key = level;
        for (char& c : key)
            c = char(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        figures.push_back(
            figureOf(key + "_misses", level + " misses", Unit::One, answer.view.misses[i], std::move(counted)));
    }
    return figures;
}

Figures timedLayoutFigures(const Device& device, const LayoutAnswer& answer)
{
    const LayoutCase& asked = answer.asked;
    Figures figures;
    const auto bytes = double(asked.view.elements()) * double(asked.itemBytes());
    const double pays = paysAfter(answer.view.seconds, answer.dense.seconds, answer.copy.seconds);
    figures.push_back(figureOf("view_time", "read through the view", Unit::Second, answer.view.seconds,
                               passWhy(device, answer.view, asked.walk())));
    figures.push_back(figureOf("contiguous_time", "read after contiguous()", Unit::Second, answer.dense.seconds,
                               passWhy(device, answer.dense, asked.denseWalk())));
    figures.push_back(
        figureOf("copy_time", "contiguous()", Unit::Second, answer.copy.seconds, copyWhy(device, answer)));
    if (answer.copy.seconds > 0)
        figures.push_back(figureOf("copy_bandwidth", "copy bandwidth", Unit::BytePerSecond,
                                   2 * bytes / answer.copy.seconds,
                                   why("bandwidth = bytes read + bytes written / time",
                                       fmt::format("= 2 × {} / {}", bytesText(bytes), secondsText(answer.copy.seconds)),
                                       "STREAM's convention")));
    figures.push_back(figureOf("pays_after", "copy pays off after (reads)", Unit::One, pays, paysWhy(answer)));
    figures.push_back(figureOf("view_total", "all reads, through the view", Unit::Second, answer.viewTotal(),
                               why("reads × one pass through the view",
                                   fmt::format("= {} × {}", asked.reads, secondsText(answer.view.seconds)), "")));
    figures.push_back(figureOf("contiguous_total", "all reads, copied first", Unit::Second, answer.denseTotal(),
                               why("copy + reads × one pass over the copy",
                                   fmt::format("= {} + {} × {}", secondsText(answer.copy.seconds), asked.reads,
                                               secondsText(answer.dense.seconds)),
                                   "")));
    return figures;
}

} // namespace memscape
