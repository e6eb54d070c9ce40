// SPDX-License-Identifier: Apache-2.0
// The training steps of a trace, and how they were found. In this order: the steps of a run file; steps of its labels;
// the profiler's annotations ("ProfilerStep#3"); an optimizer's step that comes back again and again; else a period of
// the sequence of requests: the shortest length L ≥ 8 of which at least three repetitions in a row allocate the same
// sizes (at most 5 % of them different). A predicted step is one step: nothing in it is a step of its own.
//
// Left out: steps of changing shapes (lengths of a text) without labels: they repeat no sizes.
#pragma once

#include "core/snapshot/lifetimes.h"
#include "core/snapshot/stack_meaning.h"

namespace memscape {

enum class StepSource : std::uint8_t { None, Run, Labels, Annotations, Optimizer, Period };

struct SnapshotSteps
{
    StepSource source = StepSource::None;
    std::string how; ///< a sentence: "from the labels of the run"
    /// Moments: step i is [steps[i].first, steps[i].last); in order, without overlap.
    std::vector<SnapshotStep> steps;
    /// The steps [steady, steadyEnd) are alike: before them is warm-up (the optimizer's state is made), after them a
    /// step that the end of the trace cut off.
    std::size_t steady = 0, steadyEnd = 0;
    std::size_t steadyCount() const { return steadyEnd - steady; }
    /// The parts of a period may be the layers of one step rather than steps: a backward or an optimizer's step in each
    /// says that they are not. Always true for the other sources.
    bool isTraining = true;

    /// The step that holds an event, or nothing.
    std::optional<std::size_t> stepOf(std::size_t event) const;
};

SnapshotSteps findSteps(const Snapshot& snapshot, const Lifetimes& lifetimes,
                        const std::vector<StackMeaning>& meanings);

} // namespace memscape
