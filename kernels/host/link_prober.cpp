// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/link_prober.h"

#include <algorithm>
#include <utility>

namespace memscape::host {

namespace {

/// Until every size has been probed, so that a run of one point, visited three times, probes all of a link; then two,
/// so that a size of a whole curve is probed often enough for its median to pass over a visit that was disturbed.
constexpr std::size_t firstProbes = 3, laterProbes = 2;
constexpr double mostOthers = 0.05; ///< of all processors' time
constexpr double leastOthers = 4;   ///< jiffies: fewer are what counting in jiffies leaves uncertain

} // namespace

StoppingOptions probeOptions(double wallLimit)
{
    StoppingOptions options;
    options.minimumSamples = 5;
    options.minimumTime = wallLimit / 8;
    options.wallLimit = wallLimit;
    return options;
}

void LinkProber::add(LinkPlan plan)
{
    if (std::ranges::any_of(m_plans, [&](const LinkPlan& one) { return one.link.id == plan.link.id; }))
        return;
    for (const Visit& visit : interleaved(plan.sizes.size(), 1, 3))
        m_turns.push_back({m_plans.size(), plan.sizes[visit.point]});
    m_samples.push_back({plan.link, {}});
    m_plans.push_back(std::move(plan));
}

Result<void> LinkProber::take()
{
    if (m_turns.empty())
        return {};
    const std::size_t count = m_taken < m_turns.size() ? firstProbes : laterProbes;
    const SystemTicks begin = ticksNow();
    std::vector<std::pair<Probe, std::vector<double>>> taken;
    for (std::size_t i = 0; i < count; ++i) {
        const Probe& probe = m_turns[m_taken++ % m_turns.size()];
        auto seconds = m_plans[probe.plan].measure(probe.bytes, probeOptions(0.05));
        if (seconds) {
            taken.emplace_back(probe, std::move(*seconds));
        } else if (seconds.error().code == "run.cancelled" || seconds.error().code == "check.failed") {
            return fail(std::move(seconds).error());
        }
    }
    const SystemTicks end = ticksNow();
    const double others = othersShare(begin, end);
    const bool isDisturbed = others > mostOthers && others * (end.total - begin.total) > leastOthers;
    for (const auto& [probe, seconds] : taken) {
        LinkSamples& samples = m_samples[probe.plan];
        if (isDisturbed) {
            ++samples.disturbed;
            continue;
        }
        std::vector<double>& all = samples.seconds[probe.bytes];
        all.insert(all.end(), seconds.begin(), seconds.end());
    }
    return {};
}

} // namespace memscape::host
