// SPDX-License-Identifier: Apache-2.0
// A pool over one arena that counts to the byte. It hands out places in an arena that another object
// has (host pages, GPU memory), rounded up to poolGranularity, first fit, and knows what is alive
// and what the most was. The high water is the peak memory of a live run: not what a system says
// about a process, but the sum of what was really taken and not yet given back, the quantity that a
// schedule's replay predicts.
//
// Left out: growing. An arena that is too small is an error, so that nothing swaps.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <map>

namespace memscape {

class CountingPool
{
public:
    explicit CountingPool(std::int64_t capacity)
        : m_capacity(capacity)
    { }

    /// Offset of at least `bytes` (> 0) in the arena. Errors: run.memory.
    Result<std::int64_t> take(std::int64_t bytes);
    /// `offset` came from take() and was not given back since.
    void give(std::int64_t offset);

    std::int64_t used() const { return m_used; }
    std::int64_t highWater() const { return m_highWater; }
    std::int64_t capacity() const { return m_capacity; }
    /// From here on the high water is of what is alive now.
    void resetHighWater() { m_highWater = m_used; }

private:
    std::int64_t m_capacity;
    std::int64_t m_used = 0, m_highWater = 0;
    std::map<std::int64_t, std::int64_t> m_taken; ///< bytes by offset
};

} // namespace memscape
