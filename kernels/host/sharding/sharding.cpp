// SPDX-License-Identifier: Apache-2.0
// sharding, measured on the host: N ranks, threads or processes, do the collectives of one training step with the
// model's own sizes, one after the other, over memory that they share (ring.cpp).
//
//     communication_time  all of them; a core that moves bytes computes nothing, so all of it is exposed
//     latency             of one step: all-reduces of one element a rank, divided by their steps
//     sent, gathered      counted where pieces are read, and where whole weights are put together
// Before the first sample every collective runs once and every element is compared; a wrong one fails the run.
//
// Left out: computing, offload, data and tensor parallelism at once. Numbers grow from sample to sample: they are not
// filled again.
#include "kernels/host/sharding/sharding.h"

#include "kernels/host/measurement.h"
#include "kernels/host/sharding/rank_group.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

constexpr double mostSent = 0x1p30; ///< B of one rank and step; a few seconds of a slow machine

Result<std::vector<double>> sampled(HostSession& session, RankGroup& group, double bytes,
                                    const StoppingOptions& options)
{
    static_cast<void>(group.run(1));
    const double once = possibleSeconds(group.run(1), bytes);
    MEMSCAPE_CHECK(group.whole());
    std::size_t repeats = 1;
    if (once < shortestSample) { // the first may have waited for its ranks
        const double ten = possibleSeconds(group.run(10) / 10, bytes);
        repeats = std::clamp<std::size_t>(std::size_t(shortestSample / ten), 1, 100000);
    }
    StoppingRule rule(options, session.clock());
    while (!rule.finished()) {
        const double sample = group.run(repeats);
        MEMSCAPE_CHECK(group.whole()); // a stopped sample is not whole
        rule.add(sample);
    }
    return session.samplesOf(rule, double(repeats));
}

/// What is measured of an answer; why not, where it is not.
Result<void> checkMeasured(const ShardingAnswer& answer)
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
    if (answer.step.sent > mostSent)
        return fail("run.skipped",
                    fmt::format("each rank would send {} a step, and {} is the most that is measured here",
                                bytesText(answer.step.sent), bytesText(mostSent)),
                    "choose a smaller model, a shorter sequence, or look at the prediction", "model");
    return {};
}

std::string keyOf(const Parameters& point)
{
    std::string key;
    for (const auto& [name, value] : point.values())
        key += name + '=' + valueText(value) + '\n';
    return key;
}

class ShardingMeasurement final : public HostMeasurement
{
public:
    explicit ShardingMeasurement(HostSession& session)
        : m_session(session)
    { }

    /// A ring of each kind of element, through all three collectives.
    Result<void> check() override
    {
        using enum CollectiveKind;
        std::vector<RingOperation> operations;
        std::size_t offset = 0;
        for (const std::size_t bytes : {std::size_t(4), std::size_t(2)}) {
            for (const CollectiveKind kind : {AllReduce, ReduceScatter, AllGather}) {
                operations.push_back({kind, 77, bytes, offset});
                offset += 2 * 77 * 4;
            }
        }
        RankGroup group(m_session, 2, false, offset, std::move(operations));
        MEMSCAPE_CHECK(group.start());
        return group.check();
    }

