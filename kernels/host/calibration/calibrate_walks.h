// SPDX-License-Identifier: Apache-2.0
// The walks and transpositions by which `layout` is calibrated; core/timing/walk_rates.h describes them.
#pragma once

#include "core/access/views/tensor_walk.h"
#include "kernels/host/session.h"

#include <string>
#include <vector>

namespace memscape::host {

struct WalkProbe
{
    WalkRate rate; ///< its seconds are to be measured
    TensorWalk walk;
    int version = 0;  ///< of the copy; 0: the walk is only read
    double units = 1; ///< runs, elements or visits that a pass has
    std::string label;

    double storageBytes() const;
    double targetBytes() const;
};

/// For a host with these caches, no array above `largest` bytes. None where the caches are not known.
std::vector<WalkProbe> walkProbes(const Device& device, double largest);

/// The arrays that all probes share; they grow as they must.
struct WalkArrays
{
    Buffer storage, target;
};
/// Samples in seconds of one unit. Errors: run.memory, run.cancelled.
Result<std::vector<double>> measureWalk(HostSession& session, WalkArrays& arrays, const WalkProbe& probe,
                                        const StoppingOptions& options);

} // namespace memscape::host
