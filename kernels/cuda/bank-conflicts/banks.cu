// SPDX-License-Identifier: Apache-2.0
// When does shared memory make the lanes of a warp wait for each other? It lies in 32 banks of 4 bytes.
// A bank gives one word a cycle, so a request whose lanes want n different words of one bank takes n
// wavefronts, one after the other. Where the elements lie decides, and the program decides that:
//
//   float tile[32][32]        down a column: every lane in bank 0, 32 wavefronts
//   float tile[32][33]        padded: each row begins a bank further, one wavefront
//   column ^ row              swizzled: the same, and no memory is spent
//
//   version 1  throughput: every warp of a full block asks again and again, nothing depends on the
//              answer, so that the banks are never idle: cycles / requests is what a request costs.
//   version 2  latency: one warp, and every lane's answer is the address it asks for next. It teaches
//              that a lone request mostly waits for its way there and back, not for the banks.
//
// The clock is that of the multiprocessor, read before the first and after the last request. Loads and
// stores are volatile instructions of the width that is asked for: the compiler may neither merge nor
// drop them (tests/gpu/sass_lint.py counts them). A store has no answer: the last few may still wait for
// their banks when the clock is read. Left out: atomics, ldmatrix (four phases of eight 16-byte rows, as a
// request of width 16), requests that mix with L1's.
#include "kernels/cuda/attention/gpu_machine.cuh"
#include "kernels/cuda/attention/launch.cuh"
#include "kernels/cuda/common/check.cuh"
#include "kernels/cuda/common/words.cuh"

#include <cstdio>
#include <vector>

namespace memscape::cuda {

constexpr std::uint32_t unrolledRequests = bankRequestsPerTurn;
constexpr std::uint32_t checkedTurns = 3;
constexpr int checkedWarps = 4;

// ---- 2. Reference: element by element on the host ---------------------------------------------

/// What all the requests of all the warps read, added up.
template <typename Word> static std::uint32_t referenceSum(const BankWork& work)
{
    std::uint32_t sum = 0;
    for (std::uint32_t lane = 0; lane < work.lanes; ++lane)
        sum += fold(wordOf<Word>(mixed(work.asked[lane])));
    return sum * checkedTurns * unrolledRequests * std::uint32_t(checkedWarps);
}

/// The tile as it stands after all threads have written.
template <typename Word> static std::vector<Word> referenceTile(const BankWork& work)
{
    std::vector<Word> tile;
    for (std::uint32_t e = 0; e < work.elements; ++e)
        tile.push_back(wordOf<Word>(mixed(e)));
    for (std::uint32_t lane = 0; lane < work.lanes; ++lane)
        tile[work.asked[lane]] = wordOf<Word>(writtenBits(work.asked[lane]));
    return tile;
}

// ---- 3. Kernels -------------------------------------------------------------------------------

/// One instruction of a word's width; `at` is an address in shared memory. Volatile twice: for nvcc, and for
/// ptxas, which may narrow a load of which only a part is used and drops a store that another one covers.
template <typename Word> struct SharedWord;
template <> struct SharedWord<std::uint8_t>
{
    __device__ __forceinline__ static std::uint32_t read(std::uint32_t at)
    {
        std::uint32_t value;
        asm volatile("ld.volatile.shared.u8 %0, [%1];" : "=r"(value) : "r"(at));
        return value;
    }
    __device__ __forceinline__ static void write(std::uint32_t at, std::uint8_t word)
    {
        asm volatile("st.volatile.shared.u8 [%0], %1;" ::"r"(at), "r"(std::uint32_t(word)) : "memory");
    }
};
template <> struct SharedWord<std::uint16_t>
{
    __device__ __forceinline__ static std::uint32_t read(std::uint32_t at)
    {
        std::uint32_t value;
        asm volatile("ld.volatile.shared.u16 %0, [%1];" : "=r"(value) : "r"(at));
        return value;
    }
    __device__ __forceinline__ static void write(std::uint32_t at, std::uint16_t word)
    {
        asm volatile("st.volatile.shared.u16 [%0], %1;" ::"r"(at), "r"(std::uint32_t(word)) : "memory");
    }
};
template <> struct SharedWord<std::uint32_t>
{
    __device__ __forceinline__ static std::uint32_t read(std::uint32_t at)
    {
        std::uint32_t value;
        asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(value) : "r"(at));
        return value;
    }
    __device__ __forceinline__ static std::uint32_t next(std::uint32_t at) { return read(at); }
    __device__ __forceinline__ static void write(std::uint32_t at, std::uint32_t word)
    {
        asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(at), "r"(word) : "memory");
    }
    __device__ __forceinline__ static std::uint32_t holding(std::uint32_t at) { return at; }
};
template <> struct SharedWord<Word8>
{
    __device__ __forceinline__ static std::uint32_t read(std::uint32_t at)
    {
        std::uint32_t a, b;
        asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(at));
        return a + b;
    }
    __device__ __forceinline__ static std::uint32_t next(std::uint32_t at)
    {
        std::uint32_t all[2];
        asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];" : "=r"(all[0]), "=r"(all[1]) : "r"(at));
        return all[0];
    }
    __device__ __forceinline__ static void write(std::uint32_t at, Word8 word)
    {
        asm volatile("st.volatile.shared.v2.u32 [%0], {%1, %2};" ::"r"(at), "r"(word.a), "r"(word.b) : "memory");
    }
    __device__ __forceinline__ static Word8 holding(std::uint32_t at) { return Word8{at, 0}; }
};
template <> struct SharedWord<Word16>
{
    __device__ __forceinline__ static std::uint32_t read(std::uint32_t at)
    {
        std::uint32_t a, b, c, d;
        asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                     : "r"(at));
        return a + b + c + d;
    }
    __device__ __forceinline__ static std::uint32_t next(std::uint32_t at)
    {
        std::uint32_t all[4];
        asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(all[0]), "=r"(all[1]), "=r"(all[2]), "=r"(all[3])
                     : "r"(at));
        return all[0];
    }
    __device__ __forceinline__ static void write(std::uint32_t at, Word16 word)
    {
        asm volatile("st.volatile.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(word.a), "r"(word.b),
                     "r"(word.c), "r"(word.d)
                     : "memory");
    }
    __device__ __forceinline__ static Word16 holding(std::uint32_t at) { return Word16{at, 0, 0, 0}; }
};

