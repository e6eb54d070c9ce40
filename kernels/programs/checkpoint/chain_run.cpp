// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/checkpoint/chain_run.h"

#include "core/base/number.h"
#include "core/checkpoint/schedule_json.h"
#include "kernels/measure/kept_samples.h"
#include "kernels/measure/stopping.h"
#include "kernels/programs/checkpoint/mlp_reference.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::size_t stepsPerPass = 2;    // six in all: the least that has a grade
constexpr double shortestProfile = 1;      // s of a pass
constexpr double profileShare = 0.3;       // of a step, where that is longer
constexpr double walksPerStage = 11.0 / 3; // a profile's three walks, in forward and backward of one stage
constexpr int profiledAtLeast = 4;

class Run
{
public:
    Run(const ChainTask& task, const ChainRunner& runner)
        : m_task(task)
        , m_runner(runner)
        , m_length(int(task.shape.length))
    { }

    Result<ChainRun> run();

private:
    Result<void> open();
    Result<void> estimate();
    Result<void> compareGradients();
    Result<void> measure();
    Result<void> compareAndMeasure();
    Replay typicalStep(const Summary& summary) const;
    Result<void> takeSteps(int pass);
    Result<void> finish();
    /// A run of the whole chain; progress counts its operations.
    Result<Execution> execute(const Schedule& schedule, const ExecutionOptions& options, const std::string& label);

    const ChainTask& m_task;
    const ChainRunner& m_runner;
    int m_length;
    Chain m_chain;
    Replay m_replay;                 ///< of the schedule, in bytes
    std::optional<Replay> m_checked; ///< of the run that checks the gradients: its bytes count
    std::int64_t m_arena = 0;
    std::string m_notCompared; ///< why, when everything can't be kept
    std::unique_ptr<MlpDevice> m_device;
    double m_stageSeconds = 0; ///< forward and backward of one, roughly
    std::vector<Execution> m_steps;
    std::size_t m_done = 0, m_total = 0; ///< operations, for the progress
    ChainRun m_result;
};

Result<Execution> Run::execute(const Schedule& schedule, const ExecutionOptions& options, const std::string& label)
{
    ExecutionOptions told = options;
    told.progress = [&](std::size_t operation) {
        m_runner.sink.progress(int(m_done + operation), int(std::max(m_total, m_done + operation)), label);
    };
    auto run = memscape::execute(*m_device, m_task.shape, m_arena, schedule, told);
    m_done += schedule.size();
    return run;
}

Result<void> Run::open()
{
    MEMSCAPE_SET(m_chain, mlpChain(m_task.shape));
    MEMSCAPE_SET(m_replay, replay(m_chain, m_task.schedule));
    MEMSCAPE_TRY(everything, replay(m_chain, saveEverything(m_length)));
    // One array more than predicted: more than predicted would be counted and shown, not refused.
    const std::int64_t least = m_replay.peak + mlpArrayBytes(m_task.shape);
    m_arena = std::max(least, everything.peak);
    m_runner.sink.progress(0, 1, "checking the kernels on a small chain");
    MEMSCAPE_TRY(check, checkMlpDevice(m_runner.makeDevice));
    MEMSCAPE_CHECK(check.result("the MLP chain"));
    m_result.check = check.text();
    m_runner.sink.progress(0, 1, "filling the weights");
    auto device = m_runner.makeDevice(m_task.shape, m_arena);
    if (!device && device.error().code == "run.memory" && m_arena > least) {
        m_notCompared = fmt::format("there is no memory to keep everything ({} of activations), so "
                                    "its gradients were not compared",
                                    quantityText(double(everything.peak), Unit::Byte));
        m_arena = least;
        device = m_runner.makeDevice(m_task.shape, m_arena);
    }
    if (!device)
        return fail(std::move(device).error());
    m_device = std::move(*device);
    if (!m_notCompared.empty())
        m_runner.sink.note("warning", "check.skipped", m_notCompared);
    return {};
}

