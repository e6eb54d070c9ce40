// SPDX-License-Identifier: Apache-2.0
// What is remarkable about a run, each with its numbers and a remedy. A rule that has too little evidence says nothing:
// a healthy run has no finding of kind Problem.
//
//   growth           a line through the lowest allocated bytes of each steady step (least squares, at least 4 steps):
//                    slope > 0, r² ≥ 0.9, rise over the steps ≥ 1 MiB and ≥ 1 % of the level, and each step keeps
//                    blocks; names the stacks whose blocks are kept, by bytes a step
//   fragmentation    at the reserved peak: reserved − allocated ≥ 10 % of reserved and ≥ 32 MiB, of which whole free
//                    segments (the cache can give them back) are not counted
//   out-of-memory    an oom entry: what was asked for, in which phase, the largest hole and the sum of holes at that
//                    moment; whether packing would have served it; who holds most
//   retained-graph   activations (by category) that outlive the step that made them, at least 1 % of the peak
//   gradients-kept   gradients alive through the next forward: zero_grad(set_to_none=True) after the step
//   cache-held       at the end allocated ≤ half of reserved and ≥ 64 MiB could be given back
//   retries          segments were freed and taken anew because the driver refused (segment_free directly before a
//                    segment_alloc, both within one allocation)
//   reconciliation   trace and segments contradict each other
#pragma once

#include "core/base/quantity.h"
#include "core/snapshot/groups.h"
#include "core/snapshot/snapshot_timeline.h"

namespace memscape {

enum class FindingLevel : std::uint8_t { Problem, Hint, Note };
std::string_view findingLevelText(FindingLevel level); ///< "problem", "hint", "note"

struct SnapshotFinding
{
    std::string id; ///< "growth", "fragmentation", … as above
    FindingLevel level = FindingLevel::Note;
    std::string title;                         ///< "Grows by 1.8 MiB a step, every step"
    std::string evidence;                      ///< sentences with the numbers
    std::string remedy;                        ///< what to do
    Figures figures;                           ///< the numbers: growth_per_step, r2, steps …
    std::vector<SnapshotGroup> groups;         ///< who: stacks or lines, largest first
    std::size_t firstEvent = 0, lastEvent = 0; ///< where to look: events [first, last)
};

class SnapshotDevice;
/// Of the events [first, last) of a device, most serious first.
std::vector<SnapshotFinding> findingsOf(const SnapshotDevice& device, std::size_t first, std::size_t last);

Json findingToJson(const SnapshotFinding& finding);

} // namespace memscape
