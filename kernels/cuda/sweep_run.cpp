// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/sweep_run.h"

#include "kernels/cuda/errors.h"
#include "kernels/cuda/sampler.h"

#include "core/base/text.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

constexpr double busySeconds = 0.4; ///< to leave the idle clock

double xOf(const ParameterValue& value, std::size_t index)
{
    const double* number = std::get_if<double>(&value);
    return number != nullptr ? *number : double(index);
}

std::string labelOf(const SweepPlan& plan, std::size_t index)
{
    const ParameterSpec* spec = findParameter(plan.experiment.schema(), plan.sweep.key);
    const ParameterValue& value = plan.sweep.values[index];
    return spec != nullptr ? fmt::format("{} {}", spec->label, valueLabel(*spec, value))
                           : fmt::format("{} {}", plan.sweep.key, valueText(value));
}

/// Says what slowed the GPU or shared it; both are also in the provenance.
void noteState(const GpuState& state, RunSink& sink)
{
    if (state.reasons && throttles(*state.reasons))
        sink.note("warning", "clock.throttled",
                  "the GPU held its clock back: " + join(reasonTexts(*state.reasons), ", "));
    if (state.otherProcesses && *state.otherProcesses > 0)
        sink.note("warning", "gpu.shared",
                  fmt::format("{} other {} computing on this GPU: numbers may be low",
                              *state.otherProcesses,
                              *state.otherProcesses == 1 ? "process is" : "processes are"));
}

/// The points of a sweep while they are measured.
class Visits
{
public:
    Visits(const SweepPlan& plan, PointMeasurer& measurer, const std::string& busId, RunSink& sink)
        : m_plan(plan)
        , m_measurer(measurer)
        , m_busId(busId)
        , m_sink(sink)
        , m_errors(plan.sweep.values.size())
    {
    }

    /// False when it was stopped before the end.
    Result<bool> all()
    {
        const auto order = interleaved(m_plan.sweep.values.size(), passes, 1);
        int done = 0;
        for (const Visit& visit : order) {
            if (m_sink.cancelled())
                return false;
            m_sink.progress(done++, static_cast<int>(order.size()), labelOf(m_plan, visit.point));
            if (auto visited = one(visit); !visited) {
                if (visited.error().code == "run.cancelled")
                    return false;
                return fail(std::move(visited).error());
            }
        }
        m_sink.progress(done, done, {});
        return true;
    }

    std::vector<Point> points() const
    {
        std::vector<Point> points;
        for (std::size_t i = 0; i < m_errors.size(); ++i)
            points.push_back(point(i));
        return points;
    }

    /// What was seen at any of the visits: reasons of the clock, other processes.
    const GpuState& state() const { return m_state; }

    /// Why when not one point could be measured: the first error, or that it was stopped.
    std::optional<Error> failure(bool isComplete) const
    {
        std::optional<Error> first;
        for (std::size_t i = 0; i < m_errors.size(); ++i) {
            if (!m_measurer.point(i).figures.empty())
                return std::nullopt;
            if (m_errors[i] && !first)
                first = m_errors[i];
        }
        if (first || isComplete)
            return first;
        return Error{"run.cancelled", "the measurement was stopped before its first point"};
    }

private:
    Result<void> one(const Visit& visit)
    {
        auto& error = m_errors[visit.point];
        if (error)
            return {}; // it failed in an earlier pass
        const ParameterValue& value = m_plan.sweep.values[visit.point];
        auto visited = m_measurer.visit(visit.point, m_plan.parameters.at(m_plan.sweep.key, value),
                                        visit.pass);
        if (!visited) {
            if (visited.error().code == "run.cancelled")
                return visited;
            error = std::move(visited).error();
            if (endsRun(*error))
                return fail(*error);
            forgetCudaError(); // a library's, which was never asked for
            m_sink.note("warning", error->code,
                        labelOf(m_plan, visit.point) + ": " + error->text());
        }
        m_sink.point(m_plan.sweep.key, point(visit.point));
        const GpuState now = readGpuState(m_busId); // while the GPU is still warm from the samples
        m_state.reasons = m_state.reasons.value_or(0) | now.reasons.value_or(0);
        m_state.otherProcesses =
            std::max(m_state.otherProcesses.value_or(0), now.otherProcesses.value_or(0));
        return {};
    }

    Point point(std::size_t index) const
    {
        Point point = m_measurer.point(index);
        point.x = xOf(m_plan.sweep.values[index], index);
        point.name = valueText(m_plan.sweep.values[index]);
        if (m_errors[index]) {
            point.detail["error"] = m_errors[index]->code;
            point.detail["reason"] = m_errors[index]->text();
        }
        return point;
    }

    const SweepPlan& m_plan;
    PointMeasurer& m_measurer;
    const std::string& m_busId;
    RunSink& m_sink;
    GpuState m_state;
    std::vector<std::optional<Error>> m_errors;
};

} // namespace

Result<Circumstance> beginRun(Session& session, RunSink& sink)
{
    Circumstance circumstance;
    session.setInsisted(sink.insists());
    sink.progress(0, 0, "leaving the idle clock");
    circumstance.before = readGpuState(session.pciBusId());
    MEMSCAPE_TRY(clock, session.warmClock(busySeconds));
    circumstance.referenceClock = clock;
    const Work empty{[&session](int) { return launchEmpty(session.stream()); }, "an empty kernel"};
    MEMSCAPE_CHECK(warmUp(session, empty));
    std::vector<double> periods;
    for (int i = 0; i < 20; ++i) {
        MEMSCAPE_TRY(sample, takeSample(session, empty, false, 100));
        periods.push_back(sample.seconds);
    }
    circumstance.launchPeriod = summarize(periods).median;
    return circumstance;
}

Json provenanceOf(const Session& session, const Circumstance& circumstance,
                  const BackendDevice& device)
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
    json["busy_clock"] = jsonNumber(circumstance.referenceClock);
    json["launch_period"] = jsonNumber(circumstance.launchPeriod);
    json["passes"] = passes;
    json["insisted"] = session.isInsisted();
    json["state_before"] = stateToJson(circumstance.before);
    json["state_after"] = stateToJson(readGpuState(session.pciBusId()));
    return json;
}

Result<MeasuredRun> runSweep(Session& session, const Circumstance& circumstance,
                             const SweepPlan& plan, PointMeasurer& measurer, RunSink& sink)
{
    Visits visits(plan, measurer, session.pciBusId(), sink);
    MEMSCAPE_TRY(complete, visits.all());
    if (auto failure = visits.failure(complete))
        return fail(std::move(*failure));

    MeasuredRun run;
    run.complete = complete;
    const std::vector<Point> points = visits.points();
    run.measurement =
        outcomeFromPoints(plan.experiment, plan.device.device, plan.parameters, points);
    run.provenance = provenanceOf(session, circumstance, plan.device);
    Quality worst{'A', {}};
    run.measurement.detail["points"] = Json::array();
    for (std::size_t i = 0; i < points.size(); ++i) {
        Json detail = points[i].detail.is_object() ? points[i].detail : Json::object();
        detail["x"] = jsonNumber(points[i].x);
        run.measurement.detail["points"].push_back(std::move(detail));
        if (!points[i].figures.empty())
            worst = worse(worst, measurer.quality(i));
    }
    run.provenance["grade"] = std::string(1, worst.grade);
    run.provenance["grade_reason"] = worst.reason;
    if (visits.state().reasons)
        run.provenance["clock_reasons_seen"] = reasonTexts(*visits.state().reasons);
    noteState(visits.state(), sink);
    return run;
}

} // namespace memscape::cuda
