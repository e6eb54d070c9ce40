// SPDX-License-Identifier: Apache-2.0
// A HostMeasurement as the sweep's points (kernels/measure/sweep_run.h), and this session as its machine.
#include "kernels/host/measurement.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

/// fmin and fmax take the known one when the other is not a number.
RunConditions worseOf(const RunConditions& a, const RunConditions& b)
{
    RunConditions worst = a;
    worst.clockShare = std::fmin(a.clockShare, b.clockShare);
    worst.stealShare = std::fmax(a.stealShare, b.stealShare);
    worst.preemptions = std::max(a.preemptions, b.preemptions);
    return worst;
}

class SampledPoints final : public PointMeasurer
{
public:
    SampledPoints(HostMeasurement& measurement, HostSession& session)
        : m_measurement(measurement)
        , m_session(session)
    { }

    Result<void> visit(std::size_t index, const Parameters& at, int pass) override
    {
        ContentionWatch watch(m_session.watch().fastestClock());
        watch.start(m_session.readTicks());
        watch.add(m_session.readCanary());
        MEMSCAPE_TRY(sets, m_measurement.visit(at, pass));
        watch.add(m_session.readCanary());
        Sampled& point = m_points[index];
        std::size_t count = 0;
        for (const auto& [key, samples] : sets) {
            point.samples[key].add(pass, samples);
            count += samples.size();
        }
        // A disturbance of any pass stays with the point.
        point.seen = worseOf(point.seen, watch.conditions(m_session.readTicks(), count));
        MEMSCAPE_TRY(figures, m_measurement.figures(at, point.samples));
        point.figures = std::move(figures);
        return {};
    }

    Point point(std::size_t index) const override { return {0, {}, sampled(index).figures, {}}; }
    MergedSamples samples(std::size_t index) const override { return sampled(index).samples; }

    /// The worst grade among the point's sample sets.
    Quality quality(std::size_t index) const override
    {
        const Sampled& point = sampled(index);
        Quality worst{'D', "no samples"};
        bool first = true;
        for (const auto& [key, samples] : point.samples) {
            RunConditions conditions = point.seen;
            conditions.drift = samples.drift();
            Quality quality = gradeOf(summarize(samples.merged()), conditions);
            quality.reason = sampledName(point.figures, key) + ": " + quality.reason;
            worst = first ? quality : worse(worst, quality);
            first = false;
        }
        return worst;
    }

    Json method() const override { return m_measurement.method(); }

private:
    struct Sampled
    {
        MergedSamples samples;
        RunConditions seen; ///< the worst of all visits
        Figures figures;
    };
    const Sampled& sampled(std::size_t index) const
    {
        static const Sampled none;
        const auto at = m_points.find(index);
        return at == m_points.end() ? none : at->second;
    }

    HostMeasurement& m_measurement;
    HostSession& m_session;
    std::map<std::size_t, Sampled> m_points;
};

class HostMachine final : public SweepMachine
{
public:
    explicit HostMachine(HostSession& session)
        : m_session(session)
        , m_since(resetProcessHighWater() ? "the start of this run" : "the start of the process")
    { }

    const Device& device() const override { return m_session.device(); }
    RunSink& sink() override { return m_session.sink(); }
    const Clock& clock() const override { return m_session.clock(); }
    /// A sweep of given values runs all its passes; the page's own sweep is limited in time, as is one that is
    /// a part of another measurement.
    double budget() const override { return m_session.budget(); }
    Json facts() override
    {
        Json facts = machineFacts(m_session);
        if (const auto high = processHighWater())
            facts["process_peak_memory"] = {{"bytes", *high}, {"since", m_since}};
        return facts;
    }

private:
    HostSession& m_session;
    const char* m_since;
};

} // namespace

Result<MeasuredRun> runSweep(const Experiment& experiment, const Parameters& parameters, PointMeasurer& measurer,
                             HostSession& session)
{
    HostMachine machine(session);
    return memscape::runSweep(experiment, parameters, measurer, machine);
}

Result<MeasuredRun> runSweep(const Experiment& experiment, const Parameters& parameters, HostMeasurement& measurement,
                             HostSession& session)
{
    MEMSCAPE_CHECK(measurement.check());
    if (!parameters.sweep())
        session.setBudget(std::min(session.budget(), sweepBudget),
                          sweepOf(experiment, session.device(), parameters).values.size());
    SampledPoints points(measurement, session);
    return runSweep(experiment, parameters, points, session);
}

} // namespace memscape::host