/// Two stages' worth of work say how long the rest will take.
Result<void> Run::estimate()
{
    const MlpShape one{1, m_task.shape.width, m_task.shape.batch};
    for (int i = 0; i < 2; ++i) { // the first meets new pages
        MEMSCAPE_TRY(run, memscape::execute(*m_device, one, m_arena, saveEverything(1)));
        m_stageSeconds = run.replay.makespan;
    }
    const double step = m_stageSeconds * (m_length + double(m_replay.recomputed) / 3);
    const double budget = std::max(shortestProfile, profileShare * step);
    const double stages = budget / std::max(m_stageSeconds * walksPerStage, 1e-9);
    const auto byMemory = int((m_arena / mlpArrayBytes(m_task.shape) - 3) / 2); // everything kept fits the arena
    m_result.profiledStages =
        std::clamp(int(std::min(stages, double(m_length))), std::min(profiledAtLeast, m_length), m_length);
    m_result.profiledStages = std::clamp(byMemory, 1, m_result.profiledStages);
    const double checks = (m_notCompared.empty() ? m_stageSeconds * m_length : 0) + step;
    const double rounds =
        chainPasses * (m_result.profiledStages * m_stageSeconds * walksPerStage + double(stepsPerPass) * step);
    m_total = m_task.schedule.size() * (1 + chainPasses * stepsPerPass)
        + (m_notCompared.empty() ? std::size_t(2 * m_length + 1) : 0);
    m_runner.sink.note("info", "run.length",
                       fmt::format("a step takes about {}, the whole measurement about {}", secondsText(step),
                                   secondsText(1.3 * checks + rounds)));
    return {};
}

Result<void> Run::compareGradients()
{
    const ExecutionOptions checked{true, true, {}};
    // First, so that a run stopped before the steps still has the schedule's bytes.
    MEMSCAPE_TRY(run, execute(m_task.schedule, checked, "gradients of the schedule"));
    m_checked = run.replay;
    m_result.loss = run.loss;
    if (!std::isfinite(run.loss))
        return fail("check.failed", "the loss is not a number: something was used after it was discarded",
                    "please report this");
    m_result.comparison = "the gradients were not compared";
    if (!m_notCompared.empty()) {
        m_result.comparison = m_notCompared;
        return {};
    }
    MEMSCAPE_TRY(everything, execute(saveEverything(m_length), checked, "gradients, everything kept"));
    const std::vector<std::uint64_t>& kept = everything.digests;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        if (run.digests[i] != kept[i])
            return fail("check.failed",
                        fmt::format("{} differs from that of keeping everything",
                                    i + 1 < kept.size() ? fmt::format("the gradient of the weights of stage {}", i)
                                                        : std::string("the gradient of the input")),
                        "a schedule that gives other gradients is not timed; please report this");
    }
    m_result.isCompared = true;
    m_result.comparison = fmt::format("the gradients of {} stages and of the input equal those of "
                                      "keeping everything, bit for bit",
                                      m_length);
    return {};
}

Result<void> Run::takeSteps(int pass)
{
    const StoppingOptions options = StoppingOptions().perPass(chainPasses);
    const double begin = m_runner.clock.now();
    std::vector<double> seconds;
    while (seconds.size() < stepsPerPass
           || (seconds.size() < options.minimumSamples && m_runner.clock.now() - begin < options.wallLimit)) {
        const std::string label = fmt::format("step {} · pass {} of {}", m_steps.size() + 1, pass + 1, chainPasses);
        auto step = execute(m_task.schedule, {}, label);
        if (!step) {
            m_result.steps.add(pass, seconds); // what there is stays
            return fail(std::move(step).error());
        }
        seconds.push_back(step->replay.makespan);
        m_steps.push_back(std::move(*step));
    }
    m_result.steps.add(pass, seconds);
    return {};
}

Result<void> Run::measure()
{
    for (int pass = 0; pass < chainPasses; ++pass) {
        m_runner.observe();
        m_runner.sink.progress(
            int(m_done), int(std::max(m_total, m_done)),
            fmt::format("profile of {} stages · pass {} of {}", m_result.profiledStages, pass + 1, chainPasses));
        MEMSCAPE_CHECK(m_result.profile.takePass(*m_device, m_task.shape, m_arena, m_result.profiledStages, pass));
        MEMSCAPE_CHECK(takeSteps(pass));
        m_runner.observe();
    }
    return {};
}

/// The step nearest to the median, with the most bytes of any; before the first timed step the run
/// that checked the gradients, whose bytes are as good.
Replay Run::typicalStep(const Summary& summary) const
{
    if (m_steps.empty())
        return *m_checked;
    const auto distance = [&](const Execution& step) { return std::abs(step.replay.makespan - summary.median); };
    const auto nearest = std::ranges::min_element(
        m_steps, [&](const Execution& a, const Execution& b) { return distance(a) < distance(b); });
    Replay typical = nearest->replay;
    for (const Execution& step : m_steps)
        typical.peak = std::max(typical.peak, step.replay.peak);
    return typical;
}

