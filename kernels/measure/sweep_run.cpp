// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/sweep_run.h"

#include "core/experiment/predicted_points.h"
#include "core/experiment/record.h"
#include "kernels/measure/kept_samples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

/// One point of the sweep while it fills.
struct SweepPoint
{
    double x = 0; ///< not a number when there is no sweep
    std::string name;
    std::string label; ///< for people: "working set 192 MiB"
    Parameters parameters;
    bool isVisited = false;
    double visitSeconds = 0;    ///< of the last visit
    std::optional<Error> error; ///< why it could not be measured; later passes leave it out
};

std::vector<SweepPoint> pointsOf(const Experiment& experiment, const Sweep& sweep, const Parameters& parameters)
{
    const SeriesAxis axis = axisOf(experiment, sweep);
    std::vector<SweepPoint> points;
    for (std::size_t i = 0; i < sweep.values.size(); ++i) {
        SweepPoint point;
        point.x = axis.values[i];
        point.name = valueText(sweep.values[i]);
        point.label = pointLabel(experiment, sweep, sweep.values[i]);
        point.parameters = parameters.at(sweep.key, sweep.values[i]);
        points.push_back(std::move(point));
    }
    return points;
}

/// A sweep of the parameters themselves alone.
std::vector<SweepPoint> onePoint(const Experiment& experiment, const Parameters& parameters)
{
    SweepPoint point;
    point.x = std::numeric_limits<double>::quiet_NaN();
    point.label = experiment.title();
    point.parameters = parameters;
    return {std::move(point)};
}

class SweepRun
{
public:
    SweepRun(const Experiment& experiment, const Parameters& parameters, PointMeasurer& measurer, SweepMachine& machine)
        : m_experiment(experiment)
        , m_parameters(parameters)
        , m_measurer(measurer)
        , m_machine(machine)
        , m_sweep(sweepOf(experiment, machine.device(), parameters))
        , m_isSingle(measurer.runsWhole() && !parameters.sweep())
        , m_points(m_isSingle ? onePoint(experiment, parameters) : pointsOf(experiment, m_sweep, parameters))
    { }

    Result<MeasuredRun> run()
    {
        m_begin = m_machine.clock().now();
        MEMSCAPE_CHECK(visitAll());
        MEMSCAPE_CHECK(checkAnyMeasured());
        noteDisagreement();
        m_machine.finished();
        return result();
    }

private:
    double elapsed() const { return m_machine.clock().now() - m_begin; }
    bool hasBudget() const { return std::isfinite(m_machine.budget()); }
    int passes() const { return m_measurer.runsWhole() ? 1 : sweepPasses; }

    Result<void> visitAll()
    {
        const std::vector<Visit> visits = order();
        const int all = static_cast<int>(visits.size());
        RunSink& sink = m_machine.sink();
        int done = 0;
        for (const Visit& visit : visits) {
            SweepPoint& point = m_points[visit.point];
            m_complete = !sink.cancelled();
            if (!m_complete)
                return {};
            if (!m_measurer.runsWhole()) // a whole run says itself how far it is
                sink.progress(progress(done++, visits.size()), all,
                              fmt::format("{} · pass {} of {}", point.label, visit.pass + 1, sweepPasses));
            if (point.error || (visit.pass > 0 && exceedsBudget(point)))
                continue;
            if (auto visited = this->visit(visit); !visited) {
                if (visited.error().code == "run.cancelled") {
                    m_complete = false;
                    if (!point.isVisited && !m_measurer.point(visit.point).figures.empty())
                        take(visit.point);
                    return {};
                }
                if (isAsked(point) || endsRun(visited.error()))
                    return visited;
                giveUp(visit.point, std::move(visited).error());
            }
        }
        sink.progress(all, all, {});
        return {};
    }

    /// In random order, the point that was asked for first; whole runs as the sweep has them.
    std::vector<Visit> order() const
    {
        if (m_measurer.runsWhole()) {
            std::vector<Visit> visits;
            for (std::size_t i = 0; i < m_points.size(); ++i)
                visits.push_back({0, i});
            return visits;
        }
        auto visits = interleaved(m_points.size(), sweepPasses, 1);
        const auto first =
            std::ranges::find_if(visits, [this](const Visit& visit) { return isAsked(m_points[visit.point]); });
        if (first != visits.end())
            std::rotate(visits.begin(), first, first + 1);
        return visits;
    }

