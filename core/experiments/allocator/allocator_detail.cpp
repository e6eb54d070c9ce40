// SPDX-License-Identifier: Apache-2.0
// `detail` of a prediction of `allocator`:
//   trace      {"title","count","requests":[…],"calls":[[index, kind, block]…],"phases":[[first, phase]…],
//              "bytes","streams","categories","names","modules" by block from 1 on, "name_table","module_table",
//              "recording" of a snapshot: {"options","peak_reserved","end_reserved","segments_at_the_end",
//              "segments":[[address, size, stream, small, expandable, [[size, requested, block]…]]…],
//              "places":[[block, address]…]}};
//              a request is the block that is made, or its negative where it is freed, 0 for a call
//   setting    {"key","label","planned"}, with "limit" and "fraction" in B where there are any
//   elsewhere  the trace under each allocator: [{"key","label","peak_reserved","wasted","unusable","segments",
//              "driver_calls","retries","refused","missing"}…]
//   peak       {"request","reserved","taken","free","rounding","text":[…]} of the chosen one
//   bound      B; scale: what sizes were divided by
#include "core/experiments/allocator/allocator.h"

#include "core/experiments/memory/memory_detail.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

/// Longer traces are not written out: their picture stays away, and says why.
constexpr std::size_t writtenRequests = 200'000;
constexpr std::size_t curvePoints = 600;

template <typename Value> Json arrayOf(std::size_t count, Value&& value)
{
    Json::array_t array;
    array.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
        array.emplace_back(value(i));
    return array;
}

Json phasesOf(const RequestTrace& trace)
{
    Json phases = Json::array();
    for (std::size_t i = 0; i < trace.requests.size(); ++i)
        if (i == 0 || trace.requests[i].phase != trace.requests[i - 1].phase)
            phases.push_back({i, int(trace.requests[i].phase)});
    return phases;
}

Json callsOf(const RequestTrace& trace)
{
    Json calls = Json::array();
    for (std::size_t i = 0; i < trace.requests.size(); ++i)
        if (trace.requests[i].kind > RequestKind::Free)
            calls.push_back({i, int(trace.requests[i].kind), trace.requests[i].block});
    return calls;
}

/// Its segments with their blocks ([size, requested, whose; 0: free, -1: not mapped]), and where the driver put later
/// ones.
Json recordingJson(const Recording& recording)
{
    Json segments = Json::array();
    std::size_t block = 0;
    for (const AllocatorSegment& segment : recording.segments) {
        Json blocks = Json::array();
        for (const AllocatorBlock& one : segment.blocks) {
            const auto owner = std::int64_t(recording.owners[block++]);
            blocks.push_back({one.size, one.requested, one.state == BlockState::Unmapped ? -1 : owner});
        }
        segments.push_back({segment.address, segment.size, segment.stream, int(segment.isSmall),
                            int(segment.isExpandable), std::move(blocks)});
    }
    return {{"options", allocatorOptionsText(recording.options)},
            {"peak_reserved", recording.peakReserved},
            {"end_reserved", recording.endReserved},
            {"segments_at_the_end", recording.segmentsAtTheEnd},
            {"segments", std::move(segments)},
            {"places", recording.places}};
}

Json traceJson(const AllocatorCase& asked)
{
    const RequestTrace& trace = *asked.trace;
    const bool isWritten = trace.requests.size() <= writtenRequests;
    Json json = isWritten ? requestsJson(trace) : Json::object();
    json["title"] = asked.title;
    json["count"] = trace.requests.size();
    if (!isWritten)
        return json;
    const std::size_t blocks = trace.blocks.size() - 1;
    json["phases"] = phasesOf(trace);
    json["categories"] = arrayOf(blocks, [&](std::size_t i) { return int(trace.blocks[i + 1].category); });
    json["names"] = arrayOf(blocks, [&](std::size_t i) { return trace.blocks[i + 1].name; });
    json["modules"] = arrayOf(blocks, [&](std::size_t i) { return trace.blocks[i + 1].module; });
    json["name_table"] = trace.names;
    json["module_table"] = trace.modules;
    if (trace.recording)
        json["recording"] = recordingJson(*trace.recording);
    return json;
}

