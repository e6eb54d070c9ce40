// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/sharding/rank_group.h"

#include "kernels/host/transfer/route_parts.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <system_error>

#include <fmt/format.h>
#include <sched.h>

namespace memscape::host {

namespace {

constexpr std::size_t stateBytes = roundedUp(sizeof(RingState), pageBytes);

} // namespace

/// Rank 0 asks it while it waits.
struct RankGroup::Lost final : RingRank::Watch
{
    explicit Lost(RankGroup& group)
        : m_group(group)
    { }
    bool isLost() override
    {
        for (std::size_t i = 0; i < m_group.m_children.size() && lost == 0; ++i) {
            if (!m_group.m_children[i]->isAlive())
                lost = int(i) + 1;
        }
        return lost > 0 || m_group.m_session.team().stopping();
    }

    int lost = 0; ///< its rank

private:
    RankGroup& m_group;
};

RankGroup::RankGroup(HostSession& session, int ranks, bool areProcesses, std::size_t memory,
                     std::vector<RingOperation> operations)
    : m_session(session)
    , m_ranks(ranks)
    , m_areProcesses(areProcesses)
    , m_used(memory)
    , m_memory(roundedUp(std::max<std::size_t>(memory, 1), hugeBytes))
    , m_operations(std::move(operations))
    , m_lost(std::make_unique<Lost>(*this))
{ }

RankGroup::~RankGroup()
{
    if (m_state)
        m_state->isStopped = true;
    for (std::thread& thread : m_threads)
        thread.join();
}

Result<void> RankGroup::start()
{
    const std::size_t bytes = stateBytes + m_memory * std::size_t(m_ranks);
    MEMSCAPE_CHECK(m_session.checkFits(double(bytes)));
    m_mapping = std::make_unique<SharedMapping>(bytes);
    if (!m_mapping->isThere())
        return fail("run.memory",
                    fmt::format("{} of shared memory for {} ranks cannot be had", bytesText(double(bytes)), m_ranks),
                    "choose a smaller model or fewer ranks");
    m_state = new (m_mapping->data()) RingState;
    m_state->isCrowded = m_ranks > m_session.team().size();
    for (int rank = 1; rank < m_ranks; ++rank) {
        const std::vector<int>& cores = m_session.team().processors();
        const int processor = cores.empty() ? -1 : cores[std::size_t(rank) % cores.size()];
        if (m_areProcesses) {
            m_children.push_back(std::make_unique<ForkedChild>());
            MEMSCAPE_CHECK(m_children.back()->start({-1, -1}, processor, [this, rank] { serve(rank); }));
            continue;
        }
        try {
            m_threads.emplace_back([this, rank, processor] {
                if (processor >= 0) {
                    cpu_set_t set;
                    CPU_ZERO(&set);
                    CPU_SET(processor, &set);
                    ::sched_setaffinity(0, sizeof(set), &set);
                }
                serve(rank);
            });
        } catch (const std::system_error&) {
            return fail("run.failed", fmt::format("rank {} cannot be started: no more threads", rank),
                        "choose fewer ranks, or raise the limit of processes (ulimit -u)");
        }
    }
    return {};
}

std::optional<double> RankGroup::work(RingRank& ring, std::uint32_t repeats) const
{
    const auto all = [&](bool (RingRank::*does)(const RingOperation&)) {
        return std::ranges::all_of(m_operations,
                                   [&](const RingOperation& operation) { return (ring.*does)(operation); });
    };
    if (repeats == 0)
        return all(&RingRank::check) ? std::optional(0.0) : std::nullopt;
    double seconds = 0;
    for (std::uint32_t i = 0; i < repeats; ++i) {
        ring.rewrite(m_used);
        if (!ring.meet())
            return std::nullopt;
        const double begin = m_session.clock().now();
        if (!all(&RingRank::run) || !ring.meet())
            return std::nullopt;
        seconds += m_session.clock().now() - begin;
    }
    return seconds;
}

void RankGroup::serve(int rank)
{
    RingRank ring(*m_state, static_cast<std::byte*>(m_mapping->data()) + stateBytes, m_memory, rank, m_ranks);
    std::memset(ring.memoryOf(rank), 0, m_memory); // its pages are its own node's
    for (std::uint32_t order = 0;; ++order) {
        if (!ring.waitWhile([&] { return m_state->order.load(std::memory_order_acquire) == order; }))
            return;
        if (!work(ring, m_state->repeats.load(std::memory_order_relaxed)))
            return;
        m_state->ended.fetch_add(1, std::memory_order_release);
    }
}

double RankGroup::run(std::size_t repeats)
{
    m_state->ended.store(0, std::memory_order_relaxed);
    m_state->repeats.store(std::uint32_t(repeats), std::memory_order_relaxed);
    double seconds = 0;
    m_session.team().run(
        [&](int) {
            RingRank ring(*m_state, static_cast<std::byte*>(m_mapping->data()) + stateBytes, m_memory, 0, m_ranks);
            ring.watch = m_lost.get();
            if (repeats == 0)
                std::memset(ring.memoryOf(0), 0, m_memory);
            m_state->order.fetch_add(1, std::memory_order_release);
            const auto worked = work(ring, std::uint32_t(repeats));
            if (!worked)
                return;
            seconds = *worked;
            static_cast<void>(ring.waitWhile(
                [&] { return m_state->ended.load(std::memory_order_acquire) < std::uint32_t(m_ranks - 1); }));
        },
        1);
    return seconds;
}

Result<void> RankGroup::whole()
{
    MEMSCAPE_CHECK(m_session.checkStopped());
    if (m_lost->lost > 0)
        return fail("run.failed", fmt::format("rank {}'s process was lost", m_lost->lost), "measure again");
    if (m_state->isStopped)
        return fail("run.failed", "the ring was stopped", "measure again");
    return {};
}

Result<void> RankGroup::check()
{
    for (RingState::Rank& rank : m_state->ranks)
        rank.received = rank.wrong = 0;
    static_cast<void>(run(0));
    MEMSCAPE_CHECK(whole());
    std::uint64_t wrong = 0;
    m_sent = 0;
    for (const RingState::Rank& rank : m_state->ranks) {
        wrong += rank.wrong;
        m_sent = std::max(m_sent, rank.received.load());
    }
    m_compared = comparedInRing(m_operations, m_ranks);
    if (wrong > 0)
        return fail("check.failed", fmt::format("{} of {} elements are not the sum of the ranks", wrong, m_compared),
                    "measure again; if it stays, report it with the name of the processor");
    return {};
}

pid_t RankGroup::processOf(int rank) const
{
    return rank >= 1 && std::size_t(rank) <= m_children.size() ? m_children[std::size_t(rank) - 1]->process() : 0;
}

} // namespace memscape::host
