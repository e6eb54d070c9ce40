// SPDX-License-Identifier: Apache-2.0
// `bank-conflicts` on a GPU. One block of 32 warps asks one multiprocessor's banks again and again; cycles
// per request are the multiprocessor's own clock from the first request to the last, divided by all of
// them. Then one warp whose every answer is the next address: the latency of a lone request. Wavefronts
// are counted over the addresses (there are no hardware counters here).
//
// Left out: the other multiprocessors, which have banks of their own; warm-up of caches, which shared
// memory does not have.
#include "kernels/cuda/experiments.h"

#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/gpu_measurer.h"

#include "core/experiments/bank-conflicts/bank_conflicts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

constexpr int throughputWarps = 32;
constexpr double launchWavefronts = 200'000; ///< about 0.1 ms: the global timer ticks every microsecond
constexpr std::uint32_t latencyTurns = 256;
constexpr int latencyLaunches = 4; ///< of one pass

Result<BankWork> workOf(const BankCase& request)
{
    if (request.elements.size() > std::size_t(lanesPerWarp))
        return fail("run.skipped", fmt::format("a warp of this GPU has {} lanes", lanesPerWarp), "choose fewer lanes");
    BankWork work;
    work.tile = request.tile;
    work.elements = request.rows * request.tile.columns;
    work.lanes = static_cast<std::uint32_t>(request.elements.size());
    std::copy(request.elements.begin(), request.elements.end(), work.asked);
    return work;
}

/// What one launch took, of the multiprocessor that ran it.
struct BankSample
{
    double seconds = 0, cycles = 0;
};

struct BankPoint
{
    BankCase request;
    BankAccess access;
    PointSamples samples;          ///< s of a launch
    std::vector<double> cycles;    ///< of a request
    std::vector<double> latencies; ///< cycles
    double requests = 0;           ///< of a launch

    std::vector<SampledThing> sampled() const { return {{"time", samples}}; }
};

class BankMeasurer final : public GpuMeasurer<BankPoint>
{
public:
    BankMeasurer(GpuSession& session, const SweepPlan& plan, const RunStart& runStart, RunSink& sink,
                 std::uint64_t sharedLimit)
        : GpuMeasurer(session, plan, runStart)
        , m_sink(sink)
        , m_sharedLimit(sharedLimit)
    { }

    Result<void> visit(std::size_t index, const Parameters& at, int pass) override
    {
        BankPoint& point = m_points[index];
        MEMSCAPE_TRY(request, bankCase(m_plan.device.device, at));
        MEMSCAPE_SET(point.access, bankAccess(m_plan.device.device, request));
        MEMSCAPE_TRY(work, workOf(request));
        if (m_sharedLimit > 0 && request.tileBytes() > m_sharedLimit)
            return fail("run.skipped",
                        fmt::format("a block of this GPU holds {} of shared memory, the tile takes {}",
                                    quantityText(double(m_sharedLimit), Unit::Byte),
                                    quantityText(request.tileBytes(), Unit::Byte)),
                        "choose a smaller stride, row length or width");
        if (point.requests == 0)
            MEMSCAPE_CHECK(check(request, work));
        point.request = std::move(request);
        BankLaunch launch;
        launch.work = work;
        launch.isWrite = point.request.isWrite;
        launch.warps = throughputWarps;
        const double perTurn = double(point.access.wavefronts) * throughputWarps * bankRequestsPerTurn;
        launch.turns = static_cast<std::uint32_t>(std::clamp(launchWavefronts / perTurn, 4.0, 4096.0));
        MEMSCAPE_CHECK(samplesOf(point, launch, pass));
        return hasLatency(point.request) ? latenciesOf(point, launch) : Result<void>();
    }

    Point point(std::size_t index) const override
    {
        const BankPoint& measured = m_points[index];
        Point point;
        point.detail = measured.samples.detail();
        point.detail["requests_per_launch"] = measured.requests;
        point.detail["cycles"] = measured.cycles;
        point.detail["latency_cycles"] = measured.latencies;
        if (!measured.samples.summary().empty())
            point.figures = figuresOf(measured);
        return point;
    }

    Json method() const override { return {{"kernel", "banks v1, latency v2"}, {"warps", throughputWarps}}; }

private:
    /// The kernels against the host, before anything is timed.
    static Result<void> check(const BankCase& request, const BankWork& work)
    {
        std::vector<KernelCheck> checks{checkBanks(work, request.isWrite)};
        if (hasLatency(request))
            checks.push_back(checkBankLatency(work));
        for (const KernelCheck& check : checks)
            MEMSCAPE_CHECK(passedCheck(check));
        return {};
    }

