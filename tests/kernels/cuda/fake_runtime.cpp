// SPDX-License-Identifier: Apache-2.0
// The fake GPU's stream, memory and clock: the calls of the CUDA runtime, and the small kernels around
// a timed one, which are about nothing but these.
#include "tests/kernels/cuda/fake_gpu.h"

#include "kernels/cuda/kernels.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace {

constexpr int queueCapacity = 1024;           // launches of a stream
constexpr std::size_t flushBytes = 64U << 20; // arrays this large are the harness's own

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

struct Allocation
{
    std::uint64_t bytes;
    bool pooled;
    int device; ///< that was chosen
};
std::map<void*, Allocation> allocations;
/// Whether all of it is memory of that device, as a copy between two says; pools are closed to neighbours.
bool liesOn(int device, const void* at, std::size_t bytes)
{
    auto behind = allocations.upper_bound(const_cast<void*>(at));
    if (behind == allocations.begin())
        return false;
    const auto& [begin, allocation] = *--behind;
    return allocation.device == device && !allocation.pooled
        && static_cast<const char*>(at) + bytes <= static_cast<const char*>(begin) + allocation.bytes;
}
std::uint64_t poolUsed = 0, poolHigh = 0;
std::uint64_t poolFreed = 0; // but kept until a call synchronises

std::map<char*, std::size_t> pinned; // memory of the host
bool isInPinned(const void* at)
{
    const auto* byte = static_cast<const char*>(at);
    return std::any_of(pinned.begin(), pinned.end(),
                       [byte](const auto& one) { return byte >= one.first && byte < one.first + one.second; });
}

std::map<std::uintptr_t, double> events;
std::uintptr_t nextEvent = 1;

/// How far each stream is known to have come, by stream.
using Seen = std::map<cudaStream_t, std::uint64_t>;
void join(Seen& to, const Seen& from)
{
    for (const auto& [stream, count] : from)
        to[stream] = std::max(to[stream], count);
}

// Streams do what they are given at once, one after the other; what a real GPU may do in another order is found here:
// who touches memory must have seen all that touched it before.
std::uintptr_t nextStream = 1;
std::set<cudaStream_t> streams;
bool isParallel()
{
    return streams.size() > 1; // more than the session's
}
std::map<cudaStream_t, Seen> seenBy;
std::map<std::uintptr_t, Seen> seenAtEvent;
Seen seenByHost, issued;

struct Access
{
    const char *begin, *end;
    cudaStream_t stream;
    std::uint64_t at;
    bool isWrite;
};
std::vector<Access> accesses;

/// A copy to pinned memory that the host has not waited for: until then the host sees what was there before.
struct Arrival
{
    cudaStream_t stream;
    std::uint64_t at;
    char* to;
    std::vector<char> bytes;
};
std::vector<Arrival> arrivals;

void arrive(const Arrival& one)
{
    std::memcpy(one.to, one.bytes.data(), one.bytes.size());
}

/// Of memory that is given back.
void forgetAccesses(const void* at, std::uint64_t bytes)
{
    const auto* const begin = static_cast<const char*>(at);
    std::erase_if(accesses, [&](const Access& one) { return one.begin < begin + bytes && begin < one.end; });
    std::erase_if(arrivals, [&](const Arrival& one) { return one.to >= begin && one.to < begin + bytes; });
}

void hostHasSeen(const Seen& seen)
{
    join(seenByHost, seen);
    std::erase_if(arrivals, [](const Arrival& one) {
        const bool hasArrived = seenByHost[one.stream] >= one.at;
        if (hasArrived)
            arrive(one);
        return hasArrived;
    });
    std::erase_if(accesses, [](const Access& one) { return seenByHost[one.stream] >= one.at; });
}

void touch(cudaStream_t stream, const void* at, std::uint64_t bytes, bool isWrite)
{
    if (!isParallel() || bytes == 0)
        return;
    const auto* const begin = static_cast<const char*>(at);
    const char* const end = begin + bytes;
    Seen& seen = seenBy[stream];
    join(seen, seenByHost);
    for (const Access& one : accesses) {
        if ((isWrite || one.isWrite) && one.begin < end && begin < one.end && seen[one.stream] < one.at)
            fakeGpu().race = std::string(isWrite ? "written" : "read") + " while another stream "
                + (one.isWrite ? "writes it" : "reads it");
    }
    seen[stream] = ++issued[stream];
    accesses.push_back({begin, end, stream, issued[stream], isWrite});
}

