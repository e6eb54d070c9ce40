// SPDX-License-Identifier: Apache-2.0
// What does a stride cost? One warp reads 32 elements at once. The memory system answers in
// sectors of 32 bytes and lines of 128 bytes, so the further apart the 32 elements lie, the more of
// what is fetched is thrown away: a request for floats at stride s needs min(32, 4 s) sectors.
//
//   version 1  one element per thread: the kernel everyone writes first. It teaches the pattern; a
//              thread has one load open, so small elements leave the memory waiting (Little's law).
//   version 2  grid-stride loop over a grid that just fills the GPU, four independent elements per
//              turn. Same requests, same sectors, four times the bytes in flight: what is left is
//              the cost of the pattern itself.
//
// Patterns are one of two ways to find the i-th element: a walk (first + i × step: contiguous,
// strided, misaligned, AoS, SoA) or a table of indices (random; the 4 bytes of index that each
// element then costs are read too, in order). Left out: hardware counters; sectors are counted over
// the addresses, by plan.h and the access model.
#include "kernels/cuda/common/check.cuh"
#include "kernels/cuda/common/words.cuh"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace memscape::cuda {

// ---- 2. Reference: one loop on the host -------------------------------------------------------

constexpr std::uint64_t gatherRange = 100'003; // elements that the checked gather draws from

static std::uint64_t referenceIndex(const Walk& walk, bool gather, std::uint64_t i)
{
    return gather ? permuted(i, gatherRange, 1) : walk.first + i * walk.step;
}

template <typename Word>
static std::uint32_t referenceSum(const std::vector<Word>& source, const Walk& walk, bool gather)
{
    std::uint32_t sum = 0;
    for (std::uint64_t i = 0; i < walk.touched; ++i)
        sum += fold(source[referenceIndex(walk, gather, i)]);
    return sum;
}

template <typename Word>
static void referenceStore(const std::vector<Word>& source, std::vector<Word>& target, Operation operation,
                           const Walk& walk, bool gather)
{
    for (std::uint64_t i = 0; i < walk.touched; ++i) {
        const std::uint64_t at = referenceIndex(walk, gather, i);
        target[at] = operation == Operation::Copy ? source[at] : wordOf<Word>(writtenBits(i));
    }
}

// ---- 3. Kernels -------------------------------------------------------------------------------

struct Walker // element i of a walk
{
    Walk walk;
    __device__ std::uint64_t operator()(std::uint64_t i) const { return walkIndex(walk, i); }
};

struct Gatherer // element i of a table of indices
{
    const std::uint32_t* indices;
    __device__ std::uint64_t operator()(std::uint64_t i) const { return indices[i]; }
};

/// Version 1. source, target: (count) words; thread i touches element where(i).
template <typename Word, Operation operation, typename Where>
__global__ void stride_v1(const Word* source, Word* target, Where where, std::uint64_t touched, Sink sink)
{
    const std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x;
    std::uint32_t sum = 0;
    if (i < touched) {
        const std::uint64_t at = where(i);
        if (operation == Operation::Read)
            sum = fold(load(source + at));
        else
            store(target + at, operation == Operation::Copy ? load(source + at) : wordOf<Word>(writtenBits(i)));
    }
    if (operation == Operation::Read)
        keep(sum, sink);
}

/// Version 2. Thread t of T touches elements t, t + T, t + 2T, t + 3T, then t + 4T …: every warp request still covers
/// 32 neighbours of the pattern.
template <typename Word, Operation operation, typename Where>
__global__ void stride_v2(const Word* source, Word* target, Where where, std::uint64_t touched, Sink sink)
{
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x;
    std::uint32_t sum = 0;
    for (; i + (inFlight - 1) * all < touched; i += inFlight * all) {
        std::uint64_t at[inFlight];
        Word word[inFlight];
#pragma unroll
        for (int k = 0; k < inFlight; ++k)
            at[k] = where(i + k * all);
#pragma unroll
        for (int k = 0; k < inFlight; ++k)
            word[k] = operation == Operation::Write ? wordOf<Word>(writtenBits(i + k * all)) : load(source + at[k]);
#pragma unroll
        for (int k = 0; k < inFlight; ++k) {
            if (operation == Operation::Read)
                sum += fold(word[k]);
            else
                store(target + at[k], word[k]);
        }
    }
    for (; i < touched; i += all) {
        const std::uint64_t at = where(i);
        if (operation == Operation::Read)
            sum += fold(load(source + at));
        else
            store(target + at, operation == Operation::Copy ? load(source + at) : wordOf<Word>(writtenBits(i)));
    }
    if (operation == Operation::Read)
        keep(sum, sink);
}

__global__ void fill_words(std::uint32_t* data, std::uint64_t words, std::uint64_t salt)
{
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    for (std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x; i < words; i += all)
        data[i] = mixed(i + salt);
}

__global__ void fill_indices(std::uint32_t* indices, std::uint64_t count, std::uint64_t range, std::uint32_t seed)
{
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    for (std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x; i < count; i += all)
        indices[i] = static_cast<std::uint32_t>(permuted(i, range, seed));
}

// ---- 4. Launchers -----------------------------------------------------------------------------

