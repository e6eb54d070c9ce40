// SPDX-License-Identifier: Apache-2.0
// The passes over elements of `placement` as plain calls; see placement.cu. C++17: nvcc reads this file too.
#pragma once

#include "kernels/cuda/kernels.h"

namespace memscape::cuda {

enum class PlacedElements {
    Add,      ///< out = a + b
    Multiply, ///< out = a · b
    Relu,     ///< out = max(a, 0)
    ReluSlope ///< out = b where a > 0, else 0
};

/// `out` may be `a` or `b`; Relu reads no `b`.
struct PlacedElementsLaunch
{
    PlacedElements operation = PlacedElements::Add;
    const float* a = nullptr;
    const float* b = nullptr;
    float* out = nullptr;
    std::uint64_t count = 0;
};
/// cudaErrorInvalidValue for no elements.
cudaError_t launchPlacedElements(const PlacedElementsLaunch& launch, cudaStream_t stream);
KernelCheck checkPlacedElements(PlacedElements operation);

} // namespace memscape::cuda
