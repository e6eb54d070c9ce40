// SPDX-License-Identifier: Apache-2.0
// Training steps on a GPU. Passes and products are queued on the session's stream; the host waits at the
// end of a step, and before the optimizer when a scaler checks for infinities. A step's time lies
// between two events: what the GPU takes, its waiting for the host included, as in eager PyTorch.
#pragma once

#include "kernels/cuda/common/cublas_lt.h"
#include "kernels/cuda/session.h"
#include "kernels/cuda/sweep_run.h"
#include "kernels/programs/training-memory/amp_trainer.h"

#include <functional>
#include <set>
#include <string>

namespace memscape::cuda {

/// Products that the library had no algorithm for, so that our own kernel multiplied: "9 × 11 × 7".
using AmpFallbacks = std::set<std::string>;

/// Devices that multiply by `blas` or, where that is null or has no algorithm for a shape, by our own
/// kernels. All of the arguments must outlive the devices. A device's own errors: run.memory with what is
/// needed and what is free, before anything is taken.
AmpDeviceFactory gpuAmpDevices(GpuSession& session, CublasLt* blas, std::function<bool()> cancelled,
                               AmpFallbacks& fallbacks);

/// `precision`, operation=train, on a GPU. Errors: run.skipped for formats that are not trained in, those of
/// runSweep().
Result<MeasuredRun> measureTrainingOnGpu(GpuSession& session, const SweepPlan& plan, RunSink& sink);

/// A training step in a format against differences of the loss. Errors: run.skipped where the GPU has no
/// products in it, and those of checkTrainer().
Result<Check> checkGpuTraining(GpuSession& session, CublasLt* blas, Format format);

} // namespace memscape::cuda
