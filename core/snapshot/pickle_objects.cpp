// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/pickle_objects.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace memscape {

namespace {

using Kind = PickleObjects::Kind;

constexpr std::array<std::string_view, std::size_t(SnapshotKey::End)> keyTexts{"",
                                                                               "action",
                                                                               "addr",
                                                                               "device_free",
                                                                               "size",
                                                                               "stream",
                                                                               "time_us",
                                                                               "frames",
                                                                               "label", //
                                                                               "filename",
                                                                               "name",
                                                                               "line", //
                                                                               "state",
                                                                               "address",
                                                                               "requested_size",
                                                                               "history",
                                                                               "real_size", //
                                                                               "device",
                                                                               "total_size",
                                                                               "segment_type",
                                                                               "segment_pool_id",
                                                                               "is_expandable",
                                                                               "blocks", //
                                                                               "segments",
                                                                               "device_traces",
                                                                               "allocator_settings",
                                                                               "external_annotations",
                                                                               "stage",
                                                                               "memscape", //
                                                                               "module",
                                                                               "operator",
                                                                               "phase",
                                                                               "step",
                                                                               "category",
                                                                               "region", //
                                                                               "alloc",
                                                                               "free_requested",
                                                                               "free_completed",
                                                                               "free",
                                                                               "segment_alloc",
                                                                               "segment_free",
                                                                               "segment_map", //
                                                                               "segment_unmap",
                                                                               "snapshot",
                                                                               "oom", //
                                                                               "active_allocated",
                                                                               "active_pending_free",
                                                                               "active_awaiting_free",
                                                                               "inactive",
                                                                               "small",
                                                                               "large"};

} // namespace

std::string_view PickleValue::kindText() const
{
    switch (tag) {
    case PickleTag::None: return "None";
    case PickleTag::Boolean: return "a truth value";
    case PickleTag::Integer: return "a number";
    case PickleTag::Large: return "a number of more than 64 bits";
    case PickleTag::Real: return "a number with a point";
    case PickleTag::Text: return "a text";
    case PickleTag::Frame: return "a frame";
    case PickleTag::Event: return "an event";
    default: return "a dictionary, a list or a tuple";
    }
}

tl::unexpected<Error> wrongPickleType(std::string_view wanted, PickleValue found, std::string_view what)
{
    return fail("snapshot.type", fmt::format("expected {}, found {}", wanted, found.kindText()),
                "write the snapshot again with torch.cuda.memory._dump_snapshot()", std::string(what));
}

PickleObjects::PickleObjects()
{
    for (const std::string_view text : keyTexts)
        m_snapshot.texts.id(text);
}

void PickleObjects::become(PickleValue object, Kind kind, std::size_t index)
{
    m_objects[object.bits] = std::uint64_t(kind) << 56 | index;
}

std::size_t PickleObjects::newItems()
{
    if (m_freeItems.empty()) {
        m_items.emplace_back();
        return m_items.size() - 1;
    }
    const std::size_t index = m_freeItems.back();
    m_freeItems.pop_back();
    return index;
}

void PickleObjects::dropItems(PickleValue object)
{
    auto& items = m_items[index(object)];
    m_itemCount -= items.size();
    items = {};
    m_freeItems.push_back(std::uint32_t(index(object)));
}

void PickleObjects::keep(std::size_t items, std::span<const PickleValue> values)
{
    m_items[items].insert(m_items[items].end(), values.begin(), values.end());
    m_itemCount += values.size();
}

PickleValue PickleObjects::newTuple(std::span<const PickleValue> items)
{
    const std::size_t index = newItems();
    keep(index, items);
    return add(Kind::Tuple, index);
}

std::span<const PickleValue> PickleObjects::items(PickleValue object) const
{
    const Kind kind = this->kind(object);
    if (kind != Kind::Dictionary && kind != Kind::List && kind != Kind::Tuple)
        return {};
    return m_items[index(object)];
}

std::optional<PickleValue> PickleObjects::find(PickleValue dictionary, SnapshotKey key) const
{
    std::optional<PickleValue> found;
    const auto pairs = items(dictionary);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
        if (keyOf(pairs[i]) == key)
            found = pairs[i + 1];
    }
    return found;
}

Kind PickleObjects::kindOf(std::span<const PickleValue> pairs) const
{
    Kind kind = Kind::Dictionary;
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
        switch (keyOf(pairs[i])) {
        case SnapshotKey::Action: return Kind::Event;
        case SnapshotKey::Filename: return Kind::Frame;
        case SnapshotKey::State: return Kind::Block;
        case SnapshotKey::RealSize: return Kind::History;
        case SnapshotKey::Operator:
        case SnapshotKey::Module:
        case SnapshotKey::Region:
        case SnapshotKey::Category:
        case SnapshotKey::Phase: kind = Kind::Label; break;
        default: break;
        }
    }
    return kind;
}

