// SPDX-License-Identifier: Apache-2.0
// CUDA's error codes as errors with a remedy. Three kinds matter to the caller: out of memory (ask
// for less), no device any more, and sticky errors, after which every call of this process fails
// and the worker has to end (run.sticky).
#pragma once

#include "core/base/result.h"

#include <string>

#include <cuda_runtime_api.h>

namespace memscape::cuda {

/// After one of these the context is lost: only a new process can use the GPU again.
bool isSticky(cudaError_t error);

/// run.memory, device.missing, run.sticky or run.failed; `doing` completes "while …".
Error cudaFailure(cudaError_t error, const std::string& doing);

/// Nothing, or the failure.
inline Result<void> cudaResult(cudaError_t error, const std::string& doing)
{
    if (error == cudaSuccess)
        return {};
    return fail(cudaFailure(error, doing));
}

/// Why no device can be listed, in one line with its remedy.
std::string missingReason(cudaError_t error);

} // namespace memscape::cuda
