// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/measurement.h"

#include "kernels/measure/kept_samples.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

/// One point of the sweep while it fills.
struct SweepPoint
{
    double x = 0;
    std::string name;
    std::string label; ///< for people: "working set 192 MiB"
    Parameters parameters;
    MergedSamples samples;
    Circumstances seen; ///< the worst of all visits
    std::optional<Point> shown;
    double visitSeconds = 0; ///< of the last visit
    std::optional<Error> error; ///< why it could not be measured; later passes leave it out

    bool measured() const { return shown && !error; }
};

std::string labelOf(const Experiment& experiment, const Sweep& sweep, const ParameterValue& value)
{
    const ParameterSpec* spec = findParameter(experiment.schema(), sweep.key);
    return spec ? fmt::format("{} {}", spec->label, valueLabel(*spec, value))
                : fmt::format("{} {}", sweep.key, valueText(value));
}

std::vector<SweepPoint> pointsOf(const Experiment& experiment, const Sweep& sweep,
                                 const Parameters& parameters)
{
    const SeriesAxis axis = axisOf(experiment, sweep);
    std::vector<SweepPoint> points;
    for (std::size_t i = 0; i < sweep.values.size(); ++i) {
        SweepPoint point;
        point.x = axis.values[i];
        point.name = valueText(sweep.values[i]);
        point.label = labelOf(experiment, sweep, sweep.values[i]);
        point.parameters = parameters.at(sweep.key, sweep.values[i]);
        points.push_back(std::move(point));
    }
    return points;
}

/// What was timed, for people: the label of the figure that the samples make.
std::string sampledName(const SweepPoint& point, const std::string& key)
{
    const Figure* figure = point.shown ? findFigure(point.shown->figures, key) : nullptr;
    if (figure)
        return figure->unit == Unit::Second ? figure->label : "time behind " + figure->label;
    std::string words = key;
    std::replace(words.begin(), words.end(), '_', ' ');
    return words;
}

/// The worst grade among the point's sample sets.
Quality qualityOf(const SweepPoint& point)
{
    Quality worst {'A', "no samples"};
    bool first = true;
    for (const auto& [key, samples] : point.samples) {
        Circumstances circumstances = point.seen;
        circumstances.drift = samples.drift();
        Quality quality = gradeOf(summarize(samples.merged()), circumstances);
        quality.reason = sampledName(point, key) + ": " + quality.reason;
        worst = first ? quality : worse(worst, quality);
        first = false;
    }
    return first ? Quality {'D', "no samples"} : worst;
}

Json detailOf(const SweepPoint& point, const Quality& quality)
{
    Json samples = Json::object();
    for (const auto& [key, set] : point.samples) {
        const Summary summary = summarize(set.merged());
        samples[key] = {{"count", summary.count},
                        {"passes", set.passes().size()},
                        {"median", jsonNumber(summary.median)},
                        {"minimum", jsonNumber(summary.minimum)},
                        {"p5", jsonNumber(summary.p5)},
                        {"p95", jsonNumber(summary.p95)},
                        {"relative_iqr", jsonNumber(summary.relativeIqr)},
                        {"drift", jsonNumber(set.drift())}};
    }
    return {{"grade", std::string(1, quality.grade)},
            {"reason", quality.reason},
            {"samples", std::move(samples)}};
}

Json samplesOf(const std::vector<SweepPoint>& points)
{
    std::size_t sets = 0;
    for (const SweepPoint& point : points)
        sets += point.samples.size();
    Json all = Json::array();
    for (const SweepPoint& point : points) {
        for (const auto& [key, set] : point.samples) {
            Json one{{"x", jsonNumber(point.x)}};
            one.update(keptSamples(key, set.merged(), keptPerSet(sets)));
            all.push_back(std::move(one));
        }
    }
    return all;
}

/// Sends what differs between passes by so much that an average would hide two states of the machine.
void noteTorn(const SweepPoint& point, HostSession& session)
{
    for (const auto& [key, samples] : point.samples) {
        const std::string note = samples.note(fmt::format("{} at {}", sampledName(point, key), point.label));
        if (!note.empty())
            session.noteOnce("warning", "pass.torn", note);
    }
}

