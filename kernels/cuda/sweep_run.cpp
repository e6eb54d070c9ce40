// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/sweep_run.h"

#include "kernels/cuda/common/clock_watch.h"
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/sampler.h"

#include "core/base/text.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

constexpr double busySeconds = 0.4; ///< to leave the idle clock

/// Says what slowed the GPU or shared it; both are also in the provenance.
void noteState(const GpuState& state, RunSink& sink)
{
    if (state.reasons && throttles(*state.reasons))
        sink.note("warning", "clock.throttled",
                  "the GPU reduced its clock: " + join(reasonTexts(*state.reasons), ", "));
    if (state.otherProcesses && *state.otherProcesses > 0)
        sink.note("warning", "gpu.shared",
                  fmt::format("{} other {} computing on this GPU: numbers may be low", *state.otherProcesses,
                              *state.otherProcesses == 1 ? "process is" : "processes are"));
}

class GpuMachine final : public SweepMachine
{
public:
    GpuMachine(GpuSession& session, const RunStart& runStart, const BackendDevice& device, RunSink& sink)
        : m_session(session)
        , m_runStart(runStart)
        , m_device(device)
        , m_sink(sink)
    { }

    const Device& device() const override { return m_device.device; }
    RunSink& sink() override { return m_sink; }
    const Clock& clock() const override { return m_session.clock(); }
    void visited() override
    {
        const GpuState now = readGpuState(m_session.pciBusId()); // while the GPU is still warm from the samples
        m_seen.reasons = m_seen.reasons.value_or(0) | now.reasons.value_or(0);
        m_seen.otherProcesses = std::max(m_seen.otherProcesses.value_or(0), now.otherProcesses.value_or(0));
    }
    void forgetError() override { forgetCudaError(); } // a library's, which was never asked for
    void finished() override { noteState(m_seen, m_sink); }
    Json facts() override
    {
        Json facts = machineFacts(m_session, m_runStart, m_device);
        if (m_seen.reasons)
            facts["clock_reasons_seen"] = reasonTexts(*m_seen.reasons);
        return facts;
    }

private:
    GpuSession& m_session;
    const RunStart& m_runStart;
    const BackendDevice& m_device;
    RunSink& m_sink;
    GpuState m_seen; ///< at any of the visits: reasons of the clock, other processes
};

} // namespace

Result<RunStart> beginRun(GpuSession& session, RunSink& sink)
{
    RunStart runStart;
    session.setForced(sink.isForced());
    sink.progress(0, 0, "leaving the idle clock");
    runStart.before = readGpuState(session.pciBusId());
    MEMSCAPE_SET(runStart.referenceClock, session.warmClock(busySeconds));
    const Work empty{[&session](int) { return launchEmpty(session.stream()); }, "an empty kernel"};
    MEMSCAPE_CHECK(warmUp(session, empty));
    std::vector<double> periods;
    for (int i = 0; i < 20; ++i) {
        MEMSCAPE_TRY(sample, takeSample(session, empty, false, 100));
        periods.push_back(sample.seconds);
    }
    runStart.launchPeriod = summarize(periods).median;
    return runStart;
}

Json machineFacts(const GpuSession& session, const RunStart& runStart, const BackendDevice& device)
{
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    Json json = Json::object();
    json["backend"] = "cuda";
    json["device"] = device.id;
    json["device_name"] = device.name;
    json["driver"] = driverVersion();
    json["driver_cuda"] = driver;
    json["runtime_cuda"] = runtime;
    json["multiprocessors"] = session.multiprocessors();
    json["l2_bytes"] = session.l2Bytes();
    json["pci"] = session.pciBusId();
    json["busy_clock"] = jsonNumber(runStart.referenceClock);
    json["launch_period"] = jsonNumber(runStart.launchPeriod);
    json["state_before"] = stateToJson(runStart.before);
    json["state_after"] = stateToJson(readGpuState(session.pciBusId()));
    return json;
}

Result<MeasuredRun> runSweep(GpuSession& session, const RunStart& runStart, const SweepPlan& plan,
                             PointMeasurer& measurer, RunSink& sink)
{
    GpuMachine machine(session, runStart, plan.device, sink);
    return memscape::runSweep(plan.experiment, plan.parameters, measurer, machine);
}

Result<MeasuredRun> runSweep(GpuSession& session, const RunStart& runStart, const SweepPlan& plan,
                             SampledMeasurement& measurement, RunSink& sink)
{
    MEMSCAPE_CHECK(measurement.check());
    ClockVisit watch(session, runStart.referenceClock);
    const auto points = makeSampledPoints(measurement, watch);
    return runSweep(session, runStart, plan, *points, sink);
}

} // namespace memscape::cuda
