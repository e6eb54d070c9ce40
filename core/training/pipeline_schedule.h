// SPDX-License-Identifier: Apache-2.0
// In which order a rank of a pipeline runs forward and backward passes of micro-batches. p ranks, m micro-batches, v
// chunks of layers on each rank; chunk c of rank r is stage c p + r of the model.
//
//   gpipe        all forwards, then all backwards: m passes in flight (Huang et al. 2019)
//   1f1b         rank r runs min(p − r, m) forwards, then a backward and a forward in turn: so many in flight
//   interleaved  chunks in turn, p micro-batches each: 2 (p − r − 1) + (v − 1) p + 1 passes of a chunk in flight, so
//   the
//                first rank holds 1 + (p − 1) / (p v) of a whole model's activations (Narayanan et al. 2021,
//                section 2.2; Korthikanti et al. 2022, section 4.2.3)
//
// Left out: schedules that divide backward in two (zero bubble), micro-batches that p does not divide when interleaved.
#pragma once

#include "core/training/plan.h"

#include <cstdint>
#include <vector>

namespace memscape {

/// One pass of one micro-batch through one chunk of the rank.
struct PipelineAction
{
    bool isForward = true;
    std::uint32_t chunk = 0, microBatch = 0;
    bool operator==(const PipelineAction&) const = default;
};

/// All that rank `rank` runs in a step of `microBatches`, in order. The plan was checked.
std::vector<PipelineAction> pipelineActions(const Plan& plan, int rank, std::int64_t microBatches);

/// The most passes of a chunk of which backward has not run yet, at one moment of a step.
std::int64_t passesInFlight(const Plan& plan, int rank);

/// Micro-batches after which a step only repeats itself: those that fill the pipeline and two rounds more. Of GPipe,
/// which keeps them all, every one.
std::int64_t differentMicroBatches(const Plan& plan);

} // namespace memscape