Result<void> Run::finish()
{
    const Summary summary = summarize(m_result.steps.merged());
    m_result.step = typicalStep(summary);
    m_result.predictedPeak = m_replay.peak;
    MEMSCAPE_SET(m_result.chain, m_result.profile.chainOf(m_task.shape));
    if (m_result.profile.isWhole()) {
        MEMSCAPE_TRY(replayed, replay(m_result.chain, m_task.schedule));
        m_result.profileMakespan = replayed.makespan;
    }
    RunConditions seen = m_runner.conditions(summary.count);
    seen.drift = m_result.steps.drift();
    m_result.quality = m_steps.empty()
        ? Quality{'D',
                  "stopped before a step was timed: bytes and forwards are those of the run "
                  "that checks the gradients"}
        : gradeOf(summary, seen);
    m_result.method = m_device->method();
    m_result.method["profiled_stages"] = m_result.profiledStages;
    m_result.method["passes"] = chainPasses;
    return {};
}

Result<void> Run::compareAndMeasure()
{
    MEMSCAPE_CHECK(compareGradients());
    return measure();
}

Result<ChainRun> Run::run()
{
    MEMSCAPE_CHECK(open());
    MEMSCAPE_CHECK(estimate());
    if (auto measured = compareAndMeasure(); !measured) {
        if (measured.error().code != "run.cancelled" || !m_checked)
            return fail(std::move(measured).error());
        m_result.complete = false;
    }
    MEMSCAPE_CHECK(finish());
    m_result.schedule = m_task.schedule;
    return std::move(m_result);
}

Why profileWhy(const ChainRun& run)
{
    Why why;
    why.formula = "Σ over the schedule: median time of the operation's form";
    why.with = fmt::format("= {} for {} forwards and {} backwards", secondsText(run.profileMakespan), run.step.forwards,
                           run.chain.length());
    for (const auto& [form, samples] : run.profile.samples())
        why.terms.push_back({form, run.profile.median(form), Unit::Second,
                             fmt::format("median of {} samples", samples.merged().size()), "measured in this run"});
    why.source =
        fmt::format("a profile of {} stages, interleaved with the steps in {} passes", run.profiledStages, chainPasses);
    why.omits = {"that an operation finds other things in the caches at another place of a schedule"};
    return why;
}

} // namespace

Result<ChainRun> runChain(const ChainTask& task, const ChainRunner& runner)
{
    return Run(task, runner).run();
}

Figures chainFigures(const ChainRun& run)
{
    const Summary steps = summarize(run.steps.merged());
    Figures figures{{"peak", "peak", Unit::Byte, double(run.step.peak)}};
    if (!steps.empty()) // a run that was stopped early has no time
        figures.push_back({"makespan", "time of the step", Unit::Second, steps.median, steps.minimum, steps.q3, {}});
    if (run.profile.isWhole())
        figures.push_back(figureOf("profile_makespan", "makespan from the profile", Unit::Second, run.profileMakespan,
                                   profileWhy(run)));
    figures.push_back({"recomputed_forwards", "recomputed forwards", Unit::One, double(run.step.recomputed)});
    figures.push_back({"forward_evaluations", "forward evaluations", Unit::One, double(run.step.forwards)});
    return figures;
}

Series chainMemorySeries(const ChainRun& run)
{
    Series series;
    series.key = "memory";
    series.label = "live memory";
    series.x = {"step_time", "time", Unit::Second, AxisScale::Linear, {}, {}};
    series.yLabel = "live memory";
    series.yUnit = Unit::Byte;
    for (const ReplayStep& step : run.step.steps) {
        series.x.values.insert(series.x.values.end(), {step.begin, step.end});
        series.y.insert(series.y.end(), {double(step.during), double(step.during)});
    }
    return series;
}

Json chainRunDetail(const ChainRun& run)
{
    const double median = summarize(run.steps.merged()).median;
    Json profile = Json::object();
    for (const auto& [form, samples] : run.profile.samples()) {
        const Summary summary = summarize(samples.merged());
        profile[form] = {{"count", summary.count},
                         {"median", jsonNumber(summary.median)},
                         {"p5", jsonNumber(summary.p5)},
                         {"p95", jsonNumber(summary.p95)},
                         {"drift", jsonNumber(samples.drift())}};
    }
    Json detail = {{"gradients", {{"identical", run.isCompared}, {"text", run.comparison}}},
                   {"check", run.check},
                   {"loss", jsonNumber(run.loss)},
                   {"predicted_peak", run.predictedPeak},
                   {"profile", std::move(profile)},
                   {"schedule", scheduleJson(run.schedule, run.step)}};
    if (run.profile.isWhole()) {
        detail["profile_makespan"] = jsonNumber(run.profileMakespan);
        detail["profile_without_recomputation"] = jsonNumber(run.chain.timeWithoutRecomputation());
        detail["profile_error"] = jsonNumber(median > 0 ? (run.profileMakespan - median) / median : NAN);
        detail["measured_chain"] = chainToJson(run.chain);
    }
    return detail;
}

} // namespace memscape
