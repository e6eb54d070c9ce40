// SPDX-License-Identifier: Apache-2.0
// What a rank of a ring does to a piece that has arrived: adds it to its own. Copies are calls of the runtime
// (gpu_ring.cpp). Left out: vector loads; a link between GPUs is slower than their memory.
#include "kernels/cuda/sharding/ring.h"

#include "kernels/cuda/common/check.cuh"

#include "kernels/programs/common/mlp_numbers.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace memscape::cuda {

// ---- 3. Kernels -------------------------------------------------------------------------------

template <typename Number> __global__ void ringAdd_v1(const Number* a, const Number* b, Number* to, std::uint64_t count)
{
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    for (std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x; i < count; i += all)
        to[i] = static_cast<Number>(a[i] + b[i]);
}

// ---- 4. Launchers -----------------------------------------------------------------------------

template <typename Number> static cudaError_t launchOf(const RingAddLaunch& launch, cudaStream_t stream)
{
    const auto blocks = static_cast<unsigned>(std::min<std::uint64_t>((launch.count + 255) / 256, 4096));
    ringAdd_v1<<<blocks, 256, 0, stream>>>(static_cast<const Number*>(launch.a), static_cast<const Number*>(launch.b),
                                           static_cast<Number*>(launch.to), launch.count);
    return cudaGetLastError();
}

cudaError_t launchRingAdd(const RingAddLaunch& launch, cudaStream_t stream)
{
    if (launch.count == 0 || (launch.elementBytes != 2 && launch.elementBytes != 4))
        return cudaErrorInvalidValue;
    return launch.elementBytes == 4 ? launchOf<float>(launch, stream) : launchOf<std::uint16_t>(launch, stream);
}

// ---- 5. Checks --------------------------------------------------------------------------------

template <typename Number> static KernelCheck checkOf(int elementBytes)
{
    KernelCheck check;
    std::snprintf(check.kernel, sizeof check.kernel, "sum of a ring's pieces, %d B", elementBytes);
    const std::size_t count = 1'100'003; // a multiple of nothing, and more than the grid has threads
    std::vector<Number> a(count), b(count), found(count), expected(count);
    for (std::size_t i = 0; i < count; ++i) {
        a[i] = static_cast<Number>(mlpMixed(i) % 509);
        b[i] = static_cast<Number>(mlpMixed(i + count) % 509);
        expected[i] = static_cast<Number>(a[i] + b[i]);
    }
    Scratch scratch;
    Number* const to = scratch.upload(found);
    const RingAddLaunch launch{elementBytes, scratch.upload(a), scratch.upload(b), to, count};
    if (scratch.ok())
        scratch.note(launchRingAdd(launch, nullptr));
    scratch.download(found, to);
    compareWords(check, scratch.error(), found, expected);
    return check;
}

KernelCheck checkRingAdd(int elementBytes)
{
    return elementBytes == 4 ? checkOf<float>(4) : checkOf<std::uint16_t>(2);
}

} // namespace memscape::cuda
