// SPDX-License-Identifier: Apache-2.0
// How fast is a level of memory that a working set stays in? The working set is gone over again and
// again, in laps. A private slice for every block stays in that SM's L1; chunks that are dealt to all
// blocks anew in every round stay in L2 if they fit and come from DRAM if not: dealing them anew keeps
// an SM from reading its own part out of L1, or out of the half of L2 that is near to it.
//
//   version 1  16 bytes per load, four independent loads in flight, one block of 1024 threads per SM
//              for private slices and as many as fit for shared ones.
//
// The loads are written as instructions (ld.global.ca): a compiler that sees the same address in every
// lap would load it once. Left out: texture and constant paths, atomics.
#include "kernels/cuda/common/check.cuh"
#include "kernels/cuda/common/words.cuh"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace memscape::cuda {

// ---- 2. Reference -----------------------------------------------------------------------------

/// Words of 16 bytes that one lap over a chunk loads or stores: all of it, or half and half.
MEMSCAPE_HD std::uint64_t lapWords(Operation operation, std::uint64_t chunkBytes)
{
    return chunkBytes / (operation == Operation::Copy ? 32 : 16);
}

/// Every block in turn, every lap, on the host.
static std::uint32_t referenceLaps(std::vector<Word16>& data, const LapsLaunch& launch)
{
    const std::uint64_t words = lapWords(launch.operation, launch.chunkBytes);
    std::uint32_t sum = 0;
    for (std::uint64_t block = 0; block < static_cast<std::uint64_t>(launch.blocks); ++block) {
        for (std::uint64_t lap = 0; lap < launch.laps; ++lap) {
            const std::uint64_t chunk = launch.isPrivate
                ? block
                : chunkOf(block, lap, static_cast<std::uint64_t>(launch.blocks), launch.chunks);
            Word16* base = data.data() + chunk * launch.chunkBytes / sizeof(Word16);
            for (std::uint64_t i = 0; i < words; ++i) {
                if (launch.operation == Operation::Read)
                    sum += fold(base[i]);
                else if (launch.operation == Operation::Copy)
                    base[words + i] = base[i];
                else
                    base[i] = wordOf<Word16>(writtenBits(i));
            }
        }
    }
    return sum;
}

// ---- 3. Kernels -------------------------------------------------------------------------------

/// A 16-byte load that may be served by L1 and is issued every lap, although the address repeats.
__device__ __forceinline__ Word16 loadAgain(const Word16* at)
{
    Word16 word;
    asm volatile("ld.global.ca.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word.a), "=r"(word.b), "=r"(word.c), "=r"(word.d)
                 : "l"(at));
    return word;
}

/// data: (chunks, chunkBytes). Laps of a block over its own chunk, or over chunks dealt by
/// chunkOf().
template <Operation operation, bool isPrivate>
__global__ void laps_v1(char* data, std::uint64_t chunkBytes, std::uint64_t chunks, std::uint64_t laps, Sink sink)
{
    const std::uint64_t words = lapWords(operation, chunkBytes);
    std::uint32_t sum = 0;
    for (std::uint64_t lap = 0; lap < laps; ++lap) {
        const std::uint64_t chunk = isPrivate ? blockIdx.x : chunkOf(blockIdx.x, lap, gridDim.x, chunks);
        auto* base = reinterpret_cast<Word16*>(data + chunk * chunkBytes);
        std::uint64_t i = threadIdx.x;
        for (; i + (inFlight - 1) * blockDim.x < words; i += inFlight * blockDim.x) {
            Word16 word[inFlight];
#pragma unroll
            for (int k = 0; k < inFlight; ++k)
                word[k] = operation == Operation::Write ? wordOf<Word16>(writtenBits(i + k * blockDim.x))
                                                        : loadAgain(base + i + k * blockDim.x);
#pragma unroll
            for (int k = 0; k < inFlight; ++k) {
                if (operation == Operation::Read)
                    sum += fold(word[k]);
                else
                    store(base + (operation == Operation::Copy ? words : 0) + i + k * blockDim.x, word[k]);
            }
        }
        for (; i < words; i += blockDim.x) {
            const Word16 word = operation == Operation::Write ? wordOf<Word16>(writtenBits(i)) : loadAgain(base + i);
            if (operation == Operation::Read)
                sum += fold(word);
            else
                store(base + (operation == Operation::Copy ? words : 0) + i, word);
        }
    }
    if (operation == Operation::Read)
        keep(sum, sink);
}

