// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/amp_training.h"

#include "kernels/measure/timed_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
    std::unique_ptr<AmpTrainer> trainer;
    std::vector<TrainedStep> steps;

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
    Json samples() const;
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
    m_courses.push_back({key, label, std::move(trainer), {}});
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
    const auto peak = double(chosen().trainer->highWater());
    const auto singlePeak = double(single().trainer->highWater());
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
        series.x = {"step", "step", Unit::One, "linear", {}, {}};
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
    return {{"quality", {{"grade", std::string(1, m_quality.grade)}, {"reason", m_quality.reason}}},
            {"histogram", histogramJson(m_gradients.histogram())},
            {"gradients_counted", m_gradients.count()},
            {"skipped_steps", std::move(skipped)}};
}

Json TrainingRun::samples() const
{
    Json all = Json::array();
    for (const AmpCourse& course : m_courses) {
        Json values = Json::array();
        for (const TrainedStep& step : course.steps)
            values.push_back(jsonNumber(step.seconds));
        all.push_back({{"key", "step_time_" + course.key}, {"unit", "s"}, {"values", std::move(values)}});
    }
    return all;
}

/// What a run gives a record; without a sweep its gradients answer for every loss scale.
void addRun(MeasuredRun& record, const TrainingRun& run, const Experiment& experiment, const Device& device,
            const Parameters& parameters)
{
    const Sweep sweep = sweepOf(experiment, device, parameters);
    std::vector<Point> points;
    for (const ParameterValue& value : sweep.values) {
        const double x = std::get<double>(value);
        Figures figures = run.figures(x);
        if (!parameters.sweep()) { // the rest is of the one run
            std::erase_if(figures, [&](const Figure& figure) {
                return x != parameters.number("loss_scale") && !figure.key.ends_with("_share");
            });
        }
        points.push_back({x, valueText(value), std::move(figures), {}});
    }
    record.measurement = outcomeFromPoints(experiment, device, parameters, std::move(points));
    std::erase_if(record.measurement.series, [](const Series& series) {
        return series.key == "step_time" || series.key == "peak_memory" || series.key == "speedup";
    });
    for (Series& series : run.lossSeries())
        record.measurement.series.push_back(std::move(series));
    record.measurement.detail = run.detail();
}

Result<MeasuredRun> sweepOfRuns(TrainingMachine& machine, const Experiment& experiment, const Parameters& parameters)
{
    const Sweep& sweep = *parameters.sweep();
    const SeriesAxis axis = axisOf(experiment, sweep);
    std::vector<Point> points;
    Json details = Json::array(), samples = Json::array(), method;
    Quality worst{'A', "every point"};
    bool isComplete = true;
    for (std::size_t i = 0; i < sweep.values.size() && isComplete; ++i) {
        const Parameters own = parameters.at(sweep.key, sweep.values[i]);
        TrainingRun run(machine, precisionCase(own));
        if (auto taken = run.run(); !taken) {
            if (points.empty() || taken.error().code != "run.cancelled")
                return fail(std::move(taken).error());
            isComplete = false;
            break;
        }
        points.push_back({axis.values[i], valueText(sweep.values[i]), run.figures(own.number("loss_scale")), {}});
        machine.sink().point(sweep.key, points.back());
        Json detail = run.detail();
        detail["x"] = jsonNumber(axis.values[i]);
        detail["name"] = valueText(sweep.values[i]);
        details.push_back(std::move(detail));
        samples.push_back({{"x", jsonNumber(axis.values[i])}, {"steps", run.samples()}});
        worst = worse(worst, run.quality());
        method = run.method();
        isComplete = run.isComplete();
    }
    MeasuredRun record;
    record.complete = isComplete;
    record.measurement = outcomeFromPoints(experiment, machine.device(), parameters, std::move(points));
    record.measurement.detail["points"] = std::move(details);
    record.provenance = machine.provenance();
    record.provenance.update({{"method", std::move(method)},
                              {"samples", std::move(samples)},
                              {"grade", std::string(1, worst.grade)},
                              {"reason", worst.reason},
                              {"complete", isComplete}});
    return record;
}

} // namespace

Result<MeasuredRun> measureTraining(TrainingMachine& machine, const Experiment& experiment,
                                    const Parameters& parameters)
{
    if (auto recipe = trainingRecipe(precisionCase(parameters).format); !recipe) {
        Error error = recipe.error();
        error.code = "run.skipped";
        return fail(std::move(error));
    }
    if (parameters.sweep())
        return sweepOfRuns(machine, experiment, parameters);
    TrainingRun run(machine, precisionCase(parameters));
    MEMSCAPE_CHECK(run.run());
    MeasuredRun record;
    record.complete = run.isComplete();
    addRun(record, run, experiment, machine.device(), parameters);
    record.provenance = machine.provenance();
    record.provenance.update({{"method", run.method()},
                              {"samples", run.samples()},
                              {"grade", std::string(1, run.quality().grade)},
                              {"reason", run.quality().reason},
                              {"complete", run.isComplete()}});
    return record;
}

} // namespace memscape
