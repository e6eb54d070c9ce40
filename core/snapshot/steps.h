// SPDX-License-Identifier: Apache-2.0
// The training steps of a trace, and how they were found. In this order: the steps of a run file; steps of its labels;
// the profiler's annotations ("ProfilerStep#3"); a function of the user's own frames or an optimizer's step that comes
// back again and again; else a period of the sequence of requests: the shortest length L ≥ 8 of which at least three
// repetitions in a row allocate the same sizes (at most 5 % of them different).
//
// Left out: steps of changing shapes (lengths of a text) without labels: they repeat no sizes.
#pragma once

#include "core/snapshot/lifetimes.h"

namespace memscape {

enum class StepSource : std::uint8_t { None, Run, Labels, Annotations, Optimizer, Period };

struct SnapshotSteps
{
    StepSource source = StepSource::None;
    std::string how; ///< a sentence: "from the labels of the run"
    /// Moments: step i is [steps[i].first, steps[i].last); in order, without overlap.
    std::vector<SnapshotStep> steps;
    /// The steps [steady, steps.size()) are alike: what comes before is warm-up (state of the optimizer is made).
    std::size_t steady = 0;

    /// The step that holds an event, or nothing.
    std::optional<std::size_t> stepOf(std::size_t event) const;
};

SnapshotSteps findSteps(const Snapshot& snapshot, const Lifetimes& lifetimes);

} // namespace memscape
