// SPDX-License-Identifier: Apache-2.0
// The fake GPU's memory: what is allocated, pinned and copied. Copies move bytes, and the clock by the rate of their
// way.
#include "tests/kernels/cuda/fake_parts.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t flushBytes = 64U << 20; // arrays this large are the harness's own

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
    return std::ranges::any_of(pinned,
                               [byte](const auto& one) { return byte >= one.first && byte < one.first + one.second; });
}

cudaError_t take(void** at, std::uint64_t bytes, bool pooled)
{
    FakeGpu& gpu = fakeGpu();
    fake::waitFor("an allocation");
    if (fakeError() != cudaSuccess)
        return fakeError();
    if (pooled)
        fake::trimPool(); // it would be taken again
    if (gpu.usedBytes + bytes > gpu.memoryBytes)
        return fake::noted(cudaErrorMemoryAllocation);
    *at = std::malloc(bytes); // untouched pages cost nothing
    allocations[*at] = {bytes, pooled, fake::chosenDevice()};
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
    fake::forgetAccesses(at, gone.bytes);
    allocations.erase(at);
    std::free(at);
    return fakeError();
}

} // namespace

namespace fake {

void trimPool()
{
    fakeGpu().usedBytes -= std::exchange(poolFreed, 0);
}

void forgetMemory()
{
    for (const auto& [at, allocation] : allocations)
        std::free(at);
    allocations.clear();
    poolUsed = poolHigh = poolFreed = 0;
}

} // namespace fake

extern "C" {

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
        fake::waitFor("cudaFree");
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
    return fakeError();
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*)
{
    *pool = reinterpret_cast<cudaMemPool_t>(&poolHigh);
    return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t)
{
    fake::waitFor("cudaMemPoolDestroy");
    fake::trimPool();
    return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t)
{
    return fakeError();
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
    fake::waitFor("cudaHostAlloc");
    if (fakeGpu().pinnableBytes < bytes)
        return fake::noted(cudaErrorMemoryAllocation);
    *at = std::calloc(1, bytes);
    pinned[static_cast<char*>(*at)] = bytes;
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void* at)
{
    fake::waitFor("cudaFreeHost");
    const std::size_t bytes = at != nullptr ? pinned[static_cast<char*>(at)] : 0;
    pinned.erase(static_cast<char*>(at));
    fake::forgetAccesses(at, bytes);
    std::free(at);
    return cudaSuccess;
}
cudaError_t cudaHostRegister(void* at, std::size_t bytes, unsigned)
{
    fake::waitFor("cudaHostRegister");
    pinned[static_cast<char*>(at)] = bytes;
    return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* at)
{
    fake::waitFor("cudaHostUnregister");
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
    fake::waitFor("cudaMemcpy");
    if (fakeError() == cudaSuccess)
        std::memcpy(to, from, bytes);
    return fakeError();
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    FakeGpu& gpu = fakeGpu();
    const bool isPinned = isInPinned(to) || isInPinned(from);
    if (kind == cudaMemcpyDeviceToDevice || isPinned)
        fakeQueue("cudaMemcpyAsync", 0);
    else
        fake::waitFor("cudaMemcpyAsync of pageable memory");
    const double rate = isPinned           ? gpu.linkBytesPerSecond
        : kind == cudaMemcpyDeviceToDevice ? gpu.insideBytesPerSecond
                                           : gpu.pageableBytesPerSecond;
    if (rate > 0)
        fake::pass(gpu.linkLatency + double(bytes) / rate, gpu.clockHz);
    fakeReads(stream, from, bytes);
    fakeWrites(stream, to, bytes);
    fake::arriveFor(from, bytes); // what another copy has put there is the source of this one
    std::vector<char> moved(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
    if (isPinned && gpu.wrongCopyAt > 0 && --gpu.wrongCopyAt == 0 && bytes > 0)
        moved[bytes / 2] ^= 1;
    if (fakeError() != cudaSuccess)
        return fakeError();
    if (fake::isParallel() && kind == cudaMemcpyDeviceToHost && isPinned)
        fake::arrivesLater(stream, to, std::move(moved));
    else
        std::memcpy(to, moved.data(), bytes);
    return fakeError();
}
cudaError_t cudaMemcpyPeerAsync(void* to, int toDevice, const void* from, int fromDevice, std::size_t bytes,
                                cudaStream_t stream)
{
    FakeGpu& gpu = fakeGpu();
    if (gpu.devices < 2)
        return fake::noted(cudaErrorNotSupported);
    if (!liesOn(toDevice, to, bytes) || !liesOn(fromDevice, from, bytes))
        return fake::noted(cudaErrorInvalidValue);
    fakeQueue("cudaMemcpyPeerAsync", 0);
    fake::pass(gpu.peerLatency + double(bytes) / gpu.peerBytesPerSecond, gpu.clockHz);
    fakeReads(stream, from, bytes);
    fakeWrites(stream, to, bytes);
    if (fakeError() == cudaSuccess)
        std::memmove(to, from, bytes);
    if (gpu.wrongCopyAt > 0 && --gpu.wrongCopyAt == 0 && bytes > 0)
        static_cast<char*>(to)[bytes / 2] ^= 1;
    return fakeError();
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int)
{
    *can = fakeGpu().devices > 1 && fakeGpu().reachesPeers;
    return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned)
{
    return fake::noted(fakeGpu().peerError);
}
cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t)
{
    fakeLoad("cudaMemsetAsync", 0);
    fake::queued("cudaMemsetAsync");
    if (bytes >= flushBytes) // it is not read, so it is not written
        fake::setDirty(std::min(double(bytes), double(fakeGpu().l2Bytes)));
    else if (fakeError() == cudaSuccess)
        std::memset(at, value, bytes);
    return fakeError();
}

} // extern "C"
