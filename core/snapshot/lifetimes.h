// SPDX-License-Identifier: Apache-2.0
// What one device's trace says, rebuilt: every block from its allocation to its free, every segment from the driver's
// answer to its release, and the bytes at every moment.
//
// A moment is a number of events: moment m is the state after the first m events of the device's trace, so moment 0 is
// before the trace and moment `events` is when the file was written. The trace is a ring buffer and may begin in the
// middle. The state at its end is in the file (segments and blocks); everything earlier follows by undoing events: a
// free brings a block back, an allocation takes it away (as memory_viz does). A block that the trace frees but does not
// allocate was alive before it.
//
// Sizes. An event says what was asked for; the allocator gave a block of at least that size. A block that is alive at
// the end has its size in the file. For another one it is computed as the allocator does (core/trace): the request
// rounded up to 512 B (or by roundup_power2_divisions), and all that was left of its hole where the allocator does not
// split (at most 1 MiB in a large segment). `allocated` is the sum of these sizes, torch.cuda.memory_allocated().
//
// Of a block from before the trace whose neighbour is gone by then, this rest is not known (at most 1 MiB a block).
//
// A run on a CPU has no caching allocator: sizes are as asked for and what is reserved is what is active.
//
// Where trace and segments disagree, the segments count: see Reconciliation.
#pragma once

#include "core/snapshot/pace.h"
#include "core/snapshot/snapshot.h"
#include "core/trace/allocator_options.h"

#include <array>
#include <utility>

namespace memscape {

using Moment32 = std::uint32_t;   ///< a trace has fewer than 2^32 − 2 events
using LifetimeId = std::uint32_t; ///< in order of allocation; those from before the trace come first, by address
constexpr LifetimeId noLifetime = ~LifetimeId(0);

/// One block: it is alive at moments [begin, end), and counts as allocated until `freed`.
struct Lifetime
{
    std::uint64_t address = 0;
    std::int64_t size = 0;      ///< of the block
    std::int64_t requested = 0; ///< what the program asked for
    Moment32 begin = 0;         ///< 0: alive before the trace, else its event is begin − 1
    Moment32 freed = 0;         ///< the free was requested by event freed − 1; events + 1: never
    Moment32 end = 0;           ///< the free was completed by event end − 1; events + 1: alive at the end
    StackId stack = noStack;    ///< of its allocation, where known
    LabelId label = noLabel;
    std::uint16_t stream = 0;

    bool isAliveAt(std::size_t moment) const { return begin <= moment && moment < end; }
    bool overlaps(std::size_t first, std::size_t last) const { return begin < last && end > first; }
};

/// A range that the driver gave. Mapped pages of one expandable segment are ranges of their own here; layoutAt() joins
/// neighbours.
struct SegmentLifetime
{
    std::uint64_t address = 0;
    std::int64_t size = 0;
    Moment32 begin = 0, end = 0; ///< as those of a block
    StackId stack = noStack;
    std::uint16_t stream = 0;
    bool isSmall = false;
    bool isExpandable = false;
};

/// Bytes at a moment: the four numbers of torch.cuda.memory_stats().
struct SnapshotBytes
{
    std::int64_t allocated = 0; ///< blocks in the program's hands
    std::int64_t active = 0;    ///< and those that a stream still uses
    std::int64_t requested = 0; ///< what the program asked for, of the allocated ones
    std::int64_t reserved = 0;  ///< taken from the driver

