// SPDX-License-Identifier: Apache-2.0
// `precision` in PyTorch: products, and training steps under automatic mixed precision. What is said of a training is
// said by the code that speaks of our own (taken_training.h).
#include "core/experiments/precision/precision.h"
#include "kernels/programs/precision/product_figures.h"
#include "kernels/programs/training-memory/taken_training.h"
#include "kernels/pytorch/sampled_run.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

/// The value after PyTorch's conversion to the format and back.
Result<std::optional<double>> storedOf(const JsonReader& detail)
{
    if (!detail.has("stored") || detail.node()["stored"].is_null())
        return std::optional<double>();
    MEMSCAPE_TRY(value, detail.number("stored"));
    return std::optional<double>(value);
}

std::optional<Figure> storedAs(const std::optional<double>& value)
{
    if (!value)
        return {};
    return Figure{"stored_value", "value as stored", Unit::One, *value};
}

class ProductInPytorch final : public ProbedMeasurement
{
public:
    using ProbedMeasurement::ProbedMeasurement;

    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override
    {
        return productFigures(precisionCase(point), samples, storedAs(m_stored));
    }

protected:
    Result<void> add(Json&, const Parameters&) const override { return {}; }
    Result<void> take(const Parameters&, const JsonReader& detail) override
    {
        MEMSCAPE_TRY(stored, storedOf(detail));
        m_stored = stored;
        return {};
    }

private:
    std::optional<double> m_stored; ///< of the last visit, whose figures are asked for next
};

Result<std::vector<double>> stepNumbers(const JsonReader& reader, const char* key)
{
    MEMSCAPE_TRY(array, reader.at(key));
    return array.numbers();
}

Result<std::vector<bool>> flagsAt(const JsonReader& reader, const char* key)
{
    MEMSCAPE_TRY(array, reader.at(key));
    MEMSCAPE_TRY(items, array.items());
    std::vector<bool> flags;
    for (const JsonReader& item : items) {
        MEMSCAPE_TRY(flag, item.boolean());
        flags.push_back(flag);
    }
    return flags;
}

Result<AmpCourse> courseFromJson(const JsonReader& reader)
{
    AmpCourse course;
    MEMSCAPE_TRY(key, reader.string("key", ""));
    course.key = key;
    const std::string format = key.substr(0, key.find('_'));
    course.label = std::string(numberFormat(formatFromText(format).value_or(Format::Fp32)).label)
        + (key.ends_with("_unscaled") ? ", not scaled" : "");
    MEMSCAPE_TRY(peak, reader.at("peak"));
    MEMSCAPE_TRY(peakBytes, peak.numberOrNan());
    course.peak = peakBytes; // null when it was stopped before that step
    MEMSCAPE_TRY(losses, stepNumbers(reader, "loss"));
    MEMSCAPE_TRY(seconds, stepNumbers(reader, "seconds"));
    MEMSCAPE_TRY(scales, stepNumbers(reader, "scale"));
    MEMSCAPE_TRY(skipped, flagsAt(reader, "skipped"));
    MEMSCAPE_TRY(counted, flagsAt(reader, "counted"));
    const std::size_t count = losses.size();
    if (count == 0 || seconds.size() != count || scales.size() != count || skipped.size() != count
        || counted.size() != count)
        return fail("probe.steps", "the lists of a course's steps differ in length", "use the probe of this version",
                    reader.path());
    for (std::size_t i = 0; i < count; ++i)
        course.steps.push_back({losses[i], seconds[i], float(scales[i]), skipped[i], counted[i]});
    return course;
}

Result<GradientCounts> countsFromJson(const JsonReader& reader)
{
    GradientCounts counts;
    MEMSCAPE_TRY(bars, stepNumbers(reader, "bars"));
    for (const double bar : bars)
        counts.bars.push_back(std::uint64_t(std::max(bar, 0.0)));
    MEMSCAPE_TRY(zeros, reader.number("zeros", 0.0));
    counts.zeros = std::uint64_t(std::max(zeros, 0.0));
    MEMSCAPE_TRY(largest, reader.number("largest", 0.0));
    MEMSCAPE_TRY(sum, reader.number("sum", 0.0));
    MEMSCAPE_TRY(squares, reader.number("squares", 0.0));
    counts.largest = largest;
    counts.sum = sum;
    counts.squares = squares;
    return counts;
}

class TrainingInPytorch final : public TrainingSource
{
public:
    explicit TrainingInPytorch(PytorchProbe& probe)
        : m_probe(probe)
        , m_watch(probe.device().device)
    { }

    const Device& device() const override { return m_probe.device().device; }

    Result<TakenTraining> train(const PrecisionCase& asked, const Parameters& at) override
    {
        Parameters there = at;
        there.setSweep({});
        Json words = parametersToJson(there);
        words["visit"] = visitWords(device(), 0, 0);
        m_watch.begin();
        MEMSCAPE_TRY(done, m_probe.run("precision", std::move(words)));
        if (done.error && (done.error->code != "run.cancelled" || !done.result.is_object()))
            return fail(*done.error);
        const JsonReader result(done.result, "result");
        MEMSCAPE_TRY(detail, result.at("detail"));
        MEMSCAPE_TRY(taken, takenFromJson(detail));
        taken.isComplete = !done.error;
        taken.quality = qualityOf(taken, [this](std::size_t samples) { return m_watch.end(samples); });
        const TrainedNetwork network = trainedNetwork(asked.shape);
        taken.method["task"] =
            fmt::format("{} → {} → {} → {} classes, new batches of {}: which of {} random directions the input points "
                        "along most; batches and first weights are those of Memscape's own programs",
                        network.inputs, network.hidden, network.hidden, TrainedNetwork::classes, network.batch,
                        TrainedNetwork::classes);
        return taken;
    }

    std::optional<Figure> stored(Format, double) override { return storedAs(m_stored); }

private:
    Result<TakenTraining> takenFromJson(const JsonReader& detail)
    {
        TakenTraining taken;
        MEMSCAPE_TRY(courses, detail.at("courses"));
        MEMSCAPE_TRY(items, courses.items());
        for (const JsonReader& item : items) {
            MEMSCAPE_TRY(course, courseFromJson(item));
            taken.courses.push_back(std::move(course));
        }
        if (taken.courses.empty())
            return fail("probe.steps", "there is no course", "use the probe of this version", courses.path());
        MEMSCAPE_TRY(gradients, detail.at("gradients"));
        MEMSCAPE_TRY(counts, countsFromJson(gradients));
        taken.gradients.add(counts);
        MEMSCAPE_TRY(stored, storedOf(detail));
        m_stored = stored;
        if (detail.has("method"))
            taken.method = detail.node()["method"];
        return taken;
    }

    PytorchProbe& m_probe;
    ProbeWatch m_watch;
    std::optional<double> m_stored; ///< of the last training
};

} // namespace

Result<MeasuredRun> measurePrecisionInPytorch(PytorchProbe& probe, const Experiment& experiment,
                                              const Parameters& parameters)
{
    if (!precisionCase(parameters).trains())
        return runSampled<ProductInPytorch>(probe, experiment, parameters);
    MEMSCAPE_CHECK(checkTrained(parameters));
    return runProbed(probe, experiment, parameters,
                     *makeTrainingMeasurer(std::make_unique<TrainingInPytorch>(probe), experiment, parameters));
}

} // namespace memscape
