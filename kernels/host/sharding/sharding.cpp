// SPDX-License-Identifier: Apache-2.0
// sharding, measured on the host (kernels/programs/sharding/sharding_measurement.h): N ranks, threads or processes,
// over memory that they share (ring.cpp). A core that moves bytes computes nothing.
#include "kernels/host/sharding/sharding.h"

#include "kernels/host/measurement.h"
#include "kernels/host/sharding/rank_group.h"
#include "kernels/programs/sharding/ring_plan.h"
#include "kernels/programs/sharding/sharding_measurement.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

/// Threads or processes of this host.
class HostRing final : public RankRing
{
public:
    HostRing(HostSession& session, int ranks, bool areProcesses, std::size_t memory,
             std::vector<RingOperation> operations)
        : m_group(session, ranks, areProcesses, memory, std::move(operations))
    { }
    Result<void> start() { return m_group.start(); }
    Result<void> check() override { return m_group.check(); }
    Result<double> run(std::size_t repeats) override
    {
        const double seconds = m_group.run(repeats);
        MEMSCAPE_CHECK(m_group.whole());
        return seconds;
    }
    std::uint64_t sentBytes() const override { return m_group.sentBytes(); }
    std::uint64_t comparedElements() const override { return m_group.comparedElements(); }

private:
    RankGroup m_group;
};

class HostSharding final : public ShardingMeasurement
{
public:
    explicit HostSharding(HostSession& session)
        : ShardingMeasurement(session.device())
        , m_session(session)
    { }

    /// A ring of each kind of element, through all three collectives.
    Result<void> check() override
    {
        RankGroup group(m_session, 2, false, smallRingsMemory, smallRings());
        MEMSCAPE_CHECK(group.start());
        return group.check();
    }

    Result<SampleSets> visit(const Parameters& point, int pass) override
    {
        MEMSCAPE_TRY(sets, ShardingMeasurement::visit(point, pass));
        MEMSCAPE_TRY(asked, shardingCase(m_session.device(), point));
        const RingKind kind{asked.link.way, asked.isInPlace(), asked.ranks() > m_session.team().size()};
        if (auto plan = ringLinkPlan(m_session, kind))
            m_prober.add(std::move(*plan));
        MEMSCAPE_CHECK(m_prober.take());
        return sets;
    }
    RunProbes probes() const override { return {m_prober.samples(), {}}; }

    Json method() const override
    {
        return {{"threads", m_session.team().size()},
                {"caches", "steady state: steps follow each other"},
                {"kernels", checksOfRings()}};
    }

protected:
    double mostSent() const override { return 0x1p30; } // a few seconds of a slow machine

    StoppingOptions loopOptions() const override { return m_session.passOptions(2); }
    const Clock& clock() const override { return m_session.clock(); }
    std::vector<double> samplesOf(const StoppingRule& rule, double per) override
    {
        return m_session.samplesOf(rule, per);
    }
    Result<std::unique_ptr<RankRing>> ringOf(ShardingWay way, int ranks, std::size_t memory,
                                             std::vector<RingOperation> operations) override
    {
        if (ranks > m_session.team().size())
            m_session.noteOnce("warning", "sharding.turns",
                               fmt::format("more ranks than the {} cores: they take turns, and times are those of the "
                                           "turns",
                                           m_session.team().size()));
        auto ring =
            std::make_unique<HostRing>(m_session, ranks, way == ShardingWay::Processes, memory, std::move(operations));
        MEMSCAPE_CHECK(ring->start());
        return std::unique_ptr<RankRing>(std::move(ring));
    }

private:
    HostSession& m_session;
    LinkProber m_prober{[this] { return m_session.readTicks(); }};
};

} // namespace

Result<std::vector<double>> measureRing(HostSession& session, const RingKind& kind, int ranks, std::size_t pieceBytes,
                                        const StoppingOptions& options)
{
    using enum CollectiveKind;
    const std::size_t elements = std::max<std::size_t>(1, pieceBytes / 4), times = elements > 1024 ? 1 : 16;
    const std::size_t payload = elements * 4 * std::size_t(ranks);
    std::vector<RingOperation> operations;
    for (std::size_t i = 0; i < times; ++i) {
        if (kind.isInPlace)
            operations.push_back({AllReduce, elements, 4});
        else
            operations.insert(operations.end(), {{ReduceScatter, elements, 4}, {AllGather, elements, 4, payload}});
    }
    HostRing ring(session, ranks, kind.way == ShardingWay::Processes, payload * (kind.isInPlace ? 1 : 2),
                  std::move(operations));
    MEMSCAPE_CHECK(ring.start());
    MEMSCAPE_CHECK(ring.check());
    const double steps = double(times) * double(ringSteps(AllReduce, ranks));
    StoppingRule rule(options, session.clock());
    MEMSCAPE_TRY(repeats, sampleRing(ring, steps * double(elements) * 4, rule));
    return session.samplesOf(rule, repeats * steps);
}

std::optional<LinkPlan> ringLinkPlan(HostSession& session, const RingKind& kind)
{
    const int cores = session.team().size();
    const int ranks = kind.takesTurns ? probedTurns * cores : std::min(cores, mostRingRanks);
    if (ranks < 2 || ranks > mostRingRanks)
        return std::nullopt;
    const std::string label = fmt::format("{} of {}{}", kind.isInPlace ? "all-reduces" : "ring",
                                          shardingWayKey(kind.way), kind.takesTurns ? " in turns" : "");
    const double touched = (kind.isInPlace ? 1.0 : 2.0) * ranks * ranks; // B of memory for each of a piece
    // B: of all pieces no cache holds much.
    const double most = std::max(kind.takesTurns ? 0x1p22 : 0x1p23, std::ceil(1.25 * session.largestCache() / touched));
    return LinkPlan{{ringLink(kind), label, {}, touched},
                    {4, 0x1p12, 0x1p15, 0x1p17, 0x1p19, 0x1p20, most / 2, most},
                    [&session, kind, ranks](double bytes, const StoppingOptions& options) {
                        return measureRing(session, kind, ranks, std::size_t(bytes), options);
                    }};
}

std::unique_ptr<HostMeasurement> makeShardingMeasurement(HostSession& session)
{
    return std::make_unique<HostSharding>(session);
}

} // namespace memscape::host
