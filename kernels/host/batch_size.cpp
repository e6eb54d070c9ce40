// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/batch_size.h"

#include "core/experiments/batch_size.h"
#include "core/network/model_names.h"
#include "core/trace/allocator_replay.h"
#include "core/training/noisy_regression.h"
#include "kernels/host/batch_course.h"
#include "kernels/host/checkpoint.h"
#include "kernels/host/measurement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

constexpr double shortestSample = 200e-6; // s; shorter steps are repeated within a sample
constexpr std::int64_t mostAccumulation = 1024;
constexpr double deepTarget = 0.5; ///< of a chain of several layers, from about 1.1
constexpr std::size_t fewestPerVisit = 2;

tl::unexpected<Error> skipped(const char* place, std::string message, std::string hint)
{
    return fail("run.skipped", std::move(message), std::move(hint), place);
}

/// What a measurement trains; errors name the parameter that it can't do.
struct BatchTask
{
    std::vector<std::int64_t> sizes;
    BatchCase asked;
    AllocatorOptions allocator;
    double target = 0;
};

Result<BatchTask> batchTask(const Device& device, const Parameters& parameters)
{
    MEMSCAPE_TRY(model, readModel(parameters.text("model")));
    if (model.family != Family::Mlp)
        return skipped("model", fmt::format("{} can be predicted, not trained here: a measurement trains a chain of linear layers", model.name),
                       "choose model=mlp:256,64, or sizes of your own");
    MEMSCAPE_TRY(answer, answerTraining(device, trainingParameters(parameters)));
    const Plan& plan = answer.setup.step.plan;
    constexpr const char* plain = "a measurement trains in fp32 with plain SGD on one device";
    if (plan.precision != Precision::Fp32)
        return skipped("precision", plain, "choose precision=fp32");
    if (plan.optimizer != OptimizerKind::Sgd)
        return skipped("optimizer", plain, "choose optimizer=sgd");
    if (plan.dataParallel > 1 || plan.tensorParallel > 1 || plan.zeroStage > 0)
        return skipped("data_parallel", plain, "choose data_parallel=1 tensor_parallel=1 zero=0");
    if (plan.offload != Offload::None || plan.clipsGradients || plan.lora || !plan.setsGradientsToNone)
        return skipped("offload", plain, "leave offload, clipping, adapter and zero_grad_frees as they are by default");
    if (answer.setup.step.checkpointing.kind != Checkpointing::None)
        return skipped("checkpointing", plain, "choose checkpointing=none; the experiment checkpoint runs schedules");
    if (plan.accumulation > mostAccumulation)
        return skipped("accumulation", fmt::format("at most {} micro-batches are run", mostAccumulation), "choose fewer");
    BatchTask task{model.mlpSizes, batchCase(parameters), answer.setup.allocator, 0};
    const BatchNoise noise = batchNoise(model, task.asked);
    if (!noise.isReached)
        return fail("run.skipped", noise.reason, noise.remedy, "target_loss");
    task.target = task.asked.targetLoss > 0 ? task.asked.targetLoss : noise.target > 0 ? noise.target : deepTarget;
    return task;
}

class BatchMeasurement final : public HostMeasurement
{
public:
    explicit BatchMeasurement(HostSession& session, std::int64_t own)
        : m_session(session)
        , m_own(own)
        , m_product(fastestProduct(session))
    {
    }

    Result<void> check() override
    {
        m_session.sink().progress(0, 1, "checking gradients on a small chain");
        MEMSCAPE_TRY(check, checkBatchTrainer(m_session, m_product.kernel));
        m_checked = check.text();
        return check.result("training step, " + m_product.kernel.name);
    }
    Result<SampleSets> visit(const Parameters& point, int pass) override;
    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override;
    Json method() const override
    {
        return {{"products", m_product.kernel.name},
                {"products_tried", m_product.tried},
                {"threads", m_session.team().size()},
                {"check", m_checked},
                {"caches", "warm, as training finds them"},
                {"data", "made from its number: inputs of variance 1/(j + 1), targets of a fixed map and noise of variance 0.1"}};
    }

    Result<void> finish(MeasuredRun& run, const Parameters& parameters);

private:
    Result<std::vector<double>> sample(BatchTrainer& trainer);
    Result<void> train(const BatchTask& task);
    Result<Json> compareAccumulation(const BatchTask& task);
    void addNoise(MeasuredRun& run) const;

