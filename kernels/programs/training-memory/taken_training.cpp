// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/training-memory/taken_training.h"

#include "kernels/measure/timed_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

const AmpCourse& chosen(const TakenTraining& taken)
{
    return taken.courses[taken.courses.size() > 1 ? 1 : 0];
}

Figure counted(std::string key, std::string label, double value)
{
    return {std::move(key), std::move(label), Unit::One, value};
}

Figures figuresOf(const TakenTraining& taken, const PrecisionCase& asked, double lossScale,
                  const std::optional<Figure>& storedValue)
{
    const Summary seconds = chosen(taken).seconds(), first = taken.courses.front().seconds();
    const NumberFormat& format = numberFormat(asked.format);
    const MagnitudeHistogram bars = taken.gradients.histogram();
    const LostShares plain = lostShares(format, bars, 1), lost = lostShares(format, bars, lossScale);
    int skipped = 0;
    for (const TrainedStep& step : chosen(taken).steps)
        skipped += step.isSkipped;
    const double peak = chosen(taken).peak, singlePeak = taken.courses.front().peak;
    const double gain = seconds.median > 0 ? first.median / seconds.median : std::numeric_limits<double>::quiet_NaN();
    Figures figures{timeFigure("step_time", "step", seconds, false),
                    timeFigure("fp32_step_time", "step in FP32", first, false),
                    counted("speedup", "speedup", gain),
                    {"peak_memory", "peak memory", Unit::Byte, peak},
                    {"fp32_peak_memory", "peak memory in FP32", Unit::Byte, singlePeak},
                    counted("memory_ratio", "memory against FP32", peak / singlePeak),
                    counted("skipped_steps", "skipped steps", skipped),
                    counted("unscaled_underflow_share", "gradients lost without scaling", plain.underflow),
                    counted("underflow_share", "gradients that become zero", lost.underflow),
                    counted("subnormal_share", "gradients with fewer bits", lost.subnormal),
                    counted("overflow_share", "gradients that overflow", lost.overflow),
                    counted("gradient_median", "median |g|", taken.gradients.median()),
                    counted("gradient_spread", "spread of log2 |g| (bits)", taken.gradients.spreadBits()),
                    counted("largest_gradient", "largest |g|", taken.gradients.largest()),
                    counted("final_scale", "loss scale at the end", double(chosen(taken).steps.back().scale))};
    for (const AmpCourse& course : taken.courses)
        figures.push_back(counted(fmt::format("{}_final_loss", course.key),
                                  fmt::format("loss at the end, {}", course.label), course.finalLoss()));
    if (storedValue)
        figures.push_back(*storedValue);
    return figures;
}

std::vector<Series> lossSeries(const TakenTraining& taken, Format format)
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
    for (const AmpCourse& course : taken.courses)
        make(course, "loss_" + course.key, "loss, " + course.label, "loss",
             [](const TrainedStep& step) { return step.loss; });
    if (format == Format::Fp16)
        make(chosen(taken), "scale", "loss scale", "loss scale",
             [](const TrainedStep& step) { return double(step.scale); });
    return all;
}

Json detailOf(const TakenTraining& taken)
{
    Json skipped = Json::array();
    for (std::size_t i = 0; i < chosen(taken).steps.size(); ++i) {
        if (chosen(taken).steps[i].isSkipped)
            skipped.push_back(i + 1);
    }
    return {{"histogram", histogramJson(taken.gradients.histogram())},
            {"gradients_counted", taken.gradients.count()},
            {"skipped_steps", std::move(skipped)}};
}

