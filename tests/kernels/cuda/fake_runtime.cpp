// SPDX-License-Identifier: Apache-2.0
// The fake GPU's queue and clock: its devices, streams and events, and the small kernels around a timed one, which are
// about nothing but these.
#include "tests/kernels/cuda/fake_parts.h"

#include "kernels/cuda/kernels.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace {

constexpr int queueCapacity = 1024; // launches of a stream

double now = 1; // s on the GPU
int chosen = 0; // device
double clocks = 1e9;
cudaError_t lost = cudaSuccess; // a sticky error
cudaError_t last = cudaSuccess; // until it is asked for
bool isStuck = false;           // a kernel never ends
int behindHang = 0;             // what is queued behind it
double dirtyBytes = 0;          // of L2, to be written back when its lines are needed
std::map<std::uint64_t, std::set<std::string, std::less<>>> loaded; // kernels of each variant
memscape::cuda::StreamBlock* held = nullptr;                        // what the stream waits for

std::map<std::uintptr_t, double> events;
std::uintptr_t nextEvent = 1, nextStream = 1;

void forgetEverything()
{
    lost = last = cudaSuccess;
    isStuck = false;
    behindHang = 0;
    dirtyBytes = 0;
    loaded.clear();
    held = nullptr;
    fake::forgetMemory();
    fake::forgetOrder();
}

bool isHeld()
{
    return held != nullptr && held->open == 0 && held->timedOut == 0;
}

/// Whether nothing of that name was loaded before.
bool isNew(std::string_view kernel, std::uint64_t variant)
{
    auto& names = loaded[variant];
    const bool isFirst = !names.contains(kernel);
    if (isFirst)
        names.emplace(kernel);
    return isFirst;
}

} // namespace

namespace fake {

void pass(double seconds, double clock)
{
    now += seconds;
    clocks += seconds * clock;
}

cudaError_t noted(cudaError_t error)
{
    if (lost != cudaSuccess)
        return lost;
    if (error != cudaSuccess)
        last = error;
    return error;
}

void waitFor(std::string_view what)
{
    FakeGpu& gpu = fakeGpu();
    if (isHeld()) {
        held->timedOut = 1;
        gpu.heldUp = what;
    }
    if (isStuck && gpu.blockedBy.empty())
        gpu.blockedBy = what;
}

void queued(std::string_view what)
{
    FakeGpu& gpu = fakeGpu();
    gpu.behindBlock += isHeld();
    gpu.mostBehindBlock = std::max(gpu.mostBehindBlock, gpu.behindBlock);
    behindHang += isStuck;
    if (gpu.behindBlock > queueCapacity || behindHang > queueCapacity)
        waitFor("the queue is full: " + std::string(what));
}

int chosenDevice()
{
    return chosen;
}

void setDirty(double bytes)
{
    dirtyBytes = bytes;
}

} // namespace fake

FakeGpu& fakeGpu()
{
    static FakeGpu gpu;
    if (std::exchange(gpu.isNew, false))
        forgetEverything();
    return gpu;
}

void fakeLoad(std::string_view kernel, std::uint64_t variant)
{
    if (isNew(kernel, variant))
        fake::waitFor("loading " + std::string(kernel));
}

cudaError_t fakeQueue(std::string_view kernel, std::uint64_t variant)
{
    FakeGpu& gpu = fakeGpu();
    fakeLoad(kernel, variant);
    fake::queued(kernel);
    if (!gpu.hangs.empty() && kernel == gpu.hangs)
        isStuck = isStuck || --gpu.hangsAt == 0;
    return cudaGetLastError(); // what a launcher ends with
}

cudaError_t fakeLaunch(std::string_view kernel, std::uint64_t variant, double seconds)
{
    FakeGpu& gpu = fakeGpu();
    ++gpu.launches;
    const double writtenBack = std::exchange(dirtyBytes, 0) / gpu.streamBytesPerSecond;
    const bool isLucky = gpu.luckyEvery > 0 && gpu.launches % gpu.luckyEvery == 0;
    fake::pass((gpu.launchSeconds + seconds + writtenBack) * (isLucky ? 0.9 : 1),
               gpu.clockHz * (gpu.launches > gpu.sagsAfter ? gpu.clockSag : 1));
    return fakeQueue(kernel, variant);
}

