// SPDX-License-Identifier: Apache-2.0
// The collectives of a training step as places in the memory of every rank, and the numbers that check them, whatever
// machine the ranks are on. In every step of a ring a rank takes one piece of its left neighbour and adds it to its own
// or stores it; rank r ends a reduce-scatter with the sum of piece r.
//
// Left out: formats of 2 bytes that are no integers.
#pragma once

#include "core/experiments/sharding/sharding.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memscape {

inline constexpr int mostRingRanks = 8;

/// One collective of a step, at a place in the memory of every rank. Elements of 4 bytes are floats, of 2 bytes
/// integers without sign, which wrap around: sums of either are exact here.
struct RingOperation
{
    CollectiveKind kind = CollectiveKind::AllReduce; ///< all-reduce, reduce-scatter, all-gather
    std::size_t pieceElements = 0, elementBytes = 4;
    std::size_t offset = 0; ///< B, of N pieces
    /// B, of the rank's own piece where that lies elsewhere: what is gathered comes from there, what is reduced goes
    /// there. noPlace: it lies among the others.
    std::size_t own = noPlace;
    static constexpr std::size_t noPlace = SIZE_MAX;

    std::size_t pieceBytes() const { return pieceElements * elementBytes; }
    bool hasOwn() const { return own != noPlace; }
    /// Where piece `piece`, counted round the ring, is in the memory of a rank.
    std::size_t placeOf(int piece, int ranks) const
    {
        return offset + std::size_t((piece % ranks + ranks) % ranks) * pieceBytes();
    }
};

/// The numbers that a rank begins with: small whole ones, so that every sum is exact.
void fillRing(std::byte* memory, const RingOperation& operation, int rank, int ranks);
/// Elements of a rank's memory that are not what the collective makes of such numbers.
std::uint64_t wrongInRing(const std::byte* memory, const RingOperation& operation, int rank, int ranks);
/// Elements that wrongInRing() looks at, over all ranks.
std::uint64_t comparedInRing(const std::vector<RingOperation>& operations, int ranks);

/// A ring of each kind of element, through all three collectives, and the memory that they take, B.
std::vector<RingOperation> smallRings();
inline constexpr std::size_t smallRingsMemory = 6 * 2 * 77 * 4;

/// The step's collectives as places in the memory of a rank.
struct RingPlan
{
    std::vector<RingOperation> operations;
    std::size_t memory = 0;     ///< B of each rank
    std::uint64_t gathered = 0; ///< B of the largest whole weights that are gathered
};
/// Gradients and weights that stay have places of their own; what exists for a moment shares one.
RingPlan ringPlan(const std::vector<ShardCollective>& collectives, int zeroStage);

} // namespace memscape