void forgetEverything()
{
    lost = last = cudaSuccess;
    isStuck = false;
    behindHang = 0;
    dirtyBytes = 0;
    loaded.clear();
    held = nullptr;
    for (const auto& [at, allocation] : allocations)
        std::free(at);
    allocations.clear();
    poolUsed = poolHigh = poolFreed = 0;
    seenBy.clear();
    seenAtEvent.clear();
    seenByHost.clear();
    issued.clear();
    accesses.clear();
    arrivals.clear();
    streams.clear();
}

/// The pool gives back what was freed.
void trimPool()
{
    fakeGpu().usedBytes -= std::exchange(poolFreed, 0);
}

void pass(double seconds, double clock)
{
    now += seconds;
    clocks += seconds * clock;
}

/// Keeps an error until it is asked for.
cudaError_t noted(cudaError_t error)
{
    if (lost != cudaSuccess)
        return lost;
    if (error != cudaSuccess)
        last = error;
    return error;
}

bool isHeld()
{
    return held != nullptr && held->open == 0 && held->timedOut == 0;
}

/// `what` needs what is queued before it to have run.
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

/// One place in the stream's queue.
void queued(std::string_view what)
{
    FakeGpu& gpu = fakeGpu();
    gpu.behindBlock += isHeld();
    gpu.mostBehindBlock = std::max(gpu.mostBehindBlock, gpu.behindBlock);
    behindHang += isStuck;
    if (gpu.behindBlock > queueCapacity || behindHang > queueCapacity)
        waitFor("the queue is full: " + std::string(what));
}

cudaError_t take(void** at, std::uint64_t bytes, bool pooled)
{
    FakeGpu& gpu = fakeGpu();
    waitFor("an allocation");
    if (lost != cudaSuccess)
        return lost;
    if (pooled)
        trimPool(); // it would be taken again
    if (gpu.usedBytes + bytes > gpu.memoryBytes)
        return noted(cudaErrorMemoryAllocation);
    *at = std::malloc(bytes); // untouched pages cost nothing
    allocations[*at] = {bytes, pooled, chosen};
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
    if (gone.pooled)
        poolFreed += gone.bytes;
    else
        fakeGpu().usedBytes -= gone.bytes;
    poolUsed -= gone.pooled ? gone.bytes : 0;
    forgetAccesses(at, gone.bytes);
    allocations.erase(at);
    std::free(at);
    return lost;
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
        waitFor("loading " + std::string(kernel));
}

cudaError_t fakeQueue(std::string_view kernel, std::uint64_t variant)
{
    FakeGpu& gpu = fakeGpu();
    fakeLoad(kernel, variant);
    queued(kernel);
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
    pass((gpu.launchSeconds + seconds + writtenBack) * (isLucky ? 0.9 : 1),
         gpu.clockHz * (gpu.launches > gpu.sagsAfter ? gpu.clockSag : 1));
    return fakeQueue(kernel, variant);
}

