// SPDX-License-Identifier: Apache-2.0
// The fields of the dictionaries that become rows: events, blocks, frames, labels.
#include "core/snapshot/pickle_objects.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

SnapshotBlockState stateOf(TextId text)
{
    switch (SnapshotKey(text)) {
    case SnapshotKey::ActiveAllocated: return SnapshotBlockState::Active;
    case SnapshotKey::ActivePendingFree:
    case SnapshotKey::ActiveAwaitingFree: return SnapshotBlockState::Pending;
    default: return SnapshotBlockState::Free;
    }
}

} // namespace

SnapshotAction snapshotActionOf(TextId text)
{
    switch (SnapshotKey(text)) {
    case SnapshotKey::Alloc: return SnapshotAction::Allocate;
    case SnapshotKey::FreeRequested: return SnapshotAction::FreeRequested;
    case SnapshotKey::FreeCompleted:
    case SnapshotKey::Free: return SnapshotAction::FreeCompleted;
    case SnapshotKey::SegmentAlloc: return SnapshotAction::SegmentAlloc;
    case SnapshotKey::SegmentFree: return SnapshotAction::SegmentFree;
    case SnapshotKey::SegmentMap: return SnapshotAction::SegmentMap;
    case SnapshotKey::SegmentUnmap: return SnapshotAction::SegmentUnmap;
    case SnapshotKey::SnapshotTaken: return SnapshotAction::Snapshot;
    case SnapshotKey::Oom: return SnapshotAction::OutOfMemory;
    default: return SnapshotAction::Other;
    }
}

Result<void> PickleObjects::fillEvent(std::size_t row, std::span<const PickleValue> pairs)
{
    SnapshotEvent event = m_snapshot.events[row];
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
        const PickleValue value = pairs[i + 1];
        switch (keyOf(pairs[i])) {
        case SnapshotKey::Action:
            if (!value.is(PickleTag::Text))
                return wrongPickleType("the name of an action", value, fmt::format("event {}, action", row));
            event.action = snapshotActionOf(value.text());
            break;
        case SnapshotKey::Addr:
        case SnapshotKey::DeviceFree: {
            MEMSCAPE_SET(event.address, this->address(value, "event, addr"));
            break;
        }
        case SnapshotKey::Size: {
            MEMSCAPE_SET(event.size, bytes(value, "event, size"));
            break;
        }
        case SnapshotKey::Stream: {
            MEMSCAPE_SET(event.stream, this->stream(value));
            break;
        }
        case SnapshotKey::Time: {
            MEMSCAPE_SET(event.time, integer(value, "event, time_us"));
            break;
        }
        case SnapshotKey::Frames: {
            MEMSCAPE_SET(event.stack, this->stack(value));
            break;
        }
        case SnapshotKey::LabelIndex: {
            if (value.is(PickleTag::None))
                break;
            MEMSCAPE_TRY(label, integer(value, "event, label"));
            if (label < 0 || label > 0xfffffffd)
                return fail("snapshot.value", "no such label", "", fmt::format("event {}, label", row));
            event.label = LabelId(label + 1);
            break;
        }
        default: break;
        }
    }
    m_snapshot.events.set(row, event);
    return {};
}

Result<void> PickleObjects::fillBlock(std::size_t row, std::span<const PickleValue> pairs)
{
    SnapshotBlock block = m_snapshot.blocks[row];
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
        const PickleValue value = pairs[i + 1];
        switch (keyOf(pairs[i])) {
        case SnapshotKey::State:
            if (!value.is(PickleTag::Text))
                return wrongPickleType("a state", value, "block, state");
            block.state = stateOf(value.text());
            break;
        case SnapshotKey::Address: {
            MEMSCAPE_SET(block.address, this->address(value, "block, address"));
            break;
        }
        case SnapshotKey::Size: {
            MEMSCAPE_SET(block.size, bytes(value, "block, size"));
            break;
        }
        case SnapshotKey::RequestedSize: {
            MEMSCAPE_SET(block.requested, bytes(value, "block, requested_size"));
            break;
        }
        case SnapshotKey::Frames: {
            MEMSCAPE_SET(block.stack, this->stack(value));
            break;
        }
        case SnapshotKey::History: MEMSCAPE_CHECK(setHistory(block, value)); break;
        default: break;
        }
    }
    m_snapshot.blocks[row] = block;
    return {};
}