cudaError_t fakeError()
{
    return lost;
}
cudaError_t fakeFailure(cudaError_t error)
{
    return fake::noted(error);
}
double fakeNow()
{
    return now;
}
double fakeClocks()
{
    return clocks;
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
    case cudaDevAttrMultiProcessorCount: *value = gpu.multiprocessors; break;
    case cudaDevAttrComputeCapabilityMajor: *value = gpu.computeCapability / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *value = gpu.computeCapability % 10; break;
    case cudaDevAttrL2CacheSize: *value = static_cast<int>(gpu.l2Bytes); break;
    case cudaDevAttrMemoryPoolsSupported: *value = gpu.hasPools; break;
    case cudaDevAttrClockRate: *value = static_cast<int>(gpu.clockHz / 1e3); break;
    case cudaDevAttrMemoryClockRate: *value = 3201000; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = 6144; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 227 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = 228 << 10; break;
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = 65536; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = 32; break;
    default: *value = 0; break;
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
    *ordinal = chosen;
    return lost;
}
cudaError_t cudaSetDevice(int ordinal)
{
    chosen = ordinal;
    return lost != cudaSuccess ? lost : fakeGpu().openError;
}
const char* cudaGetErrorName(cudaError_t error)
{
    switch (error) {
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorDevicesUnavailable: return "cudaErrorDevicesUnavailable";
    case cudaErrorLaunchTimeout: return "cudaErrorLaunchTimeout";
    default: return "cudaErrorOther";
    }
}
const char* cudaGetErrorString(cudaError_t)
{
    return "as the fake says";
}

cudaError_t cudaGetLastError()
{
    return lost != cudaSuccess ? lost : std::exchange(last, cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned)
{
    static_cast<void>(fakeGpu()); // a fresh one has none
    *stream = reinterpret_cast<cudaStream_t>(nextStream++);
    fake::streamBegins(*stream);
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    fake::streamEnds(stream);
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    fake::streamWaits(stream, event);
    return lost;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    fake::waitFor("cudaStreamSynchronize");
    held = nullptr;
    fake::trimPool();
    fake::hostWaits(stream);
    return lost;
}
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    if (isStuck || isHeld())
        return fake::noted(cudaErrorNotReady);
    held = nullptr;
    fake::hostWaits(stream);
    return lost;
}
cudaError_t cudaEventCreate(cudaEvent_t* event)
{
    *event = reinterpret_cast<cudaEvent_t>(nextEvent++);
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned)
{
    return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t)
{
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    const bool isFirst = isNew("an event", reinterpret_cast<std::uintptr_t>(event));
    if (isFirst && isHeld()) // it may take memory
        fake::waitFor("an event's first time");
    fake::queued("an event");
    events[reinterpret_cast<std::uintptr_t>(event)] = now;
    fake::eventIsRecorded(event, stream);
    return lost;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    fake::waitFor("cudaEventSynchronize");
    fake::hostWaits(event);
    return lost;
}
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (isStuck || isHeld())
        return fake::noted(cudaErrorNotReady);
    fake::hostWaits(event);
    return lost;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    const double seconds =
        events[reinterpret_cast<std::uintptr_t>(end)] - events[reinterpret_cast<std::uintptr_t>(begin)];
    *milliseconds = static_cast<float>(seconds * 1e3);
    return lost;
}

} // extern "C"

// ---- harness.cu -------------------------------------------------------------------------------

namespace memscape::cuda {

cudaError_t launchEmpty(cudaStream_t)
{
    fake::pass(fakeGpu().launchSeconds, fakeGpu().clockHz);
    return fakeQueue("empty");
}
cudaError_t launchBlockingKernel(StreamBlock* block, std::uint64_t, cudaStream_t)
{
    const cudaError_t error = fakeQueue("blocking kernel");
    if (fakeGpu().blockTimesOut)
        block->timedOut = 1;
    held = block;
    fakeGpu().behindBlock = 0;
    return error;
}
cudaError_t launchStamp(Stamp* stamp, int, cudaStream_t)
{
    const cudaError_t error = fakeQueue("stamp");
    *stamp = {static_cast<unsigned long long>(now * 1e9), static_cast<long long>(clocks)};
    return error;
}
cudaError_t launchSpin(std::uint64_t limitNs, int, float*, cudaStream_t)
{
    fake::pass(double(limitNs) * 1e-9, fakeGpu().clockHz);
    return fakeQueue("spin");
}
cudaError_t launchFill(std::uint32_t*, std::uint64_t, std::uint64_t, cudaStream_t)
{
    FakeGpu& gpu = fakeGpu();
    if (gpu.fillsUntilFault >= 0 && gpu.fillsUntilFault-- == 0)
        lost = gpu.fault;
    return fakeQueue("fill");
}

} // namespace memscape::cuda
