// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/placement/placement_measurement.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr double shortestRun = 200e-6; ///< s; shorter ones are repeated within a sample

std::string placedPointKey(const Parameters& point)
{
    return parametersToJson(point).dump();
}

} // namespace

std::vector<double> PlacementMeasurement::samplesOf(const StoppingRule& rule, double per)
{
    std::vector<double> samples = rule.samples();
    for (double& sample : samples)
        sample /= per;
    return samples;
}

Result<SampleSets> PlacementMeasurement::visit(const Parameters& point, int)
{
    MEMSCAPE_TRY(asked, placementCase(m_device, point));
    MEMSCAPE_TRY(rates, placementSeconds(m_device, point, asked));
    MEMSCAPE_TRY(placement, chosenPlacement(asked, rates));
    MEMSCAPE_TRY(machine, machineFor(asked, point));
    PlacedRun run(*machine, asked, placement);
    MEMSCAPE_CHECK(run.open());
    MEMSCAPE_SET(m_checked, run.check());
    SampleSets sets;
    MEMSCAPE_TRY(first, run.sideBySide());
    const auto repeats = std::clamp<std::size_t>(std::size_t(shortestRun / std::max(first, 1e-8)), 1, 1000);
    StoppingRule rule(loopOptions(), m_clock);
    do {
        double seconds = 0;
        for (std::size_t i = 0; i < repeats; ++i) {
            MEMSCAPE_TRY(one, run.sideBySide());
            seconds += one;
        }
        rule.add(seconds);
    } while (!rule.finished());
    sets["time"] = samplesOf(rule, double(repeats));
    StoppingRule stepRule(loopOptions(), m_clock);
    Ran& ran = m_ran[placedPointKey(point)];
    do {
        MEMSCAPE_TRY(sums, run.inTurn());
        stepRule.add(sums.compute + sums.transfer());
        sets["compute_time"].push_back(sums.compute);
        sets["transfer_time"].push_back(sums.transfer());
        sets["host_time"].push_back(sums.host);
        sets["update_time"].push_back(sums.update);
        ran.last = sums;
    } while (!stepRule.finished());
    ran.peak = std::max(ran.peak, run.highWater());
    return sets;
}

Result<Figures> PlacementMeasurement::figures(const Parameters& point, const MergedSamples& samples)
{
    MEMSCAPE_TRY(asked, placementCase(m_device, point));
    MEMSCAPE_TRY(rates, placementSeconds(m_device, point, asked));
    MEMSCAPE_TRY(placement, chosenPlacement(asked, rates));
    const auto timeOf = [&](const char* key) {
        const auto found = samples.find(key);
        const Summary time = found == samples.end() ? Summary{} : summarize(found->second.merged());
        return time.empty() ? PlacementTime{} : PlacementTime{time.median, time.minimum, time.q3};
    };
    const Ran& ran = m_ran[placedPointKey(point)];
    PlacementNumbers numbers;
    numbers.time = timeOf("time");
    numbers.compute = timeOf("compute_time");
    numbers.transfer = timeOf("transfer_time");
    numbers.host = timeOf("host_time");
    numbers.update = timeOf("update_time");
    numbers.transferred = ran.last.copied;
    numbers.peak = ran.peak;
    numbers.up = ran.last.up;
    numbers.down = ran.last.down;
    return placementFigures(asked, placement, numbers);
}

} // namespace memscape
