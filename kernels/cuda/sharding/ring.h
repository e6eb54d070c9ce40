// SPDX-License-Identifier: Apache-2.0
// The kernel of `sharding` as a plain call; see ring.cu. C++17: nvcc reads this file too.
#pragma once

#include "kernels/cuda/kernels.h"

namespace memscape::cuda {

/// to[i] = a[i] + b[i]; elements of 4 bytes are floats, of 2 bytes integers without sign. `to` may be `a`.
struct RingAddLaunch
{
    int elementBytes = 4;
    const void* a = nullptr;
    const void* b = nullptr;
    void* to = nullptr;
    std::uint64_t count = 0;
};
/// cudaErrorInvalidValue for other elements, or none.
cudaError_t launchRingAdd(const RingAddLaunch& launch, cudaStream_t stream);
KernelCheck checkRingAdd(int elementBytes);

} // namespace memscape::cuda