class SweepRun
{
public:
    SweepRun(const Experiment& experiment, const Parameters& parameters,
             HostMeasurement& measurement, HostSession& session)
        : m_experiment(experiment)
        , m_parameters(parameters)
        , m_measurement(measurement)
        , m_session(session)
        , m_sweep(sweepOf(experiment, session.device(), parameters))
        , m_points(pointsOf(experiment, m_sweep, parameters))
    {
    }

    Result<MeasuredRun> run()
    {
        MEMSCAPE_CHECK(m_measurement.check());
        const auto visits = order();
        const bool reset = resetProcessHighWater();
        m_begin = m_session.clock().now();
        if (!m_parameters.sweep())
            m_session.setBudget(std::min(m_session.budget(), sweepBudget), m_points.size());
        int done = 0;
        for (const Visit& visit : visits) {
            SweepPoint& point = m_points[visit.point];
            m_session.sink().progress(progress(done++, visits.size()), static_cast<int>(visits.size()),
                                      fmt::format("{} · pass {} of {}", point.label,
                                                  visit.pass + 1, sweepPasses));
            if (point.error || (visit.pass > 0 && exceedsBudget(point)))
                continue;
            if (auto visited = this->visit(point, visit.pass); !visited) {
                if (visited.error().code == "run.cancelled") {
                    m_complete = false;
                    break;
                }
                if (isQuestion(point))
                    return fail(std::move(visited).error());
                giveUp(point, std::move(visited).error());
            }
        }
        MEMSCAPE_CHECK(checkAnyMeasured());
        for (const SweepPoint& point : m_points)
            noteTorn(point, m_session);
        return finished(reset);
    }

private:
    double elapsed() const { return m_session.clock().now() - m_begin; }

    /// Who named the values of a sweep waits for all its passes; the page's own sweep ends in time, as does one that is
    /// a part of another measurement.
    bool hasBudget() const { return std::isfinite(m_session.budget()); }

    /// Whether another visit of the point would end after the budget, as its last one took.
    bool exceedsBudget(const SweepPoint& point) const
    {
        return hasBudget() && elapsed() + point.visitSeconds > m_session.budget();
    }

    /// Visits that are done of all, in time: later passes are left out once the budget is spent.
    int progress(int done, std::size_t all) const
    {
        const double share = hasBudget()
            ? std::min(elapsed() / m_session.budget(), double(done) / double(m_points.size()))
            : 0;
        return std::min(std::max(done, static_cast<int>(share * double(all))), static_cast<int>(all));
    }

    Result<void> visit(SweepPoint& point, int pass)
    {
        const double start = elapsed();
        const SystemTicks begin = m_session.readTicks();
        ContentionWatch watch(m_session.watch().fastestClock());
        watch.start(begin);
        watch.add(m_session.readCanary());
        MEMSCAPE_TRY(sets, m_measurement.visit(point.parameters, pass));
        watch.add(m_session.readCanary());
        std::size_t count = 0;
        for (const auto& [key, samples] : sets) {
            point.samples[key].add(pass, samples);
            count += samples.size();
        }
        // A disturbance of any pass stays with the point.
        point.seen = worseOf(point.seen, watch.circumstances(m_session.readTicks(), count));

        MEMSCAPE_TRY(figures, m_measurement.figures(point.parameters, point.samples));
        point.shown = Point {point.x, point.name, std::move(figures), {}};
        point.shown->detail = detailOf(point, qualityOf(point));
        m_session.sink().point(m_sweep.key, *point.shown);
        point.visitSeconds = elapsed() - start;
        return {};
    }

    static Circumstances worseOf(const Circumstances& a, const Circumstances& b)
    {
        // fmin and fmax take the known one when the other is not a number.
        Circumstances worst = a;
        worst.clockShare = std::fmin(a.clockShare, b.clockShare);
        worst.stealShare = std::fmax(a.stealShare, b.stealShare);
        worst.preemptions = std::max(a.preemptions, b.preemptions);
        return worst;
    }

