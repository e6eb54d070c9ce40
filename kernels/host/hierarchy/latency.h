// SPDX-License-Identifier: Apache-2.0
// Samples of the pointer chase over a working set.
#pragma once

#include "kernels/host/session.h"

#include <cstdint>
#include <vector>

namespace memscape::host {

enum class LatencyVariant { Small, Huge, Window };

/// Window of the TLB-friendly chase: 64 pages of 4 KiB, what the first TLB of every core holds.
inline constexpr std::size_t chaseWindow = std::size_t{256} << 10;

struct LatencySamples
{
    std::vector<double> seconds; ///< per dependent load
    double hugeShare = 0;        ///< of the working set that lay on huge pages
};

/// Builds a new cycle over `bytes` (128 at least), warms it, and takes samples of a million loads or 20 ms each
/// on the first thread until `options` are met. Errors: run.memory, run.cancelled, check.failed.
Result<LatencySamples> measureLatency(HostSession& session, std::size_t bytes, LatencyVariant variant,
                                      std::uint64_t seed, const StoppingOptions& options);

} // namespace memscape::host
