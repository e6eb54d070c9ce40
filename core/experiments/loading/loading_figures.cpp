// SPDX-License-Identifier: Apache-2.0
// The figures of loading with their reasons, and the two ways that its picture compares: one step after the other, and
// in a pipeline.
#include "core/experiments/common/explain.h"
#include "core/experiments/common/hidden_time.h"
#include "core/experiments/loading/loading.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr std::size_t mostLoadingPieces = 192; ///< of a way that is drawn

/// The name of the step that takes longest alone.
std::string slowestOf(const LoadingCase& asked, const LoadingNumbers& numbers)
{
    const double read = numbers.read.seconds;
    const double convert = asked.hasConversion() ? numbers.convert.seconds : 0;
    const double copy = asked.goesToGpu ? numbers.copy.seconds : 0;
    if (copy > read && copy > convert)
        return "link to the GPU";
    if (convert > read)
        return asked.changesForm() ? "conversion" : "copy into the model";
    return loadingReadName(asked);
}

std::string pipelineText(const LoadingCase& asked)
{
    return asked.depth > 1      ? fmt::format("overlapped, {} buffers", asked.depth)
        : asked.hasOtherSteps() ? "one step after the other"
                                : "reading is the only step";
}

Why loadingWhy(std::string formula, std::string with, std::string source, std::vector<std::string> omits = {})
{
    return {std::move(formula), std::move(with), {}, std::move(source), std::move(omits)};
}

Why laneWhy(const LoadingModel& model, const LoadingLane& lane)
{
    const auto bytes = double(model.asked.bytes);
    const double inPieces = lane.pieces * lane.perPiece;
    const double rate = 1 / (lane.perByte - (inPieces + lane.once) / bytes);
    const bool isOnce = lane.once > 0;
    const std::string pieces = inPieces > 0
        ? fmt::format(" + {} × {}", countText(std::round(lane.pieces)), secondsText(lane.perPiece))
        : std::string();
    const std::string starts = isOnce
        ? secondsText(lane.once)
        : fmt::format("{} × {}", countText(double(model.asked.chunks())), secondsText(lane.fixed));
    Why why = loadingWhy(
        fmt::format("time = {}{} + bytes / β", isOnce ? "α" : "chunks × α", inPieces > 0 ? " + pieces × γ" : ""),
        fmt::format("= {}{} + {} / {} = {}", starts, pieces, bytesText(bytes), quantityText(rate, Unit::BytePerSecond),
                    secondsText(model.laneSeconds(lane.step))),
        lane.source);
    why.terms = {{"α", isOnce ? lane.once : lane.fixed, Unit::Second,
                  isOnce ? "once: the kernel reads ahead over the borders of chunks" : "of each chunk", lane.source}};
    if (inPieces > 0)
        why.terms.push_back({"γ", lane.perPiece, Unit::Second,
                             model.asked.isMapped() && model.asked.isWarm
                                 ? "of a fault, which maps a whole piece of the page cache"
                                 : "of a piece of the page cache: the first ones that are read ahead are small",
                             lane.source});
    why.terms.push_back({"β", rate, Unit::BytePerSecond, lane.rule + "; bytes of the file", lane.source});
    return why;
}

/// How many faults map the file.
Why faultsWhy(const LoadingModel& model, double faults)
{
    const LoadingLane* const lane = model.lane(LoadingStep::Read);
    const std::string count = "= " + countText(faults);
    if (!model.asked.isMapped())
        return loadingWhy("nothing is mapped", count, "Linux");
    if (lane->pieces == 0)
        return loadingWhy("bytes / 64 KiB: a fault maps the 16 pages around it", count, "Linux, fault_around_bytes",
                          {"larger pieces of the page cache, which newer kernels map whole: calibrate this machine"});
    return loadingWhy("a fault maps a piece of the page cache: 64 KiB in the first windows that are read ahead, then "
                      "four times as much in each",
                      count, "Linux; the window and the largest piece as this machine was calibrated",
                      {"a file that was written and not read: its pieces are large from its beginning"});
}

