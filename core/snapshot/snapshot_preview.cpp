// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/snapshot_preview.h"

#include <algorithm>

namespace memscape {

void SnapshotPreview::follow(const SnapshotEvents& events)
{
    for (; m_events + 1 < events.size(); ++m_events) {
        // Of a damaged file the sums may be too large for a number; what they wrap to harms nothing.
        const auto size = std::uint64_t(events.bytes(m_events));
        if (events.action(m_events) == SnapshotAction::Allocate)
            m_sum = std::int64_t(std::uint64_t(m_sum) + size);
        else if (events.action(m_events) == SnapshotAction::FreeCompleted)
            m_sum = std::int64_t(std::uint64_t(m_sum) - size);
        m_lowest = std::min(m_lowest, m_sum);
        if (m_events == m_highest.size() * m_each) {
            if (m_highest.size() == mostColumns)
                halve();
            m_highest.push_back(m_sum);
        }
        m_highest.back() = std::max(m_highest.back(), m_sum);
    }
}

/// Two columns become one.
void SnapshotPreview::halve()
{
    for (std::size_t i = 0; i < m_highest.size() / 2; ++i)
        m_highest[i] = std::max(m_highest[2 * i], m_highest[2 * i + 1]);
    m_highest.resize(m_highest.size() / 2);
    m_each *= 2;
}

std::vector<std::int64_t> SnapshotPreview::columns() const
{
    std::vector<std::int64_t> columns = m_highest;
    for (std::int64_t& column : columns)
        column = std::int64_t(std::uint64_t(column) - std::uint64_t(m_lowest));
    return columns;
}

} // namespace memscape
