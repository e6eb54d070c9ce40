// SPDX-License-Identifier: Apache-2.0
// A placed program on a GPU and its host: operators in the session's stream, copies up and down in one stream each, a
// step's event behind it, which the streams of those that come after wait for. The host's operators and its Adam run on
// all cores of the host while the streams go on.
//
// Pageable memory is copied when its turn has come, as the driver stages it within the call.
#pragma once

#include "kernels/cuda/common/cublas_lt.h"
#include "kernels/cuda/session.h"
#include "kernels/host/session.h"
#include "kernels/programs/placement/placed_machine.h"

#include <functional>
#include <memory>

namespace memscape::cuda {

/// All must outlive it; `blas` may be null: our own kernel multiplies. Errors: those of CUDA.
Result<std::unique_ptr<PlacedMachine>> makePlacedMachine(GpuSession& session, CublasLt* blas,
                                                         host::HostSession& hostSession, bool isPinned,
                                                         std::function<bool()> cancelled);

} // namespace memscape::cuda
