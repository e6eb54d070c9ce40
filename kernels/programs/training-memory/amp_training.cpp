// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/training-memory/amp_training.h"

#include "kernels/measure/timed_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr int countedSteps = 10; // of the FP32 run, spread over all of them

/// One trainer's way through the steps.
struct AmpCourse
{
    std::string key; ///< "fp32", "fp16", "fp16_unscaled"
    std::string label;
    std::unique_ptr<AmpTrainer> trainer; ///< while the run lasts
    std::vector<TrainedStep> steps;
    double peak = 0; ///< B, when the run has ended

    Summary seconds() const
    {
        std::vector<double> all, counted; // looking at gradients in between empties queues and fills caches
        for (std::size_t i = 1; i < steps.size(); ++i) // the first meets new pages
            (steps[i].isCounted ? counted : all).push_back(steps[i].seconds);
        return summarize(all.size() > 1 ? all : counted);
    }
    /// Mean over the last tenth, at least one step; NaN when one of them is.
    double finalLoss() const
    {
        const std::size_t last = std::max<std::size_t>(1, steps.size() / 10);
        double sum = 0;
        for (std::size_t i = steps.size() - last; i < steps.size(); ++i)
            sum += steps[i].loss;
        return sum / double(last);
    }
};

class TrainingRun
{
public:
    TrainingRun(TrainingMachine& machine, const PrecisionCase& asked)
        : m_machine(machine)
        , m_asked(asked)
        , m_network(trainedNetwork(asked.shape))
    { }

    /// Errors: those of the trainers; run.cancelled before the second step.
    Result<void> run();

    Figures figures(double lossScale) const;
    std::vector<Series> lossSeries() const;
    Json detail() const;
    MergedSamples samples() const;
    Json method() const { return m_method; }
    Quality quality() const { return m_quality; }
    bool isComplete() const { return m_complete; }

private:
    Result<void> open();
    Result<void> add(const std::string& key, const std::string& label, Format format, bool isScaled);
    Result<void> takeSteps();
    const AmpCourse& single() const { return m_courses.front(); }
    const AmpCourse& chosen() const { return m_courses[m_courses.size() > 1 ? 1 : 0]; }

    TrainingMachine& m_machine;
    PrecisionCase m_asked;
    TrainedNetwork m_network;
    std::vector<AmpCourse> m_courses;
    GradientCounter m_gradients;
    Json m_method = Json::object();
    Quality m_quality;
    bool m_complete = true;
};

Result<void> TrainingRun::add(const std::string& key, const std::string& label, Format format, bool isScaled)
{
    MEMSCAPE_TRY(products, m_machine.products(format));
    MEMSCAPE_TRY(check, checkTrainer(m_machine.device(), products.devices, format));
    MEMSCAPE_CHECK(check.result("training in " + label));
    TrainerOptions options{m_network, format};
    if (isScaled)
        options.scaler = m_asked.scaler();
    MEMSCAPE_TRY(trainer, makeTrainer(m_machine.device(), products.devices, options));
    m_courses.push_back({key, label, std::move(trainer), {}, 0});
    m_method["products"][key] = products.name;
    if (!products.tried.is_null())
        m_method["tried"][std::string(numberFormat(format).key)] = products.tried;
    m_method["checks"][key] = check.text();
    return {};
}

Result<void> TrainingRun::open()
{
    MEMSCAPE_CHECK(trainingRecipe(m_asked.format)); // a format that is trained in
    const NumberFormat& format = numberFormat(m_asked.format);
    const std::string key(format.key), label(format.label);
    MEMSCAPE_CHECK(add("fp32", "FP32", Format::Fp32, false));
    if (m_asked.format == Format::Fp32)
        return {};
    const bool isScaled = m_asked.format == Format::Fp16; // BF16 has the range of FP32
    MEMSCAPE_CHECK(add(key, label, m_asked.format, isScaled));
    if (isScaled)
        MEMSCAPE_CHECK(add(key + "_unscaled", label + ", not scaled", m_asked.format, false));
    return {};
}

Result<void> TrainingRun::takeSteps()
{
    const int every = std::max(1, m_asked.steps / countedSteps);
    RunSink& sink = m_machine.sink();
    for (int i = 0; i < m_asked.steps; ++i) {
        sink.progress(i, m_asked.steps, fmt::format("step {} of {}", i + 1, m_asked.steps));
        for (AmpCourse& course : m_courses) {
            const bool isCounted = &course == &m_courses.front() && i % every == every - 1;
            MEMSCAPE_TRY(step, course.trainer->step(std::uint64_t(i), isCounted ? &m_gradients : nullptr));
            step.isCounted = isCounted;
            course.steps.push_back(step);
        }
        m_machine.look();
    }
    return {};
}

