// SPDX-License-Identifier: Apache-2.0
// How fast does memory stream? Read, write, copy and triad over whole arrays, with 1, 2, 4, 8 or 16
// bytes per thread and load. Little's law decides: bandwidth ≤ bytes in flight / latency, and bytes
// in flight = SMs × resident threads × bytes per load × loads that a thread has open.
//
//   version 1  one word per thread. With small words the GPU runs out of threads before the memory
//              runs out of bandwidth.
//   version 2  grid-stride loop over a grid that just fills the GPU: no blocks come and go, but a
//              thread still waits for every load.
//   version 3  grid-stride loop with four independent loads before the first use: enough bytes in
//              flight with fewer threads. The best of the three, and what bandwidths are measured
//              with.
//
// For a working set that is read again and again there are laps: a private slice per block stays in
// L1; chunks dealt to all blocks anew in every lap stay in L2 if they fit and come from DRAM if
// not.
//
// Integers are used for floats (the bytes are the same and sums are exact). Left out: copies by the
// copy engine, peer and host memory.
#include "kernels/cuda/common/check.cuh"
#include "kernels/cuda/common/words.cuh"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace memscape::cuda {

// ---- 2. Reference -----------------------------------------------------------------------------

template <typename Word> static std::uint32_t referenceSum(const std::vector<Word>& words)
{
    std::uint32_t sum = 0;
    for (const Word& word : words)
        sum += fold(word);
    return sum;
}

template <typename Word>
static std::vector<Word> referenceStream(Operation operation, const std::vector<Word>& b, const std::vector<Word>& c)
{
    std::vector<Word> a(b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
        a[i] = operation == Operation::Copy
            ? b[i]
            : (operation == Operation::Triad ? triadOf(b[i], c[i]) : wordOf<Word>(writtenBits(i)));
    return a;
}

// ---- 3. Kernels -------------------------------------------------------------------------------

/// One word of any of the four streams. b, c, a: (words).
template <typename Word, Operation operation>
__device__ __forceinline__ Word streamed(const Word* b, const Word* c, std::uint64_t i)
{
    if (operation == Operation::Write)
        return wordOf<Word>(writtenBits(i));
    if (operation == Operation::Triad)
        return triadOf(load(b + i), load(c + i));
    return load(b + i);
}

/// Version 1. Thread i handles word i.
template <typename Word, Operation operation>
__global__ void stream_v1(const Word* b, const Word* c, Word* a, std::uint64_t words, Sink sink)
{
    const std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x;
    std::uint32_t sum = 0;
    if (i < words) {
        const Word word = streamed<Word, operation>(b, c, i);
        if (operation == Operation::Read)
            sum = fold(word);
        else
            store(a + i, word);
    }
    if (operation == Operation::Read)
        keep(sum, sink);
}

/// Words from i on, `all` apart, one at a time; the sum of those that are read.
template <typename Word, Operation operation>
__device__ __forceinline__ std::uint32_t streamRest(const Word* b, const Word* c, Word* a, std::uint64_t words,
                                                    std::uint64_t i, std::uint64_t all)
{
    std::uint32_t sum = 0;
#pragma unroll 1
    for (; i < words; i += all) {
        const Word word = streamed<Word, operation>(b, c, i);
        if (operation == Operation::Read)
            sum += fold(word);
        else
            store(a + i, word);
    }
    return sum;
}

/// Version 2. Thread t of T handles words t, t + T, …, one at a time.
template <typename Word, Operation operation>
__global__ void stream_v2(const Word* b, const Word* c, Word* a, std::uint64_t words, Sink sink)
{
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    const std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x;
    const std::uint32_t sum = streamRest<Word, operation>(b, c, a, words, i, all);
    if (operation == Operation::Read)
        keep(sum, sink);
}

/// Version 3. The same walk, four words at a time: four loads or more are on their way before the first is used.
template <typename Word, Operation operation>
__global__ void stream_v3(const Word* b, const Word* c, Word* a, std::uint64_t words, Sink sink)
{
    const std::uint64_t all = gridDim.x * std::uint64_t(blockDim.x);
    std::uint64_t i = blockIdx.x * std::uint64_t(blockDim.x) + threadIdx.x;
    std::uint32_t sum = 0;
    for (; i + (inFlight - 1) * all < words; i += inFlight * all) {
        Word word[inFlight];
#pragma unroll
        for (int k = 0; k < inFlight; ++k)
            word[k] = streamed<Word, operation>(b, c, i + k * all);
#pragma unroll
        for (int k = 0; k < inFlight; ++k) {
            if (operation == Operation::Read)
                sum += fold(word[k]);
            else
                store(a + i + k * all, word[k]);
        }
    }
    sum += streamRest<Word, operation>(b, c, a, words, i, all);
    if (operation == Operation::Read)
        keep(sum, sink);
}

// ---- 4. Launchers -----------------------------------------------------------------------------

template <typename Word, Operation operation>
static cudaError_t launchVersion(const StreamLaunch& launch, int multiprocessors, cudaStream_t stream)
{
    auto* kernel = launch.version == 1
        ? stream_v1<Word, operation>
        : (launch.version == 2 ? stream_v2<Word, operation> : stream_v3<Word, operation>);
    const std::uint64_t words = launch.bytes / sizeof(Word);
    std::uint64_t blocks = blocksFor(words, static_cast<std::uint64_t>(launch.threads));
    if (launch.version > 1) {
        int perSm = launch.blocksPerSm;
        if (perSm <= 0) {
            const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perSm, kernel, launch.threads, 0);
            if (error != cudaSuccess)
                return error;
        }
        blocks = std::min(blocks, std::uint64_t(std::max(1, perSm)) * std::max(1, multiprocessors));
    }
    if (blocks > 0x7fffffffULL)
        return cudaErrorInvalidValue;
    const void* spare = launch.target != nullptr ? launch.target : launch.first;
    kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(launch.threads), 0, stream>>>(
        static_cast<const Word*>(launch.first), static_cast<const Word*>(launch.second),
        static_cast<Word*>(launch.target), words, sinkOf(launch.sum, spare));
    return cudaGetLastError();
}

