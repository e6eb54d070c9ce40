// SPDX-License-Identifier: Apache-2.0
// The measurement of `checkpoint` at one point, whatever machine runs it:
//
//   1  a small chain against the reference in double; every way to drop values against keeping all
//   2  the chain itself: the gradients of the schedule against those of keeping everything, bit for
//      bit, with poisoned arrays; when there is no memory to keep everything, a note says so
//   3  three passes, in each a profile of the operations and some steps of the schedule
//   4  the median step beside what the profile's times add up to in the same schedule
//
// How long it will take is said after the first operations. A stopped run keeps its results: after the
// schedule's run in 2 its bytes and forwards, later its timed steps and the profile. Left out: the
// optimizer's step.
#pragma once

#include "core/experiment/experiment.h"
#include "kernels/measure/backend.h"
#include "kernels/measure/clock.h"
#include "kernels/measure/quality.h"
#include "kernels/programs/checkpoint/chain_profile.h"

namespace memscape {

struct ChainTask
{
    MlpShape shape;
    Schedule schedule;
};

/// What the run needs of the machine around the device.
struct ChainRunner
{
    MlpDeviceFactory makeDevice;
    const Clock& clock; ///< for how long the whole takes, not for operations
    RunSink& sink;
    /// Called around each pass: reads canaries and clocks.
    std::function<void()> observe;
    /// What was seen since the run began, for so many samples.
    std::function<RunConditions(std::size_t samples)> conditions;
};

inline constexpr int chainPasses = 3;

struct ChainRun
{
    Schedule schedule;
    Replay step;       ///< the step whose time is nearest to the median
    PassSamples steps; ///< s
    ChainProfile profile;
    Chain chain;                    ///< with the profile's times
    double profileMakespan = 0;     ///< of a whole profile
    std::int64_t predictedPeak = 0; ///< the replay's, B
    bool isCompared = false;        ///< with the gradients of keeping everything
    std::string comparison;         ///< what was compared, in a sentence
    std::string check;              ///< of the small chain
    double loss = 0;
    int profiledStages = 0;
    Quality quality;
    Json method;
    bool complete = true;
};

/// Errors: chain.*, schedule.invalid, run.memory (need and available), check.failed, run.cancelled
/// before the schedule ran once, those of the device.
Result<ChainRun> runChain(const ChainTask& task, const ChainRunner& runner);

/// The figures in the prediction's keys, and profile_makespan.
Figures chainFigures(const ChainRun& run);
/// Memory over time, the series "memory": two points an operation, at what it holds while it runs.
Series chainMemorySeries(const ChainRun& run);
Json chainRunDetail(const ChainRun& run);

} // namespace memscape