    Result<BankSample> take(BankLaunch& launch, bool isLatency)
    {
        if (!m_result)
            MEMSCAPE_SET(m_result, m_session.allocateExtra(sizeof(BankResult) + sizeof(std::uint32_t)));
        auto* device = reinterpret_cast<BankResult*>(m_result.get());
        BankResult result;
        cudaStream_t stream = m_session.stream();
        MEMSCAPE_CHECK(m_session.upload(device, &result, sizeof result, "preparing the request"));
        launch.result = device;
        launch.sum = isLatency ? reinterpret_cast<std::uint32_t*>(device + 1) : nullptr;
        MEMSCAPE_CHECK(cudaResult(isLatency ? launchBankLatency(launch, stream) : launchBanks(launch, stream),
                                  "starting the requests"));
        MEMSCAPE_CHECK(m_session.download(&result, device, sizeof result, "running the requests"));
        if (result.end <= result.begin || result.endNs <= result.beginNs)
            return fail("run.failed", "the multiprocessor's clock stood still", "measure again");
        return BankSample{double(result.endNs - result.beginNs) * 1e-9, double(result.end - result.begin)};
    }

    Result<void> samplesOf(BankPoint& point, BankLaunch& launch, int pass)
    {
        point.requests = double(launch.turns) * bankRequestsPerTurn * launch.warps;
        for (int i = 0; i < 3; ++i) // warm-up: the module is loaded, the clock is up
            MEMSCAPE_CHECK(take(launch, false));
        const Clock& clock = m_session.clock();
        StoppingRule rule(StoppingOptions().perPass(sweepPasses), clock);
        while (!rule.finished() && !m_sink.cancelled()) {
            MEMSCAPE_TRY(sample, take(launch, false));
            rule.add(sample.seconds);
            point.cycles.push_back(sample.cycles / point.requests);
            point.samples.clocks.push_back(sample.cycles / sample.seconds);
        }
        point.samples.stop = rule.state();
        point.samples.seconds.add(pass, rule.samples());
        return {};
    }

    Result<void> latenciesOf(BankPoint& point, BankLaunch launch)
    {
        launch.turns = latencyTurns;
        for (int i = 0; i < latencyLaunches && !m_sink.cancelled(); ++i) {
            MEMSCAPE_TRY(sample, take(launch, true));
            point.latencies.push_back(sample.cycles / (double(latencyTurns) * bankRequestsPerTurn));
        }
        return {};
    }

    static Figure banded(const char* key, const char* label, Unit unit, double value, double low, double high)
    {
        return {key, label, unit, value, low, high, {}};
    }

    Figures figuresOf(const BankPoint& point) const
    {
        const Summary cycles = summarize(point.cycles), latency = summarize(point.latencies);
        const Summary time = point.samples.summary();
        const double bytes = point.request.usefulBytes() * point.requests;
        Figures times{banded("cycles", "cycles / request", Unit::One, cycles.median, cycles.minimum, cycles.q3),
                      banded("bandwidth", "bandwidth, one SM", Unit::BytePerSecond, bytes / time.median,
                             bytes / time.q3, bytes / time.minimum)};
        if (!latency.empty())
            times.push_back(
                banded("latency_cycles", "cycles, lone warp", Unit::One, latency.median, latency.minimum, latency.q3));
        Figures figures = bankFigures(point.request, point.access, std::move(times));
        for (Figure& figure : figures)
            figure.why.reset(); // the reasons are the prediction's
        return figures;
    }

    RunSink& m_sink;
    std::uint64_t m_sharedLimit;
    Buffer m_result;
};

} // namespace

Result<MeasuredRun> measureBankConflicts(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    int ordinal = 0, limit = 0;
    MEMSCAPE_CHECK(cudaResult(cudaGetDevice(&ordinal), "querying the device"));
    MEMSCAPE_CHECK(cudaResult(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal),
                              "requesting the shared memory of a block"));
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    BankMeasurer measurer(session, plan, runStart, sink, static_cast<std::uint64_t>(std::max(0, limit)));
    return runSweep(session, runStart, plan, measurer, sink);
}

} // namespace memscape::cuda