Why timeWhy(const LoadingModel& model)
{
    const LoadingCase& asked = model.asked;
    std::string sum;
    double slowest = 0;
    for (const LaneTime& lane : model.times()) {
        sum += (sum.empty() ? "" : " + ") + secondsText(lane.chunk);
        slowest = std::max(slowest, lane.chunk);
    }
    Why why;
    if (asked.depth > 1 && model.lanes.size() > 1)
        why = loadingWhy("time = Σ steps of a chunk + (chunks − 1) × slowest step",
                         fmt::format("= ({}) + {} × {} = {}", sum, countText(double(asked.chunks() - 1)),
                                     secondsText(slowest), secondsText(model.seconds())),
                         "pipeline of chunks; exact for steps that do not disturb each other");
    else
        why = loadingWhy(
            "time = chunks × Σ steps",
            fmt::format("= {} × ({}) = {}", countText(double(asked.chunks())), sum, secondsText(model.seconds())),
            "one step after the other");
    for (const LoadingLane& lane : model.lanes)
        why.terms.push_back(
            {lane.name, 1 / lane.perByte, Unit::BytePerSecond, lane.rule + "; bytes of the file", lane.source});
    if (asked.chunks() > 1 && asked.lastChunk() != asked.chunk)
        why.omits.push_back("the formula counts the last chunk whole; the number does not");
    if (!asked.serial.empty())
        why.omits.push_back(asked.serial);
    why.omits.push_back("opening the file and its header, making the model's objects, other traffic");
    return why;
}

Why memoryWhy(const LoadingCase& asked)
{
    const double read = asked.readMemory(), converted = asked.convertedMemory();
    const auto part = [&](double bytes, bool isWhole) {
        return isWhole || bytes == 0 ? bytesText(bytes) : bytesText(bytes) + " of buffers";
    };
    Why why =
        loadingWhy("memory = what is read into + what is converted into",
                   fmt::format("= {} + {}", part(read, asked.readsInPlace()), part(converted, asked.convertsInPlace())),
                   "the loader's allocations",
                   {"the program, its libraries and the driver; the page cache, which is counted apart"});
    if (asked.isMapped())
        why.omits.emplace_back("mapped pages are the page cache's own");
    return why;
}

