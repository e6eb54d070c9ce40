// SPDX-License-Identifier: Apache-2.0
// What a file of torch.cuda.memory._dump_snapshot holds, in the shape of tables: the allocator's segments and blocks as
// they were when the file was written, and for each device its trace, the events before that moment, oldest first. A
// run file (*.memscape-run, written by memscape_probe) is the same with labels and steps; see SnapshotRun.
//
// Texts, frames and stacks are stored once and named by ids; events are columns of plain numbers, 31 bytes an event
// (35 with labels). Streams are numbered in the order of their appearance per file.
//
// The format: torch/csrc/cuda/memory_snapshot.cpp and torch/cuda/memory.py of PyTorch 1.13 to 2.11. Keys that are not
// listed here are passed over: compile_context, user_metadata, what later versions add.
//
// How it is used: readSnapshot() in snapshot_reader.h gives one of these; SnapshotDevice in snapshot_device.h answers
// every question about one device of it.
#pragma once

#include "core/base/json.h"
#include "core/snapshot/large_array.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace memscape {

using TextId = std::uint32_t;  ///< 0 is the empty text
using FrameId = std::uint32_t; ///< of Snapshot::frames
using StackId = std::uint32_t; ///< 0 is the empty stack: nothing was recorded
using LabelId = std::uint32_t; ///< of SnapshotRun::labels; 0 is no label
constexpr StackId noStack = 0;
constexpr LabelId noLabel = 0;

enum class SnapshotAction : std::uint8_t {
    Allocate,      ///< "alloc": size is what was asked for
    FreeRequested, ///< the program is done with it
    FreeCompleted, ///< and so are all streams ("free" of older files counts as both)
    SegmentAlloc,  ///< cudaMalloc: size is the segment's
    SegmentFree,
    SegmentMap, ///< pages of an expandable segment
    SegmentUnmap,
    Snapshot,    ///< somebody took a snapshot: size is what was active
    OutOfMemory, ///< "oom": size is the (rounded) request, address the free bytes of the device
    Other,       ///< an action that this program does not know
};
std::string_view snapshotActionText(SnapshotAction action); ///< "alloc", "free_requested", …

/// One entry of a trace, put together from the columns.
struct SnapshotEvent
{
    SnapshotAction action = SnapshotAction::Other;
    std::uint64_t address = 0; ///< of OutOfMemory: bytes that the driver had left
    std::int64_t size = 0;     ///< bytes, never negative
    std::int64_t time = 0;     ///< microseconds since 1970; 0 where the file has none
    StackId stack = noStack;
    LabelId label = noLabel;
    std::uint16_t stream = 0; ///< index of Snapshot::streams
};

/// The events of all devices, one after the other.
class SnapshotEvents
{
public:
    std::size_t size() const { return m_sizes.size(); }
    SnapshotEvent operator[](std::size_t i) const
    {
        return {m_actions[i], m_addresses[i], m_sizes[i], m_times[i], m_stacks[i], label(i), m_streams[i]};
    }
    SnapshotAction action(std::size_t i) const { return m_actions[i]; }
    std::uint64_t address(std::size_t i) const { return m_addresses[i]; }
    std::int64_t bytes(std::size_t i) const { return m_sizes[i]; }
    std::int64_t time(std::size_t i) const { return m_times[i]; }
    StackId stack(std::size_t i) const { return m_stacks[i]; }
    LabelId label(std::size_t i) const { return i < m_labels.size() ? m_labels[i] : noLabel; }

    bool hasLabels() const { return !m_labels.empty(); }
    void append(const SnapshotEvent& event);
    void set(std::size_t i, const SnapshotEvent& event);
    /// Bytes that the columns hold.
    std::size_t memory() const;

private:
    void setLabel(std::size_t i, LabelId label);

    LargeArray<SnapshotAction> m_actions;
    LargeArray<std::uint64_t> m_addresses;
    LargeArray<std::int64_t> m_sizes, m_times;
    LargeArray<StackId> m_stacks;
    LargeArray<LabelId> m_labels; ///< shorter than the others while no later event has one
    LargeArray<std::uint16_t> m_streams;
};

/// A line of a stack: "aten::mm" in "??", or forward in /home/me/train.py, line 44.
struct SnapshotFrame
{
    TextId name = 0, file = 0;
    std::uint32_t line = 0;
    bool operator==(const SnapshotFrame&) const = default;
};

