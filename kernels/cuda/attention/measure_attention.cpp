// SPDX-License-Identifier: Apache-2.0
// `attention` on a GPU. At every point both implementations have their arrays at the same time and
// take their samples in turn, so that a clock that drifts meets both; caches are flushed before every
// sample. Every version is held against the reference on small shapes before its first sample.
//
// Standard attention multiplies with cuBLASLt where it is installed; where it is not and was not asked
// for it, the version with our own products and the same arrays runs and says so. Where the user chose no
// version and the best one fails its check, the next older one runs, and a note and the record name both;
// a GPU that is lost with it (run.sticky, run.hung) ends the run, and its error names the version to
// choose. Memory traffic is not measured: this program reads no hardware counters.
#include "kernels/cuda/experiments.h"

#include "kernels/cuda/attention/attention_device.h"
#include "kernels/cuda/attention/attention_work.h"
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/float_products.h"
#include "kernels/cuda/common/sampler.h"
#include "kernels/programs/attention/attention_measurement.h"
#include "kernels/programs/attention/attention_reference.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

constexpr std::size_t fewestPerVisit = 4;
constexpr int standardWithoutLibrary = 1; ///< the same arrays, see core/timing/attention_versions.cpp

std::string nameOf(const AttentionTask& task)
{
    return fmt::format("{} v{} {}", attentionKindText(task.problem.kind), task.version.number,
                       dtypeText(task.problem.dtype));
}

class AttentionMeasurer : public PointMeasurer
{
public:
    AttentionMeasurer(GpuSession& session, const SweepPlan& plan, const RunStart& runStart, RunSink& sink)
        : m_session(session)
        , m_plan(plan)
        , m_runStart(runStart)
        , m_sink(sink)
        , m_blas(CublasLt::open())
        , m_points(plan.sweep.values.size())
    { }

    Result<void> visit(std::size_t index, const Parameters& at, int pass) override;
    Point point(std::size_t index) const override;
    MergedSamples samples(std::size_t index) const override;
    Quality quality(std::size_t index) const override;
    Json method() const override
    {
        return {{"kernels", checked()},
                {"caches", "flushed before every sample"},
                {"memory_traffic", "not measured: no hardware counters are read"}};
    }
    /// The library when something that was measured used it, else null.
    const CublasLt* library() const { return m_wantsLibrary ? m_blas.get() : nullptr; }
    Json checked() const
    {
        Json checks = Json::array();
        for (const auto& [name, text] : m_checked)
            checks.push_back({{"kernel", name}, {"check", text}});
        for (const auto& [name, error] : m_failed)
            checks.push_back({{"kernel", name}, {"failed", error.text()}});
        return checks;
    }

private:
    struct Measured
    {
        AttentionTask task;
        PointSamples samples;
        AttentionBytes bytes;
        Json method;
    };
    struct Running
    {
        Measured* into;
        std::unique_ptr<GpuAttention> device;
        StoppingRule rule;
        std::vector<double> seconds;
    };
    /// Of the points so far where both implementations ran, by sequence.
    std::map<std::int64_t, double> speedups() const;
    Result<std::vector<AttentionTask>> tasksOf(const Parameters& at);
    Result<void> checkOnce(const AttentionTask& task);
    /// The task, or with an older version where its own fails and the user chose none (`chose`).
    Result<AttentionTask> rightOne(AttentionTask task, bool chose);
    Result<Running> begin(Measured& into);
    Result<void> sampleInTurn(std::vector<Running>& running);
    AttentionDeviceFactory factory()
    {
        return [this](const AttentionTask& task) -> Result<std::unique_ptr<AttentionDevice>> {
            return makeAttentionDevice(
                m_session, m_blas.get(), [this] { return m_sink.cancelled(); }, task);
        };
    }

    GpuSession& m_session;
    const SweepPlan& m_plan;
    const RunStart& m_runStart;
    RunSink& m_sink;
    std::unique_ptr<CublasLt> m_blas;
    bool m_wantsLibrary = false;
    std::map<std::string, std::string> m_checked;
    std::map<std::string, Error> m_failed;       ///< checks, by name
    std::vector<std::vector<Measured>> m_points; ///< by point, one or two implementations
};

Result<std::vector<AttentionTask>> AttentionMeasurer::tasksOf(const Parameters& at)
{
    MEMSCAPE_TRY(tasks, attentionTasks(m_plan.device.device, at));
    for (AttentionTask& task : tasks) {
        if (!usesLibrary(task))
            continue;
        if (!m_blas && at.integer("version") == task.version.number)
            continue; // it is asked for by number: an error says that it is not there
        if (!m_wantsLibrary)
            noteLibrary(m_blas.get(), "standard attention multiplies with our own kernel", m_sink);
        m_wantsLibrary = true;
        if (m_blas)
            continue;
        MEMSCAPE_SET(task.version, attentionVersion(standardWithoutLibrary, task.problem, true));
    }
    return tasks;
}

Result<void> AttentionMeasurer::checkOnce(const AttentionTask& task)
{
    const std::string name = nameOf(task);
    if (m_checked.contains(name))
        return {};
    m_sink.progress(0, 1, fmt::format("checking {} on small shapes", name));
    MEMSCAPE_TRY(check, checkAttentionDevice(factory(), compiledVersion(task.version), task.problem.dtype, 1));
    MEMSCAPE_CHECK(check.result(name)); // wrong at every point, so it is asked at every point
    m_checked[name] = check.text();
    return {};
}

