// SPDX-License-Identifier: Apache-2.0
// One sample, and enough samples of one point.
//
// Cold: flush → wait → blocking kernel → stamp → event → kernel → event → stamp → release → wait. The
// blocking kernel holds the stream until everything is queued, so the time between the events is the GPU's
// alone; the stamps give the SM clock during it. Warm: the same without the flush. A kernel shorter
// than 200 µs is launched several times between the events and the time divided; its launches then
// follow each other back to back, so a sample is never shorter than the launch period.
//
// Nothing may wait behind the blocking kernel, or both wait for each other until the timeout. So
// every kernel runs once without it (meet): CUDA loads a kernel at its first launch, and that may
// wait for all that is queued. And only so many launches are held as fit into the stream's queue;
// of work with more, the first runs while the last is still being queued.
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
    std::string name;         ///< "the strided read", for errors
    std::size_t launches = 1; ///< of kernels in one run, at most
};

struct Sample
{
    double seconds = 0;
    double clockHz = 0; ///< NaN when the stamps failed
};

/// Runs it once without the blocking kernel and waits for it: its kernels are loaded then.
Result<void> meet(GpuSession& session, const Work& work);

/// Of work that was met. Errors: run.failed when the blocking kernel timed out, and those of cudaFailure().
Result<Sample> takeSample(GpuSession& session, const Work& work, bool cold, int batch);

/// Meets it; then at least 3 launches and 25 ms. The time of one launch.
Result<double> warmUp(GpuSession& session, const Work& work);

/// Everything measured at one point, over its passes.
struct PointSamples
{
    PassSamples seconds;
    std::vector<double> clocks;
    StopReason stop = StopReason::Running;
    int batch = 1;
    bool isDense = false;   ///< products, which power caps: see RunConditions::clockDrift
    double peak = 0;        ///< B, counted memory
    double deviceDelta = 0; ///< B, by which the device's free memory fell

    Summary summary() const { return summarize(seconds.merged()); }
    /// `reference`: the clock that the SMs reach when busy.
    Quality quality(double reference) const;
    /// Stop rule, launches in a sample, clocks, for the `detail` of a point.
    Json detail() const;
};

/// Takes samples into `point` until `options` are satisfied.
Result<void> samplePass(GpuSession& session, const Work& work, bool cold, int pass, const StoppingOptions& options,
                        PointSamples& point);

} // namespace memscape::cuda
