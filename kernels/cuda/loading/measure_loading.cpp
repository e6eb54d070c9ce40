// SPDX-License-Identifier: Apache-2.0
// `loading` onto a GPU: the file is read and converted by the host (kernels/host/loading), and a thread of its own
// copies each chunk from pinned or pageable memory while the next one is read. A chunk has arrived when its copy has
// been waited for. First and last chunk are read back and compared, every byte.
//
// Left out: GPUDirect Storage, several GPUs at once, conversions on the GPU. There is no kernel to check.
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/gpu_measurer.h"
#include "kernels/cuda/common/host_memory.h"
#include "kernels/cuda/experiments.h"
#include "kernels/host/loading/loading.h"
#include "kernels/host/loading/loading_kernels.h"

#include <map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

/// The GPU's memory behind the host's.
class GpuSink final : public host::LoadingSink
{
public:
    GpuSink(GpuSession& session, bool isPinned)
        : m_session(session)
        , m_isPinned(isPinned)
    { }

    Result<void> open(std::uint64_t bytes)
    {
        MEMSCAPE_CHECK(cudaResult(cudaGetDevice(&m_ordinal), "asking for the GPU"));
        MEMSCAPE_SET(m_target, m_session.allocate(bytes));
        return {};
    }
    Result<std::byte*> stage(std::uint64_t bytes) override
    {
        MEMSCAPE_TRY(memory, takeHostMemory(m_session, m_isPinned, bytes));
        m_staged.push_back(std::move(memory));
        m_stagedBytes += bytes;
        return reinterpret_cast<std::byte*>(m_staged.back().get());
    }
    Result<void> copy(const std::byte* from, std::uint64_t offset, std::uint64_t bytes) override
    {
        MEMSCAPE_CHECK(cudaResult(cudaSetDevice(m_ordinal), "choosing the GPU")); // this thread may be new to it
        MEMSCAPE_CHECK(cudaResult(
            cudaMemcpyAsync(m_target.get() + offset, from, bytes, cudaMemcpyHostToDevice, m_session.stream()),
            "copying a chunk"));
        return m_session.synchronize("copying a chunk");
    }
    Result<void> fetch(std::byte* to, std::uint64_t offset, std::uint64_t bytes) override
    {
        return m_session.download(to, m_target.get() + offset, bytes, "reading a chunk back");
    }
    double stagedBytes() const { return double(m_stagedBytes); }

private:
    GpuSession& m_session;
    bool m_isPinned;
    int m_ordinal = 0;
    Buffer m_target;
    std::vector<HostMemory> m_staged;
    std::uint64_t m_stagedBytes = 0;
};

struct LoadingPoint : NamedSamples
{
    LoadingCase asked;
    host::LoadingSeen seen;
    double hostMemory = nan;
};

class LoadingMeasurer final : public GpuMeasurer<LoadingPoint>
{
public:
    LoadingMeasurer(GpuSession& session, const SweepPlan& plan, const RunStart& runStart, RunSink& sink)
        : GpuMeasurer(session, plan, runStart)
        , m_hostSession(m_host, sink)
    { }

    Result<void> visit(std::size_t index, const Parameters& at, int pass) override
    {
        LoadingPoint& point = m_points[index];
        MEMSCAPE_TRY(asked, loadingCase(m_plan.device.device, at));
        MEMSCAPE_CHECK(host::checkMeasurable(asked));
        if (asked.gpus > 1)
            return fail("run.skipped", "one GPU is loaded at a time", "choose gpus=1, or look at the prediction",
                        "gpus");
        MEMSCAPE_TRY(file, m_files.fileFor(m_hostSession, asked));
        m_session.resetPeak();
        m_hostSession.memory().resetHighWater();
        const std::int64_t before = m_hostSession.memory().used();
        GpuSink gpu(m_session, asked.isPinned);
        if (asked.goesToGpu)
            MEMSCAPE_CHECK(gpu.open(std::uint64_t(asked.convertedBytes(double(asked.bytes))) + 64));
        host::LoadingRun run(m_hostSession, *file, asked, asked.goesToGpu ? &gpu : nullptr);
        MEMSCAPE_CHECK(run.open());
        point.asked = asked;
        point.hostMemory = double(m_hostSession.memory().highWater() - before) + gpu.stagedBytes();
        MEMSCAPE_CHECK(run.check());
        MEMSCAPE_CHECK(sample(run, "read_time", {true, false, false}, pass, point));
        if (asked.hasConversion())
            MEMSCAPE_CHECK(sample(run, "convert_time", {false, true, false}, pass, point));
        if (asked.goesToGpu)
            MEMSCAPE_CHECK(sample(run, "copy_time", {false, false, true}, pass, point));
        MEMSCAPE_CHECK(sample(run, "time", {}, pass, point));
        point.seen = run.seen();
        return m_session.synchronize("freeing the buffers");
    }

    Point point(std::size_t index) const override
    {
        const LoadingPoint& measured = m_points[index];
        Point point;
        const auto time = measured.samples.find("time");
        if (time == measured.samples.end())
            return point;
        point.detail = time->second.detail();
        std::map<std::string, Summary> summaries;
        for (const auto& [key, samples] : measured.samples)
            summaries[key] = samples.summary();
        point.figures =
            loadingFigures(measured.asked, host::measuredLoading(summaries, measured.seen, measured.hostMemory));
        return point;
    }

    Json method() const override
    {
        return {{"time", "from the first read to the last copy, on the host's clock"},
                {"caches", "pages dropped with posix_fadvise before each cold sample, counted with mincore"}};
    }

private:
    Result<void> sample(host::LoadingRun& run, const char* key, const host::LanesUsed& used, int pass,
                        LoadingPoint& point)
    {
        PointSamples& samples = point.samples[key];
        MEMSCAPE_TRY(once, run.sample(used));
        const Clock& clock = m_session.clock();
        StoppingRule rule(host::loadingOptions(StoppingOptions().perPass(sweepPasses), once), clock);
        while (!rule.finished()) {
            MEMSCAPE_TRY(seconds, run.sample(used));
            rule.add(seconds);
        }
        samples.stop = rule.state();
        samples.seconds.add(pass, rule.samples());
        samples.peak = std::max(samples.peak, m_session.peakBytes());
        return {};
    }

    const Device m_host; ///< nothing of it is asked
    host::HostSession m_hostSession;
    host::LoadingFiles m_files;
};

} // namespace

Result<MeasuredRun> measureLoading(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    MEMSCAPE_CHECK(host::checkLoadingConversions().result("loading"));
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    LoadingMeasurer measurer(session, plan, runStart, sink);
    return runSweep(session, runStart, plan, measurer, sink);
}

} // namespace memscape::cuda
