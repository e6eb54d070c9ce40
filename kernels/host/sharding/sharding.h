// SPDX-License-Identifier: Apache-2.0
// `sharding` for its calibration and its tests; see sharding.cpp.
#pragma once

#include "core/experiments/sharding/sharding.h"
#include "kernels/host/link_prober.h"

#include <vector>

namespace memscape::host {

/// Seconds of an all-reduce of pieces of so many bytes between `ranks` ranks. Errors: those of RankGroup.
Result<std::vector<double>> measureRing(HostSession& session, ShardingWay way, int ranks, std::size_t pieceBytes,
                                        const StoppingOptions& options);

/// How a step of a ring of so many ranks, two or more, is probed, by the bytes of its pieces.
LinkPlan ringLinkPlan(HostSession& session, ShardingWay way, int ranks);

} // namespace memscape::host