    /// Without a sweep of the user's the run is about the parameters' own point, and the rest of the
    /// curve is what surrounds it: no point of that is worth a minute when the one asked for fails.
    bool isAsked(const SweepPoint& point) const
    {
        return !m_parameters.sweep() && point.parameters.values() == m_parameters.values();
    }

    /// Whether another visit of the point would end after the budget, as its last one took.
    bool exceedsBudget(const SweepPoint& point) const
    {
        return hasBudget() && elapsed() + point.visitSeconds > m_machine.budget();
    }

    /// Visits that are done of all, in time: later passes are left out once the budget is spent.
    int progress(int done, std::size_t all) const
    {
        const double share =
            hasBudget() ? std::min(elapsed() / m_machine.budget(), double(done) / double(m_points.size())) : 0;
        return std::min(std::max(done, static_cast<int>(share * double(all))), static_cast<int>(all));
    }

    Result<void> visit(const Visit& visit)
    {
        SweepPoint& point = m_points[visit.point];
        const double start = elapsed();
        MEMSCAPE_CHECK(m_measurer.visit(visit.point, point.parameters, visit.pass));
        take(visit.point);
        m_machine.visited();
        point.visitSeconds = elapsed() - start;
        return {};
    }

    void take(std::size_t index)
    {
        m_points[index].isVisited = true;
        if (!m_isSingle) // the detail of a whole run, a schedule with its profile, comes with the result
            m_machine.sink().point(m_sweep.key, shown(index, !m_measurer.runsWhole()));
    }

    /// One point that cannot be measured leaves the others: the largest working set of a sweep may be
    /// more than the machine has.
    void giveUp(std::size_t index, Error error)
    {
        SweepPoint& point = m_points[index];
        m_machine.forgetError();
        m_machine.sink().note("warning", error.code, fmt::format("{}: {}", point.label, error.text()));
        point.isVisited = true;
        point.error = std::move(error);
        m_machine.sink().point(m_sweep.key, shown(index));
    }

    /// With the grade of its samples; without figures where it could not be measured.
    Point shown(std::size_t index, bool withOwnDetail = true) const
    {
        const SweepPoint& point = m_points[index];
        if (point.error)
            return refusedPoint(point.x, point.name, *point.error);
        Point shown{point.x, point.name, {}, Json::object()};
        Point measured = m_measurer.point(index);
        shown.figures = std::move(measured.figures);
        shown.detail = sampledDetail(m_measurer.quality(index), m_measurer.samples(index));
        if (withOwnDetail && measured.detail.is_object())
            shown.detail.update(measured.detail);
        return shown;
    }

    bool isMeasured(const SweepPoint& point) const { return point.isVisited && !point.error; }

    Result<void> checkAnyMeasured() const
    {
        if (std::ranges::any_of(m_points, [this](const SweepPoint& point) { return isMeasured(point); }))
            return {};
        if (!m_complete)
            return fail("run.cancelled", "the measurement was stopped before its first point");
        for (const SweepPoint& point : m_points) {
            if (point.error)
                return fail(*point.error);
        }
        return fail("run.failed", "the sweep has no points");
    }

    /// Says once what differs between passes by so much that an average would hide two states of the machine.
    void noteDisagreement()
    {
        for (std::size_t i = 0; i < m_points.size(); ++i) {
            if (!isMeasured(m_points[i]))
                continue;
            const Figures figures = m_measurer.point(i).figures;
            for (const auto& [key, samples] : m_measurer.samples(i)) {
                const std::string note =
                    samples.note(fmt::format("{} at {}", sampledName(figures, key), m_points[i].label));
                if (!note.empty())
                    return m_machine.sink().note("warning", "pass.disagrees", note);
            }
        }
    }

