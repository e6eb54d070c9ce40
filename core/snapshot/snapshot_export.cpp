// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/snapshot_export.h"

#include "core/base/cancellation.h"
#include "core/snapshot/pickle_writer.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::uint32_t unwritten = ~std::uint32_t(0);

class MemoryViz
{
public:
    MemoryViz(const SnapshotDevice& device, const EventRange& range, const PickleWriter::Write& write)
        : m_device(device)
        , m_snapshot(device.snapshot())
        , m_range(range)
        , m_writer(write)
        , m_stacks(m_snapshot.stacks.size(), unwritten)
        , m_frames(m_snapshot.frames.size(), unwritten)
    { }
    bool write();

private:
    bool segments();
    void beginSegment(const LaidSegment& segment, std::int64_t allocated, std::int64_t active, std::int64_t requested);
    void block(std::uint64_t address, std::int64_t size, std::int64_t requested, std::string_view state, StackId stack);
    void blocksOf(const SnapshotLayout& layout, const LaidSegment& segment);
    bool trace();
    void event(const SnapshotEvent& event);
    void stack(StackId stack);
    void number(std::string_view key, std::int64_t value)
    {
        m_writer.key(key);
        m_writer.integer(value);
    }

    const SnapshotDevice& m_device;
    const Snapshot& m_snapshot;
    EventRange m_range;
    PickleWriter m_writer;
    std::vector<std::uint32_t> m_stacks, m_frames; ///< their slots
};

bool MemoryViz::write()
{
    m_writer.beginDictionary();
    m_writer.key("segments");
    if (!segments())
        return false;
    m_writer.key("device_traces");
    if (!trace())
        return false;
    m_writer.key("allocator_settings");
    m_writer.json(m_snapshot.settings.is_object() ? m_snapshot.settings : Json::object());
    m_writer.key("external_annotations");
    m_writer.beginList();
    for (const SnapshotAnnotation& annotation : m_snapshot.annotations) {
        if (annotation.device != m_device.device())
            continue;
        m_writer.beginDictionary();
        number("device", annotation.device);
        number("time_us", annotation.time);
        m_writer.key("stage");
        m_writer.text(m_snapshot.texts[annotation.stage]);
        m_writer.key("name");
        m_writer.text(m_snapshot.texts[annotation.name]);
        m_writer.endDictionary();
    }
    m_writer.endList();
    m_writer.endDictionary();
    return m_writer.finish();
}

bool MemoryViz::segments()
{
    m_writer.beginList();
    const SnapshotLayout layout = m_device.lifetimes().layoutAt(m_range.last);
    for (const LaidSegment& segment : layout.segments) {
        blocksOf(layout, segment);
        if (!m_writer.flushIfLarge())
            return false;
    }
    m_writer.endList();
    return true;
}

void MemoryViz::blocksOf(const SnapshotLayout& layout, const LaidSegment& segment)
{
    const std::span<const LaidBlock> blocks{layout.blocks.data() + segment.firstBlock, segment.blockCount};
    const Lifetimes& lifetimes = m_device.lifetimes();
    std::int64_t allocated = 0, active = 0, requested = 0;
    for (const LaidBlock& block : blocks) {
        if (block.isFree())
            continue;
        active += block.size;
        allocated += block.isPending ? 0 : block.size;
        requested += lifetimes[block.lifetime].requested;
    }
    beginSegment(segment, allocated, active, requested);
    for (const LaidBlock& block : blocks) {
        if (block.isFree())
            this->block(block.address, block.size, 0, "inactive", noStack);
        else
            this->block(block.address, block.size, lifetimes[block.lifetime].requested,
                        block.isPending ? "active_pending_free" : "active_allocated", lifetimes[block.lifetime].stack);
    }
    m_writer.endList();
    m_writer.endDictionary();
}

void MemoryViz::beginSegment(const LaidSegment& segment, std::int64_t allocated, std::int64_t active,
                             std::int64_t requested)
{
    const auto& all = m_snapshot.segments; // the pool is in the file alone
    const auto known = std::ranges::find_if(all, [&](const SnapshotSegment& one) {
        return one.device == m_device.device() && one.address == segment.address;
    });
    m_writer.beginDictionary();
    number("device", m_device.device());
    number("address", std::int64_t(segment.address));
    number("total_size", segment.size);
    number("allocated_size", allocated);
    number("active_size", active);
    number("requested_size", requested);
    number("stream", m_snapshot.streams[segment.stream]);
    m_writer.key("segment_type");
    m_writer.text(segment.isSmall ? "small" : "large");
    m_writer.key("segment_pool_id");
    m_writer.pair(known == all.end() ? 0 : known->pool[0], known == all.end() ? 0 : known->pool[1]);
    m_writer.key("is_expandable");
    m_writer.boolean(segment.isExpandable);
    m_writer.key("frames");
    stack(segment.stack);
    m_writer.key("blocks");
    m_writer.beginList();
}

