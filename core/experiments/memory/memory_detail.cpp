// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/memory/memory_detail.h"

#include "core/base/number.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

namespace memscape {

namespace {

Json phaseJson(const Event& event, std::size_t begin, std::size_t end, std::size_t microBatch)
{
    return {{"key", phaseText(event.phase)},
            {"label", phaseText(event.phase)},
            {"begin", begin},
            {"end", end - 1},
            {"micro_batch", microBatch}};
}

/// More micro-batches than this have no room of their own on any screen.
constexpr std::size_t mostTimesListed = 1024;

/// Each phase of each micro-batch; of very many that are alike the first, the last and one entry for those between.
Json phasesJson(const Trace& trace)
{
    struct Stretch
    {
        std::size_t begin, end;
    };
    const auto& events = trace.events();
    const auto stretchesOf = [&](std::size_t begin, std::size_t last) {
        std::vector<Stretch> stretches;
        while (begin < last) {
            std::size_t end = begin + 1;
            while (end < last && events[end].phase == events[begin].phase
                   && events[end].microBatch == events[begin].microBatch)
                ++end;
            stretches.push_back({begin, end});
            begin = end;
        }
        return stretches;
    };
    Json phases = Json::array();
    const auto add = [&](const std::vector<Stretch>& stretches, std::size_t moved, std::size_t later) {
        for (const auto& [begin, end] : stretches)
            phases.push_back(phaseJson(events[begin], begin + moved, end + moved, events[begin].microBatch + later));
    };
    const Repetition& repetition = trace.repetition();
    if (repetition.times == 1) {
        add(stretchesOf(trace.setupEvents(), events.size()), 0, 0);
        return phases;
    }
    const std::size_t length = repetition.length(), times = repetition.times;
    const std::vector<Stretch> repeated = stretchesOf(repetition.first, repetition.last);
    add(stretchesOf(trace.setupEvents(), repetition.first), 0, 0);
    const bool isLong = times > mostTimesListed;
    for (std::size_t time = 0; time < (isLong ? 1 : times); ++time)
        add(repeated, time * length, time);
    if (isLong) {
        const std::size_t micro = events[repetition.first].microBatch;
        phases.push_back({{"key", "repeated"},
                          {"label", fmt::format("micro-batches {} to {}", micro + 2, micro + times - 1)},
                          {"begin", repetition.first + length},
                          {"end", repetition.first + (times - 1) * length - 1},
                          {"micro_batch", 0}});
        add(repeated, (times - 1) * length, times - 1);
    }
    add(stretchesOf(repetition.last, events.size()), (times - 1) * length, 0);
    return phases;
}

Json categoriesJson(const std::vector<Moment>& line)
{
    Json categories = Json::array();
    for (std::size_t i = 0; i < categoryCount; ++i) {
        Json bytes = Json::array();
        bool any = false;
        for (const Moment& moment : line) {
            bytes.push_back(moment.categories[i]);
            any = any || moment.categories[i] != 0;
        }
        if (any) {
            categories.push_back(
                {{"key", categoryKey(Category(i))}, {"label", categoryText(Category(i))}, {"bytes", std::move(bytes)}});
        }
    }
    return categories;
}

constexpr std::size_t mostGroups = 60; ///< of a moment's list; the others are one entry

struct LiveKey
{
    Category category;
    ModuleId module;
    NameId name;
    bool operator<(const LiveKey& other) const
    {
        return std::tie(category, module, name) < std::tie(other.category, other.module, other.name);
    }
};

struct Live
{
    LiveKey key;
    std::int64_t bytes = 0;
    std::size_t count = 0;
};

/// For each module, the first one of its kind.
std::vector<ModuleId> firstOfKind(const Trace& trace)
{
    std::unordered_map<std::string, ModuleId> kinds;
    std::vector<ModuleId> first;
    for (const std::string& path : trace.modules())
        first.push_back(kinds.try_emplace(moduleKind(path), ModuleId(first.size())).first->second);
    return first;
}

/// Modules of one kind are summed ("layers.*.mlp") where `kinds` are given, as in lists; a tree keeps each apart.
std::vector<Live> liveGroups(const Trace& trace, std::size_t moment, const std::vector<ModuleId>& kinds = {})
{
    std::map<LiveKey, std::pair<std::int64_t, std::size_t>> sums;
    for (const BlockId block : liveAt(trace, moment)) {
        const Event& event = trace.allocation(block);
        const ModuleId module = kinds.empty() ? event.module : kinds[event.module];
        auto& [bytes, count] = sums[{event.category, module, event.name}];
        bytes += event.bytes;
        ++count;
    }
    std::vector<Live> groups;
    for (const auto& [key, sum] : sums)
        groups.push_back({key, sum.first, sum.second});
    std::stable_sort(groups.begin(), groups.end(), [](const Live& a, const Live& b) { return a.bytes > b.bytes; });
    return groups;
}

struct Node
{
    std::int64_t bytes = 0;
    Category category = Category::Unknown;
    std::map<std::string_view, Node> children; ///< by names of the trace
};

/// Numbered modules inside numbered modules are the experts of a layer: hundreds, all alike.
constexpr std::string_view lastNumber = "15", furtherNumbers = "16 and on";

bool isNumber(std::string_view name)
{
    return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool isFurther(std::string_view number)
{
    return number.size() != lastNumber.size() ? number.size() > lastNumber.size() : number > lastNumber;
}

Node& descend(Node& root, std::string_view path, std::int64_t bytes)
{
    Node* node = &root;
    node->bytes += bytes;
    bool isNumbered = false;
    for (std::size_t begin = 0; !path.empty() && begin <= path.size();) {
        const std::size_t end = std::min(path.find('.', begin), path.size());
        std::string_view name = path.substr(begin, end - begin);
        if (isNumber(name)) {
            if (isNumbered && isFurther(name))
                name = furtherNumbers;
            isNumbered = true;
        }
        node = &node->children[name];
        node->bytes += bytes;
        begin = end + 1;
    }
    return *node;
}

Json nodeJson(std::string_view name, const Node& node)
{
    Json json = objectWithRoom(3);
    json.emplace("name", name);
    json.emplace("bytes", node.bytes);
    if (node.children.empty()) {
        json.emplace("category", categoryKey(node.category));
        return json;
    }
    std::vector<const std::pair<const std::string_view, Node>*> sorted;
    sorted.reserve(node.children.size());
    for (const auto& child : node.children)
        sorted.push_back(&child);
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
        if (a->second.bytes != b->second.bytes)
            return a->second.bytes > b->second.bytes;
        return a->first.size() < b->first.size(); // layer 2 before layer 10
    });
    Json::array_t children;
    children.reserve(sorted.size());
    for (const auto* child : sorted)
        children.push_back(nodeJson(child->first, child->second));
    json.emplace("children", std::move(children));
    return json;
}

Json momentJson(const Trace& trace, const Moment& moment, const std::vector<ModuleId>& kinds)
{
    Json json{{"event", moment.event}, {"allocated", moment.bytes}, {"live", Json::array()}};
    if (trace.events().empty())
        return json;
    const Event& event = trace.eventAt(moment.event);
    json["phase"] = phaseText(event.phase);
    json["micro_batch"] = moment.microBatch;
    json["module"] = trace.modules()[event.module];
    json["name"] = trace.names()[event.name];
    const auto groups = liveGroups(trace, moment.event, kinds);
    Live rest;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        if (i >= mostGroups) {
            rest.bytes += groups[i].bytes;
            rest.count += groups[i].count;
            continue;
        }
        json["live"].push_back({{"category", categoryKey(groups[i].key.category)},
                                {"module",
                                 groups[i].count > 1 ? moduleKind(trace.modules()[groups[i].key.module])
                                                     : trace.modules()[groups[i].key.module]},
                                {"name", trace.names()[groups[i].key.name]},
                                {"bytes", groups[i].bytes},
                                {"count", groups[i].count}});
    }
    if (rest.count > 0)
        json["rest"] = {{"bytes", rest.bytes}, {"count", rest.count}};
    return json;
}

