// SPDX-License-Identifier: Apache-2.0
// The kernel of `in-place` on the fake GPU: it runs, element by element, and takes the time of its bytes at the rate of
// L2 or of DRAM.
#include "kernels/cuda/in-place/in_place.h"
#include "tests/kernels/cuda/fake_gpu.h"

#include <cstdio>

namespace memscape::cuda {

cudaError_t launchInPlace(const InPlaceLaunch& launch, int, cudaStream_t)
{
    if (fakeError() != cudaSuccess)
        return fakeError();
    for (std::uint64_t i = 0; i < launch.count && launch.count <= 4096; ++i) { // a large one only takes its time
        const double other = launch.other != nullptr ? double(launch.other[i]) : 1;
        launch.y[i] = float(inPlaceReference(launch.operation, launch.step, double(launch.x[i]), other));
    }
    const double arrays = (launch.y == launch.x ? 1 : 2) + (launch.other != nullptr);
    const double n = double(launch.count) * sizeof(float);
    const double rate =
        n * arrays <= double(fakeGpu().l2Bytes) ? fakeGpu().l2BytesPerSecond : fakeGpu().streamBytesPerSecond;
    return fakeLaunch("in place", fakeVariant(launch.version, launch.operation),
                      n * (2 + (launch.other != nullptr)) / rate);
}

cudaError_t launchSigns(float* values, std::uint64_t count, cudaStream_t)
{
    for (std::uint64_t i = 0; i < count && fakeError() == cudaSuccess; ++i)
        values[i] = i % 2 != 0 ? 1.0F : -1.0F;
    return fakeQueue("signs");
}

KernelCheck checkInPlace(int, InPlaceOperation, bool, int)
{
    KernelCheck check;
    check.error = fakeError();
    check.passed = fakeError() == cudaSuccess && !fakeGpu().wrongKernel;
    std::snprintf(check.kernel, sizeof check.kernel, "in-place");
    std::snprintf(check.detail, sizeof check.detail, "%s", check.passed ? "equal" : "3 of 9 differ");
    return check;
}

} // namespace memscape::cuda