Json elsewhereJson(const Elsewhere& other)
{
    Json json{{"key", other.setting.key}, {"label", other.setting.label}};
    if (!other.replay) {
        json["missing"] = other.missing;
        return json;
    }
    const PolicyReplay& replay = *other.replay;
    json["peak_reserved"] = replay.peak.reserved;
    json["wasted"] = replay.peak.reserved - replay.peak.allocated;
    json["unusable"] = replay.reservedPeak.share();
    json["segments"] = replay.peak.segments;
    json["driver_calls"] = replay.totals.takes + replay.totals.returns;
    json["retries"] = replay.totals.retries;
    if (replay.refusal)
        json["refused"] = replay.refusal->request;
    return json;
}

Json settingJson(const PolicySetting& setting)
{
    Json json{{"key", setting.key}, {"label", setting.label}, {"planned", setting.isPlanned()}};
    if (setting.options.deviceLimit)
        json["limit"] = *setting.options.deviceLimit;
    if (setting.options.fractionLimit)
        json["fraction"] = *setting.options.fractionLimit;
    return json;
}

/// Of each stretch the lowest and the highest of both curves, and the first and last of all.
std::vector<std::size_t> drawnPoints(const std::vector<double>& allocated, const std::vector<double>& reserved)
{
    std::vector<std::size_t> points;
    const std::size_t count = allocated.size(), stretches = curvePoints / 4;
    if (count <= curvePoints) {
        for (std::size_t i = 0; i < count; ++i)
            points.push_back(i);
        return points;
    }
    points.push_back(0);
    for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
        const auto begin = std::ptrdiff_t(count * stretch / stretches),
                   end = std::ptrdiff_t(count * (stretch + 1) / stretches);
        for (const std::vector<double>* curve : {&allocated, &reserved}) {
            const auto [low, high] = std::minmax_element(curve->begin() + begin, curve->begin() + end);
            points.push_back(std::size_t(low - curve->begin()));
            points.push_back(std::size_t(high - curve->begin()));
        }
    }
    points.push_back(count - 1);
    std::ranges::sort(points);
    points.erase(std::unique(points.begin(), points.end()), points.end());
    return points;
}

tl::unexpected<Error> badTrace(const JsonReader& trace, std::string message)
{
    return fail("detail.trace", std::move(message), "predict it again", trace.path());
}

Result<std::vector<std::int64_t>> wholeNumbers(const JsonReader& trace, std::string_view key, std::int64_t least,
                                               std::int64_t most)
{
    MEMSCAPE_TRY(array, trace.at(key));
    MEMSCAPE_TRY(numbers, array.numbers());
    std::vector<std::int64_t> whole;
    whole.reserve(numbers.size());
    for (const double number : numbers) {
        if (!(number >= double(least) && number <= double(most)))
            return badTrace(array, fmt::format("{} is out of range", numberText(number)));
        whole.push_back(std::int64_t(number));
    }
    return whole;
}

Result<std::vector<std::string>> texts(const JsonReader& trace, std::string_view key)
{
    MEMSCAPE_TRY(array, trace.at(key));
    MEMSCAPE_TRY(items, array.items());
    std::vector<std::string> all;
    for (const JsonReader& item : items) {
        MEMSCAPE_TRY(text, item.string());
        all.push_back(std::move(text));
    }
    return all;
}

/// [address, size, stream, small, expandable, [[size, requested, block]…]]
Result<AllocatorSegment> segmentFromJson(const JsonReader& item, std::size_t blocks, std::vector<BlockId>& owners)
{
    constexpr double most = 0x1p53;
    MEMSCAPE_TRY(parts, item.items());
    if (parts.size() != 6)
        return badTrace(item, "this is no segment");
    std::array<double, 5> numbers{};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        MEMSCAPE_TRY(number, parts[i].number());
        if (!(number >= 0 && number < most) || (i == 2 && number > 65535))
            return badTrace(parts[i], fmt::format("{} is out of range", numberText(number)));
        numbers[i] = number;
    }
    AllocatorSegment segment{std::uint64_t(numbers[0]), std::int64_t(numbers[1]), std::uint16_t(numbers[2]),
                             numbers[3] != 0,           numbers[4] != 0,          {}};
    MEMSCAPE_TRY(items, parts[5].items());
    std::uint64_t address = segment.address;
    for (const JsonReader& one : items) {
        MEMSCAPE_TRY(block, one.numbers());
        if (block.size() != 3 || !(block[0] >= 1 && block[0] < most) || !(block[1] >= 0 && block[1] < most)
            || !(block[2] >= -1 && block[2] < double(blocks)))
            return badTrace(one, "this is no block of a segment");
        const bool isMapped = block[2] >= 0;
        owners.push_back(isMapped ? BlockId(block[2]) : noBlock);
        AllocatorBlock made;
        made.address = address;
        made.size = std::int64_t(block[0]);
        made.requested = std::int64_t(block[1]);
        made.state = !isMapped         ? BlockState::Unmapped
            : owners.back() == noBlock ? BlockState::Free
                                       : BlockState::Active;
        segment.blocks.push_back(made);
        address += std::uint64_t(made.size);
    }
    return segment;
}

