// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/sharding/ring.h"

#include <cstring>

namespace memscape::host {

namespace {

/// to ← a + b, element by element.
template <typename Number> void addAll(std::byte* to, const std::byte* a, const std::byte* b, std::size_t count)
{
    auto* const sums = reinterpret_cast<Number*>(to);
    const auto* const first = reinterpret_cast<const Number*>(a);
    const auto* const second = reinterpret_cast<const Number*>(b);
    for (std::size_t i = 0; i < count; ++i)
        sums[i] = Number(first[i] + second[i]);
}

void addPieces(const RingOperation& operation, std::byte* to, const std::byte* a, const std::byte* b)
{
    if (operation.elementBytes == 4)
        addAll<float>(to, a, b, operation.pieceElements);
    else
        addAll<std::uint16_t>(to, a, b, operation.pieceElements);
}

} // namespace

void RingRank::endStep()
{
    state(m_rank).done.fetch_add(1, std::memory_order_release);
}

bool RingRank::meet()
{
    endStep();
    const std::uint64_t steps = state(m_rank).done.load(std::memory_order_relaxed);
    for (int rank = 0; rank < m_ranks; ++rank) {
        if (!waitFor(rank, steps))
            return false;
    }
    return true;
}

void RingRank::rewrite(std::size_t bytes)
{
    constexpr std::size_t line = 64;
    for (std::size_t at = 0; at < bytes; at += line) {
        volatile std::byte& first = memoryOf(m_rank)[at];
        const std::byte value = first;
        first = value;
    }
}

bool RingRank::waitFor(int rank, std::uint64_t steps)
{
    return waitWhile([&] { return state(rank).done.load(std::memory_order_acquire) < steps; });
}

bool RingRank::reduceScatter(const RingOperation& operation)
{
    const std::uint64_t before = state(m_rank).done.load(std::memory_order_relaxed);
    for (int step = 0; step + 1 < m_ranks; ++step) {
        if (!waitFor(left(), before + std::uint64_t(step)))
            return false;
        const int piece = m_rank - 2 - step;
        std::byte* const mine = pieceOf(operation, m_rank, piece);
        const bool isLast = step + 2 == m_ranks && operation.hasOwn();
        addPieces(operation, isLast ? memoryOf(m_rank) + operation.own : mine, mine, pieceOf(operation, left(), piece));
        state(m_rank).received.fetch_add(operation.pieceBytes(), std::memory_order_relaxed);
        endStep();
    }
    return true;
}

bool RingRank::allGather(const RingOperation& operation)
{
    if (operation.hasOwn())
        std::memcpy(pieceOf(operation, m_rank, m_rank), memoryOf(m_rank) + operation.own, operation.pieceBytes());
    const std::uint64_t before = state(m_rank).done.load(std::memory_order_relaxed);
    for (int step = 0; step + 1 < m_ranks; ++step) {
        if (!waitFor(left(), before + std::uint64_t(step)))
            return false;
        const int piece = m_rank - 1 - step;
        // The neighbour's own piece is there before it has copied it among the others.
        const bool isOwn = step == 0 && operation.hasOwn();
        std::memcpy(pieceOf(operation, m_rank, piece),
                    isOwn ? memoryOf(left()) + operation.own : pieceOf(operation, left(), piece),
                    operation.pieceBytes());
        state(m_rank).received.fetch_add(operation.pieceBytes(), std::memory_order_relaxed);
        endStep();
    }
    return true;
}

bool RingRank::run(const RingOperation& operation)
{
    const std::uint64_t before = state(m_rank).done.load(std::memory_order_relaxed);
    if (!waitFor(right(), before)) // it reads no more of what comes next
        return false;
    if (operation.kind != CollectiveKind::AllGather && !reduceScatter(operation))
        return false;
    return operation.kind == CollectiveKind::ReduceScatter || allGather(operation);
}

bool RingRank::check(const RingOperation& operation)
{
    // Both neighbours have ended what came before: the right one reads this memory, the left one is read.
    const std::uint64_t before = state(m_rank).done.load(std::memory_order_relaxed);
    if (!waitFor(right(), before))
        return false;
    fillRing(memoryOf(m_rank), operation, m_rank, m_ranks);
    endStep(); // filled
    if (!waitFor(left(), before + 1) || !run(operation))
        return false;
    state(m_rank).wrong.fetch_add(wrongInRing(memoryOf(m_rank), operation, m_rank, m_ranks), std::memory_order_relaxed);
    return true;
}

} // namespace memscape::host
