// SPDX-License-Identifier: Apache-2.0
// The kernel of `sharding` on the fake GPU, which runs.
#include "kernels/cuda/sharding/ring.h"
#include "tests/kernels/cuda/fake_gpu.h"

#include <cstdio>

namespace memscape::cuda {

template <typename Number> static void ringSums(const RingAddLaunch& launch)
{
    for (std::uint64_t i = 0; i < launch.count; ++i)
        static_cast<Number*>(launch.to)[i] =
            static_cast<Number>(static_cast<const Number*>(launch.a)[i] + static_cast<const Number*>(launch.b)[i]);
}

cudaError_t launchRingAdd(const RingAddLaunch& launch, cudaStream_t stream)
{
    if (fakeError() != cudaSuccess)
        return fakeError();
    const std::uint64_t bytes = launch.count * static_cast<std::uint64_t>(launch.elementBytes);
    fakeReads(stream, launch.a, bytes);
    fakeReads(stream, launch.b, bytes);
    fakeWrites(stream, launch.to, bytes);
    launch.elementBytes == 4 ? ringSums<float>(launch) : ringSums<std::uint16_t>(launch);
    return fakeLaunch("ring add", fakeVariant(launch.elementBytes),
                      3.0 * double(bytes) / fakeGpu().streamBytesPerSecond);
}

KernelCheck checkRingAdd(int elementBytes)
{
    KernelCheck check;
    check.error = fakeError();
    check.passed = fakeError() == cudaSuccess && !fakeGpu().wrongKernel;
    std::snprintf(check.kernel, sizeof check.kernel, "sum of a ring's pieces, %d B", elementBytes);
    std::snprintf(check.detail, sizeof check.detail, "%s", check.passed ? "equal" : "3 of 9 differ");
    return check;
}

} // namespace memscape::cuda