Result<AttentionTask> AttentionMeasurer::rightOne(AttentionTask task, bool chose)
{
    for (;;) {
        const std::string name = nameOf(task);
        std::optional<Error> error;
        if (const auto known = m_failed.find(name); known != m_failed.end())
            error = known->second;
        else if (auto checked = checkOnce(task); !checked)
            error = std::move(checked).error();
        if (!error)
            return task;
        const auto older = olderAttentionVersion(task.version, task.problem, true, computeCapability());
        if (endsRun(*error) && older)
            error->hint = fmt::format("choose version={}; {}", older->number, error->hint);
        if (chose || endsRun(*error) || error->code == "run.cancelled" || error->code == "run.memory" || !older)
            return fail(*error);
        forgetCudaError(); // the older version is not to blame
        if (m_failed.emplace(name, *error).second)
            m_sink.note("warning", "attention.version",
                        fmt::format("{} is left out, version {} runs instead: {}", name, older->number, error->text()));
        task.version = *older;
    }
}

Result<AttentionMeasurer::Running> AttentionMeasurer::begin(Measured& into)
{
    const AttentionTask& task = into.task;
    MEMSCAPE_TRY(device,
                 makeAttentionDevice(
                     m_session, m_blas.get(), [this] { return m_sink.cancelled(); }, task));
    MEMSCAPE_CHECK(device->fill(AttentionInputs::Normal));
    MEMSCAPE_SET(into.bytes, countAttention(*device, task));
    return Running{
        &into, std::move(device), StoppingRule(StoppingOptions().perPass(sweepPasses), m_session.clock()), {}};
}

Result<void> AttentionMeasurer::sampleInTurn(std::vector<Running>& running)
{
    for (bool more = true; more;) {
        more = false;
        for (Running& one : running) {
            if (one.rule.finished() && one.seconds.size() >= fewestPerVisit)
                continue;
            MEMSCAPE_CHECK(one.device->checkStopped());
            MEMSCAPE_TRY(sample, one.device->timed(one.into->task.problem.pass));
            one.rule.add(sample.seconds);
            one.seconds.push_back(sample.seconds);
            one.into->samples.clocks.push_back(sample.clockHz);
            more = true;
        }
    }
    return {};
}

Result<void> AttentionMeasurer::visit(std::size_t index, const Parameters& at, int pass)
{
    std::vector<Measured>& point = m_points[index];
    if (point.empty()) {
        MEMSCAPE_TRY(tasks, tasksOf(at));
        for (AttentionTask& task : tasks) {
            MEMSCAPE_TRY(right, rightOne(std::move(task), at.integer("version") != 0));
            point.push_back({std::move(right), {}, {}, {}});
            point.back().samples.isDense = true;
        }
    }
    std::vector<Running> running;
    for (Measured& measured : point) {
        MEMSCAPE_TRY(begun, begin(measured));
        running.push_back(std::move(begun));
    }
    MEMSCAPE_CHECK(sampleInTurn(running));
    for (Running& one : running) {
        one.into->samples.stop = one.rule.state();
        one.into->samples.seconds.add(pass, one.seconds);
        one.into->samples.batch = one.device->runsPerSample(one.into->task.problem.pass);
        one.into->samples.peak = double(one.into->bytes.peak);
        one.into->method = one.device->method();
    }
    running.clear();
    return m_session.synchronize("freeing the arrays");
}

Point AttentionMeasurer::point(std::size_t index) const
{
    Point point;
    const std::vector<Measured>& measured = m_points[index];
    point.detail = Json::object();
    std::map<AttentionKind, Summary> seconds;
    for (const Measured& one : measured) {
        const Summary summary = one.samples.summary();
        if (summary.empty())
            return point;
        seconds[one.task.problem.kind] = summary;
        for (Figure& figure : attentionTaskFigures(one.task, summary, one.bytes))
            point.figures.push_back(std::move(figure));
        Json detail = one.samples.detail();
        detail["method"] = one.method;
        point.detail[std::string(attentionKindText(one.task.problem.kind))] = std::move(detail);
    }
    if (seconds.size() < 2)
        return point;
    for (Figure& figure : attentionComparison(seconds.at(AttentionKind::Standard), seconds.at(AttentionKind::Flash)))
        point.figures.push_back(std::move(figure));
    point.figures.push_back(attentionCrossoverFigure(speedups()));
    return point;
}

std::map<std::int64_t, double> AttentionMeasurer::speedups() const
{
    std::map<std::int64_t, double> speedups;
    for (const std::vector<Measured>& point : m_points) {
        std::map<AttentionKind, double> medians;
        for (const Measured& one : point) {
            if (const Summary summary = one.samples.summary(); !summary.empty())
                medians[one.task.problem.kind] = summary.median;
        }
        if (medians.size() == 2)
            speedups[point.front().task.problem.shape.queries] =
                medians.at(AttentionKind::Standard) / medians.at(AttentionKind::Flash);
    }
    return speedups;
}

MergedSamples AttentionMeasurer::samples(std::size_t index) const
{
    MergedSamples samples;
    for (const Measured& one : m_points[index])
        samples[attentionTimeKey(one.task)] = one.samples.seconds;
    return samples;
}

Quality AttentionMeasurer::quality(std::size_t index) const
{
    Quality worst{'A', {}};
    for (const Measured& one : m_points[index])
        worst = worse(worst, one.samples.quality(m_runStart.referenceClock));
    return worst;
}

} // namespace

Result<MeasuredRun> measureAttention(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    // Asked before the GPU is warmed up: most mistakes are in the parameters.
    if (!plan.parameters.sweep())
        MEMSCAPE_CHECK(attentionTasks(plan.device.device, plan.parameters));
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    AttentionMeasurer measurer(session, plan, runStart, sink);
    MEMSCAPE_TRY(measured, runSweep(session, runStart, plan, measurer, sink));
    addLibrary(measured.provenance.machine, measurer.library());
    return measured;
}

} // namespace memscape::cuda
