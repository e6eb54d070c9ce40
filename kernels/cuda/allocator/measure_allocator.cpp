// SPDX-License-Identifier: Apache-2.0
// `allocator` on a GPU: the requests played for real, with three ways to get memory:
//
//   cudaMalloc         every block from the driver, and back to it by cudaFree, which waits for the whole GPU
//   cudaMallocAsync    a stream-ordered pool that keeps what is freed (release threshold without a limit, as PyTorch
//                      sets it)
//   a pool             the policy of the prediction; its segments are cudaMalloc's
//
// Reserved is what the driver gave: of the first the change of free memory, of the second what the pool holds, of the
// third the sum of its segments. No kernel touches the blocks: a GPU's memory has its pages when it is allocated.
//
// Left out: expandable segments (the driver's virtual memory functions), heaps in one arena, other streams.
#include "kernels/cuda/common/clock_watch.h"
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/watchdog.h"
#include "kernels/cuda/experiments.h"
#include "kernels/programs/allocator/allocator_run.h"

#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

/// Never for a GPU that is hung: it would wait for it.
void freeNow(void* memory)
{
    if (memory != nullptr && !isHung())
        cudaFree(memory);
}

/// Blocks that are alive may not overlap.
class Overlaps
{
public:
    void made(std::uint64_t begin, std::int64_t bytes)
    {
        const auto behind = m_alive.lower_bound(begin);
        if (behind != m_alive.end() && behind->first < begin + std::uint64_t(bytes))
            m_found = true;
        if (behind != m_alive.begin() && std::prev(behind)->second > begin)
            m_found = true;
        m_alive[begin] = begin + std::uint64_t(bytes);
    }
    void freed(std::uint64_t begin) { m_alive.erase(begin); }
    std::string text() const { return m_found ? "two blocks that are alive overlap" : ""; }

private:
    std::map<std::uint64_t, std::uint64_t> m_alive;
    bool m_found = false;
};

std::uint64_t numberOf(const void* at)
{
    return reinterpret_cast<std::uintptr_t>(at);
}

/// What all of them count; blocks that another stream uses are freed when the streams are synchronized.
class GpuAllocator : public RealAllocator
{
public:
    GpuAllocator(const AllocatorCase& asked, GpuSession& session, bool checks)
        : m_session(session)
        , m_places(asked.trace->blocks.size())
        , m_isRecorded(asked.trace->blocks.size())
        , m_checks(checks)
    { }

    bool play(const Request& request, const RequestedBlock& block) override
    {
        switch (request.kind) {
        case RequestKind::Allocate:
            m_places[request.block] = take(block.bytes);
            if (m_places[request.block] == nullptr)
                return false;
            m_requested += block.bytes;
            if (m_checks)
                m_overlaps.made(numberOf(m_places[request.block]), block.bytes);
            return true;
        case RequestKind::Free:
            m_requested -= block.bytes;
            if (m_isRecorded[request.block])
                m_pending.push_back(request.block);
            else
                release(request.block);
            return true;
        case RequestKind::Record: m_isRecorded[request.block] = true; return true;
        case RequestKind::Synchronize:
        case RequestKind::EmptyCache:
            static_cast<void>(waitFor(m_session.stream()));
            for (const BlockId pending : completedBy(request, m_pending))
                release(pending);
            if (request.kind == RequestKind::EmptyCache)
                trim();
            return true;
        }
        return true;
    }
    double driverCalls() const override { return double(m_calls); }
    void settle() override { static_cast<void>(waitFor(m_session.stream())); }
    std::string wrong() const override { return m_overlaps.text(); }

protected:
    virtual void* take(std::int64_t bytes) = 0;
    virtual void giveBack(void* place) = 0;
    virtual void trim() { }
    void releaseAll()
    {
        for (void*& place : m_places)
            if (place != nullptr)
                giveBack(std::exchange(place, nullptr));
    }

    GpuSession& m_session;
    std::int64_t m_requested = 0, m_calls = 0;

private:
    void release(BlockId block)
    {
        if (m_checks)
            m_overlaps.freed(numberOf(m_places[block]));
        giveBack(std::exchange(m_places[block], nullptr));
    }

    std::vector<void*> m_places;
    std::vector<bool> m_isRecorded;
    std::vector<BlockId> m_pending;
    Overlaps m_overlaps;
    bool m_checks;
};

