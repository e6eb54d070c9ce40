// SPDX-License-Identifier: Apache-2.0
// What does moving data cost, and how do we hide it? The kernel that works on a chunk once it is there, and the one
// that reads and writes mapped memory itself: a chain of fused multiply-adds for each float, x ← x/2 + 1/4, so that
// the work for a byte is chosen freely and numbers stay near 0.5.
//
//   version 1  one float per thread: a thread waits for its one load
//   version 2  grid-stride loop over a grid that just fills the GPU, four floats a load: over a link, too, whole lines
//              are asked for
//
// Copies are calls of the runtime, which has copy engines of its own (measure_transfer.cpp). Left out: bulk copies by
// the multiprocessors, compression on the way.
#include "kernels/cuda/transfer/transfer.h"

#include "kernels/cuda/common/check.cuh"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace memscape::cuda {

// ---- 2. Reference: after r rounds x is 0.5 + (x − 0.5) / 2^r ------------------------------------

static double transferReference(double x, unsigned rounds)
{
    return 0.5 + (x - 0.5) * std::pow(0.5, rounds);
}

// ---- 3. Kernels -------------------------------------------------------------------------------

__device__ __forceinline__ float workedOn(float x, unsigned rounds)
{
    for (unsigned round = 0; round < rounds; ++round)
        x = fmaf(x, 0.5F, 0.25F);
    return x;
}

/// One addition a warp.
__device__ __forceinline__ void addToSum(float* sum, float mine)
{
    for (int distance = 16; distance > 0; distance /= 2)
        mine += __shfl_down_sync(0xffffffffU, mine, distance);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, mine);
}

/// Version 1. Thread i handles float i.
__global__ void transferWork_v1(const float* from, float* to, std::uint64_t count, unsigned rounds, float* sum)
{
    const std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x;
    float x = 0;
    if (i < count) {
        x = workedOn(from[i], rounds);
        if (to != nullptr)
            to[i] = x;
    }
    addToSum(sum, x);
}

/// Version 2. Thread t of T handles quadruples t, t + T, …, and one of the floats behind the last.
__global__ void transferWork_v2(const float* from, float* to, std::uint64_t count, unsigned rounds, float* sum)
{
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    const std::uint64_t first = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x;
    const std::uint64_t quadruples = count / 4;
    float mine = 0;
    for (std::uint64_t i = first; i < quadruples; i += all) {
        float4 x = reinterpret_cast<const float4*>(from)[i];
        for (unsigned round = 0; round < rounds; ++round) {
            x.x = fmaf(x.x, 0.5F, 0.25F);
            x.y = fmaf(x.y, 0.5F, 0.25F);
            x.z = fmaf(x.z, 0.5F, 0.25F);
            x.w = fmaf(x.w, 0.5F, 0.25F);
        }
        if (to != nullptr)
            reinterpret_cast<float4*>(to)[i] = x;
        mine += (x.x + x.y) + (x.z + x.w);
    }
    if (const std::uint64_t i = 4 * quadruples + first; i < count) {
        const float x = workedOn(from[i], rounds);
        if (to != nullptr)
            to[i] = x;
        mine += x;
    }
    addToSum(sum, mine);
}

// ---- 4. Launchers -----------------------------------------------------------------------------

constexpr unsigned transferThreads = 256;

cudaError_t launchTransferWork(const TransferWorkLaunch& launch, int multiprocessors, cudaStream_t stream)
{
    if (launch.version < 1 || launch.version > transferVersions || launch.count == 0)
        return cudaErrorInvalidValue;
    std::uint64_t blocks = (launch.count + transferThreads - 1) / transferThreads;
    if (launch.version == 1) {
        if (blocks > 0x7fffffffULL)
            return cudaErrorInvalidValue;
        transferWork_v1<<<static_cast<unsigned>(blocks), transferThreads, 0, stream>>>(
            launch.from, launch.to, launch.count, launch.rounds, launch.sum);
        return cudaGetLastError();
    }
    int perSm = 0;
    const cudaError_t error =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perSm, transferWork_v2, int(transferThreads), 0);
    if (error != cudaSuccess)
        return error;
    blocks = std::min((blocks + 3) / 4, std::uint64_t(std::max(1, perSm)) * std::max(1, multiprocessors));
    transferWork_v2<<<static_cast<unsigned>(blocks), transferThreads, 0, stream>>>(launch.from, launch.to, launch.count,
                                                                                   launch.rounds, launch.sum);
    return cudaGetLastError();
}

// ---- 5. Checks --------------------------------------------------------------------------------

KernelCheck checkTransferWork(int version, bool isStored, int multiprocessors)
{
    KernelCheck check;
    std::snprintf(check.kernel, sizeof check.kernel, "work on a chunk%s v%d", isStored ? ", stored" : "", version);
    const std::size_t count = 300'019; // a multiple of nothing
    const unsigned rounds = 3;
    std::vector<float> from(count), found(count), sum(1);
    double expectedSum = 0;
    for (std::size_t i = 0; i < count; ++i) {
        from[i] = 0.5F + 0.5F * float(i % 1024) / 1024;
        expectedSum += transferReference(double(from[i]), rounds);
    }
    Scratch scratch;
    auto* const onDevice = scratch.upload(from);
    auto* const result = scratch.upload(found);
    auto* const total = scratch.upload(sum);
    if (scratch.ok())
        scratch.note(launchTransferWork({version, onDevice, isStored ? result : nullptr, count, rounds, total},
                                        multiprocessors, nullptr));
    scratch.download(found, result);
    scratch.download(sum, total);
    Mismatches mismatches;
    for (std::size_t i = 0; i < count; ++i)
        mismatches.compare(double(found[i]), isStored ? transferReference(double(from[i]), rounds) : 0, 1e-6);
    mismatches.compare(double(sum[0]), expectedSum, 1e-4 * expectedSum);
    verdict(check, scratch.error(), mismatches.wrong, mismatches.first, mismatches.compared);
    return check;
}

} // namespace memscape::cuda
