// SPDX-License-Identifier: Apache-2.0
// One sample, and enough samples of one point.
//
// Cold: flush → wait → gate → stamp → event → kernel → event → stamp → open the gate → wait. The
// gate holds the stream until everything is queued, so the time between the events is the GPU's
// alone; the stamps give the SM clock during it. Warm: the same without the flush. A kernel shorter
// than 50 µs is launched several times between the events and the time divided; its launches then
// follow each other back to back, so a sample is never shorter than the launch period.
#pragma once

#include "core/base/json.h"
#include "kernels/cuda/session.h"
#include "kernels/measure/quality.h"
#include "kernels/measure/stopping.h"
#include "kernels/measure/sweep.h"

#include <functional>
#include <vector>

namespace memscape::cuda {

/// What is timed. `launch` queues one run on the session's stream; `turn` counts launches, so that
/// a cold batch can walk another copy of its arrays each time.
struct Work
{
    std::function<cudaError_t(int turn)> launch;
    std::string name; ///< "the strided read", for errors
    /// False: more kernels than a stream's queue holds; the first runs while the last is being queued.
    bool isHeld = true;
};

struct Sample
{
    double seconds = 0;
    double clockHz = 0; ///< NaN when the stamps failed
};

/// Errors: run.failed when the gate timed out, and those of cudaFailure().
Result<Sample> takeSample(Session& session, const Work& work, bool cold, int batch);

/// At least 3 launches and 25 ms; the time of one launch, seen without gate.
Result<double> warmUp(Session& session, const Work& work);

/// Everything measured at one point, over its passes.
struct PointSamples
{
    PassSamples seconds;
    std::vector<double> clocks;
    StopReason stop = StopReason::Running;
    int batch = 1;
    double peak = 0; ///< B, counted memory
    double deviceDelta = 0; ///< B, by which the device's free memory fell

    Summary summary() const { return summarize(seconds.merged()); }
    /// `reference`: the clock that the SMs reach when busy.
    Quality quality(double reference) const;
    /// Grade, reason, stop rule, clocks and raw samples, for the `detail` of a point.
    Json detail(double reference) const;
};

/// Takes samples into `point` until `options` are satisfied.
Result<void> samplePass(Session& session, const Work& work, bool cold, int pass,
                        const StoppingOptions& options, PointSamples& point);

} // namespace memscape::cuda