std::size_t PickleObjects::newRow(Kind kind)
{
    switch (kind) {
    case Kind::Event: m_snapshot.events.append({}); return m_snapshot.events.size() - 1;
    case Kind::Block:
        m_snapshot.blocks.push_back({noAddress, -1, -1, noStack, SnapshotBlockState::Free});
        return m_snapshot.blocks.size() - 1;
    case Kind::History: m_histories.push_back({}); return m_histories.size() - 1;
    case Kind::Label: m_labels.push_back({}); return m_labels.size() - 1;
    case Kind::Frame: return frameId({});
    default: return newItems();
    }
}

Result<void> PickleObjects::set(PickleValue dictionary, std::span<const PickleValue> pairs)
{
    if (!isDictionary(dictionary))
        return fail("pickle.stack", "the pickle puts keys into what is not a dictionary", "the file is damaged");
    Kind kind = this->kind(dictionary);
    if (pairs.empty())
        return {};
    m_frameChanges += kind == Kind::Frame;
    if (kind == Kind::EmptyDictionary) {
        kind = kindOf(pairs);
        become(dictionary, kind, newRow(kind));
    } else if (kind == Kind::Dictionary) {
        if (const Kind told = kindOf(pairs); told != Kind::Dictionary) { // its keys came one by one
            const auto first = m_items[index(dictionary)];
            dropItems(dictionary);
            become(dictionary, told, newRow(told));
            MEMSCAPE_CHECK(fill(dictionary, told, index(dictionary), first));
            kind = told;
        }
    }
    return fill(dictionary, kind, index(dictionary), pairs);
}

Result<void> PickleObjects::fill(PickleValue object, Kind kind, std::size_t row, std::span<const PickleValue> pairs)
{
    switch (kind) {
    case Kind::Event: return fillEvent(row, pairs);
    case Kind::Block: return fillBlock(row, pairs);
    case Kind::Frame: return fillFrame(object, m_snapshot.frames[row], pairs);
    case Kind::History: return fillHistory(row, pairs);
    case Kind::Label: return fillLabel(m_labels[row], pairs);
    default: keep(row, pairs); return {};
    }
}

FrameId PickleObjects::frameId(const SnapshotFrame& frame)
{
    auto& frames = m_snapshot.frames;
    const auto slotOf = [&](const SnapshotFrame& wanted) {
        const std::size_t mask = m_frameSlots.size() - 1;
        std::size_t slot = (wanted.name * 0x9e3779b97f4a7c15ull ^ wanted.file * 0xc2b2ae3d27d4eb4full ^ wanted.line);
        for (slot = (slot ^ slot >> 31) & mask;; slot = (slot + 1) & mask) {
            if (m_frameSlots[slot] == 0 || frames[m_frameSlots[slot] - 1] == wanted)
                return slot;
        }
    };
    if ((frames.size() + 1) * 2 > m_frameSlots.size()) {
        const std::size_t count = std::max<std::size_t>(64, m_frameSlots.size() * 2);
        m_frameSlots = {};
        m_frameSlots.resize(count, 0);
        for (std::size_t id = 0; id < frames.size(); ++id)
            m_frameSlots[slotOf(frames[id])] = FrameId(id + 1);
    }
    const std::size_t slot = slotOf(frame);
    if (m_frameSlots[slot] == 0) {
        frames.push_back(frame);
        m_frameSlots[slot] = FrameId(frames.size());
    }
    return m_frameSlots[slot] - 1;
}

bool PickleObjects::framesOf(std::span<const PickleValue> items, std::vector<FrameId>& frames) const
{
    frames.clear();
    for (const PickleValue item : items) {
        if (item.is(PickleTag::Frame))
            frames.push_back(FrameId(item.bits));
        else if (item.is(PickleTag::Object) && kind(item) == Kind::Frame)
            frames.push_back(FrameId(index(item)));
        else
            return false;
    }
    return true;
}

bool PickleObjects::appendEvents(PickleValue list, std::span<const PickleValue> items)
{
    for (const PickleValue item : items) {
        if (!item.is(PickleTag::Object) || kind(item) != Kind::Event)
            return false;
    }
    if (kind(list) == Kind::EmptyList) {
        m_runs.emplace_back();
        become(list, Kind::Events, m_runs.size() - 1);
    }
    auto& runs = m_runs[index(list)];
    for (const PickleValue item : items) {
        const auto row = std::uint32_t(index(item));
        if (!runs.empty() && runs.back().first + runs.back().count == row)
            ++runs.back().count;
        else
            runs.push_back({row, 1});
    }
    return true;
}

