// SPDX-License-Identifier: Apache-2.0
// The rules of findings.h, each adds at most a few findings.
#pragma once

#include "core/snapshot/snapshot_device.h"

namespace memscape {

struct FindingInput
{
    const SnapshotDevice& device;
    EventRange range;
    std::vector<SnapshotStep> steady; ///< steps of the range that are alike
    std::int64_t peakAllocated = 0;
    bool hasBackward = false; ///< stacks or labels show one
};

void findGrowth(const FindingInput& input, std::vector<SnapshotFinding>& findings);
void findRetainedGraph(const FindingInput& input, std::vector<SnapshotFinding>& findings);
void findGradientsKept(const FindingInput& input, std::vector<SnapshotFinding>& findings);
void findCacheHeld(const FindingInput& input, std::vector<SnapshotFinding>& findings);
void findFragmentation(const FindingInput& input, std::vector<SnapshotFinding>& findings);
void findOutOfMemory(const FindingInput& input, std::vector<SnapshotFinding>& findings);
void findRetries(const FindingInput& input, std::vector<SnapshotFinding>& findings);

} // namespace memscape
