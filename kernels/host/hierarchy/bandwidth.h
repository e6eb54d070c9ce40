// SPDX-License-Identifier: Apache-2.0
// Samples of the streams over a working set that the threads share out among themselves.
#pragma once

#include "kernels/host/common/streams.h"
#include "kernels/host/session.h"

#include <cstdint>
#include <vector>

namespace memscape::host {

struct BandwidthPoint
{
    std::size_t bytes = 0; ///< the working set: all arrays of all threads together
    Operation operation = Operation::Read;
    int threads = 1;
    Pages pages = Pages::Huge;
    StreamFunction kernel = nullptr; ///< null: bestStream(operation)
};

struct BandwidthSamples
{
    std::vector<double> seconds; ///< for `namedBytes`
    double namedBytes = 0;       ///< read plus written, of all threads
    double hugeShare = 0;
};

/// Every thread works on a slice of its own, bytes / threads, touched first by itself: in the levels
/// that each core has for itself this is its private data, in shared ones its share. A sample is as
/// many passes as take a millisecond. Errors: run.memory, run.cancelled.
Result<BandwidthSamples> measureBandwidth(HostSession& session, const BandwidthPoint& point,
                                          const StoppingOptions& options);

} // namespace memscape::host