Result<std::shared_ptr<const Recording>> recordingFromJson(const JsonReader& json, std::size_t blocks)
{
    auto made = std::make_shared<Recording>();
    MEMSCAPE_TRY(text, json.string("options"));
    MEMSCAPE_SET(made->options, parseAllocatorOptions(text));
    MEMSCAPE_TRY(segments, json.at("segments"));
    MEMSCAPE_TRY(segmentItems, segments.items());
    for (const JsonReader& item : segmentItems) {
        MEMSCAPE_TRY(segment, segmentFromJson(item, blocks, made->owners));
        made->segments.push_back(std::move(segment));
    }
    MEMSCAPE_TRY(places, json.at("places"));
    MEMSCAPE_TRY(placeItems, places.items());
    for (const JsonReader& item : placeItems) {
        MEMSCAPE_TRY(place, item.numbers());
        if (place.size() != 2 || !(place[0] >= 1 && place[0] < double(blocks)) || !(place[1] >= 0 && place[1] < 0x1p53))
            return badTrace(item, "this is no place of a segment");
        made->places.emplace_back(BlockId(place[0]), std::uint64_t(place[1]));
    }
    std::ranges::sort(made->places);
    return std::shared_ptr<const Recording>(std::move(made));
}

/// Each block is made before it is freed, and freed once.
Result<void> checkLives(const RequestTrace& made, const JsonReader& trace)
{
    std::vector<int> state(made.blocks.size());
    for (const Request& request : made.requests) {
        if (request.kind > RequestKind::Record)
            continue;
        int& now = state[request.block];
        const int wanted = request.kind == RequestKind::Allocate ? 0 : 1;
        if (request.block == noBlock || now != wanted)
            return badTrace(trace, fmt::format("block {} is made or freed twice", request.block));
        now += request.kind != RequestKind::Record;
    }
    return {};
}

} // namespace

Json requestsJson(const RequestTrace& trace)
{
    const std::size_t blocks = trace.blocks.size() - 1;
    Json json = objectWithRoom(13); // those of a detail, too
    json["requests"] = arrayOf(trace.requests.size(), [&](std::size_t i) {
        const Request& request = trace.requests[i];
        return request.kind == RequestKind::Allocate ? std::int64_t(request.block)
            : request.kind == RequestKind::Free      ? -std::int64_t(request.block)
                                                     : std::int64_t(0);
    });
    json["calls"] = callsOf(trace);
    json["bytes"] = arrayOf(blocks, [&](std::size_t i) { return trace.blocks[i + 1].bytes; });
    json["streams"] = arrayOf(blocks, [&](std::size_t i) { return trace.blocks[i + 1].stream; });
    return json;
}

std::vector<Series> requestSeries(const std::vector<double>& allocated, const std::vector<double>& reserved)
{
    std::vector<Series> curves(2);
    for (Series& curve : curves) {
        curve.x.key = "request";
        curve.x.label = "request";
        curve.yUnit = Unit::Byte;
    }
    curves[0].key = curves[0].label = curves[0].yLabel = "reserved";
    curves[1].key = curves[1].label = curves[1].yLabel = "allocated";
    for (const std::size_t point : drawnPoints(allocated, reserved)) {
        for (Series& curve : curves)
            curve.x.values.push_back(double(point + 1));
        curves[0].y.push_back(reserved[point]);
        curves[1].y.push_back(allocated[point]);
    }
    return curves;
}

