// SPDX-License-Identifier: Apache-2.0
// Two snapshots side by side: their figures, and who holds more in one than in the other at the peak, by category and
// by line or stack. Stacks are compared by their texts, so the files may come from different processes.
#pragma once

#include "core/snapshot/snapshot_device.h"

namespace memscape {

struct SnapshotDifference
{
    std::string label;
    std::int64_t bytesA = 0, bytesB = 0;
    std::size_t blocksA = 0, blocksB = 0;
    std::int64_t change() const { return bytesB - bytesA; }
};

struct SnapshotComparison
{
    Figures a, b;                                              ///< the same keys
    std::size_t momentA = 0, momentB = 0;                      ///< the peaks that are compared
    std::vector<SnapshotDifference> categories, lines, stacks; ///< largest change first
};

SnapshotComparison compareSnapshots(const SnapshotDevice& a, const SnapshotDevice& b);
Json snapshotComparisonToJson(const SnapshotComparison& comparison);

} // namespace memscape