template <typename Word>
static cudaError_t launchWord(const StreamLaunch& launch, int multiprocessors, cudaStream_t stream)
{
    switch (launch.operation) {
    case Operation::Read: return launchVersion<Word, Operation::Read>(launch, multiprocessors, stream);
    case Operation::Write: return launchVersion<Word, Operation::Write>(launch, multiprocessors, stream);
    case Operation::Copy: return launchVersion<Word, Operation::Copy>(launch, multiprocessors, stream);
    case Operation::Triad: return launchVersion<Word, Operation::Triad>(launch, multiprocessors, stream);
    }
    return cudaErrorInvalidValue;
}

cudaError_t launchStream(const StreamLaunch& launch, int multiprocessors, cudaStream_t stream)
{
    if (launch.version < 1 || launch.version > streamVersions || !wholeWarps(launch.threads))
        return cudaErrorInvalidValue;
    return withWord(launch.wordBytes, cudaErrorInvalidValue, [&](auto tag) {
        return launchWord<typename decltype(tag)::Type>(launch, multiprocessors, stream);
    });
}

// ---- 5. Checks --------------------------------------------------------------------------------

template <typename Word> static void compareStream(KernelCheck& check, StreamLaunch launch, int multiprocessors)
{
    const std::size_t words = 300'007; // no multiple of anything
    std::vector<Word> b(words), c(words), found(words);
    for (std::size_t i = 0; i < words; ++i) {
        b[i] = wordOf<Word>(mixed(i));
        c[i] = wordOf<Word>(mixed(i + 1'000'003));
    }
    Scratch scratch;
    auto* target = scratch.upload(found);
    auto* sum = scratch.upload(std::vector<std::uint32_t>(1, 0));
    launch.first = scratch.upload(b);
    launch.second = scratch.upload(c);
    launch.target = target;
    launch.sum = sum;
    launch.bytes = words * sizeof(Word);
    if (scratch.ok())
        scratch.note(launchStream(launch, multiprocessors, nullptr));
    std::vector<std::uint32_t> got(1);
    scratch.download(got, sum);
    scratch.download(found, target);
    if (launch.operation == Operation::Read)
        verdict(check, scratch.error(), got[0] == referenceSum(b) ? 0 : 1, 0, words);
    else
        compareWords(check, scratch.error(), found, referenceStream(launch.operation, b, c));
}

KernelCheck checkStream(int version, int wordBytes, Operation operation, int multiprocessors)
{
    KernelCheck check;
    std::snprintf(check.kernel, sizeof check.kernel, "stream %s %d B v%d", operationName(operation), wordBytes,
                  version);
    StreamLaunch launch;
    launch.version = version;
    launch.wordBytes = wordBytes;
    launch.operation = operation;
    launch.threads = version == 1 ? 256 : 1024;
    verdict(check, cudaErrorInvalidValue, 0, 0, 0); // stays for a size that no word has
    withWord(wordBytes, false, [&](auto tag) {
        compareStream<typename decltype(tag)::Type>(check, launch, multiprocessors);
        return true;
    });
    return check;
}

} // namespace memscape::cuda
