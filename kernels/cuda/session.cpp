// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/session.h"

#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/pacing.h"

#include "core/base/number.h"

#include <algorithm>
#include <limits>
#include <new>

namespace memscape::cuda {

namespace {

/// The first failure of a row of calls.
class Calls
{
public:
    Calls& operator<<(cudaError_t error)
    {
        if (m_error == cudaSuccess)
            m_error = error;
        return *this;
    }
    cudaError_t error() const { return m_error; }

private:
    cudaError_t m_error = cudaSuccess;
};

// An allocation may wait for what is queued, and without an end.
constexpr const char* beforeAllocating = "finishing what was queued before an allocation";

/// cudaFree waits for the whole GPU: never for one that is hung.
void freeWhenIdle(char* memory, cudaStream_t stream)
{
    static_cast<void>(waitFor(stream));
    if (!isHung())
        cudaFree(memory);
}

int attribute(Calls& calls, cudaDeviceAttr which, int ordinal)
{
    int value = 0;
    calls << cudaDeviceGetAttribute(&value, which, ordinal);
    return value;
}

} // namespace

Result<std::unique_ptr<GpuSession>> GpuSession::open(int ordinal, std::shared_ptr<const Clock> clock)
{
    std::unique_ptr<GpuSession> session(new GpuSession);
    session->m_clock = std::move(clock);
    MEMSCAPE_CHECK(session->initialize(ordinal));
    return session;
}

Result<void> GpuSession::initialize(int ordinal)
{
    MEMSCAPE_CHECK(cudaResult(cudaSetDevice(ordinal), "opening the GPU"));
    Calls calls;
    m_multiprocessors = attribute(calls, cudaDevAttrMultiProcessorCount, ordinal);
    m_l2Bytes = static_cast<std::uint64_t>(attribute(calls, cudaDevAttrL2CacheSize, ordinal));
    char bus[32] = {};
    calls << cudaDeviceGetPCIBusId(bus, sizeof bus, ordinal);
    m_pciBusId = bus;
    calls << cudaStreamCreateWithFlags(&m_stream, cudaStreamNonBlocking) << cudaEventCreate(&m_begin)
          << cudaEventCreate(&m_end);
    MEMSCAPE_CHECK(cudaResult(calls.error(), "opening the GPU"));

    void *block = nullptr, *stamps = nullptr;
    calls << cudaHostAlloc(&block, sizeof(StreamBlock), cudaHostAllocMapped)
          << cudaHostAlloc(&stamps, 2 * sizeof(Stamp), cudaHostAllocMapped);
    MEMSCAPE_CHECK(cudaResult(calls.error(), "allocating pinned memory"));
    m_block = new (block) StreamBlock;
    m_stamps = new (stamps) Stamp[2];
    void *deviceBlock = nullptr, *deviceStamps = nullptr;
    calls << cudaHostGetDevicePointer(&deviceBlock, block, 0) << cudaHostGetDevicePointer(&deviceStamps, stamps, 0)
          << makePool(ordinal) << preferL1();
    m_deviceBlock = static_cast<StreamBlock*>(deviceBlock);
    m_deviceStamps = static_cast<Stamp*>(deviceStamps);
    MEMSCAPE_CHECK(cudaResult(calls.error(), "preparing the GPU"));
    return loadHarness();
}

/// CUDA loads a kernel at its first launch, which may wait for all that is queued. What surrounds a
/// timed kernel must be loaded before the stream is blocked for the first time.
Result<void> GpuSession::loadHarness()
{
    m_block->open = 1;
    Calls calls;
    calls << launchBlockingKernel(m_deviceBlock, 0, m_stream)
          << launchStamp(m_deviceStamps, m_multiprocessors, m_stream) << cudaEventRecord(m_begin, m_stream)
          << launchEmpty(m_stream) << cudaEventRecord(m_end, m_stream);
    MEMSCAPE_CHECK(cudaResult(calls.error(), "loading the small kernels"));
    return synchronize("loading the small kernels");
}

cudaError_t GpuSession::makePool(int ordinal)
{
    int supported = 0;
    if (!succeeded(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, ordinal)) || supported == 0)
        return cudaSuccess;
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = ordinal;
    return cudaMemPoolCreate(&m_pool, &properties);
}

GpuSession::~GpuSession()
{
    m_flush.reset();
    if (m_stream != nullptr)
        settle();
    if (isHung())
        return; // all of it would wait for the GPU
    if (m_pool != nullptr)
        cudaMemPoolDestroy(m_pool);
    if (m_begin != nullptr)
        cudaEventDestroy(m_begin);
    if (m_end != nullptr)
        cudaEventDestroy(m_end);
    if (m_stream != nullptr)
        cudaStreamDestroy(m_stream);
    cudaFreeHost(m_block);
    cudaFreeHost(m_stamps);
}

std::uint64_t GpuSession::freeBytes() const
{
    std::size_t free = 0, total = 0;
    return succeeded(cudaMemGetInfo(&free, &total)) ? free : 0;
}

