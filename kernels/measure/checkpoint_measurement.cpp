// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/checkpoint_measurement.h"

#include "core/experiments/checkpoint/checkpoint.h"
#include "kernels/measure/sweep_run.h"

#include <optional>

#include <fmt/format.h>

namespace memscape {

namespace {

Json gradeJson(const Quality& quality)
{
    return {{"grade", std::string(1, quality.grade)}, {"reason", quality.reason}};
}

/// A sweep's points, one chain after the other.
class SweepOfChains
{
public:
    SweepOfChains(const Experiment& experiment, const Device& device, const Parameters& parameters, RunSink& sink)
        : m_experiment(experiment)
        , m_device(device)
        , m_parameters(parameters)
        , m_sink(sink)
        , m_sweep(sweepOf(experiment, device, parameters))
        , m_axis(axisOf(experiment, m_sweep))
    { }

    Result<MeasuredRun> run(const std::function<Result<ChainRun>(const ChainTask&)>& runTask, Json provenance)
    {
        for (std::size_t i = 0; i < m_sweep.values.size(); ++i) {
            const auto measured = visit(i, runTask);
            if (measured)
                continue;
            if (measured.error().code == "run.cancelled") {
                if (m_points.empty())
                    return fail(measured.error());
                m_complete = false;
                break;
            }
            m_error = measured.error();
            if (endsRun(m_error))
                return fail(m_error);
            m_sink.note("warning", m_error.code,
                        fmt::format("{} {}: {}", m_sweep.key, valueText(m_sweep.values[i]), m_error.text()));
        }
        if (m_points.empty())
            return fail(m_error);
        return finished(std::move(provenance));
    }

private:
    Result<void> visit(std::size_t index, const std::function<Result<ChainRun>(const ChainTask&)>& runTask)
    {
        MEMSCAPE_TRY(task, chainTask(m_device, m_parameters.at(m_sweep.key, m_sweep.values[index])));
        MEMSCAPE_TRY(run, runTask(task));
        Point point{m_axis.values[index], valueText(m_sweep.values[index]), chainFigures(run),
                    sampledDetail(run.quality, {{"makespan", run.steps}})};
        m_sink.point(m_sweep.key, point);
        m_overall = m_points.empty() ? run.quality : worse(m_overall, run.quality);
        Json detail = chainRunDetail(run);
        detail.update(point.detail);
        detail["x"] = jsonNumber(point.x);
        detail["name"] = point.name;
        m_details.push_back(std::move(detail));
        for (Json& samples : chainSamples(run, m_sweep.values.size())) {
            samples["x"] = jsonNumber(point.x);
            m_samples.push_back(std::move(samples));
        }
        m_method = run.method;
        if (index == 0) // the parameters' own point
            m_memory = chainMemorySeries(run);
        m_points.push_back(std::move(point));
        m_complete = m_complete && run.complete;
        return run.complete ? Result<void>() : fail("run.cancelled", "the measurement was stopped");
    }

    MeasuredRun finished(Json provenance)
    {
        MeasuredRun run;
        run.complete = m_complete;
        run.measurement = outcomeFromPoints(m_experiment, m_device, m_parameters, std::move(m_points));
        if (m_memory)
            run.measurement.series.insert(run.measurement.series.begin(), std::move(*m_memory));
        run.measurement.detail["quality"] = gradeJson(m_overall);
        run.measurement.detail["points"] = std::move(m_details);
        run.provenance = std::move(provenance);
        run.provenance["method"] = std::move(m_method);
        run.provenance["samples"] = std::move(m_samples);
        run.provenance.update(gradeJson(m_overall));
        run.provenance["complete"] = m_complete;
        return run;
    }

    const Experiment& m_experiment;
    const Device& m_device;
    const Parameters& m_parameters;
    RunSink& m_sink;
    Sweep m_sweep;
    SeriesAxis m_axis;
    std::vector<Point> m_points;
    Json m_details = Json::array(), m_samples = Json::array(), m_method;
    std::optional<Series> m_memory;
    Quality m_overall;
    Error m_error;
    bool m_complete = true;
};

} // namespace

Result<ChainTask> chainTask(const Device& device, const Parameters& parameters)
{
    const std::string& chain = parameters.text("chain");
    if (!isMlpText(chain))
        return fail("run.skipped",
                    fmt::format("the chain \"{}\" is numbers without operations: it can be predicted, not run", chain),
                    "choose mlp:DEPTHxWIDTH, e.g. mlp:12x2048: its products and activations are real", "chain");
    MEMSCAPE_TRY(answer, answerCheckpoint(device, parameters));
    const std::int64_t batch = parameters.integer("batch");
    MEMSCAPE_TRY(shape, parseMlpShape(chain, batch > 0 ? batch : MlpShape().batch));
    if (answer.chosen.missing)
        return fail(*answer.chosen.missing);
    if (!answer.chosen.hasSchedule())
        return fail("run.skipped", "the strategy has no schedule for this budget",
                    "choose a larger budget or strategy=optimal", "budget");
    return ChainTask{shape, std::move(answer.chosen.schedule)};
}

Result<MeasuredRun> measureCheckpoint(const Experiment& experiment, const Device& device, const Parameters& parameters,
                                      RunSink& sink, const std::function<Result<ChainRun>(const ChainTask&)>& runTask,
                                      Json provenance)
{
    if (parameters.sweep())
        return SweepOfChains(experiment, device, parameters, sink).run(runTask, std::move(provenance));
    MEMSCAPE_TRY(task, chainTask(device, parameters));
    MEMSCAPE_TRY(measured, runTask(task));
    MeasuredRun run;
    run.complete = measured.complete;
    run.measurement.figures = chainFigures(measured);
    run.measurement.series = {chainMemorySeries(measured)};
    run.measurement.detail = chainRunDetail(measured);
    run.provenance = std::move(provenance);
    run.provenance["method"] = measured.method;
    run.provenance["samples"] = chainSamples(measured);
    run.provenance.update(gradeJson(measured.quality));
    run.provenance["complete"] = measured.complete;
    return run;
}

} // namespace memscape