    HostSession& m_session;
    std::int64_t m_own;
    ProductChoice m_product;
    std::string m_checked;
    struct Memory
    {
        std::int64_t allocated = 0, arena = 0;
    };
    std::map<std::pair<std::int64_t, std::int64_t>, Memory> m_memory; ///< by batch and accumulation
    std::map<double, BatchCourseResult> m_courses; ///< by examples of an update
};

Result<std::vector<double>> BatchMeasurement::sample(BatchTrainer& trainer)
{
    static_cast<void>(trainer.step(0)); // meets new pages; a rate of 0 leaves the weights
    const double once = trainer.step(0).seconds;
    const int repeats = std::max(1, int(shortestSample / possibleSeconds(once, 0)));
    StoppingRule rule(StoppingOptions::live().perPass(sweepPasses), m_session.clock());
    for (std::size_t count = 0; !rule.finished() || count < fewestPerVisit; ++count) {
        double seconds = 0;
        for (int i = 0; i < repeats; ++i)
            seconds += trainer.step(0).seconds;
        MEMSCAPE_CHECK(m_session.checkStopped());
        rule.add(seconds / repeats);
    }
    return m_session.samplesOf(rule, 1);
}

Result<void> BatchMeasurement::train(const BatchTask& task)
{
    const double update = task.asked.update(double(task.asked.batch));
    if (m_courses.contains(update))
        return {};
    BatchCourseTask course{task.sizes, std::int64_t(update), task.target};
    course.wantsNoise = task.asked.batch == m_own;
    MEMSCAPE_TRY(result, trainTo(m_session, m_product.kernel, course));
    if (!result.isReached)
        m_session.sink().note("info", "target.missed", fmt::format("updates of {}: {}", update, result.stop));
    m_courses[update] = std::move(result);
    return {};
}

Result<SampleSets> BatchMeasurement::visit(const Parameters& point, int pass)
{
    MEMSCAPE_TRY(task, batchTask(m_session.device(), point));
    {
        MEMSCAPE_TRY(trainer, BatchTrainer::make(m_session, {task.sizes, task.asked.batch, task.asked.accumulation, m_product.kernel}));
        trainer->load(0);
        const AllocatorReplay replay = replayTrace(trainer->trace(), task.allocator);
        m_memory[{task.asked.batch, task.asked.accumulation}] = {replay.statistics.peak.allocated, trainer->highWater()};
        MEMSCAPE_TRY(samples, sample(*trainer));
        if (pass > 0)
            return SampleSets{{"step_time", std::move(samples)}};
        trainer.reset(); // its arena first
        MEMSCAPE_CHECK(train(task));
        return SampleSets{{"step_time", std::move(samples)}};
    }
}

Result<Figures> BatchMeasurement::figures(const Parameters& point, const MergedSamples& samples)
{
    const BatchCase asked = batchCase(point);
    const double update = asked.update(double(asked.batch));
    const Summary seconds = summarize(samples.at("step_time").merged());
    const Memory memory = m_memory.at({asked.batch, asked.accumulation});
    const auto bytes = [&](const char* key, const char* label, double value) { return Figure{key, label, Unit::Byte, value, {}, {}, {}}; };
    Figure throughput = rateFigure("throughput", "throughput (examples/s)", update, seconds);
    throughput.unit = Unit::One;
    Summary each = seconds;
    for (double* value : {&each.median, &each.minimum, &each.q3})
        *value /= update;
    Figures figures{bytes("peak_allocated", "peak allocated", double(memory.allocated)), bytes("memory", "memory", double(memory.allocated)),
                    std::move(throughput), timeFigure("step_time", "time of a step", seconds, false),
                    timeFigure("time_per_example", "time per example", each, false)};
    const auto course = m_courses.find(update);
    const double steps = course != m_courses.end() && course->second.isReached ? course->second.steps
                                                                               : std::numeric_limits<double>::quiet_NaN();
    figures.push_back({"examples_to_target", "examples to the target", Unit::One, steps * update, {}, {}, {}});
    figures.push_back({"steps_to_target", "steps to the target", Unit::One, steps, {}, {}, {}});
    figures.push_back({"time_to_target", "time to the target", Unit::Second, steps * seconds.median, {}, {}, {}});
    return figures;
}

