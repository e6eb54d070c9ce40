// SPDX-License-Identifier: Apache-2.0
// Ring collectives between ranks that see each other's memory: threads, or processes that share a mapping. In every
// step a rank reads one piece of its left neighbour, adds it to its own or stores it, and says that the step is done;
// it begins a step when the neighbour's piece is ready. Rank r ends a reduce-scatter with the sum of piece r.
//
// Within a collective no rank overwrites what its right neighbour still needs: a sum has passed it before it comes
// back. Before the next one it waits until that neighbour has ended this one.
//
// A rank that waits looks again and again; where ranks share a core it lets the others run after a microsecond. On two
// cores of a quiet virtual machine that took 2 µs a step, and sleeping until it was woken 15 to 80 µs. Where other
// programs use the cores it is the slower way: they run first, for milliseconds.
//
// Left out: several rings at once, NUMA placement of the ranks' memory.
#pragma once

#include "kernels/host/transfer/transfer_route.h"
#include "kernels/programs/sharding/ring_plan.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memscape::host {

/// What all ranks see, before their memory.
struct RingState
{
    struct alignas(64) Rank
    {
        std::atomic<std::uint64_t> done{0};     ///< steps since the ring was made
        std::atomic<std::uint64_t> received{0}; ///< B that were read from the neighbour
        std::atomic<std::uint64_t> wrong{0};    ///< elements that a check found
    };
    alignas(64) std::atomic<std::uint32_t> order{0}; ///< counts what rank 0 asks for
    std::atomic<std::uint32_t> repeats{0};           ///< of that; 0: check once
    std::atomic<bool> isStopped{false};
    bool isCrowded = false; ///< more ranks than cores: who waits leaves its core to the others; set before they run
    alignas(64) std::atomic<std::uint32_t> ended{0}; ///< ranks that have done it, without rank 0
    std::array<Rank, mostRingRanks> ranks;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

/// The ring as one of its ranks sees it. Nothing here allocates or locks: it runs in forked processes, too.
class RingRank
{
public:
    /// `memory`: B of each rank, one behind the other at `base`.
    RingRank(RingState& state, std::byte* base, std::size_t memory, int rank, int ranks)
        : m_state(state)
        , m_base(base)
        , m_memory(memory)
        , m_rank(rank)
        , m_ranks(ranks)
    { }

    /// False when the ring was stopped.
    bool run(const RingOperation& operation);
    /// The same of numbers that it makes and then compares: counts what is wrong.
    bool check(const RingOperation& operation);
    /// Waits while `holds()` is true; false when the ring was stopped meanwhile.
    template <typename Holds> bool waitWhile(const Holds& holds)
    {
        const unsigned patience = m_state.isCrowded ? crowdedPatience : ownCorePatience;
        for (unsigned turns = 0; holds();) {
            waitTurn(turns, patience);
            if (turns % 64 != 0)
                continue; // what is looked at takes longer than a turn
            if (watch && watch->isLost())
                m_state.isStopped = true;
            if (m_state.isStopped)
                return false;
        }
        return true;
    }
    /// Waits until every rank has come here; false when the ring was stopped.
    bool meet();
    /// Writes to every line of its first `bytes`, as backward and the optimizer do between the collectives of two
    /// steps: what a neighbour reads was just changed by another core.
    void rewrite(std::size_t bytes);

    std::byte* memoryOf(int rank) const { return m_base + std::size_t(rank) * m_memory; }

    /// Asked while it waits: whether a rank is lost or the run is to stop. Rank 0 has one.
    struct Watch
    {
        virtual ~Watch() = default;
        virtual bool isLost() = 0;
    };
    Watch* watch = nullptr;

private:
    static constexpr unsigned crowdedPatience = 50; ///< turns, 1 µs

    RingState::Rank& state(int rank) const { return m_state.ranks[std::size_t(rank)]; }
    int left() const { return (m_rank + m_ranks - 1) % m_ranks; }
    int right() const { return (m_rank + 1) % m_ranks; }
    /// Piece `piece` (counted round the ring) of the buffer of `rank`.
    std::byte* pieceOf(const RingOperation& operation, int rank, int piece) const
    {
        return memoryOf(rank) + operation.placeOf(piece, m_ranks);
    }
    bool waitFor(int rank, std::uint64_t steps);
    void endStep();
    bool reduceScatter(const RingOperation& operation);
    bool allGather(const RingOperation& operation);

    RingState& m_state;
    std::byte* m_base;
    std::size_t m_memory;
    int m_rank, m_ranks;
};

} // namespace memscape::host
