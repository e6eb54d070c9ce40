// SPDX-License-Identifier: Apache-2.0
// A chain of linear layers that the GPU trains: kernels/programs/batch-size/batch_device.h. Products by cuBLASLt, or by
// our own kernel; everything else by batch.cu. A step is timed behind the blocking kernel, from its first kernel to its
// last (sampler.h); one of more kernels than a queue holds begins while the rest is still being queued.
#pragma once

#include "kernels/cuda/common/cublas_lt.h"
#include "kernels/cuda/session.h"
#include "kernels/programs/batch-size/batch_device.h"

#include <functional>
#include <vector>

namespace memscape::cuda {

/// `blas` null: our own products. `session`, `blas` and `clocks` outlive the devices; the SM clock of every sample
/// is appended to `clocks` unless it is null.
BatchDeviceFactory batchDevices(GpuSession& session, CublasLt* blas, std::function<bool()> cancelled,
                                std::vector<double>* clocks);

} // namespace memscape::cuda
