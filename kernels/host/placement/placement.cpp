// SPDX-License-Identifier: Apache-2.0
// placement, measured on the host: the program that the prediction made, with real arrays (placed_run.h).
//
//     time           all of it: one core issues and computes, a second copies
//     compute_time,  the steps one by one on one core
//     transfer_time
//     peak           the pool's high water, over all runs
// Before the first sample the result is compared, bit for bit, with the same operators under no limit.
//
// Left out: models, whose layers are predicted only; a disk.
#include "core/experiments/placement/placement.h"

#include "kernels/host/checkpoint/checkpoint.h"
#include "kernels/host/measurement.h"
#include "kernels/host/placement/adam.h"
#include "kernels/host/placement/placed_run.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

class PlacementMeasurement final : public HostMeasurement
{
public:
    explicit PlacementMeasurement(HostSession& session)
        : m_session(session)
        , m_product(fastestProduct(session))
    { }

    Result<void> check() override { return checkAdam().result("placement"); }

    Result<SampleSets> visit(const Parameters& point, int) override
    {
        MEMSCAPE_TRY(asked, placementCase(m_session.device(), point));
        MEMSCAPE_TRY(rates, placementSeconds(m_session.device(), point, asked));
        MEMSCAPE_TRY(placement, chosenPlacement(asked, rates));
        PlacedRun run(m_session, asked, placement, m_product.kernel);
        MEMSCAPE_CHECK(run.open());
        MEMSCAPE_TRY(checked, run.check());
        m_checked = checked;
        SampleSets sets;
        MEMSCAPE_TRY(first, run.sideBySide());
        const auto repeats =
            std::clamp<std::size_t>(std::size_t(shortestSample / possibleSeconds(first, 1e3)), 1, 1000);
        StoppingRule rule(m_session.passOptions(2), m_session.clock());
        do {
            double seconds = 0;
            for (std::size_t i = 0; i < repeats; ++i) {
                MEMSCAPE_TRY(one, run.sideBySide());
                seconds += one;
            }
            rule.add(seconds);
        } while (!rule.finished());
        sets["time"] = m_session.samplesOf(rule, double(repeats));
        StoppingRule stepRule(m_session.passOptions(2), m_session.clock());
        std::vector<StepSums> all;
        do {
            MEMSCAPE_TRY(sums, run.inTurn());
            stepRule.add(sums.compute + sums.transfer());
            all.push_back(sums);
        } while (!stepRule.finished());
        Ran& ran = m_ran[pointKey(point)];
        for (const StepSums& sums : all) {
            sets["compute_time"].push_back(sums.compute);
            sets["transfer_time"].push_back(sums.transfer());
            sets["host_time"].push_back(sums.host);
            sets["update_time"].push_back(sums.update);
        }
        ran.copied = all.empty() ? 0 : all.back().copied;
        ran.last = all.empty() ? StepSums{} : all.back();
        ran.peak = std::max(ran.peak, run.highWater());
        return sets;
    }

    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override
    {
        MEMSCAPE_TRY(asked, placementCase(m_session.device(), point));
        MEMSCAPE_TRY(rates, placementSeconds(m_session.device(), point, asked));
        MEMSCAPE_TRY(placement, chosenPlacement(asked, rates));
        const auto timeOf = [&](const char* key) {
            const auto found = samples.find(key);
            const Summary time = found == samples.end() ? Summary{} : summarize(found->second.merged());
            return time.empty() ? PlacementTime{} : PlacementTime{time.median, time.minimum, time.q3};
        };
        const Ran& ran = m_ran[pointKey(point)];
        PlacementNumbers numbers;
        numbers.time = timeOf("time");
        numbers.compute = timeOf("compute_time");
        numbers.transfer = timeOf("transfer_time");
        numbers.host = timeOf("host_time");
        numbers.update = timeOf("update_time");
        numbers.transferred = ran.copied;
        numbers.peak = ran.peak;
        numbers.up = ran.last.up;
        numbers.down = ran.last.down;
        return placementFigures(asked, placement, numbers);
    }

    Json method() const override
    {
        return {{"threads", std::min(2, m_session.team().size())},
                {"product", m_product.kernel.name},
                {"products_tried", m_product.tried},
                {"simd", isaText(widestIsa())},
                {"caches", "steady state: runs follow each other"},
                {"kernels", Json::array({{{"kernel", "placed program"}, {"check", m_checked}}})}};
    }

private:
    struct Ran
    {
        double copied = 0, peak = 0; ///< B
        StepSums last;
    };
    static std::string pointKey(const Parameters& point) { return parametersToJson(point).dump(); }

    HostSession& m_session;
    ProductChoice m_product;
    std::string m_checked;
    std::map<std::string, Ran> m_ran;
};

} // namespace

std::unique_ptr<HostMeasurement> makePlacementMeasurement(HostSession& session)
{
    return std::make_unique<PlacementMeasurement>(session);
}

} // namespace memscape::host
