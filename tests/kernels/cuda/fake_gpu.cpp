// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/cuda/fake_gpu.h"

#include "kernels/cuda/kernels.h"
#include "kernels/measure/mlp_numbers.h"
#include "kernels/measure/mlp_reference.h"
#include "tests/support/warp_emulator_block.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace {

double now = 1; // s on the GPU
double clocks = 1e9;
cudaError_t lost = cudaSuccess; // a sticky error
struct Allocation
{
    std::uint64_t bytes;
    bool pooled;
};
std::map<void*, Allocation> allocations;
std::uint64_t poolUsed = 0, poolHigh = 0;
std::uint64_t chainBytes = 0;
const memscape::cuda::Gate* held = nullptr; // what the stream waits for

void pass(double seconds, double clock)
{
    now += seconds;
    clocks += seconds * clock;
}

/// A timed kernel.
cudaError_t run(double seconds)
{
    FakeGpu& gpu = fakeGpu();
    ++gpu.launches;
    gpu.behindGate += held != nullptr && held->open == 0;
    gpu.mostBehindGate = std::max(gpu.mostBehindGate, gpu.behindGate);
    pass(gpu.launchSeconds + seconds, gpu.clockHz * gpu.clockSag);
    return lost;
}

cudaError_t take(void** at, std::uint64_t bytes, bool pooled)
{
    FakeGpu& gpu = fakeGpu();
    if (lost != cudaSuccess)
        return lost;
    if (gpu.usedBytes + bytes > gpu.memoryBytes)
        return cudaErrorMemoryAllocation;
    *at = std::malloc(bytes); // pages that nobody touches cost nothing
    allocations[*at] = {bytes, pooled};
    gpu.usedBytes += bytes;
    poolUsed += pooled ? bytes : 0;
    poolHigh = std::max(poolHigh, poolUsed);
    return cudaSuccess;
}

cudaError_t giveBack(void* at)
{
    if (at == nullptr)
        return cudaSuccess;
    const Allocation gone = allocations.at(at);
    fakeGpu().usedBytes -= gone.bytes;
    poolUsed -= gone.pooled ? gone.bytes : 0;
    allocations.erase(at);
    std::free(at);
    return lost;
}

std::map<std::uintptr_t, double> events;
std::uintptr_t nextEvent = 1;

} // namespace

FakeGpu& fakeGpu()
{
    static FakeGpu gpu;
    if (gpu.launches == 0)
        lost = cudaSuccess; // a fresh one was assigned
    return gpu;
}

cudaError_t fakeLaunch(double seconds)
{
    return run(seconds);
}

cudaError_t fakeError()
{
    return lost;
}

// ---- the runtime ------------------------------------------------------------------------------