Result<Buffer> GpuSession::allocate(std::uint64_t bytes)
{
    const std::string doing = "allocating " + quantityText(double(bytes), Unit::Byte) + " on the GPU";
    MEMSCAPE_CHECK(synchronize(beforeAllocating));
    void* data = nullptr;
    if (m_pool != nullptr) {
        MEMSCAPE_CHECK(cudaResult(cudaMallocFromPoolAsync(&data, bytes, m_pool, m_stream), doing));
        return Buffer(static_cast<char*>(data), [stream = m_stream](char* memory) {
            if (!isHung())
                cudaFreeAsync(memory, stream);
        });
    }
    MEMSCAPE_CHECK(cudaResult(cudaMalloc(&data, bytes), doing));
    *m_used += bytes;
    *m_highWater = std::max(*m_highWater, *m_used);
    return Buffer(static_cast<char*>(data), [used = m_used, bytes, stream = m_stream](char* memory) {
        *used -= bytes;
        freeWhenIdle(memory, stream);
    });
}

Result<Buffer> GpuSession::allocateExtra(std::uint64_t bytes)
{
    const std::string doing = "allocating " + quantityText(double(bytes), Unit::Byte) + " for the measuring harness";
    MEMSCAPE_CHECK(synchronize(beforeAllocating));
    void* data = nullptr;
    MEMSCAPE_CHECK(cudaResult(cudaMalloc(&data, bytes), doing));
    return Buffer(static_cast<char*>(data), [stream = m_stream](char* memory) { freeWhenIdle(memory, stream); });
}

void GpuSession::resetPeak()
{
    std::uint64_t zero = 0;
    if (m_pool != nullptr)
        cudaMemPoolSetAttribute(m_pool, cudaMemPoolAttrUsedMemHigh, &zero);
    else
        *m_highWater = *m_used;
}

double GpuSession::peakBytes() const
{
    if (m_pool == nullptr)
        return double(*m_highWater);
    // A reset high water does not promise to hold what was in use already.
    std::uint64_t high = 0, current = 0;
    if (!succeeded(cudaMemPoolGetAttribute(m_pool, cudaMemPoolAttrUsedMemHigh, &high))
        || !succeeded(cudaMemPoolGetAttribute(m_pool, cudaMemPoolAttrUsedMemCurrent, &current)))
        return std::numeric_limits<double>::quiet_NaN();
    return double(std::max(high, current));
}

Result<void> GpuSession::fill(char* data, std::uint64_t bytes, std::uint64_t salt)
{
    return cudaResult(launchFill(reinterpret_cast<std::uint32_t*>(data), bytes / 4, salt, m_stream),
                      "filling an array");
}

Result<void> GpuSession::flush()
{
    if (!m_flush) {
        m_flushBytes = flushBytes(m_l2Bytes, freeBytes());
        MEMSCAPE_SET(m_flush, allocateExtra(std::max<std::uint64_t>(m_flushBytes, 16)));
        MEMSCAPE_CHECK(fill(m_flush.get(), m_flushBytes));
    }
    StreamLaunch launch;
    launch.first = m_flush.get();
    launch.bytes = m_flushBytes;
    return cudaResult(launchStream(launch, m_multiprocessors, m_stream), "flushing the caches");
}

Result<void> GpuSession::synchronize(std::string_view doing, std::string_view what)
{
    return cudaResult(waitFor(m_stream), doing, what);
}

Result<void> GpuSession::copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                              const std::string& doing)
{
    MEMSCAPE_CHECK(synchronize(doing));
    MEMSCAPE_CHECK(cudaResult(cudaMemcpyAsync(to, from, bytes, kind, m_stream), doing));
    return synchronize(doing);
}

Result<void> GpuSession::upload(void* to, const void* from, std::size_t bytes, const std::string& doing)
{
    return copy(to, from, bytes, cudaMemcpyHostToDevice, doing);
}

Result<void> GpuSession::download(void* to, const void* from, std::size_t bytes, const std::string& doing)
{
    return copy(to, from, bytes, cudaMemcpyDeviceToHost, doing);
}

Result<double> GpuSession::warmClock(double seconds)
{
    MEMSCAPE_TRY(sink, allocateExtra(sizeof(float)));
    // In pieces, so that no kernel holds a display for long.
    constexpr double piece = 0.05;
    for (double done = 0; done < seconds; done += piece) {
        m_stamps[0] = m_stamps[1] = Stamp{};
        Calls calls;
        calls << launchStamp(m_deviceStamps, m_multiprocessors, m_stream)
              << launchSpin(static_cast<std::uint64_t>(piece * 1e9), m_multiprocessors,
                            reinterpret_cast<float*>(sink.get()), m_stream)
              << launchStamp(m_deviceStamps + 1, m_multiprocessors, m_stream);
        MEMSCAPE_CHECK(cudaResult(calls.error(), "leaving the idle clock"));
        MEMSCAPE_CHECK(synchronize("leaving the idle clock"));
    }
    return clockBetween(m_stamps[0].nanoseconds, m_stamps[0].clocks, m_stamps[1].nanoseconds, m_stamps[1].clocks);
}

} // namespace memscape::cuda