/// A list that turns out to be mixed, or longer than one piece of a stack.
void PickleObjects::makeGeneric(PickleValue list)
{
    const Kind kind = this->kind(list);
    if (kind == Kind::List)
        return;
    std::vector<PickleValue> items;
    if (kind == Kind::Stack) {
        for (const FrameId frame : m_snapshot.stacks[StackId(index(list))])
            items.push_back({PickleTag::Frame, frame});
    } else if (kind == Kind::Events) {
        for (const EventRun& run : m_runs[index(list)]) {
            for (std::uint32_t i = 0; i < run.count; ++i)
                items.push_back({PickleTag::Event, run.first + i});
        }
        m_runs[index(list)] = {};
    }
    const std::size_t slot = newItems();
    keep(slot, items);
    become(list, Kind::List, slot);
}

Result<void> PickleObjects::append(PickleValue list, std::span<const PickleValue> items)
{
    if (!list.is(PickleTag::Object) || kind(list) < Kind::EmptyList || kind(list) == Kind::Tuple)
        return fail("pickle.stack", "the pickle appends to what is not a list", "the file is damaged");
    if (items.empty())
        return {};
    const Kind kind = this->kind(list);
    if ((kind == Kind::EmptyList || kind == Kind::Events) && appendEvents(list, items))
        return {};
    if (kind == Kind::EmptyList && framesOf(items, m_scratch)) {
        become(list, Kind::Stack, m_snapshot.stacks.id(m_scratch));
        return {};
    }
    makeGeneric(list);
    keep(index(list), items);
    return {};
}

Result<PickleValue> PickleObjects::text(std::string_view text)
{
    if (m_snapshot.texts.size() >= 0xfffffff0)
        return fail("pickle.limit", "more than four billion different texts", "this is no snapshot");
    return PickleValue::text(m_snapshot.texts.id(text));
}

Result<std::int64_t> PickleObjects::integer(PickleValue value, std::string_view what) const
{
    if (!value.is(PickleTag::Integer))
        return wrongPickleType("a whole number", value, what);
    return value.integer();
}

Result<std::int64_t> PickleObjects::bytes(PickleValue value, std::string_view what) const
{
    MEMSCAPE_TRY(bytes, integer(value, what));
    if (bytes < 0 || bytes >= std::int64_t(1) << 53)
        return fail("snapshot.value", fmt::format("{} is no number of bytes", bytes), "the file is damaged",
                    std::string(what));
    return bytes;
}

Result<std::uint64_t> PickleObjects::address(PickleValue value, std::string_view what) const
{
    MEMSCAPE_TRY(address, integer(value, what));
    if (address < 0)
        return fail("snapshot.value", fmt::format("{} is no address", address), "the file is damaged",
                    std::string(what));
    return std::uint64_t(address);
}

Result<StackId> PickleObjects::stack(PickleValue value)
{
    if (value.is(PickleTag::None))
        return noStack;
    if (!value.is(PickleTag::Object) || isDictionary(value))
        return wrongPickleType("a list of frames", value, "frames");
    const Kind kind = this->kind(value);
    if (kind == Kind::EmptyList)
        return noStack;
    if (kind == Kind::Stack)
        return StackId(index(value));
    if (kind == Kind::Events || !framesOf(items(value), m_scratch))
        return fail("snapshot.type", "expected a list of frames, found other things in the list",
                    "write the snapshot again with torch.cuda.memory._dump_snapshot()", "frames");
    const StackId stack = m_snapshot.stacks.id(m_scratch);
    if (kind == Kind::List) { // not again for the next one that shares it
        dropItems(value);
        become(value, Kind::Stack, stack);
    }
    return stack;
}

Result<std::uint16_t> PickleObjects::stream(PickleValue value)
{
    if (value.is(PickleTag::None))
        return std::uint16_t(0);
    MEMSCAPE_TRY(stream, integer(value, "stream"));
    auto& streams = m_snapshot.streams;
    if (!streams.empty() && streams.back() == stream)
        return std::uint16_t(streams.size() - 1);
    const auto [it, isNew] = m_streams.try_emplace(stream, std::uint16_t(streams.size()));
    if (isNew) {
        if (streams.size() == 0xffff)
            return fail("pickle.limit", "more than 65,535 streams", "this is no snapshot of PyTorch", "stream");
        streams.push_back(stream);
    }
    return it->second;
}

std::size_t PickleObjects::memory() const
{
    return m_snapshot.memory() + m_objects.memory() + m_itemCount * sizeof(PickleValue)
        + m_items.capacity() * (sizeof(m_items[0]) + sizeof(std::uint32_t)) + m_histories.memory() + m_labels.memory()
        + m_frameSlots.memory() + m_runs.capacity() * sizeof(m_runs[0]);
}

} // namespace memscape