/// The update at once and in parts, in turn: time, and how far their gradients are apart.
Result<Json> BatchMeasurement::compareAccumulation(const BatchTask& task)
{
    const auto update = std::int64_t(task.asked.update(double(task.asked.batch)));
    const std::int64_t parts = update % 4 == 0 ? 4 : update % 2 == 0 ? 2 : 1;
    if (parts == 1)
        return Json();
    MEMSCAPE_TRY(whole, BatchTrainer::make(m_session, {task.sizes, update, 1, m_product.kernel}));
    MEMSCAPE_TRY(split, BatchTrainer::make(m_session, {task.sizes, update / parts, parts, m_product.kernel}));
    std::vector<double> wholeSeconds, splitSeconds;
    for (BatchTrainer* trainer : {whole.get(), split.get()}) {
        trainer->load(0);
        static_cast<void>(trainer->gradients(false));
    }
    const std::vector<float> a = whole->lastGradients(), b = split->lastGradients();
    double largest = 0, apart = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, double(std::fabs(a[i])));
        apart = std::max(apart, double(std::fabs(a[i] - b[i])));
    }
    StoppingRule rule(StoppingOptions::live(), m_session.clock());
    while (!rule.finished()) { // in turn: what the machine does meanwhile meets both
        wholeSeconds.push_back(whole->step(0).seconds);
        splitSeconds.push_back(split->step(0).seconds);
        rule.add(splitSeconds.back());
        MEMSCAPE_CHECK(m_session.checkStopped());
    }
    const double atOnce = summarize(wholeSeconds).median, inParts = summarize(splitSeconds).median;
    const auto allocated = [&](const BatchTrainer& trainer) { return replayTrace(trainer.trace(), task.allocator).statistics.peak.allocated; };
    return Json{{"update", update},
                {"parts", parts},
                {"whole_time", jsonNumber(atOnce)},
                {"split_time", jsonNumber(inParts)},
                {"overhead", jsonNumber(inParts / atOnce - 1)},
                {"whole_peak", allocated(*whole)},
                {"split_peak", allocated(*split)},
                {"gradient_difference", jsonNumber(apart / largest)},
                {"same_within_rounding", apart <= 1e-5 * largest}};
}

void BatchMeasurement::addNoise(MeasuredRun& run) const
{
    std::vector<StepsToTarget> reached;
    for (const auto& [update, course] : m_courses) {
        if (course.isReached && course.steps > 0)
            reached.push_back({update, course.steps});
        if (course.noise.empty())
            continue;
        const NoiseScale scale = noiseScaleOf(course.noise);
        Figure figure{"noise_scale", "noise scale", Unit::One, scale.corrected, {}, {}, {}};
        if (std::isfinite(scale.standardError) && std::isfinite(scale.corrected)) {
            figure.low = scale.corrected - scale.standardError;
            figure.high = scale.corrected + scale.standardError;
        }
        run.measurement.figures.push_back(std::move(figure));
        run.measurement.detail["noise"] = {{"loss", jsonNumber(course.loss)},
                                           {"simple", jsonNumber(scale.simple)},
                                           {"corrected", jsonNumber(scale.corrected)},
                                           {"standard_error", jsonNumber(scale.standardError)},
                                           {"examples", noiseBatch},
                                           {"measurements", course.noise.size()}};
    }
    const auto fitted = fitHyperbola(reached);
    if (!fitted)
        return;
    run.measurement.figures.push_back({"critical_batch", "critical batch", Unit::One, fitted->critical(), {}, {}, {}});
    run.measurement.detail["hyperbola"] = {{"fewest_steps", jsonNumber(fitted->fewestSteps)},
                                           {"fewest_examples", jsonNumber(fitted->fewestExamples)},
                                           {"critical_batch", jsonNumber(fitted->critical())},
                                           {"batches", reached.size()}};
}

Result<void> BatchMeasurement::finish(MeasuredRun& run, const Parameters& parameters)
{
    addNoise(run);
    MEMSCAPE_TRY(task, batchTask(m_session.device(), parameters));
    m_session.sink().progress(1, 1, "accumulation against the whole batch");
    MEMSCAPE_TRY(accumulation, compareAccumulation(task));
    run.measurement.detail["accumulation"] = std::move(accumulation);
    return {};
}

} // namespace

Result<MeasuredRun> measureBatchSize(HostSession& session, const Experiment& experiment, const Parameters& parameters)
{
    MEMSCAPE_CHECK(batchTask(session.device(), parameters)); // before anything is tried
    Parameters own = parameters;
    own.setSweep({});
    BatchMeasurement measurement(session, parameters.integer("batch"));
    MEMSCAPE_TRY(run, runSweep(experiment, parameters, measurement, session));
    if (!run.complete)
        return run;
    if (auto finished = measurement.finish(run, own); !finished) {
        if (finished.error().code != "run.cancelled")
            return fail(std::move(finished).error());
        run.complete = false;
        run.provenance["complete"] = false;
    }
    return run;
}

} // namespace memscape::host
