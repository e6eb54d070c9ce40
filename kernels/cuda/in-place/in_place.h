// SPDX-License-Identifier: Apache-2.0
// The kernel of `in-place` as a plain call; see in_place.cu. C++17: nvcc reads this file too.
#pragma once

#include "core/experiments/in-place/in_place_functions.h"
#include "kernels/cuda/kernels.h"

namespace memscape::cuda {

constexpr int inPlaceVersions = 2;

/// y = f(x) for `count` elements, a multiple of 16; y may be x.
struct InPlaceLaunch
{
    int version = inPlaceVersions;
    InPlaceOperation operation = InPlaceOperation::Relu;
    InPlaceStep step;
    const float* x = nullptr;
    const float* other = nullptr; ///< the second factor of a product
    float* y = nullptr;
    std::uint64_t count = 0;
};
/// cudaErrorInvalidValue for a version that does not exist.
cudaError_t launchInPlace(const InPlaceLaunch& launch, int multiprocessors, cudaStream_t stream);
/// Fills `count` floats with 1 and −1, in no order.
cudaError_t launchSigns(float* values, std::uint64_t count, cudaStream_t stream);
KernelCheck checkInPlace(int version, InPlaceOperation operation, bool isInPlace, int multiprocessors);

} // namespace memscape::cuda
