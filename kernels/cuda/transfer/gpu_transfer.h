// SPDX-License-Identifier: Apache-2.0
// One case of `transfer` on a GPU, ready to run: memory at both ends, buffers, a stream for each buffer in flight.
#pragma once

#include "kernels/cuda/session.h"

#include "core/experiments/transfer/transfer.h"

#include <memory>

namespace memscape::cuda {

class GpuTransfer
{
public:
    GpuTransfer(GpuSession& session, TransferCase asked);
    ~GpuTransfer();
    GpuTransfer(const GpuTransfer&) = delete;
    GpuTransfer& operator=(const GpuTransfer&) = delete;

    /// Errors: run.memory; run.skipped where a neighbour is asked for and there is none; those of CUDA.
    Result<void> open();
    /// First and last chunk there and back, every byte. Errors: check.failed, those of CUDA.
    Result<void> check();
    /// Seconds between two events around all chunks.
    Result<double> sample(bool withCopies, bool withKernel);

private:
    struct Parts;
    std::unique_ptr<Parts> m_parts;
};

} // namespace memscape::cuda