extern "C" {

cudaError_t cudaGetDeviceCount(int* count)
{
    *count = fakeGpu().devices;
    return fakeGpu().countError;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int)
{
    std::memset(properties, 0, sizeof *properties);
    std::snprintf(properties->name, sizeof properties->name, "NVIDIA H200");
    properties->major = 9;
    properties->multiProcessorCount = fakeGpu().multiprocessors;
    properties->totalGlobalMem = fakeGpu().memoryBytes;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int)
{
    const FakeGpu& gpu = fakeGpu();
    switch (which) {
    case cudaDevAttrMultiProcessorCount:
        *value = gpu.multiprocessors;
        break;
    case cudaDevAttrComputeCapabilityMajor:
        *value = gpu.computeCapability / 10;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *value = gpu.computeCapability % 10;
        break;
    case cudaDevAttrL2CacheSize:
        *value = static_cast<int>(gpu.l2Bytes);
        break;
    case cudaDevAttrMemoryPoolsSupported:
        *value = gpu.hasPools;
        break;
    case cudaDevAttrClockRate:
        *value = static_cast<int>(gpu.clockHz / 1e3);
        break;
    case cudaDevAttrMemoryClockRate:
        *value = 3201000;
        break;
    case cudaDevAttrGlobalMemoryBusWidth:
        *value = 6144;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = 227 << 10;
        break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = 228 << 10;
        break;
    case cudaDevAttrMaxRegistersPerMultiprocessor:
        *value = 65536;
        break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = 2048;
        break;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
        *value = 32;
        break;
    default:
        *value = 0;
        break;
    }
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int)
{
    std::snprintf(text, static_cast<std::size_t>(size), "00000000:01:00.0");
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version)
{
    *version = fakeGpu().driverVersion;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version)
{
    *version = 13000;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int* ordinal)
{
    *ordinal = 0;
    return lost;
}
cudaError_t cudaSetDevice(int)
{
    return lost != cudaSuccess ? lost : fakeGpu().openError;
}
const char* cudaGetErrorName(cudaError_t error)
{
    switch (error) {
    case cudaErrorMemoryAllocation:
        return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress:
        return "cudaErrorIllegalAddress";
    case cudaErrorDevicesUnavailable:
        return "cudaErrorDevicesUnavailable";
    default:
        return "cudaErrorOther";
    }
}
const char* cudaGetErrorString(cudaError_t)
{
    return "as the fake says";
}

cudaError_t cudaMalloc(void** at, std::size_t bytes)
{
    return take(at, bytes, false);
}
cudaError_t cudaMallocFromPoolAsync(void** at, std::size_t bytes, cudaMemPool_t, cudaStream_t)
{
    return take(at, bytes, true);
}
cudaError_t cudaFree(void* at)
{
    return giveBack(at);
}
cudaError_t cudaFreeAsync(void* at, cudaStream_t)
{
    return giveBack(at);
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total)
{
    *total = fakeGpu().memoryBytes;
    *free = *total - fakeGpu().usedBytes;
    return lost;
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*)
{
    *pool = reinterpret_cast<cudaMemPool_t>(&poolHigh);
    return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t)
{
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*)
{
    poolHigh = 0;
    return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr which, void* value)
{
    std::memcpy(value, which == cudaMemPoolAttrUsedMemHigh ? &poolHigh : &poolUsed,
                sizeof poolHigh);
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** at, std::size_t bytes, unsigned)
{
    *at = std::calloc(1, bytes);
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void* at)
{
    std::free(at);
    return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned)
{
    *device = host;
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind)
{
    if (lost == cudaSuccess)
        std::memcpy(to, from, bytes);
    return lost;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t)
{
    if (lost == cudaSuccess)
        std::memcpy(to, from, bytes);
    return lost;
}
cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t)
{
    // The flush buffer is larger than any array: nobody reads it, so nobody writes it.
    if (lost == cudaSuccess && bytes < (64U << 20))
        std::memset(at, value, bytes);
    return lost;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned)
{
    *stream = nullptr;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t)
{
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    held = nullptr;
    return lost;
}
cudaError_t cudaEventCreate(cudaEvent_t* event)
{
    *event = reinterpret_cast<cudaEvent_t>(nextEvent++);
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t)
{
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
    events[reinterpret_cast<std::uintptr_t>(event)] = now;
    return lost;
}
cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return lost;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    const double seconds = events[reinterpret_cast<std::uintptr_t>(end)]
        - events[reinterpret_cast<std::uintptr_t>(begin)];
    *milliseconds = static_cast<float>(seconds * 1e3);
    return lost;
}

} // extern "C"

// ---- the launchers ----------------------------------------------------------------------------

