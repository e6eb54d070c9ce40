// SPDX-License-Identifier: Apache-2.0
// The persistent recursion on exact sizes, without slots. The least extra time of a segment falls in
// steps as its memory grows; instead of one cell a slot, the steps themselves are kept:
//
//     (m_0, e_0), (m_1, e_1), …    m ascending, e descending: e_i is the least from m_i up to m_{i+1}
//
// Saving shifts a segment's steps, a cut adds those of two segments, and the lower envelope of all
// is what stays (states that another one dominates go). Times are whole multiples of a power of two
// so small that doubles would not tell more, so sums in another order are equal and dominate.
//
// How many steps there are depends on the chain: chains of few different stages (a network's layers)
// have some hundreds a segment; sizes without anything in common double them with every stage. So the
// work is limited, and beyond the limit sizes are rounded to slots. Segments whose stages are the same as those
// of a segment further back have its steps: a network of equal layers is solved in O(L²) merges.
#pragma once

#include "core/checkpoint/slot_chain.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace memscape::persistent {

/// From `memory` on (beside x_s), `extra` quanta of time beyond saving everything.
struct ExactStep
{
    std::int64_t memory = 0;
    std::int64_t extra = 0;
};

/// The steps of every segment.
class ExactTable
{
public:
    /// Of segment number i (see Segments).
    std::span<const ExactStep> steps(std::size_t segment) const
    {
        return {m_steps.data() + m_ranges[segment].start, m_ranges[segment].count};
    }
    /// Infinite below the first step.
    double extra(std::size_t segment, std::int64_t memory) const;
    double seconds(std::int64_t extra) const { return double(extra) * m_quantum; }
    std::size_t bytes() const { return m_steps.capacity() * sizeof(ExactStep) + m_ranges.size() * sizeof(Range); }

private:
    friend class ExactFilling;
    struct Range
    {
        std::size_t start = 0;
        std::size_t count = 0;
    };
    std::vector<Range> m_ranges;
    std::vector<ExactStep> m_steps;
    double m_quantum = 1;
};

struct ExactLimits
{
    std::int64_t memory = 0;                ///< beside x_0; what needs more is left out
    std::int64_t work = 0;                  ///< steps that may be looked at, some nanoseconds each
    std::function<bool()> isCancelled = {}; ///< asked now and then
};

/// The table of a chain in units of one (discretise(chain, 1)), all of whose extra times are at most
/// `extraLimit`; nothing when the limit of work is passed, or it was cancelled.
std::optional<ExactTable> fillExact(const SlotChain& chain, double extraLimit, const ExactLimits& limits);

} // namespace memscape::persistent
