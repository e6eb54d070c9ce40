// SPDX-License-Identifier: Apache-2.0
// One GPU, opened for one run: stream, events, the blocking kernel and the stamps, the flush buffer, and a
// private memory pool whose high water is the peak memory of the kernels alone. What the harness
// needs itself (flush, extra copies, tables) is allocated outside the pool and not counted.
#pragma once

#include "core/base/result.h"
#include "kernels/cuda/common/nvml.h"
#include "kernels/cuda/common/watchdog.h"
#include "kernels/cuda/kernels.h"
#include "kernels/measure/clock.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace memscape::cuda {

/// Device memory that frees itself.
using Buffer = std::unique_ptr<char, std::function<void(char*)>>;

constexpr double shareOfMemory =
    0.95; ///< what a run takes at most of what is free; the rest is for the libraries' code

class GpuSession
{
public:
    /// `clock` is the host's. Errors: device.missing, run.sticky, run.hung, run.failed.
    static Result<std::unique_ptr<GpuSession>> open(
        int ordinal, std::shared_ptr<const Clock> clock = std::make_shared<SteadyClock>());
    ~GpuSession();
    GpuSession(const GpuSession&) = delete;
    GpuSession& operator=(const GpuSession&) = delete;

    const Clock& clock() const { return *m_clock; }
    int multiprocessors() const { return m_multiprocessors; }
    std::uint64_t l2Bytes() const { return m_l2Bytes; }
    std::uint64_t freeBytes() const; ///< 0 when the device does not answer
    /// The user forces sizes that are predicted not to fit (backend.h).
    bool isForced() const { return m_isForced; }
    void setForced(bool isForced) { m_isForced = isForced; }
    cudaStream_t stream() const { return m_stream; }
    const std::string& pciBusId() const { return m_pciBusId; }

    /// Counted: what a kernel works on. Errors: run.memory with the size asked for.
    Result<Buffer> allocate(std::uint64_t bytes);
    /// Not counted: what only the harness needs.
    Result<Buffer> allocateExtra(std::uint64_t bytes);
    void resetPeak();
    double peakBytes() const; ///< since resetPeak(), of counted memory

    /// Fills `bytes` (rounded down to words) with mixed data.
    Result<void> fill(char* data, std::uint64_t bytes, std::uint64_t salt = 0);
    /// Fills the caches with what is neither needed nor written; allocates it on first use.
    Result<void> flush();
    /// Errors: run.hung after the deadline (watchdog.h), and those of what was queued.
    Result<void> synchronize(std::string_view doing, std::string_view what = {});
    /// To and from the host, finished when they return. `doing`: what the GPU is at. They wait first: a
    /// copy of pageable memory would, and without an end.
    Result<void> upload(void* to, const void* from, std::size_t bytes, const std::string& doing);
    Result<void> download(void* to, const void* from, std::size_t bytes, const std::string& doing);
    /// Waits before something is taken apart, whatever the outcome.
    void settle() { static_cast<void>(waitFor(m_stream)); }
    /// Keeps the multiprocessors busy for `seconds`; the SM clock at the end, NaN when unknown.
    Result<double> warmClock(double seconds);

    // For sampler.cpp.
    StreamBlock* block() { return m_block; }
    StreamBlock* deviceBlock() { return m_deviceBlock; }
    Stamp* stamps() { return m_stamps; }
    Stamp* deviceStamps() { return m_deviceStamps; }
    cudaEvent_t begin() { return m_begin; }
    cudaEvent_t end() { return m_end; }

private:
    GpuSession() = default;
    Result<void> initialize(int ordinal);
    cudaError_t makePool(int ordinal);
    Result<void> loadHarness();
    Result<void> copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, const std::string& doing);

    std::shared_ptr<const Clock> m_clock;
    int m_multiprocessors = 1;
    std::uint64_t m_l2Bytes = 0;
    std::string m_pciBusId;
    cudaStream_t m_stream = nullptr;
    cudaEvent_t m_begin = nullptr, m_end = nullptr;
    cudaMemPool_t m_pool = nullptr; ///< null where the device has none: then sizes are added up
    std::shared_ptr<std::uint64_t> m_used = std::make_shared<std::uint64_t>(0);
    std::shared_ptr<std::uint64_t> m_highWater = std::make_shared<std::uint64_t>(0);
    StreamBlock *m_block = nullptr, *m_deviceBlock = nullptr;
    Stamp *m_stamps = nullptr, *m_deviceStamps = nullptr;
    Buffer m_flush; ///< only ever read after it was filled
    std::uint64_t m_flushBytes = 0;
    bool m_isForced = false;
};

} // namespace memscape::cuda
