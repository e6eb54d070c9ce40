// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/snapshot_assembly.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

using Kind = PickleObjects::Kind;

constexpr std::size_t mostDevices = 4096;
constexpr int deepestJson = 16;
constexpr std::size_t largestJson = 100'000; // values

class Assembly
{
public:
    explicit Assembly(PickleObjects& objects)
        : m_objects(objects)
        , m_snapshot(objects.snapshot())
    { }

    Result<void> make(PickleValue top);

private:
    Result<void> segments(PickleValue list);
    Result<SnapshotSegment> segment(PickleValue dictionary, LargeArray<SnapshotBlock>& blocks);
    Result<void> segmentFields(PickleValue dictionary, SnapshotSegment& segment);
    Result<void> blocksOf(PickleValue list, SnapshotSegment& segment, LargeArray<SnapshotBlock>& blocks);
    Result<void> traces(PickleValue list);
    Result<void> annotations(PickleValue list);
    Result<void> run(PickleValue dictionary);
    Result<void> labels(PickleValue list, SnapshotRun& run);
    Result<void> steps(PickleValue list, SnapshotRun& run);
    Result<void> checkLabels();
    Result<Json> json(PickleValue value, int depth);
    std::string text(PickleValue dictionary, std::string_view key) const;
    std::optional<PickleValue> find(PickleValue dictionary, std::string_view key) const;
    Result<std::span<const PickleValue>> list(PickleValue value, std::string_view what) const;
    tl::unexpected<Error> expected(std::string_view wanted, PickleValue found, std::string what) const
    {
        return fail("snapshot.type", fmt::format("expected {}, found {}", wanted, found.kindText()),
                    "write the snapshot again with torch.cuda.memory._dump_snapshot()", std::move(what));
    }

    PickleObjects& m_objects;
    Snapshot& m_snapshot;
    std::size_t m_jsonValues = 0;
};

/// The place in front of the one inside it.
template <typename T> Result<T> at(Result<T> result, const std::string& place)
{
    if (!result)
        result.error().place = result.error().place.empty() ? place : place + ": " + result.error().place;
    return result;
}

std::optional<PickleValue> Assembly::find(PickleValue dictionary, std::string_view key) const
{
    std::optional<PickleValue> found;
    const auto pairs = m_objects.items(dictionary);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
        if (pairs[i].is(PickleTag::Text) && m_snapshot.texts[pairs[i].text()] == key)
            found = pairs[i + 1];
    }
    return found;
}

std::string Assembly::text(PickleValue dictionary, std::string_view key) const
{
    const auto value = find(dictionary, key);
    return value && value->is(PickleTag::Text) ? std::string(m_snapshot.texts[value->text()]) : std::string();
}

Result<std::span<const PickleValue>> Assembly::list(PickleValue value, std::string_view what) const
{
    if (!value.is(PickleTag::Object) || m_objects.isDictionary(value))
        return expected("a list", value, std::string(what));
    if (const Kind kind = m_objects.kind(value); kind == Kind::Stack || kind == Kind::Events)
        return fail("snapshot.type", "expected a list of other things", "", std::string(what));
    return m_objects.items(value);
}

Result<void> Assembly::make(PickleValue top)
{
    const std::string hint = "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\") writes one";
    if (!top.is(PickleTag::Object))
        return fail("snapshot.format", fmt::format("this pickle is {}, not a PyTorch memory snapshot", top.kindText()),
                    hint);
    if (m_objects.kind(top) == Kind::List) { // memory_snapshot() of 1.13: segments only
        m_snapshot.notes.push_back("The file has segments only and no trace: it shows one moment.");
        return segments(top);
    }
    const auto segments = m_objects.find(top, SnapshotKey::Segments);
    if (!segments)
        return fail("snapshot.format", "this is a pickle, but not a PyTorch memory snapshot: it has no segments", hint);
    MEMSCAPE_CHECK(this->segments(*segments));
    if (const auto traces = m_objects.find(top, SnapshotKey::Traces))
        MEMSCAPE_CHECK(this->traces(*traces));
    if (m_snapshot.devices().empty() || m_snapshot.events.size() == 0)
        m_snapshot.notes.push_back("The file has no trace: torch.cuda.memory._record_memory_history() was not called "
                                   "before, so it shows one moment.");
    if (const auto settings = m_objects.find(top, SnapshotKey::Settings))
        MEMSCAPE_SET(m_snapshot.settings, at(this->json(*settings, 0), "allocator_settings"));
    if (const auto annotations = m_objects.find(top, SnapshotKey::Annotations))
        MEMSCAPE_CHECK(this->annotations(*annotations));
    if (const auto run = m_objects.find(top, SnapshotKey::Run))
        MEMSCAPE_CHECK(this->run(*run));
    return checkLabels();
}

