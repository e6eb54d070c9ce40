// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/batch-size/batch_measurement.h"

#include "core/experiments/memory/memory_parameters.h"
#include "core/training/noisy_regression.h"
#include "kernels/measure/timed_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr std::int64_t mostAccumulation = 1024;
constexpr double deepTarget = 0.5; ///< of a chain of several layers, from about 1.1
constexpr std::size_t fewestPerVisit = 2;

tl::unexpected<Error> skipped(const char* place, std::string message, std::string hint)
{
    return fail("run.skipped", std::move(message), std::move(hint), place);
}

std::int64_t allocatedBytes(const BatchTrainer& trainer, const BatchTask& task)
{
    return replayTrace(trainer.trace(), task.allocator).statistics.peak.allocated;
}

} // namespace

Result<BatchTask> batchTask(const Device& device, const Parameters& parameters)
{
    MEMSCAPE_TRY(model, askedModel(parameters));
    if (model.family != Family::Mlp)
        return skipped(
            "model",
            fmt::format("{} can be predicted, not trained here: a measurement trains a chain of linear layers",
                        model.name),
            "choose model=mlp:256,64, or sizes of your own");
    MEMSCAPE_TRY(answer, answerTraining(withOwnKernels(device), trainingParameters(parameters)));
    const Plan& plan = answer.setup.step.plan;
    constexpr const char* plain = "a measurement trains in fp32 with plain SGD on one device";
    if (plan.precision != Precision::Fp32)
        return skipped("precision", plain, "choose precision=fp32");
    if (plan.optimizer != OptimizerKind::Sgd)
        return skipped("optimizer", plain, "choose optimizer=sgd");
    if (plan.copies() > 1 || plan.tensorParallel > 1 || plan.pipelineParallel > 1 || plan.zeroStage > 0)
        return skipped("data_parallel", plain, "choose data_parallel=1 tensor_parallel=1 zero=0");
    if (plan.offload != Offload::None || plan.clipsGradients || plan.lora || !plan.setsGradientsToNone)
        return skipped("offload", plain, "leave offload, clipping, adapter and zero_grad_frees as they are by default");
    if (answer.setup.step.checkpointing.sendsToHost)
        return skipped("activation_offload", plain, "choose activation_offload=false");
    if (answer.setup.step.checkpointing.kind != Checkpointing::None)
        return skipped("checkpointing", plain, "choose checkpointing=none; the experiment checkpoint runs schedules");
    if (plan.accumulation > mostAccumulation)
        return skipped("accumulation", fmt::format("at most {} micro-batches are run", mostAccumulation),
                       "choose fewer");
    BatchTask task{model.mlpSizes,       batchCase(parameters),           answer.setup.allocator,
                   answer.setup.context, answer.setup.step.blasWorkspace, 0};
    const BatchNoise noise = batchNoise(model, task.asked);
    if (!noise.isReached)
        return fail("run.skipped", noise.reason, noise.remedy, "target_loss");
    task.target = task.asked.targetLoss > 0 ? task.asked.targetLoss : noise.target > 0 ? noise.target : deepTarget;
    return task;
}

BatchMeasurement::BatchMeasurement(BatchRunner runner, const Parameters& parameters)
    : m_runner(std::move(runner))
    , m_own(parameters.integer("batch"))
{ }

Result<void> BatchMeasurement::check(const std::string& products)
{
    m_runner.sink.progress(0, 1, "checking gradients on a small chain");
    MEMSCAPE_TRY(check, checkBatchTrainer(m_runner.makeDevice));
    m_checked = check.text();
    return check.result("training step, " + products);
}

Result<StoppingRule> BatchMeasurement::sample(BatchTrainer& trainer, int passes)
{
    MEMSCAPE_CHECK(trainer.sample(1)); // meets new pages
    MEMSCAPE_TRY(once, trainer.sample(1));
    m_repeats = trainer.repeatsFor(once);
    StoppingRule rule(StoppingOptions().perPass(passes), m_runner.clock);
    for (std::size_t count = 0; !rule.finished() || count < fewestPerVisit; ++count) {
        MEMSCAPE_TRY(seconds, trainer.sample(m_repeats));
        MEMSCAPE_CHECK(trainer.checkStopped());
        rule.add(seconds);
    }
    return rule;
}

Result<void> BatchMeasurement::train(const BatchTask& task)
{
    const double update = task.asked.update(double(task.asked.batch));
    if (m_courses.contains(update))
        return {};
    BatchCourseTask course{task.sizes, std::int64_t(update), task.target};
    course.wantsNoise = task.asked.batch == m_own;
    MEMSCAPE_TRY(result, trainTo(m_runner.makeDevice, m_runner.clock, course));
    if (!result.isReached)
        m_runner.sink.note("info", "target.missed", fmt::format("updates of {}: {}", update, result.stop));
    m_courses[update] = std::move(result);
    return {};
}

