// SPDX-License-Identifier: Apache-2.0
// The small kernels around every timed one. None of them measures memory:
//   blocking  holds the stream until the host has queued everything, so that no launch is late; gives
//             up after a time limit on the device, so that a mistake cannot hang a display
//   stamp     SM 0 writes its clock counter and the global timer; two stamps give the SM clock between
//   spin      multiplications for a given time, so that the GPU leaves its idle clock
//   empty     nothing: the period of back-to-back launches is the cost of a launch
#include "kernels/cuda/common/words.cuh"
#include "kernels/cuda/kernels.h"

namespace memscape::cuda {

__global__ void empty_v1() { }

__global__ void blocking_v1(StreamBlock* block, std::uint64_t limitNs)
{
    const unsigned long long begin = globalTimer();
    while (block->open == 0) {
        if (globalTimer() - begin > limitNs) {
            block->timedOut = 1;
            __threadfence_system();
            return;
        }
    }
}

__global__ void stamp_v1(Stamp* stamp)
{
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (sm != 0)
        return;
    const unsigned long long nanoseconds = globalTimer(); // both before a store can come between
    const long long clocks = clock64();
    stamp->nanoseconds = nanoseconds;
    stamp->clocks = clocks;
    __threadfence_system();
}

__global__ void spin_v1(std::uint64_t limitNs, float* sink)
{
    const unsigned long long begin = globalTimer();
    float x = 1.0F + threadIdx.x * 1e-6F;
    while (globalTimer() - begin < limitNs) {
        for (int i = 0; i < 256; ++i)
            x = x * 1.000001F + 1e-7F;
    }
    if (x == 0.0F)
        *sink = x;
}

cudaError_t launchEmpty(cudaStream_t stream)
{
    empty_v1<<<1, 1, 0, stream>>>();
    return cudaGetLastError();
}

cudaError_t launchBlockingKernel(StreamBlock* block, std::uint64_t limitNs, cudaStream_t stream)
{
    blocking_v1<<<1, 1, 0, stream>>>(block, limitNs);
    return cudaGetLastError();
}

cudaError_t launchStamp(Stamp* stamp, int multiprocessors, cudaStream_t stream)
{
    stamp_v1<<<static_cast<unsigned>(multiprocessors > 0 ? multiprocessors : 1), 1, 0, stream>>>(stamp);
    return cudaGetLastError();
}

cudaError_t launchSpin(std::uint64_t limitNs, int multiprocessors, float* sink, cudaStream_t stream)
{
    spin_v1<<<static_cast<unsigned>(multiprocessors > 0 ? multiprocessors : 1), 256, 0, stream>>>(limitNs, sink);
    return cudaGetLastError();
}

} // namespace memscape::cuda