void explainLoading(Figures& figures, const LoadingModel& model)
{
    const LoadingCase& asked = model.asked;
    const auto bytes = double(asked.bytes);
    explain(figures, "time", timeWhy(model));
    for (const auto& [key, step] :
         {std::pair("read_time", LoadingStep::Read), std::pair("convert_time", LoadingStep::Convert),
          std::pair("copy_time", LoadingStep::Copy)}) {
        const LoadingLane* const lane = model.lane(step);
        explain(figures, key, lane ? laneWhy(model, *lane) : loadingWhy("no such step", "= 0 s", "what was asked for"));
    }
    explain(figures, "hidden_time",
            loadingWhy("hidden = max(0, reading + converting + copies − time)",
                       "= " + secondsText(findFigure(figures, "hidden_time")->number()), "the figures above",
                       {hiddenFromZero}));
    explain(figures, "bandwidth",
            loadingWhy("bandwidth = bytes / time",
                       fmt::format("= {} / {}", bytesText(bytes), secondsText(model.seconds())), "the figures above"));
    explain(figures, "bytes",
            loadingWhy(asked.file.empty()
                           ? "Σ over tensors: elements × bytes of their stored form, and scales; × touched"
                           : "the file's size × touched",
                       fmt::format("= {} of {}, {} parameters", bytesText(bytes), bytesText(double(asked.fileBytes)),
                                   countText(double(asked.elements))),
                       asked.file.empty() ? "the model's description" : asked.file, {"the header of the file"}));
    explain(figures, "gpu_bytes",
            loadingWhy("converted bytes / GPUs",
                       fmt::format("= {} / {}", bytesText(asked.convertedBytes(bytes)), asked.gpus), "counted",
                       {"norms, of which every GPU has its own"}));
    explain(figures, "peak_host_memory", memoryWhy(asked));
    explain(figures, "page_cache",
            loadingWhy(asked.method == LoadingMethod::Direct ? "direct I/O leaves nothing in the page cache"
                                                             : "what is read stays in the page cache",
                       "= " + bytesText(findFigure(figures, "page_cache")->number()), "Linux",
                       {"pages that the system takes back when memory is short"}));
    explain(figures, "disk_bytes",
            loadingWhy(asked.isWarm ? "the page cache has it all" : "every byte comes from the medium",
                       "= " + bytesText(findFigure(figures, "disk_bytes")->number()), "counted",
                       {"what is read ahead beyond the end"}));
    explain(figures, "faults", faultsWhy(model, findFigure(figures, "faults")->number()));
    explain(figures, "bottleneck",
            loadingWhy("the step that takes longest alone",
                       fmt::format("= {}", findFigure(figures, "bottleneck")->text()), "the figures above"));
    explain(figures, "pipelined",
            loadingWhy("buffers in flight", "= " + pipelineText(asked),
                       asked.serial.empty() ? "what was asked for" : asked.serial));
    explain(figures, "chunks",
            loadingWhy("chunks = ⌈bytes / chunk⌉",
                       fmt::format("= ⌈{} / {}⌉", bytesText(bytes), bytesText(double(asked.chunk))), "counted"));
}

LoadingNumbers numbersOf(const LoadingModel& model)
{
    const LoadingCase& asked = model.asked;
    LoadingNumbers numbers;
    numbers.time.seconds = model.seconds();
    numbers.read.seconds = model.laneSeconds(LoadingStep::Read);
    numbers.convert.seconds = model.laneSeconds(LoadingStep::Convert);
    numbers.copy.seconds = model.laneSeconds(LoadingStep::Copy);
    numbers.hostMemory = asked.readMemory() + asked.convertedMemory();
    numbers.pageCache = asked.method == LoadingMethod::Direct ? 0 : double(asked.bytes);
    numbers.diskBytes = asked.isWarm ? 0 : double(asked.bytes);
    numbers.faults = model.lane(LoadingStep::Read)->faults;
    return numbers;
}

Json loadingWay(const char* key, const char* label, const LoadingModel& model, int depth)
{
    static const char* const steps[] = {"read", "convert", "copy"};
    Json lanes = Json::array(), names = Json::array(), alone = Json::array(), pieces = Json::array();
    for (const LoadingLane& lane : model.lanes) {
        lanes.push_back(lane.name);
        alone.push_back(jsonNumber(model.laneSeconds(lane.step)));
        names.push_back(steps[std::size_t(lane.step)]);
    }
    for (const LanePiece& piece : pipelinePieces(model.times(), model.asked.chunks(), depth, mostLoadingPieces))
        pieces.push_back({piece.lane, piece.first, piece.last, jsonNumber(piece.begin), jsonNumber(piece.end)});
    return {{"key", key},
            {"label", label},
            {"time", jsonNumber(model.secondsWithDepth(depth))},
            {"lanes", std::move(lanes)},
            {"steps", std::move(names)},
            {"alone", std::move(alone)},
            {"pieces", std::move(pieces)}};
}

} // namespace