class DriverAllocator final : public GpuAllocator
{
public:
    DriverAllocator(const AllocatorCase& asked, GpuSession& session, bool checks)
        : GpuAllocator(asked, session, checks)
        , m_freeBefore(session.freeBytes())
    { }
    ~DriverAllocator() override { releaseAll(); }
    PolicyCounts counts() override
    {
        const std::uint64_t free = m_session.freeBytes();
        const std::int64_t taken = std::int64_t(m_freeBefore) - std::int64_t(free);
        return {m_requested, m_requested, std::max(m_requested, taken), m_alive};
    }

private:
    void* take(std::int64_t bytes) override
    {
        void* data = nullptr;
        ++m_calls;
        ++m_alive;
        return succeeded(cudaMalloc(&data, std::size_t(bytes))) ? data : nullptr;
    }
    void giveBack(void* place) override
    {
        ++m_calls;
        --m_alive;
        freeNow(place);
    }

    std::uint64_t m_freeBefore;
    std::int64_t m_alive = 0;
};

class AsyncAllocator final : public GpuAllocator
{
public:
    AsyncAllocator(const AllocatorCase& asked, GpuSession& session, cudaMemPool_t pool, bool checks)
        : GpuAllocator(asked, session, checks)
        , m_pool(pool)
    { }
    ~AsyncAllocator() override
    {
        releaseAll();
        settle();
        if (!isHung())
            cudaMemPoolDestroy(m_pool);
    }
    PolicyCounts counts() override
    {
        return {m_requested, attribute(cudaMemPoolAttrUsedMemCurrent), attribute(cudaMemPoolAttrReservedMemCurrent), 1};
    }

private:
    std::int64_t attribute(cudaMemPoolAttr which) const
    {
        std::uint64_t bytes = 0;
        static_cast<void>(succeeded(cudaMemPoolGetAttribute(m_pool, which, &bytes)));
        return std::int64_t(bytes);
    }
    void* take(std::int64_t bytes) override
    {
        void* data = nullptr;
        ++m_calls;
        const cudaError_t error = cudaMallocFromPoolAsync(&data, std::size_t(bytes), m_pool, m_session.stream());
        return succeeded(error) ? data : nullptr;
    }
    void giveBack(void* place) override
    {
        ++m_calls;
        if (!isHung())
            cudaFreeAsync(place, m_session.stream());
    }
    void trim() override
    {
        if (!isHung())
            static_cast<void>(succeeded(cudaMemPoolTrimTo(m_pool, 0)));
    }

    cudaMemPool_t m_pool;
};

/// A policy whose segments are cudaMalloc's.
class SegmentPool final : public RealAllocator
{
public:
    SegmentPool(const AllocatorCase& asked, std::unique_ptr<MemoryPolicy> policy, GpuSession& session, bool checks)
        : m_asked(asked)
        , m_policy(std::move(policy))
        , m_session(session)
        , m_places(asked.trace->blocks.size())
        , m_checks(checks)
    { }
    ~SegmentPool() override
    {
        for (const auto& [address, segment] : m_segments)
            freeNow(segment);
    }

    bool play(const Request& request, const RequestedBlock& block) override
    {
        if (request.kind == RequestKind::Free && m_checks)
            m_overlaps.freed(m_places[request.block]);
        const PolicyAct act = m_policy->play(request, block);
        if (act.kind == ActKind::Refused)
            return false;
        if (act.returned > 0)
            giveBackGone();
        if (act.taken > 0 && !take(act))
            return false;
        if (request.kind == RequestKind::Allocate) {
            const auto segment = std::prev(m_segments.upper_bound(act.address));
            m_places[request.block] = numberOf(segment->second) + (act.address - segment->first);
            if (m_checks)
                m_overlaps.made(m_places[request.block], block.bytes);
        }
        return true;
    }
    PolicyCounts counts() override { return m_policy->counts(); }
    double driverCalls() const override { return double(m_calls); }
    double retries() const override { return double(m_policy->totals().retries); }
    void settle() override { static_cast<void>(waitFor(m_session.stream())); }
    std::string wrong() const override { return m_overlaps.text(); }

private:
    bool take(const PolicyAct& act)
    {
        void* data = nullptr;
        ++m_calls;
        if (!succeeded(cudaMalloc(&data, std::size_t(act.taken))))
            return false;
        const std::uint64_t first = m_asked.setting.isPlanned() ? m_policy->segments().front().address : act.address;
        m_segments[first] = data;
        return true;
    }
    void giveBackGone()
    {
        std::map<std::uint64_t, void*> kept;
        for (const PolicySegment& segment : m_policy->segments())
            if (auto found = m_segments.extract(segment.address))
                kept.insert(std::move(found));
        for (const auto& [address, segment] : m_segments) {
            ++m_calls;
            freeNow(segment);
        }
        m_segments = std::move(kept);
    }