Result<void> TrainingRun::run()
{
    MEMSCAPE_CHECK(open());
    m_machine.beginWatch();
    if (auto taken = takeSteps(); !taken) {
        if (taken.error().code != "run.cancelled" || m_courses.back().steps.size() < 2)
            return fail(std::move(taken).error());
        m_complete = false;
    }
    for (AmpCourse& course : m_courses) {
        course.peak = double(course.trainer->highWater());
        course.trainer.reset(); // its arrays are the next run's
    }
    const Summary seconds = chosen().seconds();
    m_quality = gradeOf(seconds, m_machine.seen(seconds.count));
    m_method.update(m_machine.method());
    m_method["task"] = fmt::format("{} → {} → {} → {} classes, new batches of {}: which of {} random "
                                   "directions the input points along most",
                                   m_network.inputs, m_network.hidden, m_network.hidden, TrainedNetwork::classes,
                                   m_network.batch, TrainedNetwork::classes);
    return {};
}

Figure counted(std::string key, std::string label, double value)
{
    return {std::move(key), std::move(label), Unit::One, value, {}, {}, {}};
}

Figures TrainingRun::figures(double lossScale) const
{
    const Summary seconds = chosen().seconds(), first = single().seconds();
    const NumberFormat& format = numberFormat(m_asked.format);
    const MagnitudeHistogram bars = m_gradients.histogram();
    const LostShares plain = lostShares(format, bars, 1), lost = lostShares(format, bars, lossScale);
    int skipped = 0;
    for (const TrainedStep& step : chosen().steps)
        skipped += step.isSkipped;
    const double peak = chosen().peak, singlePeak = single().peak;
    const double gain = seconds.median > 0 ? first.median / seconds.median : std::numeric_limits<double>::quiet_NaN();
    Figures figures{timeFigure("step_time", "step", seconds, false),
                    timeFigure("fp32_step_time", "step in FP32", first, false),
                    counted("speedup", "speedup", gain),
                    {"peak_memory", "peak memory", Unit::Byte, peak, {}, {}, {}},
                    {"fp32_peak_memory", "peak memory in FP32", Unit::Byte, singlePeak, {}, {}, {}},
                    counted("memory_ratio", "memory against FP32", peak / singlePeak),
                    counted("skipped_steps", "skipped steps", skipped),
                    counted("unscaled_underflow_share", "gradients lost without scaling", plain.underflow),
                    counted("underflow_share", "gradients that become zero", lost.underflow),
                    counted("subnormal_share", "gradients with fewer bits", lost.subnormal),
                    counted("overflow_share", "gradients that overflow", lost.overflow),
                    counted("gradient_median", "median |g|", m_gradients.median()),
                    counted("gradient_spread", "spread of log2 |g| (bits)", m_gradients.spreadBits()),
                    counted("largest_gradient", "largest |g|", m_gradients.largest()),
                    counted("final_scale", "loss scale at the end", double(chosen().steps.back().scale))};
    for (const AmpCourse& course : m_courses)
        figures.push_back(counted(fmt::format("{}_final_loss", course.key),
                                  fmt::format("loss at the end, {}", course.label), course.finalLoss()));
    if (auto stored = m_machine.stored(m_asked.format, m_asked.value))
        figures.push_back(std::move(*stored));
    return figures;
}

std::vector<Series> TrainingRun::lossSeries() const
{
    std::vector<Series> all;
    const auto make = [&](const AmpCourse& course, const std::string& key, const std::string& label,
                          const std::string& quantity, auto value) {
        Series series;
        series.key = key;
        series.label = label;
        series.x = {"step", "step", Unit::One, AxisScale::Linear, {}, {}};
        series.yLabel = quantity;
        for (std::size_t i = 0; i < course.steps.size(); ++i) {
            series.x.values.push_back(double(i + 1));
            series.y.push_back(value(course.steps[i]));
        }
        all.push_back(std::move(series));
    };
    for (const AmpCourse& course : m_courses)
        make(course, "loss_" + course.key, "loss, " + course.label, "loss",
             [](const TrainedStep& step) { return step.loss; });
    if (m_asked.format == Format::Fp16)
        make(chosen(), "scale", "loss scale", "loss scale", [](const TrainedStep& step) { return double(step.scale); });
    return all;
}

