// SPDX-License-Identifier: Apache-2.0
// Attention on a GPU: tensors beside the pool, everything else from a counting pool over an arena
// that is as large as the prediction says, taken from the session's pool.
#pragma once

#include "kernels/cuda/common/cublas_lt.h"
#include "kernels/cuda/common/sampler.h"
#include "kernels/cuda/session.h"
#include "kernels/programs/attention/attention_device.h"

#include <functional>

namespace memscape::cuda {

/// The current device's, 9.0 for an H200; 0 when it does not say.
double computeCapability();

/// The version with the head dimensions its program is compiled for: a prediction knows more.
AttentionVersion compiledVersion(AttentionVersion version);

class GpuAttention : public AttentionDevice
{
public:
    /// One sample with the clock it was taken at; sample() is its seconds.
    virtual Result<Sample> timed(AttentionPass pass) = 0;
    Result<double> sample(AttentionPass pass) override
    {
        MEMSCAPE_TRY(sample, timed(pass));
        return sample.seconds;
    }
    /// Runs in one sample of the pass, once there was one.
    virtual int runsPerSample(AttentionPass pass) const = 0;
};

/// `blas`: for versions whose products are the library's; null when it was not found. `session` and
/// `blas` must outlive the device. Errors: run.memory with what is needed and what is free, before
/// anything is taken; attention.unsupported, also for a GPU that is too old and a missing library.
Result<std::unique_ptr<GpuAttention>> makeAttentionDevice(GpuSession& session, CublasLt* blas,
                                                          std::function<bool()> cancelled, const AttentionTask& task);

} // namespace memscape::cuda