    const AllocatorCase& m_asked;
    std::unique_ptr<MemoryPolicy> m_policy;
    GpuSession& m_session;
    std::map<std::uint64_t, void*> m_segments; ///< by the policy's address
    std::vector<std::uint64_t> m_places;
    Overlaps m_overlaps;
    std::int64_t m_calls = 0;
    bool m_checks;
};

Result<cudaMemPool_t> keepingPool()
{
    int ordinal = 0, supported = 0;
    MEMSCAPE_CHECK(cudaResult(cudaGetDevice(&ordinal), "asking for the GPU"));
    if (!succeeded(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, ordinal)) || supported == 0)
        return fail("run.skipped", "this GPU or its driver has no cudaMallocAsync",
                    "choose setting=cudaMalloc, or a driver from CUDA 11.2 on", "setting");
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = ordinal;
    cudaMemPool_t pool = nullptr;
    MEMSCAPE_CHECK(cudaResult(cudaMemPoolCreate(&pool, &properties), "making a memory pool"));
    std::uint64_t everything = std::numeric_limits<std::uint64_t>::max();
    static_cast<void>(succeeded(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &everything)));
    return pool;
}

/// Whether the policy's segments are whole allocations of the driver.
Result<void> checkSetting(const PolicySetting& setting)
{
    const bool isArena = setting.kind == PolicyKind::FirstFit || setting.kind == PolicyKind::BestFit
        || setting.kind == PolicyKind::Malloc;
    if (!isArena && !setting.options.expandableSegments)
        return {};
    return fail(
        "run.skipped", fmt::format("{} is not measured on a GPU", setting.label),
        isArena ? "it needs memory that grows in place: measure it on the processor, or choose another setting"
                : "it needs the driver's virtual memory functions: measure PyTorch itself, or look at the prediction",
        "setting");
}

Result<std::unique_ptr<RealAllocator>> openAllocator(GpuSession& session, const AllocatorCase& asked, bool checks)
{
    MEMSCAPE_CHECK(checkSetting(asked.setting));
    if (asked.setting.kind == PolicyKind::CudaMalloc)
        return std::make_unique<DriverAllocator>(asked, session, checks);
    if (asked.setting.kind == PolicyKind::CudaAsync) {
        MEMSCAPE_TRY(pool, keepingPool());
        return std::make_unique<AsyncAllocator>(asked, session, pool, checks);
    }
    MEMSCAPE_TRY(policy, makePolicy(asked.setting, *asked.trace));
    return std::make_unique<SegmentPool>(asked, std::move(policy), session, checks);
}

} // namespace

Result<MeasuredRun> measureAllocator(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    // Asked before the GPU is warmed up: most mistakes are in the parameters.
    MEMSCAPE_TRY(asked, allocatorCase(plan.device.device, plan.parameters));
    MEMSCAPE_CHECK(checkSetting(asked.setting));
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    ClockWatch watch(session, runStart.referenceClock);
    const Clock& clock = session.clock();
    const AllocatorMachine machine{
        [&](const AllocatorCase& one, bool checks) { return openAllocator(session, one, checks); },
        {},
        [&](std::size_t) {
            watch.read();
            return watch.seen();
        },
        [&]() -> Result<void> {
            if (sink.cancelled())
                return fail("run.cancelled", "the measurement was stopped");
            return session.synchronize("playing the requests");
        },
        StoppingOptions(),
        clock,
        sink,
        {{"between_requests", "nothing: requests follow each other, no kernel runs"},
         {"driver", "cudaMalloc and cudaFree, or a stream-ordered pool"}}};
    AllocatorMeasurer measurer(plan.device.device, machine);
    return runSweep(session, runStart, plan, measurer, sink);
}

} // namespace memscape::cuda
