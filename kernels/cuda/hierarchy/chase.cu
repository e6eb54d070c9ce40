// SPDX-License-Identifier: Apache-2.0
// How far away is each level of memory? One lane follows a chain of pointers: every load needs the
// answer of the one before, so time / loads is the latency of the level that the chain fits into.
//
//   Index        version 1: node holds the index of the next node. The address must be computed
//   each
//                time, so a few cycles of arithmetic are measured along with the memory.
//   CacheAll     version 2: node holds the 64-bit address of the next node, loads may hit L1 (.ca).
//   CacheGlobal  version 3: the same, loads bypass L1 (.cg): L2 and DRAM without L1 in the way.
//   Shared       version 4: a chain of 32-bit addresses in shared memory.
//
// One node per 128-byte line (or per 32-byte sector, to see sectors), a random single cycle, 32
// loads unrolled so that the loop itself vanishes; the clock counter is read before the first and
// after the last load, so the cost of reading it vanishes too. The latency is that of a chain's
// total; tools that bracket each load with clock() get other numbers. Left out: texture path,
// constant cache, the two halves of L2 seen from one chosen SM.
#include "kernels/cuda/common/check.cuh"
#include "kernels/cuda/common/words.cuh"
#include "kernels/cuda/hierarchy/chain.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace memscape::cuda {

constexpr std::uint64_t unrolled = 32;

// ---- 2. Reference -----------------------------------------------------------------------------

static std::uint64_t referenceEnd(const std::vector<std::uint32_t>& next, std::uint64_t loads)
{
    std::uint32_t at = 0;
    for (std::uint64_t i = 0; i < loads; ++i)
        at = next[at];
    return at;
}

// ---- 3. Kernels -------------------------------------------------------------------------------

/// nodes: (count) of `spacing` bytes; node i gets the address (or the index) of node next[i].
__global__ void chain_nodes(char* nodes, const std::uint32_t* next, std::uint64_t count, std::uint64_t spacing,
                            bool asIndex)
{
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    for (std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x; i < count; i += all) {
        const std::uint64_t to = next[i];
        *reinterpret_cast<std::uint64_t*>(nodes + i * spacing) =
            asIndex ? to : reinterpret_cast<std::uint64_t>(nodes + to * spacing);
    }
}

template <ChaseKind kind>
__device__ __forceinline__ std::uint64_t follow(std::uint64_t at, const char* nodes, std::uint64_t spacing)
{
    std::uint64_t next;
    if (kind == ChaseKind::CacheGlobal)
        asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(next) : "l"(at));
    else
        asm volatile("ld.global.ca.u64 %0, [%1];"
                     : "=l"(next)
                     : "l"(kind == ChaseKind::Index ? reinterpret_cast<std::uint64_t>(nodes) + at * spacing : at));
    return next;
}

/// One block, one warp, one lane. Versions 1 to 3 by `kind`.
template <ChaseKind kind>
__global__ void chase_v(const char* nodes, std::uint64_t start, std::uint64_t spacing, std::uint64_t turns,
                        ChaseResult* result)
{
    if (threadIdx.x != 0)
        return;
    std::uint64_t at = start;
    const unsigned long long beginNs = globalTimer();
    const long long begin = clock64();
    for (std::uint64_t turn = 0; turn < turns; ++turn) {
#pragma unroll
        for (int i = 0; i < static_cast<int>(unrolled); ++i)
            at = follow<kind>(at, nodes, spacing);
    }
    if (at == ~0ULL) // never: but the clock is now read after the last load has arrived
        return;
    const long long end = clock64();
    result->nanoseconds = globalTimer() - beginNs;
    result->cycles = end - begin;
    result->end = at;
}

/// Version 4. The chain is copied to shared memory by the whole warp, then followed by one lane.
__global__ void chase_shared_v4(const std::uint32_t* next, std::uint32_t count, std::uint64_t turns,
                                ChaseResult* result)
{
    extern __shared__ std::uint32_t chain[];
    const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(chain));
    for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x)
        chain[i] = base + next[i] * 4;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    std::uint32_t at = base;
    const unsigned long long beginNs = globalTimer();
    const long long begin = clock64();
    for (std::uint64_t turn = 0; turn < turns; ++turn) {
#pragma unroll
        for (int i = 0; i < static_cast<int>(unrolled); ++i)
            asm volatile("ld.shared.u32 %0, [%1];" : "=r"(at) : "r"(at));
    }
    if (at == ~0U)
        return;
    const long long end = clock64();
    result->nanoseconds = globalTimer() - beginNs;
    result->cycles = end - begin;
    result->end = (at - base) / 4;
}

