// SPDX-License-Identifier: Apache-2.0
// The passes over elements of `placement` on the fake GPU, which run.
#include "kernels/cuda/placement/placement.h"
#include "tests/kernels/cuda/fake_gpu.h"

#include <cstdio>

namespace memscape::cuda {

cudaError_t launchPlacedElements(const PlacedElementsLaunch& launch, cudaStream_t stream)
{
    for (const float* input : {launch.a, launch.b}) {
        if (input != nullptr)
            fakeReads(stream, input, 4 * launch.count);
    }
    fakeWrites(stream, launch.out, 4 * launch.count);
    for (std::uint64_t i = 0; i < launch.count && fakeError() == cudaSuccess; ++i) {
        const float a = launch.a[i], b = launch.b != nullptr ? launch.b[i] : 0;
        switch (launch.operation) {
        case PlacedElements::Add: launch.out[i] = a + b; break;
        case PlacedElements::Multiply: launch.out[i] = a * b; break;
        case PlacedElements::Relu: launch.out[i] = a > 0 ? a : 0; break;
        case PlacedElements::ReluSlope: launch.out[i] = a > 0 ? b : 0; break;
        }
    }
    return fakeLaunch("placed elements", fakeVariant(launch.operation),
                      12.0 * double(launch.count) / fakeGpu().streamBytesPerSecond);
}

KernelCheck checkPlacedElements(PlacedElements)
{
    KernelCheck check;
    check.error = fakeError();
    check.passed = fakeError() == cudaSuccess && !fakeGpu().wrongKernel;
    std::snprintf(check.kernel, sizeof check.kernel, "sum of elements");
    std::snprintf(check.detail, sizeof check.detail, "%s", check.passed ? "equal" : "3 of 9 differ");
    return check;
}

} // namespace memscape::cuda