Json phasePeaksJson(const Trace& trace, const std::vector<ModuleId>& kinds)
{
    Json peaks = Json::array();
    for (const Phase phase : {Phase::Forward, Phase::Backward, Phase::Optimizer}) {
        if (const auto peak = peakOf(trace, phase))
            peaks.push_back(momentJson(trace, *peak, kinds));
    }
    return peaks;
}

Json treeJson(const Trace& trace, const Moment& moment)
{
    Node root;
    for (const Live& live : liveGroups(trace, moment.event)) {
        Node& module = descend(root, trace.modules()[live.key.module], live.bytes);
        const std::string& name = trace.names()[live.key.name];
        Node& leaf = module.children[name.empty() ? categoryText(live.key.category) : name];
        leaf.bytes += live.bytes;
        leaf.category = live.key.category;
    }
    return nodeJson("", root);
}

} // namespace

Json objectWithRoom(std::size_t members)
{
    Json json = Json::object();
    json.get_ref<Json::object_t&>().reserve(members);
    return json;
}

std::string categoryKey(Category category)
{
    std::string key(categoryText(category));
    std::replace_if(
        key.begin(), key.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
    return key;
}

std::optional<std::int64_t> capacityOf(const Device& device)
{
    const MemoryLevel* dram = device.dram();
    if (!dram || !dram->capacity.known() || dram->capacity.value <= 0 || dram->capacity.value > 0x1p60)
        return std::nullopt;
    const double gpus = device.gpuMemory.known() ? device.gpuMemory.value : dram->capacity.value;
    return static_cast<std::int64_t>(std::min(gpus, dram->capacity.value));
}

Json capacityJson(const Device& device, std::int64_t context)
{
    const auto bytes = capacityOf(device);
    if (!bytes)
        return {};
    Json capacity{{"bytes", *bytes}, {"available", *bytes - context}, {"label", device.name}};
    if (device.sharesHostMemory && !device.gpuMemory.known())
        capacity["shared"] = true;
    return capacity;
}

Json modelJson(const ModelDescription& model)
{
    return {{"name", model.name},
            {"title", model.title},
            {"family", familyText(model.family)},
            {"architecture", model.architecture},
            {"layers", model.layers},
            {"positions", model.maxPositions}, // 0: as many as one likes
            {"source", model.source},
            {"assumptions", model.assumptions},
            {"caution", model.caution}};
}

std::string_view fitText(bool fits, std::int64_t needed, std::optional<std::int64_t> capacity)
{
    if (!fits)
        return "does not fit";
    return capacity && double(needed) * (1 + fitMargin) > double(*capacity) ? "tight" : "fits";
}

Json partsJson(const Moment& moment, std::int64_t reserved, std::int64_t context)
{
    Json parts = Json::array();
    for (std::size_t i = 0; i < categoryCount; ++i) {
        if (moment.categories[i] != 0) {
            parts.push_back({{"key", categoryKey(Category(i))},
                             {"label", categoryText(Category(i))},
                             {"bytes", moment.categories[i]}});
        }
    }
    parts.push_back({{"key", "reserved_unused"}, {"label", "reserved, unused"}, {"bytes", reserved - moment.bytes}});
    parts.push_back({{"key", "context"}, {"label", "device context"}, {"bytes", context}});
    return parts;
}

Json momentJson(const Trace& trace, const Moment& moment)
{
    return momentJson(trace, moment, firstOfKind(trace));
}

void addPeaks(Json& detail, const Trace& trace, const Moment& peak)
{
    const std::vector<ModuleId> kinds = firstOfKind(trace);
    detail["peak"] = momentJson(trace, peak, kinds);
    detail["phase_peaks"] = phasePeaksJson(trace, kinds);
    detail["tree"] = treeJson(trace, peak);
}

Json outOfMemoryJson(const Trace& trace, const OutOfMemory& refused)
{
    const Event& event = trace.eventAt(refused.event);
    const std::string& module = trace.modules()[event.module];
    const std::string& name = trace.names()[event.name];
    return {{"event", refused.event},
            {"phase", phaseText(event.phase)},
            {"module", module},
            {"name", name},
            {"bytes", event.bytes},
            {"allocated", refused.before.allocated},
            {"reserved", refused.before.reserved},
            {"explanation",
             fmt::format("{} · {}{}{} {}", phaseText(event.phase), module, module.empty() ? "" : " · ", name,
                         quantityText(double(event.bytes), Unit::Byte))}};
}

Json timelineJson(const Trace& trace, const std::vector<Moment>& line, const Moment& peak,
                  std::optional<std::int64_t> available, const std::optional<OutOfMemory>& outOfMemory)
{
    Json events = Json::array();
    for (const Moment& moment : line)
        events.push_back(moment.event);
    return {{"event", std::move(events)},
            {"categories", categoriesJson(line)},
            {"phases", phasesJson(trace)},
            {"peak", peak.event},
            {"capacity", available ? Json(*available) : Json()},
            {"out_of_memory", outOfMemory ? outOfMemoryJson(trace, *outOfMemory) : Json()}};
}

Series timelineSeries(const std::vector<Moment>& line)
{
    Series series;
    series.key = "timeline";
    series.label = "allocated";
    series.x.key = "event";
    series.x.label = "event of the step";
    series.yLabel = "allocated";
    series.yUnit = Unit::Byte;
    for (const Moment& moment : line) {
        series.x.values.push_back(double(moment.event));
        series.y.push_back(double(moment.bytes));
    }
    return series;
}

} // namespace memscape
