// SPDX-License-Identifier: Apache-2.0
// How long the operations of the MLP chain take on a machine, each way to run them apart. A profile
// is taken by running whole schedules of a chain of a few stages (everything saved both ways;
// inputs kept and made again), so that every operation finds caches and weights as it does in a
// step, not warm from being repeated. All stages are equal, so a form has one time: the median over
// stages and passes.
#pragma once

#include "core/checkpoint/replay.h"
#include "kernels/measure/sweep.h"
#include "kernels/programs/checkpoint/chain_executor.h"

#include <map>

namespace memscape {

/// What is timed apart: "forward" (z in place, nothing saved), "forward all", "forward result",
/// "backward all", "backward result", "loss".
std::string operationForm(OperationKind kind, MlpSave way);

class ChainProfile
{
public:
    /// Runs the schedules over the first `stages` stages once each, in an order that changes with
    /// `pass`. Errors: those of execute().
    Result<void> takePass(MlpDevice& device, const MlpShape& shape, std::int64_t arenaBytes, int stages, int pass);

    /// Median of a form in s; 0 when it was never timed.
    double median(const std::string& form) const;
    /// Every form has been timed: a run that is stopped may leave some out.
    bool isWhole() const;
    /// The chain with these times in it.
    Result<Chain> chainOf(const MlpShape& shape) const;
    const std::map<std::string, PassSamples>& samples() const { return m_samples; }

private:
    void add(const Schedule& schedule, MlpSave way, const Replay& replay, int pass);

    std::map<std::string, PassSamples> m_samples;
};

} // namespace memscape
