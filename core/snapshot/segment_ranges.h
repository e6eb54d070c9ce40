// SPDX-License-Identifier: Apache-2.0
// Which addresses the driver has given, followed event by event. A segment comes and goes whole; pages of an expandable
// segment are mapped and unmapped in pieces that need not match, so a range is divided where a piece of it ends.
#pragma once

#include "core/snapshot/lifetimes.h"

#include <map>

namespace memscape {

class SegmentRanges
{
public:
    explicit SegmentRanges(std::vector<SegmentLifetime>& segments)
        : m_segments(segments)
    { }

    /// A range is there from `moment` on. What lies under it ends: `contradictions` counts it.
    void add(SegmentLifetime range);
    /// [address, address + size) ends at `moment`. What of it was never given (and never taken) was there from the
    /// beginning; what was taken before is a contradiction.
    void remove(const SegmentLifetime& range, Moment32 moment);
    /// What is there at the end, as the file says: of one segment.
    void settle(const SegmentLifetime& segment);
    /// After all: ranges that the file does not have any more end at `last`; those it has live until `end`.
    void finish(Moment32 last, Moment32 end);

    std::size_t contradictions = 0;

private:
    struct Known
    {
        std::uint64_t end = 0;
        std::uint32_t segment = 0; ///< of m_segments
        bool isOpen = false;
        bool isSettled = false;
    };
    using Places = std::map<std::uint64_t, Known>;

    void divideAt(std::uint64_t address);
    Places::iterator openFrom(std::uint64_t address, SegmentLifetime range);

    std::vector<SegmentLifetime>& m_segments;
    Places m_known; ///< open and closed ranges, without overlap
};

} // namespace memscape