/// The address of a lane's element as instructions take it.
__device__ __forceinline__ std::uint32_t sharedAddress(const BankWork& work)
{
    const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(dynamicShared()));
    return base + addressIn(work.tile, askedOf(work, int(threadIdx.x % lanesPerWarp)));
}

/// Of a block: from its first warp's start to its last one's end.
__device__ __forceinline__ void noteTime(BankResult* result, long long begin, long long end, unsigned long long beginNs,
                                         unsigned long long endNs)
{
    atomicMin(&result->begin, static_cast<unsigned long long>(begin));
    atomicMax(&result->end, static_cast<unsigned long long>(end));
    atomicMin(&result->beginNs, beginNs);
    atomicMax(&result->endNs, endNs);
}

/// Version 1. One block; target: (elements) words or null.
template <typename Word, bool isWrite>
__global__ void banks_throughput_v1(BankWork work, std::uint32_t turns, BankResult* result, Word* target, Sink sink)
{
    GpuMachine m(dynamicShared());
    fillTile<Word>(m, work, blockDim.x);
    const std::uint32_t lane = threadIdx.x % lanesPerWarp;
    const std::uint32_t at = sharedAddress(work);
    const Word word = wordOf<Word>(writtenBits(askedOf(work, int(lane))));
    std::uint32_t sum = 0;
    __syncthreads();
    if (lane < work.lanes) {
        const unsigned long long beginNs = globalTimer();
        const long long begin = clock64();
        for (std::uint32_t turn = 0; turn < turns; ++turn) {
#pragma unroll
            for (int i = 0; i < static_cast<int>(unrolledRequests); ++i) {
                if (isWrite)
                    SharedWord<Word>::write(at, word);
                else
                    sum += SharedWord<Word>::read(at);
            }
        }
        if (sum == sink.rare && !sink.checked) // never: but the clock is read after the last answer
            *sink.sum = sum;
        const long long end = clock64();
        if (lane == 0)
            noteTime(result, begin, end, beginNs, globalTimer());
    }
    __syncthreads();
    if (isWrite && target != nullptr)
        copyTile<Word>(m, work, blockDim.x, target);
    if (!isWrite)
        keep(sum, sink);
}

/// Version 2. One block of one warp; *wrong counts lanes whose chain ended elsewhere.
template <typename Word>
__global__ void banks_latency_v2(BankWork work, std::uint32_t turns, BankResult* result, std::uint32_t* wrong)
{
    const std::uint32_t start = sharedAddress(work);
    if (threadIdx.x >= work.lanes)
        return;
    SharedWord<Word>::write(start, SharedWord<Word>::holding(start)); // points at itself
    __syncwarp(__activemask());
    std::uint32_t at = start;
    const unsigned long long beginNs = globalTimer();
    const long long begin = clock64();
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
#pragma unroll
        for (int i = 0; i < static_cast<int>(unrolledRequests); ++i)
            at = SharedWord<Word>::next(at);
    }
    if (at != start) // the clock is read after the last answer
        atomicAdd(wrong, 1U);
    const long long end = clock64();
    if (threadIdx.x == 0)
        noteTime(result, begin, end, beginNs, globalTimer());
}

// ---- 4. Launchers -----------------------------------------------------------------------------

template <typename Kernel> static cudaError_t allow(Kernel kernel, std::uint32_t sharedBytes)
{
    if (sharedBytes <= sharedUnasked)
        return cudaSuccess;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(sharedBytes));
}

template <typename Word, bool isWrite>
static cudaError_t launchThroughput(const BankLaunch& launch, cudaStream_t stream)
{
    const std::uint32_t bytes = bankSharedBytes(launch.work);
    const cudaError_t error = allow(banks_throughput_v1<Word, isWrite>, bytes);
    if (error != cudaSuccess)
        return error;
    banks_throughput_v1<Word, isWrite><<<1, unsigned(launch.warps * lanesPerWarp), bytes, stream>>>(
        launch.work, launch.turns, launch.result, static_cast<Word*>(launch.target), sinkOf(launch.sum, launch.result));
    return cudaGetLastError();
}