Result<void> Assembly::segments(PickleValue value)
{
    MEMSCAPE_TRY(items, list(value, "segments"));
    LargeArray<SnapshotBlock> blocks; // in the order of the segments
    blocks.reserve(m_snapshot.blocks.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
        MEMSCAPE_TRY(segment, at(this->segment(items[i], blocks), fmt::format("segments[{}]", i)));
        m_snapshot.segments.push_back(segment);
    }
    m_snapshot.blocks = std::move(blocks);
    std::ranges::sort(m_snapshot.segments, {},
                      [](const SnapshotSegment& segment) { return std::pair(segment.device, segment.address); });
    std::int64_t total = 0;
    for (std::size_t i = 0; i < m_snapshot.segments.size(); ++i) {
        const SnapshotSegment& segment = m_snapshot.segments[i];
        if (__builtin_add_overflow(total, segment.size, &total))
            return fail("snapshot.value", "the segments have more than 2^63 bytes", "the file is damaged", "segments");
        if (i == 0 || segment.device != m_snapshot.segments[i - 1].device)
            continue;
        const SnapshotSegment& previous = m_snapshot.segments[i - 1];
        if (previous.address + std::uint64_t(previous.size) > segment.address)
            return fail("snapshot.value", fmt::format("two segments lie over each other at 0x{:x}", segment.address),
                        "the file is damaged", "segments");
    }
    return {};
}

Result<SnapshotSegment> Assembly::segment(PickleValue dictionary, LargeArray<SnapshotBlock>& blocks)
{
    if (!m_objects.isDictionary(dictionary) || m_objects.kind(dictionary) != Kind::Dictionary)
        return expected("a segment", dictionary, "");
    SnapshotSegment segment;
    MEMSCAPE_CHECK(segmentFields(dictionary, segment));
    segment.firstBlock = blocks.size();
    if (const auto list = m_objects.find(dictionary, SnapshotKey::Blocks))
        MEMSCAPE_CHECK(blocksOf(*list, segment, blocks));
    segment.blockCount = blocks.size() - segment.firstBlock;
    return segment;
}

Result<void> Assembly::segmentFields(PickleValue dictionary, SnapshotSegment& segment)
{
    const auto address = m_objects.find(dictionary, SnapshotKey::Address);
    const auto size = m_objects.find(dictionary, SnapshotKey::TotalSize);
    if (!address || !size)
        return fail("snapshot.value", "a segment without address or total_size", "the file is damaged");
    MEMSCAPE_SET(segment.address, m_objects.address(*address, "address"));
    MEMSCAPE_SET(segment.size, m_objects.bytes(*size, "total_size"));
    if (const auto device = m_objects.find(dictionary, SnapshotKey::Device)) {
        MEMSCAPE_TRY(index, m_objects.integer(*device, "device"));
        if (index < 0 || index >= std::int64_t(mostDevices))
            return fail("snapshot.value", fmt::format("device {}", index), "the file is damaged", "device");
        segment.device = std::uint32_t(index);
    }
    if (const auto stream = m_objects.find(dictionary, SnapshotKey::Stream))
        MEMSCAPE_SET(segment.stream, m_objects.stream(*stream));
    if (const auto frames = m_objects.find(dictionary, SnapshotKey::Frames))
        MEMSCAPE_SET(segment.stack, m_objects.stack(*frames));
    if (const auto type = m_objects.find(dictionary, SnapshotKey::Type))
        segment.isSmall = type->is(PickleTag::Text) && SnapshotKey(type->text()) == SnapshotKey::Small;
    if (const auto expandable = m_objects.find(dictionary, SnapshotKey::IsExpandable))
        segment.isExpandable = expandable->is(PickleTag::Boolean) && expandable->bits != 0;
    if (const auto pool = m_objects.find(dictionary, SnapshotKey::Pool); pool && pool->is(PickleTag::Object)) {
        const auto ids = m_objects.items(*pool);
        for (std::size_t i = 0; i < std::min<std::size_t>(2, ids.size()); ++i)
            segment.pool[i] = ids[i].is(PickleTag::Integer) ? ids[i].integer() : 0;
    }
    return {};
}