template <typename Word, Operation operation, typename Where>
static cudaError_t launchVersion(const StrideLaunch& launch, Where where, int multiprocessors, cudaStream_t stream)
{
    const auto* source = static_cast<const Word*>(launch.source);
    auto* target = static_cast<Word*>(launch.target);
    const std::uint64_t touched = launch.walk.touched;
    const Sink sink = sinkOf(launch.sum, launch.source != nullptr ? launch.source : launch.target);
    const auto threads = static_cast<unsigned>(launch.threads);
    const std::uint64_t wanted = blocksFor(touched, threads);
    if (launch.version == 1) {
        if (wanted > 0x7fffffffULL)
            return cudaErrorInvalidValue;
        stride_v1<Word, operation>
            <<<static_cast<unsigned>(wanted), threads, 0, stream>>>(source, target, where, touched, sink);
        return cudaGetLastError();
    }
    int perSm = 0;
    const cudaError_t error =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perSm, stride_v2<Word, operation, Where>, launch.threads, 0);
    if (error != cudaSuccess)
        return error;
    const std::uint64_t fits = std::uint64_t(std::max(1, perSm)) * std::max(1, multiprocessors);
    stride_v2<Word, operation>
        <<<static_cast<unsigned>(std::min(wanted, fits)), threads, 0, stream>>>(source, target, where, touched, sink);
    return cudaGetLastError();
}

template <typename Word> static cudaError_t launchWord(const StrideLaunch& launch, int sms, cudaStream_t stream)
{
    const Walker walker{launch.walk};
    const Gatherer gatherer{launch.indices};
    const bool gather = launch.indices != nullptr;
    switch (launch.operation) {
    case Operation::Read:
        return gather ? launchVersion<Word, Operation::Read>(launch, gatherer, sms, stream)
                      : launchVersion<Word, Operation::Read>(launch, walker, sms, stream);
    case Operation::Write:
        return gather ? launchVersion<Word, Operation::Write>(launch, gatherer, sms, stream)
                      : launchVersion<Word, Operation::Write>(launch, walker, sms, stream);
    case Operation::Copy:
        return gather ? launchVersion<Word, Operation::Copy>(launch, gatherer, sms, stream)
                      : launchVersion<Word, Operation::Copy>(launch, walker, sms, stream);
    case Operation::Triad: break;
    }
    return cudaErrorInvalidValue;
}

cudaError_t launchStride(const StrideLaunch& launch, int multiprocessors, cudaStream_t stream)
{
    if (launch.version < 1 || launch.version > strideVersions || !wholeWarps(launch.threads))
        return cudaErrorInvalidValue;
    return withWord(launch.elementBytes, cudaErrorInvalidValue, [&](auto tag) {
        return launchWord<typename decltype(tag)::Type>(launch, multiprocessors, stream);
    });
}

static unsigned gridOf(std::uint64_t items)
{
    return static_cast<unsigned>(std::min<std::uint64_t>(blocksFor(items, 256), 8192));
}

cudaError_t launchFill(std::uint32_t* data, std::uint64_t words, std::uint64_t salt, cudaStream_t stream)
{
    fill_words<<<gridOf(words), 256, 0, stream>>>(data, words, salt);
    return cudaGetLastError();
}

cudaError_t launchIndices(std::uint32_t* indices, std::uint64_t count, std::uint64_t range, std::uint32_t seed,
                          cudaStream_t stream)
{
    fill_indices<<<gridOf(count), 256, 0, stream>>>(indices, count, range, seed);
    return cudaGetLastError();
}

// ---- 5. Checks --------------------------------------------------------------------------------

template <typename Word>
static void compareStride(KernelCheck& check, StrideLaunch launch, bool gather, int multiprocessors)
{
    // Neither a multiple of a warp nor of a block, so that the ends are tried too.
    const std::uint64_t count = gatherRange;
    launch.walk = gather ? Walk{0, 1, count / 3} : walkOf(count, launch.walk.first, launch.walk.step);
    std::vector<Word> source(count), target(count), found(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        source[i] = wordOf<Word>(mixed(i));
        target[i] = wordOf<Word>(mixed(i + 77)); // what must stay where nothing is written
    }
    Scratch scratch;
    auto* from = scratch.upload(source);
    auto* to = scratch.upload(target);
    auto* sum = scratch.upload(std::vector<std::uint32_t>(1, 0));
    launch.source = from;
    launch.target = to;
    launch.sum = sum;
    if (gather) {
        auto* indices = scratch.upload(std::vector<std::uint32_t>(count));
        scratch.note(launchIndices(indices, launch.walk.touched, count, 1, nullptr));
        launch.indices = indices;
    }
    if (scratch.ok())
        scratch.note(launchStride(launch, multiprocessors, nullptr));
    std::vector<std::uint32_t> got(1);
    scratch.download(got, sum);
    scratch.download(found, to);
    if (launch.operation == Operation::Read) {
        verdict(check, scratch.error(), got[0] == referenceSum(source, launch.walk, gather) ? 0 : 1, 0,
                launch.walk.touched);
        return;
    }
    referenceStore(source, target, launch.operation, launch.walk, gather);
    compareWords(check, scratch.error(), found, target);
}

KernelCheck checkStride(int version, int elementBytes, Operation operation, std::uint64_t step, bool gather,
                        int multiprocessors)
{
    KernelCheck check;
    std::snprintf(check.kernel, sizeof check.kernel, "stride %s %s %d B v%d", operationName(operation),
                  gather ? "random" : (step == 1 ? "contiguous" : "strided"), elementBytes, version);
    StrideLaunch launch;
    launch.version = version;
    launch.elementBytes = elementBytes;
    launch.operation = operation;
    launch.walk.first = step == 1 ? 3 : 0; // contiguous is tried misaligned
    launch.walk.step = step;
    verdict(check, cudaErrorInvalidValue, 0, 0, 0); // stays for a size that no word has
    withWord(elementBytes, false, [&](auto tag) {
        compareStride<typename decltype(tag)::Type>(check, launch, gather, multiprocessors);
        return true;
    });
    return check;
}

} // namespace memscape::cuda
