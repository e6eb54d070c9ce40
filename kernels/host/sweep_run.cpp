// SPDX-License-Identifier: Apache-2.0
// A HostMeasurement as the sweep's points (kernels/measure/sweep_run.h), and this session as its machine.
#include "kernels/host/measurement.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

/// The canary on the first thread of the team, and the system's counters.
class HostWatch final : public VisitWatch
{
public:
    explicit HostWatch(HostSession& session)
        : m_session(session)
    { }

    void begin() override
    {
        m_watch = ContentionWatch(m_session.watch().fastestClock());
        m_watch.start(m_session.readTicks());
        m_watch.add(m_session.readCanary());
    }
    RunConditions end(std::size_t samples) override
    {
        m_watch.add(m_session.readCanary());
        return m_watch.conditions(m_session.readTicks(), samples);
    }

private:
    HostSession& m_session;
    ContentionWatch m_watch;
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
    HostWatch watch(session);
    MEMSCAPE_TRY(run, runSweep(experiment, parameters, *makeSampledPoints(measurement, watch), session));
    addProbed(run.measurement, experiment, session.device(), parameters, measurement.probes());
    return run;
}

} // namespace memscape::host