Json allocatorDetail(const AllocatorAnswer& answer)
{
    const ReservedPeak& peak = answer.replay.reservedPeak;
    Json detail = objectWithRoom(9);
    detail["trace"] = traceJson(answer.asked);
    detail["setting"] = settingJson(answer.asked.setting);
    detail["elsewhere"] = Json::array();
    for (const Elsewhere& other : answer.elsewhere)
        detail["elsewhere"].push_back(elsewhereJson(other));
    detail["peak"] = {{"request", peak.request}, {"reserved", peak.reserved}, {"taken", peak.taken},
                      {"free", peak.free},       {"rounding", peak.rounding}, {"text", answer.peakText}};
    detail["bound"] = answer.asked.peakLive;
    detail["scale"] = answer.asked.divisor;
    return detail;
}

Result<RequestTrace> requestsFromJson(const JsonReader& trace)
{
    RequestTrace made;
    MEMSCAPE_TRY(bytes, wholeNumbers(trace, "bytes", 1, std::int64_t(1) << 53));
    const auto blocks = std::int64_t(bytes.size());
    MEMSCAPE_TRY(names, texts(trace, "name_table"));
    MEMSCAPE_TRY(modules, texts(trace, "module_table"));
    if (names.empty() || modules.empty())
        return badTrace(trace, "a table of names is empty");
    MEMSCAPE_TRY(streams, wholeNumbers(trace, "streams", 0, 65535));
    MEMSCAPE_TRY(categories, wholeNumbers(trace, "categories", 0, std::int64_t(categoryCount) - 1));
    MEMSCAPE_TRY(nameIds, wholeNumbers(trace, "names", 0, std::int64_t(names.size()) - 1));
    MEMSCAPE_TRY(moduleIds, wholeNumbers(trace, "modules", 0, std::int64_t(modules.size()) - 1));
    MEMSCAPE_TRY(requests, wholeNumbers(trace, "requests", -blocks, blocks));
    for (const auto* column : {&streams, &categories, &nameIds, &moduleIds})
        if (column->size() != bytes.size())
            return badTrace(trace, "the columns of blocks have different lengths");
    for (std::size_t i = 0; i < bytes.size(); ++i)
        made.blocks.push_back(
            {bytes[i], NameId(nameIds[i]), ModuleId(moduleIds[i]), std::uint16_t(streams[i]), Category(categories[i])});
    for (const std::int64_t request : requests)
        made.requests.push_back({BlockId(request < 0 ? -request : request),
                                 request < 0 ? RequestKind::Free : RequestKind::Allocate, Phase::Setup});
    made.names = std::move(names);
    made.modules = std::move(modules);
    MEMSCAPE_TRY(calls, trace.at("calls"));
    MEMSCAPE_TRY(callItems, calls.items());
    for (const JsonReader& item : callItems) {
        MEMSCAPE_TRY(call, item.numbers());
        const bool isCall = call.size() == 3 && call[0] >= 0 && call[0] < double(made.requests.size()) && call[1] >= 2
            && call[1] < double(requestKindCount) && call[2] >= 0 && call[2] <= double(blocks);
        if (!isCall)
            return badTrace(item, "this is no call");
        made.requests[std::size_t(call[0])] = {BlockId(call[2]), RequestKind(int(call[1])), Phase::Setup};
    }
    MEMSCAPE_TRY(phases, trace.at("phases"));
    MEMSCAPE_TRY(phaseItems, phases.items());
    for (const JsonReader& item : phaseItems) {
        MEMSCAPE_TRY(phase, item.numbers());
        if (phase.size() != 2 || !(phase[0] >= 0) || !(phase[1] >= 0 && phase[1] < double(phaseCount)))
            return badTrace(item, "this is no phase");
        for (std::size_t i = std::size_t(phase[0]); i < made.requests.size(); ++i)
            made.requests[i].phase = Phase(int(phase[1]));
    }
    MEMSCAPE_CHECK(checkLives(made, trace));
    if (trace.has("recording")) {
        MEMSCAPE_TRY(json, trace.at("recording"));
        MEMSCAPE_SET(made.recording, recordingFromJson(json, made.blocks.size()));
    }
    return made;
}

} // namespace memscape
