// SPDX-License-Identifier: Apache-2.0
// The steps in which Lifetimes::rebuild() works: follow the trace forwards, settle with the file's blocks, put the
// blocks of before the trace first, give sizes, sum up.
#pragma once

#include "core/snapshot/address_map.h"
#include "core/snapshot/segment_ranges.h"

namespace memscape {

class LifetimeBuilder
{
public:
    LifetimeBuilder(const Snapshot& snapshot, std::uint32_t device, Pace& pace);
    Result<Lifetimes> build();

private:
    void follow();
    void allocate(std::size_t event, const SnapshotEvent& entry);
    void release(std::size_t event, const SnapshotEvent& entry);
    LifetimeId openFor(std::uint64_t address, const SnapshotEvent& entry);
    void settleBlocks();
    void settleBlock(const SnapshotBlock& block);
    void endUnfreed();
    void reopen(LifetimeId id);
    void settleSegments();
    void sortEarlier();
    void giveSizes();
    void giveSize(LifetimeId id, std::int64_t rounded, std::uint64_t limit);
    Result<void> sumUp();
    void listReserved();
    void listAlive();

    struct Place ///< what an address was last
    {
        LifetimeId lifetime = noLifetime;
        bool isOpen = false;
    };

    Lifetimes m_made;
    const Snapshot& m_snapshot;
    Pace& m_pace;
    std::vector<Lifetime>& m_lifetimes;
    SegmentRanges m_ranges;
    AddressMap m_placeOf; ///< address -> of m_places
    std::vector<Place> m_places;
    std::vector<bool> m_isSettled;           ///< by lifetime: the file has it, with its size
    std::vector<LifetimeId> m_completedOnly; ///< from before the trace, with a free_completed but no free_requested
    bool m_hasRequests = true;               ///< false: old traces and those of a CPU have none
    std::size_t m_events = 0;
    Moment32 m_never = 0; ///< events + 1
};

} // namespace memscape