// ---- 4. Launchers -----------------------------------------------------------------------------

cudaError_t launchChain(char* nodes, const std::uint32_t* next, std::uint64_t count, std::uint64_t spacing,
                        ChaseKind kind, cudaStream_t stream)
{
    const std::uint64_t blocks = std::min<std::uint64_t>(blocksFor(count, 256), 4096);
    chain_nodes<<<static_cast<unsigned>(blocks), 256, 0, stream>>>(nodes, next, count, spacing,
                                                                   kind == ChaseKind::Index);
    return cudaGetLastError();
}

cudaError_t launchChase(ChaseKind kind, const char* nodes, std::uint64_t start, std::uint64_t spacing,
                        std::uint64_t loads, ChaseResult* result, cudaStream_t stream)
{
    const std::uint64_t turns = std::max<std::uint64_t>(1, loads / unrolled);
    switch (kind) {
    case ChaseKind::Index: chase_v<ChaseKind::Index><<<1, 32, 0, stream>>>(nodes, start, spacing, turns, result); break;
    case ChaseKind::CacheAll:
        chase_v<ChaseKind::CacheAll><<<1, 32, 0, stream>>>(nodes, start, spacing, turns, result);
        break;
    case ChaseKind::CacheGlobal:
        chase_v<ChaseKind::CacheGlobal><<<1, 32, 0, stream>>>(nodes, start, spacing, turns, result);
        break;
    case ChaseKind::Shared: return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}

cudaError_t launchSharedChase(const std::uint32_t* next, std::uint32_t count, std::uint64_t loads, ChaseResult* result,
                              cudaStream_t stream)
{
    const std::size_t bytes = count * sizeof(std::uint32_t);
    if (bytes > 48 * 1024) // more needs an opt-in and teaches nothing new
        return cudaErrorInvalidValue;
    const std::uint64_t turns = std::max<std::uint64_t>(1, loads / unrolled);
    chase_shared_v4<<<1, 32, bytes, stream>>>(next, count, turns, result);
    return cudaGetLastError();
}

cudaError_t preferL1ForLaps(); // laps.cu

cudaError_t preferL1()
{
    // 0 % shared memory: the driver otherwise keeps a part of the array back, and the L1 curve ends
    // early (146 of 192 KB on an A100).
    cudaError_t error = preferL1ForLaps();
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(chase_v<ChaseKind::Index>, cudaFuncAttributePreferredSharedMemoryCarveout, 0);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(chase_v<ChaseKind::CacheAll>, cudaFuncAttributePreferredSharedMemoryCarveout, 0);
    return error;
}

// ---- 5. Checks --------------------------------------------------------------------------------

KernelCheck checkChase(ChaseKind kind)
{
    static const char* const names[] = {"index v1", "address .ca v2", "address .cg v3", "shared v4"};
    KernelCheck check;
    std::snprintf(check.kernel, sizeof check.kernel, "chase %s", names[static_cast<int>(kind)]);
    const std::uint32_t count = 1009;
    const std::uint64_t loads = unrolled * 50; // more than one lap, and no whole number of laps
    const std::vector<std::uint32_t> next = sattoloCycle(count, 42);
    Scratch scratch;
    auto* chain = scratch.upload(next);
    auto* nodes = scratch.upload(std::vector<char>(count * nodeBytes));
    std::vector<ChaseResult> result(1);
    auto* answer = scratch.upload(result);
    if (kind == ChaseKind::Shared) {
        if (scratch.ok())
            scratch.note(launchSharedChase(chain, count, loads, answer, nullptr));
    } else if (scratch.ok()) {
        scratch.note(launchChain(nodes, chain, count, nodeBytes, kind, nullptr));
        const std::uint64_t start = kind == ChaseKind::Index ? 0 : reinterpret_cast<std::uint64_t>(nodes);
        scratch.note(launchChase(kind, nodes, start, nodeBytes, loads, answer, nullptr));
    }
    scratch.download(result, answer);
    std::uint64_t found = result[0].end;
    if (kind == ChaseKind::CacheAll || kind == ChaseKind::CacheGlobal)
        found = (found - reinterpret_cast<std::uint64_t>(nodes)) / nodeBytes;
    verdict(check, scratch.error(), found == referenceEnd(next, loads) ? 0 : 1, found, loads);
    return check;
}

} // namespace memscape::cuda
