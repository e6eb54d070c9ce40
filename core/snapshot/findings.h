// SPDX-License-Identifier: Apache-2.0
// What is remarkable about a run, each with its numbers and a remedy. A rule that has too little evidence says nothing:
// a healthy run has no finding of kind Problem.
//
//   growth           a line through the lowest allocated bytes of each steady step (least squares, at least 3 steps):
//                    slope > 0, r² ≥ 0.9, a rise of 64 KiB and of 0.5 % of the level, and blocks of every step that are
//                    alive a step later; names the lines that keep them. Parts of a period that may be layers of one
//                    step (no backward, no optimizer in them) must not keep more than a quarter of what they allocate.
//   fragmentation    at the peak (peakOf()): holes inside of segments that are in use, at least 10 % of reserved and
//                    32 MiB
//   out-of-memory    an oom entry: what was asked for, in which phase, the largest hole and all holes at that moment;
//                    whether packing would have served it; who holds most. offerFixes() says what would have saved how
//                    much, where the network is known
//   retained-graph   activations that live through the whole next training step, at least 1 % of the peak
//   gradients-kept   gradients of an earlier step alive when a forward ends, at least 5 % of the peak, in every steady
//                    step
//   cache-held       over the last steady steps allocated never exceeds half of reserved, and whole segments of at
//                    least 64 MiB stay empty
//   retries          segments were freed for one allocation, because the driver refused: segment_free, then
//                    segment_alloc from the same line and not from empty_cache()
//   run-error        the recorded run ended with an error
//   reconciliation   trace and segments contradict each other
//
// Of an event range, only steps that lie in it count.
#pragma once

#include "core/base/quantity.h"
#include "core/snapshot/groups.h"
#include "core/snapshot/snapshot_timeline.h"

namespace memscape {

enum class FindingLevel : std::uint8_t { Problem, Hint, Note };
std::string_view findingLevelText(FindingLevel level); ///< "problem", "hint", "note"

/// What would help, where the network is known, and by how much.
struct SnapshotFix
{
    std::string label;       ///< "Checkpoint every block"
    std::int64_t saving = 0; ///< B at the finding's place
};

struct SnapshotFinding
{
    std::string id; ///< "growth", "fragmentation", … as above
    FindingLevel level = FindingLevel::Note;
    std::string title;                         ///< "Grows by 1.8 MiB a step, every step"
    std::string evidence;                      ///< sentences with the numbers
    std::string remedy;                        ///< what to do
    Figures figures;                           ///< the numbers: growth_per_step, r2, steps …
    std::vector<SnapshotGroup> groups;         ///< who: stacks or lines, largest first
    std::vector<SnapshotFix> fixes;            ///< best first; only by offerFixes()
    std::size_t firstEvent = 0, lastEvent = 0; ///< where to look: events [first, last)
};

class SnapshotDevice;
/// Of the events [first, last) of a device, most serious first.
std::vector<SnapshotFinding> findingsOf(const SnapshotDevice& device, std::size_t first, std::size_t last);

/// Puts simulated fixes, best first, in the place of the general remedy of each out-of-memory finding; no fixes change
/// nothing. `plan`: whose they are, "gpt2, batch 8".
void offerFixes(std::vector<SnapshotFinding>& findings, const std::vector<SnapshotFix>& fixes, const std::string& plan,
                std::optional<Phase> phase);
/// The phase in which the last request was refused, where a stack or a label tells it.
std::optional<Phase> refusedPhase(const SnapshotDevice& device, const std::vector<SnapshotFinding>& findings);

Json findingToJson(const SnapshotFinding& finding);

} // namespace memscape
