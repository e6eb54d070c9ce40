// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/sharding/sharding_measurement.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr std::size_t smallest = 16;       ///< all-reduces of one element that are timed together
constexpr double shortestRingRun = 200e-6; ///< s; shorter ones are repeated within a sample

std::string shardingPointKey(const Parameters& point)
{
    std::string key;
    for (const auto& [name, value] : point.values())
        key += name + '=' + valueText(value) + '\n';
    return key;
}

} // namespace

Result<double> sampleRing(RankRing& ring, double bytes, StoppingRule& rule)
{
    const double least = std::max(1e-8, bytes / 1e12); // whatever a broken clock says
    MEMSCAPE_TRY(first, ring.run(1));
    MEMSCAPE_TRY(second, ring.run(1));
    const double once = std::min(first, second);
    std::size_t repeats = 1;
    if (once < shortestRingRun) { // the first may have waited for its ranks
        MEMSCAPE_TRY(ten, ring.run(10));
        repeats = std::clamp<std::size_t>(std::size_t(shortestRingRun / std::max(ten / 10, least)), 1, 100000);
    }
    do {                                         // once at least, however long the first ones took
        MEMSCAPE_TRY(sample, ring.run(repeats)); // a stopped one is not whole
        rule.add(sample);
    } while (!rule.finished());
    return double(repeats);
}

/// What is measured of an answer; why not, where it is not.
Result<void> ShardingMeasurement::checkMeasured(const ShardingAnswer& answer) const
{
    const Plan& plan = answer.asked.plan();
    const std::int64_t ranks = answer.asked.ranks();
    if (ranks < 2)
        return fail("run.skipped", "one rank sends nothing", "choose data_parallel=2 or more", "data_parallel");
    if (ranks > mostRingRanks)
        return fail("run.skipped",
                    fmt::format("{} ranks are more than the {} that are measured here", ranks, mostRingRanks),
                    fmt::format("choose {} ranks or fewer, or look at the prediction", mostRingRanks), "data_parallel");
    if (plan.dataParallel > 1 && plan.tensorParallel > 1)
        return fail("run.skipped", "data and tensor parallelism are measured one at a time",
                    "choose data_parallel=1 or tensor_parallel=1", "tensor_parallel");
    if (plan.isByFsdp())
        return fail("run.skipped", "a unit at a time is whole here, and FSDP keeps its root beside it",
                    "choose sharding_implementation=ideal, or look at the prediction", "sharding_implementation");
    if (answer.step.sent > mostSent())
        return fail("run.skipped",
                    fmt::format("each rank would send {} a step, and {} is the most that is measured here",
                                bytesText(answer.step.sent), bytesText(mostSent())),
                    "choose a smaller model, a shorter sequence, or look at the prediction", "model");
    return {};
}

std::vector<double> ShardingMeasurement::samplesOf(const StoppingRule& rule, double per)
{
    std::vector<double> samples = rule.samples();
    for (double& sample : samples)
        sample /= per;
    return samples;
}

Result<std::vector<double>> ShardingMeasurement::sampled(RankRing& ring, double bytes)
{
    StoppingRule rule(loopOptions(), clock());
    MEMSCAPE_TRY(repeats, sampleRing(ring, bytes, rule));
    return samplesOf(rule, repeats);
}

Result<SampleSets> ShardingMeasurement::visit(const Parameters& point, int)
{
    MEMSCAPE_TRY(answer, answerSharding(m_device, point, m_context));
    MEMSCAPE_CHECK(checkMeasured(answer));
    const int ranks = int(answer.asked.ranks());
    const ShardingWay way = answer.asked.link.way;
    SampleSets sets;
    MEMSCAPE_TRY(least,
                 ringOf(way, ranks, sizeof(float) * std::size_t(ranks),
                        std::vector<RingOperation>(smallest, {CollectiveKind::AllReduce, 1, 4})));
    MEMSCAPE_CHECK(least->check());
    MEMSCAPE_TRY(latency, sampled(*least, double(least->sentBytes())));
    for (double& seconds : latency)
        seconds /= double(smallest) * double(ringSteps(CollectiveKind::AllReduce, ranks));
    sets["latency"] = std::move(latency);
    least.reset();

    RingPlan plan = ringPlan(answer.step.collectives(), answer.asked.plan().zeroStage);
    MEMSCAPE_TRY(ring, ringOf(way, ranks, plan.memory, std::move(plan.operations)));
    MEMSCAPE_CHECK(ring->check());
    m_counted[shardingPointKey(point)] = {ring->sentBytes(), plan.gathered};
    m_checked[fmt::format("{} {}", ranks, shardingWayKey(way))] =
        fmt::format("{} elements, all exact", ring->comparedElements());
    MEMSCAPE_SET(sets["communication_time"], sampled(*ring, answer.step.sent));
    return sets;
}

Result<Figures> ShardingMeasurement::figures(const Parameters& point, const MergedSamples& samples)
{
    MEMSCAPE_TRY(answer, answerSharding(m_device, point, m_context));
    const auto timeOf = [&](const char* key) {
        const auto found = samples.find(key);
        if (found == samples.end())
            return ShardingNumbers::Time{};
        const Summary time = summarize(found->second.merged());
        return time.empty() ? ShardingNumbers::Time{} : ShardingNumbers::Time{time.median, time.minimum, time.q3};
    };
    ShardingNumbers numbers;
    numbers.stored = double(answer.kept.device());
    const auto counted = m_counted.find(shardingPointKey(point));
    if (counted != m_counted.end()) {
        numbers.sent = double(counted->second.sent);
        numbers.gathered = double(counted->second.gathered);
    }
    numbers.communication = numbers.exposed = timeOf("communication_time");
    numbers.latency = timeOf("latency");
    return measuredShardingFigures(numbers);
}

Json ShardingMeasurement::checksOfRings() const
{
    Json kernels = Json::array();
    for (const auto& [ring, check] : m_checked)
        kernels.push_back({{"kernel", "ring of " + ring}, {"check", check}});
    return kernels;
}

} // namespace memscape
