// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/roofline/roofline_run.h"

#include "core/experiment/record.h"
#include "core/experiments/roofline/roofline.h"
#include "kernels/measure/quality.h"

#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

struct Note
{
    std::string level, code, text;
    bool operator<(const Note& other) const
    {
        return std::tie(level, code, text) < std::tie(other.level, other.code, other.text);
    }
};

/// The sink while one kernel is measured: Stop is passed on, its own progress and points are not, and
/// its notes are kept until it is known how it ended.
class KernelSink final : public RunSink
{
public:
    explicit KernelSink(RunSink& outer)
        : m_outer(outer)
    { }
    void progress(int, int, const std::string&) override { }
    void point(const std::string&, const Point&) override { }
    void note(const std::string& level, const std::string& code, const std::string& text) override
    {
        m_notes.push_back({level, code, text});
    }
    bool cancelled() const override { return m_outer.cancelled(); }
    bool isForced() const override { return m_outer.isForced(); }

    /// Tells what no kernel before has said, but not what the kernel's own error says again.
    void tell(const std::string& failure, std::set<Note>& told)
    {
        for (const Note& note : m_notes) {
            if (note.code != failure && told.insert(note).second)
                m_outer.note(note.level, note.code, note.text);
        }
    }

private:
    RunSink& m_outer;
    std::vector<Note> m_notes;
};

struct Measured
{
    Figures figures;
    Json points = Json::array(), samples = Json::array(), methods = Json::object();
    Quality worst{'A', "every kernel"};
    std::set<Note> told;
};

/// What no machine counts, the bytes of attention, is the model's.
Result<Figures> withModelledBytes(const Device& device, const RooflineKernel& kernel, const Experiment& experiment,
                                  Parameters parameters, Figures measured)
{
    const std::string key = kernel.prefix + "hbm_bytes";
    if (kernel.experiment != "attention" || findFigure(measured, key) != nullptr)
        return measured;
    if (const auto& sweep = parameters.sweep()) // its one value
        parameters = parameters.at(sweep->key, sweep->values.front());
    MEMSCAPE_TRY(predicted, experiment.predictPoint(device, parameters));
    if (const Figure* bytes = findFigure(predicted, key))
        measured.push_back(*bytes);
    return measured;
}

/// One kernel, into `all`. Errors: run.cancelled, and what its experiment says.
Result<void> measureKernel(const Device& device, const RooflineKernel& kernel, RunSink& sink,
                           const MeasureKernel& measure, Measured& all)
{
    MEMSCAPE_TRY(experiment, findExperiment(kernel.experiment));
    MEMSCAPE_TRY(parameters, rooflineParameters(kernel));
    if (kernel.experiment == "checkpoint") // a chain's point is its own, without a sweep
        parameters.setSweep({});
    KernelSink quiet(sink);
    auto measured = measure(*experiment, parameters, quiet);
    quiet.tell(measured ? std::string() : measured.error().code, all.told);
    MEMSCAPE_TRY(run, std::move(measured));
    if (!run.complete)
        return fail("run.cancelled", "the measurement was stopped");
    MEMSCAPE_TRY(figures, withModelledBytes(device, kernel, *experiment, parameters, run.measurement.figures));
    const auto point = rooflinePoint(kernel, figures);
    if (!point)
        return fail("run.failed", "the measurement lacks its time, operations or bytes");
    addRooflineFigures(all.figures, device, kernel, *point);
    Json entry = rooflineJson(device, kernel, *point);
    const Quality quality = run.provenance.quality.value_or(Quality{});
    entry["grade"] = std::string(1, quality.grade);
    all.points.push_back(std::move(entry));
    all.samples.push_back({{"kernel", kernel.id}, {"samples", std::move(run.provenance.samples)}});
    all.methods[kernel.id] = std::move(run.provenance.method);
    all.worst = worse(all.worst, {quality.grade, kernel.label + ": " + quality.reason});
    return {};
}

} // namespace

Result<MeasuredRun> runRoofline(const Device& device, RunSink& sink, const MeasureKernel& measure)
{
    const std::vector<RooflineKernel> kernels = rooflineKernels(device);
    Measured all;
    bool isComplete = true;
    for (std::size_t i = 0; i < kernels.size() && isComplete; ++i) {
        sink.progress(int(i), int(kernels.size()), kernels[i].label);
        const auto measured = measureKernel(device, kernels[i], sink, measure, all);
        if (measured)
            continue;
        const std::string& code = measured.error().code;
        if (endsRun(measured.error()))
            return fail(measured.error());
        if (code == "run.cancelled")
            isComplete = false;
        else
            sink.note("warning", code, fmt::format("{}: {}", kernels[i].label, measured.error().text()));
    }
    if (all.points.empty())
        return isComplete ? Result<MeasuredRun>(fail("run.failed", "no kernel could be measured", "see the notes"))
                          : fail("run.cancelled", "the measurement was stopped");
    MeasuredRun run;
    run.complete = isComplete;
    run.measurement.figures = std::move(all.figures);
    run.measurement.detail = {{"points", std::move(all.points)}};
    run.provenance.time = utcNow();
    run.provenance.isForced = sink.isForced();
    run.provenance.quality = std::move(all.worst);
    run.provenance.method = std::move(all.methods);
    run.provenance.samples = std::move(all.samples);
    return run;
}

} // namespace memscape
