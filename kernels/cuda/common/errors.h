// SPDX-License-Identifier: Apache-2.0
// CUDA's error codes as errors with a remedy. Four kinds matter to the caller: out of memory (ask
// for less), no device any more, sticky errors, after which every call of this process fails, and a
// GPU that does not finish (watchdog.h); after the last two the worker has to end (run.sticky,
// run.hung).
//
// CUDA keeps the last error until it is read, and a launch reads it: the error of one call would be reported again as
// that of the next launch. So code that has noticed an error also takes it from CUDA.
#pragma once

#include "core/base/result.h"
#include "kernels/cuda/kernels.h"

#include <string>
#include <string_view>

#include <cuda_runtime_api.h>

namespace memscape::cuda {

/// After one of these the context is lost: only a new process can use the GPU again.
bool isSticky(cudaError_t error);

/// run.memory, device.missing, run.sticky, run.hung or run.failed; `doing` completes "while …". The
/// error is taken from CUDA.
Error cudaFailure(cudaError_t error, const std::string& doing);
/// Takes an error from CUDA that a library or a refused launch left behind.
void forgetCudaError();
/// Whether a call did what it should, for failures that are no error of the run.
bool succeeded(cudaError_t error);

/// Nothing, or the failure while `doing` `what`; no string is made where nothing failed, as launches are timed.
inline Result<void> cudaResult(cudaError_t error, std::string_view doing, std::string_view what = {})
{
    if (error == cudaSuccess)
        return {};
    return fail(cudaFailure(error, std::string(doing) + std::string(what)));
}

/// check.failed, or the error that the check ended with; both name the kernel.
Result<void> passedCheck(const KernelCheck& check);

/// Why no device can be listed, in one line with its remedy.
std::string missingReason(cudaError_t error);

} // namespace memscape::cuda