/// The newest of the history is what the block holds now.
Result<void> PickleObjects::setHistory(SnapshotBlock& block, PickleValue list)
{
    if (!list.is(PickleTag::Object))
        return wrongPickleType("a list", list, "block, history");
    const auto entries = items(list);
    if (entries.empty() || !entries[0].is(PickleTag::Object) || kind(entries[0]) != Kind::History)
        return {};
    const BlockHistory& newest = m_histories[index(entries[0])];
    if (block.requested < 0)
        block.requested = newest.size;
    if (block.stack == noStack)
        block.stack = newest.stack;
    return {};
}

Result<void> PickleObjects::fillHistory(std::size_t row, std::span<const PickleValue> pairs)
{
    BlockHistory history = m_histories[row];
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
        const SnapshotKey key = keyOf(pairs[i]);
        if (key == SnapshotKey::RealSize) {
            MEMSCAPE_SET(history.size, bytes(pairs[i + 1], "history, real_size"));
        } else if (key == SnapshotKey::Addr) {
            MEMSCAPE_SET(history.address, this->address(pairs[i + 1], "history, addr"));
        } else if (key == SnapshotKey::Frames) {
            MEMSCAPE_SET(history.stack, this->stack(pairs[i + 1]));
        }
    }
    m_histories[row] = history;
    return {};
}

Result<void> PickleObjects::fillFrame(PickleValue object, SnapshotFrame frame, std::span<const PickleValue> pairs)
{
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
        const PickleValue value = pairs[i + 1];
        switch (keyOf(pairs[i])) {
        case SnapshotKey::Name:
            if (!value.is(PickleTag::Text))
                return wrongPickleType("a function's name", value, "frame, name");
            frame.name = value.text();
            break;
        case SnapshotKey::Filename:
            if (!value.is(PickleTag::Text))
                return wrongPickleType("a file's name", value, "frame, filename");
            frame.file = value.text();
            break;
        case SnapshotKey::Line: {
            MEMSCAPE_TRY(line, integer(value, "frame, line"));
            frame.line = std::uint32_t(std::clamp<std::int64_t>(line, 0, 0xffffffff));
            break;
        }
        default: break;
        }
    }
    become(object, Kind::Frame, frameId(frame));
    return {};
}

Result<void> PickleObjects::fillLabel(SnapshotLabel& label, std::span<const PickleValue> pairs)
{
    SnapshotLabel filled = label;
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
        const PickleValue value = pairs[i + 1];
        TextId* field = nullptr;
        switch (keyOf(pairs[i])) {
        case SnapshotKey::Module: field = &filled.module; break;
        case SnapshotKey::Operator: field = &filled.operation; break;
        case SnapshotKey::Phase: field = &filled.phase; break;
        case SnapshotKey::Category: field = &filled.category; break;
        case SnapshotKey::Region: field = &filled.region; break;
        case SnapshotKey::Name: field = &filled.name; break;
        case SnapshotKey::Step:
            if (!value.is(PickleTag::None))
                MEMSCAPE_SET(filled.step, integer(value, "label, step"));
            break;
        default: break;
        }
        if (!field || value.is(PickleTag::None))
            continue;
        if (!value.is(PickleTag::Text))
            return wrongPickleType("a text", value, "label");
        *field = value.text();
    }
    label = filled;
    return {};
}

Result<SnapshotLabel> PickleObjects::labelOf(PickleValue value)
{
    if (!isDictionary(value))
        return wrongPickleType("a label", value, "memscape.labels");
    if (kind(value) == Kind::Label)
        return m_labels[index(value)];
    SnapshotLabel label;
    MEMSCAPE_CHECK(fillLabel(label, items(value)));
    return label;
}

} // namespace memscape