/// Stacks, each stored once.
class SnapshotStacks
{
public:
    SnapshotStacks() { id({}); }
    std::size_t size() const { return m_ends.size(); }
    /// Innermost frame first, as PyTorch writes them.
    std::span<const FrameId> operator[](StackId stack) const
    {
        const std::size_t begin = stack == 0 ? 0 : m_ends[stack - 1];
        return {m_frames.data() + begin, m_ends[stack] - begin};
    }
    /// The same frames give the same id.
    StackId id(std::span<const FrameId> frames);
    std::size_t memory() const { return m_frames.memory() + m_ends.memory() + m_slots.memory(); }

private:
    LargeArray<FrameId> m_frames;
    LargeArray<std::size_t> m_ends;
    LargeArray<std::uint32_t> m_slots; ///< a power of two of them, open addressing: id + 1, 0 is free
};

/// Texts, each stored once, in one piece of memory.
class SnapshotTexts
{
public:
    SnapshotTexts() { id({}); }
    std::size_t size() const { return m_ends.size(); }
    std::string_view operator[](TextId text) const
    {
        const std::size_t begin = text == 0 ? 0 : m_ends[text - 1];
        return {m_bytes.data() + begin, m_ends[text] - begin};
    }
    TextId id(std::string_view text);
    std::size_t memory() const { return m_bytes.memory() + m_ends.memory() + m_slots.memory(); }

private:
    LargeArray<char> m_bytes;
    LargeArray<std::size_t> m_ends;
    LargeArray<std::uint32_t> m_slots;
};

enum class SnapshotBlockState : std::uint8_t { Active, Pending, Free }; ///< "active_allocated", …, "inactive"

struct SnapshotBlock
{
    std::uint64_t address = 0;
    std::int64_t size = 0;      ///< of the block
    std::int64_t requested = 0; ///< what was asked for; of a free one the last time, or 0
    StackId stack = noStack;
    SnapshotBlockState state = SnapshotBlockState::Free;
};

/// A range taken from the driver; its blocks are [firstBlock, firstBlock + blockCount) of Snapshot::blocks, in the
/// order of addresses.
struct SnapshotSegment
{
    std::uint64_t address = 0;
    std::int64_t size = 0;
    std::size_t firstBlock = 0, blockCount = 0;
    StackId stack = noStack;
    std::uint32_t device = 0;
    std::uint16_t stream = 0;
    bool isSmall = false;
    bool isExpandable = false;
    std::int64_t pool[2] = {0, 0}; ///< segment_pool_id: (0, 0) unless it is of a CUDA graph or of a MemPool
};

/// Events [first, last) of Snapshot::events belong to one device.
struct SnapshotTrace
{
    std::size_t first = 0, last = 0;
    std::size_t size() const { return last - first; }
};

/// What memscape_probe knew about an event; texts may be empty.
struct SnapshotLabel
{
    TextId module = 0, operation = 0, phase = 0, category = 0, region = 0, name = 0;
    std::int64_t step = -1; ///< -1: none
};

/// A training step of a run: events [first, last) of the first device's trace.
struct SnapshotStep
{
    std::int64_t index = 0;
    std::size_t first = 0, last = 0;
};

/// The key "memscape" of a run file.
struct SnapshotRun
{
    std::string torch, python, device;
    std::vector<SnapshotLabel> labels; ///< [0] is none: label i of the file is [i + 1]
    std::vector<SnapshotStep> steps;
    std::vector<std::string> notes;
    std::optional<std::string> error; ///< what ended the run
};

/// An entry of external_annotations, such as a profiler's "ProfilerStep#3".
struct SnapshotAnnotation
{
    std::uint32_t device = 0;
    std::int64_t time = 0;
    TextId name = 0, stage = 0; ///< "START", "END"
};

struct Snapshot
{
    SnapshotTexts texts;
    LargeArray<SnapshotFrame> frames;
    SnapshotStacks stacks;
    std::vector<std::int64_t> streams; ///< the file's values (addresses of cudaStream_t; 0 is the default one)

    std::vector<SnapshotSegment> segments; ///< of all devices, by device and address
    LargeArray<SnapshotBlock> blocks;
    SnapshotEvents events;
    std::vector<SnapshotTrace> traces; ///< by device; empty ones of devices that did nothing; none in old files

    Json settings; ///< allocator_settings; null where the file has none (before 2.1)
    std::vector<SnapshotAnnotation> annotations;
    std::optional<SnapshotRun> run;
    std::vector<std::string> notes; ///< what the file lacks, or what was passed over: a sentence each

    std::uint64_t fileBytes = 0;
    int protocol = 0; ///< of the pickle

    std::string_view frameName(FrameId frame) const { return texts[frames[frame].name]; }
    std::string_view frameFile(FrameId frame) const { return texts[frames[frame].file]; }
    /// "train.py:44 forward", or "aten::mm" of a frame without file.
    std::string frameText(FrameId frame) const;
    /// Devices with a segment or an event, in rising order.
    std::vector<std::uint32_t> devices() const;
    std::size_t memory() const; ///< bytes that it holds, about
};

} // namespace memscape
