// SPDX-License-Identifier: Apache-2.0
// `sharding` for its calibration and its tests; see sharding.cpp.
#pragma once

#include "core/experiments/sharding/sharding.h"
#include "kernels/host/link_prober.h"

#include <optional>
#include <vector>

namespace memscape::host {

/// Seconds of a step with pieces of so many bytes between `ranks` ranks; small ones are timed several in a row. Errors:
/// those of RankGroup.
Result<std::vector<double>> measureRing(HostSession& session, const RingKind& kind, int ranks, std::size_t pieceBytes,
                                        const StoppingOptions& options);

/// How a step of a ring is probed, by the bytes of its pieces. None with one core, or where more ranks would be needed
/// than are measured.
std::optional<LinkPlan> ringLinkPlan(HostSession& session, const RingKind& kind);

} // namespace memscape::host
