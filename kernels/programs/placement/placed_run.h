// SPDX-License-Identifier: Apache-2.0
// A placed program (core/placement/placed_program.h) for real, on any machine (placed_machine.h): its steps are issued
// in order over real arrays (placed_arrays.h), side by side or one by one, each timed.
#pragma once

#include "kernels/programs/placement/placed_arrays.h"

#include <string>

namespace memscape {

/// Seconds of the steps of one run, by what they do.
struct StepSums
{
    double compute = 0, host = 0, update = 0; ///< `host` and `update` are parts of `compute`
    double up = 0, down = 0;
    double copied = 0; ///< B over the link

    double transfer() const { return up + down; }
};

class PlacedRun
{
public:
    /// Everything must outlive the run. Errors of open(): run.memory, run.skipped, run.cancelled.
    PlacedRun(PlacedMachine& machine, const PlacementCase& asked, const Placement& placement);

    Result<void> open() { return m_arrays.open(); }
    /// One run from the beginning; s.
    Result<double> sideBySide();
    /// The same step by step, each timed.
    Result<StepSums> inTurn();
    /// What came out of one run, bit for bit against the same operators without any limit. Errors: check.failed.
    Result<std::string> check();
    double highWater() const { return m_arrays.highWater(); } ///< B of the pool, over all runs

private:
    Result<void> issue(StepSums* sums);
    Result<void> work(std::uint32_t index);
    Result<void> compute(const ProgramStep& step);
    Result<void> backward(const ProgramStep& step);

    PlacedMachine& m_machine;
    const PlacementCase& m_asked;
    const Placement& m_placement;
    const OperatorGraph& m_graph;
    const PlacedProgram& m_program;
    PlacedArrays m_arrays;
    int m_updates = 0; ///< Adam's steps so far
};

} // namespace memscape