Result<void> Assembly::blocksOf(PickleValue value, SnapshotSegment& segment, LargeArray<SnapshotBlock>& blocks)
{
    MEMSCAPE_TRY(items, list(value, "blocks"));
    std::uint64_t next = segment.address; // old files have no addresses: the blocks tile the segment
    const std::uint64_t end = segment.address + std::uint64_t(segment.size);
    for (std::size_t i = 0; i < items.size(); ++i) {
        const std::string place = fmt::format("blocks[{}]", i);
        if (!m_objects.isDictionary(items[i]) || m_objects.kind(items[i]) != Kind::Block)
            return fail("snapshot.type", "expected a block with its state", "the file is damaged", place);
        SnapshotBlock block = m_snapshot.blocks[m_objects.index(items[i])];
        if (block.size < 0)
            return fail("snapshot.value", "a block without size", "the file is damaged", place);
        if (block.address == PickleObjects::noAddress)
            block.address = next;
        if (block.address < next || block.address > end || std::uint64_t(block.size) > end - block.address)
            return fail("snapshot.value", "the block is not within its segment, or over the one before it",
                        "the file is damaged", place);
        if (block.requested < 0)
            block.requested = block.state == SnapshotBlockState::Free ? 0 : block.size;
        next = block.address + std::uint64_t(block.size);
        blocks.push_back(block);
    }
    return {};
}

Result<void> Assembly::traces(PickleValue value)
{
    MEMSCAPE_TRY(items, list(value, "device_traces"));
    if (items.size() > mostDevices)
        return fail("snapshot.value", fmt::format("{} devices", items.size()), "the file is damaged", "device_traces");
    if (m_snapshot.events.size() >= 0xfffffff0)
        return fail("pickle.limit", "more than four billion events", "record fewer: max_entries");
    for (std::size_t device = 0; device < items.size(); ++device) {
        const std::string place = fmt::format("device_traces[{}]", device);
        if (!items[device].is(PickleTag::Object))
            return expected("a list of events", items[device], place);
        const Kind kind = m_objects.kind(items[device]);
        if (kind == Kind::EmptyList) {
            m_snapshot.traces.push_back({});
            continue;
        }
        if (kind != Kind::Events)
            return fail("snapshot.type", "expected a list of events, found other things in the list",
                        "write the snapshot again with torch.cuda.memory._dump_snapshot()", place);
        const auto runs = m_objects.runs(items[device]);
        if (runs.size() == 1) {
            m_snapshot.traces.push_back({runs[0].first, std::size_t(runs[0].first) + runs[0].count});
            continue;
        }
        // Events that are shared, or written in another order: each has its own row here.
        const std::size_t first = m_snapshot.events.size();
        std::uint64_t count = 0;
        for (const auto& run : runs)
            count += run.count;
        if (count + first >= 0xfffffff0)
            return fail("pickle.limit", "more than four billion events", "record fewer: max_entries", place);
        for (const auto& run : runs) {
            for (std::uint32_t i = 0; i < run.count; ++i)
                m_snapshot.events.append(m_snapshot.events[run.first + i]);
        }
        m_snapshot.traces.push_back({first, m_snapshot.events.size()});
    }
    return {};
}

Result<void> Assembly::annotations(PickleValue value)
{
    MEMSCAPE_TRY(items, list(value, "external_annotations"));
    for (const PickleValue item : items) {
        if (!m_objects.isDictionary(item))
            return expected("an annotation", item, "external_annotations");
        SnapshotAnnotation annotation;
        if (const auto time = m_objects.find(item, SnapshotKey::Time); time && time->is(PickleTag::Integer))
            annotation.time = time->integer();
        if (const auto device = m_objects.find(item, SnapshotKey::Device); device && device->is(PickleTag::Integer))
            annotation.device = std::uint32_t(std::clamp<std::int64_t>(device->integer(), 0, mostDevices));
        if (const auto name = m_objects.find(item, SnapshotKey::Name); name && name->is(PickleTag::Text))
            annotation.name = name->text();
        if (const auto stage = m_objects.find(item, SnapshotKey::Stage); stage && stage->is(PickleTag::Text))
            annotation.stage = stage->text();
        m_snapshot.annotations.push_back(annotation);
    }
    return {};
}

