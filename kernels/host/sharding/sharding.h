// SPDX-License-Identifier: Apache-2.0
// `sharding` for its calibration and its tests; see sharding.cpp.
#pragma once

#include "core/experiments/sharding/sharding.h"
#include "kernels/host/session.h"
#include "kernels/host/sharding/ring.h"

#include <vector>

namespace memscape::host {

/// The step's collectives as places in the memory of a rank.
struct RingPlan
{
    std::vector<RingOperation> operations;
    std::size_t memory = 0;     ///< B of each rank
    std::uint64_t gathered = 0; ///< B of the largest whole weights that are gathered
};
/// Gradients and weights that stay have places of their own; what exists for a moment shares one.
RingPlan ringPlan(const std::vector<ShardCollective>& collectives, int zeroStage);

/// Seconds of an all-reduce of pieces of so many bytes between `ranks` ranks. Errors: those of RankGroup.
Result<std::vector<double>> measureRing(HostSession& session, ShardingWay way, int ranks, std::size_t pieceBytes,
                                        const StoppingOptions& options);

} // namespace memscape::host
