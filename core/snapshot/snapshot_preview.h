// SPDX-License-Identifier: Apache-2.0
// A first look at a snapshot while it is read: bytes in blocks after each of the events that are there so far, in few
// columns. It only adds: an allocation its size, a completed free the same back (core/snapshot/lifetimes.h puts the
// trace together with the segments when all is read). What was alive before the trace is not known yet, so the lowest
// point counts as nothing. Devices follow each other, as in the file.
#pragma once

#include "core/snapshot/snapshot.h"

namespace memscape {

class SnapshotPreview
{
public:
    static constexpr std::size_t mostColumns = 1024;

    /// Takes the events that came since the last call, but the last one: it may not be whole.
    void follow(const SnapshotEvents& events);

    std::size_t events() const { return m_events; }
    /// Bytes: the most in each column, above the lowest of all. Each column is as many events as the others.
    std::vector<std::int64_t> columns() const;

private:
    void halve();

    std::vector<std::int64_t> m_highest; ///< sums, by column
    std::size_t m_each = 64;             ///< events of a column
    std::size_t m_events = 0;
    std::int64_t m_sum = 0, m_lowest = 0;
};

} // namespace memscape
