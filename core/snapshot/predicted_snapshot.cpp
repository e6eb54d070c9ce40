// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/predicted_snapshot.h"

#include "core/base/cancellation.h"
#include "core/trace/allocator_replay.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

struct Range
{
    std::uint64_t begin = 0, end = 0;
    std::uint16_t stream = 0;
    bool isExpandable = false;
};

std::vector<Range> rangesOf(const std::vector<AllocatorSegment>& segments)
{
    std::vector<Range> ranges;
    for (const AllocatorSegment& segment : segments)
        ranges.push_back(
            {segment.address, segment.address + std::uint64_t(segment.size), segment.stream, segment.isExpandable});
    return ranges;
}

/// The parts of `from` that are not in `taken`; both by address.
std::vector<Range> without(const std::vector<Range>& from, const std::vector<Range>& taken)
{
    std::vector<Range> left;
    for (Range range : from) {
        for (const Range& other : taken) {
            if (other.end <= range.begin || other.begin >= range.end)
                continue;
            if (other.begin > range.begin)
                left.push_back({range.begin, other.begin, range.stream, range.isExpandable});
            range.begin = std::min(other.end, range.end);
        }
        if (range.begin < range.end)
            left.push_back(range);
    }
    return left;
}

class Recorder
{
public:
    explicit Recorder(const Trace& trace)
        : m_trace(trace)
    { }

    void hear(const Event& event, const CachingAllocator& allocator, BlockIndex block)
    {
        const std::uint64_t address = allocator.block(block).address;
        const StackId stack = stackOf(event);
        if (event.isAllocation()) {
            recordSegments(allocator, stack);
            recordCompletions(allocator);
            add(SnapshotAction::Allocate, address, event.bytes, event.stream, stack);
            m_stacksOf[address] = stack;
            return;
        }
        add(SnapshotAction::FreeRequested, address, event.bytes, event.stream, stack);
        if (event.isBehind)
            m_waiting.push_back({block, address, event, stack});
        else
            add(SnapshotAction::FreeCompleted, address, event.bytes, event.stream, stack);
    }

    Snapshot finish(const AllocatorReplay& replay, const AllocatorOptions& options)
    {
        for (const AllocatorSegment& segment : replay.segments)
            addSegment(segment);
        m_snapshot.traces.push_back({0, m_snapshot.events.size()});
        m_snapshot.settings = Json{{"expandable_segments", options.expandableSegments}};
        for (std::int64_t stream = 0; stream <= m_lastStream; ++stream)
            m_snapshot.streams.push_back(stream);
        return std::move(m_snapshot);
    }

private:
    struct Waiting
    {
        BlockIndex block = 0;
        std::uint64_t address = 0;
        Event event;
        StackId stack = noStack;
    };

    void add(SnapshotAction action, std::uint64_t address, std::int64_t size, std::uint16_t stream, StackId stack)
    {
        m_lastStream = std::max<std::int64_t>(m_lastStream, stream);
        const auto time = std::int64_t(m_snapshot.events.size());
        m_snapshot.events.append({action, address, size, time, stack, noLabel, stream});
    }

    /// What was taken from the driver and given back since the last event.
    void recordSegments(const CachingAllocator& allocator, StackId stack)
    {
        const AllocatorStatistics& now = allocator.statistics();
        if (now.takenBytes == m_taken && now.returnedBytes == m_returned)
            return;
        m_taken = now.takenBytes;
        m_returned = now.returnedBytes;
        std::vector<Range> ranges = rangesOf(allocator.segments());
        for (const Range& gone : without(m_ranges, ranges))
            add(gone.isExpandable ? SnapshotAction::SegmentUnmap : SnapshotAction::SegmentFree, gone.begin,
                std::int64_t(gone.end - gone.begin), gone.stream, stack);
        for (const Range& taken : without(ranges, m_ranges))
            add(taken.isExpandable ? SnapshotAction::SegmentMap : SnapshotAction::SegmentAlloc, taken.begin,
                std::int64_t(taken.end - taken.begin), taken.stream, stack);
        m_ranges = std::move(ranges);
    }

