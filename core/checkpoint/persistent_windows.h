// SPDX-License-Identifier: Apache-2.0
// Where the recursion's cells have to be computed: below some memory a segment can't run, and from
// some memory on nothing of it is recomputed. Only what lies between is computed and stored.
#pragma once

#include "core/checkpoint/slot_chain.h"

namespace memscape::persistent {

/// Slots beside x_s. Below `first` infeasible; from `last` on nothing is recomputed.
struct Window
{
    std::int32_t first = 0;
    std::int32_t last = 0;
};

/// Segments s … t, 0 ≤ s ≤ t ≤ L, row by row.
class Segments
{
public:
    explicit Segments(int end)
        : m_count(std::size_t(end) + 1)
    { }
    std::size_t size() const { return m_count * (m_count + 1) / 2; }
    std::size_t operator()(int s, int t) const { return rowStart(s) + std::size_t(t); }
    /// `rowStart(s) + t` is segment s … t.
    std::size_t rowStart(int s) const { return std::size_t(s) * m_count - std::size_t(s) * std::size_t(s + 1) / 2; }

private:
    std::size_t m_count;
};

/// Every segment's window. `first` is a lower bound from the operations that every schedule has:
/// each stage passes with y_{t+1} resident, and runs backward beside its input. `last` is at most
/// `top`, from which on none is asked for.
std::vector<Window> segmentWindows(const SlotChain& chain, std::int64_t top);

} // namespace memscape::persistent