    SnapshotBytes& operator+=(const SnapshotBytes& other);
    bool operator==(const SnapshotBytes&) const = default;
};

/// A piece of a segment at a moment: a block, or a hole (lifetime is noLifetime) that a request may get.
struct LaidBlock
{
    std::uint64_t address = 0;
    std::int64_t size = 0;
    LifetimeId lifetime = noLifetime;
    bool isPending = false; ///< freed by the program, still used by a stream
    bool isFree() const { return lifetime == noLifetime; }
};

struct LaidSegment
{
    std::uint64_t address = 0;
    std::int64_t size = 0;
    std::size_t firstBlock = 0, blockCount = 0; ///< of SnapshotLayout::blocks
    StackId stack = noStack;
    std::uint16_t stream = 0;
    bool isSmall = false;
    bool isExpandable = false;
};

/// All segments at a moment, by address, each tiled by its blocks and holes.
struct SnapshotLayout
{
    std::vector<LaidSegment> segments;
    std::vector<LaidBlock> blocks;
    std::int64_t largestFree = 0; ///< the largest hole
    std::int64_t free = 0;        ///< all holes
    std::int64_t freeWhole = 0;   ///< of them, segments without a block: empty_cache() gives these back
};

/// Where trace and segments contradict each other, counted; all 0 for a file as PyTorch writes it.
struct Reconciliation
{
    std::size_t unfreed =
        0; ///< allocated by the trace, never freed, not in the segments: ended at the next event there
    std::size_t freedTwice = 0;  ///< frees of what was free already: passed over
    std::size_t resurrected = 0; ///< active in the segments although the trace freed them: alive from there on
    std::size_t segments = 0;    ///< segments released but there, or given but not there
    bool isClean() const { return unfreed + freedTwice + resurrected + segments == 0; }
};

/// The options that the snapshot's allocator ran with: allocator_settings, defaults where the file has none.
AllocatorOptions allocatorOptionsOf(const Json& settings);

class Lifetimes
{
public:
    /// Rebuilds one device. Half a second for some millions of events; ends with predict.cancelled when it is not
    /// wanted any more. `snapshot` must outlive it. A device without a trace has one moment. Errors: snapshot.overflow.
    static Result<Lifetimes> rebuild(const Snapshot& snapshot, std::uint32_t device);
    static Result<Lifetimes> rebuild(const Snapshot& snapshot, std::uint32_t device, Pace& pace);
    /// The share of `pace` at which rebuilding ends; the rest is its caller's.
    static constexpr double rebuiltShare = 0.6;

    std::uint32_t device() const { return m_device; }
    std::size_t events() const { return m_trace.size(); } ///< moments are [0, events()]
    /// Event e of the device, 0 ≤ e < events(): the index in Snapshot::events.
    std::size_t eventIndex(std::size_t event) const { return m_trace.first + event; }
    SnapshotEvent event(std::size_t event) const { return m_snapshot->events[eventIndex(event)]; }
    /// The block that an event allocates or frees; noLifetime of other events.
    LifetimeId lifetimeOf(std::size_t event) const { return m_lifetimeOf[event]; }

    const std::vector<Lifetime>& all() const { return m_lifetimes; }
    const Lifetime& operator[](LifetimeId id) const { return m_lifetimes[id]; }
    const std::vector<SegmentLifetime>& segments() const { return m_segments; }
    const Reconciliation& reconciliation() const { return m_reconciliation; }
    bool hasCache() const { return m_hasCache; } ///< false on a CPU

    /// What event e changes.
    SnapshotBytes change(std::size_t event) const;
    /// Blocks that an event ends although it is not their free: event and block; empty in a file as PyTorch writes it.
    using Extra = std::pair<Moment32, LifetimeId>;
    std::span<const Extra> extrasOf(std::size_t event) const;
    SnapshotBytes bytesAt(std::size_t moment) const; ///< ≤ 64 events from a stored state: below a microsecond
    /// The last moment whose event is not later than `time` (microseconds since 1970). Times may stand still.
    std::size_t momentAt(std::int64_t time) const;
    std::int64_t timeAt(std::size_t moment) const; ///< of the moment's event; 0 without times

    /// Blocks alive, in no particular order. Cost: those alive and about as many events.
    std::vector<LifetimeId> aliveAt(std::size_t moment) const;
    /// The same of those that live at one of the moments [first, last).
    std::vector<LifetimeId> aliveIn(std::size_t first, std::size_t last) const;
    /// As the allocator laid them: milliseconds.
    SnapshotLayout layoutAt(std::size_t moment) const;

private:
    friend class LifetimeBuilder;
    std::int64_t reservedChange(std::size_t event) const;

    const Snapshot* m_snapshot = nullptr;
    SnapshotTrace m_trace;
    std::uint32_t m_device = 0;
    bool m_hasCache = true;
    std::vector<Lifetime> m_lifetimes;
    std::vector<SegmentLifetime> m_segments;
    std::vector<LifetimeId> m_lifetimeOf; ///< by event
    std::vector<Extra> m_extras;          ///< by event: what it ends although it is not its own free
    std::vector<std::pair<Moment32, std::int64_t>> m_reserved; ///< by event: changes of what is reserved
    static constexpr std::size_t stride = 64;
    std::vector<SnapshotBytes> m_states; ///< at moments 0, 64, 128 …
    std::vector<Moment32> m_checkpoints; ///< moments with a list of those alive
    std::vector<std::size_t> m_aliveEnds;
    std::vector<LifetimeId> m_alive;
    Reconciliation m_reconciliation;
};

} // namespace memscape