namespace memscape::cuda {

cudaError_t launchStride(const StrideLaunch& launch, int, cudaStream_t)
{
    const double share = launch.indices != nullptr
        ? 32
        : std::min<double>(32, double(launch.walk.step) * launch.elementBytes);
    const double moved = double(launch.walk.touched) * std::max(share, 1.0);
    return run(moved * (launch.act == Act::Copy ? 2 : 1) / fakeGpu().sectorBytesPerSecond);
}
/// Sectors of 32 bytes for every element that is no neighbour of the one before; a copy in tiles moves each once.
cudaError_t launchView(const ViewLaunch& launch, int, cudaStream_t)
{
    const double step = launch.nest.rank > 0 && launch.version < 2 ? double(launch.nest.stride[0]) : 1;
    const double share = std::clamp<double>(step * launch.elementBytes, 1, 32);
    const double written = launch.version > 0 ? launch.elementBytes : 0;
    return run(double(launch.nest.elements) * (share + written) / fakeGpu().sectorBytesPerSecond);
}
cudaError_t launchFill(std::uint32_t*, std::uint64_t, std::uint64_t, cudaStream_t)
{
    FakeGpu& gpu = fakeGpu();
    if (gpu.fillsUntilFault >= 0 && gpu.fillsUntilFault-- == 0)
        lost = gpu.fault;
    return lost;
}
cudaError_t launchIndices(std::uint32_t*, std::uint64_t, std::uint64_t, std::uint32_t, cudaStream_t)
{
    return lost;
}
cudaError_t launchStream(const StreamLaunch& launch, int, cudaStream_t)
{
    const double slower = launch.version == 3 && launch.threads == 512 ? 1 : 1.1;
    const int arrays = launch.act == Act::Triad ? 3 : launch.act == Act::Copy ? 2 : 1;
    return run(slower * double(launch.bytes) * arrays / fakeGpu().streamBytesPerSecond);
}
cudaError_t launchLaps(const LapsLaunch& launch, cudaStream_t)
{
    const double bytes = double(launch.chunkBytes) * double(launch.laps) * launch.blocks;
    return run(bytes
               / (launch.isPrivate ? fakeGpu().l1BytesPerSecond : fakeGpu().l2BytesPerSecond));
}
cudaError_t lapsResidentBlocks(Act, int, int multiprocessors, int* blocks)
{
    *blocks = 2 * multiprocessors;
    return cudaSuccess;
}
cudaError_t preferL1()
{
    return cudaSuccess;
}

cudaError_t launchChain(char*, const std::uint32_t*, std::uint64_t count, std::uint64_t spacing,
                        ChaseKind, cudaStream_t)
{
    chainBytes = count * spacing;
    return lost;
}

static cudaError_t chase(double latency, std::uint64_t loads, ChaseResult* result)
{
    const double seconds = latency * double(loads);
    const cudaError_t error = run(seconds);
    *result = {1, static_cast<long long>(seconds * fakeGpu().clockHz),
               static_cast<unsigned long long>(seconds * 1e9)};
    return error;
}
cudaError_t launchChase(ChaseKind kind, const char*, std::uint64_t, std::uint64_t,
                        std::uint64_t loads, ChaseResult* result, cudaStream_t)
{
    const FakeGpu& gpu = fakeGpu();
    const bool near = chainBytes <= gpu.l1Bytes && kind != ChaseKind::CacheGlobal;
    return chase(near ? gpu.l1Latency
                      : (chainBytes <= gpu.l2Bytes ? gpu.l2Latency : gpu.dramLatency),
                 loads, result);
}
cudaError_t launchSharedChase(const std::uint32_t*, std::uint32_t, std::uint64_t loads,
                              ChaseResult* result, cudaStream_t)
{
    return chase(12e-9, loads, result);
}

/// What the banks take for one request, counted by the emulated machine.
static std::uint64_t bankTurns(const BankWork& work)
{
    emulated::BankCount count;
    std::vector<std::uint32_t> at;
    for (std::uint32_t lane = 0; lane < work.lanes; ++lane)
        at.push_back(addressIn(work.tile, work.asked[lane]));
    emulated::addTurns(count, at, work.tile.width);
    return count.turns;
}
static cudaError_t bankTime(const BankLaunch& launch, double cycles)
{
    const FakeGpu& gpu = fakeGpu();
    const double clock = gpu.clockHz * gpu.clockSag;
    const auto begin = static_cast<unsigned long long>(clocks), beginNs = static_cast<unsigned long long>(now * 1e9);
    const cudaError_t error = run(cycles / clock);
    *launch.result = {begin, begin + static_cast<unsigned long long>(cycles), beginNs,
                      beginNs + static_cast<unsigned long long>(cycles / clock * 1e9)};
    return error;
}
cudaError_t launchBanks(const BankLaunch& launch, cudaStream_t)
{
    return bankTime(launch, double(bankTurns(launch.work)) * launch.turns * bankRequestsPerTurn * launch.warps);
}
cudaError_t launchBankLatency(const BankLaunch& launch, cudaStream_t)
{
    const double cycles = fakeGpu().sharedLatencyCycles + double(bankTurns(launch.work)) - 1;
    return bankTime(launch, cycles * launch.turns * bankRequestsPerTurn);
}

// The chain of checkpoint is small in tests, so its kernels really run, on the host.
cudaError_t launchProduct(const ProductLaunch& w, cudaStream_t)
{
    if (lost != cudaSuccess)
        return lost;
    const bool isSmall = w.rows * w.columns * w.inner <= (1U << 26); // a large one only takes its time
    for (std::uint64_t row = 0; row < w.rows && isSmall; ++row) {
        for (std::uint64_t column = 0; column < w.columns; ++column) {
            float sum = 0;
            for (std::uint64_t k = 0; k < w.inner; ++k)
                sum += w.a[w.aTransposed ? k * w.aStride + row : row * w.aStride + k]
                    * w.b[w.bTransposed ? column * w.bStride + k : k * w.bStride + column];
            w.c[row * w.cStride + column] = sum;
        }
    }
    if (!isSmall && w.cStride == w.columns && w.rows * w.columns <= (1U << 20)) // nobody's, but numbers
        std::fill_n(w.c, w.rows * w.columns, 0.0F);
    FakeGpu& gpu = fakeGpu();
    if (isSmall && gpu.productsUntilWrong >= 0 && gpu.productsUntilWrong-- == 0)
        *w.c += 1;
    return run(2.0 * double(w.rows) * double(w.columns) * double(w.inner) / gpu.flopsPerSecond);
}
/// Of arrays this large the elements are nobody's: they become numbers, whichever, in no time.
static bool isLarge(std::uint64_t elements)
{
    return elements >= (1U << 18);
}
/// A pass over so many floats.
static cudaError_t elements(std::uint64_t floats)
{
    return run(4.0 * double(floats) / fakeGpu().streamBytesPerSecond);
}
cudaError_t launchGelu(const float* sums, const float* bias, float* z, float* x, std::uint64_t rows,
                       std::uint64_t width, cudaStream_t)
{
    for (float* result : {z, x}) {
        if (result != nullptr && isLarge(rows * width))
            std::fill_n(result, rows * width, 0.0F);
    }
    for (std::uint64_t i = 0; i < rows * width && !isLarge(rows * width) && lost == cudaSuccess; ++i) {
        const float value = sums[i] + bias[i % width];
        if (z != nullptr)
            z[i] = value;
        if (x != nullptr)
            x[i] = static_cast<float>(geluReference(double(value)));
    }
    return elements(3 * rows * width);
}
cudaError_t launchGeluSlope(const float* z, float* y, std::uint64_t count, cudaStream_t)
{
    for (std::uint64_t i = 0; i < count && !isLarge(count) && lost == cudaSuccess; ++i)
        y[i] *= static_cast<float>(geluSlopeReference(double(z[i])));
    return elements(3 * count);
}
cudaError_t launchColumnSums(const float* y, float* sums, std::uint64_t rows, std::uint64_t width,
                             cudaStream_t)
{
    for (std::uint64_t column = 0; column < width && lost == cudaSuccess; ++column) {
        sums[column] = 0;
        for (std::uint64_t row = 0; row < rows && !isLarge(rows * width); ++row)
            sums[column] += y[row * width + column];
    }
    return elements(rows * width);
}
cudaError_t launchLoss(const float* x, float* gradient, std::uint64_t count, double* partial,
                       cudaStream_t)
{
    std::fill_n(partial, lossPartials, 0.0);
    for (std::uint64_t i = 0; i < count && lost == cudaSuccess; ++i) {
        const float difference = x[i] - mlpUniform(mlpTargetSeed, i);
        partial[0] += double(difference) * double(difference);
        gradient[i] = static_cast<float>(2 / double(count)) * difference;
    }
    return elements(2 * count);
}
cudaError_t launchUniform(float* values, std::uint64_t count, std::uint64_t seed, float scale,
                          cudaStream_t)
{
    for (std::uint64_t i = 0; i < count && lost == cudaSuccess; ++i)
        values[i] = mlpUniform(seed, i) * scale;
    return elements(count);
}
cudaError_t launchDigest(const float* values, std::uint64_t count, unsigned long long* sum,
                         cudaStream_t)
{
    for (std::uint64_t i = 0; i < count && lost == cudaSuccess; ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, values + i, sizeof bits);
        *sum += mlpDigestOf(i, bits);
    }
    return elements(count);
}

