// SPDX-License-Identifier: Apache-2.0
// The kernel of `transfer` on the fake GPU: it runs on small chunks, and takes the time of its bytes or of its
// operations.
#include "kernels/cuda/transfer/transfer.h"
#include "tests/kernels/cuda/fake_gpu.h"

#include <algorithm>
#include <cstdio>

namespace memscape::cuda {

cudaError_t launchTransferWork(const TransferWorkLaunch& launch, int, cudaStream_t)
{
    if (fakeError() != cudaSuccess)
        return fakeError();
    for (std::uint64_t i = 0; i < launch.count && launch.count <= 4096; ++i) { // a large one only takes its time
        float x = launch.from[i];
        for (unsigned round = 0; round < launch.rounds; ++round)
            x = x * 0.5F + 0.25F;
        if (launch.to != nullptr)
            launch.to[i] = x;
        *launch.sum += x;
    }
    const double bytes = double(launch.count) * sizeof(float), operations = 2.0 * launch.rounds * double(launch.count);
    return fakeLaunch("work on a chunk", fakeVariant(launch.version, launch.to != nullptr),
                      std::max(bytes / fakeGpu().streamBytesPerSecond, operations / fakeGpu().flopsPerSecond));
}

KernelCheck checkTransferWork(int, bool, int)
{
    KernelCheck check;
    check.error = fakeError();
    check.passed = fakeError() == cudaSuccess && !fakeGpu().wrongKernel;
    std::snprintf(check.kernel, sizeof check.kernel, "work on a chunk");
    std::snprintf(check.detail, sizeof check.detail, "%s", check.passed ? "equal" : "3 of 9 differ");
    return check;
}

} // namespace memscape::cuda