static bool isRunnable(const BankLaunch& launch)
{
    const BankWork& work = launch.work;
    bool inside = work.lanes >= 1 && work.lanes <= std::uint32_t(lanesPerWarp);
    for (std::uint32_t lane = 0; inside && lane < work.lanes; ++lane)
        inside = work.asked[lane] < work.elements;
    return inside && launch.warps >= 1 && launch.warps <= 32 && work.elements % work.tile.columns == 0;
}

cudaError_t launchBanks(const BankLaunch& launch, cudaStream_t stream)
{
    if (!isRunnable(launch))
        return cudaErrorInvalidValue;
    return withWord(int(launch.work.tile.width), cudaErrorInvalidValue, [&](auto tag) {
        using Word = typename decltype(tag)::Type;
        return launch.isWrite ? launchThroughput<Word, true>(launch, stream)
                              : launchThroughput<Word, false>(launch, stream);
    });
}

template <typename Word> static cudaError_t launchChainOf(const BankLaunch& launch, cudaStream_t stream)
{
    const std::uint32_t bytes = bankSharedBytes(launch.work);
    const cudaError_t error = allow(banks_latency_v2<Word>, bytes);
    if (error != cudaSuccess)
        return error;
    banks_latency_v2<Word><<<1, lanesPerWarp, bytes, stream>>>(launch.work, launch.turns, launch.result, launch.sum);
    return cudaGetLastError();
}

cudaError_t launchBankLatency(const BankLaunch& launch, cudaStream_t stream)
{
    if (!isRunnable(launch) || launch.isWrite)
        return cudaErrorInvalidValue;
    switch (launch.work.tile.width) {
    case 4: return launchChainOf<std::uint32_t>(launch, stream);
    case 8: return launchChainOf<Word8>(launch, stream);
    case 16: return launchChainOf<Word16>(launch, stream);
    default: // a byte holds no address
        return cudaErrorInvalidValue;
    }
}

// ---- 5. Checks --------------------------------------------------------------------------------

static BankLaunch checkedLaunch(Scratch& scratch, const BankWork& work, bool isWrite, BankResult*& result)
{
    BankLaunch launch;
    launch.work = work;
    launch.isWrite = isWrite;
    launch.warps = checkedWarps;
    launch.turns = checkedTurns;
    result = scratch.upload(std::vector<BankResult>(1));
    launch.result = result;
    launch.sum = scratch.upload(std::vector<std::uint32_t>(1, 0));
    return launch;
}

template <typename Word> static void compareThroughput(KernelCheck& check, const BankWork& work, bool isWrite)
{
    Scratch scratch;
    BankResult* result = nullptr;
    BankLaunch launch = checkedLaunch(scratch, work, isWrite, result);
    std::vector<Word> found(work.elements);
    auto* target = scratch.upload(found);
    launch.target = target;
    if (scratch.ok())
        scratch.note(launchBanks(launch, nullptr));
    if (isWrite) {
        scratch.download(found, target);
        compareWords(check, scratch.error(), found, referenceTile<Word>(work));
        return;
    }
    std::vector<std::uint32_t> sum(1);
    scratch.download(sum, launch.sum);
    verdict(check, scratch.error(), sum[0] == referenceSum<Word>(work) ? 0 : 1, 0,
            std::uint64_t(work.lanes) * checkedTurns * unrolledRequests * checkedWarps);
}

static void describe(KernelCheck& check, const BankWork& work, const char* what)
{
    std::snprintf(check.kernel, sizeof check.kernel, "banks %s %u B, rows of %u + %u%s", what, work.tile.width,
                  work.tile.columns, work.tile.padding, work.tile.granule == 0 ? "" : ", swizzled");
}

KernelCheck checkBanks(const BankWork& work, bool isWrite)
{
    KernelCheck check;
    describe(check, work, isWrite ? "write" : "read");
    verdict(check, cudaErrorInvalidValue, 0, 0, 0); // stays for a width that no word has
    withWord(int(work.tile.width), false, [&](auto tag) {
        compareThroughput<typename decltype(tag)::Type>(check, work, isWrite);
        return true;
    });
    return check;
}

KernelCheck checkBankLatency(const BankWork& work)
{
    KernelCheck check;
    describe(check, work, "latency");
    Scratch scratch;
    BankResult* result = nullptr;
    const BankLaunch launch = checkedLaunch(scratch, work, false, result);
    if (scratch.ok())
        scratch.note(launchBankLatency(launch, nullptr));
    std::vector<std::uint32_t> wrong(1);
    std::vector<BankResult> time(1);
    scratch.download(wrong, launch.sum);
    scratch.download(time, result);
    const bool hasTime = time[0].end > time[0].begin;
    verdict(check, scratch.error(), wrong[0] + (hasTime ? 0 : 1), 0, work.lanes);
    return check;
}

} // namespace memscape::cuda