// ---- 4. Launchers -----------------------------------------------------------------------------

using LapsKernel = void (*)(char*, std::uint64_t, std::uint64_t, std::uint64_t, Sink);

static LapsKernel lapsKernel(Operation operation, bool isPrivate)
{
    switch (operation) {
    case Operation::Read: return isPrivate ? laps_v1<Operation::Read, true> : laps_v1<Operation::Read, false>;
    case Operation::Write: return isPrivate ? laps_v1<Operation::Write, true> : laps_v1<Operation::Write, false>;
    case Operation::Copy: return isPrivate ? laps_v1<Operation::Copy, true> : laps_v1<Operation::Copy, false>;
    case Operation::Triad: break;
    }
    return nullptr;
}

cudaError_t launchLaps(const LapsLaunch& launch, cudaStream_t stream)
{
    const LapsKernel kernel = lapsKernel(launch.operation, launch.isPrivate);
    if (kernel == nullptr || launch.chunkBytes % 32 != 0 || launch.blocks < 1)
        return cudaErrorInvalidValue;
    kernel<<<static_cast<unsigned>(launch.blocks), static_cast<unsigned>(launch.threads), 0, stream>>>(
        launch.data, launch.chunkBytes, launch.chunks, launch.laps, sinkOf(launch.sum, launch.data));
    return cudaGetLastError();
}

cudaError_t lapsResidentBlocks(Operation operation, int threads, int multiprocessors, int* blocks)
{
    int perSm = 0;
    const cudaError_t error =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perSm, lapsKernel(operation, false), threads, 0);
    *blocks = std::max(1, perSm) * std::max(1, multiprocessors);
    return error;
}

cudaError_t preferL1ForLaps()
{
    cudaError_t error = cudaSuccess;
    for (Operation operation : {Operation::Read, Operation::Write, Operation::Copy}) {
        if (error == cudaSuccess)
            error =
                cudaFuncSetAttribute(lapsKernel(operation, true), cudaFuncAttributePreferredSharedMemoryCarveout, 0);
    }
    return error;
}

// ---- 5. Checks --------------------------------------------------------------------------------

KernelCheck checkLaps(Operation operation, bool isPrivate, int multiprocessors)
{
    KernelCheck check;
    std::snprintf(check.kernel, sizeof check.kernel, "laps %s %s v1", operationName(operation),
                  isPrivate ? "private" : "shared");
    LapsLaunch launch;
    launch.operation = operation;
    launch.isPrivate = isPrivate;
    launch.chunkBytes = 8224; // a multiple of 32, not of a block's turn
    launch.blocks = std::max(1, multiprocessors);
    launch.chunks = isPrivate ? static_cast<std::uint64_t>(launch.blocks) : 61;
    launch.laps = isPrivate ? 3 : 61; // whole rounds: every chunk is visited
    launch.threads = 256;
    std::vector<Word16> data(launch.chunks * launch.chunkBytes / sizeof(Word16));
    for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = wordOf<Word16>(mixed(i));
    Scratch scratch;
    auto* buffer = scratch.upload(data);
    auto* sum = scratch.upload(std::vector<std::uint32_t>(1, 0));
    launch.data = reinterpret_cast<char*>(buffer);
    launch.sum = sum;
    if (scratch.ok())
        scratch.note(launchLaps(launch, nullptr));
    std::vector<std::uint32_t> got(1);
    std::vector<Word16> found(data.size());
    scratch.download(got, sum);
    scratch.download(found, buffer);
    const std::uint32_t expected = referenceLaps(data, launch);
    if (operation == Operation::Read)
        verdict(check, scratch.error(), got[0] == expected ? 0 : 1, 0, data.size());
    else
        compareWords(check, scratch.error(), found, data);
    return check;
}

} // namespace memscape::cuda
