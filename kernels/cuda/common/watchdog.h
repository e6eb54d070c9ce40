// SPDX-License-Identifier: Apache-2.0
// Waiting for the GPU, but not for ever. A kernel that never ends (a lost barrier, a new one on its
// first GPU) would keep a synchronising call of CUDA for good. So a waiting thread asks again and again
// whether the stream is done: without a pause for the first millisecond, so that short kernels are not
// kept, then every 0.1 ms, until the deadline: 20 s, or the seconds in MEMSCAPE_GPU_DEADLINE.
//
// After it the GPU counts as hung until the process ends. Nothing waits for it then and nothing is
// freed on it, for either would block; at its end the process leaves without the goodbyes of the CUDA
// runtime, and the driver ends the kernel with it.
//
// Left out: a kernel that is only slow looks the same. A call that waits inside CUDA is not ended: the
// first launch of another kernel, which is loaded then, behind the one that hangs; so kernels that may
// hang are waited for one by one (attention's), or were all launched before. C++17: nvcc reads this file.
#pragma once

#include <string>

#include <cuda_runtime_api.h>

namespace memscape::cuda {

/// The outcome of what was queued; cudaErrorLaunchTimeout after the deadline, and ever after.
cudaError_t waitFor(cudaStream_t stream);
cudaError_t waitFor(cudaEvent_t event);

/// Whether a kernel did not end by the deadline.
bool isHung();
/// What the GPU hung at: `doing`, or what was said when this was asked first.
std::string hungWhile(const std::string& doing);
/// s
double waitingDeadline();
/// For tests, whose next GPU is a fresh one.
void forgetHang();

} // namespace memscape::cuda