Result<StoppingRule> BatchMeasurement::visit(const Parameters& point, int pass, int passes)
{
    MEMSCAPE_TRY(task, batchTask(m_runner.device, point));
    MEMSCAPE_TRY(trainer,
                 BatchTrainer::make(m_runner.makeDevice, task.shape(task.asked.batch, task.asked.accumulation)));
    MEMSCAPE_CHECK(trainer->load(0));
    const AllocatorReplay replay = replayTrace(trainer->trace(), task.allocator);
    const auto& peak = replay.statistics.peak;
    // A processor's allocator keeps nothing back.
    m_memory[{task.asked.batch, task.asked.accumulation}] = {
        peak.allocated, m_runner.device.isGpu() ? peak.reserved + task.context : peak.allocated};
    MEMSCAPE_TRY(samples, sample(*trainer, passes));
    trainer.reset(); // its arena first
    if (pass == 0)
        MEMSCAPE_CHECK(train(task));
    return samples;
}

Figures BatchMeasurement::figures(const Parameters& point, const Summary& seconds) const
{
    const BatchCase asked = batchCase(point);
    const double update = asked.update(double(asked.batch));
    const Memory memory = m_memory.at({asked.batch, asked.accumulation});
    const auto bytes = [&](const char* key, const char* label, std::int64_t value) {
        return Figure{key, label, Unit::Byte, double(value)};
    };
    Figure throughput = rateFigure("throughput", "throughput (examples/s)", update, seconds);
    throughput.unit = Unit::One;
    Summary each = seconds;
    for (double* value : {&each.median, &each.minimum, &each.q3})
        *value /= update;
    Figures figures{bytes("peak_allocated", "peak allocated", memory.allocated),
                    bytes("memory", "memory", memory.device), std::move(throughput),
                    timeFigure("step_time", "time of a step", seconds, false),
                    timeFigure("time_per_example", "time per example", each, false)};
    const auto course = m_courses.find(update);
    const double steps = course != m_courses.end() && course->second.isReached
        ? course->second.steps
        : std::numeric_limits<double>::quiet_NaN();
    figures.push_back({"examples_to_target", "examples to the target", Unit::One, steps * update});
    figures.push_back({"steps_to_target", "steps to the target", Unit::One, steps});
    figures.push_back({"time_to_target", "time to the target", Unit::Second, steps * seconds.median});
    return figures;
}

/// The update at once and in parts, in turn: time, and how far their gradients are apart.
Result<Json> BatchMeasurement::compareAccumulation(const BatchTask& task) const
{
    const auto update = std::int64_t(task.asked.update(double(task.asked.batch)));
    const std::int64_t parts = update % 4 == 0 ? 4 : update % 2 == 0 ? 2 : 1;
    if (parts == 1)
        return Json();
    MEMSCAPE_TRY(whole, BatchTrainer::make(m_runner.makeDevice, task.shape(update, 1)));
    MEMSCAPE_TRY(split, BatchTrainer::make(m_runner.makeDevice, task.shape(update / parts, parts)));
    std::vector<double> wholeSeconds, splitSeconds;
    for (BatchTrainer* trainer : {whole.get(), split.get()}) {
        MEMSCAPE_CHECK(trainer->load(0));
        MEMSCAPE_CHECK(trainer->gradients(false));
    }
    MEMSCAPE_TRY(a, whole->lastGradients());
    MEMSCAPE_TRY(b, split->lastGradients());
    double largest = 0, apart = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, double(std::fabs(a[i])));
        apart = std::max(apart, double(std::fabs(a[i] - b[i])));
    }
    StoppingRule rule(StoppingOptions(), m_runner.clock);
    while (!rule.finished()) { // in turn: what the machine does meanwhile meets both
        MEMSCAPE_TRY(wholeTime, whole->sample(1));
        MEMSCAPE_TRY(splitTime, split->sample(1));
        wholeSeconds.push_back(wholeTime);
        splitSeconds.push_back(splitTime);
        rule.add(splitTime);
        MEMSCAPE_CHECK(split->checkStopped());
    }
    const double atOnce = summarize(wholeSeconds).median, inParts = summarize(splitSeconds).median;
    return Json{{"update", update},
                {"parts", parts},
                {"whole_time", jsonNumber(atOnce)},
                {"split_time", jsonNumber(inParts)},
                {"overhead", jsonNumber(inParts / atOnce - 1)},
                {"whole_peak", allocatedBytes(*whole, task)},
                {"split_peak", allocatedBytes(*split, task)},
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
        Figure figure{"noise_scale", "noise scale", Unit::One, scale.corrected};
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
    run.measurement.figures.push_back({"critical_batch", "critical batch", Unit::One, fitted->critical()});
    run.measurement.detail["hyperbola"] = {{"fewest_steps", jsonNumber(fitted->fewestSteps)},
                                           {"fewest_examples", jsonNumber(fitted->fewestExamples)},
                                           {"critical_batch", jsonNumber(fitted->critical())},
                                           {"batches", reached.size()}};
}

Result<MeasuredRun> BatchMeasurement::finished(MeasuredRun run, const Parameters& parameters) const
{
    if (!run.complete)
        return run;
    addNoise(run);
    Parameters own = parameters;
    own.setSweep({});
    MEMSCAPE_TRY(task, batchTask(m_runner.device, own));
    m_runner.sink.progress(1, 1, "accumulation against the whole batch");
    auto accumulation = compareAccumulation(task);
    if (accumulation) {
        run.measurement.detail["accumulation"] = std::move(*accumulation);
        return run;
    }
    if (accumulation.error().code != "run.cancelled")
        return fail(std::move(accumulation).error());
    run.complete = false;
    return run;
}

} // namespace memscape
