// SPDX-License-Identifier: Apache-2.0
// The ranks of a pipeline, one step each. The first holds the embedding and the most micro-batches in flight, the last
// the head and the logits: which is the fullest is found by running them all. Ranks between have the same layers and,
// the further behind, fewer micro-batches: where only the fullest is asked for, those like the one before them are left
// out.
#pragma once

#include "core/experiments/training-memory/training_memory.h"

namespace memscape {

/// That setup as one rank runs it.
TrainingSetup setupOfRank(TrainingSetup setup, int rank);

enum class RanksAsked { All, Fullest };
/// Each rank's step into an allocator without a limit; of `Fullest`, ranks that cannot be it have no bytes. Empty
/// without a pipeline. Errors: those of network() and stepTotals().
Result<std::vector<PipelineRank>> pipelineRanks(RecordedNetworks& networks, const TrainingSetup& setup,
                                                RanksAsked asked);
int fullestRank(const std::vector<PipelineRank>& ranks);

/// The step of all ranks: the busiest one's time, what it waits for others, and the longest update and reduction of any
/// rank. Sets the ranks' work. Errors: those of setupTime().
Result<StepTime> pipelineStepTime(const Device& device, const TrainingSetup& setup, RecordedNetworks& networks,
                                  std::vector<PipelineRank>& ranks);

} // namespace memscape