Result<void> Assembly::run(PickleValue dictionary)
{
    if (!m_objects.isDictionary(dictionary))
        return expected("a dictionary", dictionary, "memscape");
    const auto version = find(dictionary, "version");
    if (!version || !version->is(PickleTag::Integer))
        return fail("snapshot.value", "a run file without version", "record it again", "memscape.version");
    if (version->integer() > 1)
        return fail("snapshot.version", "this run was recorded by a newer memscape_probe", "update Memscape",
                    "memscape.version");
    SnapshotRun run;
    run.torch = text(dictionary, "torch");
    run.python = text(dictionary, "python");
    run.device = text(dictionary, "device");
    if (const auto error = find(dictionary, "error"); error && error->is(PickleTag::Text))
        run.error = std::string(m_snapshot.texts[error->text()]);
    run.labels.emplace_back();
    if (const auto value = find(dictionary, "labels"))
        MEMSCAPE_CHECK(labels(*value, run));
    if (const auto value = find(dictionary, "steps"))
        MEMSCAPE_CHECK(steps(*value, run));
    if (const auto value = find(dictionary, "notes")) {
        MEMSCAPE_TRY(items, list(*value, "memscape.notes"));
        for (const PickleValue item : items) {
            if (item.is(PickleTag::Text))
                run.notes.emplace_back(m_snapshot.texts[item.text()]);
        }
    }
    m_snapshot.run = std::move(run);
    return {};
}

Result<void> Assembly::labels(PickleValue value, SnapshotRun& run)
{
    MEMSCAPE_TRY(items, list(value, "memscape.labels"));
    run.labels.reserve(items.size() + 1);
    for (std::size_t i = 0; i < items.size(); ++i) {
        MEMSCAPE_TRY(label, at(m_objects.labelOf(items[i]), fmt::format("memscape.labels[{}]", i)));
        run.labels.push_back(label);
    }
    return {};
}

Result<void> Assembly::steps(PickleValue value, SnapshotRun& run)
{
    MEMSCAPE_TRY(items, list(value, "memscape.steps"));
    const std::size_t events = m_snapshot.traces.empty() ? 0 : m_snapshot.traces[0].size();
    for (std::size_t i = 0; i < items.size(); ++i) {
        const std::string place = fmt::format("memscape.steps[{}]", i);
        std::int64_t fields[3] = {std::int64_t(i), -1, -1};
        constexpr std::string_view keys[3] = {"index", "first", "last"};
        for (int k = 0; k < 3; ++k) {
            if (const auto field = find(items[i], keys[k]))
                MEMSCAPE_SET(fields[k], at(m_objects.integer(*field, keys[k]), place));
        }
        const std::int64_t before = run.steps.empty() ? 0 : std::int64_t(run.steps.back().last);
        if (fields[1] < before || fields[2] < fields[1] || std::size_t(fields[2]) > events)
            return fail("snapshot.value",
                        fmt::format("a step of the events {} to {} of {}", fields[1], fields[2], events),
                        "steps are in order and within the trace", place);
        run.steps.push_back({fields[0], std::size_t(fields[1]), std::size_t(fields[2])});
    }
    return {};
}

Result<void> Assembly::checkLabels()
{
    const std::size_t labels = m_snapshot.run ? m_snapshot.run->labels.size() : 1;
    for (std::size_t i = 0; m_snapshot.events.hasLabels() && i < m_snapshot.events.size(); ++i) {
        if (m_snapshot.events.label(i) >= labels)
            return fail("snapshot.value", fmt::format("label {} of {}", m_snapshot.events.label(i) - 1, labels - 1),
                        "the file is damaged", fmt::format("event {}", i));
    }
    return {};
}

Result<Json> Assembly::json(PickleValue value, int depth)
{
    if (depth > deepestJson || ++m_jsonValues > largestJson)
        return fail("pickle.limit", "nested too deeply, or too long", "the file is damaged");
    switch (value.tag) {
    case PickleTag::Boolean: return Json(value.bits != 0);
    case PickleTag::Integer: return Json(value.integer());
    case PickleTag::Real: return jsonNumber(value.real());
    case PickleTag::Text: return Json(std::string(m_snapshot.texts[value.text()]));
    case PickleTag::Object: break;
    default: return Json();
    }
    const Kind kind = m_objects.kind(value);
    const bool isObject = m_objects.isDictionary(value);
    Json json = isObject ? Json::object() : Json::array();
    const auto items = m_objects.items(value);
    for (std::size_t i = 0; i < items.size(); i += isObject ? 2 : 1) {
        MEMSCAPE_TRY(inner, this->json(items[isObject ? i + 1 : i], depth + 1));
        if (!isObject)
            json.push_back(std::move(inner));
        else if (items[i].is(PickleTag::Text))
            json[std::string(m_snapshot.texts[items[i].text()])] = std::move(inner);
    }
    return kind == Kind::Stack || kind == Kind::Events ? Json() : json;
}

} // namespace

Result<Snapshot> assembleSnapshot(PickleObjects& objects, PickleValue top)
{
    MEMSCAPE_CHECK(Assembly(objects).make(top));
    if (objects.snapshot().streams.empty())
        objects.snapshot().streams.push_back(0);
    return std::move(objects.snapshot());
}

} // namespace memscape
