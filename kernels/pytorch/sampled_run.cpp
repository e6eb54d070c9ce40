// SPDX-License-Identifier: Apache-2.0
#include "kernels/pytorch/sampled_run.h"

#include "kernels/measure/stopping.h"

#include <algorithm>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

namespace memscape {

namespace {

/// Bytes of the largest cache that is described; of a CPU without any what host/session.cpp takes.
double largestCacheOf(const Device& device)
{
    double largest = 0;
    for (const MemoryLevel& level : device.levels) {
        if (level.kind == LevelKind::Cache)
            largest = std::max(largest, level.capacity.valueOr(0));
    }
    return largest > 0 ? largest : 32 << 20;
}

class ProbedMachine final : public SweepMachine
{
public:
    ProbedMachine(PytorchProbe& probe, Json facts, bool hasBudget)
        : m_probe(probe)
        , m_facts(std::move(facts))
        , m_budget(hasBudget ? probeBudget : std::numeric_limits<double>::infinity())
    { }

    const Device& device() const override { return m_probe.device().device; }
    RunSink& sink() override { return m_probe.sink(); }
    const Clock& clock() const override { return m_clock; }
    double budget() const override { return m_budget; }
    Json facts() override { return m_facts; }

private:
    PytorchProbe& m_probe;
    Json m_facts;
    SteadyClock m_clock;
    double m_budget;
};

} // namespace

Json visitWords(const Device& device, std::size_t points, int pass)
{
    constexpr double least = 0.06; // s, as host/session.cpp has it
    StoppingOptions options = StoppingOptions().perPass(sweepPasses);
    if (points > 0)
        options.wallLimit = std::min(options.wallLimit, std::max(least, probeBudget / double(points) / sweepPasses));
    return {{"pass", pass},
            {"samples", options.minimumSamples},
            {"seconds", options.minimumTime},
            {"wall", options.wallLimit},
            {"cache_bytes", std::int64_t(largestCacheOf(device))}};
}

Result<SampleSets> ProbedMeasurement::visit(const Parameters& point, int pass)
{
    Parameters there = point;
    there.setSweep({});
    Json words = parametersToJson(there);
    words["visit"] = visitWords(device(), m_points, pass);
    MEMSCAPE_CHECK(add(words, there));
    MEMSCAPE_TRY(done, m_probe.run(m_experiment, std::move(words)));
    if (done.error)
        return fail(*done.error);
    const JsonReader result(done.result, "result");
    MEMSCAPE_TRY(detail, result.at("detail"));
    MEMSCAPE_CHECK(take(there, detail));
    SampleSets sets;
    MEMSCAPE_TRY(samples, detail.at("samples"));
    MEMSCAPE_TRY(members, samples.members());
    for (const auto& [key, values] : members) {
        MEMSCAPE_TRY(numbers, values.numbers());
        sets[key] = std::move(numbers);
    }
    if (detail.has("method"))
        m_method = detail.node()["method"];
    return sets;
}

void ProbeWatch::begin()
{
    if (m_isGpu)
        return;
    m_watch = ContentionWatch(m_fastest);
    m_watch.start(readSystemTicks());
    m_watch.add(readCanary(SteadyClock()));
}

RunConditions ProbeWatch::end(std::size_t samples)
{
    if (m_isGpu)
        return {};
    m_watch.add(readCanary(SteadyClock()));
    m_fastest = std::max(m_fastest, m_watch.fastestClock());
    return m_watch.conditions(readSystemTicks(), samples);
}

Result<MeasuredRun> runProbed(PytorchProbe& probe, const Experiment& experiment, const Parameters& parameters,
                              PointMeasurer& points)
{
    MEMSCAPE_CHECK(probe.start());
    probe.sink().progress(0, 0, "importing PyTorch");
    MEMSCAPE_TRY(done, probe.run("machine", Json::object()));
    if (done.error)
        return fail(*done.error);
    ProbedMachine machine(probe, done.provenance, !parameters.sweep() && !points.runsWhole());
    return runSweep(experiment, parameters, points, machine);
}

MeasureInPytorch sampledInPytorch(const std::string& experiment)
{
    static const std::map<std::string, MeasureInPytorch> all{{"attention", measureAttentionInPytorch},
                                                             {"layout", measureLayoutInPytorch},
                                                             {"precision", measurePrecisionInPytorch}};
    const auto found = all.find(experiment);
    return found == all.end() ? nullptr : found->second;
}

} // namespace memscape
