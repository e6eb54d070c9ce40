// SPDX-License-Identifier: Apache-2.0
// The MLP chain on a GPU. Operations are queued on the session's stream; a mark is an event, so a
// time between marks is the GPU's alone. The host runs at most a few operations ahead, so that Stop
// is heard.
#pragma once

#include "kernels/cuda/common/cublas_lt.h"
#include "kernels/cuda/session.h"
#include "kernels/programs/checkpoint/mlp_device.h"

#include <functional>

namespace memscape::cuda {

/// Weights are filled from their seeds. `session` and `blas` (null: our own products) must outlive
/// the device. Errors: run.memory with what is needed and what is free, before anything is taken.
Result<std::unique_ptr<MlpDevice>> makeMlpDevice(GpuSession& session, CublasLt* blas, std::function<bool()> cancelled,
                                                 const MlpShape& shape, std::int64_t arenaBytes);

} // namespace memscape::cuda
