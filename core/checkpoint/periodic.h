// SPDX-License-Identifier: Apache-2.0
// Schedules that need no search: everything is kept; the inputs of equal segments are (Chen, Xu,
// Zhang, Guestrin 2016; torch.utils.checkpoint_sequential).
//
//     forward    a segment's first stage keeps its input (Fck), the others drop theirs (F∅)
//     backward   from the last segment to the first: run the segment again, saving everything,
//                then its backwards; the last segment may be saved in the first pass, so that
//                nothing of it runs twice
//
// They use no sizes and times: the replay gives their costs.
#pragma once

#include "core/checkpoint/chain.h"
#include "core/checkpoint/schedule.h"

namespace memscape {

/// Whether the segment next to the loss is saved in the first pass or run again like the others.
enum class LastSegment { Kept, Recomputed };

/// No forward runs twice.
Schedule keepEverything(int length);

/// Segments of `every` stages; the last may be shorter. every ≥ 1; beyond the length it is one
/// segment.
Schedule everyStages(int length, int every, LastSegment last);

/// Chen's √n: round(√L) segments of ⌊L / segments⌋ stages, the rest in the last one, which is kept.
Schedule squareRootSchedule(int length);

} // namespace memscape
