// SPDX-License-Identifier: Apache-2.0
// Memory of the host that a GPU copies from and to: pinned, which a copy engine reaches, or pageable, which the driver
// stages.
#pragma once

#include "kernels/cuda/session.h"

#include <memory>

namespace memscape::cuda {

/// Frees itself; pinned memory is left alone when the GPU hangs.
using HostMemory = std::unique_ptr<char, void (*)(char*)>;

/// Whole pages of zeros; pinned memory is also seen by the GPU (cudaHostAllocMapped). Waits for the session's stream
/// first. Errors: run.memory, naming what may be chosen instead; those of CUDA.
Result<HostMemory> takeHostMemory(GpuSession& session, bool isPinned, std::uint64_t bytes);

} // namespace memscape::cuda
