// SPDX-License-Identifier: Apache-2.0
// One device of a snapshot with all that is derived from it, made once and asked often: what a page holds.
//
//   auto snapshot = std::make_shared<const Snapshot>(*readSnapshot(path));      // on a thread
//   auto device = SnapshotDevice::analyse(snapshot, snapshot->devices().front()); // the same thread
//   device->timeline().columns(device->timeline().byEvents(0, device->lifetimes().events(), width));
//   device->lifetimes().layoutAt(moment);
//   flameTree(*snapshot, device->lifetimes(), device->lifetimes().aliveAt(moment));
//   findingsOf(*device, 0, device->lifetimes().events());
//
// Once made it never changes, so several threads may ask it.
#pragma once

#include "core/snapshot/findings.h"

#include <memory>

namespace memscape {

class SnapshotDevice
{
public:
    /// Errors: snapshot.device (this file has no such one), predict.cancelled.
    /// `progress`: shares from 0 to 1, on this or another thread, one at a time.
    static Result<std::shared_ptr<const SnapshotDevice>> analyse(std::shared_ptr<const Snapshot> snapshot,
                                                                 std::uint32_t device, Pace::Tell progress = {});

    const Snapshot& snapshot() const { return *m_snapshot; }
    std::uint32_t device() const { return m_device; }
    const Lifetimes& lifetimes() const { return *m_lifetimes; }
    const SnapshotSteps& steps() const { return *m_steps; }
    const SnapshotCategories& categories() const { return *m_categories; }
    const SnapshotTimeline& timeline() const { return *m_timeline; }

    /// Groups of blocks of this device: see groupLifetimes().
    std::vector<SnapshotGroup> groups(std::span<const LifetimeId> blocks, SnapshotGrouping grouping) const;
    /// Blocks in the program's hands: alive and not waiting for a stream.
    std::vector<LifetimeId> allocatedAt(std::size_t moment) const;
    /// "loss.backward, aten::mm, 24 MiB": what a tooltip says about a block, without markup.
    std::string describe(LifetimeId lifetime) const;

private:
    std::shared_ptr<const Snapshot> m_snapshot;
    std::uint32_t m_device = 0;
    std::unique_ptr<Lifetimes> m_lifetimes;
    std::unique_ptr<SnapshotSteps> m_steps;
    std::unique_ptr<SnapshotCategories> m_categories;
    std::unique_ptr<SnapshotTimeline> m_timeline;
};

/// The device with most events.
std::uint32_t busiestDevice(const Snapshot& snapshot);

/// Events [first, last): "1200:2400", "25%:75%", "0.25:0.75" (shares of the trace), ":2400", "1200:"; nothing means
/// all. Errors: snapshot.range.
struct EventRange
{
    std::size_t first = 0, last = 0;
};
Result<EventRange> parseEventRange(std::string_view text, std::size_t events);

/// The allocations for which the driver refused and cached segments were given back: the event of the segment_alloc
/// after each group of segment_free, see findings.h.
struct AllocationRetry
{
    std::size_t event = 0;     ///< segment_alloc, or the oom
    std::int64_t released = 0; ///< bytes
    std::int64_t time = 0;     ///< microseconds from the first release to the event
};
std::vector<AllocationRetry> allocationRetries(const SnapshotDevice& device, const EventRange& range);

/// The figures of a range: peak_allocated, peak_reserved, fragmentation (1 − peak_allocated /
/// peak_reserved), largest_free (where allocated is at its peak),
/// and beside them peak_requested, final_allocated, final_reserved, final_largest_free, retries; each with its why.
Figures snapshotFigures(const SnapshotDevice& device, const EventRange& range);

} // namespace memscape