cudaError_t launchEmpty(cudaStream_t)
{
    pass(fakeGpu().launchSeconds, fakeGpu().clockHz);
    return lost;
}
cudaError_t launchGate(Gate* gate, std::uint64_t, cudaStream_t)
{
    if (fakeGpu().gateTimesOut)
        gate->timedOut = 1;
    held = gate;
    fakeGpu().behindGate = 0;
    return lost;
}
cudaError_t launchStamp(Stamp* stamp, int, cudaStream_t)
{
    *stamp = {static_cast<unsigned long long>(now * 1e9), static_cast<long long>(clocks)};
    return lost;
}
cudaError_t launchSpin(std::uint64_t limitNs, int, float*, cudaStream_t)
{
    pass(double(limitNs) * 1e-9, fakeGpu().clockHz);
    return lost;
}

static KernelCheck verdictOf(const char* name)
{
    KernelCheck check;
    check.error = lost;
    check.passed = lost == cudaSuccess && !fakeGpu().wrongKernel;
    std::snprintf(check.kernel, sizeof check.kernel, "%s", name);
    std::snprintf(check.detail, sizeof check.detail, "%s",
                  check.passed ? "equal" : "3 of 9 differ");
    return check;
}
KernelCheck checkStride(int, int, Act, std::uint64_t, bool, int)
{
    return verdictOf("stride");
}
KernelCheck checkView(int, int, int)
{
    return verdictOf("view");
}
KernelCheck checkStream(int, int, Act, int)
{
    return verdictOf("stream");
}
KernelCheck checkLaps(Act, bool, int)
{
    return verdictOf("laps");
}
KernelCheck checkBanks(const BankWork&, bool)
{
    return verdictOf("banks");
}
KernelCheck checkBankLatency(const BankWork&)
{
    return verdictOf("banks latency");
}
KernelCheck checkChase(ChaseKind)
{
    return verdictOf("chase");
}
KernelCheck checkProduct(int, bool, bool)
{
    return verdictOf("product");
}
KernelCheck checkMlpElements()
{
    return verdictOf("gelu");
}

} // namespace memscape::cuda
