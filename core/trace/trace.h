// SPDX-License-Identifier: Apache-2.0
// Bytes over time: every allocation and every free of one training step (or of a recorded run), in
// order. The step simulator, the optimizer and a snapshot of a real PyTorch all write this type, so
// a predicted and a measured timeline lie on one plot and answer the same questions: how high is
// the peak, when is it, which tensors are alive at it (peak.h), what happens first on a smaller device
// (peak.h), what does it look like over time (timeline.h), what does PyTorch's allocator reserve
// for it (allocator.h).
//
// Moments are event indices: the k-th moment is the state after events [0, k]. Micro-batches that are alike are
// stored once (Repetition) and counted as often as they happen. The leading events
// of Phase::Setup are what is alive before the step begins (weights, optimizer state, the batch).
// Bytes are what the program asked for; rounding to 512 is the allocator's business.
//
// Not modelled: the time between two events, and several devices (one trace is one device).
#pragma once

#include "core/base/result.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace memscape {

/// What a block of memory is for: the colours of every plot of memory.
enum class Category : std::uint8_t {
    Weights,        ///< parameters and buffers, in the precision that the forward pass reads
    MasterWeights,  ///< the fp32 copy that mixed precision updates
    Gradients,      ///< of parameters
    OptimizerState, ///< moments, factors, quantization constants
    Activations,    ///< forward results, saved for backward or still in a variable
    Temporary,      ///< freed in the operation, or in the backward or optimizer step, that made it
    Communication,  ///< gathered weights, reduce buckets
    KeyValueCache,  ///< inference
    Workspace,      ///< cuBLAS, cuDNN
    Input,          ///< the batch and its targets
    Unknown,        ///< recorded runs only
};
constexpr std::size_t categoryCount = std::size_t(Category::Unknown) + 1;
std::string_view categoryText(Category category); ///< "weights", "optimizer state", …

enum class Phase : std::uint8_t { Setup, Forward, Backward, Optimizer, ZeroGrad };
constexpr std::size_t phaseCount = std::size_t(Phase::ZeroGrad) + 1;
std::string_view phaseText(Phase phase); ///< "setup", "forward", "backward", "optimizer", …

using BlockId = std::uint32_t;  ///< one allocation; never reused
using NameId = std::uint32_t;   ///< what the tensor is within its module: "weight", "softmax"
using ModuleId = std::uint32_t; ///< index of Trace::modules(), 0 is the whole network
constexpr BlockId noBlock = 0;

enum class EventKind : std::uint8_t { Allocate, Free };

/// One allocation or one free; a free repeats what its allocation said, but with its own phase.
struct Event
{
    std::int64_t bytes = 0;
    BlockId block = noBlock;
    NameId name = 0;
    ModuleId module = 0;
    std::uint16_t microBatch = 0;
    std::uint16_t stream = 0;
    EventKind kind = EventKind::Allocate;
    Category category = Category::Unknown;
    Phase phase = Phase::Setup;
    bool isBehind = false; ///< a free: another stream was given the block
    /// When it happens other streams have come past the blocks freed behind, but for the newest so many (passBehind).
    std::uint32_t waiting = UINT32_MAX;

    bool isAllocation() const { return kind == EventKind::Allocate; }
    std::int64_t change() const { return isAllocation() ? bytes : -bytes; }
};
static_assert(sizeof(Event) <= 32, "a step of a large model has millions of these");

/// The stored events [first, last) happen `times` times, one after the other: micro-batches. Each time ends with as
/// many bytes as it began with. What it frees of the time before is what it made itself, `blocks` block ids earlier.
struct Repetition
{
    std::size_t first = 0;
    std::size_t last = 0;
    std::size_t times = 1;
    BlockId blocks = 0;

    std::size_t length() const { return last - first; }
};

/// Texts and their ids, in order of their first use; 0 is the empty one.
class NameTable
{
public:
    NameTable() { id({}); }
    std::uint32_t id(std::string_view text);
    const std::vector<std::string>& texts() const { return m_texts; }

private:
    std::size_t slotOf(std::string_view text) const;
    void grow();

    std::vector<std::string> m_texts;
    std::vector<std::uint32_t> m_slots; ///< a power of two of them, open addressing: id + 1, 0 is free
};

enum class TraceKeeps : std::uint8_t {
    Events,
    Counts, ///< live and peak bytes alone: what asks for events, blocks or moments must not be called
};
class CachingAllocator;

/// What a step leaves in its allocator for the next one, which finds what is alive before a step where the first one
/// put it.
struct StepMemory
{
    std::vector<BlockId> setup = {}; ///< in the order in which a step asks for them; noBlock where a step has freed it
    std::vector<BlockId> left = {};  ///< loss and outputs, which the loop names until the next backward begins
    bool isMade = false;             ///< a step has run
    int microBatches = 0;            ///< that have run of a step whose update is still to come
};

/// Blocks that came and went while what is alive before the step was laid out: they shape what an allocator reserves
/// and count nowhere else.
struct Passing
{
    std::vector<std::int64_t> bytes = {};
    std::size_t last = 0; ///< the stored event before which they end
};

class Trace
{
public:
    /// `modules` may be shared by many traces of one network; a trace that needs another one makes its own copy.
    explicit Trace(std::shared_ptr<NameTable> modules = std::make_shared<NameTable>(),
                   TraceKeeps keeps = TraceKeeps::Events);
    /// One that only counts and hands every allocation and free on to an allocator, as long as that serves them.
    /// With `memory` it is one of several steps, one after the other in the same allocator.
    Trace(std::shared_ptr<NameTable> modules, CachingAllocator& allocator, StepMemory* memory = nullptr);