void MemoryViz::block(std::uint64_t address, std::int64_t size, std::int64_t requested, std::string_view state,
                      StackId frames)
{
    m_writer.beginDictionary();
    number("address", std::int64_t(address));
    number("size", size);
    number("requested_size", requested);
    m_writer.key("state");
    m_writer.text(state);
    m_writer.key("frames");
    stack(frames);
    m_writer.endDictionary();
}

bool MemoryViz::trace()
{
    m_writer.beginList();
    for (std::uint32_t other = 0; other < m_device.device(); ++other) {
        m_writer.beginList();
        m_writer.endList();
    }
    m_writer.beginList();
    for (std::size_t i = m_range.first; i < m_range.last; ++i) {
        if (const SnapshotEvent entry = m_device.lifetimes().event(i); entry.action != SnapshotAction::Other)
            event(entry);
        if (i % 1000 == 999)
            m_writer.endBatch();
        if (!m_writer.flushIfLarge())
            return false;
    }
    m_writer.endList();
    m_writer.endList();
    return true;
}

void MemoryViz::event(const SnapshotEvent& event)
{
    m_writer.beginDictionary();
    m_writer.key("action");
    m_writer.text(snapshotActionText(event.action));
    number(event.action == SnapshotAction::OutOfMemory ? "device_free" : "addr", std::int64_t(event.address));
    number("size", event.size);
    number("stream", m_snapshot.streams[event.stream]);
    number("time_us", event.time);
    m_writer.key("frames");
    stack(event.stack);
    m_writer.endDictionary();
}

void MemoryViz::stack(StackId stack)
{
    if (m_stacks[stack] != unwritten)
        return m_writer.recall(m_stacks[stack]);
    m_writer.beginList();
    m_stacks[stack] = m_writer.slot();
    for (const FrameId frame : m_snapshot.stacks[stack]) {
        if (m_frames[frame] != unwritten) {
            m_writer.recall(m_frames[frame]);
            continue;
        }
        m_writer.beginDictionary();
        m_frames[frame] = m_writer.slot();
        m_writer.key("name");
        m_writer.text(m_snapshot.frameName(frame));
        m_writer.key("filename");
        m_writer.text(m_snapshot.frameFile(frame));
        number("line", m_snapshot.frames[frame].line);
        m_writer.endDictionary();
    }
    m_writer.endList();
}

/// A field of RFC 4180.
std::string field(std::string_view text)
{
    if (text.find_first_of(",\"\r\n") == text.npos)
        return std::string(text);
    std::string quoted = "\"";
    for (const char c : text) {
        quoted += c;
        if (c == '"')
            quoted += '"';
    }
    return quoted + '"';
}

} // namespace

Result<void> writeMemoryViz(const SnapshotDevice& device, const EventRange& range, const SnapshotWrite& write)
{
    if (!MemoryViz(device, range, write).write())
        return fail("file.write", "the file could not be written");
    return {};
}

Result<void> writeBlocksCsv(const SnapshotDevice& device, const EventRange& range, const SnapshotWrite& write)
{
    const Lifetimes& lifetimes = device.lifetimes();
    std::string text =
        "address,size,requested,first_moment,last_moment,first_time_us,last_time_us,category,category_from,"
        "module,operator,line\r\n";
    auto blocks = lifetimes.aliveIn(range.first, range.last + 1);
    std::ranges::sort(blocks);
    for (const LifetimeId id : blocks) {
        const Lifetime& lifetime = lifetimes[id];
        const LifetimeId one[] = {id};
        const bool isEnded = lifetime.end <= lifetimes.events();
        text +=
            fmt::format("0x{:x},{},{},{},{},{},{},{},{}", lifetime.address, lifetime.size, lifetime.requested,
                        lifetime.begin, isEnded ? std::to_string(lifetime.end - 1) : "",
                        lifetime.begin == 0 ? "" : std::to_string(lifetimes.timeAt(lifetime.begin)),
                        isEnded ? std::to_string(lifetimes.timeAt(lifetime.end)) : "",
                        categoryText(device.categories().of(id)), categorySourceText(device.categories().sourceOf(id)));
        for (const auto grouping : {SnapshotGrouping::Module, SnapshotGrouping::Operator, SnapshotGrouping::Line}) {
            const std::string label = device.groups(one, grouping).front().label;
            text += ',' + (label == "(unknown)" ? "" : field(label));
        }
        text += "\r\n";
        if (text.size() > 1 << 18) {
            MEMSCAPE_CHECK(checkWanted());
            if (!write(text))
                return fail("file.write", "the file could not be written");
            text.clear();
        }
    }
    if (!write(text))
        return fail("file.write", "the file could not be written");
    return {};
}

} // namespace memscape