cudaError_t fakeError()
{
    return lost;
}
cudaError_t fakeFailure(cudaError_t error)
{
    return noted(error);
}
void fakeReads(cudaStream_t stream, const void* at, std::uint64_t bytes)
{
    touch(stream, at, bytes, false);
}
void fakeWrites(cudaStream_t stream, const void* at, std::uint64_t bytes)
{
    touch(stream, at, bytes, true);
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
    if (at != nullptr)
        waitFor("cudaFree");
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
    waitFor("cudaMemPoolDestroy");
    trimPool();
    return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t)
{
    return lost;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*)
{
    poolHigh = 0;
    return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr which, void* value)
{
    std::memcpy(value, which == cudaMemPoolAttrUsedMemHigh ? &poolHigh : &poolUsed, sizeof poolHigh);
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** at, std::size_t bytes, unsigned)
{
    waitFor("cudaHostAlloc");
    if (fakeGpu().pinnableBytes < bytes)
        return noted(cudaErrorMemoryAllocation);
    *at = std::calloc(1, bytes);
    pinned[static_cast<char*>(*at)] = bytes;
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void* at)
{
    waitFor("cudaFreeHost");
    const std::size_t bytes = at != nullptr ? pinned[static_cast<char*>(at)] : 0;
    pinned.erase(static_cast<char*>(at));
    forgetAccesses(at, bytes);
    std::free(at);
    return cudaSuccess;
}
cudaError_t cudaHostRegister(void* at, std::size_t bytes, unsigned)
{
    waitFor("cudaHostRegister");
    pinned[static_cast<char*>(at)] = bytes;
    return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* at)
{
    waitFor("cudaHostUnregister");
    pinned.erase(static_cast<char*>(at));
    return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned)
{
    *device = host;
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind)
{
    waitFor("cudaMemcpy");
    if (lost == cudaSuccess)
        std::memcpy(to, from, bytes);
    return lost;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    FakeGpu& gpu = fakeGpu();
    const bool isPinned = isInPinned(to) || isInPinned(from);
    if (kind == cudaMemcpyDeviceToDevice || isPinned)
        fakeQueue("cudaMemcpyAsync", 0);
    else
        waitFor("cudaMemcpyAsync of pageable memory");
    const double rate = isPinned           ? gpu.linkBytesPerSecond
        : kind == cudaMemcpyDeviceToDevice ? gpu.insideBytesPerSecond
                                           : gpu.pageableBytesPerSecond;
    if (rate > 0)
        pass(gpu.linkLatency + double(bytes) / rate, gpu.clockHz);
    fakeReads(stream, from, bytes);
    fakeWrites(stream, to, bytes);
    for (const Arrival& one : arrivals) { // what another copy has put there is the source of this one
        if (one.to < static_cast<const char*>(from) + bytes && from < one.to + one.bytes.size())
            arrive(one);
    }
    std::vector<char> moved(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
    if (isPinned && gpu.wrongCopyAt > 0 && --gpu.wrongCopyAt == 0 && bytes > 0)
        moved[bytes / 2] ^= 1;
    if (lost != cudaSuccess)
        return lost;
    if (isParallel() && kind == cudaMemcpyDeviceToHost && isPinned)
        arrivals.push_back({stream, issued[stream], static_cast<char*>(to), std::move(moved)});
    else
        std::memcpy(to, moved.data(), bytes);
    return lost;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int toDevice, const void* from, int fromDevice, std::size_t bytes,
                                cudaStream_t stream)
{
    FakeGpu& gpu = fakeGpu();
    if (gpu.devices < 2)
        return noted(cudaErrorNotSupported);
    if (!liesOn(toDevice, to, bytes) || !liesOn(fromDevice, from, bytes))
        return noted(cudaErrorInvalidValue);
    fakeQueue("cudaMemcpyPeerAsync", 0);
    pass(gpu.peerLatency + double(bytes) / gpu.peerBytesPerSecond, gpu.clockHz);
    fakeReads(stream, from, bytes);
    fakeWrites(stream, to, bytes);
    if (lost == cudaSuccess)
        std::memmove(to, from, bytes);
    if (gpu.wrongCopyAt > 0 && --gpu.wrongCopyAt == 0 && bytes > 0)
        static_cast<char*>(to)[bytes / 2] ^= 1;
    return lost;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int)
{
    *can = fakeGpu().devices > 1 && fakeGpu().reachesPeers;
    return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned)
{
    return noted(fakeGpu().peerError);
}
cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t)
{
    fakeLoad("cudaMemsetAsync", 0);
    queued("cudaMemsetAsync");
    if (bytes >= flushBytes) // it is not read, so it is not written
        dirtyBytes = std::min(double(bytes), double(fakeGpu().l2Bytes));
    else if (lost == cudaSuccess)
        std::memset(at, value, bytes);
    return lost;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned)
{
    static_cast<void>(fakeGpu()); // a fresh one has none
    *stream = reinterpret_cast<cudaStream_t>(nextStream++);
    streams.insert(*stream);
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    streams.erase(stream);
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    join(seenBy[stream], seenAtEvent[reinterpret_cast<std::uintptr_t>(event)]);
    return lost;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    waitFor("cudaStreamSynchronize");
    held = nullptr;
    trimPool();
    hostHasSeen(seenBy[stream]);
    return lost;
}
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    if (isStuck || isHeld())
        return noted(cudaErrorNotReady);
    held = nullptr;
    hostHasSeen(seenBy[stream]);
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
        waitFor("an event's first time");
    queued("an event");
    events[reinterpret_cast<std::uintptr_t>(event)] = now;
    seenAtEvent[reinterpret_cast<std::uintptr_t>(event)] = seenBy[stream];
    return lost;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    waitFor("cudaEventSynchronize");
    hostHasSeen(seenAtEvent[reinterpret_cast<std::uintptr_t>(event)]);
    return lost;
}
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (isStuck || isHeld())
        return noted(cudaErrorNotReady);
    hostHasSeen(seenAtEvent[reinterpret_cast<std::uintptr_t>(event)]);
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
    pass(fakeGpu().launchSeconds, fakeGpu().clockHz);
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
    pass(double(limitNs) * 1e-9, fakeGpu().clockHz);
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