    // --- writing --------------------------------------------------------------------------------
    /// Events from now on belong to this phase (and micro-batch, 0-based).
    void enter(Phase phase, std::uint16_t microBatch = 0);
    Phase phase() const { return m_phase; }

    /// A new block. No bytes, no block: returns noBlock and writes nothing, as PyTorch does.
    /// `bytes` must not be negative (our bug); a sum of live bytes beyond 2^63 - 1 makes
    /// `check()` an error.
    BlockId allocate(std::int64_t bytes, Category category, NameId name = 0, ModuleId module = 0,
                     std::uint16_t stream = 0);
    /// Ends a live block; noBlock is ignored. Freeing twice is our bug.
    void free(BlockId block);
    /// The same of a block that another stream was given (CachingAllocator::freeBehind).
    void freeBehind(BlockId block);
    /// Other streams are done with what was freed so, but for the newest `waiting`: before the next event.
    void passBehind(std::size_t waiting);
    /// From now on until `endPassing()`, before anything else is written.
    void beginPassing(std::vector<std::int64_t> bytes);
    void endPassing();
    /// The step is over: its memory has what is left for the next one.
    void endStep();
    /// Blocks of the setup so far.
    std::size_t setupCount() const { return m_nextSetup; }
    /// The next part of this step finds these blocks as its setup behind the first `count`; noBlock: it makes one.
    void handOn(std::size_t count, const std::vector<BlockId>& blocks);

    NameId name(std::string_view text);     ///< interned: the same text gives the same id; 0 where it only counts
    ModuleId module(std::string_view path); ///< interned: "transformer.h.3.mlp"
    NameId nameOf(BlockId block) const;     ///< of a trace that only counts, 0
    void reserve(std::size_t events);
    /// The events from `first` on happen `times` times, at least once; they have just been written a second time in a
    /// row. At most one part of a trace does.
    void repeat(std::size_t first, std::size_t times, BlockId blocks);

    // --- reading --------------------------------------------------------------------------------
    /// As they are stored: a repetition once. Nothing else of a trace with a repetition counts so.
    const std::vector<Event>& events() const { return m_events; }
    const Repetition& repetition() const { return m_repetition; }
    const Passing& passing() const { return m_passing; }
    /// All that happen.
    std::size_t eventCount() const
    {
        return m_counted + m_events.size() + (m_repetition.times - 1) * m_repetition.length();
    }
    /// Where a moment's event is stored, and at which moment a stored one happens first.
    std::size_t storedAt(std::size_t moment) const;
    std::size_t momentOf(std::size_t stored) const;
    const Event& eventAt(std::size_t moment) const { return m_events[storedAt(moment)]; }
    const std::vector<std::string>& names() const { return m_names.texts(); }
    const std::vector<std::string>& modules() const { return m_modules->texts(); }
    const std::shared_ptr<NameTable>& moduleTable() const { return m_modules; }
    std::size_t setupEvents() const { return m_setupEvents; } ///< how many lead the trace
    std::size_t blockCount() const { return m_allocations.size() - 1; }
    /// The newest block before a stored event.
    BlockId blockBefore(std::size_t stored) const;
    bool isLive(BlockId block) const { return block != noBlock && m_live[block]; }
    /// The event that made a block.
    const Event& allocation(BlockId block) const { return m_events[m_allocations[block]]; }

    bool isRefused() const { return m_isRefused; }         ///< the allocator has refused a block
    std::int64_t liveBytes() const { return m_liveBytes; } ///< after the last event
    std::int64_t peakBytes() const { return m_peakBytes; } ///< over all events
    std::int64_t peakBytes(Phase phase) const { return m_phasePeaks[std::size_t(phase)]; }

    /// trace.overflow when live bytes went beyond 2^63 - 1 at some event.
    Result<void> check() const;

private:
    void add(const Event& event);
    void free(BlockId block, bool isBehind);
    void count(std::int64_t change);
    BlockId allocateCounted(std::int64_t bytes, std::uint16_t stream);
    BlockId takeBlock(std::int64_t bytes, std::uint16_t stream);
    BlockId takeSetup(std::int64_t bytes, std::uint16_t stream);
    void freeCounted(BlockId block, bool isBehind);

    std::vector<Event> m_events;
    std::vector<std::uint32_t> m_allocations; ///< block -> index of its event
    std::vector<bool> m_live;                 ///< block -> allocated and not freed
    std::vector<std::int64_t> m_sizes;        ///< block -> bytes, of a trace that only counts
    TraceKeeps m_keeps;
    CachingAllocator* m_allocator = nullptr;
    StepMemory* m_memory = nullptr;
    std::size_t m_nextSetup = 0;
    std::vector<bool> m_isOfStep; ///< by block: this step has made it and not freed it
    std::size_t m_counted = 0;    ///< events that were counted
    bool m_isRefused = false;
    NameTable m_names;
    std::shared_ptr<NameTable> m_modules;
    std::array<std::int64_t, phaseCount> m_phasePeaks{};
    std::int64_t m_liveBytes = 0;
    std::int64_t m_peakBytes = 0;
    std::size_t m_setupEvents = 0;
    Repetition m_repetition;
    Passing m_passing;
    std::vector<BlockId> m_passingBlocks; ///< of the allocator
    Phase m_phase = Phase::Setup;
    std::uint16_t m_microBatch = 0;
    std::uint32_t m_waiting = UINT32_MAX; ///< what the next event says
    bool m_overflow = false;
};

} // namespace memscape
