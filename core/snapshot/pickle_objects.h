// SPDX-License-Identifier: Apache-2.0
// The containers of the pickle machine. A dictionary that is a known thing is not kept as one: its fields go into a row
// of the snapshot's tables while it is filled. What a dictionary is follows from its keys:
//   "action" an event · "filename" a frame · "state" a block · "real_size" a block's history (before 2.0)
//   "operator", "module", "region", "category" or "phase" a label of a run file · else it stays a dictionary
// A list of frames is a stack as soon as it is complete, a list of events a run of rows.
//
// A list that is changed after it was used as a stack leaves the users as they were; PyTorch's pickles never do that.
#pragma once

#include "core/base/result.h"
#include "core/snapshot/pickle_value.h"

#include <unordered_map>

namespace memscape {

/// Texts that the reader knows, in the order of their ids from 1 on.
enum class SnapshotKey : TextId {
    Action = 1,
    Addr,
    DeviceFree,
    Size,
    Stream,
    Time,
    Frames,
    LabelIndex,
    Filename,
    Name,
    Line,
    State,
    Address,
    RequestedSize,
    History,
    RealSize,
    Device,
    TotalSize,
    Type,
    Pool,
    IsExpandable,
    Blocks,
    Segments,
    Traces,
    Settings,
    Annotations,
    Stage,
    Run,
    Module,
    Operator,
    Phase,
    Step,
    Category,
    Region,
    Alloc,
    FreeRequested,
    FreeCompleted,
    Free,
    SegmentAlloc,
    SegmentFree,
    SegmentMap,
    SegmentUnmap,
    SnapshotTaken,
    Oom,
    ActiveAllocated,
    ActivePendingFree,
    ActiveAwaitingFree,
    Inactive,
    Small,
    Large,
    End,
};

/// SnapshotKey::End of what is none of them.
inline SnapshotKey keyOf(PickleValue key)
{
    return key.is(PickleTag::Text) && key.bits < std::uint64_t(SnapshotKey::End) ? SnapshotKey(key.bits)
                                                                                 : SnapshotKey::End;
}

SnapshotAction snapshotActionOf(TextId text);

/// snapshot.type: "expected WANTED, found …" at the place `what`.
tl::unexpected<Error> wrongPickleType(std::string_view wanted, PickleValue found, std::string_view what);

/// A block of before 2.0: what was asked for, and where.
struct BlockHistory
{
    std::uint64_t address = 0;
    std::int64_t size = 0;
    StackId stack = noStack;
};

class PickleObjects
{
public:
    enum class Kind : std::uint8_t {
        EmptyDictionary,
        Dictionary,
        Event,
        Frame,
        Block,
        History,
        Label, ///< dictionaries
        EmptyList,
        List,
        Stack,
        Events, ///< lists
        Tuple,
    };
    struct EventRun
    {
        std::uint32_t first = 0, count = 0;
    };
    static constexpr std::uint64_t noAddress = ~std::uint64_t(0);

    PickleObjects();

    PickleValue newDictionary() { return add(Kind::EmptyDictionary, 0); }
    PickleValue newList() { return add(Kind::EmptyList, 0); }
    PickleValue newTuple(std::span<const PickleValue> items);
    /// The dictionary of an event that is known whole, and the list that is a stack.
    PickleValue newEvent(const SnapshotEvent& event)
    {
        m_snapshot.events.append(event);
        return add(Kind::Event, m_snapshot.events.size() - 1);
    }
    PickleValue newStack(StackId stack) { return add(stack == noStack ? Kind::EmptyList : Kind::Stack, stack); }
    /// `pairs`: key, value, key, value …
    Result<void> set(PickleValue dictionary, std::span<const PickleValue> pairs);
    Result<void> append(PickleValue list, std::span<const PickleValue> items);
    Result<PickleValue> text(std::string_view text);

    Kind kind(PickleValue object) const { return Kind(m_objects[object.bits] >> 56); }
    std::size_t index(PickleValue object) const { return m_objects[object.bits] & (~std::uint64_t(0) >> 8); }
    bool isDictionary(PickleValue value) const { return value.is(PickleTag::Object) && kind(value) <= Kind::Label; }
    /// Of a Dictionary pairs, of a List or a Tuple items; empty of all other kinds.
    std::span<const PickleValue> items(PickleValue object) const;
    /// The runs of an Events list.
    std::span<const EventRun> runs(PickleValue object) const { return m_runs[index(object)]; }
    /// The value of a key of a Dictionary; the last one where it comes again.
    std::optional<PickleValue> find(PickleValue dictionary, SnapshotKey key) const;

    Result<std::int64_t> integer(PickleValue value, std::string_view what) const;
    Result<std::int64_t> bytes(PickleValue value, std::string_view what) const; ///< 0 ≤ bytes < 2^53
    Result<std::uint64_t> address(PickleValue value, std::string_view what) const;
    Result<StackId> stack(PickleValue value);
    Result<std::uint16_t> stream(PickleValue value);

    Snapshot& snapshot() { return m_snapshot; }
    const Snapshot& snapshot() const { return m_snapshot; }
    const BlockHistory& history(std::size_t row) const { return m_histories[row]; }
    const SnapshotLabel& label(std::size_t row) const { return m_labels[row]; }
    /// Sets the fields of a label from a dictionary that had none of the keys which tell.
    Result<SnapshotLabel> labelOf(PickleValue value);
    std::size_t memory() const;
    /// How often a dictionary that was a frame already got further keys.
    std::size_t frameChanges() const { return m_frameChanges; }

private:
    PickleValue add(Kind kind, std::size_t index)
    {
        m_objects.push_back(std::uint64_t(kind) << 56 | index);
        return PickleValue::object(m_objects.size() - 1);
    }
    void become(PickleValue object, Kind kind, std::size_t index);
    std::size_t newItems();
    void dropItems(PickleValue object);
    void keep(std::size_t items, std::span<const PickleValue> values);
    Kind kindOf(std::span<const PickleValue> pairs) const;
    Result<void> fill(PickleValue object, Kind kind, std::size_t row, std::span<const PickleValue> pairs);
    Result<void> fillEvent(std::size_t row, std::span<const PickleValue> pairs);
    Result<void> fillBlock(std::size_t row, std::span<const PickleValue> pairs);
    Result<void> fillFrame(PickleValue object, SnapshotFrame frame, std::span<const PickleValue> pairs);
    Result<void> fillHistory(std::size_t row, std::span<const PickleValue> pairs);
    Result<void> fillLabel(SnapshotLabel& label, std::span<const PickleValue> pairs);
    Result<void> setHistory(SnapshotBlock& block, PickleValue list);
    std::size_t newRow(Kind kind);
    bool framesOf(std::span<const PickleValue> items, std::vector<FrameId>& frames) const;
    bool appendEvents(PickleValue list, std::span<const PickleValue> items);
    void makeGeneric(PickleValue list);
    FrameId frameId(const SnapshotFrame& frame);

    Snapshot m_snapshot;
    LargeArray<std::uint64_t> m_objects; ///< kind and index
    std::vector<std::vector<PickleValue>> m_items;
    std::vector<std::uint32_t> m_freeItems;
    std::size_t m_itemCount = 0;
    std::size_t m_frameChanges = 0;
    std::vector<std::vector<EventRun>> m_runs;
    LargeArray<BlockHistory> m_histories;
    LargeArray<SnapshotLabel> m_labels;
    std::unordered_map<std::int64_t, std::uint16_t> m_streams;
    std::vector<FrameId> m_scratch;
    LargeArray<FrameId> m_frameSlots; ///< open addressing: id + 1
};

} // namespace memscape