    MeasuredRun result()
    {
        std::vector<Point> points;
        Json details = Json::array();
        Quality overall{'A', "every point"};
        for (std::size_t i = 0; i < m_points.size(); ++i) {
            const SweepPoint& point = m_points[i];
            if (!point.isVisited)
                continue;
            points.push_back(shown(i));
            Json entry = points.back().detail;
            if (!m_isSingle) {
                entry["x"] = jsonNumber(point.x);
                entry["name"] = point.name;
            }
            details.push_back(std::move(entry));
            if (isMeasured(point)) {
                Quality quality = m_measurer.quality(i);
                if (!m_isSingle)
                    quality.reason = fmt::format("{}: {}", point.label, quality.reason);
                overall = m_isSingle ? quality : worse(overall, quality);
            }
        }
        MeasuredRun run;
        run.complete = m_complete;
        if (m_isSingle)
            run.measurement = {std::move(points.front().figures), {}, Json::object()};
        else
            run.measurement = outcomeFromPoints(m_experiment, m_machine.device(), m_parameters, std::move(points));
        run.measurement.detail["quality"] = {{"grade", std::string(1, overall.grade)}, {"reason", overall.reason}};
        if (m_isSingle)
            run.measurement.detail.update(details.front());
        else
            run.measurement.detail["points"] = std::move(details);
        m_measurer.complete(run.measurement);
        run.provenance = provenance(overall);
        return run;
    }

    Provenance provenance(const Quality& overall)
    {
        Provenance provenance;
        provenance.machine = m_machine.facts();
        provenance.time = utcNow();
        provenance.isForced = m_machine.sink().isForced();
        provenance.passes = passes();
        if (hasBudget())
            provenance.budget = m_machine.budget(); // after it points keep the passes that they have
        provenance.quality = overall;
        provenance.method = m_measurer.method();
        provenance.samples = keptOfAll();
        return provenance;
    }

    Json keptOfAll() const
    {
        std::vector<std::pair<double, MergedSamples>> sampled;
        std::size_t sets = 0;
        for (std::size_t i = 0; i < m_points.size(); ++i) {
            MergedSamples samples = m_measurer.samples(i);
            std::erase_if(samples,
                          [](const auto& set) { return set.second.merged().empty(); }); // of a point that failed
            sets += samples.size();
            sampled.emplace_back(m_points[i].x, std::move(samples));
        }
        Json all = Json::array();
        for (const auto& [x, samples] : sampled) {
            for (const auto& [key, set] : samples) {
                Json one = m_isSingle ? Json::object() : Json{{"x", jsonNumber(x)}};
                one.update(keptSamples(key, set.merged(), keptPerSet(sets)));
                all.push_back(std::move(one));
            }
        }
        return all;
    }

    const Experiment& m_experiment;
    const Parameters& m_parameters;
    PointMeasurer& m_measurer;
    SweepMachine& m_machine;
    Sweep m_sweep;
    bool m_isSingle; ///< one whole run without a sweep
    std::vector<SweepPoint> m_points;
    double m_begin = 0;
    bool m_complete = true;
};

} // namespace

std::string sampledName(const Figures& figures, const std::string& key)
{
    if (const Figure* figure = findFigure(figures, key))
        return figure->unit == Unit::Second ? figure->label : "time behind " + figure->label;
    std::string words = key;
    std::replace(words.begin(), words.end(), '_', ' ');
    return words;
}

Json sampledDetail(const Quality& quality, const MergedSamples& samples)
{
    Json sets = Json::object();
    for (const auto& [key, set] : samples) {
        const Summary summary = summarize(set.merged());
        sets[key] = {{"count", summary.count},
                     {"passes", set.passes().size()},
                     {"median", jsonNumber(summary.median)},
                     {"minimum", jsonNumber(summary.minimum)},
                     {"p5", jsonNumber(summary.p5)},
                     {"p95", jsonNumber(summary.p95)},
                     {"relative_iqr", jsonNumber(summary.relativeIqr)},
                     {"drift", jsonNumber(set.drift())}};
    }
    return {{"grade", std::string(1, quality.grade)}, {"reason", quality.reason}, {"samples", std::move(sets)}};
}

Result<MeasuredRun> runSweep(const Experiment& experiment, const Parameters& parameters, PointMeasurer& measurer,
                             SweepMachine& machine)
{
    return SweepRun(experiment, parameters, measurer, machine).run();
}

} // namespace memscape
