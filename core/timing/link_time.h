// SPDX-License-Identifier: Apache-2.0
// What a way for bytes costs: T = α + n/β, the latency of a link and its bandwidth. Half of β is reached at αβ bytes.
//
// A link within a host goes through its caches: of data that the last cache holds a share h of,
//     1/β = h/β_near + (1 − h)/β_far,    h by the cache's knee (working_set.h)
// Both rates and α are fitted to times of several sizes: least squares of the relative error, so that 4 bytes count as
// much as 64 MiB, and none of the three below zero.
//
// Left out: other traffic, steps between the sizes at which a protocol changes.
#pragma once

#include "core/base/result.h"
#include "core/device/device.h"

#include <string>
#include <vector>

namespace memscape {

/// The share of `workingSet` bytes that the last cache of a host holds for streams; 1 where no cache is known.
double cachedShare(const Device& host, double workingSet);

/// Seconds per byte of a link, `cached` of the data held by a cache; NaN where the bandwidth is not known.
double secondsPerByte(const Link& link, double cached = 1);

/// A size and the time that it took.
struct LinkProbe
{
    double bytes = 0;
    double seconds = 0;
    double cached = 1; ///< share of what is touched that the last cache holds
};

/// What was probed of one kind.
struct LinkProbes
{
    std::string id, label;
    std::vector<LinkProbe> points;
};

struct FittedLink
{
    Link link;
    double residual = 0; ///< median of |model / probe − 1|
};

/// Errors: calibration.probes with fewer than two sizes that took time.
Result<FittedLink> fitLink(const LinkProbes& probes);

} // namespace memscape