Figures loadingFigures(const LoadingCase& asked, const LoadingNumbers& numbers)
{
    const auto time = [](const char* key, const char* label, const LoadingTime& one) {
        return Figure{key, label, Unit::Second, one.seconds, one.low, one.high, {}};
    };
    const LoadingTime none{0, {}, {}};
    const double convert = asked.hasConversion() ? numbers.convert.seconds : 0;
    const double copy = asked.goesToGpu ? numbers.copy.seconds : 0;
    const auto bytes = double(asked.bytes);
    const double hidden = hiddenSeconds(numbers.read.seconds + convert + copy, numbers.time.seconds);
    Figure bandwidth{"bandwidth", "bandwidth", Unit::BytePerSecond, bytes / numbers.time.seconds};
    if (numbers.time.low && numbers.time.high) {
        bandwidth.low = bytes / *numbers.time.high;
        bandwidth.high = bytes / *numbers.time.low;
    }
    Figures figures{
        time("time", "time", numbers.time),
        {"bottleneck", "bottleneck", Unit::One, slowestOf(asked, numbers)},
        {"bytes", "bytes", Unit::Byte, bytes},
        {"peak_host_memory", "peak host memory", Unit::Byte, numbers.hostMemory},
        time("read_time", "reading alone", numbers.read),
        time("convert_time", "converting alone", asked.hasConversion() ? numbers.convert : none),
        time("copy_time", "copies alone", asked.goesToGpu ? numbers.copy : none),
        {"hidden_time", "hidden", Unit::Second, hidden},
        std::move(bandwidth),
        {"gpu_bytes", "bytes on each GPU", Unit::Byte, asked.goesToGpu ? asked.convertedBytes(bytes) / asked.gpus : 0},
        {"page_cache", "page cache", Unit::Byte, numbers.pageCache},
        {"disk_bytes", "read from the disk", Unit::Byte, numbers.diskBytes},
        {"faults", "page faults", Unit::One, numbers.faults},
        {"pipelined", "pipeline", Unit::One, pipelineText(asked)},
        {"chunks", "chunks", Unit::One, double(asked.chunks())}};
    markCounted(figures, {"bytes", "gpu_bytes", "pipelined", "chunks"});
    return figures;
}

Result<Figures> predictedLoading(const Device& device, const Parameters& parameters)
{
    MEMSCAPE_TRY(asked, loadingCase(device, parameters));
    MEMSCAPE_TRY(model, loadingModel(device, asked));
    Figures figures = loadingFigures(asked, numbersOf(model));
    explainLoading(figures, model);
    return figures;
}

Json loadingDetail(const Device& device, const Parameters& parameters)
{
    const auto asked = loadingCase(device, parameters);
    const auto model = asked ? loadingModel(device, *asked) : tl::unexpected<Error>(asked.error());
    if (!model)
        return Json::object();
    const LoadingNumbers numbers = numbersOf(*model);
    Json ways = Json::array();
    ways.push_back(loadingWay("serial", "one step after the other", *model, 1));
    const int depth = std::max(2, asked->depth);
    if (asked->chunks() > 1 && asked->serial.empty() && model->lanes.size() > 1)
        ways.push_back(loadingWay("pipelined", "in a pipeline", *model, depth));
    std::string medium = asked->isWarm           ? "page cache"
        : asked->medium == LoadingMedium::Listed ? asked->listed.name
                                                 : "this machine's disk";
    return {{"model", asked->model},
            {"medium", std::move(medium)},
            {"bytes", asked->bytes},
            {"file_bytes", asked->fileBytes},
            {"converted_bytes", jsonNumber(asked->convertedBytes(double(asked->bytes)))},
            {"chunk", asked->chunk},
            {"chunks", asked->chunks()},
            {"depth", asked->depth},
            {"gpus", asked->goesToGpu ? asked->gpus : 0},
            {"host_memory", jsonNumber(numbers.hostMemory)},
            {"page_cache", jsonNumber(numbers.pageCache)},
            {"reads_in_place", asked->readsInPlace()},
            {"converts_in_place", asked->convertsInPlace()},
            {"is_mapped", asked->isMapped()},
            {"bottleneck", slowestOf(*asked, numbers)},
            {"serial", asked->serial},
            {"asked", asked->depth > 1 && model->lanes.size() > 1 ? "pipelined" : "serial"},
            {"ways", std::move(ways)}};
}

} // namespace memscape