Json TrainingRun::detail() const
{
    Json skipped = Json::array();
    for (std::size_t i = 0; i < chosen().steps.size(); ++i) {
        if (chosen().steps[i].isSkipped)
            skipped.push_back(i + 1);
    }
    return {{"histogram", histogramJson(m_gradients.histogram())},
            {"gradients_counted", m_gradients.count()},
            {"skipped_steps", std::move(skipped)}};
}

MergedSamples TrainingRun::samples() const
{
    MergedSamples all;
    for (const AmpCourse& course : m_courses) {
        std::vector<double> seconds;
        for (const TrainedStep& step : course.steps)
            seconds.push_back(step.seconds);
        all["step_time_" + course.key].add(0, seconds);
    }
    return all;
}

class TrainingMeasurer final : public PointMeasurer
{
public:
    TrainingMeasurer(TrainingMachine& machine, const Experiment& experiment, const Parameters& parameters)
        : m_machine(machine)
        , m_experiment(experiment)
        , m_parameters(parameters)
    { }

    Result<void> visit(std::size_t index, const Parameters& at, int) override
    {
        MEMSCAPE_CHECK(checkTrained(at));
        TrainingRun run(m_machine, precisionCase(at));
        MEMSCAPE_CHECK(run.run());
        m_method = run.method();
        const bool isComplete = run.isComplete();
        m_runs.erase(index);
        m_runs.emplace(index, Taken{std::move(run), at.number("loss_scale")});
        return isComplete ? Result<void>() : fail("run.cancelled", "the measurement was stopped");
    }

    Point point(std::size_t index) const override
    {
        const auto taken = m_runs.find(index);
        if (taken == m_runs.end())
            return {};
        return {0, {}, taken->second.run.figures(taken->second.lossScale), taken->second.run.detail()};
    }
    MergedSamples samples(std::size_t index) const override
    {
        const auto taken = m_runs.find(index);
        return taken == m_runs.end() ? MergedSamples() : taken->second.run.samples();
    }
    Quality quality(std::size_t index) const override
    {
        const auto taken = m_runs.find(index);
        return taken == m_runs.end() ? Quality{'D', "no samples"} : taken->second.run.quality();
    }
    Json method() const override { return m_method; }
    bool runsWhole() const override { return true; }

    /// Without a sweep: the losses over the steps, and what its gradients say of every loss scale.
    void complete(Measurement& measurement) const override
    {
        if (m_parameters.sweep() || m_runs.empty())
            return;
        const TrainingRun& run = m_runs.begin()->second.run;
        std::vector<Point> points;
        for (const ParameterValue& value : sweepOf(m_experiment, m_machine.device(), m_parameters).values) {
            const double x = std::get<double>(value);
            Figures figures = run.figures(x);
            std::erase_if(figures, [&](const Figure& figure) {
                return x != m_parameters.number("loss_scale") && !figure.key.ends_with("_share");
            });
            points.push_back({x, valueText(value), std::move(figures), {}});
        }
        measurement.series =
            outcomeFromPoints(m_experiment, m_machine.device(), m_parameters, std::move(points)).series;
        std::erase_if(measurement.series, [](const Series& series) {
            return series.key == "step_time" || series.key == "peak_memory" || series.key == "speedup";
        });
        for (Series& series : run.lossSeries())
            measurement.series.push_back(std::move(series));
    }

private:
    struct Taken
    {
        TrainingRun run;
        double lossScale = 1;
    };

    TrainingMachine& m_machine;
    const Experiment& m_experiment;
    const Parameters& m_parameters;
    std::map<std::size_t, Taken> m_runs;
    Json m_method = Json::object();
};

} // namespace

Result<void> checkTrained(const Parameters& parameters)
{
    if (auto recipe = trainingRecipe(precisionCase(parameters).format); !recipe) {
        Error error = recipe.error();
        error.code = "run.skipped";
        return fail(std::move(error));
    }
    return {};
}

std::unique_ptr<PointMeasurer> makeTrainingMeasurer(TrainingMachine& machine, const Experiment& experiment,
                                                    const Parameters& parameters)
{
    return std::make_unique<TrainingMeasurer>(machine, experiment, parameters);
}

} // namespace memscape
