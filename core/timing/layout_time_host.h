// SPDX-License-Identifier: Apache-2.0
// One core of a host: what layout_time.h says, for walks that have elements on a device whose rates are known.
#pragma once

#include "core/timing/layout_time.h"

#include <optional>

namespace memscape {

Result<WalkTime> hostWalkTime(const Device& device, const TensorWalk& walk);
/// `version` from 1 to copyVersionCount.
Result<CopyTime> hostCopyTime(const Device& device, const TensorWalk& walk, int version);

inline constexpr double prefetchedPage = 4096; ///< B; prefetchers stop at its end

/// The two loops of a copy that are turned: `a` is fastest in the target, `b` in the storage.
struct CopyPlane
{
    std::int64_t aCount = 1, aFrom = 0;          ///< stride in the storage, elements
    std::int64_t bCount = 1, bFrom = 0, bTo = 0; ///< strides in storage and target
    std::size_t b = 0;                           ///< its loop; 0 where nothing is turned
};
CopyPlane copyPlane(const TensorWalk& walk);

/// The same from probes of the kernels themselves (walk_rates.h). Nothing where the device has none.
std::optional<WalkTime> calibratedWalkTime(const Device& device, const TensorWalk& walk, const WalkTime& counted);
std::optional<CopyTime> calibratedCopyTime(const Device& device, const TensorWalk& walk, int version,
                                           const WalkTime& read);

} // namespace memscape