    Result<SampleSets> visit(const Parameters& point, int) override
    {
        MEMSCAPE_TRY(answer, answerSharding(m_session.device(), point, m_context));
        MEMSCAPE_CHECK(checkMeasured(answer));
        const int ranks = int(answer.asked.ranks());
        const bool areProcesses = answer.asked.link.way == ShardingWay::Processes;
        if (ranks > m_session.team().size())
            m_session.noteOnce("warning", "sharding.turns",
                               fmt::format("more ranks than the {} cores: they take turns, and times are those of the "
                                           "turns",
                                           m_session.team().size()));
        SampleSets sets;
        const StoppingOptions options = m_session.passOptions(2);
        MEMSCAPE_TRY(latency, measureRing(m_session, answer.asked.link.way, ranks, 4, options));
        for (double& seconds : latency)
            seconds /= double(ringSteps(CollectiveKind::AllReduce, ranks));
        sets["latency"] = std::move(latency);

        RingPlan plan = ringPlan(answer.step.collectives(), answer.asked.plan().zeroStage);
        RankGroup group(m_session, ranks, areProcesses, plan.memory, std::move(plan.operations));
        MEMSCAPE_CHECK(group.start());
        MEMSCAPE_CHECK(group.check());
        m_counted[keyOf(point)] = {group.sentBytes(), plan.gathered};
        m_checked[fmt::format("{} {}", ranks, shardingWayKey(answer.asked.link.way))] =
            fmt::format("{} elements, all exact", group.comparedElements());
        MEMSCAPE_TRY(times, sampled(m_session, group, answer.step.sent, options));
        sets["communication_time"] = std::move(times);
        return sets;
    }

    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override
    {
        MEMSCAPE_TRY(answer, answerSharding(m_session.device(), point, m_context));
        const auto timeOf = [&](const char* key) {
            const auto found = samples.find(key);
            if (found == samples.end())
                return ShardingNumbers::Time{};
            const Summary time = summarize(found->second.merged());
            return time.empty() ? ShardingNumbers::Time{} : ShardingNumbers::Time{time.median, time.minimum, time.q3};
        };
        ShardingNumbers numbers;
        numbers.stored = double(answer.kept.device());
        const auto counted = m_counted.find(keyOf(point));
        if (counted != m_counted.end()) {
            numbers.sent = double(counted->second.sent);
            numbers.gathered = double(counted->second.gathered);
        }
        numbers.communication = numbers.exposed = timeOf("communication_time");
        numbers.latency = timeOf("latency");
        return measuredShardingFigures(numbers);
    }

    Json method() const override
    {
        Json kernels = Json::array();
        for (const auto& [ring, check] : m_checked)
            kernels.push_back({{"kernel", "ring of " + ring}, {"check", check}});
        return {{"threads", m_session.team().size()},
                {"caches", "steady state: steps follow each other"},
                {"kernels", std::move(kernels)}};
    }

private:
    struct Counted
    {
        std::uint64_t sent = 0, gathered = 0; ///< B
    };

    HostSession& m_session;
    PredictionContext m_context;
    std::map<std::string, Counted> m_counted; ///< by keyOf()
    std::map<std::string, std::string> m_checked;
};

} // namespace

RingPlan ringPlan(const std::vector<ShardCollective>& collectives, int zeroStage)
{
    constexpr std::size_t line = 64;
    const auto rounded = [](std::size_t bytes) { return (bytes + line - 1) / line * line; };
    RingPlan plan;
    std::size_t transient = 0;
    std::map<std::pair<std::string_view, std::size_t>, std::size_t> pieces; // what, unit: where
    const auto isTransient = [&](const ShardCollective& one) {
        return one.what == "activations" || one.what == "weights" || (one.what == "gradients" && zeroStage >= 2);
    };
    for (const ShardCollective& one : collectives) {
        if (one.kind != CollectiveKind::HostCopy && isTransient(one))
            transient = std::max(transient, rounded(std::size_t(one.payload())));
    }
    plan.memory = transient;
    for (const ShardCollective& one : collectives) {
        if (one.kind == CollectiveKind::HostCopy)
            continue;
        RingOperation operation{one.kind, std::size_t(one.pieceElements), std::size_t(one.elementBytes)};
        if (!isTransient(one)) {
            operation.offset = plan.memory;
            plan.memory += rounded(std::size_t(one.payload()));
        } else if (one.what != "activations") { // its piece stays where it is between steps
            const auto [place, isNew] = pieces.try_emplace({one.what, one.unit}, plan.memory);
            operation.own = place->second;
            if (isNew)
                plan.memory += rounded(operation.pieceBytes());
        }
        if (one.what == "weights")
            plan.gathered = std::max(plan.gathered, std::uint64_t(one.payload()));
        for (double times = 0; times < one.count; ++times)
            plan.operations.push_back(operation);
    }
    return plan;
}

Result<std::vector<double>> measureRing(HostSession& session, ShardingWay way, int ranks, std::size_t pieceBytes,
                                        const StoppingOptions& options)
{
    const std::size_t elements = std::max<std::size_t>(1, pieceBytes / 4);
    RankGroup group(session, ranks, way == ShardingWay::Processes, elements * 4 * std::size_t(ranks),
                    {{CollectiveKind::AllReduce, elements, 4}});
    MEMSCAPE_CHECK(group.start());
    MEMSCAPE_CHECK(group.check());
    return sampled(session, group, double(elements) * 8 * double(ranks - 1), options);
}

std::unique_ptr<HostMeasurement> makeShardingMeasurement(HostSession& session)
{
    return std::make_unique<ShardingMeasurement>(session);
}

} // namespace memscape::host