    /// Blocks that another stream is done with.
    void recordCompletions(const CachingAllocator& allocator)
    {
        std::erase_if(m_waiting, [&](const Waiting& one) {
            const AllocatorBlock& block = allocator.block(one.block);
            if (block.address == one.address && block.state == BlockState::Pending)
                return false;
            add(SnapshotAction::FreeCompleted, one.address, one.event.bytes, one.event.stream, one.stack);
            return true;
        });
    }

    FrameId frame(std::string_view name, std::string_view file)
    {
        const SnapshotFrame frame{m_snapshot.texts.id(name), m_snapshot.texts.id(file), 0};
        const auto [known, isNew] = m_frames.try_emplace({frame.name, frame.file}, FrameId(m_snapshot.frames.size()));
        if (isNew)
            m_snapshot.frames.push_back(frame);
        return known->second;
    }

    StackId stackOf(const Event& event)
    {
        const auto key = std::tuple(event.name, event.module, event.category, event.phase);
        if (const auto known = m_stacks.find(key); known != m_stacks.end())
            return known->second;
        const std::string &name = m_trace.names()[event.name], &module = m_trace.modules()[event.module];
        std::vector<FrameId> frames{frame(name.empty() ? categoryText(event.category) : std::string_view(name), "??")};
        if (!module.empty())
            frames.push_back(frame(module, "prediction"));
        frames.push_back(frame(functionOf(event.phase), "prediction"));
        return m_stacks[key] = m_snapshot.stacks.id(frames);
    }

    /// The function that a program's user would have called: what a reader of snapshots looks for.
    static std::string_view functionOf(Phase phase)
    {
        return phase == Phase::Setup ? "init" : phase == Phase::ZeroGrad ? "zero_grad" : phaseText(phase);
    }

    void addSegment(const AllocatorSegment& segment)
    {
        SnapshotSegment own;
        own.address = segment.address;
        own.size = segment.size;
        own.firstBlock = m_snapshot.blocks.size();
        own.blockCount = segment.blocks.size();
        own.stream = segment.stream;
        own.isSmall = segment.isSmall;
        own.isExpandable = segment.isExpandable;
        m_snapshot.segments.push_back(own);
        for (const AllocatorBlock& block : segment.blocks) {
            SnapshotBlock one{block.address, block.size, 0, noStack, SnapshotBlockState::Free};
            if (block.state == BlockState::Active || block.state == BlockState::Pending) {
                one.requested = block.requested;
                one.stack = m_stacksOf[block.address];
                one.state =
                    block.state == BlockState::Active ? SnapshotBlockState::Active : SnapshotBlockState::Pending;
            }
            m_snapshot.blocks.push_back(one);
        }
    }

    const Trace& m_trace;
    Snapshot m_snapshot;
    std::vector<Range> m_ranges;
    std::int64_t m_taken = 0, m_returned = 0, m_lastStream = 0;
    std::vector<Waiting> m_waiting;
    std::map<std::uint64_t, StackId> m_stacksOf; ///< of the last allocation at an address
    std::map<std::pair<TextId, TextId>, FrameId> m_frames;
    std::map<std::tuple<NameId, ModuleId, Category, Phase>, StackId> m_stacks;
};

} // namespace

Result<Snapshot> predictedSnapshot(const Trace& trace, const AllocatorOptions& options, std::size_t most)
{
    const std::size_t events = trace.events().size() + (trace.repetition().times - 1) * trace.repetition().length();
    if (events > most)
        return fail("trace.length", fmt::format("a step of {} events is too long to be written", events),
                    "fewer micro-batches (accumulation) say the same");
    MEMSCAPE_CHECK(checkWanted());
    Recorder recorder(trace);
    const AllocatorReplay replay =
        replayTrace(trace, options, {}, [&](const Event& event, const CachingAllocator& allocator, BlockIndex block) {
            recorder.hear(event, allocator, block);
        });
    return recorder.finish(replay, options);
}

bool isPredicted(const Snapshot& snapshot)
{
    bool isNamed = false;
    for (const SnapshotFrame& frame : snapshot.frames) {
        const std::string_view file = snapshot.texts[frame.file];
        isNamed |= file == "prediction";
        if (file != "prediction" && file != "??" && !file.empty())
            return false;
    }
    return isNamed;
}

} // namespace memscape
