// SPDX-License-Identifier: Apache-2.0
// A placed program (core/placement/placed_program.h) for real: the device is a pool that counts (counting_pool.h) and
// refuses what passes its limit, the link is copies, operators are products, gelu and passes over arrays. One core
// issues and computes; a second copies what is not waited for, in the order in which it was issued.
#pragma once

#include "core/experiments/placement/placement.h"
#include "kernels/host/common/product.h"
#include "kernels/host/session.h"

#include <memory>
#include <string>
#include <vector>

namespace memscape::host {

/// Seconds of the steps of one run, by what they do.
struct StepSums
{
    double compute = 0, host = 0, update = 0; ///< `host` and `update` are parts of `compute`
    double up = 0, down = 0, disk = 0;
    double copied = 0; ///< B over the link

    double transfer() const { return up + down + disk; }
};

class PlacedRun
{
public:
    /// Everything must outlive the run. Errors of open(): run.memory, run.skipped, run.cancelled.
    PlacedRun(HostSession& session, const PlacementCase& asked, const Placement& placement, ProductKernel product);
    ~PlacedRun();
    PlacedRun(const PlacedRun&) = delete;
    PlacedRun& operator=(const PlacedRun&) = delete;

    Result<void> open();
    /// One run from the beginning; s.
    Result<double> sideBySide();
    /// The same step by step on one core, each timed.
    Result<StepSums> inTurn();
    /// What came out of the last run, bit for bit against the same operators without any limit.
    Result<std::string> check();
    double highWater() const; ///< B of the pool, over all runs

private:
    struct State;
    std::unique_ptr<State> m_state;
};

} // namespace memscape::host