MergedSamples samplesOf(const TakenTraining& taken)
{
    MergedSamples all;
    for (const AmpCourse& course : taken.courses) {
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
    TrainingMeasurer(std::unique_ptr<TrainingSource> source, const Experiment& experiment, const Parameters& parameters)
        : m_source(std::move(source))
        , m_experiment(experiment)
        , m_parameters(parameters)
    { }

    Result<void> visit(std::size_t index, const Parameters& at, int) override
    {
        MEMSCAPE_CHECK(checkTrained(at));
        const PrecisionCase asked = precisionCase(at);
        MEMSCAPE_TRY(taken, m_source->train(asked, at));
        m_method = taken.method;
        const bool isComplete = taken.isComplete;
        m_runs[index] = {std::move(taken), asked, m_source->stored(asked.format, asked.value)};
        return isComplete ? Result<void>() : fail("run.cancelled", "the measurement was stopped");
    }

    Point point(std::size_t index) const override
    {
        const auto run = m_runs.find(index);
        if (run == m_runs.end())
            return {};
        return {0, {}, run->second.figures(run->second.asked.lossScale), detailOf(run->second.taken)};
    }
    MergedSamples samples(std::size_t index) const override
    {
        const auto run = m_runs.find(index);
        return run == m_runs.end() ? MergedSamples() : samplesOf(run->second.taken);
    }
    Quality quality(std::size_t index) const override
    {
        const auto run = m_runs.find(index);
        return run == m_runs.end() ? Quality{'D', "no samples"} : run->second.taken.quality;
    }
    Json method() const override { return m_method; }
    bool runsWhole() const override { return true; }

    /// Without a sweep: the losses over the steps, and what its gradients say of every loss scale.
    void complete(Measurement& measurement) const override
    {
        if (m_parameters.sweep() || m_runs.empty())
            return;
        const Run& run = m_runs.begin()->second;
        const Device& device = m_source->device();
        std::vector<Point> points;
        for (const ParameterValue& value : sweepOf(m_experiment, device, m_parameters).values) {
            const double x = std::get<double>(value);
            Figures figures = run.figures(x);
            std::erase_if(figures, [&](const Figure& figure) {
                return x != m_parameters.number("loss_scale") && !figure.key.ends_with("_share");
            });
            points.push_back({x, valueText(value), std::move(figures), {}});
        }
        measurement.series = outcomeFromPoints(m_experiment, device, m_parameters, std::move(points)).series;
        std::erase_if(measurement.series, [](const Series& series) {
            return series.key == "step_time" || series.key == "peak_memory" || series.key == "speedup";
        });
        for (Series& series : lossSeries(run.taken, run.asked.format))
            measurement.series.push_back(std::move(series));
    }

private:
    struct Run
    {
        TakenTraining taken;
        PrecisionCase asked;
        std::optional<Figure> stored;

        Figures figures(double lossScale) const { return figuresOf(taken, asked, lossScale, stored); }
    };

    std::unique_ptr<TrainingSource> m_source;
    const Experiment& m_experiment;
    const Parameters& m_parameters;
    std::map<std::size_t, Run> m_runs;
    Json m_method = Json::object();
};

} // namespace

Summary AmpCourse::seconds() const
{
    std::vector<double> all, counted;              // looking at gradients in between empties queues and fills caches
    for (std::size_t i = 1; i < steps.size(); ++i) // the first meets new pages
        (steps[i].isCounted ? counted : all).push_back(steps[i].seconds);
    return summarize(all.size() > 1 ? all : counted);
}

double AmpCourse::finalLoss() const
{
    const std::size_t last = std::max<std::size_t>(1, steps.size() / 10);
    double sum = 0;
    for (std::size_t i = steps.size() - last; i < steps.size(); ++i)
        sum += steps[i].loss;
    return sum / double(last);
}

Quality qualityOf(const TakenTraining& taken, const std::function<RunConditions(std::size_t samples)>& seen)
{
    const Summary seconds = chosen(taken).seconds();
    return gradeOf(seconds, seen(seconds.count));
}

Result<void> checkTrained(const Parameters& parameters)
{
    if (auto recipe = trainingRecipe(precisionCase(parameters).format); !recipe) {
        Error error = recipe.error();
        error.code = "run.skipped";
        return fail(std::move(error));
    }
    return {};
}

std::unique_ptr<PointMeasurer> makeTrainingMeasurer(std::unique_ptr<TrainingSource> source,
                                                    const Experiment& experiment, const Parameters& parameters)
{
    return std::make_unique<TrainingMeasurer>(std::move(source), experiment, parameters);
}

} // namespace memscape