    /// Without a sweep of the user's the run is about the parameters' own point, and the rest of the
    /// curve is what surrounds it: no point of that is worth a minute when the one asked for fails.
    bool isQuestion(const SweepPoint& point) const
    {
        return !m_parameters.sweep() && point.parameters.values() == m_parameters.values();
    }

    /// In random order, the point that was asked for first.
    std::vector<Visit> order() const
    {
        auto visits = interleaved(m_points.size(), sweepPasses, 1);
        const auto first = std::find_if(visits.begin(), visits.end(), [this](const Visit& visit) {
            return isQuestion(m_points[visit.point]);
        });
        if (first != visits.end())
            std::rotate(visits.begin(), first, first + 1);
        return visits;
    }

    /// One point that cannot be measured leaves the others: the largest working set of a sweep may be
    /// more than the machine has.
    void giveUp(SweepPoint& point, Error error)
    {
        m_session.sink().note("warning", error.code,
                              fmt::format("{}: {}", point.label, error.text()));
        point.shown = Point {point.x, point.name, {}, {{"error", error.code}, {"reason", error.text()}}};
        point.error = std::move(error);
        m_session.sink().point(m_sweep.key, *point.shown);
    }

    /// The first error when not one point could be measured.
    Result<void> checkAnyMeasured() const
    {
        const auto measured = [](const SweepPoint& point) { return point.measured(); };
        if (std::any_of(m_points.begin(), m_points.end(), measured))
            return {};
        if (!m_complete)
            return fail("run.cancelled", "the measurement was stopped before its first point");
        for (const SweepPoint& point : m_points) {
            if (point.error)
                return fail(*point.error);
        }
        return fail("run.failed", "the sweep has no points");
    }

    MeasuredRun finished(bool reset)
    {
        std::vector<Point> shown;
        Json points = Json::array();
        Quality overall {'A', "every point"};
        for (const SweepPoint& point : m_points) {
            if (!point.shown)
                continue;
            shown.push_back(*point.shown);
            Json entry = point.shown->detail;
            entry["x"] = jsonNumber(point.x);
            entry["name"] = point.name;
            if (point.measured())
                overall = worse(overall, named(qualityOf(point), point));
            points.push_back(std::move(entry));
        }
        MeasuredRun run;
        run.complete = m_complete;
        run.measurement = outcomeFromPoints(m_experiment, m_session.device(), m_parameters,
                                            std::move(shown));
        run.measurement.detail["quality"]
            = {{"grade", std::string(1, overall.grade)}, {"reason", overall.reason}};
        run.measurement.detail["points"] = std::move(points);
        run.provenance = provenance(overall, reset);
        return run;
    }

    Quality named(const Quality& quality, const SweepPoint& point) const
    {
        return {quality.grade, fmt::format("{}: {}", point.label, quality.reason)};
    }

    Json provenance(const Quality& overall, bool reset) const
    {
        Json provenance = provenanceOf(m_session);
        provenance["passes"] = sweepPasses;
        if (hasBudget())
            provenance["budget_s"] = m_session.budget(); // after it points keep the passes that they have
        provenance["grade"] = std::string(1, overall.grade);
        provenance["reason"] = overall.reason;
        provenance["complete"] = m_complete;
        provenance["method"] = m_measurement.method();
        if (const auto high = processHighWater())
            provenance["process_peak_memory"]
                = {{"bytes", *high}, {"since", reset ? "the start of this run" : "the start of the process"}};
        provenance["samples"] = samplesOf(m_points);
        return provenance;
    }

    const Experiment& m_experiment;
    const Parameters& m_parameters;
    HostMeasurement& m_measurement;
    HostSession& m_session;
    Sweep m_sweep;
    std::vector<SweepPoint> m_points;
    double m_begin = 0;
    bool m_complete = true;
};

} // namespace

Result<MeasuredRun> runSweep(const Experiment& experiment, const Parameters& parameters,
                             HostMeasurement& measurement, HostSession& session)
{
    return SweepRun(experiment, parameters, measurement, session).run();
}

} // namespace memscape::host
